"""A real cluster: a standalone master and two executors, each a process of its own.

What one process cannot show: executors share nothing with the driver but the state, they die, and they may lack what
the driver has. One cluster serves all tests here, which therefore run in a process without another Spark session.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from everview.errors import MissingRuntime
from everview.spark import Pipeline
from standalone import SOURCES, Standalone, driver, standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

VIEWS = """
CREATE MATERIALIZED VIEW spent AS
    SELECT c.name, sum(o.amount) AS total, count(*) AS n, max(o.amount) AS most
    FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.name;
CREATE MATERIALIZED VIEW idle AS
    SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL;
CREATE MATERIALIZED VIEW names AS SELECT DISTINCT upper(name) AS name FROM customer;
CREATE MATERIALIZED VIEW ranked AS
    SELECT id, amount, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders;
CREATE MATERIALIZED VIEW ring AS
    SELECT a.src AS a, b.src AS b, c.src AS c FROM edge a, edge b, edge c
    WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src;
CREATE MATERIALIZED VIEW reached AS
    WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON r.b = e.src)
    SELECT a, b FROM r;
CREATE MATERIALIZED VIEW highest AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5;
CREATE MATERIALIZED VIEW lately AS SELECT id FROM orders WHERE at > now() - INTERVAL 36500 DAY;
"""
RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
KEPT = ("spent", "idle", "names", "ranked", "ring", "path", "reached", "highest", "lately", "before", "pairs", "rooted")

STREAMING = """
import os, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from standalone import driver
from spark.test_cluster import streamed
root = Path(sys.argv[2])
with driver(sys.argv[1], root / "child") as spark:
    p = streamed(spark, root)
    p.sink("sums", callback=lambda changes, epoch: print(epoch, flush=True))
    p.start(trigger={{"processingTime": "0 seconds"}}).awaitTermination()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture(scope="module")
def session(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with driver(cluster.master, tmp_path_factory.mktemp("driver")) as made:
        yield made


def tables(session: SparkSession, rows: int) -> dict[str, Any]:
    customers = [(k, f"name {k % 50}") for k in range(60)]
    orders = [(k, k * 7 % 55, k % 13, datetime(2024, 1, 1 + k % 9, tzinfo=UTC)) for k in range(rows)]
    edges = [(k, (k * 5 + 1) % 7) for k in range(7)] + [(0, 3), (3, 6), (6, 0)]
    return {
        "customer": session.createDataFrame(customers, "id BIGINT, name STRING"),
        "orders": session.createDataFrame(orders, "id BIGINT, customer BIGINT, amount BIGINT, at TIMESTAMP"),
        "edge": session.createDataFrame(edges, "src BIGINT, dst BIGINT"),
    }


def pipeline(session: SparkSession, path: Path, frames: dict[str, Any], place: Any) -> Pipeline:
    p = Pipeline(session, path, place=place, shards=4)
    p.source("customer", frames["customer"], key="id", changes="snapshot")
    orders = p.source("orders", frames["orders"], key="id", changes="snapshot")
    edge = p.source("edge", frames["edge"])
    p.sql(VIEWS)
    p.datalog(RULES)
    orders.asof_join(edge.index("src", "dst"), on=[], at=("amount", "src"), select=["id", "dst"]).sink("before")
    p.edn("[:find ?a ?c :where [?a :edge ?b] [?b :edge ?c]]", "pairs")
    root = F.udf(math.isqrt, "bigint")  # executors have no module of tests
    p.define("rooted", p.frame("orders").select("id", root("amount").alias("root")))
    return p


@pytest.mark.parametrize("place", ["driver", "auto", "cluster"])
def test_every_kind_of_view_in_every_place(session: SparkSession, tmp_path: Path, place: str) -> None:
    with pipeline(session, tmp_path / "state", tables(session, 300), place) as p:
        p.refresh()
    with pipeline(session, tmp_path / "state", tables(session, 330), place) as p:  # a restart, and more rows
        p.refresh()
        assert p.epoch == 2
        verdict = p.verify()
        assert verdict, str(verdict)
        counts = {view: p.view(view).count() for view in KEPT}
    assert all(counts.values()), counts
    assert counts["ranked"] == 330


def test_an_executor_that_is_killed_in_the_middle(session: SparkSession, cluster: Standalone, tmp_path: Path) -> None:
    status, hit = session.sparkContext.statusTracker(), list[int]()

    def at_work() -> list[int]:
        """The stages that both executors are at work on: each has one core."""
        stages = {stage: status.getStageInfo(stage) for stage in status.getActiveStageIds()}
        return [stage for stage, info in stages.items() if info is not None and info.numActiveTasks >= 2]

    def kill_at_work() -> None:
        end = time.monotonic() + 60
        while not hit and time.monotonic() < end:
            if at_work():
                with cluster.frozen():
                    time.sleep(0.2)  # for what they have said before
                    hit.extend(at_work())
                    if hit:
                        cluster.kill_executor()

    with pipeline(session, tmp_path / "state", tables(session, 300), "cluster") as p:
        killer = threading.Thread(target=kill_at_work)
        killer.start()
        p.refresh()
        killer.join()
        assert sum(status.getStageInfo(stage).numFailedTasks for stage in hit) >= 1
        assert p.epoch == 1
        assert p.view("ranked").count() == 300
        verdict = p.verify()
        assert verdict, str(verdict)


def streamed(session: SparkSession, root: Path) -> Pipeline:
    """A pipeline over files that come one by one."""
    p = Pipeline(session, root / "state", place="cluster", shards=2)
    lines = session.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).json(str(root / "in"))
    p.source("t", lines, key="k", changes="upsert")
    p.sql("CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, sum(v) AS total FROM t GROUP BY k % 3")
    return p


def test_a_driver_that_is_killed(session: SparkSession, cluster: Standalone, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = [[{"k": k, "v": 10 * number + k} for k in range(number, number + 4)] for number in range(5)]
    for number, rows in enumerate(files):
        path = tmp_path / "in" / f"{number}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        os.utime(path, (10**9 + number, 10**9 + number))
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{tests}"}
    command = [sys.executable, "-c", STREAMING.format(tests=tests), cluster.master, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        said = [child.stdout.readline(), child.stdout.readline()]
        child.send_signal(signal.SIGKILL)
    assert said == ["1\n", "2\n"]
    held = {row["k"]: row["v"] for rows in files for row in rows}
    expected = sorted((g, sum(v for k, v in held.items() if k % 3 == g)) for g in range(3))
    with streamed(session, tmp_path) as p:
        p.start(trigger={"availableNow": True}).awaitTermination()
        assert sorted(tuple(row) for row in p.view("sums").collect()) == expected
        # Killed between two of its notes, Spark takes the file that it has noted and the next one as one batch.
        assert len(files) - 1 <= p.epoch <= len(files)
        assert p.verify()


def test_executors_without_everview_are_refused(cluster: Standalone, tmp_path: Path, session: SparkSession) -> None:
    """The last test here: its session takes the place of the others'."""
    session.stop()
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'everview':\n"
        "            raise ModuleNotFoundError(\"No module named 'everview'\", name='everview')\n"
        "sys.meta_path.insert(0, Without())\n"
    )
    with driver(cluster.master, tmp_path, {"spark.executorEnv.PYTHONPATH": str(tmp_path / "bare")}) as bare:
        p = Pipeline(bare, tmp_path / "state", place="cluster", shards=2)
        p.source("t", bare.createDataFrame([(1, 2)], "k BIGINT, v BIGINT"), key="k")
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS total FROM t GROUP BY k")
        with pytest.raises(
            MissingRuntime, match=r"the executors have no Everview: run pip install 'everview\[spark\]'"
        ):
            p.refresh()
        assert p.epoch == 0
        p.close()
