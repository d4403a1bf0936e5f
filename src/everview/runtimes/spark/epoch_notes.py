"""Notes of epochs beside a state: how each ran, as a line of JSON, for whoever watches from another process.

An epoch counts by its commit; its note comes afterwards, and may be missing after a crash. The file holds the last
epochs, and is cut when it has grown. A state in an object store has none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from everview.runtimes.spark.beside import is_remote

FILE: Final = "epochs.jsonl"
MOST: Final = 1 << 20  # bytes; beyond that the older half goes
log = logging.getLogger("everview.spark")


class EpochNotes:
    """The notes of a state's last epochs."""

    def __init__(self, path: str | Path) -> None:
        self._file = None if is_remote(str(path)) else Path(path) / FILE

    def add(self, said: Mapping[str, Any]) -> None:
        """Append the note of an epoch; that it cannot be written is no failure of the epoch."""
        if self._file is None:
            return
        try:
            with self._file.open("ab") as file:
                file.write(json.dumps(said, default=str).encode() + b"\n")
                grown = file.tell() > MOST
            if grown:
                self._cut(self._file)
        except OSError as error:
            log.warning("the note of epoch %s cannot be written: %s", said.get("epoch"), error)

    def last(self, count: int) -> list[dict[str, Any]]:
        """The notes of the last epochs, oldest first; what is no note, such as half a line, is passed over."""
        if self._file is None:
            return []
        try:
            lines = self._file.read_bytes().splitlines()
        except OSError:  # none was written yet
            return []
        return [said for line in lines[-count:] if (said := _note(line)) is not None]

    def _cut(self, path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        fresh = path.with_suffix(".cut")
        fresh.write_bytes(b"".join(lines[len(lines) // 2 :]))
        fresh.replace(path)


def _note(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and isinstance(said.get("epoch"), int) else None
