"""A commit in the making: what is to change, before its slices have a place on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from everview.errors import StoreError
from everview.traces.store.manifest import Edit, ManifestEntry, StateChange
from everview.traces.store.record import to_json
from everview.traces.store.slices import Array, SliceRef, octets, refer

Add = Callable[[str, int, Array], SliceRef]


@dataclass(frozen=True, slots=True, eq=False)
class Replace:
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
    offsets: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        require_json(self.offsets, "the source offsets")
        require_json(self.meta, "the metadata")

    @property
    def nbytes(self) -> int:
        return sum(change.new.nbytes for change in self.replaces if isinstance(change.new, np.ndarray))

    def refs(self) -> Iterator[SliceRef]:
        """The slices that are in segments already."""
        return (change.new for change in self.replaces if isinstance(change.new, SliceRef))

    def place(self, add: Add, next_id: int) -> StateChange:
        """The change that results when `add` finds a place for each array."""
        edits: list[Edit] = []
        for draft in self.replaces:
            entry = None
            if draft.new is not None:
                ref = draft.new if isinstance(draft.new, SliceRef) else add(draft.name, draft.shard, draft.new)
                entry = ManifestEntry(next_id, ref)
                next_id += 1
            edits.append(Edit(draft.name, draft.shard, draft.old, entry))
        return StateChange(self.epoch, tuple(edits), self.offsets, self.meta)


class Inline:
    """Slices that travel in the record itself; their offsets count from the first of them."""

    def __init__(self) -> None:
        self._parts: list[memoryview] = []
        self._size = 0

    def add(self, name: str, shard: int, array: Array) -> SliceRef:
        ref = refer(name, shard, array, "", self._size)
        self._parts.append(octets(array))
        self._size += array.nbytes
        return ref

    def data(self) -> bytes:
        return b"".join(self._parts)


def require_json(document: Mapping[str, Any], what: str) -> None:
    """Refuse what JSON cannot say.

    >>> require_json({"events": {1, 2}}, "the metadata")
    Traceback (most recent call last):
    everview.errors.StoreError: the metadata cannot be stored: Object of type set is not JSON serializable
      hint: use only strings, numbers, booleans, None, lists and string-keyed mappings of them
    """
    try:
        to_json(document)
    except (TypeError, ValueError) as error:
        hint = "use only strings, numbers, booleans, None, lists and string-keyed mappings of them"
        raise StoreError(f"{what} cannot be stored: {error}", hint=hint) from error
