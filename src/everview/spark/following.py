"""The handle of a pipeline's streaming query: Spark's own, but the failure of a query is told in our words."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from everview.spark.failures import of_spark


class Following(StreamingQuery):
    """A streaming query with waiting methods that raise the last batch's own exception, not Java's version of it."""

    def __init__(self, query: Any, failed: Callable[[], BaseException | None]) -> None:
        super().__init__(query)
        self._failed = failed

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        with self._told():
            return super().awaitTermination(timeout)

    def processAllAvailable(self) -> None:
        with self._told():
            super().processAllAvailable()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except StreamingQueryException as error:
            failed = self._failed() or of_spark(error)
            raise failed from failed.__cause__ or error


def following(query: Any, failed: Callable[[], BaseException | None]) -> StreamingQuery:
    """A query that Spark has started, as `Following`; a handle of another kind of session stays as it is."""
    return Following(getattr(query, "_jsq"), failed) if isinstance(query, StreamingQuery) else query  # noqa: B009
