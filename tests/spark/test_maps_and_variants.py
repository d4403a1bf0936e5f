"""Maps and variants in pipelines: as columns of sources, in views, and as Spark reads views back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = (
    '{"id": 1, "m": {"b": 1, "a": 2}, "v": {"x": [1, 2.50]}}',
    '{"id": 2, "m": null, "v": null}',
    '{"id": 3, "m": {}, "v": "text"}',
)
VIEW = """
    CREATE MATERIALIZED VIEW w AS
    SELECT id, m, v, m['a'] AS a, v:x[0]::int AS x, map_keys(m) AS k, to_json(v) AS t FROM s;
    CREATE MATERIALIZED VIEW grouped AS SELECT m, count(*) AS n FROM s GROUP BY m;
"""


def shown(value: Any) -> Any:
    return value.toPython() if type(value).__name__ == "VariantVal" else value


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_maps_and_variants_come_and_go(
    spark: SparkSession, tmp_path: Path, place: Literal["driver", "cluster"]
) -> None:
    arriving = tmp_path / "in"
    arriving.mkdir()
    (arriving / "0.json").write_text("\n".join(LINES) + "\n")
    frame = spark.readStream.schema("id BIGINT, m MAP<STRING, INT>, v VARIANT").json(str(arriving))
    with Pipeline(spark, tmp_path / "state", place=place, bad_rows="fail") as pipeline:
        pipeline.source("s", frame)
        pipeline.sql(VIEW)
        pipeline.start(trigger={"availableNow": True}).awaitTermination()
        for read in (pipeline.view("w"), pipeline.changes("w").drop("_weight")):
            assert dict(read.dtypes)["m"] == "map<string,int>"
            assert dict(read.dtypes)["v"] == "variant"
            rows = {row["id"]: [*map(shown, row[1:7])] for row in read.collect()}
            assert rows == {
                1: [{"b": 1, "a": 2}, {"x": [1, 2.5]}, 2, 1, ["b", "a"], '{"x":[1,2.5]}'],
                2: [None, None, None, None, None, "null"],  # a null of a variant, not NULL
                3: [{}, "text", None, None, [], '"text"'],
            }
        assert {row["id"]: shown(row["v"]) for row in pipeline.table("s").collect()}[3] == "text"
        assert [row["n"] for row in pipeline.view("grouped").collect()] == [1, 1, 1]
        assert pipeline.verify("grouped")


def test_a_state_that_holds_maps_as_entries_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT id, {} AS n FROM s"
    entries = spark.sql(
        "SELECT * FROM VALUES (1L, array(named_struct('key', 'a', 'value', 1), named_struct('key', 'b', 'value', 2))), "
        "(2L, array()), (3L, NULL) AS s(id, m)"
    )
    with Pipeline(spark, tmp_path, place="driver", shards=2) as pipeline:
        pipeline.source("s", entries, key="id", changes="upsert")
        pipeline.sql(f"CREATE MATERIALIZED VIEW w AS {query.format('size(m)')}")
        pipeline.refresh()
    maps = spark.sql("SELECT * FROM VALUES (4L, map('c', 9)), (5L, NULL) AS s(id, m)")
    with Pipeline(spark, tmp_path, place="driver") as pipeline:
        pipeline.source("s", maps, key="id", changes="upsert")
        pipeline.sql(f"CREATE MATERIALIZED VIEW w AS {query.format('cardinality(map_keys(m))')}")
        pipeline.refresh()
        assert {row["id"]: row["m"] for row in pipeline.table("s").collect()} == {
            1: {"a": 1, "b": 2},
            2: {},
            3: None,
            4: {"c": 9},
            5: None,
        }
        pipeline.verify().raise_if_different()
