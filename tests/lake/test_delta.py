"""Delta Lake in and out: batch, stream and change feed; a view as a table by MERGE, each epoch once, whatever dies.

These tests and Iceberg's have one process of their own, with the PySpark that both are made for: see scripts/test.sh.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EverviewError, PipelineError, SinkError, SourceError
from everview.spark import Pipeline
from everview.spark import delta as delta_sinks
from everview.spark.files import build, read
from everview.traces.store import Store
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


# -- positions that the state keeps


def own(lake: SparkSession, root: Path, **how: Any) -> Pipeline:
    """A pipeline over the change feed of one table, read with its key and without one."""
    p = Pipeline(lake, root / "state", place="driver", shards=2, **({"positions": "state"} | how))
    feed: dict[str, Any] = {"format": "delta", "changes": "cdc", "options": {"readChangeFeed": "true"}}
    p.source("account", path=root / "a table" / "%20", key="id", **feed)
    p.source("unkeyed", path=root / "a table" / "%20", columns=["owner", "amount"], **feed)
    p.sql(VIEW)
    p.sql("CREATE MATERIALIZED VIEW rows AS SELECT owner, amount FROM unkeyed")
    return p


def rows_of(lake: SparkSession, source: str) -> tuple[dict[str, int], Counter[tuple[str, int]]]:
    """What both views should be."""
    sums, rows = dict[str, int](), Counter[tuple[str, int]]()
    for row in lake.sql(f"SELECT owner, amount FROM {source}").collect():
        sums[row.owner] = sums.get(row.owner, 0) + row.amount
        rows[row.owner, row.amount] += 1
    return sums, rows


def found(p: Pipeline) -> tuple[dict[str, int], Counter[tuple[str, int]]]:
    sums = {row.owner: row.total for row in p.view("v").collect()}
    return sums, Counter((row.owner, row.amount) for row in p.view("rows").collect())


def test_the_state_follows_versions_of_a_table(
    lake: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that change, a table written anew, random changes, crashes around the commit: every version counts once."""
    chance, source = random.Random(3), table(lake, tmp_path / "a table" / "%20")
    with own(lake, tmp_path) as p:
        p.refresh()
        assert (p.epoch, found(p)) == (1, rows_of(lake, source))
        p.refresh()
        assert p.epoch == 1  # nothing has happened
        lake.sql(f"UPDATE {source} SET id = 9 WHERE id = 2")
        lake.sql(f"INSERT OVERWRITE {source} VALUES (1, 'Ada', 6), (9, 'Bob', 7), (9, 'Bob', 7)")
        lake.sql(f"DELETE FROM {source} WHERE id = 9")
        query = p.start()
        query.processAllAvailable()
        assert (p.epoch, found(p)) == (2, rows_of(lake, source))  # several versions are one epoch
        p.stop()
    plain = Store.commit
    for when in ("before", "after"):
        id_ = chance.randrange(20, 30)
        lake.sql(f"INSERT INTO {source} VALUES ({id_}, 'Cyd', {chance.randrange(3)}), ({id_ + 10}, 'Ada', 1)")
        lake.sql(f"UPDATE {source} SET owner = 'Ada', amount = amount + 1 WHERE amount < {chance.randrange(1, 7)}")

        def crash(self: Store, *given: Any, when: str = when, **more: Any) -> Any:
            if when == "after":
                plain(self, *given, **more)
            raise OSError(f"crashed {when} the commit")

        p = own(lake, tmp_path)
        assert p.epoch
        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", crash)
            with pytest.raises(Exception, match="crashed"):
                p.refresh()
        p.close()
        with own(lake, tmp_path) as p:
            p.refresh()
            assert found(p) == rows_of(lake, source)
            assert p.verify()
    with own(lake, tmp_path, positions="spark") as p, pytest.raises(PipelineError, match="has its position"):
        p.refresh()
    lake.sql(f"ALTER TABLE {source} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    with own(lake, tmp_path) as p:
        with pytest.raises(SourceError, match="has no change feed"):
            p.refresh()
        lake.sql(f"ALTER TABLE {source} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        shutil.rmtree(tmp_path / "a table" / "%20")
        table(lake, tmp_path / "a table" / "%20")
        with pytest.raises(SourceError, match="is another one"):
            p.refresh()


def test_a_state_that_spark_has_fed_goes_on_with_spark(lake: SparkSession, tmp_path: Path) -> None:
    table(lake, tmp_path / "in")
    for positions in ("spark", "state"):
        with Pipeline(lake, tmp_path / "state", place="driver", shards=2, positions=positions) as p:
            p.source("account", path=tmp_path / "in", format="delta", changes="append")
            p.sql(VIEW)
            if positions == "spark":
                p.refresh()
                continue
            with pytest.raises(PipelineError, match="Spark's checkpoint has the position"):
                p.refresh()
            assert {row.owner: row.total for row in p.view("v").collect()} == {"Ada": 5, "Bob": 7}


def test_the_state_follows_a_table_that_only_grows(lake: SparkSession, tmp_path: Path) -> None:
    """Files that were added, in partitions, by the table's name in the catalog; moved rows are not new."""
    columns = "id BIGINT NOT NULL, owner STRING, amount BIGINT"
    lake.sql("CREATE DATABASE IF NOT EXISTS own_bank")
    lake.sql("DROP TABLE IF EXISTS own_bank.account")
    lake.sql(f"CREATE TABLE own_bank.account ({columns}) USING delta PARTITIONED BY (owner)")
    lake.sql("INSERT INTO own_bank.account VALUES (1, 'Ada', 5)")
    with Pipeline(lake, tmp_path / "state", place="driver", shards=2, positions="state") as p:
        p.source("account", table="own_bank.account", key="id", changes="upsert")
        p.sql(VIEW)
        assert held(p) == {"Ada": 5}
        lake.sql("INSERT INTO own_bank.account VALUES (2, 'B/b [%20]', 7), (3, NULL, 1)")
        lake.sql("INSERT INTO own_bank.account VALUES (1, 'Ada', 6)")
        assert held(p) == {"Ada": 6, "B/b [%20]": 7, None: 1}
        assert p.progress[-1].rows_in == {"account": 3}
        epoch = p.epoch
        lake.sql("OPTIMIZE own_bank.account")
        assert held(p) == {"Ada": 6, "B/b [%20]": 7, None: 1}
        assert (p.progress[-1].rows_in, p.epoch) == ({"account": 0}, epoch + 1)  # its position alone has moved
        assert p.verify()
        lake.sql("DELETE FROM own_bank.account WHERE id = 2")
        with pytest.raises(SourceError, match="has lost or changed rows between versions"):
            p.refresh()
        assert {row.owner: row.total for row in p.view("v").collect()} == {"Ada": 6, "B/b [%20]": 7, None: 1}


FILE = """
state: state
positions: state
sources:
  account: {table: own_bank.versions, key: id, changes: cdc, stream: true, options: {readChangeFeed: "true"}}
views: CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner
shards: 2
place: driver
"""


def test_a_file_and_a_log_that_was_cleaned(lake: SparkSession, tmp_path: Path) -> None:
    lake.sql("CREATE DATABASE IF NOT EXISTS own_bank")
    lake.sql("DROP TABLE IF EXISTS own_bank.versions")
    lake.sql(
        "CREATE TABLE own_bank.versions USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.checkpointInterval = 1) "
        "AS SELECT 1L AS id, 'Ada' AS owner, 5L AS amount"
    )
    (tmp_path / "p.yaml").write_text(FILE)
    file = tmp_path / "p.yaml"
    with build(file, read(file), lake) as p:
        assert held(p) == {"Ada": 5}
        lake.sql("UPDATE own_bank.versions SET amount = 6")
        assert held(p) == {"Ada": 6}
        lake.sql("UPDATE own_bank.versions SET amount = 7")
        lake.sql("UPDATE own_bank.versions SET amount = 8")
        place = str(lake.sql("DESCRIBE DETAIL own_bank.versions").collect()[0].location)
        for version in range(3):  # the checkpoint of the last version is all that is needed to read the table
            for cleaned in (Path(place.removeprefix("file:")) / "_delta_log").glob(f"*{version:020}*"):
                cleaned.unlink()
        with pytest.raises(SourceError, match="cannot tell what versions 2 to 3 have changed"):
            p.refresh()
        assert {row.owner: row.total for row in p.view("v").collect()} == {"Ada": 6}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "id", "options": {"readChangeFeed": "true", "startingVersion": "1"}}, "the option startingVersion"),
        ({"changes": "append", "options": {"readChangeFeed": "true"}}, 'a change feed is no changes="append"'),
        ({"changes": "append", "options": {"maxFilesPerTrigger": 1}}, "the option maxFilesPerTrigger"),
    ],
)  # fmt: skip
def test_what_the_state_cannot_follow(lake: SparkSession, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with (
        Pipeline(lake, tmp_path / "state", shards=2, positions="state") as p,
        pytest.raises(EverviewError, match=said),
    ):
        p.source("account", path=tmp_path / "in", format="delta", **({"changes": "cdc"} | given))


def test_the_page(lake: SparkSession, tmp_path: Path) -> None:
    from documented import run_page

    table(lake, tmp_path / "accounts")
    run_page("how-to/delta.md", spark=lake, lake=str(tmp_path))["p"].close()
    assert delivered(lake, tmp_path / "held") == {"Ada": 5, "Bob": 7}
