"""Write the classes of Spark that tests load, read and checked, into an archive that a Java machine maps at its start.

Dozens of tests start Spark in a process of their own: killed drivers, examples, clusters. Half of what a Java machine
does in such a short life is to read and check classes; it takes them from an archive instead (class data sharing). An
archive that does not fit the Java or the class path is passed over by Java, so nothing depends on it.

``python scripts/spark_classes.py FILE``
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

QUERIES = (
    "SELECT y, COUNT(*), SUM(x), AVG(z), MIN(t), MAX(d) FROM d JOIN (SELECT x AS other FROM d) ON x = other GROUP BY y",
    "SELECT x FROM d LEFT JOIN (SELECT x AS other FROM d WHERE x > 1) ON x = other WHERE other IS NULL",
    "SELECT x, SUM(x) OVER (PARTITION BY y ORDER BY x), RANK() OVER (ORDER BY z) FROM d",
    "SELECT DISTINCT upper(y), CAST(t AS DATE), date_trunc('month', t), coalesce(z, 0BD) FROM d",
    "SELECT * FROM d EXCEPT ALL SELECT * FROM d WHERE x = 1 ORDER BY x LIMIT 3",
    "SELECT y FROM d WHERE x IN (SELECT x FROM d) UNION ALL SELECT 'z' FROM VALUES (1) AS v(n)",
    "SELECT array(x), map(y, x), named_struct('a', x), explode(array(1, 2)) FROM d",
)
ROWS = "VALUES (1L, 'a', 1.5BD, TIMESTAMP '2026-01-01 10:00:00', DATE '2026-01-01'), (2L, 'b', 2BD, NULL, NULL)"


def main(archive: Path) -> None:
    """Do what tests do with Spark, a little of each; Java writes the archive as it ends."""
    made = archive.with_suffix(".writing")
    made.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:ArchiveClassesAtExit={made}"
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as scratch:
        session = _session(Path(scratch))
        _use(session, Path(scratch))
        gateway = session.sparkContext._gateway
        assert gateway is not None
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    made.replace(archive)


def _session(scratch: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("everview-classes")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _use(session: SparkSession, scratch: Path) -> None:
    rows = session.sql(f"SELECT * FROM {ROWS} AS v(x, y, z, t, d)")
    rows.createOrReplaceTempView("d")
    for query in QUERIES:
        session.sql(query).collect()
    for format in ("parquet", "json", "csv"):
        rows.write.format(format).save(str(scratch / format))
        session.read.format(format).load(str(scratch / format)).toArrow()
    local = session.createDataFrame([(1, "a"), (2, None)], "x BIGINT, y STRING").persist()
    local.repartition(2, "x").mapInArrow(_unchanged, "x BIGINT, y STRING").toArrow()
    local.repartitionById(2, local.x.cast("int")).groupBy("y").count().toPandas()
    local.unpersist()
    stream = session.readStream.schema(rows.schema).parquet(str(scratch / "parquet"))
    writer = stream.writeStream.foreachBatch(_collect).option("checkpointLocation", str(scratch / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _collect(batch: DataFrame, number: int) -> None:
    batch.collect()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
