"""The meaning of functions that take texts apart, compare them, and write them as bytes or URLs."""

from __future__ import annotations

import codecs
import hashlib
import re
import string
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue


def _split_part(text: str, separator: str, place: int) -> str:
    if place == 0:
        raise NoValue("no part 0")
    parts = re.split(re.escape(separator), text) if separator else [text]
    if abs(place) > len(parts):
        return ""
    return parts[place - 1] if place > 0 else parts[place]


def _places(text: str, part: str) -> list[int]:
    """Where a part begins, overlapping ones too."""
    return [place for place in range(len(text) - len(part) + 1) if text[place : place + len(part)] == part]


def _substring_index(text: str, separator: str, count: int) -> str:
    if count == 0 or separator == "":
        return ""
    places = _places(text, separator)
    if abs(count) > len(places):
        return text
    return text[: places[count - 1]] if count > 0 else text[places[count] + len(separator) :]


def _instr_from(text: str, part: str, start: int, occurrence: int) -> int:
    if occurrence < 1:
        raise NoValue("no such occurrence")
    if start == 0 or part == "":
        return int(start != 0)
    places = [place + 1 for place in _places(text, part)]
    if start > 0:
        wanted = [place for place in places if place >= start]
    else:
        wanted = [place for place in reversed(places) if place <= len(text) + 1 + start]
    return wanted[occurrence - 1] if occurrence <= len(wanted) else 0


def _elt(place: int | None, *texts: Any) -> Any:
    if place is None:
        return None
    if not 0 < place <= len(texts):
        raise NoValue("no such place")
    return texts[place - 1]


def _find_in_set(text: str, listed: str) -> int:
    return next((place for place, word in enumerate(listed.split(","), 1) if word == text), 0)


def _mask(text: str | None, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str | None:
    if text is None:
        return None
    masked = ""
    for letter in text:
        mark = other
        for is_kind, chosen in ((str.isdecimal, digit), (str.islower, lower), (str.isupper, upper)):
            mark = chosen if is_kind(letter) else mark
        masked += letter if mark is None else mark
    return masked


def _levenshtein(a: str, b: str, most: int | None = None) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        if a[i - 1] == b[j - 1]:
            return distance(i - 1, j - 1)
        return 1 + min(distance(i - 1, j), distance(i, j - 1), distance(i - 1, j - 1))

    steps = distance(len(a), len(b))
    return steps if most is None or steps <= most else -1


_CODES: Final = {
    letter: code
    for code, letters in {"0": "AEIOUY", "1": "BFPV", "2": "CGJKQSXZ", "3": "DT", "4": "L", "5": "MN", "6": "R"}.items()
    for letter in letters
}


def _soundex(text: str) -> str:
    if not text or text[0] not in string.ascii_letters:
        return text
    # H and W are passed over; what is no letter separates equal sounds as a vowel does.
    letters = [_CODES.get(letter.upper(), "0") for letter in text if letter not in "hHwW"]
    if text[0] in "hHwW":
        letters.insert(0, "")
    sounds = [code for before, code in pairwise(letters) if code not in ("0", before)]
    return (text[0].upper() + "".join(sounds) + "000")[:4]


def _luhn(text: str) -> bool:
    if not re.fullmatch("[0-9]+", text):
        return False
    total = 0
    for place, digit in enumerate(text[::-1]):
        total += sum(map(int, str(int(digit) * (1 + place % 2))))
    return total % 10 == 0


def _jaro_winkler(a: str, b: str) -> float:
    if a == b:
        return 1.0
    reach, taken, pairs = max(max(len(a), len(b)) // 2 - 1, 0), set[int](), list[tuple[int, int]]()
    for i, letter in enumerate(a):
        for j in range(len(b)):
            if abs(i - j) <= reach and j not in taken and b[j] == letter:
                taken.add(j)
                pairs.append((i, j))
                break
    m = len(pairs)
    if m == 0:
        return 0.0
    wrong = sum(a[i] != b[j] for (i, _), j in zip(pairs, sorted(taken), strict=True))
    jaro = (m / len(a) + m / len(b) + (m - wrong / 2) / m) / 3.0
    common = 0
    while common < min(4, len(a), len(b)) and a[common] == b[common]:
        common += 1
    return jaro + common * 0.1 * (1.0 - jaro) if jaro > 0.7 else jaro


# -- bytes

_SETS: Final = ("us-ascii", "iso-8859-1", "utf-8", "utf-16be", "utf-16le", "utf-16", "utf-32")


def _encode(text: str, charset: str) -> bytes:
    if charset.lower() not in _SETS:
        raise NoValue("no such character set")
    name, mark = charset.lower(), b""
    if name in ("utf-16", "utf-32"):
        mark, name = (codecs.BOM_UTF16_BE if name == "utf-16" and text else b""), name + "be"
    try:
        return mark + codecs.encode(text, name)
    except UnicodeError:
        raise NoValue("no such letter") from None


def _decode(raw: bytes, charset: str) -> str:
    name = charset.lower()
    if name not in _SETS:
        raise NoValue("no such character set")
    if name in ("utf-16", "utf-32"):
        marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) if name == "utf-16" else ()
        if not raw.startswith((*marks, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            name += "be"
    try:
        return codecs.decode(raw, name)
    except UnicodeError:
        raise NoValue("no text") from None


_BASE_64: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_BASE_32: Final = string.ascii_uppercase + "234567"


def _to_binary(text: str, form: str) -> bytes:
    if form.lower() in ("utf-8", "utf8"):
        return codecs.encode(text, "utf-8")
    if form.lower() == "hex":
        if any(letter not in string.hexdigits for letter in text):
            raise NoValue("no hexadecimal number")
        return int(text or "0", 16).to_bytes((len(text) + 1) // 2, "big")
    kept = "".join(letter for letter in text if letter not in " \t\n\r\v\f")
    body = kept.rstrip("=")
    if any(letter not in _BASE_64 for letter in body) or len(body) % 4 == 1:
        raise NoValue("not in base 64")
    if (len(kept) != len(body) and len(kept) % 4) or len(kept) - len(body) > 2:
        raise NoValue("not in base 64")
    bits = "".join(f"{_BASE_64.index(letter):06b}" for letter in body)
    return _of_bits(bits)


def _of_bits(bits: str) -> bytes:
    return bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8))


def _to_base32(value: str | bytes) -> str:
    raw = value if isinstance(value, bytes) else codecs.encode(value, "utf-8")
    bits = "".join(f"{byte:08b}" for byte in raw)
    bits += "0" * (-len(bits) % 5)
    letters = "".join(_BASE_32[int(bits[place : place + 5], 2)] for place in range(0, len(bits), 5))
    return letters + "=" * (-len(letters) % 8)


def _from_base32(text: str) -> bytes:
    letters = [letter.upper() for letter in text.partition("=")[0] if letter in _BASE_32 + string.ascii_lowercase]
    bits = "".join(f"{_BASE_32.index(letter):05b}" for letter in letters)
    if len(letters) % 8 == 1:  # a letter alone is the first five of seven bits and two that are lost
        return _of_bits(bits[:-5]) + bytes([int(bits[-5:], 2) >> 2])
    if len(letters) % 8 == 3:
        return _of_bits(bits[:-15]) + bytes([int(bits[-15:], 2) >> 7])
    if len(letters) % 8 == 6:
        return _of_bits(bits[:-30]) + (int(bits[-30:], 2) >> 6).to_bytes(3, "big")
    return _of_bits(bits)


def _is_utf8(value: str | bytes) -> bool:
    return isinstance(value, str) or codecs.decode(value, "utf-8", "ignore").encode() == value


def _valid(value: str | bytes) -> str:
    return value if isinstance(value, str) else codecs.decode(value, "utf-8", "replace")


def _validated(value: str | bytes) -> str:
    if not _is_utf8(value):
        raise NoValue("not UTF-8")
    return _valid(value)


# -- URLs and keyed hashes


def _url_encode(text: str) -> str:
    plain = string.ascii_letters + string.digits + "*-._"
    return "".join(chr(b) if chr(b) in plain else "+" if b == 32 else f"%{b:02X}" for b in text.encode())


def _url_decode(text: str) -> str:
    raw, letters = b"", list(text)
    while letters:
        letter = letters.pop(0)
        if letter != "%":
            raw += b" " if letter == "+" else letter.encode()
            continue
        if len(letters) < 2 or any(digit not in string.hexdigits for digit in letters[:2]):
            raise NoValue("no escape")
        raw += bytes([int(letters.pop(0) + letters.pop(0), 16)])
    return codecs.decode(raw, "utf-8", "replace")


def _hmac(key: str | bytes, message: str | bytes, algorithm: str = "sha-256") -> bytes:
    name = algorithm.lower().replace("-", "")
    if name not in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
        raise NoValue("no such algorithm")
    if len(key) == 0:
        raise NoValue("no key")
    secret, text = (v if isinstance(v, bytes) else v.encode() for v in (key, message))

    def digest(raw: bytes) -> bytes:
        return hashlib.new(name, raw, usedforsecurity=False).digest()

    size = 128 if name in ("sha384", "sha512") else 64
    secret = (digest(secret) if len(secret) > size else secret).ljust(size, b"\0")
    inner = digest(bytes(byte ^ 0x36 for byte in secret) + text)
    return digest(bytes(byte ^ 0x5C for byte in secret) + inner)


PARTS: Final[Mapping[str, Callable[..., Any]]] = {
    "split_part": _split_part,
    "substring_index": _substring_index,
    "instr_from": _instr_from,
    "elt": _elt,
    "find_in_set": _find_in_set,
    "mask": _mask,
    "quote": lambda text: "'" + "\\'".join(text.split("'")) + "'",
    "levenshtein": _levenshtein,
    "soundex": _soundex,
    "luhn_check": _luhn,
    "jaro_winkler_similarity": _jaro_winkler,
    "encode": _encode,
    "decode": _decode,
    "to_binary": _to_binary,
    "to_base32": _to_base32,
    "from_base32": _from_base32,
    "is_valid_utf8": _is_utf8,
    "make_valid_utf8": _valid,
    "validate_utf8": _validated,
    "url_encode": _url_encode,
    "url_decode": _url_decode,
    "hmac": _hmac,
}
