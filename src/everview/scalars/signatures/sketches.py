"""Signatures of functions of sketches: their sizes are literals, as the result of a view depends on them."""

from __future__ import annotations

from typing import Final

from everview.errors import TypeMismatch
from everview.scalars.coercion import coerced, implicit, is_integer, mismatch
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.types import BIGINT, BINARY, BOOLEAN, DOUBLE, FLOAT, INTEGER, STRING, Array, Type

KLL_TYPES: Final[dict[str, Type]] = {"bigint": BIGINT, "double": DOUBLE, "float": FLOAT}


def sketch(name: str, argument: Expression) -> Expression:
    """An argument that is a sketch."""
    if argument.type not in (BINARY, VOID):
        raise mismatch(name, (argument.type,), "it takes a sketch, which is BINARY")
    return coerced(argument, BINARY)


def size(name: str, argument: Expression, what: str, least: int, most: int) -> Expression:
    """An argument that says how large a sketch is."""
    known = argument.value if isinstance(argument, Literal) else "no literal"
    if not isinstance(known, int) or not is_integer(argument.type) or not least <= known <= most:
        raise TypeMismatch(f"the {what} of {name} is {known}", hint=f"it is a literal from {least} to {most}")
    return coerced(argument, INTEGER)


def lg_entries(name: str, argument: Expression) -> Expression:
    return size(name, argument, "lgNomEntries", 4, 26)


def different_sizes(name: str, argument: Expression) -> Expression:
    """Whether sketches of different sizes may be put together: a literal."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, bool):
        raise TypeMismatch(f"the allowDifferentLgConfigK of {name} is no literal", hint="write true or false")
    return argument


def _hll_union(name: str, arguments: Arguments) -> Typed:
    a, b, *rest = arguments
    different = different_sizes(name, rest[0] if rest else Literal(False, BOOLEAN))
    return Typed((sketch(name, a), sketch(name, b), different), BINARY)


def _theta_union(name: str, arguments: Arguments) -> Typed:
    a, b, *rest = arguments
    entries = lg_entries(name, rest[0] if rest else Literal(12, INTEGER))
    return Typed((sketch(name, a), sketch(name, b), entries), BINARY)


def _sketches(gives: Type, nullable: bool | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(tuple(sketch(name, a) for a in arguments), gives, nullable)

    return rule


def _asked(type_: Type, gives: Type) -> Rule:
    """The rule of a sketch, and a number or an array of numbers; NULL of a sketch of no values."""

    def rule(name: str, arguments: Arguments) -> Typed:
        made, asked = arguments
        several = isinstance(asked.type, Array)
        asked = implicit(asked, Array(type_) if several else type_, name)
        return Typed((sketch(name, made), asked), Array(gives) if several else gives, True)

    return rule


def counted(name: str, value: Expression, *, fractions: bool = True) -> Expression:
    """A value of a type that Spark counts so, as one that is hashed."""
    if is_integer(value.type) or value.type == VOID:
        return coerced(value, BIGINT)
    if fractions and value.type in (FLOAT, DOUBLE):
        return coerced(value, DOUBLE)
    if fractions and isinstance(value.type, Array) and is_integer(value.type.element):
        return coerced(value, Array(BIGINT))
    if value.type not in (STRING, BINARY):
        others = ", floats and arrays of integers" if fractions else ""
        raise mismatch(name, (value.type,), f"it takes integers, text and bytes{others}; cast it")
    return value


def _hash(name: str, arguments: Arguments) -> Typed:
    return Typed((counted(name, arguments[0]),), BIGINT, True)


def _kll(name: str, arguments: Arguments) -> Typed:
    """Of an array of integers or of floats, and the size of the sketch."""
    values, k = arguments
    if not isinstance(values.type, Array) or not (is_integer(values.type.element) or values.type.element in _FLOATS):
        raise mismatch(name, (values.type,), "it takes an array of integers or floats")
    taken = values if values.type.element in _FLOATS else coerced(values, Array(BIGINT))
    return Typed((taken, implicit(k, INTEGER, name)), BINARY)


_FLOATS: Final = (FLOAT, DOUBLE)


_OF_KLL: Final = "as `kll_sketch_agg_…` of the same type made it"

# What aggregates of sketches are computed by.
MAKING_SKETCHES: Final[Signatures] = family(
    signed("sketch_hash", 1, 1, _hash),
    signed("hll_of theta_of", 2, 2, takes(Array(BIGINT), INTEGER, gives=BINARY)),
    signed("hll_union_of", 2, 2, takes(Array(BINARY), BOOLEAN, gives=BINARY)),
    signed("theta_union_of", 2, 2, takes(Array(BINARY), INTEGER, gives=BINARY)),
    signed("theta_intersection_of", 1, 1, takes(Array(BINARY), gives=BINARY)),
    signed("kll_of", 2, 2, _kll),
    *(signed(f"kll_merge_of_{kind}", 2, 2, takes(Array(BINARY), INTEGER, gives=BINARY)) for kind in KLL_TYPES),
)
SKETCHES: Final[Signatures] = family(
    MAKING_SKETCHES,
    signed("hll_sketch_estimate", 1, 1, _sketches(BIGINT), "HLL sketch", "how many different values, about"),
    signed(
        *("hll_union", 2, 3, _hll_union, "HLL sketch, HLL sketch [, allowDifferentLgConfigK]"),
        "of different `lgConfigK` the lesser, where the third argument is `true`",
    ),
    signed("theta_sketch_estimate", 1, 1, _sketches(BIGINT), "theta sketch", "how many different values, about"),
    signed("theta_union", 2, 3, _theta_union, "theta sketch, theta sketch [, lgNomEntries]", "12 if not said"),
    signed("theta_intersection theta_difference", 2, 2, _sketches(BINARY), "theta sketch, theta sketch"),
    *(
        signed(f"kll_sketch_merge_{kind}", 2, 2, _sketches(BINARY), "KLL sketch, KLL sketch", "the lesser `k`")
        for kind in KLL_TYPES
    ),
    *(signed(f"kll_sketch_get_n_{kind}", 1, 1, _sketches(BIGINT), "KLL sketch", _OF_KLL) for kind in KLL_TYPES),
    *(
        signed(
            *(
                f"kll_sketch_get_quantile_{kind}",
                2,
                2,
                _asked(DOUBLE, type_),
                "KLL sketch, number from 0 to 1 or array",
            ),
            "the first value up to which so large a share of all lies; NULL of no values",
        )
        for kind, type_ in KLL_TYPES.items()
    ),
    *(
        signed(
            *(f"kll_sketch_get_rank_{kind}", 2, 2, _asked(type_, DOUBLE), "KLL sketch, value or array of values"),
            "which share of all is not greater; NULL of no values",
        )
        for kind, type_ in KLL_TYPES.items()
    ),
    *(
        signed(f"kll_sketch_to_string_{kind}", 1, 1, _sketches(STRING, True), "KLL sketch", "for people to read", "d")
        for kind in KLL_TYPES
    ),
)
