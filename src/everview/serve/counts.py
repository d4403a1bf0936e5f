"""The metrics of a server, besides those of its database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from everview.exposition import by_label, metric

if TYPE_CHECKING:
    from everview.serve.owner import Owner


def metrics_of_owner(owner: Owner) -> str:
    """The metrics as text in Prometheus' format."""
    return "".join(_lines(owner))


def _lines(owner: Owner) -> Iterator[str]:
    yield from metric("subscribers", "gauge", "Subscribers of views.", len(owner.hub))
    yield from metric("waiting", "gauge", "Statements that wait or run.", owner.waiting)
    yield from by_label("statements_total", "counter", "Statements, by where they ran.", "thread", owner.statements)
    yield from by_label("statement_seconds_total", "counter", "Seconds of statements.", "thread", owner.seconds)
