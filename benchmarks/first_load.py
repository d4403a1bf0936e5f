"""The first load of a pipeline beside plain Spark SQL that computes the same three views once.

Each in a process of its own, from a session that has started to the views' rows. What is compared is the CPU time of
the whole tree of processes: the driver, the JVM and the Python workers. The state is compared with the parquet that it
was loaded from.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale
from spark_pipeline import accounts, pipeline, recompute_all, transfers
from stream import DATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICKS = os.sysconf("SC_CLK_TCK")


def findings(scale: Scale) -> Findings:
    found = Findings("Spark: the first load of a pipeline")
    count = scale.loaded
    measured("first_load.py", count=count, part="write")
    plain = measured("first_load.py", count=count, part="plain")
    load = measured("first_load.py", count=count, part="load")
    shutil.rmtree(folder(count))
    found.add(f"{count:,} transfers: plain Spark SQL computes three views", plain["cpu"], "s of CPU")
    found.add("first load of the pipeline", load["cpu"], "s of CPU")
    found.add("first load / plain Spark, by CPU time", load["cpu"] / plain["cpu"], "times", AtMost(1.5))
    found.add("first load / plain Spark, by the clock", load["seconds"] / plain["seconds"], "times")
    found.add("state / parquet", load["state"] / load["parquet"], "times", AtMost(3))
    found.raw = {"plain": plain, "load": load}
    return found


def folder(count: int) -> Path:
    return DATA / f"first-load-{count}"


def tree_cpu() -> float:
    """Seconds of CPU that this process and all below it have taken, those that have ended included."""
    taken, parents = dict[int, float](), dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            parents[int(entry.name)] = int(fields[1])
            taken[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
    return sum(seconds for process, seconds in taken.items() if _is_below(process, os.getpid(), parents))


def _is_below(process: int, root: int, parents: dict[int, int]) -> bool:
    while process in parents and process != root:
        process = parents[process]
    return process == root


# -- measured in a process of its own


def measure(count: int, part: str) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    root = folder(count)
    try:
        return {"write": write, "plain": plain, "load": load}[part](spark, root, count)
    finally:
        spark.stop()


def write(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    transfers(spark, 0, count).write.parquet(str(root / "transfers"))
    accounts(spark).write.parquet(str(root / "accounts"))
    return {}


def plain(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    del count
    before = tree_cpu()
    seconds = recompute_all(spark, root)
    return {"cpu": tree_cpu() - before, "seconds": seconds}


def load(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    for made in ("state", "out", "arriving"):
        shutil.rmtree(root / made, ignore_errors=True)
    p = pipeline(spark, root)
    p.epoch  # noqa: B018, opens the state before the clock runs
    before, start = tree_cpu(), time.perf_counter()
    p._epochs.load(p._state.engine(), {}, None, again=False)
    seconds = time.perf_counter() - start
    cpu = tree_cpu() - before
    traces = dict(p._state.engine().rows_by_trace)
    rows = {name: p.view(name).count() for name in ("exposure", "largest", "pairs")}
    assert sum(p.progress[-1].rows_in.values()) >= count, "all rows have arrived"
    p.close()
    sizes = {"state": size(root / "state"), "parquet": size(root / "transfers") + size(root / "accounts")}
    return {"cpu": cpu, "seconds": seconds, "rows": rows, "traces": traces} | sizes


def size(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


if __name__ == "__main__":
    answer(measure)
