"""Terms and constraints as expressions over the rows that bind their variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everview.errors import DatalogError, EverviewError, TypeConflict, UnboundVariable
from everview.frontends.rules.faults import fault, misplaced
from everview.frontends.rules.functors import functor
from everview.frontends.rules.meeting import alike, written
from everview.frontends.rules.program import (
    AggregateTerm,
    Comparison,
    Constant,
    Constraint,
    Constructor,
    Functor,
    Rule,
    RuleVariable,
    Term,
    TermField,
    Wildcard,
)
from everview.frontends.rules.term_texts import built, field_of, is_made_by
from everview.plan.typing import call
from everview.scalars.expressions import Expression

Values = Mapping[str, Expression]  # what variables are bound to

RECORD: Final = "record"  # the functor of tuples and records
COMPARISONS: Final[dict[Comparison, str]] = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def expression(term: Term, values: Values, rule: Rule) -> Expression:
    """The expression of a term; raises `UnboundVariable` for a variable without a value."""
    match term:
        case RuleVariable(name):
            if name not in values:
                raise unbound(name, rule)
            return values[name]
        case Constant(value, of):
            return written(value, of)
        case TermField(branch, (source,), place, kind):
            value = expression(source, values, rule)
            return is_made_by(value, branch, place) if kind is None else field_of(value, branch, place, kind)
        case Constructor(_, arguments):
            if term.kinds is None:
                hint = "declare the relation with its type: .type L = [head: number, tail: L]"
                raise fault(DatalogError, f"{term} is of which type?", rule, hint)
            return built(term, [expression(a, values, rule) for a in arguments], rule)
        case Functor(name, arguments):
            given = tuple(expression(a, values, rule) for a in arguments)
            try:
                return functor(name, given)
            except EverviewError as error:
                raise misplaced(error, rule) from None
        case Wildcard():
            raise fault(DatalogError, "_ stands for a value that nothing binds", rule, "give it a name and bind it")
        case AggregateTerm():
            hint = "write x = " + str(term) + " in the body, and x here"
            raise fault(DatalogError, f"the aggregate {term.function} cannot stand here", rule, hint)


def comparison(literal_: Constraint, values: Values, rule: Rule) -> Expression:
    """The condition of a constraint over bound variables."""
    a, b = expression(literal_.left, values, rule), expression(literal_.right, values, rule)
    return compared(literal_.operator, a, b, str(literal_), rule)


def compared(operator: Comparison, a: Expression, b: Expression, what: str, rule: Rule) -> Expression:
    """Compare two expressions; raises `TypeConflict` if their types do not meet."""
    pair = alike(a, b)
    if pair is None:
        hint = "compare values of one type; to_number, to_float and to_string convert"
        raise fault(TypeConflict, f"{what}: {a.type} and {b.type} cannot be compared", rule, hint)
    return call(COMPARISONS[operator], *pair)


def unbound(name: str, rule: Rule, where: str = "") -> UnboundVariable:
    """The error for a variable that nothing binds."""
    return fault(
        UnboundVariable,
        f"variable {name} is not bound{where}",
        rule,
        f"use {name} in a positive atom of the body, or set it equal to something that is bound",
    )
