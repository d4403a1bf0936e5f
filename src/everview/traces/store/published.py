"""The file operations of a store whose logs are published: what happens to a log happens in the journal, too.

The local files are a mirror. A log record counts when the journal has it, which is when `sync` returns; a log, when
`rename` does. An outcome that nobody tells is `Uncertain`. To undo what may have arrived, a cut or a drop is published
after it, so that the journal says again what the local files say.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from everview.errors import LockedState
from everview.traces.store.files import File, FileSystem, Hook
from everview.traces.store.journal import FIRST, ActKind, JournalAct, JournalPlace, told_writer, writer_token
from everview.traces.store.log import Uncertain
from everview.traces.store.mirror import FORMAT, IDENTITY, Mirror, SegmentCache
from everview.traces.store.objects import Unanswered, claimed
from everview.traces.store.record import BLANK

UNDOING: Final = (ActKind.CUT, ActKind.DROP)


class _Outrun(OSError):
    """A place in the journal was taken whose act had been removed: the journal has gone on beyond it."""

    def __init__(self) -> None:
        super().__init__("another writer has begun it at the same time")


class PublishedFiles(FileSystem):
    """Files of a mirror, and the one writer of its journal."""

    def __init__(self, mirror: Mirror, segments: SegmentCache, before: Hook | None = None) -> None:
        super().__init__(*(() if before is None else (before,)))
        self.mirror, self.segments, self.objects = mirror, segments, mirror.objects
        self.token = writer_token()
        self._waiting: dict[Path, list[tuple[int, bytes]]] = {}  # appended, to be published by the next sync
        self._reached: dict[int, int] = {}  # by log, the length that the journal may have
        self._fenced: LockedState | None = None

    # -- one writer at a time

    def take_over(self) -> None:
        """End the term of the writer before, whether it lives or not: from now on, none of its acts counts."""
        self.announce("seal", self.mirror.log)
        self.mirror.catch_up()
        # In an empty journal there is no term to end: the act that begins its first log is the first one's.
        while self.mirror.place != FIRST:
            try:
                if self._claim(JournalAct(ActKind.SEAL, self.token)) is not None:
                    break
            except _Outrun:
                self.mirror.catch_up()
        self.mirror.leads = True

    def prove(self) -> None:
        """Raise if another writer has taken over; whatever was listed before this was then not that one's."""
        newest = max(self.mirror.members, default=0)
        self._publish(JournalAct(ActKind.PROOF, self.token, newest))
        for log in [log for log in self.mirror.members if log < newest and not self.mirror.path_of(log).exists()]:
            self._remove_acts(log)  # a removal was cut short

    # -- files

    def append(self, file: File, data: bytes | memoryview, at: int) -> None:
        super().append(file, data, at)
        if self._is_log(file.path):
            self._waiting.setdefault(file.path, []).append((at, bytes(data)))

    def sync(self, file: File) -> None:
        self.announce("sync", file.path)
        waiting = self._waiting.get(file.path)
        if not waiting:
            return
        data = b"".join(data.rstrip(BLANK) for _, data in waiting)
        log, at = int(file.path.stem), waiting[0][0]
        before = self._reached.get(log, at)
        self._reached[log] = at + len(data)
        try:
            self._publish(JournalAct(ActKind.APPEND, self.token, log, at, data))
        except OSError:
            self._reached[log] = before  # it has not arrived
            raise
        self._waiting.pop(file.path, None)

    def truncate(self, file: File, size: int) -> None:
        if self._is_log(file.path):
            self._waiting.pop(file.path, None)
            log = int(file.path.stem)
            if self._reached.get(log, 0) > size:
                self._publish(JournalAct(ActKind.CUT, self.token, log, size))
                self._reached[log] = size
        super().truncate(file, size)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if target.name == FORMAT:
            self._found(target.read_bytes())
        elif self._is_log(target):
            try:
                self._publish(JournalAct(ActKind.BEGIN, self.token, int(target.stem), data=target.read_bytes()))
            except OSError:
                os.unlink(target)  # it was not begun
                raise

    def unlink(self, path: Path) -> None:
        if path.parent == self.segments.folder:
            self.announce("unlink", path)
            self.segments.remove(path.name)
            return
        if self._is_log(path):
            self._unpublish(int(path.stem))
        super().unlink(path)

    def sync_dir(self, path: Path) -> None:
        self.announce("sync_dir", path)  # a mirror need not last

    # -- inside

    def _is_log(self, path: Path) -> bool:
        return path.parent == self.mirror.log and path.suffix == ".log"

    def _found(self, text: bytes) -> None:
        """Make the journal that of a state, or of a newer format."""
        claimed(self.objects, IDENTITY, self.token.encode())
        self.objects.write(FORMAT, text)

    def _unpublish(self, log: int) -> None:
        """Withdraw the newest log by an act of the journal; of an older log, delete all acts that published it."""
        if log >= max(self.mirror.members, default=0):
            self._publish(JournalAct(ActKind.DROP, self.token, log))
            return
        self._remove_acts(log)

    def _remove_acts(self, log: int) -> None:
        for place in self.mirror.members[log]:
            self.objects.delete(place.name)
        del self.mirror.members[log]

    def _publish(self, act: JournalAct) -> None:
        """Put an act at the next free place of this writer's term."""
        if self._fenced is not None:
            if act.kind in UNDOING:
                return  # what would be undone has never arrived
            raise self._fenced
        place = self._claim(act)
        while place is None:
            place = self._claim(act)

    def _claim(self, act: JournalAct) -> JournalPlace | None:
        """The place that the act now has; None if an earlier act of this writer, whose end was not seen, has it."""
        place, payload = self.mirror.place, act.encode()
        try:
            if claimed(self.objects, place.name, payload):
                if act.kind is ActKind.SEAL or place == FIRST:
                    self._require_last(place)
                self._note(act, place)
                return place
            there = self.objects.read(place.name)
        except Unanswered as error:
            raise Uncertain(str(error)) from error
        if there is None:
            raise Uncertain(f"{self.objects.url}/{place.name} was there and is gone")
        found = JournalAct.decode(f"{self.objects.url}/{place.name}", there)
        if found.writer == self.token:
            self._note(found, place)
            return None
        if act.kind is ActKind.SEAL:
            self.mirror.read_on()
            return None
        self._fenced = LockedState(
            f"another writer has taken over the state at {self.objects.url} ({told_writer(found.writer)})",
            hint="let one of them go on: nothing of this one's since then was applied; any number may attach to read",
        )
        if act.kind in UNDOING:
            raise Uncertain(self._fenced.message)  # what is to be undone may have come before that
        raise self._fenced

    def _require_last(self, place: JournalPlace) -> None:
        """Make sure that the place was free because nobody had it yet, not because its act was removed.

        Of a journal, the last act is never removed, so there is one beyond a place that was free for that reason.
        """
        if self.mirror.places()[-1] > place:
            self.objects.delete(place.name)
            raise _Outrun

    def _note(self, act: JournalAct, place: JournalPlace) -> None:
        """Go on after an act of this writer's; the local files are as it says already."""
        mirror = self.mirror
        if act.kind is not ActKind.SEAL:
            mirror.members.setdefault(act.log, []).append(place)
        mirror.writer = act.writer
        mirror.place = place.next_term if act.kind is ActKind.SEAL else place.next
