"""SQL in a pipeline: the same views as in a database, computed again by plain Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev
from everview.errors import EverviewError, PipelineError
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

SALE = "id BIGINT, shop STRING, amount DECIMAL(10,2), at TIMESTAMP"
VIEWS = """
    CREATE MATERIALIZED VIEW by_shop AS
      SELECT s.shop, t.city, COUNT(*) AS n, SUM(s.amount) AS total, AVG(s.amount) AS mean
      FROM sale s LEFT JOIN town t ON t.shop = s.shop GROUP BY s.shop, t.city;
    CREATE TEMPORARY VIEW large AS SELECT * FROM sale WHERE amount > 10;
    CREATE MATERIALIZED VIEW large_by_day AS
      SELECT CAST(at AS DATE) AS day, COUNT(*) AS n FROM large GROUP BY CAST(at AS DATE);
    CREATE MATERIALIZED VIEW rich AS SELECT shop FROM by_shop WHERE total > (SELECT AVG(total) FROM by_shop);
    CREATE MATERIALIZED VIEW best AS SELECT id, amount FROM sale ORDER BY amount DESC, id LIMIT 3;
    CREATE MATERIALIZED VIEW numbers AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v(n, name);
"""


def sales(spark: SparkSession, rows: list[tuple[int, str, str, str]]) -> DataFrame:
    text = ", ".join(f"({i}L, '{shop}', {amount}BD, TIMESTAMP '{at}')" for i, shop, amount, at in rows)
    return spark.sql(f"SELECT * FROM VALUES {text} AS t(id, shop, amount, at)")


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_views_in_sql(spark: SparkSession, tmp_path: Path, place: str) -> None:
    first = sales(spark, [(1, "A", "4.50", "2026-01-01 10:00:00"), (2, "A", "20.00", "2026-01-02 11:00:00")])
    town = spark.createDataFrame([("A", "Oslo"), ("C", "Rome")], "shop STRING, city STRING")
    with Pipeline(spark, tmp_path / "state", shards=4, place=place) as p:
        p.source("sale", first, key="id", changes="upsert")
        p.source("town", town, key="shop", changes="upsert")
        p.sql(VIEWS)
        p.refresh()
        assert p.verify().raise_if_different()
        p.refresh(
            sale=sales(
                spark,
                [(2, "B", "30.00", "2026-01-02 11:00:00"), (3, "C", "11.00", "2026-01-02 12:00:00")],
            )
        )
        assert p.verify().raise_if_different()
        assert {tuple(row) for row in p.view("rich").collect()} == {("B",)}
        assert {tuple(row) for row in p.view("numbers").collect()} == {(1, "one"), (2, "two")}


def test_sketches_are_verified_by_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    """Their format is our own, and so are estimates: Spark is asked about neither, nor about views that read them."""
    text = "CREATE MATERIALIZED VIEW {} AS SELECT shop, {} AS s FROM {} GROUP BY shop"
    views = {
        "made": ("hll_sketch_agg(id)", "sale"),
        "joined": ("hll_union_agg(s)", "made"),
        "ranked": ("kll_sketch_agg_bigint(id)", "sale"),
        "exact": ("theta_sketch_estimate(theta_sketch_agg(id))", "sale"),
    }
    first = sales(spark, [(id, "AB"[id % 2], "4.50", "2026-01-01 10:00:00") for id in range(10)])
    with Pipeline(spark, tmp_path / "state", shards=2, place="cluster") as p:
        p.source("sale", first, key="id", changes="upsert")
        p.sql("; ".join(text.format(name, *parts) for name, parts in views.items()))
        p.refresh()
        p.refresh(sale=sales(spark, [(1, "A", "4.50", "2026-01-01 10:00:00")]))
        assert p.verify().raise_if_different()
        assert {tuple(row) for row in p.view("exact").collect()} == {("A", 6), ("B", 4)}
        assert {tuple(row) for row in p.view("made").collect()} == {tuple(row) for row in p.view("joined").collect()}


def test_recursion_is_verified_by_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    edges = spark.createDataFrame([(1, 2), (2, 3), (3, 1)], "a BIGINT, b BIGINT")
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        p.source("edge", edges)
        p.sql(
            "CREATE MATERIALIZED VIEW path AS WITH RECURSIVE p(a, b) AS "
            "(SELECT a, b FROM edge UNION SELECT p.a, e.b FROM p JOIN edge e ON p.b = e.a) SELECT * FROM p"
        )
        p.refresh()
        assert p.view("path").count() == 9
        assert p.verify().raise_if_different()


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state") as p:
        p.source("sale", sales(spark, [(1, "A", "4.50", "2026-01-01 10:00:00")]), key="id", changes="upsert")
        with pytest.raises(PipelineError, match="takes views, not CREATE"):
            p.sql("CREATE TABLE x (a INT)")
        with pytest.raises(EverviewError, match="shpo"):
            p.sql("CREATE MATERIALIZED VIEW v AS SELECT shpo FROM sale")
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT shop FROM sale")
        with pytest.raises(PipelineError, match="already"):
            p.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM sale")


def test_python_functions_run_on_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    @ev.function("DOUBLE", name="doubled_on_spark")
    def doubled(x: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        import pyarrow.compute as pc

        return pc.multiply(x, 2.0)

    @ev.aggregate("DOUBLE", name="range_on_spark", by_group=True)
    def spread(x: list[float]) -> float:  # pyright: ignore[reportUnusedFunction]
        return max(x) - min(x)

    @ev.aggregate("BIGINT", name="length_on_spark")
    def length(x: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.list_value_length(x).cast(pa.int64())

    kind = "id BIGINT, place STRING, x DOUBLE"
    first = spark.createDataFrame([(1, "A", 1.0), (2, "A", 4.0), (3, "B", None)], kind)
    with Pipeline(spark, tmp_path / "state", shards=2, place="cluster") as p:
        p.source("reading", first, key="id", changes="upsert")
        p.sql(
            "CREATE MATERIALIZED VIEW twice AS SELECT id, doubled_on_spark(x) AS y FROM reading;"
            "CREATE MATERIALIZED VIEW ranges AS SELECT place, range_on_spark(x) AS r,"
            " length_on_spark(DISTINCT x) FILTER (WHERE x > 1) AS n FROM reading GROUP BY place;"
            "CREATE MATERIALIZED VIEW far AS SELECT place FROM ranges WHERE r > 2;"
        )
        p.refresh()
        assert {tuple(row) for row in p.view("ranges").collect()} == {("A", 3.0, 1), ("B", None, None)}
        assert p.verify().raise_if_different()
        p.refresh(reading=spark.createDataFrame([(1, "B", 7.0), (4, "B", 9.5)], kind))
        assert {tuple(row) for row in p.view("twice").collect()} == {(1, 14.0), (2, 8.0), (3, None), (4, 19.0)}
        assert {tuple(row) for row in p.view("ranges").collect()} == {("A", 0.0, 1), ("B", 2.5, 2)}
        assert {row.place for row in p.view("far").collect()} == {"B"}
        assert p.verify().raise_if_different()
