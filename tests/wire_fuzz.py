"""A protocol fuzz: streams of messages to a server that are cut off, reordered, oversized, hostile or plain random."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Callable

STARTUP = struct.pack("!ii", 0, 196608)[4:] + b"user\0ada\0database\0everview\0\0"
TEXTS = (
    b"SELECT 1", b"SELECT * FROM t", b"INSERT INTO t VALUES ($1, $2)", b"BEGIN", b"COMMIT", b"ROLLBACK", b"SAVEPOINT s",
    b"COPY t FROM STDIN", b"COPY t TO STDOUT", b"SUBSCRIBE v", b"SELECT '", b"/*", b"SELECT $99999", b"\xff\xfe", b"",
    b"SELECT " + b"(" * 500, b"SET search_path TO x", b"DISCARD ALL", b";;;", b"SELECT $65536",
    b"SELECT $999999999999", b"SELECT $0", b"SELECT $1::numeric", b"SELECT round(1.5, -20000000)",
    b"SELECT repeat('x', 2000000000)", b"DECLARE c CURSOR FOR SELECT 1", b"FETCH 5 FROM c", b"BEGIN READ ONLY",
    b"SELECT 1; SELECT 2; SELEC 3",
)  # fmt: skip


def message(letter: bytes, body: bytes) -> bytes:
    """A message whose length is right."""
    return letter + struct.pack("!i", len(body) + 4) + body


def _values(rng: random.Random) -> bytes:
    parts = [struct.pack("!H", count := rng.choice((0, 1, 2, 65535)))]
    for _ in range(min(count, 3)):
        raw = rng.randbytes(rng.randrange(9))
        parts.append(struct.pack("!i", rng.choice((-1, len(raw), len(raw), 2**31 - 1, -2))) + raw)
    return b"".join(parts)


def hostile_message(rng: random.Random) -> bytes:
    """A message that a client might send, or nearly so."""
    name, text = rng.choice((b"", b"a", b"b")), rng.choice(TEXTS)
    kinds: dict[bytes, Callable[[], bytes]] = {
        b"Q": lambda: text + b"\0",
        b"P": lambda: name + b"\0" + text + b"\0" + struct.pack("!HI", 1, rng.choice((0, 20, 25, 1007, 2**32 - 1))),
        b"B": lambda: (name + b"\0") * 2 + struct.pack("!HH", 1, rng.choice((0, 1, 7))) + _values(rng) + b"\0\0",
        b"D": lambda: rng.choice((b"S", b"P", b"?")) + name + b"\0",
        b"E": lambda: name + b"\0" + struct.pack("!i", rng.choice((0, 1, -1, 2**31 - 1))),
        b"C": lambda: rng.choice((b"S", b"P", b"?")) + name + b"\0",
        b"S": bytes, b"H": bytes, b"c": bytes, b"f": lambda: b"no\0", b"d": lambda: rng.randbytes(20),
        b"p": lambda: rng.randbytes(20), b"F": lambda: rng.randbytes(8), b"\0": bytes,
    }  # fmt: skip
    letter = rng.choice(list(kinds))
    made = message(letter, kinds[letter]())
    match rng.randrange(12):
        case 0:
            return made[: rng.randrange(len(made))]  # cut off: what follows is read as its rest
        case 1:
            return made[:1] + struct.pack("!I", rng.choice((0, 3, 2**31 - 1, 2**32 - 1, 10**8))) + made[5:]
        case 2:
            place = rng.randrange(len(made))
            return made[:place] + rng.randbytes(1) + made[place + 1 :]
        case _:
            return made


def hostile_start(rng: random.Random) -> bytes:
    """The first bytes of a connection: mostly right, so that what follows is reached."""
    if rng.randrange(5):
        return struct.pack("!i", len(STARTUP) + 4) + STARTUP
    code = rng.choice((80877102, 80877103, 80877104, 196608, 196610, 131072, rng.getrandbits(31)))
    return rng.choice((
        rng.randbytes(rng.randrange(40)),
        struct.pack("!ii", 8, code) * rng.randrange(1, 4),
        struct.pack("!iiiI", 16, 80877102, rng.getrandbits(31), rng.getrandbits(32)),
        struct.pack("!I", rng.choice((0, 4, 10_001, 2**32 - 1))) + rng.randbytes(8),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ))  # fmt: skip


def attack(port: int, rng: random.Random) -> None:
    """One connection of hostile bytes, left in one way or another."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one, contextlib.suppress(ConnectionError):
        one.sendall(hostile_start(rng))
        one.sendall(b"".join(hostile_message(rng) for _ in range(rng.randrange(12))))
        if rng.randrange(2):  # wait for what is said; else leave at once
            one.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                one.sendall(message(b"S", b"") + message(b"X", b""))
                while one.recv(65536):
                    pass


def attack_http(port: int, rng: random.Random) -> None:
    """One request over HTTP that is broken somewhere."""
    path = rng.choice(
        ("/v1/query", "/v1/views/v", "/v1/ingest/t", "/v1/views/v/changes", "/metrics", "/..%2f..%2fetc", "/")
    )
    lines = [
        f"{rng.choice(('GET', 'POST', 'PUT', 'X' * 300))} {path} HTTP/1.{rng.choice('0129')}".encode(),
        rng.choice((b"Host: localhost", b"Host: evil", b"host localhost")),
        rng.choice(
            (b"Content-Length: 99999999999999999999", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"X: y")
        ),
        rng.choice((b"Content-Type: application/json", b"Content-Type: \xff", b"A: " + b"b" * 70_000)),
    ]
    body = rng.choice((b'{"sql": "SELECT 1"}', b'{"sql": 1}', b"[" * 3000, rng.randbytes(50), b"ffffffff\r\nx", b""))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one, contextlib.suppress(ConnectionError):
        one.sendall(b"\r\n".join([*lines, b"", body]))
        if rng.randrange(2):
            one.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                one.recv(65536)
