"""Iceberg in and out: batch, stream and changes between snapshots; a view as a table by MERGE, each epoch once.

These tests and Delta Lake's have one process of their own, with the PySpark that both are made for; scripts/test.sh.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from everview.errors import EverviewError, SinkError, SourceError
from everview.spark import Pipeline
from everview.spark import iceberg as iceberg_sinks
from lake_session import LEFT_OPEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, LEFT_OPEN]
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner"
MERGE_ON_READ = ", ".join(f"'write.{act}.mode' = 'merge-on-read'" for act in ("delete", "update", "merge"))


def fresh() -> str:
    """A namespace of one test's own."""
    return f"ice.b{uuid4().hex[:8]}"


def table(lake: SparkSession, bank: str, properties: str = "") -> str:
    name = f"{bank}.account"
    more = f"TBLPROPERTIES ({properties})" if properties else ""
    lake.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, owner STRING, amount BIGINT) USING iceberg {more}")
    lake.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES (1L, 'Ada', 5L), (2L, 'Bob', 7L)")
    return name


def held(p: Pipeline) -> dict[str, int]:
    p.refresh()
    return {row.owner: row.total for row in p.view("v").collect()}


def delivered(lake: SparkSession, name: str) -> dict[str, int]:
    lake.catalog.refreshTable(name)  # another process may have written to it
    return {row.owner: row.total for row in lake.table(name).collect()}


def epochs(lake: SparkSession, name: str) -> list[str]:
    """The epochs that the summaries of a table's snapshots name."""
    lake.catalog.refreshTable(name)
    said = lake.sql(f"SELECT summary['everview-epoch'] FROM {name}.snapshots ORDER BY committed_at").collect()
    return [row[0] for row in said if row[0] is not None]


def followed(lake: SparkSession, root: Path, bank: str, **source: Any) -> Pipeline:
    """A pipeline from the changes of one table to another table."""
    p = Pipeline(lake, root / "state", place="driver", shards=2)
    p.source("account", table=f"{bank}.account", format="iceberg", changes="cdc", **({"key": "id"} | source))
    p.sql(VIEW)
    p.sink("v", table=f"{bank}.held", format="iceberg", mode="upsert", key="owner")
    return p


def test_changes_between_snapshots_and_a_table_that_is_the_view(lake: SparkSession, tmp_path: Path) -> None:
    bank = fresh()
    source, target = table(lake, bank), f"{bank}.held"
    with followed(lake, tmp_path, bank) as p:
        assert held(p) == delivered(lake, target) == {"Ada": 5, "Bob": 7}
        lake.sql(f"UPDATE {source} SET amount = 6 WHERE id = 1")
        lake.sql(f"DELETE FROM {source} WHERE id = 2")
        lake.sql(f"INSERT INTO {source} VALUES (3, 'Ada', 1), (4, 'Cyd', 2)")
        assert held(p) == delivered(lake, target) == {"Ada": 7, "Cyd": 2}
        assert p.progress[-1].rows_in == {"account": 5}  # the old and the new row of 1, and not the other rows of files
        before, epoch = p.epoch, p.epoch
        assert held(p) == {"Ada": 7, "Cyd": 2}
        assert p.epoch == before  # nothing has happened
        assert p.verify()
        assert "v" in str(
            p.plan_change("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT owner, 1L AS total FROM account")
        )
        assert epochs(lake, target) == ["1", "2"]
    (tmp_path / "state" / "delivered").write_text(str(epoch - 1))  # as if it had died before it noted that
    iceberg_sinks._seen.clear()
    with followed(lake, tmp_path, bank) as p:
        p.refresh()
        assert epochs(lake, target) == ["1", "2"]
        iceberg_sinks._seen.clear()
        changes = p._state.engine().run.view("v").contents()
        with pytest.raises(SinkError, match=f"has epoch {epoch}, and the state is at epoch 1"):
            iceberg_sinks.deliver_to_iceberg(lake, p._sinks[0], 1, changes, list, p._claims.state)
        snapshot = lake.sql(f"SELECT snapshot_id FROM {source}.history LIMIT 1").collect()[0][0]
        lake.sql(f"CALL ice.system.rollback_to_snapshot('{source.removeprefix('ice.')}', {snapshot})")
        with pytest.raises(SourceError, match="no longer has snapshot"):
            p.refresh()


def test_random_changes_without_a_key(lake: SparkSession, tmp_path: Path) -> None:
    """Any rows, some twice, in tables that rewrite files and in tables that mark rows as deleted."""
    chance, bank = random.Random(7), fresh()
    source = table(lake, bank, MERGE_ON_READ)
    by = {"options": {"changes.by": "comparison"}, "key": None, "columns": ["owner", "amount"]}
    with followed(lake, tmp_path / "compared", bank, **by) as p:
        for _ in range(2):
            for _ in range(2):
                number, owner = chance.randrange(3), chance.choice(["Ada", "Bob"])
                lake.sql(f"INSERT INTO {source} VALUES (9, '{owner}', {number}), (9, '{owner}', {number})")
                lake.sql(f"UPDATE {source} SET amount = amount + 1 WHERE amount = {chance.randrange(4)}")
                lake.sql(f"DELETE FROM {source} WHERE amount = {chance.randrange(3)}")
            expected = lake.sql(f"SELECT owner, SUM(amount) AS total FROM {source} GROUP BY owner").collect()
            assert held(p) == {row.owner: row.total for row in expected} == delivered(lake, f"{bank}.held")
        assert p.verify()
    with Pipeline(lake, tmp_path / "logged", place="driver", shards=2) as p:
        p.source("account", table=source, format="iceberg", changes="cdc")
        p.sql(VIEW)
        p.refresh()
        lake.sql(f"DELETE FROM {source} WHERE id = 1")
        lake.sql(f"INSERT INTO {source} VALUES (1, 'Eve', 1)")
        lake.sql(f"UPDATE {source} SET amount = 2 WHERE owner = 'Eve'")
        with pytest.raises(EverviewError, match="merge-on-read"):
            p.refresh()


def test_streams_snapshots_and_the_other_modes(lake: SparkSession, tmp_path: Path) -> None:
    bank = fresh()
    source = table(lake, bank)
    for stream, changes, key in ((True, "append", None), (False, "snapshot", "id")):
        root = tmp_path / changes
        with Pipeline(lake, root / "state", place="driver", shards=2) as p:
            p.source("account", table=source, format="iceberg", stream=stream, changes=changes, key=key)
            p.sql(VIEW)
            p.sink("v", table=f"{bank}.changes_{changes}", format="iceberg")
            p.sink("v", table=f"{bank}.snapshot_{changes}", format="iceberg", mode="snapshot")
            before = held(p)
            lake.sql(f"INSERT INTO {source} VALUES ({100 + stream}, 'Bob', 1)")
            after = held(p)
            assert after == before | {"Bob": before["Bob"] + 1} == delivered(lake, f"{bank}.snapshot_{changes}")
            rows = [tuple(row) for row in lake.table(f"{bank}.changes_{changes}").collect()]
            if stream:
                lake.sql(f"DELETE FROM {source} WHERE id = 2")
                with pytest.raises(EverviewError, match="deleted or changed rows in snapshot"):
                    p.refresh()
                lake.sql(f"INSERT INTO {source} VALUES (2, 'Bob', 7)")
        assert sorted(row[1:] for row in rows if row[0] == "Bob") == [
            (before["Bob"], -1, 2), (before["Bob"], 1, 1), (after["Bob"], 1, 2),
        ]  # fmt: skip


def test_the_state_follows_tables_and_files(lake: SparkSession, tmp_path: Path) -> None:
    bank = fresh()
    source = table(lake, bank)
    with Pipeline(lake, tmp_path / "state", place="driver", shards=2, positions="state") as p:
        p.source("account", table=source, format="iceberg", changes="cdc", key="id")
        p.sql(VIEW)
        query = p.start()
        query.processAllAvailable()
        lake.sql(f"UPDATE {source} SET amount = 1 WHERE id = 2")
        query.processAllAvailable()
        assert {row.owner: row.total for row in p.view("v").collect()} == {"Ada": 5, "Bob": 1}
        p.stop()
    with Pipeline(lake, tmp_path / "other", place="driver", shards=2) as p:
        p.source("account", table=source, format="iceberg", changes="cdc", key="id")
        p.sql(VIEW)
        with pytest.raises(EverviewError, match="read between snapshots, which Spark does not follow"):
            p.start()


def test_types_and_mistakes(lake: SparkSession, tmp_path: Path) -> None:
    bank = fresh()
    lake.sql(
        f"CREATE TABLE {bank}.every USING iceberg TBLPROPERTIES ('format-version' = '3') AS SELECT 1L AS id, "
        "1S AS small, 2.5D AS double, 1.25BD AS exact, DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 12:00:00' AS at, "
        "TIMESTAMP_NTZ'2024-02-29 12:00:00' AS wall, X'00ff' AS bytes, array(1, NULL) AS list, "
        "named_struct('a', 1, 'b', 'x') AS struct, map('k', 1) AS map, parse_json('[1]') AS any"
    )
    lake.sql(f"CREATE TABLE {bank}.out USING iceberg AS SELECT 'Ada' AS owner, 1L AS total")
    table(lake, bank)
    with Pipeline(lake, tmp_path / "state", place="driver", shards=2) as p:
        p.source("every", table=f"{bank}.every", format="iceberg", changes="cdc")
        p.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM every")
        p.sink("w", table=f"{bank}.copy", format="iceberg", mode="upsert", key="id", **{"format-version": "3"})
        p.refresh()
        assert lake.table(f"{bank}.copy").drop("any").collect() == lake.table(f"{bank}.every").drop("any").collect()
        lake.sql(f"UPDATE {bank}.every SET small = 2, any = parse_json('[2]')")
        p.refresh()
        found = lake.sql(f"SELECT small, to_json(any), map, wall FROM {bank}.copy").collect()
        assert found == lake.sql(f"SELECT small, to_json(any), map, wall FROM {bank}.every").collect()
    with Pipeline(lake, tmp_path / "foreign", place="driver", shards=2) as p:
        p.source("account", table=f"{bank}.account", format="iceberg", changes="cdc", key="id")
        p.sql(VIEW)
        p.sink("v", table=f"{bank}.out", format="iceberg", mode="upsert", key="owner")
        with pytest.raises(SinkError, match="was not what the view was, and nothing was committed"):
            p.refresh()
    for query, said in (
        ("SELECT id, day - DATE'2024-01-01' AS gone FROM every", '"gone" of view "u" is INTERVAL'),
        ("SELECT id, any FROM every", "holds from format version 3 on"),
    ):
        with Pipeline(lake, tmp_path / said[1:5], place="driver", shards=2) as p:
            p.source("every", table=f"{bank}.every", format="iceberg", changes="cdc", key="id")
            p.sql(f"CREATE MATERIALIZED VIEW u AS {query}")
            p.sink("u", table=f"{bank}.u", format="iceberg", mode="upsert", key="id")
            with pytest.raises(SinkError, match=said):
                p.refresh()


def test_the_page(lake: SparkSession, tmp_path: Path) -> None:
    from documented import run_page

    bank = fresh()
    table(lake, bank)
    run_page("how-to/iceberg.md", spark=lake, folder=str(tmp_path), bank=bank)["p"].close()
    assert delivered(lake, f"{bank}.held") == {"Ada": 5, "Bob": 7}
