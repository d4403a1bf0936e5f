"""A table of expressions that DuckDB reads as we do, on the same rows."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from scalars.written import COLUMNS, SCHEMA, evaluated, expression

# What DuckDB reads, and what we read where that is another text.
AGREED = [
    ("i + 1",),
    ("i + l",),
    ("m + m",),
    ("m * m",),
    ("i % 3",),
    ("-m",),
    ("abs(m)",),
    ("i / 4",),
    ("greatest(i, l)",),
    ("least(m, i)",),
    ("i & 3",),
    ("upper(t)",),
    ("lower(s)",),
    ("length(s)",),
    ("trim(s)",),
    ("substring(s, 2, 3)",),
    ("left(s, 2)",),
    ("right(s, 2)",),
    ("replace(s, 'a', 'zz')",),
    ("concat_ws('-', s, t)",),
    ("s || t", "concat(s, t)"),
    ("instr(s, t)",),
    ("reverse(s)",),
    ("repeat(s, 2)",),
    ("starts_with(s, 'a')",),
    ("contains(s, t)",),
    ("s LIKE '%l%'", "like(s, '%l%')"),
    ("s LIKE '_b_'", "like(s, '_b_')"),
    ("md5(s)",),
    ("sha256(s)", "sha2(s, 256)"),
    ("year(dt)",),
    ("quarter(dt)",),
    ("month(dt)",),
    ("day(dt)",),
    ("dayofyear(dt)",),
    ("weekofyear(dt)",),
    ("last_day(dt)",),
    ("(dt + INTERVAL 1 MONTH)::DATE", "dt + interval(1, 'month')"),
    ("dt + 40", "date_add(dt, 40)"),
    ("date_trunc('month', dt)::DATE", "trunc(dt, 'month')"),
    ("hour(ts)",),
    ("minute(ts)",),
    ("coalesce(n, i, 0)",),
    ("nullif(i, 1)",),
    ("i IN (1, 4, NULL)", "in_(i, 1, 4, null)"),
    ("i IS NOT DISTINCT FROM n", "null_safe_equal(i, n)"),
    ("CASE WHEN i > 3 THEN 'big' WHEN i > 0 THEN 'small' END", "case(i > 3, 'big', i > 0, 'small')"),
    ("b AND i > 0", "and_(b, i > 0)"),
    ("b OR i > 0", "or_(b, i > 0)"),
    ("d = d",),
    ("d > 1.5",),
    ("s < t",),
    ("dt < ts::DATE", "dt < cast(ts, 'date')"),
    ("CAST(b AS INT)", "cast(b, 'int')"),
    ("CAST(m AS DOUBLE)", "cast(m, 'double')"),
    ("CAST(i AS VARCHAR)", "cast(i, 'string')"),
    ("CAST(dt AS VARCHAR)", "cast(dt, 'string')"),
    ("TRY_CAST(s AS INT)", "try_cast(s, 'int')"),
    ("round(m, 1)",),
]


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    kept = [(name, column) for name, column in zip(SCHEMA.names, COLUMNS, strict=True)]
    made.register("written", pa.table([c for _, c in kept], names=[n for n, _ in kept]))
    return made


@pytest.mark.parametrize("pair", AGREED, ids=lambda pair: pair[0])
def test_duckdb_agrees(database: duckdb.DuckDBPyConnection, pair: tuple[str, ...]) -> None:
    theirs = [row[0] for row in database.execute(f"SELECT {pair[0]} FROM written").fetchall()]
    ours = evaluated(expression(pair[-1]))
    assert [comparable(v) for v in ours] == [comparable(v) for v in theirs]
