"""What a pipeline keeps beside its state: notes of its sinks, rows set aside, and Spark's own checkpoint.

In a directory, these are files next to the state's. In an object store, notes and rows set aside are objects there;
Spark's checkpoint is in a folder of the driver's machine, and what it holds travels with every commit, so that the
state and Spark's position in the streams are always of one moment: a driver that starts elsewhere is given both.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from everview.errors import StoreError
from everview.traces.store import Replace, State, Store
from everview.traces.store.layout import layout_of
from everview.traces.store.mirror import cache_of
from everview.traces.store.mirrored import MirroredPaths
from everview.traces.store.objects import scheme_of

Stamp = tuple[int, int]  # the size of a file, and when it was written
FILE = "file "  # before the name of a slice that is a file of Spark's checkpoint


def is_remote(path: str) -> bool:
    """Whether a path is the URL of something that is no directory."""
    return scheme_of(path) is not None


class StoreFolder:
    """A folder of objects beside a state in an object store, by their names."""

    def __init__(self, url: str, under: str) -> None:
        layout = layout_of(url)
        assert isinstance(layout, MirroredPaths), "only a state in an object store has objects beside it"
        self._objects, self._under = layout.mirror.objects, under
        self.inside = f"{under}/"

    def names(self) -> list[str]:
        with self._told():
            return sorted(self._objects.names(self._under))

    def files(self, under: str = "") -> Iterator[str]:
        yield from (name for name in self.names() if name.startswith(under))

    def read(self, name: str) -> bytes | None:
        with self._told():
            return self._objects.read(f"{self._under}/{name}")

    def write(self, name: str, data: bytes) -> None:
        with self._told():
            self._objects.write(f"{self._under}/{name}", data)

    note = write

    def _told(self) -> _Told:
        return _Told(self._objects.url)


class _Told:
    """Errors of the store inside a block as errors for the user."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(f"{self._url} cannot be reached: {error}", hint="remove the cause and go on") from error


def local_folder(url: str) -> Path:
    """The folder of this machine for what Spark writes beside a state in an object store."""
    return cache_of(url) / "beside"


class CheckpointFiles:
    """The files of a folder, as slices of a state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored: dict[str, tuple[Stamp, int]] = {}  # and the epoch whose commit took it in

    def edits(self, store: Store) -> Iterator[Replace]:
        """The edits by which the commit of the next epoch takes in what has changed."""
        present = _files(self.folder)
        held = {name.removeprefix(FILE): name for name, _ in store.manifest.slices if name.startswith(FILE)}
        for name, stamp in present.items():
            known, epoch = self._stored.get(name, (None, 0))
            if name not in held or known != stamp or epoch > store.epoch:
                data = np.frombuffer((self.folder / name).read_bytes(), np.uint8)
                yield Replace(f"{FILE}{name}", 0, _ids(store, f"{FILE}{name}"), data)
                self._stored[name] = stamp, store.epoch + 1
        for name in held.keys() - present.keys():
            yield Replace(held[name], 0, _ids(store, held[name]), None)

    def restore(self, state: State) -> None:
        """Let the folder hold what the state says, and nothing else."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for slice_name, _ in state.manifest.slices:
            if slice_name.startswith(FILE):
                path = self.folder / slice_name.removeprefix(FILE)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"".join(part.array.tobytes() for part in state.slices(slice_name)))
        self._stored = {name: (stamp, state.epoch) for name, stamp in _files(self.folder).items()}


def _ids(store: Store, name: str) -> tuple[int, ...]:
    return tuple(entry.id for entry in store.manifest.slices.get((name, 0), ()))


def _files(folder: Path) -> dict[str, Stamp]:
    """The files of a folder with their stamps, hidden ones aside."""
    stamps: dict[str, Stamp] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            status = path.stat()
            stamps[path.relative_to(folder).as_posix()] = status.st_size, status.st_mtime_ns
    return stamps
