"""The manifest of an epoch: the slices of each (trace, shard), the plan they belong to, and the offsets reached.

A manifest is a frozen value. A snapshot spells one out; a commit says what changes. `after` folds commits
onto a snapshot, and is the only way a manifest comes about, in a running store as in a reopened one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from everview.traces.store.record import LogRecord, RecordKind
from everview.traces.store.slices import Key, SliceRef


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of a state: of the plan as a whole, and of each trace by its name."""

    plan: str
    traces: Mapping[str, str] = field(default_factory=dict[str, str])

    def kept_from(self, other: Fingerprints) -> frozenset[str]:
        """The traces that mean the same in both.

        >>> new = Fingerprints("b", {"edges": "1", "paths": "2"})
        >>> sorted(new.kept_from(Fingerprints("a", {"edges": "1", "paths": "9"})))
        ['edges']
        """
        return frozenset(name for name, mark in self.traces.items() if other.traces.get(name) == mark)


class ManifestEntry(NamedTuple):
    """A slice of the manifest. Its id stays when a checkpoint moves its bytes."""

    id: int
    ref: SliceRef

    @property
    def identity(self) -> tuple[int, ...]:
        """A key that two slices share exactly if their contents are equal: a rewind gives ids out again."""
        return self.id, self.ref.rows, self.ref.columns, self.ref.checksum


class Edit(NamedTuple):
    """In the list of (name, shard), `entry` takes the place of the ids in `takes`.

    Taking none, it goes to the end; without an entry, what is taken just goes.
    """

    name: str
    shard: int
    takes: tuple[int, ...]
    entry: ManifestEntry | None

    def make(self, entries: list[ManifestEntry]) -> None:
        """Make this edit in a list, whose order is the spine's, largest and oldest first."""
        position = len(entries)
        if self.takes:
            taken = frozenset(self.takes)
            places = [place for place, entry in enumerate(entries) if entry.id in taken]
            assert len(places) == len(taken), f'"{self.name}", shard {self.shard}: not all of {self.takes}'
            position = places[0]
            entries[:] = [entry for entry in entries if entry.id not in taken]
        if self.entry is not None:
            entries.insert(position, self.entry)

    @classmethod
    def from_json(cls, row: Sequence[Any], data_at: int) -> Self:
        takes, number, name, shard, *rest = row
        if number is None:
            return cls(name, shard, tuple(takes), None)
        file, offset, *rest = rest
        ref = SliceRef(name, shard, file, offset if file else offset + data_at, *rest)
        return cls(name, shard, tuple(takes), ManifestEntry(number, ref))


@dataclass(frozen=True, slots=True)
class StateChange:
    """The change that one commit makes to a manifest. Offsets and metadata are merged into the present ones."""

    epoch: int
    edits: tuple[Edit, ...] = ()
    offsets: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    at: int | None = None  # when it was committed, in microseconds since 1970

    @classmethod
    def from_record(cls, record: LogRecord) -> Self:
        document = record.document
        recorded = RecordedChange(
            record.epoch, document["edits"], record.data_at, document["offsets"], document["meta"]
        )
        return cls(record.epoch, recorded.edits, recorded.offsets, recorded.meta, document.get("at"))


class RecordedChange(NamedTuple):
    """A commit in the form of its record, before it is made a `StateChange`.

    A row is the ids that are taken, the new id, and a `SliceRef`; or the ids, None, and the name and shard. The offsets
    of inline slices count from the record's data.
    """

    epoch: int
    rows: Sequence[Sequence[Any]]
    data_at: int
    offsets: Mapping[str, Any]
    meta: Mapping[str, Any]
    at: int | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple([Edit.from_json(row, self.data_at) for row in self.rows])

    @property
    def change(self) -> StateChange:
        return StateChange(self.epoch, self.edits, self.offsets, self.meta, self.at)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole truth about one epoch; everything it refers to is immutable."""

    epoch: int
    plan: Fingerprints
    slices: Mapping[Key, tuple[ManifestEntry, ...]] = field(default_factory=dict[Key, tuple[ManifestEntry, ...]])
    offsets: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    next_id: int = 1
    at: int | None = None  # when the epoch was committed, in microseconds since 1970, if that is known

    def entries(self) -> Iterator[ManifestEntry]:
        for entries in self.slices.values():
            yield from entries

    def after(self, changes: Iterable[StateChange]) -> Manifest:
        """The manifest after these commits, at a cost set by them, by the slices of what they change, and by the keys.

        >>> ref = SliceRef("edges", 0, "s", 0, 1, 2, "<i8", 0)
        >>> add, merge = Edit("edges", 0, (), ManifestEntry(1, ref)), Edit("edges", 0, (1,), ManifestEntry(2, ref))
        >>> changes = StateChange(1, (add,), {"log": 10}), StateChange(2, (merge,))
        >>> later = Manifest(0, Fingerprints("p")).after(changes)
        >>> later.epoch, [entry.id for entry in later.slices["edges", 0]], later.offsets, later.next_id
        (2, [2], {'log': 10}, 3)
        """
        epoch, next_id, at = self.epoch, self.next_id, self.at
        offsets, meta = dict(self.offsets), dict(self.meta)
        edited: dict[Key, list[ManifestEntry]] = {}
        for change in changes:
            at = change.at if change.at is not None or change.epoch != epoch else at
            epoch = change.epoch
            offsets.update(change.offsets)
            meta.update(change.meta)
            for edit in change.edits:
                key = edit.name, edit.shard
                if key not in edited:
                    edited[key] = list(self.slices.get(key, ()))
                edit.make(edited[key])
                next_id = max(next_id, edit.entry.id + 1 if edit.entry else 0)
        slices = {**self.slices, **{key: tuple(entries) for key, entries in edited.items()}}
        for key in [key for key, entries in edited.items() if not entries]:
            del slices[key]
        return Manifest(epoch, self.plan, slices, offsets, meta, next_id, at)

    def moved(self, places: Mapping[int, SliceRef]) -> Manifest:
        """The same slices, those with these ids lying elsewhere."""
        if not places:
            return self
        slices = {
            key: tuple(ManifestEntry(entry.id, places.get(entry.id, entry.ref)) for entry in entries)
            for key, entries in self.slices.items()
        }
        return replace(self, slices=slices)

    def adopted(self, plan: Fingerprints) -> Manifest:
        """The state under another plan: traces that mean the same stay, and blocks that are no trace too."""
        was, now = self.plan.traces, plan.traces
        slices = {key: entries for key, entries in self.slices.items() if was.get(key[0]) == now.get(key[0])}
        return replace(self, plan=plan, slices=slices)

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": [self.plan.plan, dict(self.plan.traces)],
            "slices": [[entry.id, *entry.ref] for entry in self.entries()],
            "offsets": dict(self.offsets),
            "meta": dict(self.meta),
            "next": self.next_id,
            **({} if self.at is None else {"at": self.at}),
        }

    @classmethod
    def from_record(cls, record: LogRecord) -> Self:
        document = record.document
        slices: dict[Key, list[ManifestEntry]] = {}
        for number, *ref in document["slices"]:
            entry = ManifestEntry(number, SliceRef(*ref))
            slices.setdefault(entry.ref.key, []).append(entry)
        return cls(
            record.epoch,
            Fingerprints(*document["plan"]),
            {key: tuple(entries) for key, entries in slices.items()},
            document["offsets"],
            document["meta"],
            document["next"],
            document.get("at"),
        )


def refs_of(record: LogRecord) -> Iterator[SliceRef]:
    """The slices in a record: the ones added by a commit, or listed by a snapshot."""
    if record.kind is RecordKind.SNAPSHOT:
        yield from (entry.ref for entry in Manifest.from_record(record).entries())
        return
    yield from (edit.entry.ref for edit in StateChange.from_record(record).edits if edit.entry is not None)
