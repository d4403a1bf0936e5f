"""Memory for the results of merges, of which some is kept for the next merge when nobody reads it any more.

A page that is touched for the first time costs a call of the system: of a merge of a million rows, two thirds of its
time. Large appends merge again and again, and the memory of the batches that a merge has replaced is what the next one
needs. So a few regions wait to be used again, as long as appends are large; `let_go` gives them back.

The regions that wait are bounded: some of a few megabytes each, since the traces of many views merge in the same tick,
three that are larger, and a single large one, whose pages the system may take at once if it needs them. A region begins
to wait when the last array over it is gone, whichever thread has let go of that: a weak reference is put into a queue
that drops its oldest, without a line of Python's code.
"""

from __future__ import annotations

import mmap
from collections import deque
from contextlib import suppress
from typing import Any, Final
from weakref import ref

import numpy as np

from everview.traces import freed
from everview.types.words import Matrix, Words

FEW: Final = 1 << 19  # bytes; less comes from NumPy
SMALL: Final = 1 << 22  # bytes of a small region
MIDDLE: Final = 1 << 24
LARGE: Final = 1 << 26  # and of one that waits at all
COUNTS: Final = {SMALL: 16, MIDDLE: 3, LARGE: 1}  # how many regions of at most so many bytes wait
MUCH: Final = 1 << 14  # rows that are appended at once, after which regions go on waiting
SPARE: Final = 6  # the part of a region that is added to what is asked for; what is not touched costs nothing
AMPLE: Final = 1.5  # times the room that is needed, which a region that is used again has at most
MOSTLY: Final = 0.65  # of a region; if less is used in the end, the rest is given back
# Advice to the system; where it takes none, nothing is advised.
DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)
LAZILY: int | None = getattr(mmap, "MADV_FREE", None)


class Pages:
    """The memory of a region, for as long as arrays show it; then the region waits to be used again.

    Pages own the reference to themselves. When they go, the interpreter first puts the reference into the queue.
    """

    __slots__ = ("__array_interface__", "__weakref__", "lent")

    def __init__(self, region: mmap.mmap) -> None:
        lent = Lent(self, _queue_of(len(region)).append)
        lent.region = region
        self.lent = lent  # only when it is whole: it waits as soon as these pages go, for whatever reason
        address = np.frombuffer(region, np.int64).ctypes.data
        self.__array_interface__ = {
            "shape": (len(region) // 8,),
            "typestr": "=i8",
            "data": (address, False),
            "version": 3,
        }


class Lent(ref[Pages]):
    """A region that arrays show, or that waits since they are gone."""

    __slots__ = ("region",)
    region: mmap.mmap


_waiting: Final = {size: deque[Lent](maxlen=count) for size, count in COUNTS.items()}


def untouched(rows: int, columns: int) -> Matrix:
    """Memory whose small pages come into being one by one as a merge reaches them, unless they were there before.

    NumPy asks for huge pages, and clearing one of those takes as long as many ticks.
    """
    size = rows * columns * 8
    if size < FEW:
        return np.empty((rows, columns), np.int64)
    if size > LARGE:
        return np.frombuffer(_mapped(size), np.int64).reshape(rows, columns)
    region = _taken(size)
    words: Words = np.asarray(Pages(_mapped(_roomy(size)) if region is None else region))
    return words[: rows * columns].reshape(rows, columns)


def shortened(out: Matrix, rows: int) -> Matrix:
    """The first rows of a matrix of `untouched`; unless they are most, the memory of the others is given back."""
    owner: Any = out
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, Pages) and DROP is not None:
        region = owner.lent.region
        used = -(-rows * out.shape[1] * 8 // mmap.PAGESIZE) * mmap.PAGESIZE
        if used < MOSTLY * len(region):
            _advise(region, DROP, used)
    return out[:rows]


def appended(rows: int) -> None:
    """Note that so many rows have been appended at once: after few, what waits to be used again is given back."""
    freed.LARGE_EPOCHS.appended(rows)
    if rows < MUCH:
        let_go()
    else:
        lend_to_system()


def let_go() -> None:
    """Give back what waits to be used again."""
    for queue in _waiting.values():
        queue.clear()


def lend_to_system() -> None:
    """Offer the pages of the waiting large region to the system, which takes them when memory is short.

    The region is out of its queue meanwhile: a thread that took it and wrote to it would lose what it had written.
    """
    if LAZILY is None:
        return
    with suppress(IndexError):  # nothing waits
        lent = _waiting[LARGE].pop()
        _advise(lent.region, LAZILY)
        _waiting[LARGE].append(lent)


def waiting() -> int:
    """The bytes of all regions that wait to be used again."""
    return sum(len(lent.region) for queue in _waiting.values() for lent in queue.copy())


def _queue_of(size: int) -> deque[Lent]:
    """Where a region of so many bytes waits."""
    return next((queue for most, queue in _waiting.items() if size <= most), _waiting[LARGE])


def _taken(size: int) -> mmap.mmap | None:
    """The smallest region that waits and has room for so many bytes, and not for many more."""
    for queue in _waiting.values():
        fitting = [lent for lent in queue.copy() if size <= len(lent.region) <= AMPLE * size]
        for lent in sorted(fitting, key=lambda each: len(each.region)):
            try:
                queue.remove(lent)
            except ValueError:  # another thread was faster
                continue
            return lent.region
    return None


def _roomy(size: int) -> int:
    """The size of a new region: the next merge of its kind will need a little more."""
    return -(-(size + size // SPARE) // mmap.PAGESIZE) * mmap.PAGESIZE


def _advise(region: mmap.mmap, advice: int, start: int = 0) -> None:
    """Advise the system about a region from a byte on; a system that refuses, as of locked memory, keeps the pages."""
    with suppress(OSError):
        region.madvise(advice, start, len(region) - start)


def _mapped(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
