"""Reading a state, at its newest epoch or an older one, while another process may be writing it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from everview.errors import StoreError
from everview.traces.store.arrays import Arrays
from everview.traces.store.layout import Layout, require_state
from everview.traces.store.lock import pin
from everview.traces.store.manifest import Manifest
from everview.traces.store.replay import log_of, read_open, replay
from everview.traces.store.slices import Slice
from everview.traces.store.verify import Verified, verify

RACES = 100  # a vacuum that outruns an attach this often is no race


class State(ABC):
    """A state at one epoch: what a reader and a writer have in common."""

    def __init__(self, layout: Layout, manifest: Manifest, log: Path, descriptor: int) -> None:
        self._layout = layout
        self._manifest = manifest
        self._arrays = Arrays(layout, log, descriptor)

    @property
    def path(self) -> Path:
        return self._layout.root

    @property
    def epoch(self) -> int:
        """The last committed epoch; at 0, nothing was committed yet."""
        return self._manifest.epoch

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    def slices(self, name: str, shard: int = 0) -> tuple[Slice, ...]:
        """The slices of one shard of a trace, largest and oldest first; checked when first asked for."""
        entries = self._manifest.slices.get((name, shard), ())
        return tuple(Slice(entry.id, self._arrays.of(entry)) for entry in entries)

    def verify(self) -> Verified:
        """Check every byte of the state, old epochs included; raises `CorruptState` at the first damage."""
        return verify(self._layout)

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Reader(State):
    """A state to read. It does not move: attach again to see later epochs.

    While it is open, `vacuum` keeps what it refers to; arrays already taken from it stay valid even after.
    """

    def __init__(self, layout: Layout, manifest: Manifest, log: Path, pinned: int) -> None:
        super().__init__(layout, manifest, log, pinned)
        self._pinned: int | None = pinned

    def close(self) -> None:
        pinned, self._pinned = self._pinned, None
        if pinned is not None:
            self._arrays.leave_log()
            os.close(pinned)


def attach(path: str | Path, epoch: int | None = None) -> Reader:
    """Read a state without locking anyone out. A log that a vacuum removes meanwhile is looked for again."""
    layout = Layout(Path(path))
    require_state(layout)
    for _ in range(RACES):
        try:
            log = log_of(layout, epoch)
        except FileNotFoundError:
            continue
        descriptor = pin(log)
        if descriptor is not None:
            return _reader(layout, log, descriptor, epoch)
    raise StoreError(f"{path} changes too fast to be read", hint="vacuum less often")


def _reader(layout: Layout, log: Path, descriptor: int, epoch: int | None) -> Reader:
    try:
        replayed = replay(log, read_open(descriptor), epoch)
    except BaseException:
        os.close(descriptor)
        raise
    return Reader(layout, replayed.manifest, log, descriptor)
