"""Sources that are tables of a catalog, on a session without Iceberg: plain tables, mistakes, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EverviewError, MissingRuntime
from everview.spark import Pipeline
from everview.spark.sinks import sink_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_is_read_as_it_is_at_every_refresh(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS account_of_tables")
    spark.sql("CREATE TABLE account_of_tables USING parquet AS SELECT 1L AS id, 'Ada' AS owner, 5L AS amount")
    with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
        p.source("account", table="account_of_tables", changes="snapshot", key="id", columns=["id", "owner"])
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT owner, COUNT(*) AS many FROM account GROUP BY owner")
        p.refresh()
        spark.sql("INSERT INTO account_of_tables VALUES (2, 'Ada', 7)")
        p.refresh()
        assert [tuple(row) for row in p.view("v").collect()] == [("Ada", 2)]
        assert p.table("account").columns == ["id", "owner"]
    spark.sql("DROP TABLE account_of_tables")


def test_a_row_that_is_there_twice_is_shown_and_verified_twice(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
        p.source("t", spark.createDataFrame([("a", 1), ("a", 1), ("b", 2)], "k STRING, x BIGINT"))
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS total FROM t GROUP BY k")
        p.refresh()
        assert sorted(tuple(row) for row in p.table("t").collect()) == [("a", 1), ("a", 1), ("b", 2)]
        assert p.verify()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"format": "iceberg", "changes": "cdc", "stream": True}, "are no stream of Spark"),
        ({"format": "iceberg", "changes": "cdc", "options": {"branch": "b"}}, "the option branch says nothing"),
        ({"format": "iceberg", "changes": "cdc", "options": {"changes.by": "x"}}, 'changes.by cannot be "x"'),
        ({"options": {"changes.by": "log"}}, 'changes.by cannot be "log"'),
        ({"format": "orc"}, 'a table cannot have format "orc"'),
        ({"schema": "id BIGINT"}, "a table knows its columns"),
        ({"path": "p"}, "has a table and a path"),
        ({"format": "iceberg"}, 'no catalog "nowhere", in which nowhere.bank.t should be'),
    ],
)
def test_mistakes(spark: SparkSession, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with Pipeline(spark, tmp_path / "state") as p, pytest.raises(EverviewError, match=said):
        p.source("t", table="nowhere.bank.t", **given)


def test_a_session_without_the_jar_names_it(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.jarless", "org.apache.iceberg.spark.SparkCatalog")
    with (
        Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p,
        pytest.raises(MissingRuntime, match="has no Iceberg") as told,
    ):
        p.source("t", table="jarless.bank.t", format="iceberg", changes="cdc")
    assert "org.apache.iceberg:iceberg-spark-runtime-" in str(told.value)
    with pytest.raises(EverviewError, match="a table, not a path"):
        sink_of("v", path="p", format="iceberg")
