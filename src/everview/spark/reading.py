"""Reading a pipeline: rows and changes of views, rows set aside, progress, and verification."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from everview.errors import PipelineError
from everview.runtimes.embedded.history import epoch_at, kept_epoch
from everview.spark.delivery import read as read_view
from everview.spark.delivery import read_table
from everview.spark.epochs import TOKEN
from everview.spark.explain import explain
from everview.spark.failures import in_our_words
from everview.spark.fluent import put_together
from everview.spark.metrics import metrics
from everview.spark.parts import PipelineParts
from everview.spark.verifying import verified
from everview.spark.why import asking
from everview.spark.zones import require_zone
from everview.types import unknown_name
from everview.verify import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.observe import TickObserver
    from everview.why import Why


class PipelineReading(PipelineParts):
    """The methods of a pipeline that only read: rows, changes, progress, verification."""

    def metrics(self) -> str:
        """The progress as text in Prometheus' format; see `everview.spark.metrics`. Waits for no epoch under way."""
        return metrics(self.progress, delivered=self._delivery.last)

    def observe(self, observer: TickObserver | None) -> None:
        """Call ``observer(report)`` after every epoch, also one that failed; None ends that.

        `everview.observe.TickSpans` makes spans of OpenTelemetry of reports, `everview.observe.TickLogs` lines of JSON.
        """
        self._epochs.observer = observer

    @property
    def token(self) -> str | None:
        """The token of the last refresh that was given one."""
        return self._state.engine().offsets.get(TOKEN)

    @in_our_words()
    def view(self, name: str, *, version: int | None = None, timestamp: datetime | None = None) -> DataFrame:
        """The rows of a view now, each as often as its weight; or at an epoch or a time of which the state is kept.

        A ``timestamp`` without a time zone is in UTC.
        """
        if version is not None and timestamp is not None:
            raise PipelineError("an epoch and a time are two moments", hint="give version or timestamp")
        if timestamp is not None:
            if not isinstance(timestamp, datetime):  # pyright: ignore[reportUnnecessaryIsInstance], a user's mistake
                raise PipelineError(f"{timestamp!r} is no time", hint="give a datetime, or an epoch as version=")
            moment = timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp
            version = epoch_at(self.path, moment)
        with self._lock:
            if version is not None and version != self.epoch:
                return read_view(self.spark, self.path, name, epoch=kept_epoch(self.path, version))
            engine = self._state.engine()
            engine.run.view(name)  # or there is none
            return self._delivery.rows(engine, name)

    @in_our_words()
    def trees(self, name: str) -> Any:
        """The answer of a fluent query now: its rows and those beneath, fetched and put together."""
        with self._lock:
            if name not in self._queries.fluent:
                raise unknown_name("fluent query", name, self._queries.fluent)
            part, run = self._queries.fluent[name], self._state.engine().run
            return put_together(name, part, {view: run.view(view).to_arrow() for view, _ in part.walk(name)})

    @in_our_words()
    def table(self, name: str) -> DataFrame:
        """The contents of a source now, if they are kept."""
        with self._lock:
            self._sources.require(name)
            return read_table(self.spark, self.path, self._state.engine(), name)

    @in_our_words()
    def changes(self, name: str, since: int | None = None, until: int | None = None) -> DataFrame:
        """The changes of a view between two epochs, by default in the last one; ``_weight`` says how often."""
        with self._lock:
            now = self.epoch
            if name not in self._state.engine().run.views:
                raise unknown_name("view", name, self._state.engine().run.views)
            until = now if until is None else until
            return read_view(
                self.spark, self.path, name, since=max(until - 1, 0) if since is None else since, until=until
            )

    @in_our_words()
    def quarantined(self) -> DataFrame:
        """The rows that were set aside: ``source``, ``reason``, ``raw`` and ``epoch``."""
        return self._state.place.read_aside(self.spark)

    @in_our_words()
    def explain(self) -> str:
        """Sources, views, sinks and circuit, the rows that traces hold, and where the last epochs ran and why."""
        with self._lock:
            return explain(
                self._state.engine(),
                self._definitions.circuit,
                [bound.spec for bound in self._sources.by_name.values() if not bound.recomputed],
                self._sinks,
                self.progress,
                self._queries.recomputed_views,
            )

    @in_our_words()
    def verify(self, *views: str) -> Verdict:
        """Compute views from scratch from the contents of the sources, and compare.

        Views in SQL are computed by plain Spark SQL, as far as that can express them; the others by the oracle.
        """
        with self._lock:
            require_zone(self.spark, self._zone)
            engine = self._state.engine()
            return verified(self.spark, engine, self._definitions, views, self.view, self._tables)

    @in_our_words()
    def why(self, view: str, row: Any, *, rows: int = 20, seconds: float = 10.0) -> Why:
        """Why a view has a row: a tree of plan nodes, down to the rows of sources behind the row.

        The driver reads the traces of the state, as far as the answer needs them; no job of Spark runs. Below each
        node at most so many ``rows`` are named, and the search ends after so many ``seconds`` of work.
        """
        with self._lock:
            return asking(self._state.engine(), self._definitions, view, rows=rows, seconds=seconds).why(row)

    @in_our_words()
    def why_not(self, view: str, row: Any, *, rows: int = 20, seconds: float = 10.0) -> Why:
        """Why a view does not have a row: the first condition that fails, and the rows that come nearest."""
        with self._lock:
            return asking(self._state.engine(), self._definitions, view, rows=rows, seconds=seconds).why_not(row)

    def _tables(self) -> dict[str, DataFrame]:
        return {name: self.table(name) for name, bound in self._sources.by_name.items() if not bound.recomputed}
