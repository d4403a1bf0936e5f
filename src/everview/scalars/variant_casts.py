"""Casts of variants to other types, by the kind of the value inside: numbers as numbers are cast, text as text is."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Value
from everview.scalars.functions.variants import ABSENT, stripped, variant_json
from everview.scalars.functions.zones import tzinfo_of
from everview.scalars.session_zone import UTC
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
    Variant,
)
from everview.types.variants import SingleFloat


def from_variant(value: Value, to: Type, zone: str = UTC) -> Any:
    """Variants as another type, by the clock of a zone; a null inside is NULL."""
    coded = value.dictionary_encode()
    held = [Variant(raw).value for raw in coded.dictionary.to_pylist()]
    made, failed = _cast(held, to, zone)
    places = coded.indices
    array = made.take(places)
    mask = np.zeros(len(places), bool)
    known = places.is_valid().to_numpy(zero_copy_only=False)
    mask[known] = failed[places.drop_null().to_numpy()]
    return Checked(array, mask, f"the variant is no {to}") if mask.any() else array


def _cast(values: list[Any], to: Type, zone: str) -> tuple[Value, Any]:
    """Values cast to a column of a type, and a mask of those that cannot be."""
    failed = np.zeros(len(values), bool)
    if to == VARIANT:
        return pa.array([None if v is ABSENT else Variant.of(v).raw for v in values], pa.binary()), failed
    values = [None if v is ABSENT else v for v in values]
    match to:
        case Array(element):
            return _cast_lists(values, to, element, failed, zone)
        case MapType(_, item):
            return _cast_maps(values, to, item, failed, zone)
        case Struct():
            return _cast_structs(values, to, failed, zone)
        case _:
            return _cast_scalars(values, to, failed, zone)


def _good(values: list[Any], kind: type, failed: Any) -> list[Any]:
    """The values of a Python type, None for others, which fail unless they are null."""
    for place, value in enumerate(values):
        failed[place] = value is not None and not isinstance(value, kind)
    return [value if isinstance(value, kind) else None for value in values]


def _offsets(parts: list[Any]) -> Any:
    return np.cumsum([0, *(0 if part is None else len(part) for part in parts)]).astype(np.int32)


def _parents(offsets: Any) -> Any:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _cast_lists(values: list[Any], to: Array, element: Type, failed: Any, zone: str) -> tuple[Value, Any]:
    parts = _good(values, list, failed)
    offsets = _offsets(parts)
    inner, bad = _cast([item for part in parts if part is not None for item in part], element, zone)
    failed[_parents(offsets)[bad]] = True
    mask: Any = pa.array([part is None for part in parts], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), inner, type=to.arrow, mask=mask), failed


def _cast_maps(values: list[Any], to: MapType, item: Type, failed: Any, zone: str) -> tuple[Value, Any]:
    parts = _good(values, dict, failed)
    offsets = _offsets(parts)
    members = [pair for part in parts if part is not None for pair in part.items()]
    inner, bad = _cast([value for _, value in members], item, zone)
    failed[_parents(offsets)[bad]] = True
    mask: Any = pa.array([part is None for part in parts], pa.bool_())
    keys = pa.array([key for key, _ in members], pa.string())
    arrow: Any = to.arrow
    return pa.MapArray.from_arrays(pa.array(offsets), keys, inner, type=arrow, mask=mask), failed


def _cast_structs(values: list[Any], to: Struct, failed: Any, zone: str) -> tuple[Value, Any]:
    parts = _good(values, dict, failed)
    columns: list[Value] = []
    for f in to.fields:
        column, bad = _cast([ABSENT if part is None else part.get(f.name, ABSENT) for part in parts], f.type, zone)
        failed |= bad
        columns.append(column)
    mask: Any = pa.array([part is None for part in parts], pa.bool_())
    arrow: Any = to.arrow
    return pa.StructArray.from_arrays(columns, fields=list(arrow), mask=mask), failed


def _cast_scalars(values: list[Any], to: Type, failed: Any, zone: str) -> tuple[Value, Any]:
    from everview.scalars.casts import is_converted

    kinds: dict[Type, list[int]] = {}
    plain = [stripped(v) if isinstance(v, decimal.Decimal) else v for v in values]
    if to == STRING:
        clock = tzinfo_of(zone)
        plain = [variant_json(v, clock) if isinstance(v, (dict, list)) else v for v in plain]
    for place, value in enumerate(plain):
        if value is None:
            continue
        if isinstance(value, (dict, list, uuid.UUID, dt.time)):
            failed[place] = True
            continue
        kind = _kind(value) if zone == UTC else _kind_in_zone(value, to)
        kinds.setdefault(kind, []).append(place)
    arrow: Any = to.arrow
    parts: list[Value] = [pa.nulls(1, arrow)]
    order = np.zeros(len(values), np.int64)
    total = 1
    for kind, places in kinds.items():
        if not is_converted(kind, to):
            failed[places] = True
            continue
        made = _converted(pa.array([plain[place] for place in places], kind.arrow), kind, to, zone)
        if isinstance(made, Checked):
            failed[np.array(places)[made.failed]] = True
            made = made.value
        parts.append(made)
        order[places] = total + np.arange(len(places))
        total += len(places)
    return pa.concat_arrays(parts).take(pa.array(order)), failed


def _converted(column: Value, kind: Type, to: Type, zone: str) -> Any:
    """A column cast to a type; moments are read, and shown, by the clock of a zone."""
    from everview.scalars.casts import convert
    from everview.scalars.functions.zones import KERNELS

    name = pa.scalar(zone)
    if zone == UTC or kind == to:
        return convert(column, kind, to)
    if to == TIMESTAMP and kind == STRING:
        return KERNELS["timestamp_in_zone"](to.arrow, column, name)
    if to == TIMESTAMP and kind in (DATE, TIMESTAMP_NTZ):
        return KERNELS["to_utc_timestamp"](to.arrow, convert(column, kind, to), name)
    if kind == TIMESTAMP and to in (DATE, STRING):
        shown = KERNELS["from_utc_timestamp"](kind.arrow, column, name)
        return shown if isinstance(shown, Checked) else convert(shown, kind, to)
    return convert(column, kind, to)


_KINDS: Final[tuple[tuple[type, Type], ...]] = (
    (bool, BOOLEAN),
    (int, BIGINT),
    (SingleFloat, FLOAT),
    (float, DOUBLE),
    (str, STRING),
    (bytes, BINARY),
    (dt.datetime, TIMESTAMP),
    (dt.date, DATE),
)


def _kind_in_zone(value: Any, to: Type) -> Type:
    """The type of a value, of which one is on a clock in no zone."""
    local = isinstance(value, dt.datetime) and value.tzinfo is None and to in (TIMESTAMP, DATE, STRING)
    return TIMESTAMP_NTZ if local else _kind(value)


def _kind(value: Any) -> Type:
    """The type of a value of a variant that has no parts."""
    if isinstance(value, decimal.Decimal):
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int), "a variant has no decimal that is no number"
        return Decimal(max(len(digits), -exponent), -exponent)
    return next(type_ for kind, type_ in _KINDS if isinstance(value, kind))
