"""The files of streams that were read, as part of the state: each commit names the files that it took in.

So the rows of a file and the note that it was read are one commit, and whatever crashes, no file is read twice or left
out. Names are slices of bytes beside the traces; those of a commit are joined with earlier ones that are not much
larger, so that there are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from everview.errors import ForeignState
from everview.runtimes.spark.engine import Engine
from everview.traces.store import Replace

FILES: Final = "files "  # before the name of a source, in the name of its slices


class SeenFiles:
    """The files that were read of each source, as the state of an engine says."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, set[str]] = {}

    def of(self, engine: Engine, source: str) -> set[str]:
        """The files of a source that the state has read; read from the state once, or if it was opened anew."""
        if engine is not self._engine:
            self._engine, self._known = engine, {}
        if source not in self._known:
            parts = engine.store.slices(_name(source))
            self._known[source] = {file for part in parts for file in _names(part.array.tobytes())}
        return self._known[source]

    def edit(self, engine: Engine, source: str, files: Iterable[str]) -> Replace:
        """The edit by which a commit notes that files were read."""
        data = "".join(f"{file}\n" for file in files).encode()
        old: list[int] = []
        for part in reversed(engine.store.slices(_name(source))):
            if part.array.nbytes > 2 * len(data):
                break
            data = part.array.tobytes() + data
            old.insert(0, part.id)
        return Replace(_name(source), 0, tuple(old), np.frombuffer(data, np.uint8))

    def note(self, engine: Engine, source: str, files: Iterable[str]) -> None:
        """Remember files whose commit is done."""
        self.of(engine, source).update(files)


def _name(source: str) -> str:
    return f"{FILES}{source}"


def _names(data: bytes) -> list[str]:
    if data and not data.endswith(b"\n"):
        raise ForeignState("the state's list of files is cut", hint="restore the state directory")
    return data.decode().split("\n")[:-1]
