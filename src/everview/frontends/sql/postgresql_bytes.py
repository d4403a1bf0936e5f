r"""Bytes as PostgreSQL writes them in text: in hexadecimal behind ``\x``, or as letters with octal escapes.

>>> bytes_of_text(r"\xff00"), bytes_of_text(r"a\\b\377")
(b'\xff\x00', b'a\\b\xff')
"""

from __future__ import annotations

from sqlglot import exp

from everview.errors import CastFailure
from everview.types import BINARY, Type

_DIALECTS = ("postgres", "postgresql")


def bytes_of_text(text: str) -> bytes:
    """The bytes that a text stands for; raises `ValueError` if it is none."""
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    out, place = bytearray(), 0
    while place < len(text):
        if text[place] != "\\":
            out += text[place].encode()
            place += 1
        elif text[place + 1 : place + 2] == "\\":
            out += b"\\"
            place += 2
        elif len(text) < place + 4:
            raise ValueError(text)
        else:
            out.append(int(text[place + 1 : place + 4], 8))
            place += 4
    return bytes(out)


def as_bytes(node: exp.Expr, type_: Type, dialect: str) -> exp.Expr:
    """The bytes that a constant text stands for where bytes are wanted; every other node as it is."""
    if type_ != BINARY or dialect not in _DIALECTS or not isinstance(node, exp.Literal) or not node.is_string:
        return node
    return written_bytes(node)


def written_bytes(text: exp.Literal) -> exp.HexString:
    """The bytes of a constant text; raises `CastFailure` if it stands for none."""
    try:
        made = exp.HexString(this=bytes_of_text(text.name).hex())
    except ValueError:
        hint = r"write '\x' and hexadecimal digits, as in '\xff00'"
        raise CastFailure(f"{text.name[:40]!r} is no BINARY", hint=hint) from None
    made.meta.update(text.meta)
    return made
