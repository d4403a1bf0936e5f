"""Matching: an atom's condition on rows, the variables bound by the atom, and records taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everview.errors import DatalogError, TypeConflict
from everview.frontends.rules.faults import fault
from everview.frontends.rules.meeting import alike, family, written
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Constructor,
    Functor,
    Holds,
    Rule,
    RuleAtom,
    RuleVariable,
    Term,
    TermField,
    Wildcard,
)
from everview.frontends.rules.terms import RECORD, Values, compared, expression
from everview.frontends.rules.walk import RulePart, outside, walk
from everview.plan import nodes
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.typing import call, is_number
from everview.scalars.expressions import Expression, Literal
from everview.types import BIGINT, BOOLEAN, STRING, Field, Schema, Struct, Type

HIDDEN: Final = "."  # before the names of variables that nobody wrote
LONGEST: Final = 100_000  # numbers of a range, each of which is written down in the plan


def matched(
    atom: RuleAtom, relation: Plan, fresh: Callable[[], str], rule: Rule
) -> tuple[Expression | None, Values, list[BodyLiteral]]:
    """The condition of an atom on its relation, the variables that it binds, and equalities for its other terms."""
    own: list[Expression] = []
    values: dict[str, Expression] = {}
    rest: list[BodyLiteral] = []
    for place, term in enumerate(atom.terms):
        column: Expression = relation.column(place)
        match term:
            case Wildcard():
                pass
            case RuleVariable(name) if name in values:
                own.append(tied(name, values[name], column, rule))
            case RuleVariable(name):
                values[name] = column
            case Constant(value, of):
                what = f"column {relation.schema.names[place]} of {atom.relation}"
                own.append(compared("=", column, written(value, of), what, rule))
            case Functor() | AggregateTerm():
                hidden = fresh()
                values[hidden] = column
                rest.append(Constraint("=", RuleVariable(hidden), term))
    return conjunction(own), values, rest


def tied(name: str, known: Expression, column: Expression, rule: Rule, *, seeded: bool = False) -> Expression:
    """The condition that a variable has one value in two places; if one ``seeded`` the other, NULL equals NULL."""
    constant = isinstance(known, Literal) or isinstance(column, Literal)
    pair = alike(known, column) if constant or family(known.type) == family(column.type) else None
    if pair is None:
        hint = "a variable has one type; convert with to_number, to_float or to_string, and compare"
        raise fault(TypeConflict, f"variable {name} is {known.type} and {column.type}", rule, hint)
    return call("null_safe_equal" if seeded and known.nullable else "equal", *pair)


def tested(part: Holds, values: Values, rule: Rule) -> Expression:
    """The condition that a term holds: it is true, or a number other than 0."""
    value = expression(part.term, values, rule)
    if value.type == BOOLEAN:
        return value
    if is_number(value.type):
        return call("not_equal", value, Literal(0, value.type))
    raise fault(TypeConflict, f"{part} is {value.type}, and no condition", rule, "compare it with something")


# -- records


def is_record(term: RulePart) -> bool:
    """Is a part a record, a tuple or another constructor, which can be taken apart?"""
    return isinstance(term, Constructor) or (isinstance(term, Functor) and term.name == RECORD)


def is_pattern(literal_: BodyLiteral) -> bool:
    """Is a constraint one with a record in which some fields may be anything?"""
    return isinstance(literal_, Constraint) and any(isinstance(p, Wildcard) for p in walk((literal_,), outside))


def opened(target: Term, source: Term, values: Values, rule: Rule) -> list[BodyLiteral]:
    """Equalities of a record's terms with the fields of a value."""
    assert isinstance(target, Functor)
    type_ = expression(source, values, rule).type
    if isinstance(target, Constructor):
        return _parted(target, source, type_, rule)
    if not isinstance(type_, Struct) or len(type_.fields) != len(target.arguments):
        message = f"{target} has {len(target.arguments)} fields, and {source} is {type_}"
        raise fault(TypeConflict, message, rule, "write as many terms as the record has fields")
    fields = zip(target.arguments, type_.fields, strict=True)
    return [
        Constraint("=", argument, Functor("sql.get_field", (source, Constant(f.name))))
        for argument, f in fields
        if not isinstance(argument, Wildcard)
    ]


def _parted(target: Constructor, source: Term, type_: Type, rule: Rule) -> list[BodyLiteral]:
    """The condition that a branch made a value, and equalities of the branch's terms with the fields."""
    if target.kinds is None or type_ != STRING:
        raise fault(
            TypeConflict, f"{target} is a record, and {source} is {type_}", rule, "look at the type of its column"
        )
    made: list[BodyLiteral] = [Holds(TermField(target.name, (source,), len(target.arguments)))]
    for place, (argument, kind) in enumerate(zip(target.arguments, target.kinds, strict=True)):
        if not isinstance(argument, Wildcard):
            made.append(Constraint("=", argument, TermField(target.name, (source,), place, kind)))
    return made


def paired(left: Term, right: Term, rule: Rule) -> list[BodyLiteral]:
    """Equalities of the terms of two records, field by field."""
    assert isinstance(left, Functor) and isinstance(right, Functor)
    if left.name != right.name and isinstance(left, Constructor) and isinstance(right, Constructor):
        return [Holds(Constant(False))]
    if len(left.arguments) != len(right.arguments):
        message = f"{left} and {right} have different numbers of fields"
        raise fault(TypeConflict, message, rule, "write as many terms on both sides")
    pairs = zip(left.arguments, right.arguments, strict=True)
    return [Constraint("=", a, b) for a, b in pairs if not isinstance(a, Wildcard) and not isinstance(b, Wildcard)]


def in_range(functor: Functor, rule: Rule) -> nodes.Values:
    """The rows of ``range(from, to)`` or ``range(from, to, step)``, without the end."""
    given = [a.value for a in functor.arguments if isinstance(a, Constant) and isinstance(a.value, int)]
    if len(given) not in (2, 3) or len(given) != len(functor.arguments) or 0 in given[2:]:
        hint = "write range(0, 10) or range(0, 10, 2), with constants"
        raise fault(DatalogError, f"{functor} is no range of constants", rule, hint)
    if len(range(*given)) > LONGEST:
        hint = "keep so many numbers in a table, or derive them by a rule"
        raise fault(DatalogError, f"{functor} has more than {LONGEST:,} numbers", rule, hint)
    rows = tuple((Literal(n, BIGINT),) for n in range(*given))
    return nodes.Values(rows, Schema([Field("value", BIGINT, nullable=False)]))
