"""Writers of a state that are killed with ``kill -9`` on servers of object stores that others have written.

The tests have moto's S3. Here are a gateway that speaks S3 over a folder, and emulators of Azure's and Google's stores,
each on loopback, installed when the trial begins by its own package manager; one that cannot be installed here is a
note. HDFS is that of the tests, whose name node is now and then started anew under a writer. Every writer runs as if on
a machine of its own. All that was told to be committed must be there afterwards, once, in order, and every byte as it
was written.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

from object_store import PLAN, WRITER, make_bucket
from torture.outcome import Outcome

HOME: Final = Path(".connectors/object_stores").absolute()
# Azurite's own account, whose key is printed in its documentation.
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
GO: Final = "go install"
NPM: Final = "npm install --silent --prefix ."
PIP: Final = f"{sys.executable} -m pip install --quiet --target python"


@dataclass(frozen=True)
class StoreServer:
    """A server to try: how to install and start it, how to make the bucket, and the address of a state in it."""

    install: tuple[str, ...]
    command: Callable[[int, Path], list[str]]
    make: Callable[[int], None]
    url: Callable[[int, int], str]  # by port and number of the state


def _make_in_azure(port: int) -> None:
    from azure.storage.blob import BlobServiceClient

    BlobServiceClient(f"http://127.0.0.1:{port}/{ACCOUNT}", credential=KEY).create_container("bank")


def _make_in_gcs(port: int) -> None:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": f"http://127.0.0.1:{port}"}
    storage.Client(project="none", credentials=AnonymousCredentials(), client_options=options).create_bucket("bank")


SERVERS: Final = {
    "versitygw": StoreServer(
        (f"{GO} github.com/versity/versitygw/cmd/versitygw@v1.8.0",),
        lambda port, data: [
            *(str(HOME / "bin" / "versitygw"), "--access", "everview", "--secret", "secret", "--port"),
            *(f"127.0.0.1:{port}", "--quiet", "posix", str(data)),
        ],
        lambda port: make_bucket(f"127.0.0.1:{port}"),
        lambda port, n: (
            f"s3://everview:secret@bank/state-{n}?scheme=http&endpoint_override=127.0.0.1%3A{port}&region=us-east-1"
        ),
    ),
    "azurite": StoreServer(
        (f"{NPM} azurite@3.37.0", f"{PIP} azure-storage-blob azure-identity"),
        lambda port, data: [
            *(str(HOME / "node_modules" / ".bin" / "azurite-blob"), "--silent", "--skipApiVersionCheck"),
            *("--blobPort", str(port), "--location", str(data)),
        ],
        _make_in_azure,
        lambda port, n: f"abfss://{ACCOUNT}:{quote(KEY, safe='')}@127.0.0.1:{port}/bank/state-{n}?enable_tls=false",
    ),
    "fake-gcs-server": StoreServer(
        (f"{GO} github.com/fsouza/fake-gcs-server@v1.56.1", f"{PIP} google-cloud-storage"),
        lambda port, data: [
            *(str(HOME / "bin" / "fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-backend", "memory", "-log-level", "error"),
        ],
        _make_in_gcs,
        lambda port, n: f"gs://anonymous@bank/state-{n}?scheme=http&endpoint_override=127.0.0.1%3A{port}",
    ),
}


def run(seconds: float, seed: int) -> Outcome:
    """Try one server after the other, each for its share of the time."""
    outcome, chance = Outcome(), random.Random(seed)
    (HOME / "python").mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HOME / "python")])
    sys.path.append(str(HOME / "python"))
    share = seconds / (len(SERVERS) + 1)
    for name, server in SERVERS.items():
        if (missing := _installed(server)) is not None:
            outcome.notes.append(f"{name} was not tried: {missing}")
            continue
        with tempfile.TemporaryDirectory() as folder, _served(server, Path(folder)) as port:
            for number in _numbers_for(share):
                _try(outcome, name, server.url(port, number), Path(folder), chance)
    _try_hdfs(outcome, share, chance)
    return outcome


def _try_hdfs(outcome: Outcome, seconds: float, chance: random.Random) -> None:
    from hdfs_cluster import hdfs_server

    with tempfile.TemporaryDirectory() as folder, hdfs_server() as server:

        def disturb() -> None:
            if chance.random() < 0.2:
                server.cluster.restartNameNodes()
                outcome.tried["name nodes started anew under a writer"] += 1

        for _ in _numbers_for(seconds):
            _try(outcome, "HDFS", server.state_url(), Path(folder), chance, disturb)


def _numbers_for(seconds: float) -> Iterator[int]:
    """Numbers from 1 on, for so long; one at least."""
    ends = time.monotonic() + seconds
    for number in count(1):
        yield number
        if time.monotonic() >= ends:
            return


def _installed(server: StoreServer) -> str | None:
    """Install a server and the libraries of its clients; returns why not."""
    environment = {**os.environ, "GOBIN": str(HOME / "bin")}
    for command in server.install:
        stamp = HOME / f"{hashlib.sha256(command.encode()).hexdigest()[:12]}.installed"
        if stamp.exists():
            continue
        if shutil.which(command.split()[0]) is None:
            return f"there is no {command.split()[0]}"
        done = subprocess.run(command.split(), cwd=HOME, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{command}: {done.stderr.strip()[-300:]}"
        stamp.touch()
    importlib.invalidate_caches()  # what pip has installed is to be found
    return None


@contextmanager
def _served(server: StoreServer, folder: Path) -> Generator[int]:
    """A server that has started, with its bucket made, for as long as this lasts; gives its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    (folder / "data").mkdir()
    with (
        (folder / "server.txt").open("w") as said,
        subprocess.Popen(server.command(port, folder / "data"), stdout=said, stderr=said) as process,
    ):
        try:
            _wait_for(port)
            server.make(port)
            yield port
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"no server at port {port} after 30 seconds")


def _try(
    outcome: Outcome,
    name: str,
    url: str,
    folder: Path,
    chance: random.Random,
    disturb: Callable[[], None] = lambda: None,
) -> None:
    """Let three writers of a state be killed, one after the other, and look at what they have left.

    A writer whose server is disturbed may end by itself.
    """
    from everview.traces.store import Store

    place = folder / url.partition("?")[0].rpartition("/")[2]
    os.environ["EVERVIEW_CACHE"] = str(place / "maker")
    Store.create(url, PLAN).close()
    told = 0
    for kill in range(3):
        environment = {**os.environ, "EVERVIEW_CACHE": str(place / f"machine-{kill}")}
        command = [sys.executable, "-c", WRITER, url]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            wanted = told + chance.randrange(3, 20)
            disturb()
            for line in writer.stdout:
                told = int(line)
                if told >= wanted:
                    break
            time.sleep(chance.random() / 20)
            writer.send_signal(signal.SIGKILL)
            told = max([told, *map(int, writer.stdout.read().split())])
        outcome.tried[f"writers killed on {name}"] += 1
    os.environ["EVERVIEW_CACHE"] = str(place / "reader")
    with Store.open(url) as store:
        epochs = [int(part.array[0, 0]) for part in store.slices("edges")]
        if epochs != [*range(1, store.epoch + 1)] or not told <= store.epoch <= told + 1:
            outcome.faults.append(f"{name}: told {told}, epoch {store.epoch}, rows of {epochs}")
        store.verify()
