"""What follows the streams of a pipeline, whoever keeps the positions: one query at a time, and how it ends."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from everview.process import ProcessLock
from everview.runtimes.spark.engine import Engine
from everview.spark.bound import BoundSources
from everview.spark.epochs import PipelineEpochs
from everview.spark.state import PipelineState


class FollowingQuery(Protocol):
    """A handle by which people wait for what follows the streams."""

    @property
    def isActive(self) -> bool: ...

    def processAllAvailable(self) -> None: ...


Handle = TypeVar("Handle", bound=FollowingQuery)


class StreamFollower(Generic[Handle]):
    """Follows the streams of a pipeline by a query; one epoch at a time holds ``lock``."""

    def __init__(self, sources: BoundSources, state: PipelineState, epochs: PipelineEpochs, lock: ProcessLock) -> None:
        self._sources, self._state, self._epochs, self._lock = sources, state, epochs, lock
        self.query: Handle | None = None
        self._stopping = False

    @property
    def active(self) -> bool:
        """Whether the query runs."""
        return self.query is not None and self.query.isActive

    def require(self, engine: Engine) -> None:
        """Refuse to follow streams of which somebody else keeps the positions: they would be read from their start."""
        raise NotImplementedError

    def stop(self, *, drain: bool) -> None:
        """End the query after the epoch under way; with ``drain``, after all that has arrived."""
        query = self.query
        if query is None:
            return
        if drain and query.isActive:
            query.processAllAvailable()
        self._stopping = True
        with self._lock:
            pass  # the epoch under way has ended, and no other one begins
        self._end(query)
        self.query = None

    def _end(self, query: Handle) -> None:
        """End a query, not under the lock, for which its thread may be waiting."""
        raise NotImplementedError
