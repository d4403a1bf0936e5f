"""States that are large for a driver: tasks write values and changes, and read them; the driver has references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.runtimes.embedded.interned import chunks_of, is_ordered
from everview.runtimes.spark import engine
from everview.spark import Pipeline, delivery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 60_000  # with a text each: more than tasks hand to the driver


def build(spark: SparkSession, path: Path, place: Any) -> Pipeline:
    p = Pipeline(spark, path / "state", place=place, shards=4)
    frame = spark.range(ROWS).selectExpr("id", "concat('name ', id) AS name", "id % 5 AS g")
    p.source("t", frame, key="id", changes="upsert", keep=True)
    p.sql("CREATE MATERIALIZED VIEW groups AS SELECT g, count(*) AS n FROM t GROUP BY g")
    p.sql("CREATE MATERIALIZED VIEW names AS SELECT id, upper(name) AS loud FROM t")
    p.sink("names", path=path / "sink")
    return p


def test_the_driver_has_references(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_BYTES", 10_000)
    monkeypatch.setattr(delivery, "FEW", 100)
    with build(spark, tmp_path, "cluster") as p:
        p.refresh()
        core = p._state.engine()
        assert core.run.dictionary.nbytes < 1 << 20
        chunks = [chunk for of_shard in chunks_of(core.store.manifest).values() for chunk in of_shard]
        assert sum(chunk[0].ref.rows for chunk in chunks) == 2 * ROWS
        assert all(map(is_ordered, chunks))
        written = spark.read.parquet(str(tmp_path / "sink"))
        assert written.filter("loud = concat('NAME ', id) AND _weight = 1").count() == ROWS == written.count()
        assert p.view("names").filter("loud = concat('NAME ', id)").count() == ROWS
        assert p.table("t").filter("name = concat('name ', id) AND g = id % 5").count() == ROWS
    with build(spark, tmp_path, "driver") as p:  # which reads what it needs
        more = spark.range(3).selectExpr("id", "'another' AS name", "9L AS g")
        p.refresh(t=more)
        assert p.epoch == 2
        assert {tuple(row) for row in p.view("groups").collect() if row["g"] == 9} == {(9, 3)}
        last = spark.read.parquet(str(tmp_path / "sink")).filter("epoch = 2")
        expected = {(n, text, w) for n in range(3) for text, w in ((f"NAME {n}", -1), ("ANOTHER", 1))}
        assert {(row["id"], row["loud"], row["_weight"]) for row in last.collect()} == expected
        p.vacuum()
        assert p.verify()
        assert p.table("t").filter("name = 'another'").count() == 3
