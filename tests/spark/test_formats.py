"""States of pipelines that earlier releases have written open, are right, and go on.

``format_2`` was written by `write` below, which is kept to tell what is in it. A checkpoint names input files and sinks
by their full paths; the stored one has a word in place of the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORED, HERE = Path(__file__).with_name("format_2"), "@ROOT@"
VIEWS = """
CREATE MATERIALIZED VIEW totals AS
  SELECT a.country, SUM(t.amount) AS total, COUNT(*) AS n
  FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country;
CREATE MATERIALIZED VIEW largest AS SELECT src, MAX(amount) AS most, AVG(amount) AS mean FROM transfer GROUP BY src;
CREATE MATERIALIZED VIEW idle AS SELECT a.id FROM account a LEFT JOIN transfer t ON t.src = a.id WHERE t.id IS NULL;
"""


def build(spark: SparkSession, root: Path) -> Pipeline:
    p = Pipeline(spark, root / "state", place="driver", shards=2)
    accounts = spark.createDataFrame([(1, "UK"), (2, "DE"), (3, "UK")], "id BIGINT NOT NULL, country STRING")
    p.source("account", accounts, key="id", changes="upsert")
    columns = "op STRING, id BIGINT, src BIGINT, dst BIGINT, amount DECIMAL(12,2)"
    p.source("transfer", path=root / "in", format="json", schema=columns, key="id", changes="cdc")
    p.sql(VIEWS)
    p.sink("totals", path=root / "out")
    return p


def feed(root: Path, number: int, *rows: tuple[str, int, int, int, float]) -> None:
    (root / "in").mkdir(exist_ok=True)
    path = root / "in" / f"{number}.json"
    names = ("op", "id", "src", "dst", "amount")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    os.utime(path, (10**9 + number, 10**9 + number))


def rewritten(root: Path, old: str, new: str) -> None:
    """Put another folder in place of the one in a state's notes and in Spark's log of the files that it has read."""
    for noted in ("state/sinks", "state/spark/sources/0/*"):
        for path in root.glob(noted):
            path.write_text(path.read_text().replace(old, new))


def test_a_state_of_an_earlier_release_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)
    rewritten(tmp_path, HERE, str(tmp_path))
    with build(spark, tmp_path) as p:
        assert p.epoch == 4
        assert sorted((row.country, str(row.total), row.n) for row in p.view("totals").collect()) == [
            ("UK", "12.50", 2)
        ]
        assert sorted(row.id for row in p.view("idle").collect()) == [2]
        assert p.changes("totals", 0, 2).count() > 0  # epochs before are still told
        feed(tmp_path, 9, ("d", 1, 1, 2, 0), ("c", 9, 2, 1, 4.5))
        p.refresh()
        assert p.verify()
        assert {row.country: str(row.total) for row in p.view("totals").collect()}["DE"] == "4.50"


def write(spark: SparkSession, root: Path) -> None:
    """A state of four epochs: a batch frame and a micro-batch of a stream, twice."""
    feed(root, 1, ("c", 1, 1, 2, 2.5), ("c", 2, 2, 3, 7), ("c", 3, 3, 3, 1))
    with build(spark, root) as p:
        p.refresh()
    feed(root, 2, ("u", 3, 3, 3, 10), ("d", 2, 2, 3, 0))
    with build(spark, root) as p:
        p.refresh()
        print(p.epoch, p.view("totals").collect(), p.view("idle").collect())
    rewritten(root, str(root), HERE)
    shutil.rmtree(root / "out")
    for path in root.rglob(".*.crc"):
        path.unlink()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import _start_spark

    STORED.mkdir()
    write(_start_spark(Path(sys.argv[1])), STORED)
