"""The views of the payments company, in SQL over whole tables, and the pipeline that keeps them.

- ``exposure``: what each country has sent, in euros (two joins and aggregates);
- ``top_senders``: the ten accounts that have sent most (top k);
- ``invoices``: what each account owes for its transfers, each at the quote in force at its time (as-of join);
- ``tainted``: the accounts that large transfers lead to from a sanctioned one (recursion);
- ``rings``: three accounts that large transfers lead round, the smallest first (multiway join).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everview.circuit import Circuit
from everview.demo.company import FILES, KEYS, LARGE, ROWS
from everview.spark.pipeline import Pipeline
from everview.spark.queries import Queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEWS: Final = ("exposure", "top_senders", "invoices", "tainted", "rings")
TOP: Final = 10
FEE: Final = "0.002"  # of what is sent

# Sums are cast to what their products with a rate hold exactly; a cast to cents rounds halves up.
SQL: Final = f"""\
CREATE VIEW sent AS
  SELECT src, currency, CAST(SUM(amount) AS DECIMAL(18,2)) AS total FROM transfer GROUP BY src, currency;

CREATE MATERIALIZED VIEW exposure AS
  WITH by_country AS (
    SELECT a.country, s.currency, CAST(SUM(s.total) AS DECIMAL(18,2)) AS total
    FROM sent s JOIN account a ON a.id = s.src GROUP BY a.country, s.currency)
  SELECT b.country, SUM(CAST(b.total * r.to_eur AS DECIMAL(18,2))) AS eur
  FROM by_country b JOIN rate r ON r.currency = b.currency GROUP BY b.country;

CREATE MATERIALIZED VIEW top_senders AS
  SELECT s.src, SUM(CAST(s.total * r.to_eur AS DECIMAL(18,2))) AS eur
  FROM sent s JOIN rate r ON r.currency = s.currency GROUP BY s.src ORDER BY eur DESC, src LIMIT {TOP};

CREATE MATERIALIZED VIEW invoices AS
  SELECT t.src, SUM(CAST(t.amount * q.to_eur * {FEE} AS DECIMAL(18,2))) AS eur
  FROM transfer t ASOF JOIN quote q ON q.currency = t.currency AND t.at >= q.since GROUP BY t.src;

CREATE VIEW large AS SELECT src, dst FROM transfer WHERE amount >= {LARGE};

CREATE MATERIALIZED VIEW tainted AS
  WITH RECURSIVE reached AS (
    SELECT account FROM sanction UNION SELECT l.dst FROM reached r JOIN large l ON l.src = r.account)
  SELECT account FROM reached;

CREATE MATERIALIZED VIEW rings AS
  WITH step AS (SELECT DISTINCT src, dst FROM large)
  SELECT x.src AS a, y.src AS b, z.src AS c
  FROM step x JOIN step y ON y.src = x.dst JOIN step z ON z.src = y.dst AND z.dst = x.src
  WHERE x.src < y.src AND x.src < z.src AND y.src <> z.src;
"""


def circuit() -> Circuit:
    """The five views over the five tables."""
    views = Circuit()
    for name, columns in ROWS.items():
        views.source(name, columns)
    Queries(views).define_sql(SQL, "spark")
    return views


def build(spark: SparkSession, directory: Path, state: Path, *, alerts: Path | None = None, **options: Any) -> Pipeline:
    """A pipeline over the change files of a directory, its state in another.

    ``alerts`` is where the changes of ``tainted`` go, for whoever has to act on them.
    """
    pipeline = Pipeline(spark, state, **options)
    for name, columns in FILES.items():
        style = "cdc" if "op STRING" in columns else "upsert"
        frame = files(spark, directory, name)
        pipeline.source(name, frame, key=KEYS[name], changes=style, order="seq", schema=ROWS[name])
    pipeline.sql(SQL)
    if alerts is not None:
        pipeline.sink("tainted", path=alerts)
    return pipeline


def files(spark: SparkSession, directory: Path, name: str) -> DataFrame:
    """The change files of a source, as they come."""
    return spark.readStream.schema(FILES[name]).parquet((directory / name).absolute().as_uri())
