"""A nightly job of six DataFrame steps, kept as views: an epoch of 1,000 changes against the job by plain Spark.

The same functions make the DataFrames of both: over parquet for the job, over `p.frame` for the views. One step is a
window, one calls a pandas UDF, and one result is written as parquet. Defining is measured apart: what it takes to read
a DataFrame and to build its view, when Spark is warm. CPU times are those of all processes.

python benchmarks/nightly.py '{"count": 2000000}'
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd  # here, where PySpark looks for the types of a function
from figures import AtLeast, AtMost, Findings
from first_load import size, tree_cpu
from isolate import answer, measured
from scale import Scale
from stream import DATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark import Pipeline

CHANGES = 1_000
EPOCHS = 5
ROUNDS = 5  # of defining all steps
ACCOUNTS = 100_000
COLUMNS = "id BIGINT NOT NULL, src BIGINT NOT NULL, amount DECIMAL(12,2) NOT NULL, day DATE NOT NULL"
Frames = Callable[[str], "DataFrame"]


def findings(scale: Scale) -> Findings:
    found = Findings("Spark: a nightly job as views")
    run = measured("nightly.py", count=scale.main_transfers)
    found.add(f"{scale.main_transfers:,} transfers: the job by plain Spark", run["job"]["seconds"], "s")
    ratio, cpu = (run["job"][what] / run["epoch"][what] for what in ("seconds", "cpu"))
    found.add(f"{CHANGES:,} changes: the job / an epoch, end to end", ratio, "times", AtLeast(10))
    found.add(f"{CHANGES:,} changes: the job / an epoch, by CPU time", cpu, "times")
    found.add("defining a view, CPU time", 1000 * run["defining"]["cpu"], "ms", AtMost(100))
    found.add("the first load / the job, by CPU time", run["load"]["cpu"] / run["job"]["cpu"], "times")
    found.raw = run
    return found


# -- the job


def payment(frame: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    t, a = frame("transfer"), frame("account")
    return t.join(a, t.src == a.account).select("id", "src", "country", "amount", F.trunc("day", "MM").alias("month"))


def charged(frame: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    def fee(amount: pd.Series) -> pd.Series:
        return amount.clip(upper=500.0) * 0.01

    of = F.pandas_udf(fee, "double")  # pyright: ignore[reportCallIssue, reportArgumentType]
    return frame("payment").withColumn("fee", of(F.col("amount").cast("double")).cast("decimal(14,4)"))


def by_month(frame: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    total, fees = F.sum("amount").alias("total"), F.sum("fee").alias("fees")
    return frame("charged").groupBy("country", "month").agg(total, fees, F.count("*").alias("payments"))


def running(frame: Frames) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    so_far = Window.partitionBy("country").orderBy("month")
    return frame("by_month").select("country", "month", "total", F.sum("total").over(so_far).alias("so_far"))


def sender(frame: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    spent = frame("payment").groupBy("src").agg(F.sum("amount").alias("spent"), F.max("amount").alias("most"))
    return spent.where(F.col("most") > 900)


def report(frame: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    return frame("sender").orderBy(F.desc("spent"), "src").limit(100)


JOB = (payment, charged, by_month, running, sender, report)
KEPT = ("running", "sender", "report")  # what the job writes


def by_spark(spark: SparkSession, root: Path) -> None:
    """The job as it ran every night."""
    made = {name: spark.read.parquet(str(root / name)) for name in ("transfer", "account")}
    for step in JOB:
        made[step.__name__] = step(made.__getitem__)
    for name in KEPT:
        made[name].write.mode("overwrite").parquet(str(root / "job" / name))


def opened(spark: SparkSession, root: Path, state: str) -> Pipeline:
    """A pipeline that has the sources of the job."""
    from everview.spark import Pipeline

    p = Pipeline(spark, root / state)
    for name, key in (("transfer", "id"), ("account", "account")):
        p.source(name, spark.read.parquet(str(root / name)), key=key, changes="upsert", schema=SCHEMAS[name])
    return p


def define(p: Pipeline) -> None:
    """The job as views."""
    for step in JOB:
        p.define(step.__name__, step(p.frame))


SCHEMAS = {"transfer": COLUMNS, "account": "account BIGINT NOT NULL, country STRING"}


# -- measured in a process of its own


def measure(count: int) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="4g")
    spark.sparkContext.setLogLevel("ERROR")
    root = DATA / f"nightly-{count}"
    shutil.rmtree(root, ignore_errors=True)
    try:
        transfers(spark, 0, count, 0).write.parquet(str(root / "transfer"))
        account = "id AS account", "concat('c', id % 50) AS country"
        spark.range(ACCOUNTS).selectExpr(*account).write.parquet(str(root / "account"))
        job = [timed(lambda: by_spark(spark, root)) for _ in range(2)][-1]  # the second, when Spark is warm
        return {"job": job, "defining": defining(spark, root), **live(spark, root, count)}
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


def transfers(spark: SparkSession, first: int, count: int, seed: int) -> DataFrame:
    """Transfers with ids from a first one on; the same ids under another seed are other transfers."""
    drawn = f"pmod(xxhash64(id, {seed}), 1000003)"
    return spark.range(first, first + count).selectExpr(
        "id", f"pmod({drawn} * 7919 + id, {ACCOUNTS}) AS src",
        f"CAST({drawn} % 100000 / 100 AS DECIMAL(12,2)) AS amount",
        f"date_add(DATE'2025-01-01', CAST({drawn} % 365 AS INT)) AS day",
    )  # fmt: skip


def defining(spark: SparkSession, root: Path) -> dict[str, float]:
    """What defining a view takes, once Spark has warmed up: the mean of some rounds of all steps."""
    pipelines = [opened(spark, root, f"unused{number}") for number in range(3 * ROUNDS)]
    for p in pipelines[ROUNDS:]:
        define(p)
    ran = timed(lambda: [define(p) for p in pipelines[:ROUNDS]])
    return {what: spent / ROUNDS / len(JOB) for what, spent in ran.items()}


def live(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """The first load, and the median epoch of changes: half of them new transfers, half others in place of old ones."""
    with opened(spark, root, "state") as p:
        define(p)
        p.sink("running", path=root / "out", format="parquet")
        loaded = timed(p.refresh)
        epochs: list[dict[str, float]] = []
        for number in range(EPOCHS + 1):
            half = CHANGES // 2
            new = transfers(spark, count + number * half, half, number)
            changed = transfers(spark, number * half, half, number + 1).unionAll(new)
            epochs.append(timed(lambda given=changed: p.refresh(transfer=given)))
        p.verify("by_month", "report").raise_if_different()
        medians = {what: statistics.median(epoch[what] for epoch in epochs[1:]) for what in ("seconds", "cpu")}
        return {"load": loaded, "epoch": medians, "epochs": epochs, "state": size(root / "state")}


def timed(act: Callable[[], Any]) -> dict[str, float]:
    before, start = tree_cpu(), time.perf_counter()
    act()
    return {"seconds": time.perf_counter() - start, "cpu": tree_cpu() - before}


if __name__ == "__main__":
    answer(measure)
