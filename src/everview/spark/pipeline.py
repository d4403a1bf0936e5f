"""A pipeline: DataFrames in, incremental views in between, sinks out, every epoch exactly once.

An epoch takes in what is new of all sources at once, so all views are of one moment. It is committed to the state
directory together with the position in the sources, before any sink is given anything; a sink gets each epoch under
its number, and again under the same number if a crash left it unclear whether it had it. So whatever fails between
two steps, going on from the state loses nothing and doubles nothing.

Each duty is an object: `PipelineDefinitions` has the frames, views and sinks, `PipelineState` opens the state directory
and turns it to other definitions, `PipelineEpochs` runs one epoch in five steps, `Streaming` lets Spark's micro-batches
be epochs, and `Delivery` gives them to the sinks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

from everview.blocks import Closing
from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import DatalogError, EdnError, PipelineError
from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.plans import in_one_dialect
from everview.frontends.edn.plans import named_plan as edn_plan
from everview.frontends.fluent import Query
from everview.frontends.graphspec import graph
from everview.frontends.rules.faults import within_depth
from everview.plan.timed import CLOCK
from everview.process import ProcessLock
from everview.runtimes.embedded.history import epoch_at, kept_epoch
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Place, Placement
from everview.spark.change import PlannedChange
from everview.spark.claims import Claims, require_apart
from everview.spark.dataframes import standing_frame
from everview.spark.delivery import FEW, Delivery, read_table
from everview.spark.delivery import read as read_view
from everview.spark.epochs import TOKEN, PipelineEpochs
from everview.spark.explain import explain
from everview.spark.failures import in_our_words
from everview.spark.fluent import AtSparkPipeline, put_together
from everview.spark.frames import frame_of
from everview.spark.lateness import Lateness, bind_watermark
from everview.spark.metrics import metrics
from everview.spark.paths import PathOptions, framed
from everview.spark.places import CheckpointPlace
from everview.spark.progress import Progress, ProgressLog
from everview.spark.redefining import PipelineDefinitions
from everview.spark.rules import define_rules
from everview.spark.sinks import sink_of
from everview.spark.state import EngineOptions, PipelineState
from everview.spark.streaming import Streaming
from everview.spark.verifying import verified
from everview.spark.zones import require_zone, zone_of_session
from everview.types import Schema, unknown_name
from everview.verify import Verdict
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BAD_ROWS = ("fail", "quarantine")


class Pipeline(Closing):
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
        bad_rows: str | None = None,
        keep_epochs: int = 1000,
        check_functions: bool = False,
        loops: LoopBounds | None = None,
    ) -> None:
        """A pipeline whose state is in a directory that every machine of the cluster sees, or in an object store.

        ``checkpoint`` is a path, or a URL ``s3://…``, ``gs://…``, ``abfss://…`` or ``hdfs://…``.
        With a ``circuit``, `source` binds its sources to frames; without one, `source` makes them.
        ``place`` forces where ticks run; ``bad_rows`` says whether a row that cannot be taken fails its batch or is
        set aside; by default it fails it, unless it is text in files that Spark could not read. Of older epochs,
        ``keep_epochs`` stay readable. ``shards`` is fixed when the state is made.
        ``loops`` bounds what a recursion may do in one epoch; see `everview.connect`. Views mean by text without a
        time zone, by days and by hours what they mean in the session: its ``spark.sql.session.timeZone`` is kept.
        """
        _one_of("place", place, get_args(Place))
        if bad_rows is not None:
            _one_of("bad_rows", bad_rows, BAD_ROWS)
        for what, given in (("keep_epochs", keep_epochs), ("shards", shards), ("partitions", partitions)):
            if given is not None and given < 1:
                raise PipelineError(f"{what} cannot be {given}", hint="give 1 or more")
        root = CheckpointPlace.of(os.fspath(checkpoint))
        self.spark = spark
        self.path = root.path
        self.circuit = Circuit() if circuit is None else circuit
        self._keep_epochs = keep_epochs
        self._zone = zone_of_session(spark)
        self._definitions = PipelineDefinitions(self.circuit, given=circuit is not None, zone=self._zone)
        self._sources, self._queries = self._definitions.sources, self._definitions.queries
        self._sinks = self._definitions.sinks
        self._claims = Claims(spark, root.notes)
        self._delivery = Delivery(spark, root.path, root.notes, self._sinks, self._claims)
        self._lock = ProcessLock("the pipeline")  # one epoch at a time
        options = EngineOptions(Placement(place), shards, partitions, check_functions, loops, self._zone)
        self._state = PipelineState(spark, root, self._definitions, self._delivery, options)
        self._epochs = PipelineEpochs(
            spark,
            self._sources,
            self._state,
            self._delivery,
            placement=options.placement,
            bad_rows=bad_rows,
            keep_epochs=keep_epochs,
        )
        self._streaming = Streaming(self._sources, self._state, self._epochs, self._lock)

    # -- defining

    @in_our_words()
    def source(
        self,
        name: str,
        frame: DataFrame | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,
        stream: bool | None = None,
        columns: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        key: str | Sequence[str] | None = None,
        changes: str = "append",
        op: str | None = None,
        weight: str = "_weight",
        order: str | None = None,
        schema: Schema | str | None = None,
        keep: bool = True,
        lateness: Lateness | None = None,
    ) -> Stream:
        """Take a source from a batch or streaming frame, or from files, whose rows are changes of one of these styles.

        - ``append``: every row is new; ``weights``: a row counts as often as its weight says, which may be negative;
        - ``upsert``: a row takes the place of the one with its key; ``snapshot``: the rows are all there are;
        - ``cdc``: the column ``op`` says what was done; Debezium's envelope and Delta's change feed are recognised.

        ``schema`` names the columns to take, and which are NOT NULL: a frame read from files says that of none, and a
        number that may be NULL takes twice the room. ``order`` is the column that says which of several changes of a
        key is the last; without it, the last to arrive. ``keep=False`` saves the space of the source's contents, which
        `verify` needs.

        ``lateness``, as in ``("ts", "5 minutes")``, promises how much a row may be before the latest one of earlier
        epochs: traces then drop what can never be read again, and rows that come later are set aside, see
        `quarantined`.

        With a ``path`` and a ``format`` in place of a frame, files are followed: each is read once, at the refresh that
        finds it first. A snapshot, or what is no ``stream``, is read as it is at every refresh. ``schema`` is then that
        of the files, of which ``columns`` are taken; ``options`` go to Spark's reader. Text that is not JSON or CSV is
        set aside, see `quarantined`. With ``format="kafka"`` and no path, topics are followed; docs/how-to/kafka.md.
        """
        where = PathOptions(path, format, stream, columns, options)
        style: dict[str, Any] = {"key": key, "changes": changes, "op": op, "weight": weight, "order": order}
        frame, files = framed(self.spark, name, frame, where, schema, style)
        style = style if files is None else files.style(style)
        with self._defining():
            if frame.isStreaming and self._streaming.active:
                raise PipelineError(
                    f"stream {name} cannot be added while the others are followed",
                    hint="stop() first, add it, and start() again: the others go on where they were",
                )
            made = self._sources.bind(name, frame, schema=schema, keep=keep, files=files, **style)
            if lateness is not None:
                bind_watermark(self._sources, self.spark, name, lateness)
            return made

    def graph(self, spec: str | Mapping[str, Any], *, providers: Mapping[str, Any] | None = None) -> None:
        """Define views by a graph of relational operators, a GraphSpec: each of its outputs is a view.

        The graph's relations are sources of the same names, of which it sees every different row once. A pointwise
        relation has a provider with ``eval_many``, which must be pure; an enumerable relation is a source.
        """
        with self._defining():
            outputs = graph(self.circuit, spec, providers)
            for name in outputs:
                if name in self.circuit.sinks:
                    raise PipelineError(
                        f"there is a view {name} already", hint="outputs and views have different names"
                    )
            for name, stream in outputs.items():
                stream.sink(name)

    def sql(self, text: str, params: Any = None, *, dialect: str = "spark") -> None:
        """Define views in SQL over the sources and over each other: ``CREATE MATERIALIZED VIEW name AS SELECT …``.

        A plain ``CREATE VIEW`` is a name for its query, and is not kept. ``CREATE OR REPLACE`` and ``DROP VIEW`` change
        what there is, also between epochs of a pipeline at work; `plan_change` says beforehand what that takes.
        ``dialect`` is that of the text. ``params`` has the values of its parameters, which become constants: a list for
        ``?``, a dict for ``:name``.
        """
        with self._defining():
            self._definitions.sql(text, dialect, params)

    @in_our_words()
    def frame(self, name: str) -> DataFrame:
        """A DataFrame that stands for a source or a view in definitions: it has the columns, and no rows.

        What is made of such frames becomes a view by `define`. An action on it raises; rows are read by `view` and
        `table`.
        """
        with self._lock:
            return standing_frame(self.spark, name, self._queries.readable().scan(self._found(name)).schema)

    def _found(self, name: str) -> str:
        return self._queries.readable().find(name)

    @in_our_words()
    def define(self, name: str, frame: DataFrame, *, replace: bool = False) -> None:
        """Define a view by a DataFrame over frames of `frame`, with Spark's own methods and functions.

        The DataFrame is read as Spark has analysed it: types, casts and the session's time zone are Spark's. What
        cannot be read raises, with the expression, the line that wrote it, and what to write instead. With ``replace``
        the view takes the place of the one of its name.
        """
        with self._defining():
            self._definitions.frame(name, frame, replace=replace)

    def materialized_view(self, function: Any = None, *, name: str | None = None, replace: bool = False) -> Any:
        """Define a view by a function that returns a DataFrame; the view has the function's name, or another.

        ```python
        @p.materialized_view
        def top_senders():
            return p.frame("exposure").orderBy(F.desc("total")).limit(10)
        ```
        """

        def decorated(made: Callable[[], DataFrame]) -> Callable[[], DataFrame]:
            self.define(made.__name__ if name is None else name, made(), replace=replace)
            return made

        return decorated if function is None else decorated(function)

    def drop(self, view: str, *, cascade: bool = False) -> None:
        """Drop a view and its sinks; with ``cascade``, also the views that read it."""
        with self._defining():
            self._definitions.drop(view, cascade=cascade)

    def rename(self, view: str, new: str) -> None:
        """Give a view another name: its rows stay, and its sinks go on."""
        with self._defining():
            self._definitions.rename(view, new)

    def datalog(self, text: str, *, dialect: str = "souffle") -> None:
        """Define views by rules over the sources and over views: every relation that the rules define is a view.

        A relation has all its rules in one text. A relation that is declared and has no rules is a source of that name.
        """
        with self._defining(), within_depth(DatalogError):
            define_rules(self._queries, text, dialect)

    def edn(self, text: str, name: str, *, args: Iterable[Any] = (), dialect: str = "datomic") -> None:
        """Define a view by an EDN query.

        ``:track/name`` is a column of a source with a key, ``:to`` a source of two columns. ``args`` has a value for
        each of :in but ``$``. In the ``dialect`` symbols, variables have no question mark.
        """
        with self._defining(), within_depth(EdnError):
            text = in_one_dialect(text, dialect)
            self._queries.define([edn_plan(name, text, as_arguments(args), self._queries.readable(self._sources.keys))])

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a source or a view, to be built step by step; ``materialize(name)`` makes views of it.

        Related rows are a view of their own: ``recent.artist`` beneath ``recent``; see `trees`.
        """
        return AtSparkPipeline(self._queries, self._sources.keys, self._defining).query(relation, alias)

    def sink(
        self,
        view: str,
        *,
        format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        table: str | None = None,
        topic: str | None = None,
        callback: Callable[[Batch, int], None] | None = None,
        mode: str = "changes",
        begin: str | None = None,
        key: str | Sequence[str] | None = None,
        exactly_once: bool = True,
        **options: Any,
    ) -> None:
        """Deliver a view after every epoch, its changes or a snapshot of it: to a path, a table, a topic or a function.

        A sink that is added to a pipeline that has run gets the changes from then on; with ``begin="snapshot"``, first
        all rows that the view has, so that the sum of its changes is the view.

        A topic and a Delta table take ``mode="upsert"``, by a ``key`` of the view's rows: the table is the view then,
        and so are the last records of a topic. They begin with a snapshot, unless told otherwise.
        ``exactly_once=False`` lets Spark send records to a topic without transactions.
        """
        where: dict[str, Any] = {"format": format, "path": path, "table": table, "topic": topic, "callback": callback}
        how: dict[str, Any] = {"mode": mode, "begin": begin, "key": key, "exactly_once": exactly_once}
        made = sink_of(view, **where, **how, options=options)
        with self._defining():
            require_apart(made, self._sinks, self.path)
            self._sinks.append(made)

    @contextmanager
    def _defining(self) -> Generator[None]:
        """A block that changes definitions: all of it counts, at once if the pipeline is at work, or nothing."""
        with self._lock:
            require_zone(self.spark, self._zone)
            back = self._definitions.mark()
            try:
                yield
                self._sources.bind_clock(self.spark)
                self._state.redefined()
            except BaseException:
                back()
                raise

    @in_our_words()
    def plan_change(self, text: str | None = None, *, dialect: str = "spark") -> PlannedChange:
        """What going on from the state with these definitions keeps, computes and drops, and how many rows that reads.

        With a ``text`` of SQL, what that would change. Nothing is changed, and no row is read.
        """
        with self._lock:
            back = self._definitions.mark()
            try:
                if text is not None:
                    self._definitions.sql(text, dialect)
                    self._sources.bind_clock(self.spark)
                return self._state.planned()
            finally:
                back()

    # -- running

    @in_our_words()
    def start(self, trigger: Mapping[str, Any] | None = None, *, name: str | None = None) -> StreamingQuery:
        """Follow the streaming sources: every micro-batch is one epoch. What batch frames hold is loaded first."""
        with self._lock:
            return self._streaming.start(trigger, name, self._require_sinks)

    def _require_sinks(self, engine: Engine) -> None:
        self._claims.require(self._sinks, engine.epoch)

    @in_our_words()
    def refresh(self, *, token: str | None = None, **frames: DataFrame) -> Progress | None:
        """Take in what is new, and return when the views have it.

        Streams are read as far as they go. A batch frame is read once; a frame of upserts or a snapshot, every time,
        until ``refresh(transfer=frame)`` gives more changes of its source. Under the ``token`` of the last refresh,
        frames are not read again.
        """
        with self._lock:
            engine = self._state.engine()
            self._require_sinks(engine)
            self._delivery.again(engine)
            given = self._sources.checked(frames)
            if token is None or engine.offsets.get(TOKEN) != token:
                self._epochs.load(engine, given, token, again=True)
        if self._sources.has_streams and not self._streaming.active:
            self.start(trigger={"availableNow": True}).awaitTermination()
        return self.progress[-1] if self.progress else None

    @in_our_words()
    def advance(self, now: datetime) -> Progress | None:
        """Tell the clock of views a time, as one epoch; from then on it moves only when it is told.

        Until then it shows the present at every `refresh`, and at every trigger of a stream. A moment without a time
        zone is in UTC.
        """
        if CLOCK not in self._sources.by_name:
            raise PipelineError("no view asks the time", hint="define one with a condition on now() first")
        zoned = now.replace(tzinfo=UTC) if now.tzinfo is None else now
        micros = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        with self._lock:
            engine = self._state.engine()
            self._require_sinks(engine)
            told = {CLOCK: self.spark.sql(f"SELECT timestamp_micros({micros}) AS now")}
            self._epochs.load(engine, told, None, again=False)
        return self.progress[-1] if self.progress else None

    @in_our_words()
    def stop(self, *, drain: bool = False) -> None:
        """End the streaming query after the epoch under way; with ``drain``, after all that has arrived."""
        self._streaming.stop(drain=drain)

    def close(self) -> None:
        """Stop, and release the state directory for other processes."""
        self.stop()
        with self._lock:
            self._state.close()
            self._delivery.close()

    # -- reading

    @property
    def progress(self) -> ProgressLog:
        """The progress of every epoch of this process, in order."""
        return self._epochs.progress

    def metrics(self) -> str:
        """The progress as text in Prometheus' format; see `everview.spark.metrics`. Waits for no epoch under way."""
        return metrics(self.progress, delivered=self._delivery.last)

    @property
    def epoch(self) -> int:
        """The last committed epoch; 0 before the first."""
        return self._state.engine().epoch

    @property
    def token(self) -> str | None:
        """The token of the last refresh that was given one."""
        return self._state.engine().offsets.get(TOKEN)

    @in_our_words()
    def view(self, name: str, *, version: int | None = None, timestamp: datetime | None = None) -> DataFrame:
        """The rows of a view now, each as often as its weight; or at an epoch or a time of which the state is kept.

        A ``timestamp`` without a time zone is in UTC.
        """
        if version is not None and timestamp is not None:
            raise PipelineError("an epoch and a time are two moments", hint="give version or timestamp")
        if timestamp is not None:
            moment = timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp
            version = epoch_at(self.path, moment)
        with self._lock:
            if version is not None and version != self.epoch:
                return read_view(self.spark, self.path, name, epoch=kept_epoch(self.path, version))
            engine = self._state.engine()
            view = engine.run.view(name)
            if engine.rows_of(name) <= FEW:
                return frame_of(self.spark, view.to_arrow())
            return read_view(self.spark, self.path, name, epoch=self.epoch)

    @in_our_words()
    def trees(self, name: str) -> Any:
        """The answer of a fluent query now: its rows and those beneath, fetched and put together."""
        with self._lock:
            if name not in self._queries.fluent:
                raise unknown_name("fluent query", name, self._queries.fluent)
            part, run = self._queries.fluent[name], self._state.engine().run
            return put_together(name, part, {view: run.view(view).to_arrow() for view, _ in part.walk(name)})

    @in_our_words()
    def table(self, name: str) -> DataFrame:
        """The contents of a source now, if they are kept."""
        with self._lock:
            self._sources.require(name)
            return read_table(self.spark, self.path, self._state.engine(), name)

    @in_our_words()
    def changes(self, name: str, since: int | None = None, until: int | None = None) -> DataFrame:
        """The changes of a view between two epochs, by default in the last one; ``_weight`` says how often."""
        with self._lock:
            now = self.epoch
            if name not in self._state.engine().run.views:
                raise unknown_name("view", name, self._state.engine().run.views)
            until = now if until is None else until
            return read_view(
                self.spark, self.path, name, since=max(until - 1, 0) if since is None else since, until=until
            )

    @in_our_words()
    def quarantined(self) -> DataFrame:
        """The rows that were set aside: ``source``, ``reason``, ``raw`` and ``epoch``."""
        return self._state.place.read_aside(self.spark)

    @in_our_words()
    def explain(self) -> str:
        """Sources, views, sinks and circuit, the rows that traces hold, and where the last epochs ran and why."""
        with self._lock:
            return explain(
                self._state.engine(), self._definitions.circuit, self._sources.specs, self._sinks, self.progress
            )

    @in_our_words()
    def verify(self, *views: str) -> Verdict:
        """Compute views from scratch from the contents of the sources, and compare.

        Views in SQL are computed by plain Spark SQL, as far as that can express them; the others by the oracle.
        """
        with self._lock:
            require_zone(self.spark, self._zone)
            engine = self._state.engine()
            return verified(self.spark, engine, self._definitions, views, self.view, self._tables)

    def _tables(self) -> dict[str, DataFrame]:
        return {name: self.table(name) for name in self._sources.by_name}

    @in_our_words()
    def reshard(self, shards: int) -> None:
        """Split each shard in place, by tasks if the state is large; `shards` is a multiple of the present number.

        That is an epoch of its own, in which no view changes. From then on the state says how many shards there are,
        whatever the pipeline is made with.
        """
        if isinstance(shards, bool) or not isinstance(shards, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PipelineError(f"a number of shards is a whole number, not {shards!r}", hint="p.reshard(64)")
        with self._lock:
            self._state.reshard(shards)

    @in_our_words()
    def vacuum(self, keep_epochs: int | None = None) -> None:
        """Remove what only older epochs need, and values that no row refers to any more."""
        with self._lock:
            engine = self._state.engine()
            self._delivery.again(engine)
            engine.vacuum(self._keep_epochs if keep_epochs is None else keep_epochs)


def _one_of(what: str, value: Any, allowed: Iterable[str]) -> None:
    choices = tuple(allowed)
    if value not in choices:
        raise PipelineError(f"{what} cannot be {value!r}", hint=f"choose one of {', '.join(choices)}")
