"""A case: sources, the steps of a query over them, and ticks of changes; all plain data that fits in JSON.

A step is a list: what to do, then the numbers of the streams it is done to (the sources come first, in order, then
every step's result) and whatever else it takes. What is not read by a later step is a view.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.circuit import Circuit, Stream
from everview.multiway import Atom, Is, join
from everview.operators.functions import Function
from everview.operators.where import Test, Where
from everview.types import Decimal, Schema, Symbol
from everview.zset import ZSet

Row = tuple[Any, ...]
Tick = dict[str, list[tuple[Row, int]]]
Step = Sequence[Any]


@dataclass
class Case:
    """A query and its life."""

    sources: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)

    def build(self) -> Circuit:
        """The query circuit, with a sink for every stream that no step reads."""
        circuit = Circuit()
        streams = [circuit.source(name, schema) for name, schema in self.sources.items()]
        read: set[int] = set()
        for step in self.steps:
            streams.append(apply(streams, step))
            read |= inputs(step)
        for number, stream in enumerate(streams):
            if number not in read:
                stream.sink(f"view {number}")
        return circuit

    def sums(self) -> list[dict[str, ZSet]]:
        """What the sources hold after every tick."""
        held = {name: ZSet() for name in self.sources}
        found: list[dict[str, ZSet]] = []
        for tick in self.ticks:
            held = {name: rows + ZSet.of(tick.get(name, [])) for name, rows in held.items()}
            found.append(held)
        return found

    # -- as text

    def to_json(self) -> str:
        """Dates and decimals as text, bytes in hexadecimal, symbols by their names."""
        ticks = [{name: _written(rows) for name, rows in tick.items()} for tick in self.ticks]
        return json.dumps({"sources": self.sources, "steps": self.steps, "ticks": ticks}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The case that was written, by `to_json` or by a person."""
        read = json.loads(text)
        schemas = {name: Schema.parse(schema) for name, schema in read["sources"].items()}
        ticks = [
            {name: [(_row(schemas[name], row), weight) for row, weight in rows] for name, rows in tick.items()}
            for tick in read["ticks"]
        ]
        return cls(read["sources"], read["steps"], ticks)


def _written(rows: list[tuple[Row, int]]) -> list[Any]:
    return [[[_text(value) for value in row], w] for row, w in rows]


def _text(value: Any) -> Any:
    match value:
        case bool() | int() | float() | str() | list() | None:
            return value
        case bytes():
            return value.hex()
        case Symbol():
            return value.name
        case _:
            return str(value)


def _row(schema: Schema, row: Sequence[Any]) -> Row:
    return tuple(_value(f.type, value) for f, value in zip(schema.fields, row, strict=True))


def _value(of: Any, text: Any) -> Any:
    if text is None:
        return None
    if isinstance(of, Decimal):
        return decimal.Decimal(text)
    return READERS.get(of.sql, lambda value: value)(text)


READERS: dict[str, Callable[[Any], Any]] = {
    "DATE": dt.date.fromisoformat,
    "TIMESTAMP": dt.datetime.fromisoformat,
    "DOUBLE": float,
    "FLOAT": float,
    "BINARY": bytes.fromhex,
    "SYMBOL": Symbol,
}


# -- user functions: made from the positions of the columns that they look at


def _odd(at: int) -> Callable[..., Any]:
    return lambda *columns: pc.equal(pc.bit_wise_and(columns[at].cast(pa.int64()), 1), 1)


def _less(at: int, other: int) -> Callable[..., Any]:
    return lambda *columns: pc.less(columns[at], columns[other])


def _known(at: int) -> Callable[..., Any]:
    return lambda *columns: pc.is_valid(columns[at])


def _true(at: int) -> Callable[..., Any]:
    return lambda *columns: columns[at]


def _short(at: int) -> Callable[..., Any]:
    return lambda *row: None if row[at] is None else len(row[at]) < 2


# name: how it is called, and what makes it
PREDICATES: dict[str, tuple[str, Callable[..., Callable[..., Any]]]] = {
    "odd": ("columns", _odd),
    "less": ("columns", _less),
    "known": ("columns", _known),
    "true": ("columns", _true),
    "short": ("rows", _short),
}


def _halved(at: int) -> Callable[..., Any]:
    return lambda *columns: pc.shift_right(columns[at].cast(pa.int64()), 1)


def _scaled(at: int) -> Callable[..., Any]:
    return lambda *columns: pc.multiply(columns[at], 0.5)


def _upper(at: int) -> Callable[..., Any]:
    return lambda *columns: pc.utf8_upper(columns[at])


def _size_and_head(at: int) -> Callable[..., Any]:
    return lambda *row: (None, None) if row[at] is None else (len(row[at]), row[at][:1])


def _one(*columns: Any) -> Any:
    return pa.scalar(1, pa.int64())


# name: how it is called, what makes it, and the columns that it gives
MAPPINGS: dict[str, tuple[str, Callable[..., Callable[..., Any]], str]] = {
    "halved": ("columns", _halved, "half BIGINT"),
    "scaled": ("columns", _scaled, "scaled DOUBLE"),
    "upper": ("columns", _upper, "upper STRING"),
    "size and head": ("rows", _size_and_head, "size BIGINT, head STRING"),
    "one": ("columns", lambda: _one, "one BIGINT NOT NULL"),
}


def _letters(at: int) -> Callable[..., Any]:
    return lambda *row: [] if row[at] is None else [(i, letter) for i, letter in enumerate(row[at])]


def _below(at: int) -> Callable[..., Any]:
    return lambda *row: [] if row[at] is None else [(None if i == 1 else i,) for i in range(min(4, abs(row[at])))]


EXPANSIONS: dict[str, tuple[Callable[..., Callable[..., Any]], str]] = {
    "letters": (_letters, "place BIGINT NOT NULL, letter STRING NOT NULL"),
    "below": (_below, "below BIGINT"),
}


@cache
def _made(name: str, made: Callable[..., Any], at: tuple[int, ...], shape: Any) -> Function:
    """A function whose name says all about it; made once, so that the same step gives the same node."""
    return Function(f"{name} {' '.join(map(str, at))}", made(*at), shape)


# -- steps


def _filter(stream: Stream, name: str, at: Sequence[int]) -> Stream:
    shape, made = PREDICATES[name]
    return stream.filter(_made(name, made, tuple(at), shape))


def _map(stream: Stream, name: str, at: Sequence[int]) -> Stream:
    shape, made, schema = MAPPINGS[name]
    return stream.map(_made(name, made, tuple(at), shape), schema)


def _extend(stream: Stream, name: str, at: Sequence[int]) -> Stream:
    shape, made, schema = MAPPINGS[name]
    return numbered(stream.extend(_made(name, made, tuple(at), shape), schema))


def _flat_map(stream: Stream, name: str, at: Sequence[int]) -> Stream:
    made, schema = EXPANSIONS[name]
    return numbered(stream.flat_map(_made(name, made, tuple(at), "flat"), schema))


def numbered(stream: Stream) -> Stream:
    """The same columns as c0, c1, …"""
    return stream.select(**{f"c{i}": name for i, name in enumerate(stream.schema.names)})


def _join(how: str) -> Callable[..., Stream]:
    """``picks`` says which columns of which side make the result, named c0, c1, …"""

    def join(left: Stream, right: Stream, on: Sequence[Sequence[str]], picks: Sequence[Sequence[Any]]) -> Stream:
        select = [(side, name, f"c{i}") for i, (side, name) in enumerate(picks)]
        return getattr(left, how)(right, [tuple(pair) for pair in on], select=select)

    return join


def _asof(
    left: Stream,
    right: Stream,
    on: Sequence[Sequence[str]],
    at: Sequence[str],
    options: Mapping[str, Any],
    picks: Sequence[Sequence[Any]],
) -> Stream:
    select = [(side, name, f"c{i}") for i, (side, name) in enumerate(picks)]
    return left.asof_join(right, [tuple(pair) for pair in on], at=(at[0], at[1]), select=select, **options)


def _multijoin(*arguments: Any) -> Stream:
    """Streams, then the terms of each (variables, None, or a constant in a list), those to select, and an order."""
    *streams, terms, select, order = arguments
    atoms = [
        Atom(stream, [Is(term[0]) if isinstance(term, list) else term for term in of])
        for stream, of in zip(streams, terms, strict=True)
    ]
    return numbered(join(atoms, select=select, order=order))


def _where(stream: Stream, tests: Sequence[Sequence[Any]]) -> Stream:
    """``tests``: field, how, constants, and another field or None."""
    made = tuple(Test(field, how, tuple(constants), other) for field, how, constants, other in tests)
    return stream.circuit.add(Where(stream.layout, made), [stream])


def _told(*lists: list[Any]) -> str:
    return "; ".join("|".join(map(str, values)) for values in lists)


def _lengths(*lists: Any) -> Any:
    return pc.list_value_length(lists[0])


def _nulls(*lists: Any) -> Any:
    """How many NULLs are in each list of the last column."""
    return pa.array([sum(value is None for value in values) for values in lists[-1].to_pylist()], pa.int64())


# what a call may have for a name: the function of a group's lists that it stands for
OF_GROUPS: dict[str, Function] = {
    "told": Function("told", _told, "rows"),
    "lengths": Function("lengths", _lengths),
    "nulls": Function("nulls", _nulls),
}


def _aggregate(stream: Stream, by: Sequence[str], calls: Sequence[Sequence[Any]]) -> Stream:
    """A call of one name alone counts rows; others are as a user writes them."""
    named = {f"a{i}": _call(*call) for i, call in enumerate(calls)}
    return numbered(stream.aggregate(by, **named))  # type: ignore[arg-type]


def _call(name: str, *rest: Any) -> Any:
    return (OF_GROUPS.get(name, name), *rest) if rest else name


def _top(stream: Stream, limit: int, skip: int, order: Sequence[Sequence[str]], by: Sequence[str]) -> Stream:
    return stream.top(limit, [(name, how) for name, how in order], by=by, skip=skip)


def _select(stream: Stream, names: Sequence[str]) -> Stream:
    return stream.select(**{f"c{i}": name for i, name in enumerate(names)})


# what to do: how many streams it is done to (None: all its numbers are streams), and how
STEPS: Mapping[str, tuple[int | None, Callable[..., Stream]]] = {
    "filter": (1, _filter),
    "map": (1, lambda *a: numbered(_map(*a))),
    "extend": (1, _extend),
    "flat_map": (1, _flat_map),
    "select": (1, _select),
    "not_null": (1, lambda stream, name: stream.not_null(name)),
    "recode": (1, lambda stream, schema: stream.recode(schema)),
    "inspect": (1, lambda stream: stream.inspect(_ignore)),
    "negate": (1, lambda stream: -stream),
    "distinct": (1, lambda stream: stream.distinct()),
    "aggregate": (1, _aggregate),
    "top": (1, _top),
    "plus": (None, lambda first, *others: first.plus(*others)),
    "minus": (2, lambda left, right: left - right),
    "semijoin": (2, lambda left, right, on: left.semijoin(right, [tuple(pair) for pair in on])),
    "antijoin": (2, lambda left, right, on: left.antijoin(right, [tuple(pair) for pair in on])),
    "join": (2, _join("join")),
    "left_join": (2, _join("left_join")),
    "right_join": (2, _join("right_join")),
    "full_join": (2, _join("full_join")),
    "asof_join": (2, _asof),
    "where": (1, _where),
    "multijoin 2": (2, _multijoin),
    "multijoin 3": (3, _multijoin),
    "multijoin 4": (4, _multijoin),
}


def _ignore(changes: Any) -> None: ...


def inputs(step: Step) -> set[int]:
    """The numbers of the streams that a step reads."""
    count, _ = STEPS[step[0]]
    return set(step[1:] if count is None else step[1 : 1 + count])


def apply(streams: Sequence[Stream], step: Step) -> Stream:
    """The stream that a step makes."""
    count, make = STEPS[step[0]]
    end = len(step) if count is None else 1 + count
    return make(*(streams[at] for at in step[1:end]), *step[end:])
