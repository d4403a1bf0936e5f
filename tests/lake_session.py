"""A session with Delta Lake and Iceberg, on the PySpark of scripts/connectors.sh: both are made for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker import connectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark 4.1 leaves the sockets that rows come through to the garbage collector.
LEFT_OPEN = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
CATALOG = "ice"  # the catalog of Iceberg's tables, in a folder


def lake_session(scratch: Path) -> SparkSession:
    """A session whose own catalog is Delta's, and `CATALOG` Iceberg's, in the folder ``scratch/iceberg``."""
    import pyspark
    from pyspark.sql import SparkSession

    assert pyspark.__version__.startswith("4.1."), "run this with the PySpark of scripts/connectors.sh on PYTHONPATH"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": f"{connectors('delta')}:{connectors('iceberg')}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(scratch / "iceberg"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.master("local[2]").getOrCreate()
