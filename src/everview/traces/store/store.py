"""The store: a state directory and its one writer.

Meaning: a sequence of epochs, each a manifest of immutable slices. `commit` appends one epoch; when it
returns, the epoch is durable, and when it raises, the state is as it was. Law: at any moment, whatever
happens to the process or the machine, opening the directory finds the last acknowledged epoch, or the one
whose commit was under way, whole. An exception that no disk raised, as a signal handler's, may come at any moment of a
commit: `recover` then undoes it, or completes it if it counts already. It counts from the assignment of its standing
on. What is small travels in the log record itself; what is large goes to a
segment first.

```python
with Store.create(path, Fingerprints("plan-1", {"edges": "e1"})) as store:
    store.commit(1, [("edges", 0, matrix)], offsets={"kafka": 42})
with Store.attach(path) as state:
    [slice] = state.slices("edges", 0)
```
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from everview.doors import doors, inside
from everview.errors import ForeignState, StoreError
from everview.later import Later
from everview.process import forks, require_same
from everview.traces.store.draft import Draft, Replace
from everview.traces.store.files import FileSystem, discard
from everview.traces.store.layout import (
    StatePaths,
    layout_of,
    layout_to_write,
    make_directories,
    renew_format,
    require_state,
    require_vacant,
    write_format,
)
from everview.traces.store.lock import WriterLock, lock_for_writing, unlock
from everview.traces.store.log import EVERY_TICK, NEVER, Log, Uncertain
from everview.traces.store.manifest import Fingerprints, Manifest, ManifestEntry
from everview.traces.store.reader import Reader, State, attach
from everview.traces.store.record import RecordKind, encode
from everview.traces.store.replay import epochs, log_of, replay, times
from everview.traces.store.segment import SegmentWriter, require_segments
from everview.traces.store.slices import Array, SliceRef, damaged
from everview.traces.store.standing import Standing

if TYPE_CHECKING:
    from everview.traces.store.vacuum import Vacuumed, sparse_segments, sweep
else:
    sparse_segments = Later("everview.traces.store.vacuum", "sparse_segments")
    sweep = Later("everview.traces.store.vacuum", "sweep")

CLOSED = "it is closed"


@doors()
@dataclass(frozen=True, slots=True)
class Policy:
    """When to sync, and what is small.

    `sync` is the least time in seconds between two syncs of the log. With `EVERY_TICK` a commit returns
    when it is on disk. With a time, or with `NEVER`, commits return sooner: a crash of the process still
    loses none, but a power failure may lose those since the last sync (and with `NEVER`, may leave a tail
    that counts as damage). Segments and snapshots are always synced before anything refers to them.
    """

    sync: float = EVERY_TICK
    inline_bytes: int = 64 << 10  # a commit with more than this in arrays writes a segment
    checkpoint_bytes: int = 4 << 20  # a log that has grown by more is replaced by a snapshot


@dataclass(slots=True)
class UnderWay:
    """A store as it was before a change, to undo or complete the change after an exception."""

    what: str
    standing: Standing
    log: Log
    size: int
    queued: bool = False  # whether what is queued goes with it
    path: Path | None = None  # of the log that takes over
    next: Log | None = None


@doors()
class Store(State):
    """The writer of a state directory. Use one at a time, from one thread."""

    def __init__(
        self, layout: StatePaths, lock: WriterLock, log: Log, manifest: Manifest, files: FileSystem, policy: Policy
    ) -> None:
        super().__init__(layout, manifest, log.file.path, log.file.descriptor)
        self._lock = lock
        self._log = log
        self._files = files
        self._policy = policy
        self._queued: list[Replace] = []
        self._refusal: str | None = None  # why nothing more can be committed
        self._under: UnderWay | None = None
        self._made = forks()
        self._adopting = False  # the plan in memory is not the one on disk
        self.kept = frozenset(manifest.plan.traces)  # the traces whose state was found

    # -- opening -----------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: str | Path, plan: Fingerprints, policy: Policy | None = None, files: FileSystem | None = None
    ) -> Self:
        """A new state at epoch 0, in a directory that is empty or does not exist yet."""
        with _reporting(f"creating a state in {path}"), ExitStack() as undo:
            layout = layout_to_write(path)
            files, policy = files or layout.files(), policy or Policy()
            require_vacant(layout)
            make_directories(layout, files)
            lock = lock_for_writing(layout.lock, files, layout.place)
            undo.callback(unlock, lock)
            files.take_over()
            require_vacant(layout)
            _require_no_epochs(layout)
            manifest = Manifest(0, plan)
            snapshot = encode(RecordKind.SNAPSHOT, 0, manifest.to_json())
            log = Log.begin(_next_log(layout), snapshot, files, policy.sync)
            undo.callback(log.close)
            write_format(layout, files)
            undo.pop_all()
        return cls(layout, lock, log, manifest, files, policy)

    @classmethod
    def open(
        cls,
        path: str | Path,
        plan: Fingerprints | None = None,
        policy: Policy | None = None,
        files: FileSystem | None = None,
        *,
        adopt: bool = False,
    ) -> Self:
        """The state at its last epoch, for writing. What it shows is durable.

        A state of another plan is refused, unless `adopt` is given: then the traces that mean the same are
        `kept` and the others are empty. The new plan is on disk from the first commit on, together with
        whatever that commit fills the other traces with.
        """
        with _reporting(f"opening {path}"), ExitStack() as undo:
            store = cls._at(layout_to_write(path), None, policy or Policy(), files)
            undo.callback(store._release)
            store._resume(plan, adopt)
            undo.pop_all()
        return store

    @staticmethod
    def attach(path: str | Path, epoch: int | None = None) -> Reader:
        """The state to read only, at its last epoch or at an older one; a writer may be at work."""
        return attach(path, epoch)

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Whether the directory holds a state; a creation that a crash cut short does not count."""
        layout = layout_of(path)
        layout.refresh()
        return layout.format.exists()

    @staticmethod
    def history(path: str | Path) -> tuple[int, ...]:
        """The epochs that can be opened."""
        layout = layout_of(path)
        layout.refresh()
        require_state(layout)
        return epochs(layout)

    @staticmethod
    def times(path: str | Path) -> dict[int, datetime]:
        """The epochs that can be opened, each with the time of its commit in UTC."""
        layout = layout_of(path)
        layout.refresh()
        require_state(layout)
        start = datetime(1970, 1, 1, tzinfo=UTC)
        return {epoch: start + timedelta(microseconds=at) for epoch, at in times(layout).items()}

    @classmethod
    def rewind(cls, path: str | Path, epoch: int, files: FileSystem | None = None) -> None:
        """Make an older epoch the last one again. Later epochs can then not be opened any more.

        This is the way out when a log is damaged after that epoch.
        """
        with _reporting(f"opening {path}"):
            store = cls._at(layout_to_write(path), epoch, Policy(), files)
        try:
            with store._attempting(f"rewind to epoch {epoch}"):
                store._publish(Draft(epoch, ()))
        finally:
            store._release()

    @classmethod
    def _at(cls, layout: StatePaths, epoch: int | None, policy: Policy, files: FileSystem | None) -> Self:
        files = files or layout.files()
        layout.refresh()
        require_state(layout)
        with ExitStack() as undo:
            lock = lock_for_writing(layout.lock, files, layout.place)
            undo.callback(unlock, lock)
            files.take_over()
            path = log_of(layout, epoch)
            replayed = replay(path, path.read_bytes(), epoch)
            log = Log(files.reopen(path), replayed.end, replayed.snapshot, files, policy.sync)
            undo.pop_all()
        return cls(layout, lock, log, replayed.manifest, files, policy)

    def _resume(self, plan: Fingerprints | None, adopt: bool) -> None:
        """Check the plan, and make sure of what the last writer may have left unsynced."""
        stored = self.manifest.plan
        if plan is not None and plan.plan != stored.plan:
            if not adopt:
                raise ForeignState(
                    f"{self.place} holds the state of another plan ({stored.plan}, not {plan.plan})",
                    hint="adopt=True keeps the traces that are the same; or create another state",
                )
            self.kept = plan.kept_from(stored)
            self._standing = Standing(self.manifest.adopted(plan))
            self._adopting = True
        renew_format(self._layout, self._files)
        self._log.trim()
        self._files.sync_dir(self._layout.log)
        self._files.sync_dir(self._layout.root)

    @property
    def uncertain(self) -> bool:
        """Whether nothing more can be committed, because a failure left open what is on disk."""
        return self._refusal is not None or self._under is not None

    @property
    def added(self) -> tuple[int, ...]:
        """The ids of the slices that the last commit or checkpoint added, in the order of `commit`."""
        return self._standing.added

    def recover(self) -> None:
        """Undo or complete what an exception has cut short. Does nothing otherwise, and may be repeated."""
        under = self._under
        if under is None:
            return
        try:
            if self._standing is under.standing:
                self._undo(under)
            else:
                self._complete(under)
        except (OSError, Uncertain) as error:
            self._refusal = f"an earlier {under.what} was interrupted, and could not be undone ({error})"
        self._under = None

    def _undo(self, under: UnderWay) -> None:
        under.log.cut(under.size)
        if under.path is not None:
            discard(self._files, under.path.with_name(under.path.name + ".new"))
            if under.path.exists():
                self._files.unlink(under.path)
                self._files.sync_dir(under.path.parent)
        if under.next is not None:
            under.next.close()

    def _complete(self, under: UnderWay) -> None:
        """Bring everything else in line with the new standing."""
        if under.queued:
            self._queued = []
        if under.next is not None:
            self._log, self._adopting = under.next, False
            self._arrays.turn_to(under.next.file.path, under.next.file.descriptor)
            under.log.close()
        self._arrays.forget(self._standing.taken)

    # -- committing --------------------------------------------------------------------------------

    @inside
    def commit(
        self,
        epoch: int,
        appends: Sequence[tuple[str, int, Array]] = (),
        *,
        segments: Sequence[SliceRef] = (),
        replaces: Sequence[Replace] = (),
        offsets: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        plan: Fingerprints | None = None,
    ) -> tuple[int, ...]:
        """Make `epoch` the last one: new slices go last in their lists, merges in place of their inputs.

        With another `plan` the state becomes that of it, in the same act: the traces that mean the same stay, the
        others go, and whatever is new comes with this commit.

        The ids of the new slices come back in this order: replacements (queued ones first), appends,
        segments. Offsets and metadata are merged by key into those that stand. Epochs only increase; they
        may skip.
        """
        self._require_later(epoch)
        if self._log.tail > max(self._policy.checkpoint_bytes, self._log.snapshot) and not self._adopting:
            self._checkpoint()  # what is queued is for the commit, which returns its ids
        added = [Replace(name, shard, (), array) for name, shard, array in appends]
        referred = [Replace(ref.name, ref.shard, (), ref) for ref in segments]
        if plan is not None and self._queued:
            self.checkpoint()  # what is queued may be of traces that go
        draft = Draft.of(epoch, [*self._queued, *replaces, *added, *referred], offsets, meta)
        with self._attempting(f"commit of epoch {epoch}", queued=True):
            if referred or replaces or self._queued:  # else there is none to look for
                require_segments(self._layout, draft.refs())
            if plan is not None:
                self._publish(draft, onto=self.manifest.adopted(plan))
            elif self._adopting:
                self._publish(draft)
            else:
                self._append(draft)
        return self.added

    def replace(self, name: str, shard: int, old: Sequence[int], new: Array | SliceRef | None) -> None:
        """Let a merge take the place of its inputs with the next commit or checkpoint, whichever is first.

        A merge changes nothing that is true, so it may wait: a trace that keeps, with each merged batch,
        the ids it stands for can leave merges out of commits altogether, and queue them just before a
        checkpoint.
        """
        self._queued.append(Replace(name, shard, tuple(old), new))

    def forget_queued(self) -> None:
        """Drop the queued merges; that loses nothing, since merges change no contents."""
        self._queued = []

    def checkpoint(self) -> tuple[int, ...]:
        """Begin a new log with a snapshot; slices that travelled inline go to a segment.

        Opening then reads the snapshot only. Does nothing when nothing was committed or queued since the
        last. The ids of queued replacements come back in their order.
        """
        queued, self._queued = self._queued, []  # one that fails forgets them: they would have changed nothing
        return self._checkpoint(queued)

    def flush(self) -> None:
        """Return when every commit is durable, whatever the policy."""
        with self._attempting("flush"):
            self._log.flush()

    def vacuum(self, keep_epochs: int = 1) -> Vacuumed:
        """Checkpoint, then remove whatever the last `keep_epochs` epochs and the open readers do not need.

        A log goes as a whole, so somewhat older epochs may stay. What is queued stays queued.
        """
        assert keep_epochs > 0, "the last epoch is always kept"
        self._checkpoint(stale=sparse_segments(self._layout, self.manifest))
        with self._attempting("vacuum"):
            held = frozenset(change.new.file for change in self._queued if isinstance(change.new, SliceRef))
            return sweep(self._layout, self._files, keep_epochs, held)

    def close(self) -> None:
        """Sync what waits for it, unless the policy is never to, and let the next writer in."""
        require_same(self._made, f"the state in {self.place}")
        try:
            self.recover()
            if self._refusal is None and self._policy.sync != NEVER:
                self.flush()
        finally:
            self._release()

    # -- how ---------------------------------------------------------------------------------------

    def _append(self, draft: Draft) -> None:
        """Commit by one record, and by one segment before it if there is much to write."""
        if draft.nbytes <= self._policy.inline_bytes:
            self._record(draft)
            return
        with self._segment(draft.epoch) as writer:
            placed = draft.placed(writer.add)
            writer.finish()
        try:
            self._record(placed)
        except OSError:
            writer.abandon()
            raise

    def _record(self, draft: Draft) -> None:
        """Log a change; it is kept as it reads from the log, as after reopening."""
        record, recorded = draft.record(self._standing.next_id, self._log.size)
        standing = self._standing.then(recorded)
        self._log.append(record)
        self._standing = standing  # from here on it counts

    def _publish(self, draft: Draft, stale: frozenset[str] = frozenset(), onto: Manifest | None = None) -> None:
        """Commit by a new log, whose snapshot refers to segments only, and to none of the stale ones."""
        onto = self.manifest if onto is None else onto
        with self._segment(draft.epoch) as writer:
            change = draft.placed(writer.add).change(onto.next_id)
            manifest = onto.after([change])
            loose = [entry for entry in manifest.entries() if entry.ref.inline or entry.ref.file in stale]
            places = {entry.id: self._moved(writer, entry) for entry in loose}
            manifest = manifest.moved(places)
            writer.finish()
            snapshot = encode(RecordKind.SNAPSHOT, draft.epoch, manifest.to_json())
        under = self._under
        assert under is not None, "a log is begun by an attempt"
        under.path = _next_log(self._layout)
        try:
            under.next = Log.begin(under.path, snapshot, self._files, self._policy.sync)
        except OSError:
            writer.abandon()
            raise
        self._standing = Standing(manifest, change)  # from here on it counts

    def _checkpoint(self, queued: Sequence[Replace] = (), stale: frozenset[str] = frozenset()) -> tuple[int, ...]:
        if self._adopting:
            raise StoreError("the adopted plan has no commit yet", hint="commit once, then checkpoint or vacuum")
        if not (self._log.tail or queued or stale):
            return ()
        with self._attempting("checkpoint"):
            draft = Draft(self.epoch, queued)
            require_segments(self._layout, draft.refs())
            self._publish(draft, stale)
        return self.added

    def _moved(self, writer: SegmentWriter, entry: ManifestEntry) -> SliceRef:
        """Write a slice to another segment, in the form that it has."""
        add = writer.add_trace if entry.ref.is_narrow else writer.add
        return add(*entry.ref.key, self._arrays.peek(entry))

    def _segment(self, epoch: int) -> SegmentWriter:
        return SegmentWriter(self._layout, epoch, "store", self._files)

    def _require_later(self, epoch: int) -> None:
        if epoch <= self.epoch:
            raise StoreError(
                f"epoch {epoch} cannot be committed after epoch {self.epoch}",
                hint="epochs only increase; compare the manifest's offsets to see whether this is a replay",
            )

    @contextmanager
    def _attempting(self, what: str, *, queued: bool = False) -> Generator[None]:
        """Turn failures into errors that say how the state is now; refuse to go on when that is not known."""
        if self._made != forks():
            require_same(self._made, f"the state in {self.place}")
        self.recover()
        if self._refusal is not None:
            raise StoreError(f"{what} is refused: {self._refusal}", hint=f"open {self.place} again")
        self._under = UnderWay(what, self._standing, self._log, self._log.size, queued)
        try:
            yield
            if self._standing is not self._under.standing:
                self._complete(self._under)
        except Uncertain as error:
            self._refusal = f"an earlier {what} failed: {error} ({error.__cause__})"
            self._under = None
            raise StoreError(f"{what} failed: {error} ({error.__cause__})", hint="open the state again") from error
        except OSError as error:
            self._under = None
            hint = f"the state is as it was, at epoch {self.epoch}; remove the cause and try again"
            raise StoreError(f"{what} failed: {error}", hint=hint) from error
        except BaseException:
            self.recover()
            raise
        self._under = None

    def _release(self) -> None:
        self._refusal = CLOSED
        self._arrays.leave_log()
        self._log.close()
        unlock(self._lock)


@contextmanager
def _reporting(what: str) -> Generator[None]:
    """Turn what the disk refuses, before there is a store, into an error for the user."""
    try:
        yield
    except (OSError, Uncertain) as error:
        raise StoreError(f"{what} failed: {error}", hint="remove the cause and try again") from error


def _next_log(layout: StatePaths) -> Path:
    logs = layout.generations()
    generation = int(logs[-1].stem) + 1 if logs else 1
    return layout.log / f"{generation:010}.log"


def _require_no_epochs(layout: StatePaths) -> None:
    """A creation cut short leaves at most epoch 0; anything else is a state that lost its FORMAT."""
    if any(epochs(layout)):
        raise damaged(layout.format, f"it is missing, but {layout.log} has epochs")
