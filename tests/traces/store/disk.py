"""A disk that loses power: what could be on it, given what was written and what was synced.

`RecordedFiles` does everything for real and keeps a journal. `Disk` plays a prefix of the journal: for
every file and every directory it knows the states that the disk may hold, from the last synced one to the
present one. A power failure leaves one of them each, and of an append that was not synced perhaps only the
first bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from everview.traces.store import FileSystem
from everview.traces.store.files import File

Event = tuple[Any, ...]
Pick = Callable[[list[Any]], Any]
Directory = dict[str, int]  # names, and the numbers of the files; -1 is a directory


class UnsyncedFiles(FileSystem):
    """The real operations but for the waiting: without a real power failure, a sync changes nothing."""

    def sync(self, file: File) -> None:
        self.announce("sync", file.path)

    def sync_dir(self, path: Path) -> None:
        self.announce("sync_dir", path)


class RecordedFiles(UnsyncedFiles):
    """The operations, and a journal of those that succeeded."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[Event] = []
        self._numbers: dict[int, int] = {}  # descriptor → file
        self._paths: dict[Path, int] = {}
        self._files = 0

    def create(self, path: Path) -> File:
        file = super().create(path)
        self._files += 1
        self._numbers[file.descriptor] = self._paths[path] = self._files
        self.journal.append(("create", path, self._files))
        return file

    def reopen(self, path: Path) -> File:
        file = super().reopen(path)
        self._numbers[file.descriptor] = self._paths[path]
        return file

    def append(self, file: File, data: bytes | memoryview, at: int) -> None:
        super().append(file, data, at)
        self.journal.append(("append", self._numbers[file.descriptor], bytes(data), at))

    def sync(self, file: File) -> None:
        super().sync(file)
        self.journal.append(("sync", self._numbers[file.descriptor]))

    def truncate(self, file: File, size: int) -> None:
        super().truncate(file, size)
        self.journal.append(("truncate", self._numbers[file.descriptor], size))

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._paths[target] = self._paths.pop(source)
        self.journal.append(("rename", source, target))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.journal.append(("unlink", path))

    def mkdir(self, path: Path) -> None:
        super().mkdir(path)
        self.journal.append(("mkdir", path))

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        self.journal.append(("sync_dir", path))


class Disk:
    """The states that each file and directory may have after a power failure, the synced one first."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._contents: dict[int, list[bytes]] = {}
        self._directories: dict[Path, list[Directory]] = {root: [{}]}

    def play(self, event: Event) -> None:
        match event:
            case ("create", path, number):
                self._contents[number] = [b""]
                self._enter(path, number)
            case ("append", number, data, at):
                before = self._contents[number][-1]
                assert at <= len(before), "nothing is written beyond the end"
                self._contents[number].append(before[:at] + data + before[at + len(data) :])
            case ("truncate", number, size):
                self._contents[number].append(self._contents[number][-1][:size])
            case ("sync", number):
                del self._contents[number][:-1]
            case ("mkdir", path):
                self._directories[path] = [{}]
                self._enter(path, -1)
            case ("sync_dir", path):
                if path in self._directories:
                    del self._directories[path][:-1]
            case ("unlink", path):
                self._change(path.parent, lambda names: names.pop(path.name))
            case ("rename", source, target):
                self._change(source.parent, lambda names: names.update({target.name: names.pop(source.name)}))
            case _:
                raise AssertionError(event)

    def _enter(self, path: Path, number: int) -> None:
        self._change(path.parent, lambda names: names.update({path.name: number}))

    def _change(self, directory: Path, change: Callable[[Directory], object]) -> None:
        names = dict(self._directories[directory][-1])
        change(names)
        self._directories[directory].append(names)

    def lose_power(self, target: Path, pick: Pick, tear: Callable[[bytes, bytes], bytes]) -> None:
        """Write to `target` what is left: some state of each directory and file, its last append torn."""
        self._write(self._root, target, pick, tear)

    def _write(self, source: Path, target: Path, pick: Pick, tear: Callable[[bytes, bytes], bytes]) -> None:
        target.mkdir()
        for name, number in pick(self._directories[source]).items():
            if number < 0:
                self._write(source / name, target / name, pick, tear)
                continue
            versions = self._contents[number]
            data = pick(versions)
            (target / name).write_bytes(tear(versions[0], data))
