"""Values that are kept as text, as expressions: made by constructors, taken apart again, and checked where given.

The text is what Soufflé prints: ``[1, [2, nil]]``, ``$Add($Num(1), $Zero)``. Symbols inside stand in quotes, so that
different values have different texts; two values are the same exactly when their texts are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from everview.errors import TypeConflict
from everview.frontends.rules.faults import fault
from everview.frontends.rules.meeting import as_type
from everview.frontends.rules.program import (
    NIL,
    RECORDS,
    Constructor,
    Rule,
    StructKind,
    TermKind,
    TermName,
    TermType,
)
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression
from everview.types import BOOLEAN, DATE, DOUBLE, STRING, Type

# The text of a value that is not looked at: of a field of another branch.
_ANYTHING: Final[dict[Type, str]] = {STRING: "", DOUBLE: "0.0", BOOLEAN: "false", DATE: "1970-01-01"}


def opening(branch: str) -> str:
    """The text before the arguments of a branch."""
    return "[" if branch == RECORDS else f"{branch}("


def built(term: Constructor, given: Sequence[Expression], rule: Rule) -> Expression:
    """The text of a constructor of bound arguments."""
    assert term.kinds is not None, "kinds of constructors are found before expressions are made"
    if not given:
        return literal(term.name)
    parts: list[Expression] = [literal(opening(term.name))]
    for place, (value, kind) in enumerate(zip(given, term.kinds, strict=True)):
        parts += [literal(", ")] if place else []
        parts.append(_text(value, kind, rule))
    return call("concat", *parts, literal("]" if term.name == RECORDS else ")"))


def _text(value: Expression, kind: TermKind, rule: Rule) -> Expression:
    match kind:
        case TermName():
            return value
        case StructKind(fields):
            inner = [
                _text(part, inner_kind, rule)
                for part, (_, inner_kind) in zip(_fields(value, kind, rule), fields, strict=True)
            ]
            between = [part for text in inner for part in (literal(", "), text)]
            return call("concat", literal("["), *between[1:], literal("]"))
        case _:
            made = as_type(value, kind)
            if made is None:
                message = f"a field of type {kind} is given {value.type}"
                raise fault(TypeConflict, message, rule, "to_number, to_float and to_string convert")
            if kind == DOUBLE:  # -0.0 is 0.0
                made = call("add", made, literal(0.0))
            return call("term_quoted", made) if kind == STRING else cast(made, STRING)


def _fields(value: Expression, kind: StructKind, rule: Rule) -> list[Expression]:
    known = getattr(value.type, "fields", ())
    if len(known) != len(kind.fields):
        message = f"a record of {len(kind.fields)} fields is given {value.type}"
        raise fault(TypeConflict, message, rule, "write as many terms as the record has fields")
    return [call("get_field", value, literal(f.name)) for f in known]


# -- taken apart


def is_made_by(value: Expression, branch: str, fields: int) -> Expression:
    """The condition that a value was made by a branch with so many fields."""
    if branch == RECORDS:
        return call("not_equal", value, literal(NIL))
    return call("startswith", value, literal(opening(branch))) if fields else call("equal", value, literal(branch))


def field_of(value: Expression, branch: str, place: int, kind: TermKind) -> Expression:
    """A field of a value, if the branch has made it; else anything."""
    match kind:
        case TermName():
            return _part(value, branch, place, NIL)
        case StructKind(fields):
            whole = _part(value, branch, place, "")
            named = (
                (literal(n), field_of(whole, RECORDS, number, inner_kind))
                for number, (n, inner_kind) in enumerate(fields)
            )
            return call("named_struct", *(part for pair in named for part in pair))
        case _:
            text = _part(value, branch, place, _ANYTHING.get(kind, "0"))
            return text if kind == STRING else cast(text, kind)


def _part(value: Expression, branch: str, place: int, otherwise: str) -> Expression:
    return call("term_part", value, literal(branch), literal(place), literal(otherwise))


# -- given


def checked(column: Expression, kind: TermKind, types: Iterable[TermType]) -> Expression:
    """A column that is given, as values of its kind are written; evaluation fails for what is none."""
    match kind:
        case TermName(name):
            said = {"root": name, "types": {t.name: {b: list(map(_said, k)) for b, k in t.branches} for t in types}}
            return call("term_checked", column, literal(json.dumps(said)))
        case StructKind(fields):
            inner = [call("get_field", column, literal(name)) for name, _ in fields]
            parts = [
                (literal(n), checked(e, inner_kind, types)) for e, (n, inner_kind) in zip(inner, fields, strict=True)
            ]
            return call("named_struct", *(part for pair in parts for part in pair))
        case _:
            return column


def _said(kind: TermKind) -> Any:
    """A kind as JSON: a type by its SQL name, a term by @ and its name, a record as a list."""
    match kind:
        case TermName(name):
            return f"@{name}"
        case StructKind(fields):
            return [_said(inner) for _, inner in fields]
        case _:
            return kind.sql
