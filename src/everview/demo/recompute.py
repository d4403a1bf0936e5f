"""The demo's views computed from scratch with plain Spark SQL, as one would without Everview.

The tables are the change files brought up to date and written as parquet beforehand; that is not part of the time a
recomputation takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from everview.demo.bank import FEE, TOP
from everview.demo.company import FILES, KEYS, LARGE, ROWS
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Counter[tuple[Any, ...]]

_SENT = "SELECT src, currency, CAST(SUM(amount) AS DECIMAL(20,2)) AS total FROM {transfer} GROUP BY src, currency"

_EXPOSURE = f"""
    WITH sent AS ({_SENT}),
    by_country AS (
        SELECT a.country, s.currency, CAST(SUM(s.total) AS DECIMAL(20,2)) AS total
        FROM sent s JOIN {{account}} a ON a.id = s.src GROUP BY a.country, s.currency
    )
    SELECT b.country, SUM(ROUND(b.total * r.to_eur, 2)) AS eur
    FROM by_country b JOIN {{rate}} r ON r.currency = b.currency GROUP BY b.country
"""

_TOP_SENDERS = f"""
    WITH sent AS ({_SENT})
    SELECT s.src, SUM(ROUND(s.total * r.to_eur, 2)) AS eur
    FROM sent s JOIN {{rate}} r ON r.currency = s.currency GROUP BY s.src ORDER BY eur DESC, s.src LIMIT {TOP}
"""

_INVOICES = f"""
    WITH quoted AS (
        SELECT currency, to_eur, since, LEAD(since) OVER (PARTITION BY currency ORDER BY since) AS until FROM {{quote}}
    )
    SELECT t.src, SUM(ROUND(t.amount * q.to_eur * {FEE}, 2)) AS eur
    FROM {{transfer}} t JOIN quoted q
    ON q.currency = t.currency AND t.at >= q.since AND (q.until IS NULL OR t.at < q.until) GROUP BY t.src
"""

_STEPS = f"SELECT DISTINCT src, dst FROM {{transfer}} WHERE amount >= {LARGE}"
_FURTHER = "SELECT DISTINCT s.dst AS account FROM {new} n JOIN {steps} s ON s.src = n.account"

_RINGS = f"""
    WITH step AS ({_STEPS})
    SELECT x.src AS a, y.src AS b, z.src AS c
    FROM step x JOIN step y ON y.src = x.dst JOIN step z ON z.src = y.dst AND z.dst = x.src
    WHERE x.src < y.src AND x.src < z.src AND y.src <> z.src
"""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The rows of every view, and the seconds that each took."""

    rows: dict[str, Rows]
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def bring_up_to_date(spark: SparkSession, directory: Path, tables: Path) -> None:
    """Write the tables that the change files amount to as parquet: the last row of every key that was not deleted."""
    for name, columns in FILES.items():
        changes = spark.read.schema(columns).parquet((directory / name).as_uri())
        last = f"ROW_NUMBER() OVER (PARTITION BY {KEYS[name]} ORDER BY seq DESC) = 1"
        alive = "WHERE op <> 'd'" if "op" in changes.columns else ""
        chosen = ", ".join(Schema.parse(ROWS[name]).names)
        table = spark.sql(f"SELECT {chosen} FROM (SELECT * FROM {{changes}} QUALIFY {last}) {alive}", changes=changes)
        table.write.mode("overwrite").parquet((tables / name).as_uri())


def recompute(spark: SparkSession, tables: Path) -> Recomputed:
    """Compute all five views, one after the other."""
    frames: dict[str, Any] = {name: spark.read.parquet((tables / name).as_uri()) for name in FILES}
    views: dict[str, Callable[[], Rows]] = {
        "exposure": lambda: rows_of(spark.sql(_EXPOSURE, **frames)),
        "top_senders": lambda: rows_of(spark.sql(_TOP_SENDERS, **frames)),
        "invoices": lambda: rows_of(spark.sql(_INVOICES, **frames)),
        "tainted": lambda: _tainted(spark, frames),
        "rings": lambda: rows_of(spark.sql(_RINGS, **frames)),
    }
    rows: dict[str, Rows] = {}
    seconds: dict[str, float] = {}
    for view, compute in views.items():
        started = perf_counter()
        rows[view] = compute()
        seconds[view] = perf_counter() - started
    return Recomputed(rows, seconds)


def rows_of(frame: DataFrame) -> Rows:
    """The rows of a frame with their counts; decimals by value."""
    return Counter(tuple(map(plain, row)) for row in frame.collect())


def plain(value: Any) -> Any:
    return value.normalize() if isinstance(value, Decimal) else value


def _tainted(spark: SparkSession, frames: dict[str, Any]) -> Rows:
    """Compute the tainted accounts by repeated joins with the rows that the last join found, until there are none."""
    steps = spark.sql(_STEPS, **frames).cache()
    reached = new = frames["sanction"].localCheckpoint()
    while not new.isEmpty():
        further = spark.sql(_FURTHER, new=new, steps=steps)
        new = further.join(reached, "account", "left_anti").localCheckpoint()
        reached = reached.unionAll(new)
    rows = rows_of(reached)
    steps.unpersist()
    return rows
