"""What is new of a project's sources: rows of files that have appeared, and the difference where files have changed.

Notes say which files the state has. They are written before an epoch under a token that the epoch commits, so after a
crash the notes that carry the state's token are those of the rows that it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from everview.spark.folders import Folder
from everview.spark.pipeline import Pipeline
from everview.spark.pipelines.leaves import LeafRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WEIGHT: Final = "_weight"
_SLOTS: Final = ("project-sources-0", "project-sources-1")  # the notes of the state, and those of an epoch under way

Note = dict[str, Any]  # of a source: its columns as JSON, and its files


@dataclass(slots=True)
class SourceNotes:
    """What the state has read of each source, by the name of the source."""

    folder: Folder
    token: str | None
    sources: dict[str, Note] = field(default_factory=dict[str, Note])

    @classmethod
    def of(cls, folder: Folder, token: str | None) -> SourceNotes:
        """The notes that an epoch with this token has committed."""
        for name in _SLOTS:
            found = _read(folder, name)
            if token is not None and found.get("token") == token:
                return cls(folder, token, dict(found["sources"]))
        return cls(folder, token)

    def write(self, sources: Mapping[str, Note]) -> str:
        """Write the notes of an epoch that is about to run, beside those of the state, and return its token."""
        token = uuid4().hex
        taken = next((name for name in _SLOTS if _read(self.folder, name).get("token") == self.token), _SLOTS[1])
        free = _SLOTS[1 - _SLOTS.index(taken)]
        self.folder.write(free, json.dumps({"token": token, "sources": {**self.sources, **sources}}).encode())
        return token

    def of_source(self, name: str) -> Note | None:
        """The note of a source; None if the state has no rows of it."""
        note = self.sources.get(name)
        return None if note is None or note.get("gone") else note


def noted_columns(folder: Folder) -> dict[str, str]:
    """The columns, as JSON, of every source that notes tell of, whether their epoch was committed or not."""
    notes = [_read(folder, name).get("sources", {}) for name in _SLOTS]
    return {name: note["schema"] for each in notes for name, note in each.items()}


def _read(folder: Folder, name: str) -> dict[str, Any]:
    text = folder.read(name)
    return {} if text is None else json.loads(text)


@dataclass(frozen=True)
class NewRows:
    """The changes of a source since the state has read it, or None if nothing is new, and the note once they are in."""

    changes: DataFrame | None
    note: Note


def new_rows(leaf: LeafRelation, note: Note | None, held: Callable[[], DataFrame], *, whole: bool) -> NewRows:
    """The new rows of a leaf; with ``whole``, all of its rows.

    A file that is new gives its rows. A file that has changed or is gone makes all rows be compared with those that
    are ``held``; of a stream it does not count, as each file is read once. So are the rows of a table compared.
    """
    after: Note = {"schema": leaf.frame.schema.json()}
    if leaf.listing is not None:
        after["files"] = {name: list(told) for name, told in leaf.listing.items()}
    if note is None:
        nothing = leaf.listing is not None and not leaf.listing
        return NewRows(None if nothing else _weighted(leaf.frame, 1), after)
    if leaf.listing is None or whole:
        return NewRows(_difference(leaf.frame, held()), after)
    before = {name: tuple(told) for name, told in note.get("files", {}).items()}
    added = {name for name in leaf.listing if name not in before}
    if leaf.stream:
        after["files"] = {**note.get("files", {}), **after["files"]}
    elif any(leaf.listing.get(name) != told for name, told in before.items()):
        return NewRows(_difference(leaf.frame, held()), after)
    return NewRows(_weighted(leaf.of_files(added), 1) if added else None, after)


def _weighted(rows: DataFrame, weight: int) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.withColumn(WEIGHT, f.lit(weight))


def _difference(now: DataFrame, held: DataFrame) -> DataFrame:
    """The changes from the held rows to the present ones; Spark compares all columns but maps."""
    same = held.select(*(held[name].cast(now.schema[name].dataType).alias(name) for name in now.columns))
    if any(kind in now.schema.simpleString() for kind in ("map<", "variant")):
        return _weighted(now, 1).unionAll(_weighted(same, -1))
    return _weighted(now.exceptAll(same), 1).unionAll(_weighted(same.exceptAll(now), -1))


def emptied(pipeline: Pipeline, name: str) -> DataFrame:
    """The changes that leave a source without rows."""
    return _weighted(pipeline.table(name), -1)
