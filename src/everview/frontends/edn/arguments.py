"""The arguments of a query: the values of :in, as constants, as rows and as rules.

An argument belongs to each of :in in order, but for ``$``, which is the database itself. Of a source ``$r`` it is a
collection of rows, or the name of a table or view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from everview.errors import EdnError
from everview.frontends.edn.clauses import parse_rules
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import (
    AnyForm,
    ListForm,
    MapForm,
    ScalarForm,
    SetForm,
    SymbolForm,
    VectorForm,
    form_of,
    python,
)
from everview.frontends.edn.infer import type_of_value
from everview.frontends.edn.query import (
    CollectionBinding,
    EdnQuery,
    Input,
    RelationBinding,
    RuleClause,
    RulesInput,
    ScalarBinding,
    SourceInput,
    TupleBinding,
)
from everview.frontends.edn.reader import read
from everview.frontends.rules.program import Constant, RuleAtom, RuleVariable, TextPlace, Wildcard
from everview.plan.nodes import Values
from everview.plan.typing import literal
from everview.scalars.expressions import Literal
from everview.types import ANY, BIGINT, DOUBLE, Decimal, Field, Schema, Type

Value = Any


@dataclass(frozen=True)
class WrittenRows:
    """Rows given as values, and the types of their columns; None for a column without values."""

    rows: tuple[tuple[Value, ...], ...]
    types: tuple[Type | None, ...]

    def plan(self, types: Sequence[Type | None]) -> Values:
        """A plan of the rows, each once; ``types`` are those of columns without values."""
        chosen = [own or other or ANY for own, other in zip(self.types, types, strict=True)]
        schema = Schema(Field(f"c{place}", type_, nullable=False) for place, type_ in enumerate(chosen))
        rows = tuple(
            dict.fromkeys(tuple(_as(v, type_) for v, type_ in zip(row, chosen, strict=True)) for row in self.rows)
        )
        return Values(rows, schema)


@dataclass(frozen=True)
class OtherFacts:
    """Facts of another database, by attribute: those that the query asks for; None of the database itself."""

    facts: Mapping[str, WrittenRows] | None


@dataclass(frozen=True)
class Given:
    """The arguments of a query: constants, atoms that read given rows, sources and rules."""

    terms: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    written: Mapping[str, WrittenRows] = field(default_factory=dict[str, WrittenRows])
    atoms: tuple[RuleAtom, ...] = ()
    sources: Mapping[str, EdnSource] = field(default_factory=dict[str, "EdnSource"])
    rules: tuple[RuleClause, ...] = ()


EdnSource = str | WrittenRows | OtherFacts  # a relation by its name, rows, or a database


def given(query: EdnQuery, arguments: Sequence[AnyForm]) -> Given:
    """The arguments bound as :in says."""
    wanted = [one for one in query.inputs if not (isinstance(one, SourceInput) and one.name == "$")]
    if len(wanted) != len(arguments):
        raise refuse(
            query.place,
            f"the query takes {len(wanted)} arguments besides the database, and was given {len(arguments)}",
            "args=[…] has a value for each of :in but $" if wanted else "name them with :in",
        )
    found = _Given()
    for one, argument in zip_longest(wanted, arguments):
        found.take(one, argument)
    return Given(found.terms, found.written, tuple(found.atoms), found.sources, tuple(found.rules))


class _Given:
    def __init__(self) -> None:
        self.terms: dict[str, Constant] = {}
        self.written: dict[str, WrittenRows] = {}
        self.atoms: list[RuleAtom] = []
        self.sources: dict[str, EdnSource] = {}
        self.rules: list[RuleClause] = []

    def take(self, one: Input, argument: AnyForm) -> None:
        match one:
            case ScalarBinding(term):
                self._bind(term, value_of(argument, one.place))
            case TupleBinding(terms):
                values = _sequence(argument, one.place)
                for term, value in zip(terms, _fitting(values, terms, one.place), strict=True):
                    self._bind(term, value)
            case CollectionBinding() | RelationBinding():
                name = f"$in{len(self.written)}"
                rows, terms = rows_of(one, argument)
                self.written[name] = rows
                self.atoms.append(RuleAtom(name, terms, place=one.place))
            case SourceInput(name):
                self.sources[name] = _source(argument, one.place)
            case RulesInput():
                text = argument.value if isinstance(argument, ScalarForm) else None
                self.rules += parse_rules(read(text) if isinstance(text, str) else argument)

    def _bind(self, term: RuleVariable | Wildcard, value: Value) -> None:
        if isinstance(term, RuleVariable):
            self.terms[term.name] = Constant(value)


def rows_of(
    binding: CollectionBinding | RelationBinding, form: AnyForm
) -> tuple[WrittenRows, tuple[RuleVariable | Wildcard, ...]]:
    """A collection or a relation of values, as rows, and the terms that they are bound to."""
    items = _sequence(form, binding.place)
    match binding:
        case CollectionBinding(term):
            rows, terms = [(value_of(item, binding.place),) for item in items], (term,)
        case RelationBinding(terms):
            rows = [_fitting(_sequence(item, binding.place), terms, binding.place) for item in items]
    kept = [place for place, term in enumerate(terms) if isinstance(term, RuleVariable)]
    if not kept:
        raise refuse(binding.place, "a collection that binds no variable", "name one")
    picked = [tuple(row[place] for place in kept) for row in rows]
    return written(picked, len(kept), binding.place), tuple(terms[place] for place in kept)


def written(rows: Iterable[tuple[Value, ...]], width: int, place: TextPlace) -> WrittenRows:
    """Rows of so many values, all of a column of one type."""
    rows = tuple(rows)
    return WrittenRows(rows, tuple(_column_type([row[column] for row in rows], place) for column in range(width)))


def value_of(form: AnyForm, place: TextPlace) -> Value:
    """A single value."""
    value = python(form)
    if isinstance(value, tuple | dict):
        raise refuse(place, f"{form!r} is no single value", "bind its parts: [?x ...], [?x ?y] or [[?x ?y]]")
    if value is None:
        raise refuse(place, "nil is no value that a variable can have", "leave it out")
    return value


def _sequence(form: AnyForm, place: TextPlace) -> tuple[AnyForm, ...]:
    match form:
        case VectorForm(items) | ListForm(items) | SetForm(items):
            return items
        case MapForm(entries):
            return tuple(VectorForm(entry) for entry in entries)
        case _:
            raise refuse(place, f"{form!r} is no collection", "give a list")


def _fitting(
    values: tuple[AnyForm, ...], terms: tuple[RuleVariable | Wildcard, ...], place: TextPlace
) -> tuple[Value, ...]:
    if len(values) != len(terms):
        raise refuse(place, f"{len(terms)} variables for {len(values)} values", "give a row as many values")
    return tuple(None if isinstance(t, Wildcard) else value_of(v, place) for v, t in zip(values, terms, strict=True))


def _source(form: AnyForm, place: TextPlace) -> EdnSource:
    if isinstance(form, ScalarForm) and isinstance(form.value, str | OtherFacts):
        return form.value
    if form == SymbolForm("$"):
        return OtherFacts(None)
    rows = [tuple(value_of(value, place) for value in _sequence(row, place)) for row in _sequence(form, place)]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise refuse(place, f"the rows of a source have {min(widths)} to {max(widths)} values", "give all as many")
    if widths == {0}:
        raise refuse(place, "the rows of a source have no values", "give a row a value for each column")
    return written(rows, widths.pop() if widths else 0, place)


def _column_type(values: Sequence[Value], place: TextPlace) -> Type | None:
    types = dict.fromkeys(map(type_of_value, values))
    if len(types) > 1 and set(types) <= {BIGINT, DOUBLE}:
        return DOUBLE
    if len(types) > 1:
        shown = " and ".join(map(str, types))
        raise refuse(place, f"the values that are given are {shown}", "give values of one type")
    type_ = next(iter(types), None)
    return _digits(values) if isinstance(type_, Decimal) else type_


def _digits(values: Sequence[Value]) -> Decimal:
    """A DECIMAL with as many digits after the point as any value has."""
    return Decimal(38, max(0, *(-int(v.as_tuple().exponent) for v in values)))


def _as(value: Value, type_: Type) -> Literal:
    return literal(float(value) if type_ == DOUBLE else value, type_)


def as_arguments(values: Iterable[Any]) -> tuple[AnyForm, ...]:
    """Python values as the arguments of a query."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise EdnError(f"args is {values!r}", hint="args is a list with a value for each of :in but $")
    return tuple(map(form_of, values))
