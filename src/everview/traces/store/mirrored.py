"""The layout of a state in an object store: the same paths as in a directory, of files that are copies of objects."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from everview.errors import StoreError
from everview.traces.store.arrow_objects import objects_at
from everview.traces.store.files import FileSystem
from everview.traces.store.layout import StatePaths
from everview.traces.store.mirror import IDENTITY, Mirror, SegmentCache, cache_of
from everview.traces.store.objects import Objects
from everview.traces.store.published import PublishedFiles

REACH = "see that this machine reaches the store, and try again"


@dataclass(frozen=True, slots=True)
class MirroredPaths(StatePaths):
    """A copy of the logs of a state, and the cache of its segments that all processes of a machine share."""

    url: str  # with what is secret in it
    mirror: Mirror
    cache: SegmentCache
    folder: Path  # on this machine, for the state

    @property
    def place(self) -> str:
        return self.mirror.objects.url

    @property
    def address(self) -> str:
        return self.url

    @property
    def lock(self) -> Path:
        """The lock of this machine's writers; those of other machines are fenced off by the journal."""
        return self.folder / "LOCK"

    @property
    def segments(self) -> Path:
        return self.cache.folder

    def refresh(self, *, thorough: bool = True) -> None:
        try:
            if self.mirror.leads:
                return
            if thorough:
                self.mirror.catch_up()
            else:
                self.mirror.read_on()
        except OSError as error:
            raise StoreError(f"the state at {self.place} cannot be read: {error}", hint=REACH) from error

    def files(self) -> FileSystem:
        return PublishedFiles(self.mirror, self.cache)

    def identity(self) -> tuple[int, ...]:
        try:
            stored = self.mirror.objects.read(IDENTITY)
        except OSError as error:
            raise StoreError(f"the state at {self.place} cannot be read: {error}", hint=REACH) from error
        if stored is None:
            raise FileNotFoundError(f"there is no state at {self.place}")
        return crc32(stored), len(stored)

    def segment(self, name: str) -> Path:
        return self.cache.path(name)

    def segment_size(self, name: str) -> int | None:
        return self.mirror.objects.size(f"segments/{name}")

    def segment_names(self) -> list[str]:
        return sorted(self.mirror.objects.names("segments"))

    def share(self, name: str) -> None:
        self.cache.share(name)

    def discard(self, name: str, files: FileSystem) -> None:
        with suppress(OSError):
            self.cache.remove(name)


def mirrored(url: str) -> MirroredPaths:
    """The layout of the state at a URL, nothing of which is copied yet."""
    return over(objects_at(url), url)


def over(objects: Objects, url: str) -> MirroredPaths:
    """The layout of a state whose objects these are."""
    folder = cache_of(url)
    mirror = Mirror(objects, folder)
    return MirroredPaths(mirror.root, url, mirror, SegmentCache(objects, folder / "segments"), folder)
