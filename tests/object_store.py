"""An object store of the tests' own: moto's S3 over HTTP, on this machine's loopback."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

from everview.traces.store import Fingerprints

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
