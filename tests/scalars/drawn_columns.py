"""Columns of drawn values, and what holds evaluation to its meaning on them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from everview.codes import Dictionary, encode
from everview.codes.columns import from_python
from everview.codes.rows import python_values
from everview.errors import EverviewError
from everview.operators.word_program import WordProgram
from everview.oracle.scalars import value_of
from everview.plan.typing import literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column, Expression
from everview.scalars.kinds import Passing
from everview.scalars.signatures import SIGNATURES
from everview.types import BOOLEAN, DOUBLE, Array, Decimal, Field, MapType, Schema, Struct, Type, Variant
from everview.types.variants import SingleFloat

BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
FLOATS = [
    0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1.005, 2.675, math.nan, math.inf, -math.inf, 1e20, 1e-9, 9.2233720368547758e18,
]  # fmt: skip
TEXTS = [
    "", " ", "a", "abc", "Hello World", " 12 ", "-7", "+5", "1.5", "1e3", "-.5", "1.", "nan", "Infinity", "-inf", "1d",
    "300", "true", "no", "2024-02-29", "2023-02-29", "2024-1-5", "2024-03-01 10:11:12.5", "2024-03-01T10:11:12+05:30",
    "x%y_z", "éàß", "ΑΣ", "İ", "a,b,,c", "a.b.c", "\n", "99999999999999999999", "aGVsbG8=", "4a4B", "zz",
    "1970-01-01 00:00:00 Z", "12:30", "1:02:03.45 pm", "25:00", "-1-2", "INTERVAL '3 04:05:06.7' DAY TO SECOND",
    "-9 9:9:9", "interval -'-5' day", "1-12", "106751992 00:00:00",
]  # fmt: skip


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.one_of(st.integers(-10, 10), st.sampled_from([low, low + 1, high, high - 1]), st.integers(low, high))


def single(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.inf


def decimals(of: Decimal) -> st.SearchStrategy[decimal.Decimal]:
    limit = 10**of.precision - 1
    whole = st.one_of(st.integers(-200, 200), st.integers(-limit, limit), st.sampled_from([limit, -limit, 0]))
    return whole.map(lambda n: decimal.Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -of.scale)))


EIGHTHS = st.integers(-1000, 1000).map(lambda n: n / 8)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "DOUBLE": st.one_of(st.sampled_from(FLOATS), st.floats(), EIGHTHS),
    "FLOAT": st.one_of(st.sampled_from(FLOATS), st.floats(width=32), EIGHTHS).map(single),
    "DATE": st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)) | st.dates(dt.date(1968, 1, 1), dt.date(2032, 1, 1)),
    "TIMESTAMP": st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).map(
        lambda at: at.replace(tzinfo=dt.UTC)
    ),
    "TIMESTAMP_NTZ": st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
    "TIME": st.times() | st.sampled_from([dt.time(), dt.time(23, 59, 59, 999999)]),
    "INTERVAL YEAR TO MONTH": st.integers(-40, 40) | integers(32),
    "INTERVAL DAY": st.integers(-3, 3).map(dt.timedelta) | st.integers(-106_000_000, 106_000_000).map(dt.timedelta),
    "INTERVAL DAY TO SECOND": st.one_of(
        st.timedeltas(dt.timedelta(days=-2), dt.timedelta(days=2)),
        st.timedeltas(dt.timedelta(days=-106_000_000), dt.timedelta(days=106_000_000)),
    ),
    "STRING": st.one_of(st.sampled_from(TEXTS), st.text("ab %_,.1éß", max_size=6)),
    "BINARY": st.binary(max_size=40),
    "VARIANT": st.deferred(lambda: INSIDE.map(Variant.of)),
}
# What is inside of variants.
INSIDE: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), integers(64), EIGHTHS, st.sampled_from(FLOATS), EIGHTHS.map(SingleFloat)),
        *(st.sampled_from(TEXTS), decimals(Decimal(5, 2)), decimals(Decimal(38, 10)), st.binary(max_size=3)),
        *(SIMPLE["DATE"], SIMPLE["TIMESTAMP"]),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "a b", "é"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def values(of: Type) -> st.SearchStrategy[Any]:
    """Any value of a type, the difficult ones often."""
    if of.sql in BITS:
        return integers(BITS[of.sql])
    if isinstance(of, Decimal):
        return decimals(of)
    if isinstance(of, Array):
        return st.lists(st.none() | values(of.element), max_size=4)
    if isinstance(of, Struct):
        return st.fixed_dictionaries({f.name: st.none() | values(f.type) for f in of.fields})
    if isinstance(of, MapType):
        keys = values(of.key).map(lambda k: 0.0 if k != k or k == 0 else k) if of.key == DOUBLE else values(of.key)
        keys = keys.map(lambda k: tuple(k) if isinstance(k, list) else k)
        return st.dictionaries(keys, st.none() | values(of.value), max_size=4)
    return SIMPLE[of.sql]


@st.composite
def tables(draw: st.DrawFn, types: list[Type], most: int = 6) -> list[list[Any]]:
    """One column of values for each type, of the same length, with NULLs."""
    rows = draw(st.integers(0, most))
    return [draw(st.lists(st.none() | values(of), min_size=rows, max_size=rows)) for of in types]


def argument(found: Any, at: int) -> Expression:
    """A type is a column of it; another value is a literal, unless it is an expression."""
    if isinstance(found, Expression):
        return found
    return Column(at, f"c{at}", found) if isinstance(found, Type) else literal(found)


# Whose last digits depend on the machine's library of mathematics.
NEARLY = frozenset({name for name, line in SIGNATURES.items() if "last digit" in line.note} | {"months_between"}) - {
    *("sqrt", "radians", "degrees")
}


def comparable(value: Any, near: bool = False) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return pytest.approx(value, rel=1e-13) if near and math.isfinite(value) else value + 0.0
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, list):
        return [comparable(v, near) for v in value]
    if isinstance(value, dict):
        return [(comparable(name), comparable(v, near)) for name, v in value.items()]
    return value.raw if isinstance(value, Variant) else value


def agrees_in_words(found: Expression, schema: Schema, arrays: list[Any]) -> str | None:
    """A program over words gives the words that evaluation on columns gives, and none where that fails.

    Returns why there is no program; None if there is.
    """
    name, dictionary = "computed", Dictionary()
    arguments = tuple(range(len(schema)))
    out = Schema((*schema.select(schema.names[:1]).fields, Field(name, found.type, found.nullable)))
    program = Evaluate((found,)).projection_in_words(schema, (0,), arguments, out)
    if isinstance(program, str):
        return program
    words = encode(schema, pa.table(arrays, schema=schema.arrow), dictionary)
    delta = np.column_stack([words, np.arange(len(words)) + 1])
    mapped = program.run(delta, dictionary)
    try:
        (expected,) = Evaluate((found,))(*arrays)
    except EverviewError:
        # A constant part that fails does so even where there are no rows, which no step is asked about.
        assert mapped is None or not len(delta), f"{found} fails, but not in words"
        return None
    if mapped is not None:
        computed = encode(Schema(out.fields[1:]), pa.table([expected], schema=Schema(out.fields[1:]).arrow), dictionary)
        first = schema.words(0).stop
        assert np.array_equal(mapped, np.column_stack([words[:, :first], computed, delta[:, -1]])), str(found)
    if found.type == BOOLEAN:
        _filters_in_words(found, schema, delta, dictionary, expected)
    return None


def _filters_in_words(found: Expression, schema: Schema, delta: Any, dictionary: Dictionary, verdicts: Any) -> None:
    program = Evaluate((found,)).predicate_in_words(schema, tuple(range(len(schema))))
    assert isinstance(program, WordProgram)
    kept = program.run(delta, dictionary)
    if kept is not None:
        assert np.array_equal(kept, delta[[bool(verdict) for verdict in verdicts.to_pylist()]]), str(found)


def agrees(found: Expression, types: list[Type], drawn: list[list[Any]], near: bool = False) -> None:
    """Evaluation says what the meaning says, row by row; and fails where it fails. So do words alone, if they can."""
    arrays = [from_python(Field("c", of), column) for column, of in zip(drawn, types, strict=True)]
    if types and not isinstance(found.type, Passing):
        agrees_in_words(found, Schema(Field(f"c{at}", of) for at, of in enumerate(types)), arrays)
    columns = [python_values(of, array) for of, array in zip(types, arrays, strict=True)]
    rows = list(zip(*columns, strict=True)) if types else [()]
    expected: list[Any] = []
    failures: list[type[EverviewError]] = []  # of several rows, columns may say another one first
    for row in rows:
        try:
            expected.append(value_of(found, row))
        except EverviewError as error:
            failures.append(type(error))
    if failures:
        with pytest.raises(tuple(failures)):
            Evaluate((found,))(*arrays)
        return
    (array,) = Evaluate((found,))(*arrays)
    if not types:
        # Without columns one value stands for all rows.
        array = pa.array([array.as_py()], array.type)
    shown = python_values(found.type, array) if not isinstance(found.type, Passing) else array.to_pylist()
    assert array.type == found.type.arrow
    assert found.nullable or array.null_count == 0
    assert [comparable(v) for v in shown] == [comparable(v, near) for v in expected], str(found)
