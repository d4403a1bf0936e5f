"""Object stores in memory: one that does what it is told, and one that answers late, twice or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from threading import RLock

from everview.traces.store.objects import Unanswered


class MemoryObjects:
    """An object store as it should be."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.guard = RLock()  # the journal is read by several threads

    def create(self, name: str, data: bytes) -> bool:
        with self.guard:
            if name in self.objects:
                return False
            self.objects[name] = data
            return True

    def write(self, name: str, data: bytes | memoryview) -> None:
        with self.guard:
            self.objects[name] = bytes(data)

    def read(self, name: str) -> bytes | None:
        with self.guard:
            return self.objects.get(name)

    def fetch(self, name: str, target: Path) -> bool:
        data = self.read(name)
        if data is not None:
            target.write_bytes(data)
        return data is not None

    def size(self, name: str) -> int | None:
        data = self.read(name)
        return None if data is None else len(data)

    def names(self, under: str) -> list[str]:
        with self.guard:
            return [name.removeprefix(f"{under}/") for name in self.objects if name.startswith(f"{under}/")]

    def delete(self, name: str) -> None:
        with self.guard:
            self.objects.pop(name, None)


class WildObjects(MemoryObjects):
    """A store between which and us requests are lost, delayed, repeated, and overtake each other.

    Listings say what is there: S3, Google's, Azure's and HDFS all promise that.
    """

    def __init__(self, url: str, chance: random.Random) -> None:
        super().__init__(url)
        self.chance = chance
        self.wild = True
        self._late: list[Callable[[], object]] = []

    def settle(self) -> None:
        """Let all that is under way arrive, and be tame from now on."""
        with self.guard:
            self.wild = False
            while self._late:
                self._late.pop(self.chance.randrange(len(self._late)))()

    def create(self, name: str, data: bytes) -> bool:
        return bool(self._sent(lambda: super(WildObjects, self).create(name, data)))

    def write(self, name: str, data: bytes | memoryview) -> None:
        whole = bytes(data)
        self._sent(lambda: super(WildObjects, self).write(name, whole))

    def delete(self, name: str) -> None:
        self._sent(lambda: super(WildObjects, self).delete(name))

    def _sent(self, act: Callable[[], object]) -> object:
        with self.guard:
            self._arrive()
            what = self.chance.random() if self.wild else 1.0
            if what < 0.08:  # lost on the way
                raise Unanswered("no answer")
            if what < 0.16:  # done, and the answer lost
                act()
                raise Unanswered("no answer")
            if what < 0.24:  # still on the way
                self._late.append(act)
                raise Unanswered("no answer")
            if what < 0.32:  # done now, and again later
                self._late.append(act)
            return act()

    def _arrive(self) -> None:
        while self.wild and self._late and self.chance.random() < 0.3:
            self._late.pop(self.chance.randrange(len(self._late)))()
