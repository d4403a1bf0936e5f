"""Pipelines on a session of Spark Connect, whose server is another process: what works, and what is refused.

One server serves all tests here, which therefore run in a process without another Spark session.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connect_server import connect_server
from everview.errors import DataFrameError, PipelineError
from everview.spark import Pipeline
from everview.spark.paths import hidden_text, is_over_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.connect]

COLUMNS = "id BIGINT NOT NULL, k STRING, x DOUBLE"
FIRST = [(1, "a", 1.0), (2, "a", 2.5), (3, "b", 1.0), (4, None, None)]
WORDS = [("a", Decimal("1.50"), dt.datetime(2024, 1, 1), [1, None]), ("b", None, None, None)]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of Spark Connect."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        session = SparkSession.builder.remote(address).getOrCreate()
        yield session
        session.stop()


def rows(frame: DataFrame) -> Counter[str]:
    return Counter(map(str, frame.collect()))


def opened(remote: SparkSession, path: Path, place: Any) -> Pipeline:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    p = Pipeline(remote, path / "state", shards=2, place=place)
    p.source("t", remote.createDataFrame(FIRST, COLUMNS), key="id", changes="upsert")
    p.sql("CREATE MATERIALIZED VIEW total AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    t = p.frame("t")
    words = remote.createDataFrame(WORDS, "k STRING, d DECIMAL(5,2), at TIMESTAMP, n ARRAY<INT>")
    loud = F.udf(lambda text: None if text is None else text.upper(), "string")
    p.define("joined", t.join(words, "k").select(t.id, loud("k").alias("loud"), "d", "at", "n"))
    so_far = Window.partitionBy("k").orderBy("id")
    p.define("running", t.select("id", F.sum("x").over(so_far).alias("s")))
    p.define("largest", remote.sql("SELECT k, max(s) AS s FROM {total} GROUP BY k", total=p.frame("total")))
    p.define("again", t.mapInArrow(lambda batches: batches, t.schema), otherwise="recompute")
    p.sink("total", path=path / "out", format="parquet")
    return p


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_views_are_those_of_a_classic_session(remote: SparkSession, tmp_path: Path, place: str) -> None:
    with opened(remote, tmp_path, place) as p:
        p.refresh()
        p.refresh(t=remote.createDataFrame([(3, "b", 9.0), (5, "a", 0.5)], COLUMNS))
        assert rows(p.view("largest")) == Counter(["Row(k='a', s=4.0)", "Row(k='b', s=9.0)", "Row(k=None, s=None)"])
        assert rows(p.view("again")) == rows(p.table("t"))
        assert p.view("joined").count() == 4
        assert p.verify().raise_if_different()
        changes = rows(p.changes("total", since=1))
        stored = remote.read.format("everview").option("view", "total").load(str(tmp_path / "state"))
        assert rows(stored) == rows(p.view("total"))
        assert sum(row["_weight"] for row in remote.read.parquet(str(tmp_path / "out")).collect()) == 3
        assert sum(changes.values()) == 4


def test_what_is_refused_on_connect(remote: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    with Pipeline(remote, tmp_path / "state", shards=2) as p:
        p.source("t", remote.createDataFrame(FIRST, COLUMNS), key="id", changes="upsert")
        t = p.frame("t")
        with pytest.raises(DataFrameError, match=r"Rand is different(.|\n)*called from .*test_connect\.py"):
            p.define("v", t.select(t.x + F.rand()))
        t.createOrReplaceTempView("at_the_server")
        with pytest.raises(DataFrameError, match=r"outside of its server(.|\n)*p\.frame"):
            p.define("v", remote.table("at_the_server"))
        with pytest.raises(Exception, match="stands for rows in definitions and has none"):
            t.collect()
        stream = remote.readStream.format("rate").load()
        p.source("rate", stream.select("value"))
        p.define("v", p.frame("rate").select(F.sum("value")))
        with pytest.raises(PipelineError, match="on Spark Connect micro-batches run at the server"):
            p.start()


def test_a_frame_that_hides_text_is_told_of(remote: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "0.json").write_text('{"id": 1}\n')
    where, schema = str(tmp_path), "id BIGINT, v BIGINT"
    reader = remote.read.schema(schema)
    assert hidden_text(reader.json(where).filter("v > 1").union(remote.createDataFrame([(1, 2)], schema))) == "JSON"
    assert hidden_text(remote.readStream.schema(schema).csv(where)) == "CSV"
    assert hidden_text(reader.option("Mode", "failfast").json(where)) is None
    assert hidden_text(remote.read.schema(f"{schema}, _corrupt_record STRING").json(where)) is None
    assert hidden_text(remote.read.json(where)) == "JSON"
    assert hidden_text(remote.read.schema(schema).parquet(where)) is None
    assert hidden_text(remote.range(3).toDF("id")) is None
    assert is_over_files(remote.read.schema(schema).parquet(where))
    assert not is_over_files(remote.range(3).toDF("id"))


def test_files_are_followed(remote: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with Pipeline(remote, tmp_path / "state", shards=2, positions="state") as p:
        p.source("t", path=inbox, format="json", stream=True, schema="id BIGINT, k STRING")
        p.define("v", p.frame("t").groupBy("k").count())
        for number in range(2):
            written = inbox / f"{number}.json"
            written.write_text("".join(json.dumps({"id": n, "k": "ab"[n % 2]}) + "\n" for n in range(3)))
            p.refresh()
        assert re.findall(r"\d", str(sorted(rows(p.view("v"))))) == ["4", "2"]
