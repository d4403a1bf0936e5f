"""Values as the oracle holds them: two are the same exactly when Python says that they are equal.

Python's values of one type nearly have that property already. Of floats there is one NaN and one zero; arrays
and structs are tuples, and maps tuples of pairs; a timestamp or an interval is its microseconds, an atom its bytes; a
value of ANY is a tuple that begins with its kind, because ``True == 1 == 1.0``. `inward` and `outward` convert from and
to the values that views show, `arrow` and `landed` to and from Arrow's, which functions see.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, Final

import pyarrow as pa

from everview.codes.atoms import pack, unpack
from everview.operators.index import Direction
from everview.types import (
    ANY,
    DOUBLE,
    DURATIONS,
    FLOAT,
    ID,
    KINDS,
    SYMBOL,
    TIMESTAMP,
    VARIANT,
    Array,
    Atom,
    Id,
    MapType,
    Struct,
    Symbol,
    Type,
    Variant,
)
from everview.types.atoms import atom_of_class, atom_of_kind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Change = Callable[[Any], Any] | None  # None is the identity


@cache
def inward(type_: Type) -> Change:
    """The change of a value that people see to one that the oracle holds; NULL stays NULL."""
    match type_:
        case Array(element):
            change = _each(inward(element))
            return lambda values: tuple(map(change, values))
        case Struct(fields):
            changes = [(f.name, _each(inward(f.type))) for f in fields]
            return lambda value: tuple(change(value[name]) for name, change in changes)
        case MapType(key, item):
            own, change = _each(inward(key)), _each(inward(item))
            return lambda value: tuple((own(thawed_key(key, k)), change(v)) for k, v in value.items())
        case Atom():
            return type_.host.to_bytes
        case _ if type_ == ANY:
            return _tagged
        case _ if type_ in (FLOAT, DOUBLE):
            return _float
        case _ if type_ == TIMESTAMP:
            return _moment
        case _ if type_ in DURATIONS:
            return lambda span: span if isinstance(span, int) else span // timedelta(microseconds=1)
        case _:
            return None


@cache
def outward(type_: Type) -> Change:
    """The inverse of `inward`."""
    match type_:
        case Array(element):
            change = _each(outward(element))
            return lambda values: list(map(change, values))
        case Struct(fields):
            changes = [(f.name, _each(outward(f.type))) for f in fields]
            return lambda values: {name: change(v) for (name, change), v in zip(changes, values, strict=True)}
        case MapType(key, item):
            own, change = _each(outward(key)), _each(outward(item))
            return lambda pairs: {frozen_key(own(k)): change(v) for k, v in pairs}
        case Atom():
            return type_.host.from_bytes
        case _ if type_ == ANY:
            return _untagged
        case _ if type_ == TIMESTAMP:
            return lambda moment: EPOCH + timedelta(microseconds=moment)
        case _ if type_ in DURATIONS:
            return lambda micros: timedelta(microseconds=micros)
        case _:
            return None


def frozen_key(value: Any) -> Any:
    """A value as the key of a dict: arrays and structs as tuples."""
    if isinstance(value, dict):
        value = list(value.values())
    return tuple(map(frozen_key, value)) if isinstance(value, (list, tuple)) else value


def thawed_key(type_: Type, key: Any) -> Any:
    """The value of a type that is a key of a dict: the inverse of `frozen_key`."""
    match type_:
        case Array(element) if key is not None:
            return [thawed_key(element, part) for part in key]
        case Struct(fields) if isinstance(key, tuple):
            return {f.name: thawed_key(f.type, part) for f, part in zip(fields, key, strict=True)}
        case _:
            return key


def _each(change: Change) -> Callable[[Any], Any]:
    """A change that leaves NULL as it is."""
    if change is None:
        return _same
    return lambda value: None if value is None else change(value)


def _same(value: Any) -> Any:
    return value


def _float(value: float) -> float:
    return math.nan if value != value else value + 0.0  # -0.0 + 0.0 is 0.0


def _moment(value: datetime) -> int:
    """Microseconds since 1970; a time without zone is in UTC."""
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def changed(types: Sequence[Type], change: Callable[[Type], Change]) -> Callable[[list[Any]], list[Any]]:
    """A change of rows, column by column; the rows as they are if no column changes."""
    changes = [change(type_) for type_ in types]
    if all(each is None for each in changes):
        return _same

    def rows_of(rows: list[Any]) -> list[Any]:
        columns = zip(changes, zip(*rows, strict=True), strict=True)
        return list(zip(*(map(_each(each), column) if each else column for each, column in columns), strict=True))

    return rows_of


# -- values of ANY


_KEYS_OF_THEMSELVES: Final[dict[type, str]] = {  # the first class that a value is of counts
    bool: "BOOLEAN",
    int: "INTEGER",
    date: "DATE",
    time: "TIME",
    timedelta: "DURATION",
    decimal.Decimal: "DECIMAL",
    str: "STRING",
    bytes: "BINARY",
}


def _tagged(value: Any) -> tuple[Any, ...]:
    """A value of ANY as its kind and a key that orders values of that kind; NULL occurs only inside others."""
    match value:
        case None:
            return (KINDS["NULL"],)
        case float():
            return (KINDS["FLOAT"], *_last_nan(_float(value)))
        case datetime():
            return KINDS["TIMESTAMP"], _moment(value)
        case Symbol():
            return KINDS["SYMBOL"], value.name
        case Id():
            return KINDS["ID"], value.raw
        case Variant():
            return KINDS["VARIANT"], value.raw
        case list() | tuple():
            return KINDS["ARRAY"], tuple(map(_tagged, value))
        case Mapping():
            return KINDS["MAP"], tuple(sorted((_tagged(k), _tagged(v)) for k, v in value.items()))
        case _ if isinstance(value, tuple(_KEYS_OF_THEMSELVES)):
            return KINDS[next(kind for class_, kind in _KEYS_OF_THEMSELVES.items() if isinstance(value, class_))], value
        case _:
            atom = atom_of_class(type(value))
            assert atom is not None, f"{value!r} is no value of ANY"
            return KINDS["ATOM"], atom.type.kind, atom.to_bytes(value)


def _untagged(tagged: tuple[Any, ...]) -> Any:
    kind, *content = tagged
    if kind == KINDS["NULL"]:
        return None
    if kind == KINDS["FLOAT"]:
        return math.nan if content[0] else content[1]
    if kind == KINDS["ARRAY"]:
        return tuple(map(_untagged, content[0]))
    if kind == KINDS["MAP"]:
        return {_untagged(k): _untagged(v) for k, v in content[0]}
    if kind == KINDS["ATOM"]:
        return atom_of_kind(content[0]).from_bytes(content[1])
    if kind == KINDS["TIMESTAMP"]:
        return EPOCH + timedelta(microseconds=content[0])
    if kind == KINDS["SYMBOL"]:
        return Symbol(content[0])
    if kind == KINDS["VARIANT"]:
        return Variant(content[0])
    return Id(content[0]) if kind == KINDS["ID"] else content[0]


# -- order


def _last_nan(value: float) -> tuple[bool, float]:
    return (True, 0.0) if value != value else (False, value)


@cache
def rank(type_: Type) -> Change:
    """A key that sorts the values of a type; inside a value NULL is first. Text is in the order of its bytes."""
    match type_:
        case Array(element):
            key = _nulls_first(rank(element))
            return lambda values: tuple(map(key, values))
        case Struct(fields):
            keys = [_nulls_first(rank(f.type)) for f in fields]
            return lambda values: tuple(key(v) for key, v in zip(keys, values, strict=True))
        case MapType(own, item):
            first, second = _nulls_first(rank(own)), _nulls_first(rank(item))
            return lambda pairs: tuple((first(k), second(v)) for k, v in pairs)
        case _ if type_ == VARIANT:
            return lambda value: value.raw
        case _ if type_ in (FLOAT, DOUBLE):
            return _last_nan
        case _ if type_ == SYMBOL:
            return lambda symbol: symbol.name
        case _ if type_ == ID:
            return lambda value: value.raw
        case _:
            return None


def _nulls_first(key: Change) -> Callable[[Any], tuple[Any, ...]]:
    plain = key or _same
    return lambda value: (0,) if value is None else (1, plain(value))


Keyed = tuple[int, Type, Direction]  # a place in the row, what stands there, and how it is ordered


def in_order(entries: list[tuple[Any, int]], order: Sequence[Keyed]) -> list[tuple[Any, int]]:
    """Weighted rows sorted by one field after the other, the last one first, as sorting is stable."""
    for place, type_, direction in reversed(order):
        descends = direction in (Direction.DESC, Direction.DESC_NULLS_FIRST)
        nulls_first = direction in (Direction.ASC, Direction.DESC_NULLS_FIRST)
        absent = [e for e in entries if e[0][place] is None]
        present = [e for e in entries if e[0][place] is not None] if absent else entries
        key = rank(type_) or _same
        present = sorted(present, key=lambda e, place=place, key=key: key(e[0][place]), reverse=descends)
        entries = absent + present if nulls_first else present + absent
    return entries


# -- Arrow


@cache
def arrow(type_: Type) -> Change:
    """From a value of the oracle to one that Arrow takes: names for symbols, bytes for IDs, atoms and ANY."""
    match type_:
        case Array(element):
            change = _each(arrow(element))
            return lambda values: list(map(change, values))
        case Struct(fields):
            changes = [(f.name, _each(arrow(f.type))) for f in fields]
            return lambda values: {name: change(v) for (name, change), v in zip(changes, values, strict=True)}
        case MapType(key, item):
            own, change = _each(arrow(key)), _each(arrow(item))
            return lambda pairs: [(own(k), change(v)) for k, v in pairs]
        case _ if type_ == VARIANT:
            return lambda value: value.raw
        case _ if type_ == ANY:
            return lambda value: pack(_untagged(value))
        case _ if type_ == SYMBOL:
            return lambda symbol: symbol.name
        case _ if type_ == ID:
            return lambda held: held.raw
        case _:
            return None  # an atom is its bytes already


@cache
def landed(type_: Type) -> Change:
    """The change of a value that Arrow gives to one that the oracle holds: the inverse of `arrow`."""
    match type_:
        case Array(element):
            change = _each(landed(element))
            return lambda values: tuple(map(change, values))
        case Struct(fields):
            changes = [(f.name, _each(landed(f.type))) for f in fields]
            return lambda value: tuple(change(value[name]) for name, change in changes)
        case MapType(key, item):
            own, change = _each(landed(key)), _each(landed(item))
            return lambda pairs: tuple((own(k), change(v)) for k, v in pairs)
        case _ if type_ == VARIANT:
            return Variant
        case Atom():
            return None
        case _ if type_ == ANY:
            return lambda value: _tagged(unpack(value))
        case _ if type_ == SYMBOL:
            return Symbol
        case _ if type_ == ID:
            return Id
        case _:
            return inward(type_)


def to_arrow(type_: Type, values: Sequence[Any]) -> Any:
    """A column of values as the oracle holds them."""
    change = arrow(type_)
    return pa.array(values if change is None else list(map(_each(change), values)), type_.arrow)


def from_arrow(type_: Type, column: Any) -> list[Any]:
    """A column that a function gave, as values of the type that was declared."""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(column, type_.arrow)
    elif column.type != type_.arrow:
        column = pa.array(column.to_pylist(), type_.arrow)
    if type_ == TIMESTAMP or type_ in DURATIONS:
        return column.cast(pa.int64()).to_pylist()
    change = landed(type_)
    return column.to_pylist() if change is None else list(map(_each(change), column.to_pylist()))


def from_python(type_: Type, values: Sequence[Any]) -> list[Any]:
    """A column of values that a function of one row gave."""
    if _is_hosts(type_):
        return list(map(_each(inward(type_)), values))
    return from_arrow(type_, [v.name if isinstance(v, Symbol) else v.raw if isinstance(v, Id) else v for v in values])


def _is_hosts(type_: Type) -> bool:
    """Whether values of a type are Python objects that Arrow holds as bytes."""
    match type_:
        case Array(element):
            return _is_hosts(element)
        case Struct(fields):
            return any(_is_hosts(f.type) for f in fields)
        case MapType():
            return True
        case _:
            return type_ in (ANY, VARIANT) or isinstance(type_, Atom)
