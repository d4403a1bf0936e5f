"""The work of a circuit's nodes beside a state: steps, rows and seconds of each, for whoever watches.

Nodes go by their fingerprints, so that a process that has the definitions of the views, and not the circuit, finds
them. The file has the sums since the pipeline's process began with this circuit, on the driver and in tasks; like a
note of an epoch it may be missing. A state in an object store has none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everview.circuit.nodes import Apply
from everview.circuit.program import Program, Spent
from everview.runtimes.spark.beside import is_remote
from everview.runtimes.spark.wire import Row, RowKind

if TYPE_CHECKING:
    from everview.runtimes.state import ProgramState

FILE: Final = "work.json"
OFTEN: Final = 300  # nodes that are timed in an epoch, on average
log = logging.getLogger("everview.spark")


# -- in a task


class TaskWork:
    """The work of a task: what the nodes of a program have done since this was made."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._before = [(spent.steps, spent.rows, spent.seconds) for spent in program.spent]

    def row(self) -> Row:
        """The work as a row for the driver."""
        done: dict[int, tuple[int, int, float]] = {}
        for node, (spent, (steps, rows, seconds)) in enumerate(zip(self._program.spent, self._before, strict=True)):
            if spent.steps > steps:
                done[node] = spent.steps - steps, spent.rows - rows, spent.seconds - seconds
        return Row(RowKind.WORK, -1, 0, 0, json.dumps(done).encode())


def take_work(program: Program, row: Row) -> None:
    """Add the work of a task to that of the driver's program."""
    for node, (steps, rows, seconds) in json.loads(bytes(row.payload)).items():
        spent = program.spent[int(node)]
        spent.steps, spent.rows, spent.seconds = spent.steps + steps, spent.rows + rows, spent.seconds + seconds


# -- on the driver


def take_times(state: ProgramState, epoch: int) -> None:
    """Let compiled code take the time of every node in the next epoch; of a large circuit, only in some of them.

    A time costs some 20 µs, which for few nodes is nothing next to a commit.
    """
    compiled = state.compiled
    if compiled is not None:
        compiled.timed = epoch % (1 + len(state.program.circuit) // OFTEN) == 0


# -- beside the state


class WorkNote:
    """The file that says the work of nodes."""

    def __init__(self, path: str | Path) -> None:
        self._file = None if is_remote(str(path)) else Path(path) / FILE
        self._named: tuple[Program, dict[int, str]] | None = None

    def write(self, epoch: int, state: ProgramState) -> None:
        """Say the work of nodes up to an epoch; that it cannot be written is no failure of the epoch."""
        if self._file is None:
            return
        program, compiled = state.program, state.compiled
        if self._named is None or self._named[0] is not program:
            self._named = program, program.circuit.fingerprints()
        names = self._named[1]
        spent = program.spent if compiled is None else compiled.all_spent()
        nodes = {
            names[node]: (each.steps, each.rows, round(each.seconds, 7))
            for node, each in enumerate(spent)
            if each.steps and isinstance(program.circuit[node], Apply)
        }
        fresh = self._file.with_suffix(".fresh")
        try:
            fresh.write_text(json.dumps({"epoch": epoch, "nodes": nodes}))
            fresh.replace(self._file)
        except OSError as error:
            log.warning("the work of epoch %s cannot be noted: %s", epoch, error)

    def read(self) -> Mapping[str, Spent]:
        """The work of nodes by fingerprint; nothing if none was noted."""
        try:
            said: Any = {} if self._file is None else json.loads(self._file.read_bytes())
            return {name: Spent(int(s), int(r), float(t)) for name, (s, r, t) in said.get("nodes", {}).items()}
        except (OSError, ValueError, TypeError, AttributeError):  # none was written yet, or it is no note
            return {}
