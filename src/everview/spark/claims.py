"""Claims on the paths of sinks: a path belongs to one view of one state.

Readers could not tell apart what two sinks write to one path, and there can be only one epoch 7. So a sink, before it
first writes, notes the path in its state and puts a marker in the path that names the state. Refused are a path with
the marker of another state, a path that holds epochs without being noted (they are of a state that is gone), and a
path with epochs that the state has not reached (the state is an older copy).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from everview.errors import SinkError
from everview.spark.epoch_folders import EPOCH
from everview.spark.folders import Folder, folder, local_path
from everview.spark.sinks import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER: Final = "_everview"  # readers of Spark's pass over names that begin so
NOTED: Final = "sinks"  # the file of a state that has its id and the paths it writes to
_EPOCH = re.compile(rf"{EPOCH}=(\d+)")
_ELSEWHERE: Final = "give the sink another path; or move away what is there, if nobody needs it"


class Claims:
    """The paths that the sinks of a state write to."""

    def __init__(self, spark: SparkSession, notes: Folder) -> None:
        self._spark, self._notes = spark, notes
        self._seen: set[str] = set()  # paths that are in order, as this process has seen
        self._taken: set[str] = set()  # and those that have the marker
        self._renamed: Mapping[str, str] = {}  # by view, the name that it had before, which markers may still say

    def now_named(self, renamed: Mapping[str, str]) -> None:
        """Let sinks of views that had another name before go on with what they have written."""
        if renamed != self._renamed:
            self._renamed = renamed
            self._seen, self._taken = set(), set()

    @property
    def state(self) -> str:
        """The id of the state, by which topics and Delta's tables know its epochs."""
        return str(self._noted()["state"])

    def require(self, sinks: Sequence[SinkSpec], epoch: int) -> None:
        """Refuse sinks whose paths belong to another state or view; nothing is written."""
        for sink in sinks:
            if sink.path is not None and sink.path not in self._seen:
                self._require(sink, sink.path, folder(self._spark, sink.path), self._noted(), epoch)
                self._seen.add(sink.path)

    def take(self, sink: SinkSpec, epoch: int) -> None:
        """Claim the path of a sink before its first epoch is written there; sinks without a path need no claim."""
        if sink.path is None or sink.path in self._taken:
            return
        target, noted = folder(self._spark, sink.path), self._noted()
        self._require(sink, sink.path, target, noted, epoch)
        if sink.path not in noted["paths"]:
            noted = {"state": noted["state"], "paths": [*noted["paths"], sink.path]}
            self._notes.write(NOTED, json.dumps(noted).encode())
        self.mark(sink)
        self._taken.add(sink.path)

    def is_unwritten(self, sink: SinkSpec) -> bool:
        """Whether a sink has a path, and nothing was ever written there, or it was removed."""
        return sink.path is not None and folder(self._spark, sink.path).read(MARKER) is None

    def mark(self, sink: SinkSpec) -> None:
        """Write the sink's marker into its path unless present: Spark deletes the marker in a full overwrite."""
        assert sink.path is not None, "only paths are marked"
        target, marker = folder(self._spark, sink.path), self._marker(sink)
        if target.read(MARKER) != marker:
            target.write(MARKER, marker)

    def _require(self, sink: SinkSpec, path: str, target: Folder, noted: dict[str, Any], epoch: int) -> None:
        marker = target.read(MARKER)
        if marker is not None and marker not in self._markers(sink):
            raise SinkError(f"{path} is written by {_owner(marker, noted['state'])}, not by {sink}", hint=_ELSEWHERE)
        epochs = {int(match[1]) for match in map(_EPOCH.fullmatch, target.names()) if match}
        if epochs and marker is None and path not in noted["paths"]:
            raise SinkError(
                f"{path} holds epochs already, and this state has not written them: {sink}", hint=_ELSEWHERE
            )
        if epochs and max(epochs) > epoch:
            raise SinkError(
                f"{path} holds epoch {max(epochs)}, and the state is at epoch {epoch}: {sink}",
                hint="the state is an older copy: restore the path from the same moment, or give the sink another one",
            )

    def _markers(self, sink: SinkSpec) -> Iterator[bytes]:
        """The markers of a sink, under the present name of its view and all earlier ones."""
        seen: set[str] = set()
        view: str | None = sink.view
        while view is not None and view not in seen:
            seen.add(view)
            yield self._marker(replace(sink, view=view))
            view = self._renamed.get(view)

    def _marker(self, sink: SinkSpec) -> bytes:
        said = {"state": self._noted()["state"], "view": sink.view, "mode": sink.mode, "format": sink.format}
        return json.dumps(said).encode()

    def _noted(self) -> dict[str, Any]:
        """The state's id, made when it is first asked for, and the paths that its sinks have claimed."""
        noted = self._notes.read(NOTED)
        if noted is not None:
            return json.loads(noted)
        made: dict[str, Any] = {"state": uuid4().hex, "paths": list[str]()}
        self._notes.write(NOTED, json.dumps(made).encode())
        return made


def _owner(marker: bytes, state: str) -> str:
    try:
        said = json.loads(marker)
        whose = "this state" if said["state"] == state else "another state"
        return f'{whose}, with {said["mode"]} of view "{said["view"]}" as {said["format"]}'
    except (ValueError, KeyError, TypeError):
        return "something else"


def require_apart(sink: SinkSpec, others: Sequence[SinkSpec], state: Path | str) -> None:
    """Refuse a sink whose path or table is another sink's of the same pipeline, or in its state directory."""
    for other in others:
        if sink.table is not None and other.table is not None and _named(sink.table) == _named(other.table):
            raise SinkError(
                f"two sinks write to table {sink.table}: {other}, and {sink}", hint="give each its own table"
            )
        if sink.topic is not None and sink.topic == other.topic:
            raise SinkError(
                f"two sinks write to topic {sink.topic}: {other}, and {sink}", hint="give each its own topic"
            )
        if sink.path is not None and other.path is not None and _within(sink.path, other.path):
            raise SinkError(f"two sinks write to {sink.path}: {other}, and {sink}", hint="give each a path of its own")
    if sink.path is not None and _within(sink.path, str(state)):
        raise SinkError(
            f"a sink cannot write to {sink.path}: the state is in {state}", hint="give the sink a path of its own"
        )


def _named(table: str) -> str:
    return table.replace("`", "").lower()


def _within(path: str, other: str) -> bool:
    """Whether a path is another one, or a folder inside it."""
    one, two = _parts(path), _parts(other)
    shorter = min(len(one), len(two))
    return one[:shorter] == two[:shorter]


def _parts(path: str) -> list[str]:
    local = local_path(path)
    return (str(local.resolve()) if local is not None else path.rstrip("/")).split("/")
