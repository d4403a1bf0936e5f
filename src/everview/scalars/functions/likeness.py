"""How alike two texts are, how a name sounds, and whether a number has the right check digit."""

from __future__ import annotations

from typing import Any, Final

from everview.scalars.functions.kernel import Kernel, Kind, Value, each

# The code of every letter from A to Z; 0 separates equal codes, 7 does not.
_SOUNDS: Final = "01230127022455012623017202"


def _levenshtein(out: Kind, a: Value, b: Value, *most: Value) -> Any:
    return each(out, _within, a, b, *most)


def _within(a: str, b: str, most: int | None = None) -> int:
    """The number of letters to insert, delete or replace; -1 if more than so many."""
    distance = _distance(a, b)
    return -1 if most is not None and distance > most else distance


def _distance(a: str, b: str) -> int:
    """The distance by rows of the table of all prefixes, of which only the last is kept."""
    above = list(range(len(b) + 1))
    for row, letter in enumerate(a, 1):
        corner, above[0] = above[0], row
        for column, other in enumerate(b, 1):
            corner, above[column] = (
                above[column],
                min(above[column] + 1, above[column - 1] + 1, corner + (letter != other)),
            )
    return above[-1]


def _soundex(text: str) -> str:
    raw = text.encode()
    first = chr(raw[0]).upper() if raw else ""
    if not "A" <= first <= "Z":
        return text
    sounds, last = first, _SOUNDS[ord(first) - 65]
    for byte in raw[1:]:
        letter = chr(byte).upper() if byte < 128 else ""
        if not ("A" <= letter <= "Z"):
            last = "0"
            continue
        code = _SOUNDS[ord(letter) - 65]
        if code == "7":
            continue
        if code not in ("0", last):
            sounds += code
            if len(sounds) == 4:
                break
        last = code
    return sounds.ljust(4, "0")


def _luhn(text: str) -> bool:
    """Whether digits, every second from the end doubled, sum to a multiple of ten."""
    if not text or not (text.isascii() and text.isdigit()):
        return False
    digits = [int(digit) for digit in reversed(text)]
    return sum(digits[::2] + [digit * 2 - 9 * (digit > 4) for digit in digits[1::2]]) % 10 == 0


def _jaro_winkler(a: str, b: str) -> float:
    """Jaro's similarity, the nearer to 1 the longer the common prefix, of four letters at most."""
    jaro = _jaro(a, b)
    prefix = next(
        (place for place, (x, y) in enumerate(zip(a[:4], b[:4], strict=False)) if x != y), min(len(a), len(b), 4)
    )
    return jaro + prefix * 0.1 * (1.0 - jaro) if jaro > _BOOSTED else jaro


_BOOSTED: Final = 0.7


def _jaro(a: str, b: str) -> float:
    if a == b:
        return 1.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    free, kept = [True] * len(b), ""
    for at, letter in enumerate(a):
        place = next(
            (p for p in range(max(at - reach, 0), min(at + reach + 1, len(b))) if free[p] and b[p] == letter), -1
        )
        if place >= 0:
            free[place], kept = False, kept + letter
    if not kept:
        return 0.0
    turned = [letter for letter, is_free in zip(b, free, strict=True) if not is_free]
    swaps = sum(x != y for x, y in zip(kept, turned, strict=True)) / 2
    count = len(kept)
    return (count / len(a) + count / len(b) + (count - swaps) / count) / 3.0


KERNELS: Final[dict[str, Kernel]] = {
    "levenshtein": _levenshtein,
    "soundex": lambda out, a: each(out, _soundex, a),
    "luhn_check": lambda out, a: each(out, _luhn, a),
    "jaro_winkler_similarity": lambda out, a, b: each(out, _jaro_winkler, a, b),
}
