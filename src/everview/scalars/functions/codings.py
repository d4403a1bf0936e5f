"""Text as bytes and bytes as text: character sets, hexadecimal, bases 32 and 64, UTF-8, URLs, and keyed hashes."""

from __future__ import annotations

import base64
import hmac
import re
import urllib.parse
from typing import Any, Final

import pyarrow as pa

from everview.scalars.functions.kernel import Failed, Kernel, Kind, Value, each

# Character sets as Spark names them, and as Python does.
_SETS: Final = {
    "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-8": "utf-8", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le",
    "utf-16": "utf-16", "utf-32": "utf-32",
}  # fmt: skip


def _codec(name: str) -> str:
    codec = _SETS.get(name.lower())
    if codec is None:
        raise Failed(f"there is no character set {name!r}, but {', '.join(_SETS)}")
    return codec


def _encode(text: str, charset: str) -> bytes:
    codec = _codec(charset)
    try:
        if codec == "utf-16":
            return b"\xfe\xff" + text.encode("utf-16-be") if text else b""
        return text.encode("utf-32-be" if codec == "utf-32" else codec)
    except UnicodeError:
        raise Failed(f"a letter that {charset} has not") from None


def _decode(raw: bytes, charset: str) -> str:
    codec = _codec(charset)
    big = codec in ("utf-16", "utf-32") and not raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    try:
        return raw.decode(f"{codec}-be" if big else codec)
    except UnicodeError:
        raise Failed(f"the bytes are no text in {charset}") from None


def _to_binary(text: str, form: str) -> bytes:
    match form.lower():
        case "utf-8" | "utf8":
            return text.encode()
        case "hex":
            return _from_hex(text)
        case _:
            return _from_base64(text)


def _from_hex(text: str) -> bytes:
    if not re.fullmatch("[0-9a-fA-F]*", text):
        raise Failed("the text is no hexadecimal number")
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)


def _from_base64(text: str) -> bytes:
    kept = re.sub(r"\s", "", text, flags=re.ASCII)
    body = kept.rstrip("=")
    padding = len(kept) - len(body)
    if not re.fullmatch("[A-Za-z0-9+/]*", body) or len(body) % 4 == 1 or padding not in (0, -len(body) % 4):
        raise Failed("the text is not in base 64")
    return base64.b64decode(body + "=" * (-len(body) % 4))


_BASE_32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
# How many bits of the last letters are no byte, by the number of letters.
_REST: Final = (0, 2, 2, 7, 4, 1, 6, 3)


def _from_base32(text: str) -> bytes:
    """The bytes of letters up to the first ``=``; other characters are passed over."""
    letters = re.sub("[^A-Za-z2-7]", "", text.partition("=")[0]).upper()
    digits = [_BASE_32.index(letter) for letter in letters]
    whole, rest = len(digits) // 8 * 8, len(digits) % 8
    number, raw = 0, b""
    for place, digit in enumerate(digits, 1):
        number = number * 32 + digit
        if place % 8 == 0:
            raw, number = raw + number.to_bytes(5, "big"), 0
    if len(digits) == whole:
        return raw
    return raw + (number >> _REST[rest]).to_bytes(max(rest * 5 // 8, 1), "big")


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


# -- UTF-8


def _is_utf8(value: str | bytes) -> bool:
    if isinstance(value, str):
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _validated(value: str | bytes) -> str:
    if not _is_utf8(value):
        raise Failed("the bytes are not UTF-8")
    return _made_valid(value)


def _made_valid(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


# -- URLs


def _url_decode(text: str) -> str:
    if re.search("%(?![0-9a-fA-F]{2})", text):
        raise Failed("a % without two hexadecimal digits")
    return urllib.parse.unquote_plus(text, errors="replace")


def _url_encode(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


# A URI by RFC 2396, as Java reads it; other letters of the world may stand where escaped ones may.
_WORD: Final = r"(?:[A-Za-z0-9_.!~*'();:@&=+$,/?\[\]-]|%[0-9A-Fa-f]{2}|[^\x00-\x20\x7f-\xa0\"<>\\^`{|}#%\s])*"
_URL: Final = re.compile(
    r"(?:(?P<PROTOCOL>[A-Za-z][A-Za-z0-9+.-]*):)?(?=(?P<rest>[^#]*))"
    r"(?://(?P<AUTHORITY>[^/?#]*))?(?P<PATH>[^?#]*)(?:\?(?P<QUERY>[^#]*))?(?:#(?P<REF>.*))?",
    re.DOTALL,
)
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_TOP: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"(?:(?:{_LABEL}\.)*{_TOP}\.?|[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}|\[[0-9A-Fa-f:.]+\])")
_SERVER: Final = re.compile(r"(?:(?P<USERINFO>[^@]*)@)?(?P<HOST>\[[^\]]*\]|[^:@]*)(?::[0-9]*)?")


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    parts = _URL.fullmatch(url)
    if parts is None or not _is_url(parts):
        raise Failed("the text is no URL")
    if key is not None:
        return _parameter(parts["QUERY"], key) if part == "QUERY" else None
    if parts["PROTOCOL"] and not parts["rest"].startswith("/"):
        return parts["PROTOCOL"] if part == "PROTOCOL" else parts["REF"] if part == "REF" else None
    if part in ("HOST", "USERINFO"):
        server = _SERVER.fullmatch(parts["AUTHORITY"] or "")
        return server[part] if server and _HOST.fullmatch(server["HOST"]) else None
    if part == "FILE":
        return parts["PATH"] if parts["QUERY"] is None else f"{parts['PATH']}?{parts['QUERY']}"
    return parts[part] if part in ("PROTOCOL", "AUTHORITY", "PATH", "QUERY", "REF") else None


def _is_url(match: re.Match[str]) -> bool:
    parts = (match["AUTHORITY"], match["PATH"], match["QUERY"], match["REF"])
    if match["AUTHORITY"] == "" and not match["PATH"]:
        return False
    if match["PROTOCOL"] and not match["rest"]:
        return False
    if match["PROTOCOL"] is None and ":" in match["PATH"].partition("/")[0]:
        return False
    return all(re.fullmatch(_WORD, part) for part in parts if part)


def _parameter(query: str | None, key: str) -> str | None:
    if query is None:
        return None
    match = re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", query)
    return None if match is None else match[1]


# -- keyed hashes

_DIGESTS: Final = {
    "md5": "md5", "sha1": "sha1", "sha-1": "sha1", "sha224": "sha224", "sha-224": "sha224", "sha256": "sha256",
    "sha-256": "sha256", "sha384": "sha384", "sha-384": "sha384", "sha512": "sha512", "sha-512": "sha512",
}  # fmt: skip


def _hmac(key: str | bytes, message: str | bytes, algorithm: str = "sha256") -> bytes:
    digest = _DIGESTS.get(algorithm.lower())
    if digest is None:
        raise Failed(f"there is no algorithm {algorithm!r}")
    if not key:
        raise Failed("the key is empty")
    return hmac.digest(_raw(key), _raw(message), digest)


def _each(function: Any) -> Kernel:
    return lambda out, *arguments: each(out, function, *arguments)


def _is_valid(out: Kind, a: Value) -> Any:
    return each(pa.bool_(), _is_utf8, a)


KERNELS: Final[dict[str, Kernel]] = {
    "encode": _each(_encode),
    "decode": _each(_decode),
    "to_binary": _each(_to_binary),
    "to_base32": _each(lambda value: base64.b32encode(_raw(value)).decode()),
    "from_base32": _each(_from_base32),
    "is_valid_utf8": _is_valid,
    "make_valid_utf8": _each(_made_valid),
    "validate_utf8": _each(_validated),
    "url_encode": _each(_url_encode),
    "url_decode": _each(_url_decode),
    "parse_url": _each(_parse_url),
    "hmac": _each(_hmac),
}
