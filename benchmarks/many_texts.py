"""The driver's memory in a pipeline over many different texts, at two sizes.

Every row has a text of its own, and a view groups by it: the state holds each text in its dictionary and in the groups.
One process loads the state, and another one opens it and runs epochs, each of rows with new texts and corrections of
old ones. Memory is that of the Python process of the driver: the peak of the load, and what is there after the epochs.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import AtMost, Findings
from first_load import size, tree_cpu
from isolate import answer, measured
from pipeline_life import resident
from scale import Scale
from stream import DATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark import Pipeline

COLUMNS = "id BIGINT NOT NULL, name STRING NOT NULL, amount BIGINT NOT NULL"
CHANGES = 10_000  # of one epoch
EPOCHS = 10


def findings(scale: Scale) -> Findings:
    found = Findings("Spark: the driver's memory with many different texts", timed=False)
    runs: dict[int, dict[str, Any]] = {}
    for count in scale.texts:
        measured("many_texts.py", count=count, part="write")
        runs[count] = {part: measured("many_texts.py", count=count, part=part) for part in ("load", "live")}
        shutil.rmtree(folder(count))
    few, many = scale.texts
    for count, run in runs.items():
        found.add(f"{count:,} texts: peak of the load", run["load"]["peak"], "MB")
        found.add(f"{count:,} texts: after {EPOCHS} epochs of {CHANGES:,} changes", run["live"]["memory"], "MB")
    for what, part, name in (("peak of the load", "load", "peak"), ("after the epochs", "live", "memory")):
        grown = runs[many][part][name] / runs[few][part][name]
        found.add(f"{many // few} times the texts: {what}", grown, "times", AtMost(1.2))
    found.add(f"{many:,} texts: first load", runs[many]["load"]["cpu"], "s of CPU")
    found.raw = {str(count): run for count, run in runs.items()}
    return found


def folder(count: int) -> Path:
    return DATA / f"many-texts-{count}"


# -- measured in a process of its own


def measure(count: int, part: str) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return {"write": write, "load": load, "live": live}[part](spark, folder(count), count)
    finally:
        spark.stop()


def write(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    accounts(spark, 0, count, 8).write.parquet(str(root / "past"))
    (root / "arriving").mkdir()
    return {}


def accounts(spark: SparkSession, first: int, count: int, parts: int) -> DataFrame:
    """Rows, each with a text that no other one has."""
    return spark.range(first, first + count, numPartitions=parts).selectExpr(
        "id", "concat(hex(xxhash64(id)), ' ', id) AS name", "pmod(id, 1000) AS amount"
    )


def pipeline(spark: SparkSession, root: Path) -> Pipeline:
    from everview.spark import Pipeline
    from everview.types import Schema

    p = Pipeline(spark, root / "state", positions="state")
    columns = Schema.parse(COLUMNS)
    past = p.source("past", spark.read.parquet(str(root / "past")), schema=columns, keep=False)
    arriving = {"path": root / "arriving", "format": "parquet", "schema": columns}
    (past + p.source("arriving", **arriving, keep=False)).aggregate(["name"], total=("sum", "amount"), n="count").sink(
        "held"
    )
    return p


def load(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    p = pipeline(spark, root)
    p.epoch  # noqa: B018, opens the state before the clock runs
    opened, before, start = resident(), tree_cpu(), time.perf_counter()
    p.refresh()
    found = {"seconds": time.perf_counter() - start, "cpu": tree_cpu() - before, "opened": opened} | memory()
    assert p.progress[-1].rows_in == {"past": count}, "all rows have arrived"
    p.close()
    return found | {"state": size(root / "state"), "parquet": size(root / "past")}


def live(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Open the state, and run epochs: half of their rows have new texts, half have old ones."""
    p = pipeline(spark, root)
    query = p.start(trigger={"processingTime": "1 hour"})  # a step is when it is asked for
    query.processAllAvailable()
    half = CHANGES // 2
    for number in range(EPOCHS):
        new = accounts(spark, count + number * half, half, 1)
        rows = new.unionAll(accounts(spark, number * half, half, 1))
        rows.coalesce(1).write.mode("append").parquet(str(root / "arriving"))
        query.processAllAvailable()
    found = memory()
    placed = [each.placement for each in p.progress]
    p.close()
    return found | {"placements": placed}


def memory() -> dict[str, float]:
    """Megabytes of this process: all that is resident, its peak, and what is not of files."""
    return {"memory": resident(), "peak": resident("VmHWM"), "own": resident("RssAnon")}


if __name__ == "__main__":
    answer(measure)
