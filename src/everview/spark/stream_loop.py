"""A loop of our own over streams, in place of Spark's streaming query: the state knows what it has read.

Spark's micro-batches are planned, logged before and after, and read through a query; around a small epoch that takes
longer than the epoch. Here a step lists the files, reads those that the state has not, and commits their rows together
with their names. A crash leaves the commit undone, and the files are listed again; or done, and they are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from everview.errors import PipelineError
from everview.process import ProcessLock
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.seen_files import SeenFiles
from everview.spark.bound import OWN, BoundSource, BoundSources
from everview.spark.changes import shape_of
from everview.spark.epochs import PipelineEpochs
from everview.spark.failures import told
from everview.spark.followers import StreamFollower
from everview.spark.lateness import micros_of
from everview.spark.paths import PathFrame, modified
from everview.spark.position import Position
from everview.spark.shaping import Shape
from everview.spark.state import PipelineState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

POLLING: Final = 0.1  # seconds between two looks at the folders, where no trigger says how many
TRIGGERS: Final = ("processingTime", "availableNow", "once")
PLAIN: Final = ("json", "csv", "parquet", "orc", "avro", "text", "xml", "binaryfile")  # formats that are files alone
SPARK_ALONE: Final = (
    "cleansource",
    "sourcearchivedir",
    "latestfirst",
    "maxfileage",
    "filenameonly",
    "maxbytespertrigger",
)
AT_ONCE: Final = "maxfilespertrigger"


class FollowedFiles:
    """A source that is a stream of files, as the loop reads it."""

    def __init__(self, bound: BoundSource) -> None:
        name, files = bound.spec.name, bound.files
        if not isinstance(files, PathFrame) or files.format.lower() not in PLAIN:
            raise PipelineError(
                f"source {name} cannot be followed without Spark: its position is not known",
                hint=f'positions="state" needs p.source("{name}", path=…, format=…) of one of {", ".join(PLAIN)}, '
                "a table of Delta Lake or Iceberg, or a topic",
            )
        options = {option.lower(): value for option, value in files.options.items()}
        for option in SPARK_ALONE:
            if option in options:
                raise PipelineError(f"source {name}: only Spark has the option {option}", hint="leave it out")
        self.spec, self._files, self._frame = bound.spec, files, bound.frame
        self.at_once = int(options[AT_ONCE]) if AT_ONCE in options else None  # files of one epoch
        self._shape: Shape | None = None  # making it asks Spark hundreds of times, and it is that of all files

    def listed(self) -> list[str]:
        """The files that are there now."""
        return self._files.listed(self._frame.sparkSession)

    def in_order(self, files: list[str]) -> list[str]:
        """Files in the order of their times, if not all are read at once; in one epoch, rows know the times."""
        if self.at_once is None or len(files) <= self.at_once:
            return files
        return sorted(files, key=lambda file: (modified(self._frame.sparkSession, file), file))

    def frame(self, files: Sequence[str]) -> DataFrame:
        """The changes in some files."""
        rows = self._files.of_files(self._frame.sparkSession, files, self._columns)
        if self._shape is None:
            self._shape = shape_of(rows, self.spec)
        return self._shape(rows)

    @cached_property
    def _columns(self) -> StructType:
        return self._frame.schema


NewFiles = dict[str, list[str]]  # by source


class StreamLoop(StreamFollower["LoopQuery"]):
    """Follows streams of files and feeds, an epoch a step."""

    def __init__(self, sources: BoundSources, state: PipelineState, epochs: PipelineEpochs, lock: ProcessLock) -> None:
        super().__init__(sources, state, epochs, lock)
        self._followed: dict[str, FollowedFiles] = {}
        self._seen: SeenFiles | None = None

    def start(
        self, trigger: Mapping[str, Any] | None, name: str | None, require_sinks: Callable[[Engine], None]
    ) -> LoopQuery:
        """Start the loop in a thread of its own, with the lock held; see `Streaming.start`."""
        every, ends = _rhythm(trigger)
        engine = self._state.engine()
        streams = self._sources.streams(engine.offsets)
        if not streams and not self._sources.feeds:
            raise PipelineError("no source is a stream", hint="call refresh(), or give a source a path and a format")
        if self.active:
            raise PipelineError("the pipeline is running already", hint="stop() it first")
        self.require(engine)
        self._followed = {bound.spec.name: FollowedFiles(bound) for bound in streams}
        require_sinks(engine)
        self._epochs.load(engine, {}, None, again=False)
        self._stopping = False
        self.query = query = LoopQuery(self, name)
        query.begin(self._until_read if ends else lambda: self._for_ever(every, query.wake))
        return query

    def require(self, engine: Engine) -> None:
        last = Position.known(engine.offsets)
        if last is None:
            return
        if self._sources.has_streams or any(bound.spec.name in last.streams for bound in self._sources.feeds):
            raise PipelineError(
                "Spark's checkpoint has the position of this state in its streams",
                hint='go on with positions="spark", or start anew in an empty directory',
            )

    def _end(self, query: LoopQuery) -> None:
        query.end()

    def read_all(self) -> None:
        """Take in all that is there now; what arrives meanwhile waits for the next round."""
        with self._lock:
            more = self._feed(self._state.engine())
            due = self._new(self._state.engine())
        while any(due.values()):
            due = self._epoch(due)
        while more and not self._stopping:
            with self._lock:
                more = min(more - 1, self._feed(self._state.engine()))

    def _until_read(self) -> None:
        self.read_all()

    def _for_ever(self, every: float, wake: threading.Event) -> None:
        while not self._stopping:
            begun, more = monotonic(), 0
            with self._lock:
                if not self._stopping:
                    more = self._feed(self._state.engine())
                due = {} if self._stopping else self._new(self._state.engine())
            if any(due.values()):
                self._epoch(due)
            pause = max((bound.feed.pause for bound in self._sources.feeds if bound.feed), default=0.0)
            wake.wait(0.0 if more else max(0.0, begun + max(every, pause) - monotonic()))

    def _feed(self, engine: Engine) -> int:
        """Run an epoch of what is new in feeds, if anything is; returns how many more what is there now takes."""
        return self._epochs.load(engine, {}, None, again=False) if self._sources.feeds else 0

    def _new(self, engine: Engine) -> NewFiles:
        """The files that the state has not read."""
        seen = self._seen = self._seen or SeenFiles(engine)
        return {
            name: followed.in_order([file for file in followed.listed() if file not in seen.of(engine, name)])
            for name, followed in self._followed.items()
        }

    def _epoch(self, due: NewFiles) -> NewFiles:
        """Run one epoch of some files that are due, as many as sources allow; returns the others."""
        with self._lock:
            if self._stopping:
                return {}
            engine = self._state.engine()
            seen = self._seen or SeenFiles(engine)
            # Between listing and now, whoever else reads all that is there may have read some of them.
            due = {name: [file for file in files if file not in seen.of(engine, name)] for name, files in due.items()}
            now = {name: files[: self._followed[name].at_once] for name, files in due.items() if files}
            if not now:
                return {}
            specs = [self._followed[name].spec for name in now]
            frames = [self._followed[name].frame(files) for name, files in now.items()]
            number = engine.offsets.get(OWN, {"batch": -1})["batch"] + 1
            offsets = {OWN: {"batch": number, "streams": sorted(self._followed)}}

            def edits() -> list[Any]:
                return [seen.edit(engine, name, files) for name, files in now.items()]

            self._seen = None  # what fails from here on may come after the commit: then only the state knows
            self._epochs.files(engine, specs, frames, offsets, number, edits)
            for name, files in now.items():
                seen.note(engine, name, files)
            self._seen = seen
        return {name: files[len(now.get(name, ())) :] for name, files in due.items()}


class LoopQuery:
    """The handle of a loop, with the methods of Spark's `StreamingQuery` that people call."""

    def __init__(self, loop: StreamLoop, name: str | None) -> None:
        self.id, self.name, self.wake = str(uuid4()), name, threading.Event()
        self._loop, self._failed = loop, None
        self._thread: threading.Thread | None = None

    def begin(self, act: Callable[[], None]) -> None:
        """Run the loop in a thread."""

        def run() -> None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the loop raises it
                self._failed = told(error) or error

        self._thread = threading.Thread(target=run, name=f"everview {self.name or 'stream'}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wake the stopping loop and wait for its end, unless called by the loop itself."""
        self.wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def isActive(self) -> bool:
        """Whether the loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def exception(self) -> BaseException | None:
        """The failure that ended the loop; None if nothing failed."""
        return self._failed

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until the loop has ended, or so many seconds; raises the failure that ended it."""
        assert self._thread is not None, "a query is begun when it is handed out"
        self._thread.join(timeout)
        self._raise()
        return not self.isActive

    def processAllAvailable(self) -> None:
        """Return when all that is there now has been taken in."""
        self._raise()
        self._loop.read_all()

    def stop(self) -> None:
        """End the loop after the epoch under way."""
        self._loop.stop(drain=False)

    def _raise(self) -> None:
        if self._failed is not None:
            raise self._failed


def _rhythm(trigger: Mapping[str, Any] | None) -> tuple[float, bool]:
    """The seconds from one step to the next, and whether the loop ends when all is read."""
    if not trigger:
        return POLLING, False
    (kind, value), *more = trigger.items()
    if kind == "processingTime" and not more:
        micros = micros_of(value)
        if micros is not None:
            return max(micros / 1e6, POLLING / 10), False
    if kind in TRIGGERS[1:] and value is True and not more:
        return POLLING, True
    raise PipelineError(
        f"{dict(trigger)!r} is no trigger of a pipeline that keeps its positions itself",
        hint='write {"processingTime": "1 second"} or {"availableNow": True}',
    )
