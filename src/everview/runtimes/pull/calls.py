"""Aggregate calls over the rows of a group, of three kinds.

*Added up* (counts, sums, averages): the state is an exact sum, to which rows are added and from which they are taken.
*Ends* (least, greatest): the state is a value that new rows can only move outwards; when a row with this value goes,
the group is read again. *Collected* (arrays, texts, different values): the result is computed from all rows of the
group whenever they change.

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
from everview.operators.aggregate.registry import IN_PLANS
from everview.runtimes.pull.demand import Row, Sort
from everview.runtimes.pull.ordering import sort_key
from everview.runtimes.pull.sums import Sum, Total, average, total
from everview.scalars.expressions import TRUE, AggregateCall, Expression, Literal
from everview.types import Field, Schema, Type

Entry = tuple[Row, int]  # the values that a call reads of a row, and its weight

KEEP = "attach the source with keep=True, so that a circuit maintains it"


@dataclass(frozen=True, slots=True)
class AddedUp:
    """A call whose state is a sum: rows are added to it and taken from it."""

    zero: Any
    added: Callable[[Any, Sequence[Entry]], Any]
    result: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class End:
    """A call for the least or the greatest value."""

    key: Callable[[Any], Any]
    greatest: bool

    def outer(self, a: Any, b: Any) -> Any:
        """The outer one of two values; None is no value."""
        if a is None or b is None:
            return b if a is None else a
        return b if (self.key(b) > self.key(a)) == self.greatest and self.key(a) != self.key(b) else a

    def moved(self, value: Any, entries: Iterable[Entry]) -> tuple[Any, bool]:
        """The value after changes, and whether it is certain: not if the value itself may have gone."""
        held = value
        for (argument, *_), weight in entries:
            if argument is None:
                continue
            if weight > 0:
                value = self.outer(value, argument)
            elif held is not None and self.key(argument) == self.key(held):
                return value, False
        return value, True

    def result(self, entries: Iterable[Entry]) -> Any:
        """The outermost value of all rows."""
        value = None
        for (argument, *_), weight in entries:
            if weight > 0 and argument is not None:
                value = self.outer(value, argument)
        return value


@dataclass(frozen=True, slots=True)
class Collected:
    """A call that is computed from all rows of its group."""

    result: Callable[[Sequence[Entry]], Any]


Called = AddedUp | End | Collected


def reads(call: AggregateCall) -> tuple[Expression, ...]:
    """The expressions that a call reads of a row: its arguments, its order, and last its filter."""
    return (*call.arguments, *(by for by, _ in call.order), TRUE if call.filter is None else call.filter)


def kept(call: AggregateCall, values: Row) -> bool:
    """Whether a row passes the call's filter, whose value is the last of those read."""
    return values[-1] is True


def called(call: AggregateCall) -> Called:
    """The kind of a call, with the functions that compute it."""
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
        units, type_ = Sum.of(call.arguments[0].type), call.type

        def added(state: Total, entries: Sequence[Entry]) -> Total:
            return units.added(state, [(values[0], weight) for values, weight in entries if values[0] is not None])

        return AddedUp(units.zero, added, lambda state: finish(state, type_))

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
    """The different argument values, without those that have a NULL."""
    width, sums = len(call.arguments), dict[Row, int]()
    for values, weight in entries:
        given = values[:width]
        if None not in given:
            sums[given] = sums.get(given, 0) + weight
    return [given for given, weight in sums.items() if weight > 0]


def _of_different(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    """The result of a DISTINCT call: what is added up are the different values."""
    plain = _ADDED[_name(call)](call)
    assert isinstance(plain, AddedUp)

    def result(entries: Sequence[Entry]) -> Any:
        return plain.result(plain.added(plain.zero, [(given, 1) for given in _different(call, entries)]))

    return result


def _truth(every: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    def result(entries: Sequence[Entry]) -> bool | None:
        truths = {values[0] for values, weight in entries if weight > 0 and values[0] is not None}
        return None if not truths else (False not in truths if every else True in truths)

    return lambda call: result


def _array(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    return lambda entries: tuple(values[0] for values in ordered(call, _without_null(entries)))


def _set(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    key = _key_of(call.arguments[0].type)
    return lambda entries: tuple(sorted((v for (v, *_) in _different(call, entries)), key=key))


def _text(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
    separator = call.arguments[1].value if len(call.arguments) > 1 and isinstance(call.arguments[1], Literal) else ""

    def result(entries: Sequence[Entry]) -> Any:
        texts = [values[0] for values in ordered(call, _without_null(entries))]
        return (separator or "").join(texts) if texts else None

    return result


def _first(last: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    """The first or last value in the call's order; NULL counts unless the call ignores NULLs."""

    def make(call: AggregateCall) -> Callable[[Sequence[Entry]], Any]:
        skips = len(call.arguments) > 1 and isinstance(call.arguments[1], Literal) and bool(call.arguments[1].value)

        def result(entries: Sequence[Entry]) -> Any:
            rows = ordered(call, _without_null(entries) if skips else entries)
            return rows[-1 if last else 0][0] if rows else None

        return result

    return make


def _by(greatest: bool) -> Callable[[AggregateCall], Callable[[Sequence[Entry]], Any]]:
    """The first argument's value where the second is least or greatest; ties are broken by the values."""

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
    """Rows in the order of a call, ties by the first argument; with DISTINCT each value once."""
    width = len(call.arguments)
    types = [e.type for e in (*call.arguments, *(by for by, _ in call.order))]
    schema = Schema(Field(f"c{place}", type_) for place, type_ in enumerate(types))
    sorts = [Sort.of(width + place, how) for place, (_, how) in enumerate(call.order)] + [Sort(0)]
    there = [(values, weight) for values, weight in entries if weight > 0]
    rows = sorted((values for values, weight in there for _ in range(weight)), key=sort_key(schema, sorts))
    if not call.distinct:
        return rows
    return list({values[0]: values for values in reversed(rows)}.values())[::-1]


def _key_of(type_: Type) -> Callable[[Any], Any]:
    key = sort_key(Schema((Field("value", type_),)), (Sort(0),))
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
