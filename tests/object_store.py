"""An object store of the tests' own, moto's S3 over HTTP on this machine's loopback; and trials for any store."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everview.errors import LockedState
from everview.traces.store import Fingerprints, Store
from everview.traces.store.objects import Objects

_numbers = count()

PLAN = Fingerprints("plan", {"edges": "e1"})

# A program that commits epoch after epoch to the state at a URL, and says each number when it is committed.
WRITER = """
import sys
import numpy as np
from everview.traces.store import Store
store = Store.open(sys.argv[1])
while True:
    epoch = store.epoch + 1
    store.commit(epoch, [("edges", 0, np.full((9000 if epoch % 3 == 0 else 1, 2), epoch))])
    print(epoch, flush=True)
    if epoch % 7 == 0:
        store.vacuum()
"""


def make_bucket(server: str) -> None:
    """Make the bucket ``bank`` at a server that speaks S3."""
    import boto3

    client: Any = boto3.client(
        "s3",
        endpoint_url=f"http://{server}",
        region_name="us-east-1",
        aws_access_key_id="everview",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="bank")


@contextmanager
def s3_server() -> Generator[str]:
    """A server with the bucket ``bank``, for as long as this lasts; gives ``host:port``."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        make_bucket(f"{host}:{port}")
        yield f"{host}:{port}"
    finally:
        server.stop()


def state_url(server: str) -> str:
    """A place for a new state; all that it takes to reach the server is in it, so that workers need nothing else."""
    where = server.replace(":", "%3A")
    query = f"scheme=http&endpoint_override={where}&region=us-east-1"
    return f"s3://everview:secret@bank/state-{next(_numbers)}?{query}"


# -- trials


def try_objects(objects: Objects, folder: Path) -> None:
    """Everything that a state asks of a store."""
    assert objects.create("log/a", b"one")
    assert not objects.create("log/a", b"two")
    objects.write("segments/b", b"three")
    objects.write("segments/b", b"fourth")
    assert (objects.read("log/a"), objects.read("log/b"), objects.size("segments/b")) == (b"one", None, 6)
    assert objects.size("segments/none") is None
    assert (objects.names("log"), objects.names("nothing")) == (["a"], [])
    assert objects.fetch("segments/b", folder / "b")
    assert (folder / "b").read_bytes() == b"fourth"
    assert not objects.fetch("segments/none", folder / "none")
    objects.delete("log/a")
    objects.delete("log/a")
    assert objects.names("log") == []


def try_killed_writers(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three writers are killed, one after the other: all that they said is there, once and in order."""
    Store.create(url, PLAN).close()
    told = 0
    for kill in range(3):
        monkeypatch.setenv("EVERVIEW_CACHE", str(folder / f"machine-{kill}"))
        with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                told = int(line)
                if told >= 5 * (kill + 1) + kill:
                    break
            writer.send_signal(signal.SIGKILL)
            told = max([told, *map(int, writer.stdout.read().split())])
    with Store.open(url) as store:
        epochs = [int(part.array[0, 0]) for part in store.slices("edges")]
        assert epochs == [*range(1, store.epoch + 1)]
        assert told <= store.epoch <= told + 1
        store.verify()


def try_two_writers(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer on another machine takes over from one that lives, which stops at its next commit."""
    Store.create(url, PLAN).close()
    shown = re.escape(re.sub(r"\?.*|[^/]*@", "", url))
    with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, stderr=-1, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "1\n"
        with pytest.raises(LockedState, match=rf"another writer has {shown} open \(process"):
            Store.open(url)
        monkeypatch.setenv("EVERVIEW_CACHE", str(folder / "elsewhere"))
        with Store.open(url) as store:
            said, why = writer.communicate(timeout=60)
            assert f"LockedState: another writer has taken over the state at {store.place}" in why
            assert store.epoch == max([1, *map(int, said.split())])
            store.commit(store.epoch + 1, [("edges", 0, np.full((1, 2), -1))])
