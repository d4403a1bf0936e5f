"""Signatures of what other dialects' functions and casts are computed by; no query calls them by name."""

from __future__ import annotations

from typing import Final

from everview.scalars.coercion import implicit
from everview.scalars.signatures.rules import Arguments, Signatures, Typed, family, signed, takes
from everview.types import BIGINT, BINARY, DOUBLE, FLOAT, STRING


def _float_text(name: str, arguments: Arguments) -> Typed:
    value = arguments[0] if arguments[0].type == FLOAT else implicit(arguments[0], DOUBLE, name)
    return Typed((value, arguments[1]), STRING)


FOREIGN: Final[Signatures] = family(
    signed("upper_letters lower_letters", 2, 2, takes(STRING, gives=STRING)),
    signed("capitalized", 1, 1, takes(STRING, gives=STRING)),
    signed("float_text", 2, 2, _float_text),
    signed("escaped_bytes", 2, 2, takes(STRING, gives=BINARY)),
    signed("gcd lcm", 2, 2, takes(BIGINT, gives=BIGINT)),
)
