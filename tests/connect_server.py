"""A Spark Connect server of the tests' own, in a process of its own, on this machine's loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from standalone import SOURCES, said

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(scratch: Path) -> Generator[str]:
    """The address of a server, for as long as this lasts; its workers have this interpreter and these sources."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
    }
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]"]
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    path = os.pathsep.join((str(SOURCES), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    log = scratch / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen([*submit, *options], stdout=out, stderr=out, env=environment, cwd=scratch)
    try:
        said(log, r"(start GRPC service)")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)
