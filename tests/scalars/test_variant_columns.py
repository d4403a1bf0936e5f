"""Columns that become variants by column have the bytes that each value has alone."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest

from everview.scalars.functions.variant_columns import plain_variants
from everview.types import Variant, parse_type
from everview.types.variants import SingleFloat

EDGES = [edge for size in (1, 2, 4, 8) for edge in (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1)]
COLUMNS: dict[str, list[Any]] = {
    "BIGINT": [None, 0, *EDGES, *(edge + step for edge in EDGES[:-2] for step in (-1, 1))],
    "TINYINT": [None, 0, -128, 127],
    "INT": [None, 5, 1 << 30],
    "DOUBLE": [None, 0.0, -0.0, math.nan, math.inf, 1.5],
    "FLOAT": [None, 0.5, math.nan, -math.inf],
    "STRING": [None, "", "a", "é" * 31, "é" * 32, "x" * 63, "x" * 64, "x" * 1000],
    "BINARY": [None, b"", b"a", b"x" * 100],
    "BOOLEAN": [None, True, False],
    "DATE": [None, dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIMESTAMP": [None, dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 1, 1, 1, 1, 1, 7, tzinfo=dt.UTC)],
    "TIMESTAMP_NTZ": [None, dt.datetime(1969, 1, 1)],
    "DECIMAL(20, 2)": [None, decimal.Decimal("1.50"), decimal.Decimal("-123456789012.34")],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_bytes_are_those_of_each_value(name: str) -> None:
    type_, values = parse_type(name), COLUMNS[name]
    held = [SingleFloat(v) if name == "FLOAT" and v is not None else v for v in values]
    expected = [None if v is None else Variant.of(v).raw for v in held]
    column = pa.array(values, type_.arrow)
    for start in range(len(values) + 1):
        made = plain_variants(column.slice(start), type_)
        assert made is not None
        assert made.to_pylist() == expected[start:]
