"""Delta Lake in and out: batch, stream and change feed; a view as a table by MERGE, each epoch once, whatever dies.

These tests and Iceberg's have one process of their own, with the PySpark that both are made for: see scripts/test.sh.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.errors import SinkError
from everview.spark import Pipeline
from everview.spark import delta as delta_sinks
from lake_session import LEFT_OPEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, LEFT_OPEN]
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner"


def table(lake: SparkSession, path: Path, *, feed: bool = True) -> str:
    name = f"delta.`{path}`"
    columns, properties = "id BIGINT NOT NULL, owner STRING, amount BIGINT", f"delta.enableChangeDataFeed = {feed}"
    lake.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ({properties})")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'Ada', 5), (2, 'Bob', 7)")
    return name


def held(p: Pipeline) -> dict[str, int]:
    p.refresh()
    return {row.owner: row.total for row in p.view("v").collect()}


def delivered(lake: SparkSession, path: Path) -> dict[str, int]:
    return {row.owner: row.total for row in lake.read.format("delta").load(str(path)).collect()}


def commits(lake: SparkSession, path: Path) -> int:
    return lake.sql(f"DESCRIBE HISTORY delta.`{path}`").where("userMetadata IS NOT NULL").count()


def followed(lake: SparkSession, root: Path) -> Pipeline:
    """A pipeline from the change feed of one table to another table."""
    p = Pipeline(lake, root / "state", place="driver", shards=2)
    feed = {"readChangeFeed": "true", "maxFilesPerTrigger": "1"}
    p.source("account", path=root / "in", format="delta", key="id", changes="cdc", options=feed)
    p.sql(VIEW)
    p.sink("v", path=root / "out", format="delta", mode="upsert", key="owner")
    return p


def test_a_change_feed_and_a_table_that_is_the_view(lake: SparkSession, tmp_path: Path) -> None:
    source = table(lake, tmp_path / "in")
    with followed(lake, tmp_path) as p:
        assert held(p) == delivered(lake, tmp_path / "out") == {"Ada": 5, "Bob": 7}
        lake.sql(f"UPDATE {source} SET amount = 6 WHERE id = 1")
        lake.sql(f"DELETE FROM {source} WHERE id = 2")
        lake.sql(f"INSERT INTO {source} VALUES (3, 'Ada', 1), (4, 'Cyd', 2)")
        assert held(p) == delivered(lake, tmp_path / "out") == {"Ada": 7, "Cyd": 2}
        assert p.verify()
        written, epoch = commits(lake, tmp_path / "out"), p.epoch
    (tmp_path / "state" / "delivered").write_text(str(epoch - 1))  # as if it had died before it noted that
    with followed(lake, tmp_path) as p:
        p.refresh()
    assert commits(lake, tmp_path / "out") == written
    delta_sinks._seen.clear()
    sink = p._sinks[0]
    with pytest.raises(SinkError, match=f"has epoch {epoch}, and the state is at epoch 1"):
        delta_sinks.deliver_commit(lake, sink, 1, p._state.engine().run.view("v").contents(), list, p._claims.state)
    p.close()


def test_streams_snapshots_and_the_other_modes(lake: SparkSession, tmp_path: Path) -> None:
    source = table(lake, tmp_path / "in", feed=False)
    for stream, changes, key in ((True, "append", None), (False, "snapshot", "id")):
        root = tmp_path / changes
        with Pipeline(lake, root / "state", place="driver", shards=2) as p:
            p.source("account", path=tmp_path / "in", format="delta", stream=stream, changes=changes, key=key)
            p.sql(VIEW)
            p.sink("v", path=root / "changes", format="delta")
            p.sink("v", path=root / "snapshot", format="delta", mode="snapshot")
            before = held(p)
            lake.sql(f"INSERT INTO {source} VALUES ({100 + stream}, 'Bob', 1)")
            after = held(p)
            assert after == before | {"Bob": before["Bob"] + 1} == delivered(lake, root / "snapshot")
            rows = [tuple(row) for row in lake.read.format("delta").load(str(root / "changes")).collect()]
        assert sorted(row[1:] for row in rows if row[0] == "Bob") == [
            (before["Bob"], -1, 2), (before["Bob"], 1, 1), (after["Bob"], 1, 2),
        ]  # fmt: skip


def test_a_table_that_is_not_the_view_is_refused(lake: SparkSession, tmp_path: Path) -> None:
    table(lake, tmp_path / "in")
    lake.sql(f"CREATE TABLE delta.`{tmp_path / 'out'}` USING delta AS SELECT 'Ada' AS owner, 1L AS total")
    with followed(lake, tmp_path) as p, pytest.raises(Exception, match="table was not what the view was"):
        p.refresh()


def test_the_page(lake: SparkSession, tmp_path: Path) -> None:
    from documented import run_page

    table(lake, tmp_path / "accounts")
    run_page("how-to/delta.md", spark=lake, lake=str(tmp_path))["p"].close()
    assert delivered(lake, tmp_path / "held") == {"Ada": 5, "Bob": 7}
