"""A pipeline: DataFrames in, incremental views in between, sinks out, every epoch exactly once.

An epoch takes in what is new of all sources at once, so all views are of one moment. It is committed to the state
directory together with the position in the sources, before any sink is given anything; a sink gets each epoch under
its number, and again under the same number if a crash left it unclear whether it had it. So whatever fails between
two steps, going on from the state loses nothing and doubles nothing:

1. read what is new, 2. tick, 3. commit state, position and the changes for the sinks, 4. deliver to the sinks,
5. note that they have it. Before 3 nothing has happened; after it the batch is recognised and only 4 and 5 are left.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, get_args

import pyarrow as pa

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import (
    BadRows,
    CodeCollision,
    DatalogError,
    EdnError,
    ForeignState,
    PipelineError,
    SourceError,
    StoreError,
)
from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.plans import named_plan as edn_plan
from everview.frontends.fluent import Query
from everview.frontends.graphspec import graph
from everview.frontends.rules.faults import within_depth
from everview.process import ProcessLock
from everview.runtimes.spark.engine import Engine, Ticked
from everview.runtimes.spark.placement import Decision, Place, Placement
from everview.runtimes.tables import Table
from everview.spark.arrivals import BAD, Arrival
from everview.spark.changes import SourceSpec, arrived, check_drift, combined, counted, normalized, only, spec_of
from everview.spark.checkpoint import mend, require_planned
from everview.spark.claims import Claims, require_apart
from everview.spark.delivery import FEW, Delivery
from everview.spark.delivery import read as read_view
from everview.spark.describe import described
from everview.spark.explain import explain
from everview.spark.failures import in_our_words, told
from everview.spark.fluent import AtSparkPipeline, put_together
from everview.spark.folders import local_path
from everview.spark.following import following
from everview.spark.position import Position, query_of
from everview.spark.progress import Progress, ProgressLog
from everview.spark.queries import Queries, compared
from everview.spark.rules import define_rules
from everview.spark.sinks import SinkSpec, quarantine, read_quarantine, sink_of
from everview.types import Schema, unknown_name
from everview.verify import Compared, Verdict, verify
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("everview.spark")

STATIC = "static"  # under which the offsets have what was read of batch frames
GIVEN = "given"  # and which sources were given more, so that their frames are not the last word any more
TOKEN = "token"  # and what the last refresh called itself
FIRST = 50_000  # rows of a first load, which is usually large, that are fetched to see whether it is
LARGE = 64 << 20  # bytes of the files behind batch frames that need not be fetched to know that they are many
VACUUM_EVERY = 100  # epochs
REMEMBERED = 10_000  # epochs whose progress is kept
BAD_ROWS = ("fail", "quarantine")


@dataclass(frozen=True, slots=True)
class Bound:
    """A source and the frame it comes from."""

    spec: SourceSpec
    frame: DataFrame
    keep: bool

    @property
    def streaming(self) -> bool:
        return self.frame.isStreaming

    @property
    def again(self) -> bool:
        """Whether a batch frame may be read at every refresh: what it says of a key, it may say twice."""
        return self.spec.changes in ("upsert", "snapshot")


class Pipeline:
    """Views over DataFrames that stay right as the data changes.

    ```python
    p = Pipeline(spark, checkpoint="/state/bank")
    transfer = p.source("transfer", transfers, key="id", changes="upsert")
    account = p.source("account", accounts, key="id", changes="cdc")
    joined = transfer.join(account, ("src", "id"))
    joined.aggregate(["country"], total=("sum", "amount")).sink("exposure")
    p.sink("exposure", path="/out/exposure")
    p.start(trigger={"availableNow": True}).awaitTermination()
    p.view("exposure").show()
    ```
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str | os.PathLike[str],
        *,
        circuit: Circuit | None = None,
        shards: int | None = None,
        partitions: int | None = None,
        place: Place = "auto",
        bad_rows: str = "fail",
        keep_epochs: int = 1000,
        check_functions: bool = False,
        loops: LoopBounds | None = None,
    ) -> None:
        """A pipeline whose state is in a directory that every machine of the cluster sees.

        ``circuit`` is one whose sources `source` then binds to frames; without it they are made as they are bound.
        ``place`` forces where ticks run; ``bad_rows`` says whether a row that cannot be taken fails its batch or is
        set aside. Of older epochs, ``keep_epochs`` stay readable. ``shards`` is fixed when the state is made.
        ``loops`` bounds what a recursion may do in one epoch; see `everview.connect`.
        """
        root = local_path(os.fspath(checkpoint))
        if root is None:
            raise PipelineError(
                f"a state directory cannot be at {os.fspath(checkpoint)}",
                hint="give a path, or a file: URL, on a filesystem that every machine of the cluster shares",
            )
        _one_of("place", place, get_args(Place))
        _one_of("bad_rows", bad_rows, BAD_ROWS)
        for what, given in (("keep_epochs", keep_epochs), ("shards", shards), ("partitions", partitions)):
            if given is not None and given < 1:
                raise PipelineError(f"{what} cannot be {given}", hint="give 1 or more")
        self.spark = spark
        self.path = root
        self.circuit = Circuit() if circuit is None else circuit
        self.placement = Placement(place)
        self.bad_rows = bad_rows
        self.keep_epochs = keep_epochs
        self.progress = ProgressLog()
        self._given = circuit is not None
        self._shards, self._partitions = shards, partitions
        self._check_functions, self._loops = check_functions, loops
        self._sources: dict[str, Bound] = {}
        self._sinks: list[SinkSpec] = []
        self._claims = Claims(spark, root)
        self._delivery = Delivery(spark, root, self._sinks, self._claims)
        self._queries = Queries(self.circuit)
        self._opened: Engine | None = None
        self._made: tuple[int, ...] | None = None  # which state directory was opened
        self._failed: BaseException | None = None  # what ended the streaming query
        self._query: StreamingQuery | None = None
        self._lock = ProcessLock("the pipeline")  # one epoch at a time
        self._stopping = False

    # -- defining

    @in_our_words()
    def source(
        self,
        name: str,
        frame: DataFrame,
        *,
        key: str | Sequence[str] | None = None,
        changes: str = "append",
        op: str | None = None,
        weight: str = "_weight",
        order: str | None = None,
        schema: Schema | str | None = None,
        keep: bool = True,
    ) -> Stream:
        """Take a source from a batch or streaming frame, whose rows are changes of one of these styles.

        - ``append``: every row is new; ``weights``: a row counts as often as its weight says, which may be negative;
        - ``upsert``: a row takes the place of the one with its key; ``snapshot``: the rows are all there are;
        - ``cdc``: the column ``op`` says what was done; Debezium's envelope and Delta's change feed are recognised.

        ``schema`` names the columns to take, and which are NOT NULL: a frame read from files says that of none, and a
        number that may be NULL takes twice the room. ``order`` is the column that says which of several changes of a
        key is the last; without it, the last to arrive. ``keep=False`` saves the space of the source's contents, which
        `verify` needs.
        """
        self._require_unopened(f"source {name} cannot be added")
        if name in self._sources:
            raise PipelineError(f"there is a source {name} already", hint="sources have different names")
        if self._given and name not in self.circuit.sources:
            raise unknown_name("source", name, self.circuit.sources)
        at = self.circuit.sources.get(name)
        if at is not None:
            schema = self.circuit.layout(at).schema
        elif isinstance(schema, str):
            schema = Schema.parse(schema)
        spec = spec_of(name, frame, key=key, changes=changes, op=op, weight=weight, order=order, schema=schema)
        if spec.changes == "snapshot" and frame.isStreaming:
            hint = 'read it as a batch frame and refresh(); a stream is made of changes: changes="upsert"'
            raise SourceError(f"source {name} cannot be snapshots of a stream", hint=hint)
        if not keep and spec.keyed:
            raise SourceError(f"source {name} cannot do without its contents", hint="only append and weights can")
        self._sources[name] = Bound(spec, frame, keep)
        return self.circuit.source(name, spec.schema) if at is None else self.circuit.stream(at)

    def graph(self, spec: str | Mapping[str, Any], *, providers: Mapping[str, Any] | None = None) -> None:
        """Views by a graph of relational operators, a GraphSpec: each of its outputs is a view.

        Its relations are sources of the same names, of which it sees every row once. A pointwise relation has a
        provider with ``eval_many``, which must be pure; an enumerable one is a source.
        """
        self._require_unopened("a graph cannot be added")
        outputs = graph(self.circuit, spec, providers)
        for name in outputs:
            if name in self.circuit.sinks:
                raise PipelineError(f"there is a view {name} already", hint="outputs and views have different names")
        for name, stream in outputs.items():
            stream.sink(name)

    def sql(self, text: str, *, dialect: str = "spark") -> None:
        """Views in SQL over the sources and over each other: ``CREATE MATERIALIZED VIEW name AS SELECT …``.

        A plain ``CREATE VIEW`` is a name for its query, and is not kept. ``dialect`` is that of the text.
        """
        self._require_unopened("a view cannot be added")
        self._queries.define_sql(text, dialect)

    def datalog(self, text: str, *, dialect: str = "souffle") -> None:
        """Views by rules over the sources and over views; every relation that they define is one.

        A relation has all its rules in one text. One that is declared and has no rules is a source of that name.
        """
        self._require_unopened("rules cannot be added")
        with within_depth(DatalogError):
            define_rules(self._queries, text, dialect)

    def edn(self, text: str, name: str, *, args: Iterable[Any] = ()) -> None:
        """A view by an EDN query; ``:track/name`` is a column of a source with a key, ``:to`` a source of two columns.

        ``args`` has a value for each of :in but ``$``.
        """
        self._require_unopened("a view cannot be added")
        keys = {source: bound.spec.key for source, bound in self._sources.items() if bound.spec.keyed}
        with within_depth(EdnError):
            self._queries.define([edn_plan(name, text, as_arguments(args), self._queries.readable(keys))])

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a source or a view, to be built step by step; ``materialize(name)`` makes views of it.

        What it relates is a view of its own: ``recent.artist`` beneath ``recent``; see `trees`.
        """
        self._require_unopened("a view cannot be added")
        keys = {name: bound.spec.key for name, bound in self._sources.items() if bound.spec.keyed}
        return AtSparkPipeline(self._queries, keys).query(relation, alias)

    def sink(
        self,
        view: str,
        *,
        format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        table: str | None = None,
        callback: Callable[[Batch, int], None] | None = None,
        mode: str = "changes",
        **options: Any,
    ) -> None:
        """Deliver a view after every epoch: its changes, or a snapshot of it, to a path, a table or a function."""
        self._require_unopened(f"a sink of {view} cannot be added")
        made = sink_of(view, format=format, path=path, table=table, callback=callback, mode=mode, options=options)
        require_apart(made, self._sinks, self.path)
        self._sinks.append(made)

    # -- running

    @in_our_words()
    def start(self, trigger: Mapping[str, Any] | None = None, *, name: str | None = None) -> StreamingQuery:
        """Follow the streaming sources: every micro-batch is one epoch. What batch frames hold is loaded first."""
        with self._lock:
            engine = self._engine()
            # By name, because Spark knows the streams of a query by their places.
            streams = [bound for _, bound in sorted(self._sources.items()) if bound.streaming]
            if not streams:
                raise PipelineError("no source is a stream", hint="call refresh(), or read a source with readStream")
            if self._query is not None and self._query.isActive:
                raise PipelineError("the pipeline is running already", hint="stop() it first")
            self._claims.require(self._sinks, engine.epoch)
            mend(self._spark_checkpoint, Position.known(engine.offsets))
            self._require_own_checkpoint(engine, tuple(bound.spec.name for bound in streams))
            self._load(engine, {}, None, again=False)
            self._stopping, self._failed = False, None
            specs = [bound.spec for bound in streams]
            together = counted(combined([normalized(bound.frame, bound.spec) for bound in streams]), specs)
            begun = threading.Event()

            def batch(frame: DataFrame, number: int) -> None:
                begun.wait()
                try:
                    self._batch(specs, frame, number)
                except BaseException as error:
                    self._failed = told(error) or error
                    raise

            writer = together.writeStream.foreachBatch(batch).option("checkpointLocation", str(self._spark_checkpoint))
            writer = writer.trigger(**dict(trigger)) if trigger else writer
            try:
                self._query = following((writer.queryName(name) if name else writer).start(), lambda: self._failed)
            finally:
                begun.set()
            return self._query

    @in_our_words()
    def refresh(self, *, token: str | None = None, **frames: DataFrame) -> Progress | None:
        """Take in what is new, and return when the views have it.

        Streams are read as far as they go. A batch frame is read once; one that is an upsert or a snapshot, every
        time, until ``refresh(transfer=frame)`` gives more changes of its source. Under the ``token`` of the last
        refresh, frames are not read again.
        """
        with self._lock:
            engine = self._engine()
            self._claims.require(self._sinks, engine.epoch)
            self._delivery.again(engine)
            given = self._given_frames(frames)
            if token is None or engine.offsets.get(TOKEN) != token:
                self._load(engine, given, token, again=True)
            streaming = any(bound.streaming for bound in self._sources.values())
        if streaming and not (self._query is not None and self._query.isActive):
            self.start(trigger={"availableNow": True}).awaitTermination()
        return self.progress[-1] if self.progress else None

    @in_our_words()
    def stop(self, *, drain: bool = False) -> None:
        """End the streaming query after the epoch under way; with ``drain``, after all that has arrived."""
        query = self._query
        if query is None:
            return
        if drain and query.isActive:
            query.processAllAvailable()
        self._stopping = True
        with self._lock:
            pass  # the epoch under way has ended, and no other one begins
        query.stop()  # not under the lock, for which Spark's thread may be waiting
        self._query = None

    def close(self) -> None:
        """Stop, and let another process have the state."""
        self.stop()
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- reading

    @property
    def epoch(self) -> int:
        """The last committed epoch; 0 before the first."""
        return self._engine().epoch

    @in_our_words()
    def view(self, name: str) -> DataFrame:
        """The rows of a view now, each as often as its weight."""
        with self._lock:
            view = self._engine().run.view(name)
            if len(view.contents()) <= FEW:
                return self.spark.createDataFrame(view.to_arrow())
            return read_view(self.spark, self.path, name, epoch=self.epoch)

    @in_our_words()
    def trees(self, name: str) -> Any:
        """What a fluent query gives now, its rows and those beneath fetched and put together."""
        with self._lock:
            if name not in self._queries.fluent:
                raise unknown_name("fluent query", name, self._queries.fluent)
            part, run = self._queries.fluent[name], self._engine().run
            return put_together(name, part, {view: run.view(view).to_arrow() for view, _ in part.walk(name)})

    @in_our_words()
    def table(self, name: str) -> DataFrame:
        """What a source holds now, if that is kept."""
        with self._lock:
            if name not in self._sources:
                raise unknown_name("source", name, self._sources)
            return self.spark.createDataFrame(self._contents(name).to_arrow().drop_columns("_weight"))

    @in_our_words()
    def changes(self, name: str, since: int | None = None, until: int | None = None) -> DataFrame:
        """What changed of a view between two epochs, by default in the last one; ``_weight`` says how often."""
        with self._lock:
            now = self.epoch
            if name not in self._engine().run.views:
                raise unknown_name("view", name, self._engine().run.views)
            until = now if until is None else until
            return read_view(
                self.spark, self.path, name, since=max(until - 1, 0) if since is None else since, until=until
            )

    @in_our_words()
    def quarantined(self) -> DataFrame:
        """The rows that were set aside: ``source``, ``reason``, ``raw`` and ``epoch``."""
        return read_quarantine(self.spark, str(self._quarantine))

    @in_our_words()
    def explain(self) -> str:
        """Sources, views, sinks and circuit, the rows that traces hold, and where the last epochs ran and why."""
        with self._lock:
            engine = self._engine()
            specs = [bound.spec for bound in self._sources.values()]
            return explain(engine, self.circuit, specs, self._sinks, self.progress)

    @in_our_words()
    def verify(self, *views: str) -> Verdict:
        """Compute views from scratch, of what the sources hold, and compare.

        What was defined in SQL is computed by plain Spark SQL, as far as that can say it; the rest by the oracle.
        """
        with self._lock:
            engine, start = self._engine(), perf_counter()
            for name in views:
                engine.run.view(name)
            unkept = [name for name in self._sources if name not in engine.run.tables]
            if unkept:
                raise PipelineError(
                    f"there is nothing to verify against: the contents of {', '.join(unkept)} are not kept",
                    hint="make these sources with keep=True",
                )
            wanted = views or tuple(engine.run.views)
            by_spark = [name for name in wanted if self._queries.asks_spark(name)]
            found = {name: self._compared(name) for name in by_spark}
            others = {name: engine.run.view(name).contents() for name in wanted if name not in found}
            if others:
                sources = {name: self._contents(name) for name in self._sources}
                timed = {name: others.pop(name) for name in [*others] if self._queries.timed(name)}
                found |= verify(self.circuit, sources, others).views
                before = {name: engine.run.view(name).contents() for name in self._queries.carried}
                found |= self._queries.verified(sources | before, timed) if timed else {}
            return Verdict({name: found[name] for name in wanted}, perf_counter() - start)

    def _compared(self, view: str) -> Compared:
        sources = {name: self.table(name) for name in self._sources}
        return compared(view, self.view(view), self._queries.recomputed(self.spark, sources, view))

    @in_our_words()
    def vacuum(self, keep_epochs: int | None = None) -> None:
        """Remove what only older epochs need, and values that no row refers to any more."""
        with self._lock:
            self._delivery.again(self._engine())
            self._engine().vacuum(self.keep_epochs if keep_epochs is None else keep_epochs)

    # -- opening

    @property
    def _spark_checkpoint(self) -> Path:
        return self.path / "spark"

    @property
    def _quarantine(self) -> Path:
        return self.path / "quarantine"

    def _require_unopened(self, what: str) -> None:
        with self._lock:  # refused in a forked child
            pass
        if self._opened is not None:
            raise PipelineError(f"{what} to a pipeline at work", hint="define everything first; then start or refresh")

    def _engine(self) -> Engine:
        self._require_same_state()
        if self._opened is None:
            self._opened = self._open()
            self._made = Engine.made_at(str(self.path))
            self._delivery.again(self._opened)
        return self._opened

    def _require_same_state(self) -> None:
        """Refuse to go on when the state directory was deleted meanwhile; one that was put back is opened again."""
        if self._made is None:
            return
        found = Engine.made_at(str(self.path))
        if self._opened is not None and found != self._made:
            self._opened.close()
            self._opened = None
        if found is None:
            raise StoreError(
                f"the state at {self.path} is gone: it was deleted while the pipeline had it open",
                hint="put it back and go on; or make the pipeline anew, which begins from nothing",
            )

    def _open(self) -> Engine:
        self._check_definition()
        if not Engine.exists(str(self.path)) and query_of(self._spark_checkpoint) is not None:
            raise ForeignState(
                f"{self.path} has the checkpoint of a streaming query, and the state has none of its batches",
                hint="restore the state directory, or start both anew in an empty one",
            )
        tables = {name: _table(bound.spec) for name, bound in self._sources.items() if bound.keep}
        parallel = int(getattr(getattr(self.spark, "sparkContext", None), "defaultParallelism", 0)) or 8
        shards = self._shards or Engine.shards_of(str(self.path)) or max(8, 2 * parallel)
        return Engine(
            self.spark,
            self.circuit,
            str(self.path),
            shards=shards,
            tables=tables,
            placement=self.placement,
            partitions=self._partitions or min(shards, parallel),
            delivered=dict.fromkeys(sink.view for sink in self._sinks),
            check_functions=self._check_functions,
            loops=self._loops,
        )

    def _check_definition(self) -> None:
        for name in self.circuit.sources:
            if name not in self._sources:
                raise PipelineError(f"source {name} comes from nowhere", hint=f'bind it: p.source("{name}", frame)')
        if not self.circuit.sinks:
            raise PipelineError("there is no view", hint='end a stream with .sink("name")')
        for sink in self._sinks:
            if sink.view not in self.circuit.sinks:
                raise unknown_name("view", sink.view, self.circuit.sinks)

    def _require_own_checkpoint(self, engine: Engine, streams: tuple[str, ...]) -> None:
        """Refuse another query's checkpoint, or other streams, before Spark reads anything."""
        last, found = Position.known(engine.offsets), query_of(self._spark_checkpoint)
        if last is not None and (found, streams) != (last.query, last.streams):
            Position(found or "a new one", 0, "", streams).is_replay_of(last)

    # -- epochs

    def _batch(self, specs: Sequence[SourceSpec], frame: DataFrame, number: int) -> None:
        """One micro-batch."""
        with self._lock:
            if self._stopping or self._query is None:
                raise PipelineError("the pipeline is stopping", hint="what has arrived is read at the next start")
            engine = self._engine()
            streams = tuple(spec.name for spec in specs)
            position = Position.of(str(self._query.id), number, self._spark_checkpoint, streams)
            if position.is_replay_of(Position.known(engine.offsets)):
                self._delivery.again(engine)
                return
            require_planned(self.spark, self._spark_checkpoint, number, streams)
            frame = arrived(frame)
            arrival = Arrival(specs, [only(frame, at) for at in range(len(specs))], frame)
            self._epoch(engine, arrival, position.to_offsets(), number)

    def _given_frames(self, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        for name, frame in frames.items():
            if name not in self._sources:
                raise unknown_name("source", name, self._sources)
            if frame.isStreaming:
                raise PipelineError(f"a refresh of {name} takes a batch frame", hint="give streams to source()")
            check_drift(frame, self._sources[name].spec)
        return dict(frames)

    def _load(self, engine: Engine, given: Mapping[str, DataFrame], token: str | None, *, again: bool) -> None:
        """One epoch of what batch frames hold, as far as it was not read yet, and of what is given."""
        read, fed = (set[str](engine.offsets.get(key, ())) for key in (STATIC, GIVEN))
        repeatable = {name for name, bound in self._sources.items() if again and bound.again and name not in fed}
        due = {
            name: bound.frame
            for name, bound in self._sources.items()
            if not bound.streaming and name not in given and (name in repeatable or name not in read)
        }
        frames = due | dict(given)
        if not frames:
            return
        specs = [self._sources[name].spec for name in frames]
        offsets: dict[str, Any] = {STATIC: sorted({*read, *due}), GIVEN: sorted({*fed, *given})}
        if token is not None:
            offsets[TOKEN] = token
        found = [normalized(frame, spec) for frame, spec in zip(frames.values(), specs, strict=True)]
        self._epoch(engine, Arrival.of(specs, found), offsets, None)

    def _epoch(self, engine: Engine, arrival: Arrival, offsets: Mapping[str, Any], batch: int | None) -> None:
        """Steps 1 to 5."""
        self._delivery.again(engine)  # what a sink has not got yet, it gets first
        start = perf_counter()
        with described(self.spark, engine.epoch + 1, alone=batch is None) as describe:
            describe("read what is new")
            limit = self._limit(engine, arrival, batch)
            fetched = None if limit == 0 else arrival.fetch(None if self.placement.place == "driver" else limit)
            read = perf_counter()
            try:
                if fetched is not None:
                    rows = fetched.rows
                    bad = self._set_aside(engine.epoch + 1, [fetched.bad()])
                    decision = self._decided(sum(rows.values()))
                    ticked = engine.tick(fetched.changes(), offsets, decision, describe)
                    self.placement.learn_driver(sum(rows.values()), read - start, ticked.tick)
                else:
                    ticked, bad = self._on_cluster(engine, arrival, offsets, describe)
                    rows = dict(ticked.arrived)
                    self.placement.cluster.learn(sum(rows.values()), ticked.tick)
            except BaseException:
                self._reopen_if_uncertain(engine)
                raise
            describe("sinks")
            sinks = perf_counter()
            self._delivery.give(engine, ticked.changes)
        done = perf_counter()
        times = {"fetch": read - start, "tick": ticked.tick, "commit": ticked.commit, "sinks": done - sinks}
        self._note(engine, ticked, batch, rows, bad, times | {"total": done - start})
        if engine.epoch % VACUUM_EVERY == 0:
            engine.sweep(self.keep_epochs)

    def _limit(self, engine: Engine, arrival: Arrival, batch: int | None) -> int:
        """How many rows to fetch before the rest is left to the cluster; 0 for all of it."""
        limit = self.placement.limit
        if batch is not None or self.placement.place != "auto":
            return limit
        if arrival.local_bytes() > LARGE:
            return 0
        return min(limit, FIRST) if engine.epoch == 0 else limit

    def _decided(self, rows: int) -> Decision:
        """Rows that are on the driver already are worked on there."""
        if self.placement.place != "auto":
            return Decision("driver", f"{self.placement.place} was asked for")
        return self.placement.fetched(rows)

    def _on_cluster(
        self, engine: Engine, arrival: Arrival, offsets: Mapping[str, Any], describe: Callable[[str], None]
    ) -> tuple[Ticked, int]:
        """A tick by tasks; should two values have one code, the driver does it over: it sees both."""
        bad = 0

        def inspect(found: Sequence[pa.Table]) -> None:
            nonlocal bad
            bad = self._set_aside(engine.epoch + 1, found)

        decision = self.placement.unfetched()
        try:
            frame, whole = arrival.coded(engine), arrival.whole(engine)
            return engine.tick_on_cluster(frame, whole, offsets, decision, describe, inspect), bad
        except CodeCollision as collision:
            log.info("%s: the driver encodes the batch", collision.message)
            fetched = arrival.fetch(None)
            assert fetched is not None, "without a limit all rows are fetched"
            bad = self._set_aside(engine.epoch + 1, [fetched.bad()])
            again = Decision("driver", "two values have one code")
            return engine.tick(fetched.changes(), offsets, again, describe), bad

    def _set_aside(self, epoch: int, found: Sequence[pa.Table]) -> int:
        """Refuse bad rows, or keep them under the epoch's number; how many there were."""
        bad = sum(table.num_rows for table in found)
        if self.bad_rows == "quarantine":
            if bad or (self._quarantine / f"epoch={epoch:010d}").exists():
                quarantine(str(self._quarantine), epoch, pa.concat_tables([BAD.empty_table(), *found]))
        elif bad:
            first = next(table.slice(0, 1).to_pylist()[0] for table in found if table.num_rows)
            many = f"{bad:,} bad row{'s' if bad > 1 else ''}"
            raise BadRows(
                f"source {first['source']} has {many}, the first one {first['raw']}: {first['reason']}",
                hint='nothing was applied; Pipeline(…, bad_rows="quarantine") sets such rows aside',
            )
        return bad

    def _reopen_if_uncertain(self, engine: Engine) -> None:
        """After a failed commit, or one that this process did not take in, only the disk knows how things are."""
        if engine.uncertain:
            engine.close()
            self._opened = None

    def _note(
        self,
        engine: Engine,
        ticked: Ticked,
        batch: int | None,
        rows: Mapping[str, int],
        bad: int,
        times: Mapping[str, float],
    ) -> None:
        del self.progress[:-REMEMBERED]
        where = " then ".join(dict.fromkeys(made.where for made in ticked.decisions))
        self.progress.append(
            Progress(
                epoch=ticked.epoch,
                batch=batch,
                rows_in=rows,
                rows_out={name: len(changes) for name, changes in ticked.changes.items()},
                times=times,
                placement=where,
                reason="; ".join(made.reason for made in ticked.decisions),
                state_bytes=engine.state_bytes,
                trace_rows=engine.trace_rows,
                bad_rows=bad,
            )
        )

    # -- inside

    def _contents(self, source: str) -> Batch:
        """What a source holds, its columns in their own order."""
        return self._engine().contents(source)


def _one_of(what: str, value: Any, allowed: Iterable[str]) -> None:
    choices = tuple(allowed)
    if value not in choices:
        raise PipelineError(f"{what} cannot be {value!r}", hint=f"choose one of {', '.join(choices)}")


def _table(spec: SourceSpec) -> Table:
    """How a source is kept; an order that is no column of it counts within a batch only."""
    return Table(spec.key, spec.row_order) if spec.keyed else Table()
