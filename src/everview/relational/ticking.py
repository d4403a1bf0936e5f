"""A tick of a circuit that does not count yet: several circuits tick, and then all of them do, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.runtimes.embedded import Embedded
from everview.zset.batch import Batch


class SharedVerdict:
    """A decision shared by several circuits, whether their tick counts: one assignment decides for all."""

    def __init__(self) -> None:
        self.counts = False


def run_tick(run: Embedded, changes: Mapping[str, Any], verdict: SharedVerdict) -> dict[str, Batch]:
    """The change of every view. ``run.recover()`` lets it count, or undoes it, as the verdict then says."""
    run.begin_by(lambda: verdict.counts)
    cells = run.encode(changes)
    run.run(cells)
    return run.outputs(cells)
