"""Aggregate calls over the rows of a group, of three kinds.

What is *added up* (counts, sums, averages) has a sum that takes rows in and out, exactly. An *end* (least, greatest) is
a value that rows coming in can only move outwards; when the very row goes that holds it, the group is read again. What
is *collected* (arrays, texts, different values) is computed from the rows of the group whenever they change.

>>> from everview.scalars.expressions import AggregateCall, Column
>>> from everview.types import BIGINT
>>> total = called(AggregateCall("sum", (Column(0, "x", BIGINT),), False, None, (), BIGINT, True))
>>> state = total.added(total.zero, [((5,), 1), ((7,), 2)])
>>> total.result(state), total.result(total.added(state, [((5,), -1)]))
(19, 14)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from everview.errors import DefinitionError
from everview.lowering.aggregates import direction
from everview.operators.aggregate.registry import IN_PLANS
from everview.operators.index import Direction
from everview.pull.demand import Row, Sort
from everview.pull.ordering import sort_key
from everview.pull.sums import Sum, Total, average, total
from everview.scalars.expressions import TRUE, AggregateCall, Expression, Literal
from everview.types import Field, Schema, Type

Entry = tuple[Row, int]  # the values that a call reads of a row, and its weight

KEEP = "attach the source with keep=True, so that a circuit maintains it"


@dataclass(frozen=True, slots=True)
class AddedUp:
    """A call with a sum that rows are added to and taken from."""

    zero: Any
    added: Callable[[Any, Sequence[Entry]], Any]
    result: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class End:
    """The least value or the greatest."""

    key: Callable[[Any], Any]
    greatest: bool

    def outer(self, a: Any, b: Any) -> Any:
        """The one of two that is further out; None is no value."""
        if a is None or b is None:
            return b if a is None else a
        return b if (self.key(b) > self.key(a)) == self.greatest and self.key(a) != self.key(b) else a

    def moved(self, value: Any, entries: Iterable[Entry]) -> tuple[Any, bool]:
        """The value after changes, and whether that is sure."""
        held = value
        for (found, *_), weight in entries:
            if found is None:
                continue
            if weight > 0:
                value = self.outer(value, found)
            elif held is not None and self.key(found) == self.key(held):
                return value, False
        return value, True

    def result(self, entries: Iterable[Entry]) -> Any:
        """Of all rows."""
        value = None
        for (found, *_), weight in entries:
            if weight > 0 and found is not None:
                value = self.outer(value, found)
        return value


@dataclass(frozen=True, slots=True)
class Collected:
    """A function of all rows of a group."""

    result: Callable[[Sequence[Entry]], Any]


Called = AddedUp | End | Collected


def reads(call: AggregateCall) -> tuple[Expression, ...]:
    """What a call reads of a row: whether it counts, its arguments, what it is ordered by."""
    return (*call.arguments, *(by for by, _ in call.order), TRUE if call.filter is None else call.filter)


def kept(call: AggregateCall, values: Row) -> bool:
    """Whether a row counts for a call, by the values that it reads."""
    return values[-1] is True


def called(call: AggregateCall) -> Called:
    """What a call does with the values of its arguments, and then of what it is ordered by."""
    name = _name(call)
    if name in _ADDED and not call.distinct:
        return _ADDED[name](call)
    if name in ("min", "max"):
        return End(_key_of(call.arguments[0].type), name == "max")
    if name in _COLLECTED:
        return Collected(_COLLECTED[name](call))
    raise DefinitionError(f"{call} cannot be maintained by pulling from a source", hint=KEEP)


def _name(call: AggregateCall) -> str:
    """Its name in the registry of aggregates; a user's is not there."""
    line = IN_PLANS.get(call.function.lower())
    return call.function if line is None else line.name


# -- added up


def _count(call: AggregateCall) -> Called:
    width = len(call.arguments)

    def added(state: int, entries: Sequence[Entry]) -> int:
        if not width:
            return state + sum(weight for _, weight in entries)
        return state + sum(weight for values, weight in entries if None not in values[:width])

    return AddedUp(0, added, lambda state: state)


def _count_if(call: AggregateCall) -> Called:
    def added(state: int, entries: Sequence[Entry]) -> int:
        return state + sum(weight for values, weight in entries if values[0] is True)

    return AddedUp(0, added, lambda state: state)


def _summed(finish: Callable[[Total, Type], Any]) -> Callable[[AggregateCall], Called]:
    def make(call: AggregateCall) -> Called:
        units, of = Sum.of(call.arguments[0].type), call.type

        def added(state: Total, entries: Sequence[Entry]) -> Total:
            return units.added(state, [(values[0], weight) for values, weight in entries if values[0] is not None])

        return AddedUp(units.zero, added, lambda state: finish(state, of))

    return make


_ADDED: Final[dict[str, Callable[[AggregateCall], Called]]] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _summed(total),
    "avg": _summed(average),
    "avg_double": _summed(average),
}


# -- collected


def _different(call: AggregateCall, entries: Iterable[Entry]) -> list[Row]:
    """The arguments without NULL, each once."""
    width, sums = len(call.arguments), dict[Row, int]()
    for values, weight in entries:
        given = values[:width]
        if None not in given:
            sums[given] = sums.get(given, 0) + weight
    return [given for given, weight in sums.items() if weight > 0]


def _of_different(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    """A call that is added up, of different values."""
    plain = _ADDED[_name(call)](call)
    assert isinstance(plain, AddedUp)

    def result(entries: Sequence[Entry]) -> Any:
        return plain.result(plain.added(plain.zero, [(given, 1) for given in _different(call, entries)]))

    return result


def _truth(every: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    def result(entries: Sequence[Entry]) -> bool | None:
        found = {values[0] for values, weight in entries if weight > 0 and values[0] is not None}
        return None if not found else (False not in found if every else True in found)

    return lambda call: result


def _array(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    return lambda entries: tuple(values[0] for values in ordered(call, _without_null(entries)))


def _set(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    key = _key_of(call.arguments[0].type)
    return lambda entries: tuple(sorted((v for (v, *_) in _different(call, entries)), key=key))


def _text(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    separator = call.arguments[1].value if len(call.arguments) > 1 and isinstance(call.arguments[1], Literal) else ""

    def result(entries: Sequence[Entry]) -> Any:
        found = [values[0] for values in ordered(call, _without_null(entries))]
        return (separator or "").join(found) if found else None

    return result


def _first(last: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    """The first or last in an order, NULL included unless it is passed over."""

    def make(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
        skips = len(call.arguments) > 1 and isinstance(call.arguments[1], Literal) and bool(call.arguments[1].value)

        def result(entries: Sequence[Entry]) -> Any:
            found = ordered(call, _without_null(entries) if skips else entries)
            return found[-1 if last else 0][0] if found else None

        return result

    return make


def _by(greatest: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    """The value in the row where another one is least or greatest; of several, as the values are ordered."""

    def make(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
        by, own = _key_of(call.arguments[1].type), _key_of(call.arguments[0].type)

        def result(entries: Sequence[Entry]) -> Any:
            there = [values for values, weight in entries if weight > 0 and values[1] is not None]
            choose = max if greatest else min
            return choose(there, key=lambda v: (by(v[1]), own(v[0])))[0] if there else None

        return result

    return make


def _without_null(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry[0][0] is not None]


def ordered(call: AggregateCall, entries: Sequence[Entry]) -> list[Row]:
    """Rows in the order of a call, ties in that of the values; different values once, if it says so."""
    width = len(call.arguments)
    types = [e.type for e in (*call.arguments, *(by for by, _ in call.order))]
    schema = Schema(Field(f"c{at}", of) for at, of in enumerate(types))
    sorts = [_sort(width + at, how) for at, (_, how) in enumerate(call.order)] + [Sort(0)]
    there = [(values, weight) for values, weight in entries if weight > 0]
    rows = sorted((values for values, weight in there for _ in range(weight)), key=sort_key(schema, sorts))
    if not call.distinct:
        return rows
    return list({values[0]: values for values in reversed(rows)}.values())[::-1]


def _sort(column: int, how: str) -> Sort:
    found = direction(how)
    descends = found in (Direction.DESC, Direction.DESC_NULLS_FIRST)
    return Sort(column, descends, found in (Direction.ASC, Direction.DESC_NULLS_FIRST))


def _key_of(of: Type) -> Callable[[Any], Any]:
    key = sort_key(Schema((Field("value", of),)), (Sort(0),))
    return lambda value: key((value,))


_COLLECTED: Final[dict[str, Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]]] = {
    **dict.fromkeys(("count", "sum", "avg", "avg_double"), _of_different),
    "bool_and": _truth(every=True),
    "bool_or": _truth(every=False),
    "collect_list": _array,
    "collect_set": _set,
    "listagg": _text,
    "first": _first(last=False),
    "last": _first(last=True),
    "max_by": _by(greatest=True),
    "min_by": _by(greatest=False),
}
