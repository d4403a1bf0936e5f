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
from pathlib import Path

from everview.doors import path_of
from everview.errors import ForeignState, StoreError
from everview.traces.store.files import FileSystem, publish
from everview.traces.store.slices import checksum, damaged

# 1: a log ends with its last record; 2: room for more may follow.
FORMAT_VERSION = 2
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


def format_text(version: int) -> bytes:
    r"""What FORMAT says; no single altered byte leaves it valid.

    >>> format_text(1)
    b'everview state\nformat 1\nchecksum 82a78126\n'
    """
    text = f"everview state\nformat {version}\n".encode()
    return text + f"checksum {checksum(text):08x}\n".encode()


def require_state(layout: StatePaths) -> None:
    """Refuse what is missing, not a state, damaged, or of a newer format."""
    root = layout.root
    if not root.exists():
        raise StoreError(f"state directory {root} does not exist", hint="create it, or check the path")
    if not root.is_dir():
        raise StoreError(f"{root} is a file, not a state directory", hint="give the path of a directory")
    if not layout.format.exists():
        raise StoreError(f"{root} is not a state directory", hint="it has no FORMAT file; create a state first")
    version = _version(layout)
    if version > FORMAT_VERSION:
        raise ForeignState(
            f"{root} has format {version}, and this Everview reads up to format {FORMAT_VERSION}",
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
        raise StoreError(f"{root} already holds a state", hint="open it, or create another elsewhere")
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
