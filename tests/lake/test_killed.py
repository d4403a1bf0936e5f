"""A process that is killed between a commit and its note: tables of Delta Lake and of Iceberg have each epoch once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.spark import Pipeline, delivery

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the process that is killed
from lake_session import LEFT_OPEN, lake_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, LEFT_OPEN]
BANK = "ice.killed"
VIEW = """CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total
FROM (SELECT owner, amount FROM iced UNION ALL SELECT owner, amount FROM account) GROUP BY owner"""
COLUMNS = "id BIGINT NOT NULL, owner STRING, amount BIGINT"
LAST = 2  # the epoch that is committed to both tables, and not noted


def followed(lake: SparkSession, root: Path, positions: str) -> Pipeline:
    """A pipeline from the changes of a table of each kind to a table of each kind."""
    p = Pipeline(lake, root / "state", place="driver", shards=2, positions=positions)
    feed = {"readChangeFeed": "true"} | ({} if positions == "state" else {"maxFilesPerTrigger": "1"})
    p.source("account", path=root / "in", format="delta", key="id", changes="cdc", options=feed)
    p.source("iced", table=f"{BANK}.account", format="iceberg", key="id", changes="cdc")
    p.sql(VIEW)
    p.sink("v", path=root / "out", format="delta", mode="upsert", key="owner")
    p.sink("v", table=f"{BANK}.held", format="iceberg", mode="upsert", key="owner")
    return p


def epochs(lake: SparkSession, root: Path) -> tuple[list[int], list[int]]:
    """The epochs that the commits of both tables name."""
    history = lake.sql(f"DESCRIBE HISTORY delta.`{root / 'out'}`").where("userMetadata IS NOT NULL")
    delta = history.selectExpr("get_json_object(userMetadata, '$.epoch')")
    lake.catalog.refreshTable(f"{BANK}.held")
    ice = lake.sql(f"SELECT summary['everview-epoch'] AS e FROM {BANK}.held.snapshots").where("e IS NOT NULL")
    return tuple(sorted(int(row[0]) for row in frame.collect()) for frame in (delta, ice))  # type: ignore[return-value]


def rows(frame: Any) -> dict[str, int]:
    return {row.owner: row.total for row in frame.collect()}


@pytest.mark.parametrize("positions", ["spark", "state"])
def test_each_epoch_is_committed_once(lake: SparkSession, tmp_path: Path, positions: str) -> None:
    account, iced = f"delta.`{tmp_path / 'in'}`", f"{BANK}.account"
    lake.sql(f"CREATE TABLE {account} ({COLUMNS}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    for each in ("account", "held"):
        lake.sql(f"DROP TABLE IF EXISTS {BANK}.{each}")
    lake.sql(f"CREATE TABLE {iced} ({COLUMNS}) USING iceberg")
    for name in (account, iced):
        lake.sql(f"INSERT INTO {name} VALUES (1, 'Ada', 5), (2, 'Bob', 7)")
        lake.sql(f"UPDATE {name} SET amount = 6 WHERE id = 1")
    scratch = Path(str(lake.conf.get("spark.sql.catalog.ice.warehouse"))).parent
    with (tmp_path / "log").open("wb") as log:  # a pipe would be open for as long as its Java lives
        command = [sys.executable, __file__, str(tmp_path), str(scratch), positions]
        ran = subprocess.run(command, check=False, stdout=log, stderr=log)
    assert ran.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert epochs(lake, tmp_path) == ([1, 2], [1, 2])
    assert (tmp_path / "state" / "delivered").read_text() == str(LAST - 1)  # the state does not know
    for name in (account, iced):
        lake.sql(f"DELETE FROM {name} WHERE id = 2")
    with followed(lake, tmp_path, positions) as p:
        p.refresh()
        found = [p.view("v"), lake.read.format("delta").load(str(tmp_path / "out")), lake.table(f"{BANK}.held")]
        assert [rows(frame) for frame in found] == [{"Ada": 12}] * 3
        every = list(range(1, p.epoch + 1))
        assert epochs(lake, tmp_path) == (every, every)
        assert p.verify()


def killed(root: Path, scratch: Path, positions: str) -> None:
    """Run until epoch `LAST` is committed to both tables, and die before that is noted."""
    noted = delivery.Delivery.mark

    def die(self: delivery.Delivery, epoch: int) -> None:
        if epoch == LAST:
            os.kill(os.getpid(), signal.SIGKILL)
        noted(self, epoch)

    delivery.Delivery.mark = die  # type: ignore[method-assign]
    lake = lake_session(scratch)
    p = followed(lake, root, positions)
    p.refresh()
    for name in (f"delta.`{root / 'in'}`", f"{BANK}.account"):  # what the state keeps the positions of was one epoch
        lake.sql(f"UPDATE {name} SET amount = 8 WHERE id = 2")
    p.refresh()


if __name__ == "__main__":
    killed(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
