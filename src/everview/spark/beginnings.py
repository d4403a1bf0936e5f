"""Sinks that begin with a snapshot: added to a pipeline that has run, such a sink is first given all rows of its view.

The rows come under the number of the epoch that the state is at, as if they had all been added in it, and the changes
of later epochs follow. Which epoch a sink began with is noted in the state directory, before it is given anything and
once more when it has all: so a sink begins once, and an attempt that a crash cut short is completed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from everview.errors import SinkError
from everview.spark.folders import Folder
from everview.spark.sinks import SinkSpec

NOTED: Final = "begun"  # the file of a state that says with which epochs sinks have begun


class Beginnings:
    """The epochs with which sinks of a state have begun."""

    def __init__(self, notes: Folder, place: Path | str) -> None:
        self._notes, self._place = notes, place
        self._called: dict[int, int] = {}  # callbacks begin anew in every process

    def due(self, sink: SinkSpec, epoch: int) -> bool:
        """Whether a sink is still to be given all rows of its view; refuses one that was cut short at another epoch."""
        if sink.begin != "snapshot":
            return False
        began, done = self._noted().get(sink.target, (None, False))
        if sink.callback is not None:
            return id(sink.callback) not in self._called
        if began is not None and not done and began != epoch:
            raise SinkError(
                f"epoch {began} was left half delivered, and the state is at epoch {epoch} now: {sink}",
                hint=f"remove epoch {began} from there, or give the sink another place; "
                f"and remove {self._place}/{self._notes.inside}{NOTED}",
            )
        return not done

    def covers(self, sink: SinkSpec, epoch: int) -> bool:
        """Whether the rows that a sink begins with include the changes of an epoch."""
        if sink.begin != "snapshot":
            return False
        if sink.callback is not None:
            return epoch <= self._called.get(id(sink.callback), epoch)
        began, done = self._noted().get(sink.target, (None, False))
        return not done or epoch <= began

    def note(self, sink: SinkSpec, epoch: int, *, done: bool) -> None:
        """Note that a sink's first rows are about to be written, or are `done`."""
        if sink.callback is not None:
            if done:
                self._called[id(sink.callback)] = epoch
            return
        noted = self._noted() | {sink.target: (epoch, done)}
        self._notes.write(NOTED, json.dumps(noted).encode())

    def forget(self, sink: SinkSpec) -> None:
        """Let a sink begin anew."""
        noted = {target: begun for target, begun in self._noted().items() if target != sink.target}
        self._notes.write(NOTED, json.dumps(noted).encode())

    def _noted(self) -> dict[str, Any]:
        noted = self._notes.read(NOTED)
        return {} if noted is None else json.loads(noted)
