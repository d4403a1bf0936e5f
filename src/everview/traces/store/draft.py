"""A commit in the making: what is to change, before its slices have a place on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import time_ns
from typing import Any, NamedTuple

import numpy as np

from everview.errors import StoreError
from everview.traces.store.manifest import Edit, ManifestEntry, RecordedChange, StateChange
from everview.traces.store.record import HEAD, RecordKind, framed, to_json
from everview.traces.store.slices import Array, SliceRef, refer

Add = Callable[[str, int, Array], SliceRef]
NOTHING: Mapping[str, Any] = {}
quoted = lru_cache(1 << 12)(to_json)  # names come again with every commit


class Replace(NamedTuple):
    """`new` takes the place of the slices with the ids `old`, or the last place if there are none.

    Without a `new`, the old ones just go. A new slice is an array, or the reference to one that a
    `SegmentWriter` has put in a segment.
    """

    name: str
    shard: int
    old: tuple[int, ...]
    new: Array | SliceRef | None


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A commit whose arrays are still to be placed."""

    epoch: int
    replaces: Sequence[Replace]
    offsets: str = "{}"  # JSON, as is the metadata
    meta: str = "{}"
    at: int | None = None  # when it was made, in microseconds since 1970; None if the epoch is there already

    @classmethod
    def of(
        cls, epoch: int, replaces: Sequence[Replace], offsets: Mapping[str, Any] | None, meta: Mapping[str, Any] | None
    ) -> Draft:
        """A commit; source offsets and metadata that JSON cannot say are refused."""
        return cls(
            epoch,
            replaces,
            json_of(offsets, "the source offsets") if offsets else "{}",
            json_of(meta, "the metadata") if meta else "{}",
            time_ns() // 1000,
        )

    @property
    def nbytes(self) -> int:
        return sum([change.new.nbytes for change in self.replaces if isinstance(change.new, np.ndarray)])

    def refs(self) -> Iterator[SliceRef]:
        """The slices that are in segments already."""
        return (change.new for change in self.replaces if isinstance(change.new, SliceRef))

    def placed(self, add: Add) -> Draft:
        """The same commit after `add` has found a place for each array."""
        replaces = [
            each if each.new is None or isinstance(each.new, SliceRef) else each._replace(new=add(*each[:2], each.new))
            for each in self.replaces
        ]
        return Draft(self.epoch, replaces, self.offsets, self.meta, self.at)

    def change(self, next_id: int) -> StateChange:
        """The change that a commit makes, if all of its slices are placed."""
        edits: list[Edit] = []
        for name, shard, old, ref in self.replaces:
            assert ref is None or isinstance(ref, SliceRef), "every slice is placed"
            edits.append(Edit(name, shard, old, None if ref is None else ManifestEntry(next_id, ref)))
            next_id += ref is not None
        return StateChange(self.epoch, tuple(edits), _read(self.offsets), _read(self.meta), self.at)

    def record(self, next_id: int, start: int) -> tuple[bytes, RecordedChange]:
        """The bytes of a record for byte `start` of the log, arrays included, and the commit that it describes."""
        rows: list[tuple[Any, ...]] = []
        texts: list[str] = []
        data: list[memoryview] = []
        size = 0
        for name, shard, old, new in self.replaces:
            if isinstance(new, np.ndarray):
                row = old, next_id, *refer(name, shard, new, "", size)
                data.append(new.data)
                size += new.nbytes
            else:
                row = (old, None, name, shard) if new is None else (old, next_id, *new)
            next_id += new is not None
            rows.append(row)
            texts.append(_text(row))
        at = "" if self.at is None else f',"at":{self.at}'
        text = f'{{"edits":[{",".join(texts)}],"offsets":{self.offsets},"meta":{self.meta}{at}}}'.encode()
        data_at, said = start + HEAD + len(text), (_read(self.offsets), _read(self.meta))
        recorded = RecordedChange(self.epoch, rows, data_at, *said, self.at)
        return framed(RecordKind.COMMIT, self.epoch, text, data), recorded


def json_of(document: Mapping[str, Any], what: str) -> str:
    """A document as JSON; what JSON cannot say is refused.

    >>> json_of({"events": {1, 2}}, "the metadata")
    Traceback (most recent call last):
    everview.errors.StoreError: the metadata cannot be stored: Object of type set is not JSON serializable
      hint: use only strings, numbers, booleans, None, lists and string-keyed mappings of them
    """
    try:
        return to_json(document)
    except (TypeError, ValueError) as error:
        hint = "use only strings, numbers, booleans, None, lists and string-keyed mappings of them"
        raise StoreError(f"{what} cannot be stored: {error}", hint=hint) from error


def _read(text: str) -> Mapping[str, Any]:
    """A document as a reader will see it: JSON turns tuples into lists and numeric keys into texts."""
    return json.loads(text) if text != "{}" else NOTHING


def _text(row: tuple[Any, ...]) -> str:
    """A row as JSON; in one step for the most frequent one, a slice that is appended."""
    if row[0] or row[1] is None:
        return to_json(row)
    _, number, name, shard, file, offset, rows, columns, dtype, checksum = row
    return f'[[],{number},{quoted(name)},{shard},{quoted(file)},{offset},{rows},{columns},"{dtype}",{checksum}]'
