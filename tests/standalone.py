"""A Spark cluster of the tests' own: a standalone master and two workers on this machine's loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = Path(__file__).parents[1] / "src"
PATIENCE = 300.0  # seconds until a process must have said that it is there
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes of minutes: compile quickly, not well
CLASSES = Path(sys.prefix) / "spark-classes.jsa"  # of scripts/spark_classes.py; Java passes it over if it does not fit
SPARK_JAVA = f"{JAVA} -Xlog:disable -XX:SharedArchiveFile={CLASSES}"


@dataclass(frozen=True)
class Standalone:
    """The cluster: its address, and the processes of its workers."""

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> list[int]:
        """The ids of the executors' processes, which are children of the workers."""
        parents = {worker.pid for worker in self.workers}
        return [child for child in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(child) in parents]

    def kill_executor(self) -> None:
        """End an executor as a machine that fails would."""
        os.kill(self.executors()[0], signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Nothing moves on executors inside of a block: what they are at work on when it begins does not end."""
        frozen = self.executors()
        for executor in frozen:
            os.kill(executor, signal.SIGSTOP)
        try:
            yield
        finally:
            for executor in frozen:
                with suppress(ProcessLookupError):  # it was killed
                    os.kill(executor, signal.SIGCONT)


@contextmanager
def standalone(scratch: Path) -> Generator[Standalone]:
    """A master and two workers of two cores each, for as long as this lasts."""
    with ExitStack() as processes:
        log = scratch / "master.log"
        _started(processes, log, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = said(log, r"Starting Spark master at (spark://\S+)")
        workers = tuple(
            _started(
                *(processes, scratch / f"worker-{number}.log", "worker.Worker", "--host", "127.0.0.1"),
                *("--cores", "2", "--memory", "1g", "--webui-port", "0", "--work-dir", str(scratch / "work"), master),
            )
            for number in range(2)
        )
        for number in range(2):
            said(scratch / f"worker-{number}.log", r"(Successfully registered) with master")
        yield Standalone(master, workers)


@contextmanager
def driver(master: str, scratch: Path, environment: Mapping[str, str] | None = None) -> Generator[SparkSession]:
    """A session on the cluster, with one executor of one core on each worker."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SPARK_JAVA,
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": str(SOURCES),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(environment or {}),
    }
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("everview-cluster-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _started(processes: ExitStack, log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SPARK_JAVA,
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    output: IO[bytes] = processes.enter_context(log.open("wb"))
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    processes.callback(_ended, process)
    return process


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def said(log: Path, pattern: str) -> str:
    """What a process has written, once it has."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        match = re.search(pattern, log.read_text())
        if match is not None:
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} does not say {pattern}: {log.read_text()}")


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return -1
