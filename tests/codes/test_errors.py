"""Every mistake in rows: the error, what it says, and the hint."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest

import codes.strategies  # noqa: F401, which makes TestKey known
from everview.codes import (
    Dictionary,
    decode_rows,
    encode,
    encode_pairs,
    encode_rows,
    ingest,
    ingest_weighted,
    pack,
)
from everview.errors import NullNotAllowed, UnknownName, WrongArity, WrongType
from everview.types import Schema, Symbol

D = decimal.Decimal

# (schema, rows, error, message, hint)
ROWS = [
    # shape
    ("a INT, b INT", [(1, 2), (1,)], WrongArity, "rows[1] has 1 value, not 2: (1,)", "the columns are a, b"),
    (
        "a INT, b INT",
        [(1, 2, 3)],
        WrongArity,
        "rows[0] has 3 values, not 2: (1, 2, 3)",
        "the columns are a, b",
    ),
    ("a INT", [(1,), 5], WrongArity, "rows[1] is 5, which is no row", "write it as (5,)"),
    ("a STRING", ["x"], WrongArity, "rows[0] is 'x', which is no row", "write it as ('x',)"),
    ("a INT, b INT", [5], WrongArity, "rows[0] is 5, which is no row", "a row is a tuple of a, b"),
    ("a INT", {"a": 1}, WrongType, "is no collection of rows", "write [{...}] for a single row"),
    ("a INT", "abc", WrongType, "'abc' is no collection of rows", "give a list of tuples or dicts"),
    ("a INT", 7, WrongType, "7 is no collection of rows", "give a list of tuples or dicts"),
    (
        "a INT, b INT",
        [{"a": 1}, {"c": 2}],
        UnknownName,
        'rows[1]: column "c" does not exist',
        "available: a, b",
    ),
    (
        "owner INT",
        [{"ownr": 1}],
        UnknownName,
        'rows[0]: column "ownr" does not exist',
        'did you mean "owner"?',
    ),
    # NULL
    (
        "a INT NOT NULL",
        [(1,), (None,)],
        NullNotAllowed,
        'column "a" is NOT NULL, and rows[1] has NULL there',
        "give it a value",
    ),
    ("a INT NOT NULL, b INT", [{"b": 1}], NullNotAllowed, 'column "a" is NOT NULL', "without NOT NULL"),
    (
        "a STRUCT<x: INT NOT NULL>",
        [((1,),), ((None,),)],
        NullNotAllowed,
        'column "a.x" is NOT NULL, and rows[1]',
        "give it a value",
    ),
    (
        "a ARRAY<STRUCT<x: INT NOT NULL>>",
        [([{}],)],
        NullNotAllowed,
        'column "a.x" is NOT NULL, and rows[0]',
        "give it a value",
    ),
    # numbers
    (
        "a TINYINT",
        [(1,), (300,)],
        WrongType,
        'column "a", rows[1]: 300 is outside the range of TINYINT',
        "-128 to 127",
    ),
    ("a BIGINT", [(2**63,)], WrongType, "is outside the range of BIGINT", "use DECIMAL(38,0)"),
    ("a INT", [(1.5,)], WrongType, "1.5 is not a whole number", "round it first"),
    ("a INT", [(float("nan"),)], WrongType, "nan is not a whole number", "round it first"),
    ("a INT", [(True,)], WrongType, "True is no INTEGER", "give an int"),
    ("a INT", [("1",)], WrongType, "'1' is no INTEGER", "give an int"),
    ("a BOOLEAN", [(1,)], WrongType, "1 is no BOOLEAN", "give True or False"),
    ("a DOUBLE", [("x",)], WrongType, "'x' is no DOUBLE", "give a float"),
    ("a DOUBLE", [(2**53 + 1,)], WrongType, "9007199254740993 has no exact DOUBLE", "BIGINT or DECIMAL"),
    ("a DOUBLE", [(10**400,)], WrongType, "is outside the range of DOUBLE", "DECIMAL"),
    (
        "a DOUBLE",
        [(D("0.12345678901234567890"),)],
        WrongType,
        "has more digits than a DOUBLE",
        "round it first",
    ),
    ("a FLOAT", [(1e300,)], WrongType, "1e+300 is outside the range of FLOAT", "declare the column DOUBLE"),
    (
        "a DECIMAL(12,2)",
        [("9.555",)],
        WrongType,
        "9.555 has more than 2 digits after the point",
        "round it first",
    ),
    (
        "a DECIMAL(12,2)",
        [(9.555,)],
        WrongType,
        "9.555 has more than 2 digits after the point",
        "larger scale",
    ),
    (
        "a DECIMAL(12,2)",
        [(D("1e10"),)],
        WrongType,
        "is outside the range of DECIMAL(12,2)",
        "10 digits before the point",
    ),
    ("a DECIMAL(12,2)", [("abc",)], WrongType, "'abc' is no DECIMAL(12,2)", '"12.34"'),
    ("a DECIMAL(12,2)", [(D("NaN"),)], WrongType, "is no DECIMAL(12,2)", "DOUBLE for NaN"),
    ("a DECIMAL(12,2)", [(True,)], WrongType, "True is no DECIMAL(12,2)", "give a number"),
    # times
    ("a DATE", [("31.1.2026",)], WrongType, "'31.1.2026' is no DATE", '"2026-01-31"'),
    ("a DATE", [(5,)], WrongType, "5 is no DATE", "datetime.date"),
    (
        "a DATE",
        [(dt.datetime(2026, 1, 31, 12),)],
        WrongType,
        "2026-01-31 12:00:00 has a time of day",
        "TIMESTAMP",
    ),
    ("a TIMESTAMP", [("soon",)], WrongType, "'soon' is no TIMESTAMP", "12:00:00"),
    ("a TIMESTAMP", [(5,)], WrongType, "5 is no TIMESTAMP", "say which unit"),
    ("a TIMESTAMP", [("2026-01-31 12:00:00.1234567",)], WrongType, "finer than a microsecond", "six digits"),
    # text and bytes
    ("a STRING", [(5,)], WrongType, "5 is no STRING", "give a str"),
    ("a STRING", [(b"x",)], WrongType, "b'x' is no STRING", "decode it first"),
    ("a STRING", [(Symbol("x"),)], WrongType, "Symbol('x') is no STRING", "give a str"),
    ("a STRING", [("\ud800",)], WrongType, "is not valid Unicode", "BINARY"),
    ("a BINARY", [("x",)], WrongType, "'x' is no BINARY", "encode it first"),
    ("a SYMBOL", [(5,)], WrongType, "5 is no SYMBOL", "or a Symbol"),
    ("a ID", [(5,)], WrongType, "5 is no ID", "give an Id"),
    ("a ANY", [(2**63,)], WrongType, "outside the range of 64-bit integers", "DECIMAL"),
    ("a ANY", [(object,)], WrongType, "is no value of ANY", "register_atom"),
    ("a TestKey", [("x",)], WrongType, "'x' is no TestKey", "give a UUID"),
    # nested
    (
        "a ARRAY<INT>",
        [([1],), ([1, "x"],)],
        WrongType,
        "column \"a\", rows[1]: 'x' is no INTEGER",
        "give an int",
    ),
    ("a ARRAY<INT>", [("x",)], WrongType, "'x' is no ARRAY<INTEGER>", "give a list"),
    ("a STRUCT<x: INT>", [({"y": 1},)], WrongType, "has no field 'y'", "its fields are x"),
    ("a STRUCT<x: INT>", [((1, 2),)], WrongType, "(1, 2) is no STRUCT<x: INTEGER>", "give a dict with x"),
]


@pytest.mark.parametrize(("sql", "rows", "error", "message", "hint"), ROWS)
@pytest.mark.parametrize("reader", [ingest, lambda schema, rows: encode_rows(schema, rows, Dictionary())])
def test_mistakes_in_rows(sql, rows, error, message, hint, reader):
    with pytest.raises(error) as raised:
        reader(Schema.parse(sql), rows)
    assert message in raised.value.message
    assert hint in raised.value.hint


LEAST = pa.array([0, -(2**63)], pa.timestamp("us", "UTC"))
ARROW = [
    ("a TINYINT", pa.array([1, 300]), WrongType, 'column "a", rows[1]: 300 is outside', "-128 to 127"),
    ("a INT", pa.array(["1"]), WrongType, "'1' is no INTEGER", "give an int"),
    ("a INT", pa.array([True]), WrongType, "True is no INTEGER", "give an int"),
    (
        "a DOUBLE",
        pa.array([1, 2**53 + 1]),
        WrongType,
        "rows[1]: 9007199254740993 has no exact DOUBLE",
        "BIGINT",
    ),
    ("a FLOAT", pa.array([1e300]), WrongType, "outside the range of FLOAT", "DOUBLE"),
    ("a DECIMAL(12,2)", pa.array([0.5, 9.555]), WrongType, "rows[1]: 9.555 has more than 2 digits", "round"),
    ("a DECIMAL(12,2)", pa.array(["1", "x"]), WrongType, "rows[1]: 'x' is no DECIMAL(12,2)", "12.34"),
    (
        "a DECIMAL(4,2)",
        pa.array([100]),
        WrongType,
        "100 is outside the range of DECIMAL(4,2)",
        "2 digits before",
    ),
    ("a DATE", pa.array([5]), WrongType, "5 is no DATE", "datetime.date"),
    ("a DATE", pa.array([dt.datetime(2026, 1, 1, 5)]), WrongType, "has a time of day", "TIMESTAMP"),
    ("a TIMESTAMP", pa.array(["x"]), WrongType, "'x' is no TIMESTAMP", "12:00:00"),
    ("a TIMESTAMP", LEAST, WrongType, 'column "a", rows[1]: the least timestamp of all', "stands for NULL"),
    ("a STRING", pa.array([b"x"]), WrongType, "b'x' is no STRING", "decode it first"),
    (
        "a INT NOT NULL",
        pa.array([1, None], pa.int32()),
        NullNotAllowed,
        "rows[1] has NULL",
        "give it a value",
    ),
    ("a ANY", pa.array([pack(1), b"junk"]), WrongType, "rows[1]: not the encoding of a value", "codes.pack"),
    ("a ARRAY<INT>", pa.array([[1], ["x"]][1:]), WrongType, "rows[0]: 'x' is no INTEGER", "give an int"),
    ("a STRUCT<x: INT>", pa.array([{"y": 1}]), UnknownName, 'field of column "a" "y"', "available: x"),
    (
        "a STRUCT<x: INT NOT NULL>",
        pa.array([None, {"x": 1}, {"x": None}]),
        NullNotAllowed,
        '"a.x" is NOT NULL, and rows[2]',
        "give it",
    ),
    (
        "a ARRAY<STRUCT<x: INT NOT NULL>>",
        pa.array([[], [{"x": 1}, {"x": None}]]),
        NullNotAllowed,
        "rows[1] has NULL",
        "give it",
    ),
]


@pytest.mark.parametrize(("sql", "column", "error", "message", "hint"), ARROW)
def test_mistakes_in_arrow(sql, column, error, message, hint):
    schema = Schema.parse(sql)
    table = pa.table({"a": column})
    with pytest.raises(error) as raised:
        encode(schema, table, Dictionary())
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_rows_count_from_the_start_of_a_chunked_column():
    table = pa.concat_tables([pa.table({"a": pa.array([1, 2])}), pa.table({"a": pa.array([300])})])
    with pytest.raises(WrongType, match=r"rows\[2\]: 300"):
        encode(Schema.parse("a TINYINT"), table, Dictionary())
    chunked = pa.chunked_array([LEAST[:1], LEAST[:1], LEAST[1:]])
    with pytest.raises(WrongType, match=r"rows\[2\]: a TIMESTAMP has"):
        encode(Schema.parse("a TIMESTAMP"), pa.table({"a": chunked}), Dictionary())


def test_unknown_columns_of_tables():
    with pytest.raises(UnknownName, match='did you mean "owner"'):
        ingest(Schema.parse("owner STRING"), pa.table({"Owner": ["a"]}))


PAIRS = [
    ([(1,)], WrongArity, "rows[0] is (1,), which is no pair of a row and a weight", "how often"),
    ([((1,), 1, 1)], WrongArity, "no pair", "how often"),
    ([((1,), "x")], WrongType, "column \"_weight\", rows[0]: 'x' is no BIGINT", "give an int"),
    ([((1,), True)], WrongType, "True is no BIGINT", "give an int"),
    ([((1,), 2**63)], WrongType, "outside the range of BIGINT", "DECIMAL"),
    ([((1,), None)], NullNotAllowed, 'column "_weight" is NOT NULL', "give it a value"),
    ([((1, 2), 1)], WrongArity, "rows[0] has 2 values, not 1", "the columns are a"),
]


@pytest.mark.parametrize(("pairs", "error", "message", "hint"), PAIRS)
@pytest.mark.parametrize("reader", [ingest_weighted, lambda schema, rows: encode_pairs(schema, rows, Dictionary())])
def test_mistakes_in_pairs(pairs, error, message, hint, reader):
    with pytest.raises(error) as raised:
        reader(Schema.parse("a INT"), pairs)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_mistake_in_few_rows_leaves_no_entry():
    d = Dictionary()
    with pytest.raises(WrongType):
        encode_rows(Schema.parse("a STRING, b INT"), [("new", 1), ("newer", "x")], d)
    assert len(d) == 0
    assert decode_rows(Schema.parse("a STRING"), encode_rows(Schema.parse("a STRING"), [("x",)], d)[:, :1], d) == [
        ("x",)
    ]
