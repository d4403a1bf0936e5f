"""A server beside PostgreSQL on the same rows: lookups and small queries a second, and how soon subscribers know.

Each client is one connection that waits for every answer. The server is a process of its own, as PostgreSQL is.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import resource
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from figures import AtMost, Findings
from scale import FULL, Scale

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cluster import cluster
from serving import server_process

ROWS, SHOPS = 10_000, 20
TABLE = "CREATE TABLE sale (id BIGINT PRIMARY KEY, shop BIGINT, amount BIGINT)"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total FROM sale GROUP BY shop"
LOOKUP = "SELECT id, shop, amount FROM sale WHERE id = %s"
SMALL = "SELECT count(*), sum(amount) FROM sale WHERE shop = %s AND id < 500"


def findings(scale: Scale) -> Findings:
    found = Findings("Serving")
    seconds, subscribers, followers, changes = (3.0, 10_000, 500, 100) if scale is FULL else (0.5, 200, 50, 20)
    rows = [(number, number % SHOPS, number) for number in range(ROWS)]
    with cluster() as where, psycopg.connect(where, autocommit=True) as client:
        _filled(client, rows)
        found.add("PostgreSQL, lookups by key", _rate(_asked(client, LOOKUP), seconds), "/s")
        found.add("PostgreSQL, small queries", _rate(_asked(client, SMALL), seconds), "/s")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "made.sql"
        script.write_text(f"{TABLE}; {TOTALS};")
        with server_process(script, "--port", 0) as (process, web, port):
            url = f"host=127.0.0.1 port={port} user=ada"
            with psycopg.connect(url, autocommit=True) as client:
                _filled(client, rows)
                found.add("the wire, lookups by key", _rate(_asked(client, LOOKUP), seconds), "/s")
                found.add("the wire, small queries", _rate(_asked(client, SMALL), seconds), "/s")
                found.add("HTTP, lookups by key", _rate(_fetched(web), seconds), "/s")
                delays = _delays(client, url, 200)
                found.add("from ingest to subscriber, median", statistics.median(delays) * 1e3, "ms", AtMost(5))
                before = _resident(process.pid)
                many, held = asyncio.run(_subscribed(port, process.pid, subscribers, lambda n: _insert(client, -n)))
                found.add(f"a change to all of {subscribers:,} subscribers", many * 1e3, "ms")
                found.add("memory of a subscriber that waits", (held - before) / subscribers, "KiB")
                busy = asyncio.run(_kept_busy(port, client, followers, changes))
                found.add(f"a change to each of {followers:,} busy subscribers, median", busy[0] * 1e3, "ms")
                found.add(f"a change to the last of {followers:,} busy subscribers, slowest", busy[1] * 1e3, "ms")
    found.raw = {"delays": delays}
    return found


def _filled(client: psycopg.Connection[Any], rows: list[tuple[int, int, int]]) -> None:
    if not client.execute("SELECT 1 FROM pg_class WHERE relname = 'sale'").fetchall():
        client.execute(TABLE)
    with client.cursor().copy("COPY sale (id, shop, amount) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _asked(client: psycopg.Connection[Any], text: str) -> Callable[[int], None]:
    def ask(number: int) -> None:
        assert len(client.execute(text, (number % SHOPS,), prepare=True).fetchall()) == 1

    return ask


def _fetched(port: int) -> Callable[[int], None]:
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def fetch(number: int) -> None:
        connection.request("GET", f"/v1/views/sale?id={number % SHOPS}")
        assert len(json.loads(connection.getresponse().read())["rows"]) == 1

    return fetch


def _rate(ask: Callable[[int], None], seconds: float) -> float:
    for number in range(20):
        ask(number)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        ask(count)
        count += 1
    return count / (time.perf_counter() - began)


def _delays(client: psycopg.Connection[Any], url: str, count: int) -> list[float]:
    """Seconds from sending a row to having its change, by a subscriber that reads beside."""
    delays: list[float] = []
    with (
        psycopg.connect(url, autocommit=True) as other,
        closing(other.cursor().stream("SUBSCRIBE totals")) as changes,
    ):  # an open stream holds the connection's lock
        for _ in range(SHOPS):
            next(changes)
        for number in range(count):
            began = time.perf_counter()
            client.execute("INSERT INTO sale VALUES (%s, 1, 1)", (ROWS + number,), prepare=True)
            next(changes)
            next(changes)
            delays.append(time.perf_counter() - began)
    return delays


def _insert(client: psycopg.Connection[Any], number: int) -> None:
    client.execute("INSERT INTO sale VALUES (%s, 1, 1)", (number,), prepare=True)


def _resident(process: int) -> int:
    """The memory of a process in KiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def _following(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Subscribers of the totals that have all their rows, each on a connection of its own."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    start = struct.pack("!i", 196608) + b"user\0ada\0\0"
    query = b"SUBSCRIBE totals\0"
    said = struct.pack("!i", len(start) + 4) + start + b"Q" + struct.pack("!i", len(query) + 4) + query
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
        writer.write(said)
        streams.append((reader, writer))
    for reader, _ in streams:
        await _rows(reader, SHOPS)
    return streams


async def _subscribed(port: int, process: int, count: int, insert: Callable[[int], None]) -> tuple[float, int]:
    """Seconds until a change has come to every one of many subscribers, and the memory of the process that has them."""
    streams = await _following(port, count)
    held, began = _resident(process), time.perf_counter()
    await asyncio.to_thread(insert, 1)
    await asyncio.gather(*(_rows(reader, 2) for reader, _ in streams))
    taken = time.perf_counter() - began
    for _, writer in streams:
        writer.close()
    return taken, held


async def _kept_busy(port: int, client: psycopg.Connection[Any], count: int, changes: int) -> tuple[float, float]:
    """Seconds from a change to a subscriber that has it, while changes follow each other: the median and the most."""
    streams, delays = await _following(port, count), list[float]()

    async def follow(reader: asyncio.StreamReader, began: float) -> None:
        await _rows(reader, 2)
        delays.append(time.perf_counter() - began)

    for number in range(changes):
        began = time.perf_counter()
        inserted = asyncio.to_thread(_insert, client, -2 - number)
        await asyncio.gather(inserted, *(follow(reader, began) for reader, _ in streams))
    for _, writer in streams:
        writer.close()
    return statistics.median(delays), max(delays)


async def _rows(reader: asyncio.StreamReader, count: int) -> None:
    while count:
        letter, length = struct.unpack("!ci", await reader.readexactly(5))
        await reader.readexactly(length - 4)
        count -= letter == b"D"
