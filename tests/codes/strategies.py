"""Hypothesis strategies for types, schemas, values, rows and tables; others import them from here."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

from hypothesis import strategies as st

from everview.types import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    ID,
    INTEGER,
    SMALLINT,
    STRING,
    SYMBOL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    YEAR_MONTH,
    Array,
    Decimal,
    Field,
    Id,
    MapType,
    Schema,
    Struct,
    Symbol,
    Type,
    Variant,
    register_atom,
)

KEY = register_atom("TestKey", uuid.UUID, lambda u: u.bytes, lambda raw: uuid.UUID(bytes=raw))

INTEGER_BITS = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64}
names = st.text("abcdefgh_ äß", min_size=1, max_size=6)
texts = st.text(max_size=8) | st.sampled_from(["", "\0", "a\0b", "a", "aa", "ä", "日本", "\U0001f600", "\uffff"])
blobs = st.binary(max_size=8) | st.sampled_from([b"", b"\0", b"\0\xff", b"\0\0", b"\xff"])
floats = st.floats() | st.sampled_from([-0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324])
instants = st.datetimes(timezones=st.just(dt.UTC)) | st.just(dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC))
_longest = dt.timedelta(days=106_751_991)
spans = st.timedeltas(-_longest, _longest) | st.sampled_from([-_longest, dt.timedelta(microseconds=-1), _longest])
loose_decimals = st.builds(
    lambda n, e: decimal.Decimal(n).scaleb(e), st.integers(-(10**20), 10**20), st.integers(-30, 30)
)


def integers(bits: int) -> st.SearchStrategy[int]:
    """All of them, and often those at the edges."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from([low, low + 1, -1, 0, 1, high])


scalar_atoms: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    integers(64),
    floats,
    texts,
    blobs,
    st.builds(Symbol, texts),
    st.builds(Id, blobs),
    loose_decimals,
    st.dates(),
    st.times(),
    instants,
    spans,
    st.uuids(),
)
# What an ANY column holds, except NULL.
atoms: st.SearchStrategy[Any] = st.recursive(
    scalar_atoms,
    lambda inner: (
        st.lists(st.none() | inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), st.none() | inner, max_size=3)
    ),
    max_leaves=6,
)

decimal_types = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
fixed_types: st.SearchStrategy[Type] = (
    st.sampled_from([BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP])
    | st.sampled_from([TIMESTAMP_NTZ, TIME, YEAR_MONTH, DAY, DAY_TIME])
    | decimal_types
)
scalar_types: st.SearchStrategy[Type] = fixed_types | st.sampled_from([STRING, BINARY, SYMBOL, ID, VARIANT, KEY, ANY])


def _fields(types: st.SearchStrategy[Type]) -> st.SearchStrategy[list[Field]]:
    return st.lists(st.builds(Field, names, types, st.booleans()), max_size=4, unique_by=lambda f: f.name)


# Arrow makes no arrays of structs without fields of the right length, so a struct here has one at least.
nested_types: st.SearchStrategy[Type] = st.recursive(
    scalar_types,
    lambda inner: (
        st.builds(Array, inner)
        | _fields(inner).filter(bool).map(Struct)
        | st.builds(MapType, st.sampled_from([STRING, BIGINT, DATE, DOUBLE, Array(INTEGER)]), inner)
    ),
    max_leaves=5,
)


types = scalar_types | nested_types


def schemas(of: st.SearchStrategy[Type] = types) -> st.SearchStrategy[Schema]:
    """Schemas of up to four columns, nullable or not."""
    return _fields(of).map(Schema)


def values(of: Type) -> st.SearchStrategy[Any]:
    """The values of a type, as Python has them, except NULL."""
    match of:
        case Decimal(precision, scale):
            largest = 10**precision - 1
            numbers = st.integers(-largest, largest) | st.sampled_from([-largest, -1, 0, 1, largest])
            return numbers.map(lambda n: decimal.Decimal(n).scaleb(-scale, decimal.Context(prec=50)))
        case Array(element):
            return st.lists(st.none() | values(element), max_size=3)
        case Struct(fields):
            return st.fixed_dictionaries({f.name: cells(f) for f in fields})
        case MapType(key, value):
            keys = values(key).map(lambda k: tuple(k) if isinstance(k, list) else 0.0 if k != k or k == 0.0 else k)
            return st.dictionaries(keys, st.none() | values(value), max_size=3)
        case _:
            return _SCALARS[of]


def cells(field: Field) -> st.SearchStrategy[Any]:
    """The values of a column, with NULL where it may be."""
    return st.none() | values(field.type) if field.nullable else values(field.type)


def rows(schema: Schema, max_size: int = 8) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of a schema."""
    return st.lists(st.tuples(*(cells(f) for f in schema.fields)), max_size=max_size)


def schemas_and_rows(
    of: st.SearchStrategy[Type] = types, max_size: int = 8
) -> st.SearchStrategy[tuple[Schema, list[tuple[Any, ...]]]]:
    """A schema, and rows of it."""
    return schemas(of).flatmap(lambda schema: st.tuples(st.just(schema), rows(schema, max_size)))


_SCALARS: dict[Type, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    **{of: integers(bits) for of, bits in INTEGER_BITS.items()},
    FLOAT: st.floats(width=32) | st.sampled_from([-0.0, math.nan, math.inf]),
    DOUBLE: floats,
    DATE: st.dates(),
    TIMESTAMP: instants,
    TIMESTAMP_NTZ: st.datetimes(),
    TIME: st.times(),
    YEAR_MONTH: integers(32),
    DAY: st.integers(-106_751_991, 106_751_991).map(dt.timedelta),
    DAY_TIME: spans,
    STRING: texts,
    BINARY: blobs,
    SYMBOL: st.builds(Symbol, texts),
    ID: st.builds(Id, blobs),
    KEY: st.uuids(),
    ANY: atoms,
    VARIANT: st.recursive(
        st.none()
        | st.booleans()
        | integers(64)
        | floats.filter(lambda x: x == x)
        | texts
        | blobs
        | instants
        | st.dates(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ).map(Variant.of),
}


def same(a: Any, b: Any) -> bool:
    """Are two Python values one value? NaN is itself, ``-0.0`` is ``0.0``, and types count."""
    if isinstance(a, (list, tuple)):
        both = isinstance(b, (list, tuple)) and len(a) == len(b)
        return both and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and a == b
