"""A pipeline on local Spark beside plain Spark SQL that recomputes the same views from parquet, in one session.

Transfers and accounts; what each country's accounts have sent (join and aggregate), the largest transfers (top-k), and
the pairs of countries between which money has moved (join and distinct).
"""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import AtLeast, AtMost, Findings
from isolate import answer, measured
from scale import Scale
from stream import DATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark import Pipeline

SMALL, LARGE = 1_000, 100_000
ACCOUNTS = 100_000
TRANSFER = (
    "id BIGINT NOT NULL, src BIGINT NOT NULL, dst BIGINT NOT NULL, amount DECIMAL(12,2) NOT NULL, at TIMESTAMP NOT NULL"
)


def findings(scale: Scale) -> Findings:
    found = Findings("Spark: a pipeline beside plain Spark SQL")
    sizes = scale.transfers
    runs = {count: measured("spark_pipeline.py", count=count, parts=["ticks"]) for count in sizes}
    main = runs[scale.main_transfers]
    found.add(f"{scale.main_transfers:,} transfers: recompute by plain Spark SQL", main["recompute"], "s")
    found.add("the same, the first time in its process", main["cold"], "s")
    found.add("first load of the pipeline, the first time in its process", main["load"], "s")
    found.add("first load / plain Spark, each the first time", main["load"] / main["cold"], "times", AtMost(4))
    found.add("first load / plain Spark when it is warm", main["load"] / main["recompute"], "times")
    for size, target in ((SMALL, 5), (LARGE, 2)):
        ticks = main["ticks"][str(size)]
        found.add(f"{size:,} changes: end to end and committed", ticks["total"], "s")
        found.add(
            f"{size:,} changes: recompute / end to end", main["recompute"] / ticks["total"], "times", AtLeast(target)
        )
        bound = AtLeast(100) if size == SMALL else None
        found.add(f"{size:,} changes: recompute / tick itself", main["recompute"] / ticks["tick"], "times", bound)
    other = measured("spark_pipeline.py", count=scale.cluster_changes, parts=["cluster", "recursion"])
    found.add("cluster ticks, one exchange", other["cluster"]["rate"], "changes/s", AtLeast(500_000))
    recursion = other["recursion"]
    found.add("a recursion: every round on the cluster", recursion["cluster"], "s")
    found.add("the same, finished on the driver", recursion["auto"], "s")
    found.add("cluster / finished on the driver", recursion["cluster"] / recursion["auto"], "times", AtLeast(5))
    smallest, largest = (runs[count] for count in (sizes[0], sizes[-1]))
    grown = largest["ticks"][str(SMALL)]["total"] / smallest["ticks"][str(SMALL)]["total"]
    found.add(f"{sizes[-1] // sizes[0]} times the transfers: an epoch of {SMALL:,} takes", grown, "times as long")
    found.raw = {"sizes": {str(count): run for count, run in runs.items()}, "other": other}
    return found


# -- measured in a process of its own


def measure(count: int, parts: list[str]) -> dict[str, Any]:
    from everview.spark import session

    spark = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    root = DATA / f"spark-{count}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    try:
        found: dict[str, Any] = {}
        if "ticks" in parts:
            found |= ticks(spark, root, count)
        if "cluster" in parts:
            found["cluster"] = cluster(spark, root, count)
        if "recursion" in parts:
            found["recursion"] = recursion(spark, root)
        return found
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


def transfers(spark: SparkSession, first: int, count: int, parts: int = 8) -> DataFrame:
    return spark.range(first, first + count, numPartitions=parts).selectExpr(
        "id",
        f"pmod(xxhash64(id), {ACCOUNTS}) AS src",
        f"pmod(xxhash64(id, 1), {ACCOUNTS}) AS dst",
        "CAST(pmod(xxhash64(id, 2), 1000000) / 100 AS DECIMAL(12,2)) AS amount",
        "timestamp_seconds(1700000000 + id) AS at",
    )


def accounts(spark: SparkSession) -> DataFrame:
    return spark.range(ACCOUNTS).selectExpr(
        "id", "concat('owner ', id) AS owner", "concat('country ', id % 50) AS country"
    )


def ticks(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    transfers(spark, 0, count).write.parquet(str(root / "transfers"))
    accounts(spark).write.parquet(str(root / "accounts"))
    cold = recompute_all(spark, root)
    recompute = [recompute_all(spark, root) for _ in range(3)]
    p = pipeline(spark, root)
    p.epoch  # noqa: B018, opens the state before the clock runs
    start = time.perf_counter()
    p._epochs.load(p._state.engine(), {}, None, again=False)
    load = time.perf_counter() - start
    found: dict[str, Any] = {}
    known = count
    for size, epochs in ((SMALL, 12), (LARGE, 6)):
        for _ in range(epochs):
            arrive(spark, root, known, size)
            known += size
        before = len(p.progress)
        query = p.start(trigger={"availableNow": True})
        query.awaitTermination()
        done = p.progress[before + 2 :]  # the first ones warm up
        steps = {
            step: statistics.median(each.times[step] for each in done) for step in ("fetch", "tick", "commit", "sinks")
        }
        # End to end is what Spark says of a micro-batch: finding what is new, planning and its own log included.
        triggers = [
            each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress if each["numInputRows"]
        ]
        found[str(size)] = steps | {
            "total": statistics.median(triggers[2:]),
            "epoch": statistics.median(each.times["total"] for each in done),
            "placements": [each.placement for each in done],
        }
    rows = {name: p.view(name).count() for name in ("exposure", "largest", "pairs")}
    p.close()
    return {"recompute": statistics.median(recompute), "cold": cold, "load": load, "ticks": found, "rows": rows}


def arrive(spark: SparkSession, root: Path, first: int, size: int) -> None:
    """A file of changes: new transfers, and as many corrections of old ones."""
    new = transfers(spark, first, size - size // 2, 1)
    old = transfers(spark, first // 2, size // 2, 1).selectExpr("id", "src", "dst", "amount + 1 AS amount", "at")
    batch = root / "arriving"
    new.unionAll(old.selectExpr("id", "src", "dst", "CAST(amount AS DECIMAL(12,2)) AS amount", "at")).coalesce(
        1
    ).write.mode("append").parquet(str(batch))


def pipeline(spark: SparkSession, root: Path, *, positions: str = "spark", at: Path | None = None) -> Pipeline:
    """The pipeline over the tables in a folder; its state, what arrives and what it delivers may be elsewhere."""
    from everview.spark import Pipeline
    from everview.types import Schema

    home = at or root
    p = Pipeline(spark, home / "state", positions=positions)
    (home / "arriving").mkdir(exist_ok=True)
    columns = {"schema": Schema.parse(TRANSFER)}
    past = p.source("past", spark.read.parquet(str(root / "transfers")), **columns)
    how: dict[str, Any] = {"key": "id", "changes": "upsert"}
    if positions == "state":
        arriving = {"path": home / "arriving", "format": "parquet", "options": {"maxFilesPerTrigger": 1}}
        changes = p.source("transfer", **arriving, **how, **columns)
    else:
        stream = spark.readStream.schema(TRANSFER).option("maxFilesPerTrigger", 1)
        changes = p.source("transfer", stream.parquet(str(home / "arriving")), **how, **columns)
    moved = past + changes
    frame = spark.read.parquet(str(root / "accounts"))
    owner = "id BIGINT NOT NULL, country STRING NOT NULL"
    account = p.source("account", frame, key="id", changes="upsert", schema=owner)
    sides = moved.select("src", "dst", "amount").join(account, ("src", "id"), select=["dst", "amount", "country"])
    sides.aggregate(["country"], total=("sum", "amount"), n="count").sink("exposure")
    moved.select("amount", "id").top(100, ["amount desc", "id"]).sink("largest")
    pairs = sides.select("dst", "country").join(
        account, ("dst", "id"), select=["left.country as origin", "right.country as target"]
    )
    pairs.distinct().sink("pairs")
    for view in ("exposure", "largest", "pairs"):
        p.sink(view, path=home / "out" / view)
    return p


def recompute_all(spark: SparkSession, root: Path) -> float:
    """Seconds that plain Spark SQL needs for the three views, from parquet."""
    start = time.perf_counter()
    spark.read.parquet(str(root / "transfers")).createOrReplaceTempView("transfer")
    spark.read.parquet(str(root / "accounts")).createOrReplaceTempView("account")
    for query in (
        "SELECT a.country, sum(t.amount), count(*) FROM transfer t JOIN account a ON t.src = a.id GROUP BY a.country",
        "SELECT amount, id FROM transfer ORDER BY amount DESC, id LIMIT 100",
        "SELECT DISTINCT a.country AS origin, b.country AS target FROM transfer t JOIN account a ON t.src = a.id "
        "JOIN account b ON t.dst = b.id",
    ):
        spark.sql(query).collect()
    return time.perf_counter() - start


def cluster(spark: SparkSession, root: Path, count: int) -> dict[str, Any]:
    """Forced to the cluster: changes a second through one exchange, coded, summed up and committed."""
    from everview.spark import Pipeline

    p = Pipeline(spark, root / "cluster", place="cluster")
    transfers(spark, 0, count).write.parquet(str(root / "changes"))
    frame = spark.read.parquet(str(root / "changes"))
    p.source("transfer", frame.limit(1), keep=False).aggregate(["src"], total=("sum", "amount")).sink("sent")
    p.refresh()
    p.refresh(transfer=frame)  # warms up
    seconds: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        p.refresh(transfer=frame)
        seconds.append(time.perf_counter() - start)
    p.close()
    return {"rate": count / min(seconds), "seconds": seconds}


def recursion(spark: SparkSession, root: Path) -> dict[str, Any]:
    """What can be reached from a few accounts, along chains: many rounds, most of them small."""
    from everview.spark import Pipeline

    edges = spark.range(20_000).selectExpr("id AS a", "IF(id % 40 = 39, id, id + 1) AS b")
    roots = spark.createDataFrame([(0,), (4_000,)], "node BIGINT")
    found: dict[str, Any] = {}
    for place in ("auto", "cluster"):
        p = Pipeline(spark, root / f"recursion-{place}", place=place)
        edge, start = p.source("edge", edges), p.source("root", roots)
        loop = p.circuit.child("reach")
        again, close = loop.feedback("node BIGINT")
        step = again.join(loop.enter(edge), ("node", "a"), select=["right.b as node"])
        close(reached := (loop.enter(start) + step).distinct())
        loop.leave(reached).sink("reached")
        p.refresh()
        more = spark.createDataFrame([(8_000,)], "node BIGINT")
        begun = time.perf_counter()
        p.refresh(root=more)
        found[place] = time.perf_counter() - begun
        p.close()
    return found


if __name__ == "__main__":
    answer(measure)
