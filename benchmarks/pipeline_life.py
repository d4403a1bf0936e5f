"""The life of a pipeline after its first load: what an epoch, a new view and the driver's memory cost, at two sizes.

The state is loaded by one process and opened by another, as after a restart. Epochs are micro-batches of a stream;
recomputing is plain Spark SQL over the parquet that the state was loaded from, when it is warm.
What Spark's bookkeeping takes of an epoch is shown apart. Memory is that of the Python process of the driver.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import AtLeast, AtMost, Findings
from first_load import folder, load, tree_cpu, write
from isolate import answer, measured
from scale import Scale
from spark_pipeline import LARGE, SMALL, arrive, pipeline, recompute_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.spark import Pipeline

ADDED = "CREATE MATERIALIZED VIEW received AS SELECT dst, sum(amount) AS total, count(*) AS n FROM past GROUP BY dst"


def findings(scale: Scale) -> Findings:
    found = Findings("Spark: the life of a pipeline")
    runs: dict[int, dict[str, Any]] = {}
    for count in scale.lives:
        for part in ("write", "load"):
            measured("pipeline_life.py", count=count, part=part)
        runs[count] = measured("pipeline_life.py", count=count, part="live")
        for part in ("alone", "recompute"):
            runs[count][part] = measured("pipeline_life.py", count=count, part=part)
        shutil.rmtree(folder(count))
    few, many = scale.lives
    life = runs[many]
    found.add(f"{many:,} transfers: recompute by plain Spark SQL", life["recompute"]["seconds"], "s")
    for size, bound in ((SMALL, 30), (LARGE, 15)):
        epoch = life["epochs"][str(size)]
        ratio = life["recompute"]["seconds"] / epoch["total"]
        found.add(f"{size:,} changes: recompute / end to end", ratio, "times", AtLeast(bound))
        found.add(f"{size:,} changes: recompute / without Spark's bookkeeping", epoch_ratio(life, size), "times")
        cpu = life["recompute"]["cpu"] / epoch["cpu"]
        found.add(f"{size:,} changes: recompute / end to end, by CPU time", cpu, "times")
    added = life["added"]["cpu"] / (life["alone"]["cpu"] or 1)
    found.add("a new view / that view alone in a fresh load, by CPU time", added, "times", AtMost(1.2))
    grown = runs[many]["memory"] / runs[few]["memory"]
    found.add(f"{many // few} times the rows: the driver's memory", grown, "times", AtMost(1.2))
    found.raw = {str(count): run for count, run in runs.items()}
    return found


def epoch_ratio(life: dict[str, Any], size: int) -> float:
    return life["recompute"]["seconds"] / life["epochs"][str(size)]["epoch"]


# -- measured in a process of its own


def measure(count: int, part: str) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "write": write, "load": load, "live": live, "alone": alone, "recompute": recompute,
    }  # fmt: skip
    try:
        return parts[part](spark, folder(count), count)
    finally:
        spark.stop()


def live(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Open the state, run epochs, add a view."""
    p = pipeline(spark, root)
    known, epochs = count, dict[str, Any]()
    for size, number in ((SMALL, 2), (SMALL, 10), (LARGE, 2), (LARGE, 6)):
        for _ in range(number):
            arrive(spark, root, known, size)
            known += size
        epochs[str(size)] = streamed(p)  # the first time warms up
    memory = resident()
    before, start = tree_cpu(), time.perf_counter()
    p.sql(ADDED)
    p.refresh()
    added = {"cpu": tree_cpu() - before, "seconds": time.perf_counter() - start}
    peak = resident("VmHWM")
    rows = p.view("received").count()
    p.close()
    found = {"epochs": epochs, "memory": memory, "added": added, "peak": peak}
    return found | {"rows": rows, "load": Path("/proc/loadavg").read_text()}


def recompute(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Recompute by plain Spark SQL when it is warm, in a process without Python workers, whose end would be missed."""
    del count
    recompute_all(spark, root)
    before, start = tree_cpu(), time.perf_counter()
    recompute_all(spark, root)
    return {"cpu": tree_cpu() - before, "seconds": time.perf_counter() - start}


def streamed(p: Pipeline) -> dict[str, Any]:
    """Run all epochs that wait; medians of those after the first, and the CPU time of one with a part of the start."""
    done, before = len(p.progress), tree_cpu()
    query = p.start(trigger={"availableNow": True})
    query.awaitTermination()
    cpu = tree_cpu() - before
    epochs = p.progress[done:]
    triggers = [each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress if each["numInputRows"]]
    return {
        "cpu": cpu / max(len(epochs), 1),
        "total": statistics.median(triggers[1:]),
        "epoch": statistics.median(each.times["total"] for each in epochs[1:]),
        "placements": [each.placement for each in epochs],
    }


def alone(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """The view that was added, alone in a fresh load of rows that are in memory already."""
    from everview.spark import Pipeline

    del count
    p = Pipeline(spark, root / "alone")
    frame = spark.read.parquet(str(root / "transfers")).cache()
    frame.count()
    p.source("past", frame, keep=False)
    p.sql(ADDED)
    p.epoch  # noqa: B018, opens the state before the clock runs
    before, start = tree_cpu(), time.perf_counter()
    p.refresh()
    found = {"cpu": tree_cpu() - before, "seconds": time.perf_counter() - start}
    p.close()
    return found


def resident(what: str = "VmRSS") -> float:
    """Megabytes of memory that this process has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise AssertionError("a process has memory")


if __name__ == "__main__":
    answer(measure)
