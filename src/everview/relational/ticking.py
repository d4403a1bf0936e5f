"""A tick of a circuit that does not count yet: several circuits tick, and then all of them do, or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from everview.runtimes.embedded import Embedded
from everview.zset.batch import Batch


def run_tick(run: Embedded, changes: Mapping[str, Any], stack: ExitStack) -> dict[str, Batch]:
    """The change of every view. Left by an exception, the stack undoes it; ``run.publish()`` makes it count."""
    stack.enter_context(run.begin())
    cells = run.encode(changes)
    run.run(cells)
    return run.outputs(cells)
