"""Observing ticks: a report of each, as spans of OpenTelemetry or as lines of a structured log.

`Database.observe` reports ticks, `Pipeline.observe` the epochs of a pipeline on Spark.

>>> import everview as ev
>>> db = ev.connect()
>>> db.create_table("t", "n BIGINT NOT NULL")
>>> db.observe(lambda report: print(report.epoch, dict(report.rows_in), report.failure))
>>> db.apply({"t": [((1,), 1)]})
2 {'t': 1} None
{}
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from everview.errors import MissingRuntime


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick was: the epoch it made or would have made, when it began, how long it took, and rows in and out."""

    epoch: int
    began: int  # nanoseconds since 1970
    seconds: float
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    failure: str | None = None  # the message of the error, if it did not count
    placement: str | None = None  # where an epoch of a Spark pipeline ran: driver or cluster

    def as_json(self) -> dict[str, Any]:
        """The parts by name, for a log."""
        said: dict[str, Any] = {
            "event": "tick",
            "epoch": self.epoch,
            "began": self.began / 1e9,
            "seconds": round(self.seconds, 6),
            "rows_in": dict(self.rows_in),
            "rows_out": dict(self.rows_out),
        }
        more = {"placement": self.placement, "failure": self.failure}
        return said | {name: value for name, value in more.items() if value is not None}


TickObserver = Callable[[TickReport], None]


class TickLogs:
    """An observer that logs each tick as an object of JSON, at the level INFO, or ERROR if it failed."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("everview.ticks")

    def __call__(self, report: TickReport) -> None:
        level = logging.INFO if report.failure is None else logging.ERROR
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", json.dumps(report.as_json(), ensure_ascii=False))


class TickSpans:
    """An observer that makes a span ``everview.tick`` of each tick, within the span that is current in its thread.

    A ``tracer`` of OpenTelemetry may be given; else it is that of the global provider.
    """

    def __init__(self, tracer: Any = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise MissingRuntime(
                "opentelemetry is not installed", hint="pip install opentelemetry-api, and an SDK of your choice"
            ) from None
        self._status, self._code = trace.Status, trace.StatusCode
        self._tracer: Any = trace.get_tracer("everview") if tracer is None else tracer

    def __call__(self, report: TickReport) -> None:
        span = self._tracer.start_span(
            "everview.tick",
            start_time=report.began,
            attributes={
                "everview.epoch": report.epoch,
                "everview.rows_in": sum(report.rows_in.values()),
                "everview.rows_out": sum(report.rows_out.values()),
                **({} if report.placement is None else {"everview.placement": report.placement}),
                **{f"everview.rows_in.{name}": rows for name, rows in report.rows_in.items()},
                **{f"everview.rows_out.{name}": rows for name, rows in report.rows_out.items() if rows},
            },
        )
        if report.failure is not None:
            span.set_status(self._status(self._code.ERROR, report.failure))
        span.end(report.began + int(report.seconds * 1e9))


def several(*observers: TickObserver) -> TickObserver:
    """One observer for several."""

    def observe(report: TickReport) -> None:
        for observer in observers:
            observer(report)

    return observe
