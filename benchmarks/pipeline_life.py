"""The life of a pipeline after its first load: what an epoch, a new view and the driver's memory cost, at two sizes.

The state is loaded by one process and opened by another, as after a restart. Recomputing is plain Spark SQL over the
parquet that the state was loaded from, when it is warm. Epochs are those of a loop of our own over files, timed by the
clock from where a file is there to where its epoch is delivered; and on a copy of the state, micro-batches of Spark's
streaming query, of which Spark tells the time: what it takes beside the epochs is its bookkeeping, shown apart.
Epochs and the new view are those of the smaller size. Memory is that of the Python process of the driver, at both.
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
    few, many = scale.lives
    runs: dict[int, dict[str, Any]] = {}
    for count in scale.lives:
        for part in ("write", "load"):
            measured("pipeline_life.py", count=count, part=part)
        streamed = measured("pipeline_life.py", count=count, part="streamed") if count == few else {}
        runs[count] = measured("pipeline_life.py", count=count, part="live") | {"streamed": streamed}
        if count == few:
            for part in ("alone", "recompute"):
                runs[count][part] = measured("pipeline_life.py", count=count, part=part)
        shutil.rmtree(folder(count))
    life = runs[few]
    recompute = life["recompute"]
    found.add(f"{few:,} transfers: recompute by plain Spark SQL", recompute["seconds"], "s")
    for size, bound in ((SMALL, 30), (LARGE, 15)):
        own, streams, changes = life["epochs"][str(size)], life["streamed"][str(size)], f"{size:,} changes"
        found.add(f"{changes}: recompute / end to end", recompute["seconds"] / own["total"], "times", AtLeast(bound))
        found.add(f"{changes}: recompute / end to end, by CPU time", recompute["cpu"] / own["cpu"], "times")
        found.add(f"{changes}: end to end", own["total"], "s")
        found.add(f"{changes}: of that listing and waiting", own["total"] - own["epoch"], "s")
        spark = f"{changes}, Spark's positions"
        found.add(f"{spark}: recompute / end to end", recompute["seconds"] / streams["total"], "times")
        found.add(f"{spark}: end to end", streams["total"], "s")
        found.add(f"{spark}: of that Spark's bookkeeping", streams["total"] - streams["epoch"], "s")
    added = life["added"]["cpu"] / (life["alone"]["cpu"] or 1)
    found.add("a new view / that view alone in a fresh load, by CPU time", added, "times", AtMost(1.2))
    for count, run in runs.items():
        found.add(f"{count:,} transfers: the driver's memory", run["memory"], "MB")
    grown = runs[many]["memory"] / runs[few]["memory"]
    found.add(f"{many // few} times the rows: the driver's memory", grown, "times", AtMost(1.2))
    found.raw = {str(count): run for count, run in runs.items()}
    return found


# -- measured in a process of its own


def measure(count: int, part: str) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "write": write, "load": load, "streamed": streamed, "live": live, "alone": alone, "recompute": recompute,
    }  # fmt: skip
    try:
        return parts[part](spark, folder(count), count)
    finally:
        spark.stop()


SERIES = ((SMALL, 12), (LARGE, 8))  # how many epochs of each size; the first two of each warm up
WARM = 2


def live(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Open the state, run epochs of files that the state follows itself, add a view."""
    p = pipeline(spark, root, positions="state")
    query = p.start(trigger={"processingTime": "1 hour"})  # a step is when it is asked for
    query.processAllAvailable()
    known, epochs = count, dict[str, Any]()
    for size, number in SERIES:
        steps = list[dict[str, float]]()
        for _ in range(number):
            arrive(spark, root, known, size)
            known += size
            steps.append(stepped(p, query))
        warm, placed = steps[WARM:], [each.placement for each in p.progress[-number:]]
        medians = {name: statistics.median(step[name] for step in warm) for name in warm[0]}
        epochs[str(size)] = medians | {"placements": placed}
    p.stop()
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


def stepped(p: Pipeline, query: Any) -> dict[str, float]:
    """One step of the loop, by the clock: it finds the file that has arrived, and runs its epoch."""
    done, before, start = len(p.progress), tree_cpu(), time.perf_counter()
    query.processAllAvailable()
    seconds = time.perf_counter() - start
    (epoch,) = p.progress[done:]
    return {"total": seconds, "cpu": tree_cpu() - before, **{f"step {k}": v for k, v in epoch.times.items()},
            "epoch": epoch.times["total"]}  # fmt: skip


def streamed(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """The same epochs as micro-batches of Spark's query, which keeps the positions, on a copy of the state."""
    home = root / "streamed"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    shutil.copytree(root / "state", home / "state")
    p = pipeline(spark, root, at=home)
    known, found = count, dict[str, Any]()
    for size, number in SERIES:
        for some in (WARM, number - WARM):
            for _ in range(some):
                arrive(spark, home, known, size)
                known += size
            found[str(size)] = triggered(p)  # the first time warms up
    p.close()
    shutil.rmtree(home)
    return found


def recompute(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Recompute by plain Spark SQL when it is warm, in a process without Python workers, whose end would be missed."""
    del count
    recompute_all(spark, root)
    before, start = tree_cpu(), time.perf_counter()
    recompute_all(spark, root)
    return {"cpu": tree_cpu() - before, "seconds": time.perf_counter() - start}


def triggered(p: Pipeline) -> dict[str, Any]:
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
    """Megabytes of memory that this process has; files that it has mapped count as far as they are in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise AssertionError("a process has memory")


if __name__ == "__main__":
    answer(measure)
