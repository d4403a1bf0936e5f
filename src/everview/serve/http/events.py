"""``/v1/views/{name}/changes``: the changes of a view as server-sent events.

The id of an event is its epoch, so a browser that connects again goes on where it was: it sends Last-Event-ID.

- ``snapshot``: all rows, if the subscriber has no epoch to go on from, or that is not kept; large ones come in parts,
  of which all but the last say ``"more": true`` and have no id;
- ``change``: the rows that an epoch has changed, each with its weight behind its values;
- ``end``: nothing more comes, and why.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Final

import numpy as np

from everview.codes import decode
from everview.errors import EverviewError
from everview.serve.changes import ChangeSubscriber, ViewChange
from everview.serve.faults import Fault
from everview.serve.http.formats import columns_of, dumped, json_rows
from everview.serve.owner import Owner

PART: Final = 5_000  # rows of an event
QUIET: Final = 25.0  # seconds after which a comment says that the line still stands
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


def events_of(change: ViewChange) -> list[bytes]:
    """The events of a change, made once for all subscribers."""
    return change.once("events", lambda made: list(_events(made)))


def _events(change: ViewChange) -> Iterator[bytes]:
    batch, kind = change.batch, b"snapshot" if change.snapshot else b"change"
    parts = max(1, -(-len(batch) // PART))
    for part in range(parts):
        words = np.ascontiguousarray(batch.rows[part * PART : (part + 1) * PART])
        table = decode(batch.schema, np.ascontiguousarray(words[:, :-1]), batch.dictionary)
        rows = [[*row, weight] for row, weight in zip(json_rows(table), words[:, -1].tolist(), strict=True)]
        said: dict[str, Any] = {"epoch": change.epoch}
        if change.snapshot and part == 0:
            said["columns"] = columns_of(batch.schema)
        said["rows"] = rows
        if part + 1 < parts:
            yield b"event: %s\ndata: %s\n\n" % (kind, dumped({**said, "more": True}))
        else:
            yield b"event: %s\nid: %d\ndata: %s\n\n" % (kind, change.epoch, dumped(said))


def _end(error: EverviewError | None) -> bytes:
    said = (
        {"reason": "the view has ended"} if error is None else {"reason": error.message, "hint": Fault.of(error).hint}
    )
    return b"event: end\ndata: %s\n\n" % dumped(said)


class EventStream:
    """The answer that sends the changes of a view until the client goes, the view ends, or the client is too slow."""

    def __init__(self, owner: Owner, subscriber: ChangeSubscriber, headers: list[tuple[bytes, bytes]]) -> None:
        self._owner, self._subscriber = owner, subscriber
        self._headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            *headers,
        ]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_until_gone(receive, self._subscriber))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await self._send_all(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._subscriber.close()
            gone.cancel()

    async def _send_all(self, send: Send) -> None:
        subscriber = self._subscriber
        try:
            await _send(send, b": hello\n\n")
            first = await asyncio.wrap_future(self._owner.read(lambda _: _begun(subscriber)))
            for event in first:
                await _send(send, event)
            while not subscriber.over:
                taken = subscriber.take()
                for change in taken:
                    for event in events_of(change):
                        await _send(send, event)
                if not taken and not await _waited(subscriber):
                    await _send(send, b": still here\n\n")
            subscriber.take()  # raises if it was cut off
            await _send(send, _end(None))
        except EverviewError as error:
            await _send(send, _end(error))


def _begun(subscriber: ChangeSubscriber) -> list[bytes]:
    first = subscriber.begin()
    return [] if first is None else events_of(first)


async def _waited(subscriber: ChangeSubscriber) -> bool:
    """Wait for a change; False if the line was quiet for long."""
    try:
        # Not all at once, when many have subscribed at once.
        await asyncio.wait_for(subscriber.wait(), QUIET * random.uniform(0.8, 1.2))
    except TimeoutError:
        return False
    return True


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_gone(receive: Receive, subscriber: ChangeSubscriber) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    subscriber.close()
