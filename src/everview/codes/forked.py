"""A dictionary as it was at a moment, for a reader in another thread while its writer goes on.

It shares the writer's arrays. Entries that were there at the moment never change: the writer only appends, and forgets
what it has appended since. Looking up needs nothing else. Before the reader interns anything it takes slots of its own,
in which only the entries of the moment are, and arrays that end with them, so that the first value it adds is written
to a copy.

>>> import pyarrow as pa
>>> from everview.types import STRING
>>> writer = Dictionary()
>>> codes = writer.intern(STRING, pa.array(["ada"]))
>>> reader = ForkedDictionary(writer, writer.mark())
>>> _ = writer.intern(STRING, pa.array(["bob"]))
>>> _ = reader.intern(STRING, pa.array(["eve"]))
>>> reader.lookup(STRING, codes).to_pylist(), len(reader), len(writer)
(['ada'], 2, 2)
"""

from __future__ import annotations

import numpy as np

from everview.codes.buffers import Bytes, Octets
from everview.codes.dictionary import Dictionary, EntryArrays, Mark
from everview.types.words import Words


class ForkedDictionary(Dictionary):
    """The first entries of another dictionary, and whatever a reader adds to them by itself."""

    def __init__(self, origin: Dictionary, mark: Mark) -> None:
        """Fork ``origin`` at a mark, while its writer does nothing; afterwards the writer may go on."""
        assert not origin.is_partial, "entries that are elsewhere cannot be shared"
        super().__init__(origin._hash)
        self._n = mark.entries
        self._table = origin._table
        self._shared = True

    def again(self) -> ForkedDictionary:
        """The same moment for another reader; only of a fork that has added nothing."""
        assert self._shared, "another reader does not see what this one has added"
        fork = ForkedDictionary.__new__(ForkedDictionary)
        Dictionary.__init__(fork, self._hash)
        fork._n, fork._table, fork._shared = self._n, self._table, True
        return fork

    def _intern_round(
        self,
        kind: int,
        wanted: Words,
        column: Bytes,
        valid: Octets,
        rows: Words,
        out: Words,
        *,
        exception: bool,
    ) -> Words:
        if self._shared:
            self._table, self._shared = _own(self._table, self._n), False
        return super()._intern_round(kind, wanted, column, valid, rows, out, exception=exception)


def _own(table: EntryArrays, n: int) -> EntryArrays:
    """The first n entries, with slots of their own; every array is full, so that growing copies it."""
    if n == 0:
        return EntryArrays.empty()
    slots = table.slots.copy()
    # Whatever was added later stands at the end of its chain of slots, so nobody misses it there.
    np.copyto(slots, -1, where=slots >= n)
    return EntryArrays(
        slots, table.codes[:n], table.kinds[:n], table.bounds[: n + 1], table.arena[: table.bounds[n]], table.flags[:n]
    )
