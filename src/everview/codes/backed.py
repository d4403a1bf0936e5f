"""A dictionary that holds part of the entries, and looks for the rest where they are stored.

Entries of a store come here when their codes are first asked for: to look up values, to see whether a value that is
interned has its code already, and for comparisons by value, which are told beforehand (`require`). They are no news to
the store, so `export` leaves them out; and they stay true whatever happens to the open tick, so `rollback` keeps them.
All of them may be forgotten at any time between ticks, which bounds the memory that they take.

Exceptions, and what stands in their way, are few and always here: whoever makes one of these loads them first, with
`fetch_all`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol

import numpy as np

from everview.codes.dictionary import FIRST_SEED, LAST_SEED, Dictionary, Entries, Hash, Mark
from everview.kernels import dictionary as kernels
from everview.kernels.xxh64 import hash_bytes
from everview.types import NULL_WORD
from everview.types.words import Words


class EntrySource(Protocol):
    """Stored entries that can be looked for by their codes."""

    def find(self, kind: int, codes: Words) -> Entries:
        """The entries of these codes, as far as there are any; codes come sorted, each once."""
        ...

    def find_committed(self, kind: int, codes: Words) -> Entries:
        """`find` without entries that the open epoch has written, which may never count."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether the open epoch has written entries."""
        ...


class BackedDictionary(Dictionary):
    """A dictionary whose other entries are in a store.

    >>> import pyarrow as pa
    >>> from everview.types import STRING
    >>> codes = (stored := Dictionary()).intern(STRING, pa.array(["ada", "bob"]))
    >>> class Source:
    ...     is_open = False
    ...     def find(self, kind, codes):
    ...         return stored.export()
    >>> here = BackedDictionary(Source())
    >>> here.lookup(STRING, codes[:1]).to_pylist(), len(here.export())
    (['ada'], 0)
    """

    is_partial: ClassVar[bool] = True

    def __init__(self, source: EntrySource, hash: Hash = hash_bytes) -> None:
        super().__init__(hash)
        self._source = source
        self._fetched: list[tuple[int, int]] = []  # spans of entries that the store has, in order
        self._owed: Entries | None = None  # those of them that a rollback has yet to put back

    def require(self, kind: int, codes: Words) -> None:
        table = self._table
        entries, missing = kernels.locate(kind, codes, table.slots, table.codes, table.kinds)
        if missing < 0:
            return
        wanted = np.unique(codes[(entries < 0) & (codes != NULL_WORD)])
        self.fetch_all(self._source.find(kind, wanted))

    def load(self, entries: Entries) -> None:
        self._require_all(entries)
        super().load(entries)

    def fetch_all(self, entries: Entries) -> None:
        """Take entries that the store has; an exception comes with what stands in its way."""
        if not len(entries):
            return
        for kind, codes in self._ways(entries):
            self.require(kind, codes[~np.isin(codes, entries.codes[entries.kinds == kind])])
        before = len(self)
        super().load(entries)
        if len(self) > before:
            self._fetched = [*self._fetched, (before, len(self))]

    def forget(self) -> None:
        """Forget all entries; those that matter must be in the store. Marks from before are void."""
        fresh = BackedDictionary(self._source, self._hash)
        generation = self._generation + 1
        self.__dict__.update(fresh.__dict__, _generation=generation)

    # -- what is new to the store

    def export(self, since: Mark | None = None) -> Entries:
        first = 0
        if since is not None:
            self._check(since)
            first = since.entries
        new = np.ones(len(self), np.bool_)
        for start, end in self._fetched:
            new[start:end] = False
        new[:first] = False
        return self._pick(np.flatnonzero(new))

    def rollback(self, mark: Mark) -> None:
        later = [(max(start, mark.entries), end) for start, end in self._fetched if end > mark.entries]
        if later:
            kept = self._pick(np.concatenate([np.arange(start, end) for start, end in later]))
            self._owed = self._committed(kept) if self._source.is_open else kept
        self._fetched = [(start, min(end, mark.entries)) for start, end in self._fetched if start < mark.entries]
        super().rollback(mark)
        if self._owed is not None:  # also if an exception came between, the last time
            self.fetch_all(self._owed)
            self._owed = None

    # -- inside

    def _committed(self, entries: Entries) -> Entries:
        """Those of some entries that do not depend on the open epoch."""
        kept = np.zeros(len(entries), np.bool_)
        for kind in np.unique(entries.kinds).tolist():
            codes = np.unique(entries.codes[entries.kinds == kind])
            known = self._source.find_committed(kind, codes).codes
            kept |= (entries.kinds == kind) & (np.isin(entries.codes, known) | (entries.exceptions != 0))
        rows = np.flatnonzero(kept)
        offsets, data = kernels.gather(rows, entries.offsets, entries.data)
        return Entries(entries.codes[rows], entries.kinds[rows], offsets, data, entries.exceptions[rows])

    def _require_all(self, entries: Entries) -> None:
        """Fetch the stored entries with the same codes, and with the codes that exceptions had before they collided."""
        for kind in np.unique(entries.kinds):
            self.require(int(kind), entries.codes[entries.kinds == kind])
        for kind, codes in self._ways(entries):
            self.require(kind, codes)

    def _ways(self, entries: Entries) -> Iterator[tuple[int, Words]]:
        """By kind, the codes that exceptions would have had if other values did not hold them."""
        for entry in np.flatnonzero(entries.exceptions).tolist():
            start, end = entries.offsets[entry], entries.offsets[entry + 1]
            offsets, data = np.array([0, end - start]), np.ascontiguousarray(entries.data[start:end])
            codes: list[int] = []
            for seed in range(FIRST_SEED, LAST_SEED):
                code = int(self._hash(offsets, data, seed)[0])
                if code == entries.codes[entry]:
                    break
                codes.append(code)
            yield int(entries.kinds[entry]), np.array(codes, np.int64)
