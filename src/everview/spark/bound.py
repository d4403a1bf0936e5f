"""Sources of a pipeline: frames that are bound to sources of its circuit, and how their rows are changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import PipelineError, SourceError
from everview.plan.timed import CLOCK, Watermark, is_watermark
from everview.runtimes.tables import Table
from everview.spark.delta_feed import DeltaFeed
from everview.spark.feeds import NewChanges, PositionedSource
from everview.spark.paths import MadeFrame, relist, rows_of
from everview.spark.position import Position
from everview.spark.spec import SourceSpec, check_drift, spec_of
from everview.spark.tables import TableFrame
from everview.spark.topic_feed import TopicFeed
from everview.types import Schema, unknown_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATIC = "static"  # under which the offsets have what was read of batch frames
OWN = "files"  # and how far streams of files were followed without Spark; which files, the state's slices say
SNAPSHOTS = "snapshots"  # and up to which snapshot, version or offsets feeds were read, by source
GIVEN = "given"  # and which sources were given more, so that their frames are not the last word any more


@dataclass(frozen=True, slots=True)
class BoundSource:
    """A source and the frame it comes from."""

    spec: SourceSpec
    frame: DataFrame
    keep: bool
    files: MadeFrame | None = None  # what the frame was made of
    watermark: Watermark | None = None
    recomputed: bool = False  # whether its rows are those of a view that Spark recomputes
    replaced: bool = False  # whether its frame took the place of another, and `refresh` was given no changes since

    def now(self, *, again: bool) -> DataFrame:
        """The frame over the present files; `again` makes a given frame list its folders anew."""
        if self.files is not None:
            return self.files.read(self.frame.sparkSession)
        if again:
            relist(self.frame)
        return self.frame

    @property
    def streaming(self) -> bool:
        return self.frame.isStreaming

    @property
    def feed(self) -> PositionedSource | None:
        """What the state follows by a position of its own; None for other sources."""
        if isinstance(self.files, TableFrame):
            return self.files if self.files.feed else None
        return self.files if isinstance(self.files, (DeltaFeed, TopicFeed)) else None

    @property
    def again(self) -> bool:
        """Whether a batch frame may be read at every refresh: repeating the rows of its keys changes nothing."""
        return self.spec.changes in ("upsert", "snapshot")


class DueFrames(NamedTuple):
    """The batch frames that an epoch reads, the offsets once they are read, and how many more epochs feeds need."""

    frames: dict[str, DataFrame]
    offsets: dict[str, Any]
    more: int


class BoundSources:
    """The sources of a pipeline by name. With ``given`` the circuit has all of them; else binding one makes it."""

    def __init__(self, circuit: Circuit, *, given: bool) -> None:
        self._circuit, self._given = circuit, given
        self.by_name: dict[str, BoundSource] = {}

    def bind(
        self,
        name: str,
        frame: DataFrame,
        *,
        schema: Schema | str | None,
        keep: bool,
        files: MadeFrame | None = None,
        recomputed: bool = False,
        replaced: bool = False,
        **style: Any,
    ) -> Stream:
        """Bind a source to a frame; see `Pipeline.source` for the ``style`` of its changes.

        ``files`` says what the frame was made of, if that was done here.
        """
        circuit = self._circuit
        if name in self.by_name:
            raise PipelineError(f"there is a source {name} already", hint="name it otherwise, or write replace=True")
        if self._given and name not in circuit.sources:
            raise unknown_name("source", name, circuit.sources)
        node = circuit.sources.get(name)
        if node is not None:
            schema = circuit.layout(node).schema
        elif files is not None and not isinstance(schema, Schema):
            schema = rows_of(spec_of(name, frame, corrupt=files.corrupt, **style), files)
        elif isinstance(schema, str):
            schema = Schema.parse(schema)
        spec = spec_of(name, frame, schema=schema, corrupt=None if files is None else files.corrupt, **style)
        if spec.changes == "snapshot" and frame.isStreaming:
            hint = 'read it as a batch frame and refresh(); a stream is made of changes: changes="upsert"'
            raise SourceError(f"source {name} cannot be snapshots of a stream", hint=hint)
        if not keep and spec.keyed:
            raise SourceError(f"source {name} cannot do without its contents", hint="only append and weights can")
        self.by_name[name] = BoundSource(spec, frame, keep, files, recomputed=recomputed, replaced=replaced)
        return circuit.source(name, spec.schema) if node is None else circuit.stream(node)

    def bind_clock(self, spark: SparkSession) -> None:
        """Bind the clock, if a view reads it, to a frame of one row: the present time."""
        if CLOCK in self._circuit.sources and CLOCK not in self.by_name:
            style: dict[str, Any] = {"key": "now", "changes": "snapshot"}
            self.bind(CLOCK, spark.sql("SELECT current_timestamp() AS now"), schema=None, keep=True, **style)

    def follows_clock(self, offsets: Mapping[str, Any]) -> bool:
        """Whether there is a clock, and nobody has told it a time."""
        return CLOCK in self.by_name and CLOCK not in offsets.get(GIVEN, ())

    def require(self, name: str) -> None:
        """Refuse a name that no source has."""
        if name not in self.by_name:
            raise unknown_name("source", name, self.by_name)

    def require_all(self) -> None:
        """Refuse a circuit that has a source without a frame."""
        for name in self._circuit.sources:
            if name not in self.by_name:
                raise PipelineError(f"source {name} comes from nowhere", hint=f'bind it: p.source("{name}", frame)')

    @property
    def specs(self) -> list[SourceSpec]:
        """The spec of each source: how its rows are changes."""
        return [bound.spec for bound in self.by_name.values()]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The keys of sources that have one."""
        return {name: bound.spec.key for name, bound in self.by_name.items() if bound.spec.keyed}

    @property
    def tables(self) -> dict[str, Table]:
        """How the runtime keeps the contents of sources, for those that are kept."""
        return {name: _table(bound.spec) for name, bound in self.by_name.items() if bound.keep}

    @property
    def has_streams(self) -> bool:
        """Whether a source is a stream."""
        return any(bound.streaming for bound in self.by_name.values())

    def streams(self, offsets: Mapping[str, Any]) -> list[BoundSource]:
        """The streaming sources in the order of Spark's offsets, which have no names.

        Those that the state has read come first, as they were; then the others, sorted by name.
        """
        last = Position.known(offsets)
        before = () if last is None else last.streams
        names = [name for name, bound in sorted(self.by_name.items()) if bound.streaming]
        ordered = [name for name in before if name in names] + [name for name in names if name not in before]
        return [self.by_name[name] for name in ordered]

    def checked(self, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Batch frames with more changes of sources, checked against the specs of these."""
        for name, frame in frames.items():
            self.require(name)
            if frame.isStreaming:
                raise PipelineError(f"a refresh of {name} takes a batch frame", hint="give streams to source()")
            check_drift(frame, self.by_name[name].spec)
        self.by_name |= {name: replace(self.by_name[name], replaced=False) for name in frames}
        return dict(frames)

    def due(self, offsets: Mapping[str, Any], given: Mapping[str, DataFrame], *, again: bool) -> DueFrames:
        """The batch frames to be read now, and the offsets once they are.

        These are the frames that were not read yet, with ``again`` also those that may be read again, and the given
        ones.
        """
        read, fed = (set[str](offsets.get(key, ())) for key in (STATIC, GIVEN))
        fed -= {name for name, bound in self.by_name.items() if bound.replaced}
        due = {
            name: bound.now(again=name in read)
            for name, bound in self.by_name.items()
            if not bound.streaming and not bound.feed and name not in given and _is_due(name, bound, read, fed, again)
        }
        changed = {name: new for name, new in self._changed(offsets).items() if name not in given}
        seen = {**offsets.get(SNAPSHOTS, {}), **{name: new.position for name, new in changed.items()}}
        reached: dict[str, Any] = {STATIC: sorted({*read, *due}), GIVEN: sorted({*fed, *given})}
        if seen:
            reached[SNAPSHOTS] = seen
        frames = due | {name: new.frame for name, new in changed.items()} | dict(given)
        return DueFrames(frames, reached, max((new.more for new in changed.values()), default=0))

    @property
    def feeds(self) -> list[BoundSource]:
        """The sources that the state follows by positions of its own."""
        return [bound for bound in self.by_name.values() if bound.feed]

    def _changed(self, offsets: Mapping[str, Any]) -> dict[str, NewChanges]:
        """What is new in feeds after the positions that the offsets name, by source."""
        seen, changes = offsets.get(SNAPSHOTS, {}), dict[str, NewChanges]()
        for bound in self.feeds:
            assert bound.feed is not None
            new = bound.feed.since(bound.frame.sparkSession, seen.get(bound.spec.name))
            if new is not None:
                check_drift(new.frame, bound.spec)
                changes[bound.spec.name] = new
        return changes

    def named(self, names: Sequence[str]) -> list[SourceSpec]:
        """The specs of some sources."""
        return [self.by_name[name].spec for name in names]


def fed(offsets: Mapping[str, Any]) -> frozenset[str]:
    """The sources that a state has read, as its offsets say."""
    last = Position.known(offsets)
    batches = (*offsets.get(STATIC, ()), *offsets.get(GIVEN, ()), *offsets.get(SNAPSHOTS, ()))
    own = offsets.get(OWN, {"streams": ()})["streams"]
    return frozenset((*batches, *own, *(() if last is None else last.streams)))


def _is_due(name: str, bound: BoundSource, read: Collection[str], fed: Collection[str], again: bool) -> bool:
    if is_watermark(name) or bound.recomputed:
        return False  # it moves with the rows of others
    if name == CLOCK:
        return name not in fed  # once it was told a time, it does not go back to the present by itself
    return name not in read or (again and bound.again and name not in fed)


def _table(spec: SourceSpec) -> Table:
    """How the runtime keeps a source; an order that is not a column of the rows counts within a batch only."""
    if not spec.keyed:
        return Table()
    # Only operations delete by key; without an order in the rows, what comes late is not noticed anyway.
    return Table(spec.key, spec.row_order, tombstones=spec.changes == "cdc" and spec.row_order is not None)
