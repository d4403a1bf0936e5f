"""Reading a state, at its newest epoch or an older one, while another process may be writing it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from everview.errors import CorruptState, StoreError
from everview.later import Later
from everview.traces.store.arrays import Arrays
from everview.traces.store.layout import StatePaths, layout_of, require_state
from everview.traces.store.lock import pin
from everview.traces.store.manifest import Manifest, ManifestEntry
from everview.traces.store.replay import Replayed, log_of, replay, resume, undisturbed
from everview.traces.store.slices import Array, Slice
from everview.traces.store.standing import Standing

if TYPE_CHECKING:
    from everview.traces.store.verify import Verified, verify
else:
    verify = Later("everview.traces.store.verify", "verify")

RACES = 100  # a vacuum that outruns an attach this often is no race


class State(ABC):
    """A state at one epoch: what a reader and a writer have in common."""

    def __init__(self, layout: StatePaths, manifest: Manifest, log: Path, descriptor: int) -> None:
        self._layout = layout
        self._standing = Standing(manifest)
        self._arrays = Arrays(layout, log, descriptor)

    @property
    def path(self) -> Path:
        return self._layout.root

    @property
    def place(self) -> Path | str:
        """The path of the state, or its URL in an object store, as messages say it."""
        return self._layout.place

    @property
    def address(self) -> str:
        """The path or URL by which another process opens the state."""
        return self._layout.address

    @property
    def epoch(self) -> int:
        """The last committed epoch; at 0, nothing was committed yet."""
        return self._standing.epoch

    @property
    def manifest(self) -> Manifest:
        return self._standing.manifest

    @property
    def offsets(self) -> Mapping[str, Any]:
        """The source offsets at the last committed epoch."""
        return self._standing.offsets

    @property
    def meta(self) -> Mapping[str, Any]:
        """The metadata at the last committed epoch."""
        return self._standing.meta

    def slices(self, name: str, shard: int = 0) -> tuple[Slice, ...]:
        """The slices of one shard of a trace, largest and oldest first; checked when first asked for."""
        entries = self.manifest.slices.get((name, shard), ())
        return tuple(Slice(entry.id, self._arrays.of(entry)) for entry in entries)

    def array(self, entry: ManifestEntry) -> Array:
        """The array of one slice, checked, and not kept for the next time."""
        return self._arrays.peek(entry)

    def let_go(self, above: int) -> None:
        """Let go of the memory of mapped segments, if they are larger than so many bytes; their arrays stay valid."""
        self._arrays.let_go(above)

    def verify(self) -> Verified:
        """Check every byte of the state, old epochs included; raises `CorruptState` at the first damage."""
        self._layout.refresh()
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

    def __init__(self, layout: StatePaths, read: Replayed, log: Path, pinned: int) -> None:
        super().__init__(layout, read.manifest, log, pinned)
        self.log = log
        self._read = read
        self._pinned: int | None = pinned

    def at(self, epoch: int | None = None) -> Reader:
        """Another reader, at this epoch, the last by default; of the log, only what was not read yet is read."""
        later = self._later(epoch) if epoch is None or epoch > self.epoch else None
        return attach(self._layout.address, epoch) if later is None else later

    def _later(self, epoch: int | None) -> Reader | None:
        """The reader of a later epoch of the same log; None if another log has it, or if this one is damaged."""
        pinned = self._pinned
        assert pinned is not None, "a closed reader does not go on"
        self._layout.refresh(thorough=epoch is None)
        try:
            log = log_of(self._layout, epoch)
            if not os.path.samestat(log.stat(), os.fstat(pinned)):
                return None
            read = resume(log, pinned, self._read, epoch)
        except (FileNotFoundError, CorruptState):
            return None
        # A duplicate shares the lock, which lasts until both are closed.
        return None if read is None else Reader(self._layout, read, log, os.dup(pinned))

    @property
    def is_superseded(self) -> bool:
        """Whether a later log has this epoch, too: then slices were merged since, or values let go of."""
        self._layout.refresh(thorough=False)
        return log_of(self._layout, self.epoch) != self.log

    def close(self) -> None:
        pinned, self._pinned = self._pinned, None
        if pinned is not None:
            self._arrays.leave_log()
            os.close(pinned)


def attach(path: str | Path, epoch: int | None = None) -> Reader:
    """Read a state without locking anyone out. A log that a vacuum removes meanwhile is looked for again."""
    layout = layout_of(path)
    layout.refresh()
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


def _reader(layout: StatePaths, log: Path, descriptor: int, epoch: int | None) -> Reader:
    try:
        replayed = undisturbed(descriptor, lambda data: replay(log, data, epoch))
    except BaseException:
        os.close(descriptor)
        raise
    return Reader(layout, replayed, log, descriptor)
