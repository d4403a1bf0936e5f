"""A server at work: an owner, and doors that are open in an event loop of their own.

A stop goes from outside to inside: subscribers are told, doors take nothing more and let requests under way end, and
then the owner lets its work end and closes the database.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from everview.blocks import Closing
from everview.serve.owner import Owner

T = TypeVar("T")


class ServerDoor(Protocol):
    """A way by which clients come in, as HTTP is."""

    @property
    def name(self) -> str:
        """Where it is, for people."""
        ...

    async def start(self) -> None:
        """Let clients in."""
        ...

    async def stop(self) -> None:
        """Refuse new clients, and let connected ones finish what they have begun."""
        ...


class Serving(Closing):
    """Doors of an owner that are open until `close`."""

    def __init__(self, owner: Owner, doors: Sequence[ServerDoor]) -> None:
        self.owner, self.doors = owner, tuple(doors)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="everview-serve", daemon=True)
        self._thread.start()
        self._closed = False
        try:
            self._await(self._start())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop: doors first, then the owner, which lets all that was taken end."""
        if self._closed:
            return
        self._closed = True
        self.owner.hub.close()
        self._await(self._stop())
        self.owner.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        for door in self.doors:
            await door.start()

    async def _stop(self) -> None:
        await asyncio.gather(*(door.stop() for door in self.doors), return_exceptions=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()
