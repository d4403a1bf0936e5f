"""A Kafka broker of the tests' own, in a temporary directory, reached on loopback and by nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from standalone import JAVA

CONNECTORS = Path(os.environ.get("EVERVIEW_CONNECTORS", Path(__file__).parents[1] / ".connectors"))
CLUSTER = "ZXZlcnZpZXctdGVzdHMtMA"  # an id that is made of 16 bytes
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@contextmanager
def broker() -> Generator[str]:
    """A broker, for as long as this lasts; gives its address."""
    root = Path(tempfile.mkdtemp(prefix="everview-kafka-"))
    port, controller = free_ports(2)
    own = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(root / "data"),
    }
    settings = root / "server.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in (SETTINGS | own).items()))
    try:
        made = subprocess.run(
            _java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", settings),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, f"{made.stdout}{made.stderr}"
        with (root / "log").open("wb") as log:
            server = subprocess.Popen(_java("kafka.Kafka", settings), stdout=log, stderr=log, start_new_session=True)
        try:
            _wait(server, port, root / "log")
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def connectors(use: str) -> str:
    """The class path of the jars of one use, see scripts/connectors.lock."""
    jars = sorted((CONNECTORS / use).glob("*.jar"))
    assert jars, f"there are no jars for {use}: run scripts/connectors.sh"
    return ":".join(map(str, jars))


def _java(program: str, *arguments: str | Path) -> list[str]:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    return [java, "-Xmx256m", *JAVA.split(), "-cp", connectors("broker"), program, *map(str, arguments)]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, f"the broker has ended: {log.read_text()}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the broker does not answer: {log.read_text()}")
