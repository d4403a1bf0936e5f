"""A tick of a circuit that does not count yet: several circuits tick, and then all of them do, or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from everview.runtimes.embedded import Embedded
from everview.runtimes.loops import Here, Tick
from everview.zset.batch import Batch


def run_tick(run: Embedded, changes: Mapping[str, Any], stack: ExitStack) -> dict[str, Batch]:
    """The change of every view. Left by an exception, the stack undoes it; ``run.state.close()`` makes it count."""
    stack.enter_context(run.attempt())
    cells = run.encode(changes)
    Tick(run.program, Here(run.program, run.state, run.context), run.bounds).run(cells)
    return run.outputs(cells)
