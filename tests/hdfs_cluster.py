"""An HDFS of the tests' own: a name node and a data node in one Java process, on this machine's loopback.

Python drives Hadoop's own test cluster through Py4J, which PySpark brings with it, as it does most of Hadoop's jars.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from broker import connectors
from standalone import JAVA

_JARS = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j")  # of PySpark's


@dataclass(frozen=True)
class Hdfs:
    """A running HDFS: its address, ``hdfs://host:port``, and Hadoop's own handle on it."""

    address: str
    cluster: Any
    numbers: count[int]

    def state_url(self) -> str:
        """A place for a new state."""
        return f"{self.address}/bank/state-{next(self.numbers)}"


@contextmanager
def hdfs_server() -> Generator[Hdfs]:
    """An HDFS, for as long as this lasts."""
    with tempfile.TemporaryDirectory(prefix="everview-hdfs-") as folder, hadoop() as java:
        hadoop_names = java.jvm.org.apache.hadoop
        place = java.jvm.java.io.File(folder)
        cluster = hadoop_names.hdfs.MiniDFSCluster.Builder(hadoop_names.conf.Configuration(), place).build()
        try:
            cluster.waitActive()
            yield Hdfs(cluster.getURI().toString(), cluster, count())
        finally:
            cluster.shutdown()


@contextmanager
def hadoop() -> Generator[Any]:
    """A Java process with Hadoop's jars, for as long as this lasts; its gateway."""
    import pyspark
    from py4j.java_gateway import JavaGateway

    jars = Path(pyspark.__file__).parent / "jars"
    path = [str(jar) for name in _JARS for jar in jars.glob(f"{name}-[0-9]*.jar")]
    home = os.environ.get("JAVA_HOME")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(next(jars.glob("py4j*.jar"))),
        classpath=":".join([*path, connectors("hdfs")]),
        javaopts=["-Xmx256m", *JAVA.split()],
        java_path=f"{home}/bin/java" if home else "java",
        die_on_exit=True,
        use_shell=False,
    )
    try:
        yield gateway
    finally:
        gateway.shutdown()
        with gateway.java_process as process:  # its pipes are closed
            process.kill()
