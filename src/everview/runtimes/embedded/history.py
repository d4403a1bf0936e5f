"""Earlier epochs of a state directory: what views and tables held then.

Every commit is an epoch, and stays readable until it is vacuumed. What is read is decoded by the dictionary that
belongs to the epoch, so it does not matter what the state has forgotten since.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes import decode
from everview.codes.dictionary import Dictionary
from everview.errors import StoreError
from everview.kernels.large import arrange
from everview.runtimes.embedded import interned
from everview.traces.store import Reader, Store
from everview.types import Schema, unknown_name


class PastRows(NamedTuple):
    """The rows of a relation at an epoch, and their weights."""

    rows: pa.Table
    weights: NDArray[np.int64]


StateReader = Reader  # a state directory at one epoch, which the writer's vacuum leaves as long as it is open


def has_state(path: str | Path) -> bool:
    """Whether there is a state in a directory."""
    return Store.exists(path)


def attached(path: str | Path, epoch: int | None = None) -> StateReader:
    """A state directory to read, at its last epoch or at an earlier one; a writer may be at work."""
    return Store.attach(path, epoch)


def kept_epoch(path: str | Path, epoch: int) -> int:
    """The epoch, if it can be opened; else an error that lists the kept ones."""
    kept = Store.history(path)
    if isinstance(epoch, bool) or not isinstance(epoch, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise StoreError(f"{epoch!r} is no epoch", hint=f"epochs are whole numbers: {_listed(kept)} can be read")
    if epoch in kept:
        return epoch
    raise StoreError(
        f"epoch {epoch} is not kept" if epoch <= kept[-1] else f"epoch {epoch} has not come yet",
        hint=f"{_listed(kept)} can be read; vacuum(keep_epochs=…) says how many stay",
    )


def _listed(kept: tuple[int, ...]) -> str:
    first, last = kept[0], kept[-1]
    if first == last:
        return f"epoch {first}"
    return f"{'' if len(kept) == last - first + 1 else 'some '}epochs {first} to {last}"


def epoch_at(path: str | Path, moment: dt.datetime) -> int:
    """The last epoch that had been committed at a moment; raises if none that is kept had."""
    times = Store.times(path)
    place = bisect_right(list(times.values()), moment)
    if place:
        return list(times)[place - 1]
    first = next(iter(times.values()), None)
    raise StoreError(
        f"no epoch is kept that had been committed at {moment:%Y-%m-%d %H:%M:%S.%f}",
        hint="commits had no times when it was written"
        if first is None
        else f"the first is of {first:%Y-%m-%d %H:%M:%S.%f}",
    )


def described_at(path: str | Path, epoch: int) -> Mapping[str, Any]:
    """The description that a state has of itself at an epoch."""
    with Store.attach(path, epoch) as state:
        return dict(state.manifest.meta)


def contents_at(path: str | Path, name: str, epoch: int) -> PastRows:
    """The rows of a table, or of a view that is kept, at an epoch."""
    with Store.attach(path, epoch) as state:
        meta = state.manifest.meta
        known = {**meta.get("views", {}), **meta.get("tables", {})}
        if known.get(name) is None:
            raise unknown_name(f"relation at epoch {epoch}", name, [n for n, said in known.items() if said])
        schema = Schema.parse(known[name]["schema"])
        dictionary, entries = Dictionary(), interned.stored(state)
        if entries is not None:
            dictionary.load(entries)
        parts = [s.array for shard in range(meta["shards"]) for s in state.slices(known[name]["trace"], shard)]
        empty = np.empty((0, schema.width + 1), np.int64)
        rows = arrange(np.concatenate([empty, *parts]), np.arange(schema.width))
        return PastRows(decode(schema, rows[:, :-1], dictionary), rows[:, -1].copy())
