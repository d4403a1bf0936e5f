"""The dictionary: interned values by (kind, code).

The code of a value is the 64-bit hash of its bytes. Two values of one kind with one hash are told apart when
the second arrives: it gets an **exception** code, the first free one among its hashes under the seeds that
follow. So a value always finds its own code again by walking its seeds until it meets itself, as long as what
stood in its way stays; `sweep` and `exceptions` see to that. ``NULL_WORD`` is nobody's code.

Entries are only added, in order, so a failed tick leaves none: `mark` before, `rollback` after.

>>> from everview.types import STRING
>>> d = Dictionary()
>>> codes = d.intern(STRING, pa.array(["ada", None, "ada"]))
>>> codes[0] == codes[2], len(d)
(np.True_, 1)
>>> d.lookup(STRING, codes).to_pylist()
['ada', None, 'ada']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa

from everview.codes.buffers import NO_OCTETS, Bytes, Column, Octets, bytes_array, bytes_of, valid_of
from everview.codes.recent import SHORT, RecentValues, remember
from everview.errors import CodeCollision, CorruptState
from everview.kernels import dictionary as kernels
from everview.kernels.xxh64 import hash_bytes
from everview.types import NULL_WORD, STRING, SYMBOL, Type
from everview.types.words import Words

FIRST_SEED: Final = 42  # Spark's
LAST_SEED: Final = FIRST_SEED + 10_000
Hash = Callable[[Words, Octets, int], Words]
Arrays = tuple[np.ndarray, Words, Words, Words, Octets]


class Mark(NamedTuple):
    """A moment in the life of a dictionary."""

    entries: int
    generation: int  # sweeping renumbers entries, so older marks end there


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries as plain data, for the store: entry e is ``data[offsets[e]:offsets[e + 1]]``."""

    codes: Words
    kinds: Words
    offsets: Words
    data: Octets
    exceptions: Octets  # 1 where the code is not the first hash

    def __len__(self) -> int:
        return len(self.codes)


class EntryArrays(NamedTuple):
    """The arrays that hold the entries, replaced together when they grow; see `everview.kernels.dictionary`."""

    slots: np.ndarray
    codes: Words
    kinds: Words
    bounds: Words
    arena: Octets
    flags: Octets

    @classmethod
    def empty(cls) -> EntryArrays:
        words = np.empty(32, np.int64), np.empty(32, np.int64), np.zeros(33, np.int64)
        return cls(np.full(64, -1, np.int32), *words, np.empty(1024, np.uint8), np.zeros(32, np.uint8))

    def with_room(self, n: int, entries: int, octets: int, indexed: int) -> EntryArrays:
        """The first n entries in arrays for more of them, of so many bytes, with slots for some; none gets smaller."""
        table = self
        if entries > len(table.codes):
            codes, kinds, flags = (_longer(array, n, entries) for array in (table.codes, table.kinds, table.flags))
            bounds = _longer(table.bounds, n + 1, entries + 1)
            table = table._replace(codes=codes, kinds=kinds, flags=flags, bounds=bounds)
        if octets > len(table.arena):
            table = table._replace(arena=_longer(table.arena, int(table.bounds[n]), octets))
        places = len(table.slots)
        while 2 * indexed > places:
            places *= 2
        return table if places == len(table.slots) else table.indexed(n, places)

    def indexed(self, entries: int, places: int) -> EntryArrays:
        """The same arrays with this many new slots, which index the first entries and no others."""
        slots = np.full(places, -1, np.int32)
        kernels.index(entries, slots, self.codes, self.kinds)
        return self._replace(slots=slots)


class Located(NamedTuple):
    """Arrays of entries, and where they are: the address and the size of each of those that comparisons read."""

    arrays: EntryArrays
    words: Words

    @classmethod
    def of(cls, arrays: EntryArrays) -> Located:
        return cls(arrays, np.array([[a.ctypes.data, a.size] for a in arrays[:-1]], np.int64).reshape(-1))


def _longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer


class Dictionary:
    """Interned values of all kinds; `hash` is for tests, which cannot wait for a 64-bit collision.

    Kernels add to the table in place, and the number of entries is taken over after that. What raises in between, as a
    signal handler may, leaves slots for entries that do not count: then `_unsure` says so, and the slots are made anew
    before anything is added or forgotten. Entries that do count are found all the same.
    """

    is_partial: ClassVar[bool] = False  # whether other entries are elsewhere, where `require` finds them

    def __init__(self, hash: Hash = hash_bytes) -> None:
        self._hash = hash
        self._n = 0
        self._generation = 0
        self._table = EntryArrays.empty()
        self._unsure = False
        self._marked = Mark(0, 0)  # the last moment that was asked for
        self._losses = 0  # how often entries were forgotten since the last sweep
        self._recent = RecentValues()
        self._located: Located | None = None

    def require(self, kind: int, codes: Words) -> None:
        """Load the entries of these codes, where the dictionary has them, before `arrays` is read."""

    # -- values to codes and back ---------------------------------------------------------------------------

    def intern(self, type_: Type, array: Column) -> Words:
        """The codes of a string or binary array of this type; composite values come as canonical bytes."""
        return self.intern_bytes(type_.kind, bytes_of(array), valid_of(array))

    def hashes(self, column: Bytes) -> Words:
        """The codes that values get unless they are taken."""
        return self._hash(column.offsets, column.data, FIRST_SEED)

    def intern_bytes(self, kind: int, column: Bytes, valid: Octets, hashes: Words | None = None) -> Words:
        """The codes of these rows, `NULL_WORD` where not valid (no `valid`: all are); `hashes` if they are known."""
        n = len(column.offsets) - 1
        out = np.empty(n, np.int64)
        rows = np.arange(n)
        seed = FIRST_SEED
        while len(rows):
            assert seed < LAST_SEED, "a value that collides under every seed"
            wanted = self._hash(column.offsets, column.data, seed) if hashes is None else hashes
            if self.is_partial:
                self.require(kind, wanted[rows] if not len(valid) else wanted[rows][valid[rows] != 0])
            rows = self._intern_round(kind, wanted, column, valid, rows, out, exception=seed != FIRST_SEED)
            seed, hashes = seed + 1, None
        return out

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
        """Give `rows` their wanted codes; returns the rows whose code another value has."""
        clashes = np.empty(len(rows), np.int64)
        done = clashed = 0
        if self._unsure:
            self._make_sure()
        while True:
            self._unsure = True
            done, clashed, self._n = kernels.intern(
                *(kind, wanted, column.offsets, column.data, valid, rows, done, out, clashes, clashed),
                *(exception, self._n, *self._table),
            )
            self._unsure = False
            if done == len(rows):
                return clashes[:clashed]
            row = rows[done]
            self._grow(int(column.offsets[row + 1] - column.offsets[row]))

    def lookup(self, type_: Type, codes: Words) -> Column:
        """The values of codes: text for STRING and SYMBOL, else bytes (canonical ones if composite)."""
        column, valid = self.lookup_bytes(type_.kind, codes)
        return bytes_array(pa.string() if type_ in (STRING, SYMBOL) else pa.binary(), column, valid)

    def lookup_bytes(self, kind: int, codes: Words) -> tuple[Bytes, Octets]:
        """The bytes of codes, and which are not NULL."""
        if self.is_partial:
            self.require(kind, codes)
        table = self._table  # once: another thread may add entries
        entries, missing = kernels.locate(kind, codes, table.slots, table.codes, table.kinds)
        assert missing < 0, f"code {codes[missing]} of kind {kind} is not in the dictionary"
        offsets, data = kernels.gather(entries, table.bounds, table.arena)
        return Bytes(offsets, data), (entries >= 0).view(np.uint8)

    def intern_values(self, kind: int, values: Sequence[bytes]) -> list[int]:
        """The codes of a few values."""
        recent = self._recent.codes_by_bytes
        known = [recent.get((kind, value)) for value in values]
        if None in known:
            known = self._intern_few(kind, values)
            remember(recent, (((kind, v), code) for v, code in zip(values, known, strict=True) if len(v) <= SHORT))
        return known  # pyright: ignore[reportReturnType]

    def intern_texts(self, kind: int, texts: Sequence[str]) -> list[int]:
        """The codes of a few texts; raises `UnicodeEncodeError` for what is no text."""
        recent = self._recent.codes_by_text.setdefault(kind, {})
        try:
            return [recent[text] for text in texts]
        except KeyError:
            codes = self._intern_few(kind, [text.encode() for text in texts])
            remember(recent, ((text, code) for text, code in zip(texts, codes, strict=True) if len(text) <= SHORT))
            return codes

    def _intern_few(self, kind: int, values: Sequence[bytes]) -> list[int]:
        offsets = np.zeros(len(values) + 1, np.int64)
        offsets[1:] = list(accumulate(map(len, values)))
        data = np.frombuffer(b"".join(values), np.uint8)
        return self.intern_bytes(kind, Bytes(offsets, data), NO_OCTETS).tolist()

    def lookup_values(self, kind: int, codes: Sequence[int]) -> list[bytes]:
        """The values of a few codes."""
        recent = self._recent.bytes_by_code
        known = [recent.get((kind, code)) for code in codes]
        if None in known:
            known = self._lookup_each(kind, codes)
            remember(recent, (((kind, code), v) for v, code in zip(known, codes, strict=True) if len(v) <= SHORT))
        return known  # pyright: ignore[reportReturnType]

    def lookup_texts(self, kind: int, codes: Sequence[int]) -> list[str | None]:
        """The texts of a few codes, None where NULL is."""
        recent = self._recent.texts_by_code.setdefault(kind, {})
        try:
            return [recent[code] for code in codes]
        except KeyError:
            values = zip(codes, self._lookup_each(kind, codes), strict=True)
            texts = [None if code == NULL_WORD else value.decode() for code, value in values]
            pairs = zip(codes, texts, strict=True)
            remember(recent, ((code, text) for code, text in pairs if text is None or len(text) <= SHORT))
            return texts

    def _lookup_each(self, kind: int, codes: Sequence[int]) -> list[bytes]:
        column, _ = self.lookup_bytes(kind, np.array(codes, np.int64))
        data, bounds = column.data.tobytes(), column.offsets.tolist()
        return [data[start:end] for start, end in pairwise(bounds)]

    def arrays(self) -> Arrays:
        """``slots, codes, kinds, bounds, arena``: what the kernel `compare` reads."""
        return self._table[:-1]

    @property
    def located(self) -> Located:
        """`arrays` for compiled code that reads by address: keep a reference until the code is done."""
        located = self._located
        if located is None or located.arrays is not self._table:
            located = self._located = Located.of(self._table)
        return located

    def compare(self, type_: Type, a: int, b: int) -> int:
        """-1, 0 or 1: two one-word codes of a type by the values they stand for."""
        return int(kernels.compare_words(type_.kind if type_.interned else 0, a, b, *self.arrays()))

    # -- growth and undoing ---------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """This moment, for `rollback` and `export`."""
        known = self._marked
        if known.entries != self._n or known.generation != self._generation:
            known = self._marked = Mark(self._n, self._generation)
        return known

    @property
    def losses(self) -> tuple[int, int]:
        """Another value than before if entries were forgotten since: then codes known from before may be nobody's."""
        return self._generation, self._losses

    def rollback(self, mark: Mark) -> None:
        """Forget every entry added since."""
        self._check(mark)
        if self._unsure:
            self._make_sure()
        before = self._n
        if mark.entries == before:
            return
        self._recent.clear()
        self._losses += 1
        self._unsure = True
        self._n = mark.entries
        kernels.forget(mark.entries, before, self._table.slots, self._table.codes, self._table.kinds)
        self._unsure = False

    def keep_first(self, entries: int) -> None:
        """Forget every entry but the first ones: what was added since there were so many."""
        self.rollback(Mark(entries, self._generation))

    def _make_sure(self) -> None:
        """Index the entries that count, and no others, if an exception has left that unsure."""
        self._recent.clear()
        self._table = self._table.indexed(self._n, len(self._table.slots))
        self._unsure = False

    def _check(self, mark: Mark) -> None:
        assert mark.generation == self._generation, "a mark from before a sweep"
        assert mark.entries <= self._n, "a mark from after a rollback"

    def _grow(self, more: int) -> None:
        """Make room for at least one more entry of `more` bytes; capacities double."""
        n, table = self._n, self._table
        entries = 2 * n if n == len(table.codes) else 0
        used = int(table.bounds[n]) + more
        octets = max(used, 2 * len(table.arena)) if used > len(table.arena) else 0
        self._table = table.with_room(n, entries, octets, n + 1)

    def reserve(self, entries: int, octets: int) -> None:
        """Make room for so many more entries, which have so many bytes, at once."""
        n, table = self._n, self._table
        if self._unsure or entries < n:
            return
        self._table = table.with_room(n, n + entries, int(table.bounds[n]) + octets, n + entries)

    # -- as data --------------------------------------------------------------------------------------------

    def export(self, since: Mark | None = None) -> Entries:
        """The entries added since, all of them by default."""
        first = 0
        if since is not None:
            self._check(since)
            first = since.entries
        return self._pick(np.arange(first, self._n))

    def exceptions(self) -> Entries:
        """The exceptions, each with the entries that stood in its way: all that another encoder must know."""
        keep = np.zeros(self._n, np.uint8)
        self._keep_chains(keep, np.flatnonzero(self._table.flags[: self._n]))
        return self._pick(np.flatnonzero(keep))

    def load(self, entries: Entries) -> None:
        """Add entries that another dictionary exported; what is here already is passed over.

        A value whose code here is another value's raises `CodeCollision`: two dictionaries met the two values
        apart. Intern it here and encode again.
        """
        _check_entries(entries)
        mark = self.mark()
        for kind in np.unique(entries.kinds):
            for flag in (0, 1):
                rows = np.flatnonzero((entries.kinds == kind) & (entries.exceptions == flag))
                self._load_rows(int(kind), entries, rows, exception=bool(flag), mark=mark)
        if not self._chains_hold(mark):
            self.rollback(mark)
            hint = "load the entries that were exported before these first"
            raise CorruptState("an exception code without the entries that stood in its way", hint=hint)

    def _load_rows(self, kind: int, entries: Entries, rows: Words, *, exception: bool, mark: Mark) -> None:
        out = np.empty(len(entries), np.int64)
        column = Bytes(entries.offsets, entries.data)
        clashes = self._intern_round(kind, entries.codes, column, NO_OCTETS, rows, out, exception=exception)
        if len(clashes):
            self.rollback(mark)
            row = int(clashes[0])
            value = entries.data[entries.offsets[row] : entries.offsets[row + 1]].tobytes()
            hint = "intern the value here, then encode again: it gets an exception code"
            raise CodeCollision(f"two values of kind {kind} have the code {entries.codes[row]}: {value!r}", hint=hint)

    def _pick(self, entries: Words) -> Entries:
        table = self._table
        offsets, data = kernels.gather(entries, table.bounds, table.arena)
        return Entries(table.codes[entries], table.kinds[entries], offsets, data, table.flags[entries])

    # -- sweeping -------------------------------------------------------------------------------------------

    def sweep(self, live: Mapping[int, Words] | Octets) -> int:
        """Drop the entries that nothing refers to; returns how many.

        `live` gives the codes in use by kind (see `references`), or is one byte per entry, 1 to keep it. What
        stands in the way of a live exception is kept with it, or the value would be given a second code.
        """
        keep = self._keep(live)
        self._keep_chains(keep, np.flatnonzero(keep & self._table.flags[: self._n]))
        kept = self._pick(np.flatnonzero(keep))
        dropped = self._n - len(kept)
        fresh = Dictionary(self._hash)
        fresh.load(kept)
        generation = self._generation + 1
        self.__dict__.update(fresh.__dict__, _generation=generation)
        return dropped

    def _keep(self, live: Mapping[int, Words] | Octets) -> Octets:
        if isinstance(live, np.ndarray):
            assert len(live) == self._n, "one byte per entry"
            return live.astype(bool).astype(np.uint8)
        keep = np.zeros(self._n, np.uint8)
        for kind, codes in live.items():
            unknown = self._keep_codes(keep, kind, codes)
            assert unknown == 0, f"{unknown} live codes of kind {kind} are not in the dictionary"
        return keep

    def _keep_chains(self, keep: Octets, exceptions: Words) -> None:
        """Keep, with every exception, the entries that hold its earlier hashes; these may be exceptions themselves."""
        done: set[int] = set()
        while ahead := set(exceptions.tolist()) - done:
            for entry in ahead:
                keep[entry] = 1
                self._keep_codes(keep, int(self._table.kinds[entry]), self._in_the_way(entry))
            done |= ahead
            exceptions = np.flatnonzero(keep & self._table.flags[: self._n])

    def _keep_codes(self, keep: Octets, kind: int, codes: Words) -> int:
        return int(kernels.keep_codes(keep, kind, codes, self._table.slots, self._table.codes, self._table.kinds))

    def _in_the_way(self, entry: int) -> Words:
        """The codes that an exception would have had if other values did not hold them."""
        offsets, data = kernels.gather(np.array([entry]), self._table.bounds, self._table.arena)
        codes: list[int] = []
        for seed in range(FIRST_SEED, LAST_SEED):
            code = int(self._hash(offsets, data, seed)[0])
            if code == self._table.codes[entry]:
                break
            codes.append(code)
        return np.array(codes, np.int64)

    def _chains_hold(self, since: Mark) -> bool:
        """Whether every exception still has entries that hold its earlier hashes."""
        exceptions = np.flatnonzero(self._table.flags[since.entries : self._n]) + since.entries
        seen = np.zeros(self._n, np.uint8)
        return all(
            self._keep_codes(seen, int(self._table.kinds[entry]), self._in_the_way(int(entry))) == 0
            for entry in exceptions
        )

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """The memory it holds."""
        return sum(array.nbytes for array in self._table)


def _check_entries(entries: Entries) -> None:
    n = len(entries.codes)
    fit = n == len(entries.kinds) == len(entries.offsets) - 1 == len(entries.exceptions)
    offsets = entries.offsets
    if not fit or offsets[0] < 0 or offsets[-1] > len(entries.data) or (np.diff(offsets) < 0).any():
        raise CorruptState("dictionary entries that do not fit together", hint="restore an earlier version")
