"""Local copies of what a state in an object store says: its logs as files, and its segments as they are needed.

Readers and the writer work on these files as they do on a state directory. Logs are copied for each process apart,
since a journal can cut what it has appended; segments never change, so all processes of a machine share one cache of
them. Nothing of this has to survive: it is read again from the store.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Final

from everview.traces.store.journal import FIRST, UNDER, ActKind, JournalAct, JournalPlace
from everview.traces.store.objects import Objects, scratch, short_of
from everview.traces.store.segment import map_file
from everview.traces.store.slices import damaged

CACHE_BYTES: Final = "EVERVIEW_CACHE_BYTES"  # and how large the segments of one state may be there
ROOMY: Final = 32 << 30
RACES: Final = 5  # a journal that is removed faster than it is read so often is damaged
AT_ONCE: Final = 16  # objects that are read at the same time
FRESH: Final = 60.0  # seconds for which a cached segment is not removed
IDENTITY: Final = "identity"
FORMAT: Final = "FORMAT"


def cache_of(url: str) -> Path:
    """The folder on this machine for what is cached of a state; only this user can read it."""
    folder = scratch() / short_of(url)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


class Mirror:
    """The logs of a state as local files ``log/<generation>.log``, as far as its journal has been read."""

    def __init__(self, objects: Objects, cache: Path) -> None:
        _remove_dead(cache)
        self.objects = objects
        folder, held = _new_folder(cache)
        self._end = weakref.finalize(self, _remove_own, folder, held, os.getpid())
        self.root = folder / "state"
        self.log = self.root / UNDER
        self.log.mkdir(parents=True)
        self._guard = RLock()
        self._identity: bytes | None = None
        self.leads = False  # whether a writer makes the journal follow these files, and not they the journal
        self.forget()

    def forget(self) -> None:
        """Begin again from an empty journal."""
        self.place = FIRST  # of the next act, which has not been seen
        self._last = FIRST  # of the last act that was
        self._outrun = False  # whether the last act of a listing was gone when it was read
        self.writer = ""  # who has written last
        self.members: dict[int, list[JournalPlace]] = {}  # by log, the acts that say what is in it
        self._lengths: dict[int, int] = {}
        self._broken: dict[int, str] = {}  # by log, an act that does not fit to those before it
        for path in self.log.iterdir():
            path.unlink(missing_ok=True)

    def read_on(self) -> None:
        """Take in one act after the other, until there is none at the next place."""
        with self._guard:
            while (payload := self.objects.read(self.place.name)) is not None:
                self.take(self._decoded(self.place, payload), self.place)

    def catch_up(self) -> None:
        """Take in all that has happened, even if acts that were not seen yet have been removed since."""
        with self._guard:
            broken = ""
            for _ in range(RACES):
                self._look_again()
                self._catch_up()
                if not self._newest_is_broken():
                    return
                broken = self._broken[max(self._broken)] if self._broken else f"{self.objects.url}/{UNDER}"
                self.forget()  # perhaps it was being removed, since there is a newer one by now
            raise damaged(broken, "what comes before it in its log is missing")

    def places(self) -> list[JournalPlace]:
        """The places of the journal that are taken, and whose acts were not removed."""
        return sorted(place for place in map(JournalPlace.named, self.objects.names(UNDER)) if place is not None)

    def _catch_up(self) -> None:
        listed = self.places()
        if self.place != FIRST:
            self.read_on()
            if not listed or listed[-1] <= self._last:
                return
            self.forget()  # there is more beyond a gap
        self._take_listed(listed)
        self.read_on()

    def _newest_is_broken(self) -> bool:
        if self._outrun:
            return True
        return bool(self._broken) and max(self._broken) > max(self._lengths, default=-1)

    def take(self, act: JournalAct, place: JournalPlace) -> None:
        """Let the local files follow an act. A log whose beginning is no longer there is none."""
        self.place = place.next_term if act.kind is ActKind.SEAL else place.next
        self._last, self.writer = place, act.writer
        if act.kind is ActKind.SEAL:
            return
        self.members.setdefault(act.log, []).append(place)
        path = self.path_of(act.log)
        if act.kind is ActKind.BEGIN:
            path.write_bytes(act.data)
            self._lengths[act.log] = len(act.data)
            self._broken.pop(act.log, None)
        elif act.kind is ActKind.DROP:
            path.unlink(missing_ok=True)
            self._lengths.pop(act.log, None)
            self._broken.pop(act.log, None)
        elif act.kind is ActKind.CUT and act.log in self._lengths:
            self._lengths[act.log] = min(act.at, self._lengths[act.log])
            os.truncate(path, self._lengths[act.log])
        elif act.kind is ActKind.APPEND:
            self._append(path, act, place)

    def path_of(self, log: int) -> Path:
        return self.log / f"{log:010}.log"

    def _append(self, path: Path, act: JournalAct, place: JournalPlace) -> None:
        if act.at != self._lengths.get(act.log):
            path.unlink(missing_ok=True)
            self._lengths.pop(act.log, None)
            self._broken[act.log] = f"{self.objects.url}/{place.name}"
            return
        with path.open("r+b") as file:
            file.seek(act.at)
            file.write(act.data)
        self._lengths[act.log] += len(act.data)

    def _look_again(self) -> None:
        """Notice that another state is there now, or none; and that the state's creation has come to its end."""
        identity = self.objects.read(IDENTITY)
        if self._identity is not None and identity != self._identity:
            self.forget()
            (self.root / FORMAT).unlink(missing_ok=True)
        self._identity = identity
        format_ = self.root / FORMAT
        text = None if format_.exists() else self.objects.read(FORMAT)
        if text is not None:
            format_.write_bytes(text)

    def _take_listed(self, listed: Sequence[JournalPlace]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as readers:
            payloads = list(readers.map(lambda place: self.objects.read(place.name), listed))
        self._outrun = bool(payloads) and payloads[-1] is None
        for place, payload, after in zip(listed, payloads, [*listed[1:], None], strict=False):
            if place > self.place:
                if self.place != FIRST:
                    self.read_on()  # the listing may lack what is there
                self.place = max(self.place, place)
            if place == self.place and payload is not None:
                act = self._decoded(place, payload)
                # A term ends with its seal; one in the middle was put where something had been removed.
                if act.kind is not ActKind.SEAL or after is None or after.term > place.term:
                    self.take(act, place)

    def _decoded(self, place: JournalPlace, payload: bytes) -> JournalAct:
        return JournalAct.decode(f"{self.objects.url}/{place.name}", payload)


class SegmentCache:
    """The segments of a state that this machine has read or written, as files that never change."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self.objects, self.folder = objects, folder
        folder.mkdir(exist_ok=True)

    def path(self, name: str) -> Path:
        """The local file of a segment, fetched if it is not there; perhaps there is none after that, either."""
        path = self.folder / name
        if not path.exists():
            part = self.folder / f".{name}.{secrets.token_hex(4)}"
            try:
                if self.objects.fetch(f"segments/{name}", part):
                    part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            self._trim()
        return path

    def share(self, name: str) -> None:
        """Put a segment that was written here where everyone sees it."""
        self.objects.write(f"segments/{name}", memoryview(map_file(self.folder / name)))

    def remove(self, name: str) -> None:
        self.objects.delete(f"segments/{name}")
        (self.folder / name).unlink(missing_ok=True)

    def _trim(self) -> None:
        """Remove what was fetched or written longest ago, if there is too much; what is mapped stays mapped."""
        kept = int(os.environ.get(CACHE_BYTES) or ROOMY)
        for path, size, when in sorted(_sizes(self.folder), key=lambda each: -each[2]):
            kept -= size
            if kept < 0 and time.time() - when > FRESH:
                path.unlink(missing_ok=True)


def _sizes(folder: Path) -> list[tuple[Path, int, float]]:
    sizes: list[tuple[Path, int, float]] = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            status = path.stat()
            sizes.append((path, status.st_size, status.st_mtime))
    return sizes


def _new_folder(cache: Path) -> tuple[Path, int]:
    """Make a folder of this process; return it, and the descriptor of its lock, which ends with the process.

    The folder gets its name once the lock is held, so that no other process takes it for a dead one's and removes it.
    """
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    making = cache / f"making-{name}"
    making.mkdir()
    descriptor = os.open(making / "HELD", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return making.rename(cache / f"mirror-{name}"), descriptor


def _remove_own(root: Path, held: int, process: int) -> None:
    if os.getpid() == process:  # not in a child that was forked meanwhile
        shutil.rmtree(root, ignore_errors=True)
        os.close(held)


def _remove_dead(cache: Path) -> None:
    """Remove mirrors of processes that have died."""
    for root in cache.glob("mirror-*"):
        try:
            descriptor = os.open(root / "HELD", os.O_RDWR)
        except FileNotFoundError:
            continue  # it is being removed
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(root, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)
