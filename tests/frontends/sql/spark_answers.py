"""Queries and what Spark 4 answered to them, over the rows below and over none.

``python tests/frontends/sql/spark_answers.py`` asks the installed Spark anew and writes ``spark_answers.json``. An
answer is the types and rows, or an error: Spark refuses the query, and so should we.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ANSWERS = HERE / "spark_answers.json"
NAMES = ("full", "empty")

TABLES = {
    "t": "k INT, v INT, d DECIMAL(4,2), f DOUBLE, s STRING, bo BOOLEAN, b TINYINT, dt DATE, ts TIMESTAMP",
    "g": "a INT, b INT",
    "ed": "p INT, q INT",
}


def _t(k: int, v: Any, d: Any, f: Any, s: Any, bo: Any, b: Any, day: Any, hours: Any) -> tuple[Any, ...]:
    amount = None if d is None else decimal.Decimal(d)
    date = None if day is None else dt.date(2024, *day)
    return k, v, amount, f, s, bo, b, date, None if hours is None else dt.datetime(2024, 1, *hours)


ROWS: dict[str, list[tuple[Any, ...]]] = {
    "t": [
        _t(1, 3, "1.10", 1.5, "a", True, 1, (1, 1), (1, 10)),
        _t(1, 1, "2.25", 2.5, "b", False, 2, (1, 2), (1, 11)),
        _t(1, 2, None, 2.0, "a", None, 3, (1, 3), (1, 12)),
        _t(1, None, "7.77", None, None, True, None, None, None),
        _t(2, None, None, None, None, None, None, None, None),
        _t(3, 10, "10.00", 10.0, "z", True, 10, (1, 10), (2, 10)),
        _t(4, 1, "1.01", 0.1, "q", True, 4, (2, 1), (3, 10)),
        _t(4, 2, "1.02", 0.2, "r", False, 4, (2, 2), (4, 10)),
        _t(4, 3, "1.03", 0.3, "s", False, 4, (2, 3), (5, 10)),
        _t(4, 4, "1.04", 0.4, "tt", False, 4, (2, 4), (6, 10)),
        _t(5, 7, "1.00", 7.0, "x", None, 5, (3, 1), (7, 10)),
        _t(5, 7, "3.00", 7.0, "x", None, 5, (3, 1), (7, 10)),
        _t(5, 8, "2.00", 8.0, "y", None, 5, (3, 1), (7, 10)),
    ],
    "g": [(1, 1), (1, 2), (2, 2), (2, None), (None, 3), (3, 1), (5, 5)],
    "ed": [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)],
}


def queries() -> Iterator[str]:
    for line in (HERE / "spark_queries.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line


def plain(value: Any) -> Any:
    """A value as JSON has it; floats to twelve digits, for sums of floats differ in the last ones."""
    match value:
        case float():
            return "NaN" if value != value else float(f"{value:.12g}")
        case decimal.Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat()
        case dt.date():
            return value.isoformat()
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def sorted_rows(rows: Any) -> list[Any]:
    return sorted((plain(tuple(row)) for row in rows), key=json.dumps)


def _record() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.sql.shuffle.partitions", 1).config("spark.ui.enabled", "false").getOrCreate()
    found: dict[str, Any] = {text: {} for text in queries()}
    for name in NAMES:
        for table, columns in TABLES.items():
            rows = ROWS[table] if name == "full" else []
            spark.createDataFrame(rows, columns).coalesce(1).createOrReplaceTempView(table)
        for text, answers in found.items():
            answers[name] = _answer(spark, text)
    spark.stop()
    lines = (f"{json.dumps(text)}: {json.dumps(answer)}" for text, answer in found.items())
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _answer(spark: Any, text: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(text)
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        return {"types": types, "rows": sorted_rows(frame.collect())}
    except PySparkException as error:
        return {"error": str(error).splitlines()[0][:120] if str(error) else type(error).__name__}


if __name__ == "__main__":
    _record()
