"""What is where in a state directory, and whether a directory is one.

```
FORMAT                         the version of all the rest; its presence makes a directory a state
LOCK                           held by the one writer; says who that is
log/<generation>.log           a snapshot of the manifest, then one record per commit
segments/<epoch>-<attempt>-<token>.seg    slices
```
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from everview.doors import path_of
from everview.errors import ForeignState, StoreError
from everview.traces.store.files import FileSystem, discard, publish
from everview.traces.store.objects import CACHE, require_scheme, scheme_of
from everview.traces.store.slices import checksum, damaged

if TYPE_CHECKING:
    from everview.traces.store.mirrored import MirroredPaths

# 1: a log ends with its last record; 2: room for more may follow; 3: slices may be narrow.
FORMAT_VERSION = 3
OURS = {"FORMAT", "FORMAT.new", "LOCK", "log", "segments"}


@dataclass(frozen=True, slots=True)
class StatePaths:
    """The paths of one state directory."""

    root: Path

    def __post_init__(self) -> None:
        path_of(self.root, StoreError)

    @property
    def format(self) -> Path:
        return self.root / "FORMAT"

    @property
    def lock(self) -> Path:
        return self.root / "LOCK"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def segments(self) -> Path:
        return self.root / "segments"

    def generations(self) -> list[Path]:
        """The logs, oldest first."""
        return sorted(self.log.glob("*.log"))

    # -- what is otherwise where the files are copies of objects

    @property
    def place(self) -> Path | str:
        """The path or URL of the state, as messages say it."""
        return self.root

    @property
    def address(self) -> str:
        """The path or URL by which another process opens the state."""
        return str(self.root)

    def refresh(self, *, thorough: bool = True) -> None:
        """Bring local copies of logs up to date; unless ``thorough``, removals by others may go unnoticed."""

    def files(self) -> FileSystem:
        """The operations by which a writer changes the state."""
        return FileSystem()

    def identity(self) -> tuple[int, ...]:
        """The identity of this state, by which a later one at its place is noticed.

        It is a `FileNotFoundError` if there is none.
        """
        made = self.format.stat()
        return made.st_dev, made.st_ino, made.st_mtime_ns

    def segment(self, name: str) -> Path:
        """The file of a segment, whether there is one or not."""
        return self.segments / name

    def segment_size(self, name: str) -> int | None:
        """The bytes of a segment; None if there is none."""
        path = self.segments / name
        return path.stat().st_size if path.exists() else None

    def segment_names(self) -> list[str]:
        return sorted(os.listdir(self.segments))

    def share(self, name: str) -> None:
        """Let everyone see a segment that is complete."""

    def discard(self, name: str, files: FileSystem) -> None:
        """Try to remove a segment without references; if this fails, `vacuum` removes it later."""
        discard(files, self.segments / name)


def layout_of(path: str | Path) -> StatePaths:
    """The layout of the state at a path or URL, to read it and to write segments."""
    if scheme_of(path) is None:
        return StatePaths(Path(path))
    return _mirrored(str(path), os.getpid(), os.environ.get(CACHE))


def layout_to_write(path: str | Path) -> StatePaths:
    """The layout for the one writer of a state."""
    return StatePaths(Path(path).absolute()) if scheme_of(path) is None else _fresh(str(path))


@cache
def _mirrored(url: str, process: int, cached: str | None) -> MirroredPaths:
    """The copy that all readers of a process share; a forked process has its own."""
    del process, cached
    return _fresh(url)


def _fresh(url: str) -> MirroredPaths:
    require_scheme(url)
    from everview.traces.store.mirrored import mirrored

    return mirrored(url)


def format_text(version: int) -> bytes:
    r"""What FORMAT says; no single altered byte leaves it valid.

    >>> format_text(1)
    b'everview state\nformat 1\nchecksum 82a78126\n'
    """
    text = f"everview state\nformat {version}\n".encode()
    return text + f"checksum {checksum(text):08x}\n".encode()


def require_state(layout: StatePaths) -> None:
    """Refuse what is missing, not a state, damaged, or of a newer format."""
    root, place = layout.root, layout.place
    if not root.exists():
        raise StoreError(f"state directory {root} does not exist", hint="create it, or check the path")
    if not root.is_dir():
        raise StoreError(f"{root} is a file, not a state directory", hint="give the path of a directory")
    if not layout.format.exists():
        raise StoreError(f"{place} is not a state directory", hint="it has no FORMAT file; create a state first")
    version = _version(layout)
    if version > FORMAT_VERSION:
        raise ForeignState(
            f"{place} has format {version}, and this Everview reads up to format {FORMAT_VERSION}",
            hint="open it with a newer Everview, or create a new state",
        )


def _version(layout: StatePaths) -> int:
    text = layout.format.read_bytes()
    digits = text.removeprefix(b"everview state\nformat ").partition(b"\n")[0]
    if not digits.isdigit() or text != format_text(int(digits)):
        raise damaged(layout.format, "it does not say which format this is")
    return int(digits)


def require_vacant(layout: StatePaths) -> None:
    """Refuse to create a state over anything but nothing, or an unfinished creation."""
    root = layout.root
    if not root.exists():
        return
    if not root.is_dir():
        raise StoreError(f"{root} is a file", hint="give the path of a directory that is empty or does not exist")
    if layout.format.exists():
        raise StoreError(f"{layout.place} already holds a state", hint="open it, or create another elsewhere")
    foreign = sorted(set(os.listdir(root)) - OURS)
    if foreign:
        raise StoreError(
            f"{root} is not empty (it holds {foreign[0]})",
            hint="a state is created in a directory of its own",
        )


def make_directories(layout: StatePaths, files: FileSystem) -> None:
    """The directory and its parents, and what is in it; durable on return, whatever an earlier try left."""
    missing = [path for path in (layout.root, *layout.root.parents) if not path.exists()]
    for path in reversed(missing):
        files.mkdir(path)
    for path in (layout.log, layout.segments):
        if not path.exists():
            files.mkdir(path)
    for path in (layout.root, *(path.parent for path in missing or [layout.root])):
        files.sync_dir(path)


def write_format(layout: StatePaths, files: FileSystem) -> None:
    """Turn a directory into a state."""
    files.close(publish(files, layout.format, format_text(FORMAT_VERSION)))
    files.sync_dir(layout.root)


def renew_format(layout: StatePaths, files: FileSystem) -> None:
    """Say that a state may from now on be written in the newest format; the older ones are part of it."""
    if _version(layout) < FORMAT_VERSION:
        write_format(layout, files)
