"""Clients of a server for tests: plain HTTP over real sockets, and a reader of server-sent events."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import everview as ev
from everview.serve import Owner, Role, ServeLimits
from everview.serve.explorer import Explorer
from everview.serve.http import HttpDoor
from everview.serve.http.server import HttpServer
from everview.serve.postgres.server import PgServer
from everview.serve.running import Serving

PATIENCE = 600.0  # seconds: kernels may have to be compiled first
SCHEMA = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING, at TIMESTAMP, d DECIMAL(10, 2) DEFAULT 1.5);
CREATE MATERIALIZED VIEW totals AS SELECT v, count(*) AS n FROM t GROUP BY v;
"""


class Client:
    """Requests, each by a connection of its own."""

    def __init__(self, port: int, **headers: str) -> None:
        self._port, self.headers = port, headers

    def raw(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        given = {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        with closing(connection):
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        body = json.dumps(body) if isinstance(body, dict | list) else body
        status, _, answer = self.raw(method, path, body, **headers)
        return status, json.loads(answer)

    def sql(self, text: str, params: Any = None) -> Any:
        status, answer = self("POST", "/v1/query", {"sql": text, "params": params})
        assert status == 200, answer
        return answer.get("rows", answer.get("result"))


class Events:
    """The events of a view, read from a socket one after the other."""

    def __init__(self, port: int, path: str, **headers: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        lines = [
            f"GET {path} HTTP/1.1",
            "Host: localhost",
            *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._response = http.client.HTTPResponse(self._socket)
        self._response.begin()
        self.status = self._response.status

    def next(self) -> tuple[str, int | None, Any]:
        """The next event: its kind, its id and its data."""
        kind, number, data = "", None, None
        while line := self._response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                number = int(value)
            elif name == "data":
                data = json.loads(value)
        return self.next() if not kind else (kind, number, data)

    def close(self) -> None:
        self._response.close()
        self._socket.close()


@contextmanager
def served(
    path: Any = None, *, anyone: Role | None = Role.ADMIN, tokens: Any = None, **more: Any
) -> Iterator[HttpServer]:
    """A server of a database with a table and a view."""
    limits = ServeLimits(statement_seconds=PATIENCE, **more.pop("limits", {}))
    db = more.pop("db", None) or ev.connect(path)
    if db.epoch == 0:
        db.sql(SCHEMA)
    owner = Owner(db, limits)
    explorer = Explorer(owner) if more.pop("explorer", False) else None
    server = HttpServer(HttpDoor(owner, tokens, anyone, **more, explorer=explorer))
    with Serving(owner, [server]):
        yield server


@contextmanager
def served_to_postgres(
    path: Any = None,
    *,
    sql: str = "",
    anyone: Role | None = Role.ADMIN,
    tokens: Any = None,
    tls: Any = None,
    **limits: Any,
) -> Iterator[PgServer]:
    """A server of a database for clients of PostgreSQL."""
    db = ev.connect(path)
    if sql and db.epoch == 0:
        db.sql(sql)
    owner = Owner(db, ServeLimits(**{"statement_seconds": PATIENCE, **limits}))
    server = PgServer(owner, tokens, anyone, tls=tls)
    with Serving(owner, [server]):
        yield server


@contextmanager
def server_process(*words: Any) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """A process of ``everview serve``, and the ports at which it answers by HTTP and to clients of PostgreSQL."""
    command = [sys.executable, "-m", "everview", "serve", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline() + process.stdout.readline()
        ports = re.search(r"https?://127\.0\.0\.1:(\d+)\n.*postgresql://127\.0\.0\.1:(\d+)", said)
        assert ports is not None, said
        yield process, int(ports[1]), int(ports[2])
    finally:
        process.kill()
        process.communicate(timeout=60)
