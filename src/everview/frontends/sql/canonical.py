"""Expressions that are the same but for the order in which they are written: ``a + 1`` and ``1 + a``.

GROUP BY may write a key in one way and SELECT in another. As in Spark, two expressions are one when their canonical
forms are equal: operands that may change places are sorted, ``a > b`` is ``b < a``, and NOT is drawn into a
comparison. The canonical form is only compared, never evaluated, so reordering cannot change a rounding or an overflow.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.scalars.expressions import Call, Expression, rewritten
from everview.types import BOOLEAN

NESTED = frozenset(("add", "multiply", "and", "or", "bit_and", "bit_or", "bit_xor", "greatest", "least"))
SYMMETRIC = frozenset(("equal", "not_equal", "null_safe_equal"))
MIRRORED = {"greater": "less", "greater_equal": "less_equal"}
OPPOSITE = {"equal": "not_equal", "not_equal": "equal", "less": "greater_equal", "less_equal": "greater"}


def canonical(expression: Expression) -> Expression:
    """The form in which an expression is compared with others."""
    return rewritten(expression, _form)


def _form(e: Expression) -> Expression:
    if not isinstance(e, Call):
        return e
    function, arguments = e.function, e.arguments
    if function == "not" and isinstance(inner := arguments[0], Call) and inner.function in OPPOSITE:
        return _form(Call(OPPOSITE[inner.function], inner.arguments, BOOLEAN, e.nullable))
    if function in MIRRORED:
        return Call(MIRRORED[function], arguments[::-1], e.type, e.nullable)
    if function in NESTED:
        return Call(function, _sorted(_flat(e)), e.type, e.nullable)
    if function in SYMMETRIC:
        return Call(function, _sorted(arguments), e.type, e.nullable)
    if function == "in":
        return Call(function, (arguments[0], *_sorted(arguments[1:])), e.type, e.nullable)
    return e


def _sorted(arguments: Iterator[Expression] | tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(sorted(arguments, key=repr))


def _flat(e: Call) -> Iterator[Expression]:
    """The operands of nested calls of one function and type, which are in canonical form already."""
    for argument in e.arguments:
        if isinstance(argument, Call) and argument.function == e.function and argument.type == e.type:
            yield from argument.arguments
        else:
            yield argument
