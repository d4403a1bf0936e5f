"""Plain Spark SQL counting patterns in the same graph, from parquet, in a session that has run before.

Its best shot: two local cores as everyone has, adaptive execution, and a small run first for what is slow once.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from isolate import answer, give_up_after
from patterns import query
from skewed import stream

WARMING = 1_000


def measure(pattern: Any, edges: int, limit: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    from everview.spark import session

    spark: SparkSession = session("local[2]", memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    with tempfile.TemporaryDirectory() as directory:
        paths = [_written(Path(directory), count) for count in (WARMING, edges)]
        _counted(spark, paths[0], pattern)
        give_up_after(limit)
        began = time.perf_counter()
        count = _counted(spark, paths[1], pattern)
        found = {"load": {"seconds": time.perf_counter() - began}, "counts": [count], "version": spark.version}
        spark.stop()
    return found


def _written(directory: Path, edges: int) -> str:
    path = directory / f"{edges}.parquet"
    columns = [np.ascontiguousarray(column) for column in stream(edges).start.T]
    pq.write_table(pa.table(columns, names=["src", "dst"]), path)
    return str(path)


def _counted(spark: Any, path: str, pattern: Any) -> int:
    spark.read.parquet(path).createOrReplaceTempView("edge")
    return int(spark.sql(query(pattern)).collect()[0][0])


if __name__ == "__main__":
    answer(measure)
