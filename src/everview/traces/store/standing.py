"""Where a store stands: its last epoch, known at the cost of the last commit, not of all that the store holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.traces.store.manifest import Manifest, RecordedChange, StateChange


class Standing:
    """A manifest, and later commits that only add; they are folded in when the manifest is asked for.

    It does not change: a commit makes another one, and one assignment of it lets the commit count.

    >>> from everview.traces.store.manifest import Fingerprints
    >>> first = Standing(Manifest(0, Fingerprints("p")))
    >>> second = first.then(RecordedChange(1, [], 0, {"log": 10}, {}))
    >>> (first.epoch, first.offsets), (second.epoch, second.offsets), second.manifest.epoch
    ((0, {}), (1, {'log': 10}), 1)
    """

    __slots__ = ("_parts", "added", "epoch", "meta", "next_id", "offsets", "taken")

    def __init__(self, manifest: Manifest, change: StateChange | None = None) -> None:
        edits = () if change is None else change.edits
        self.epoch = manifest.epoch
        self.next_id = manifest.next_id
        self.offsets: Mapping[str, Any] = manifest.offsets
        self.meta: Mapping[str, Any] = manifest.meta
        # The ids that the last commit has added and taken, if this process has made one.
        self.added = tuple([edit.entry.id for edit in edits if edit.entry is not None])
        self.taken = tuple([number for edit in edits for number in edit.takes])
        # The manifest; a list that later standings share and extend; how much of the list has happened by now.
        self._parts: tuple[Manifest, list[RecordedChange], int] = manifest, [], 0

    def then(self, recorded: RecordedChange) -> Standing:
        """The standing after one more commit."""
        for row in recorded.rows:
            if row[0] or row[1] is None:  # it does not only add
                change = recorded.change
                return Standing(self.manifest.after([change]), change)
        manifest, since, count = self._parts
        del since[count:]  # a commit that was undone
        since.append(recorded)
        after = Standing.__new__(Standing)
        after.epoch = recorded.epoch
        after.next_id = self.next_id + len(recorded.rows)
        after.offsets = {**self.offsets, **recorded.offsets} if recorded.offsets else self.offsets
        after.meta = {**self.meta, **recorded.meta} if recorded.meta else self.meta
        after.added, after.taken = tuple(range(self.next_id, after.next_id)), ()
        after._parts = manifest, since, count + 1
        return after

    @property
    def manifest(self) -> Manifest:
        """The whole truth about the last epoch."""
        manifest, since, count = self._parts
        if count:
            manifest = manifest.after([recorded.change for recorded in since[:count]])
            self._parts = manifest, [], 0
        return manifest
