"""The views of a pipeline that texts define: bound to its sources and to each other.

Views written in SQL can be computed again by plain Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Sink
from everview.circuit.stream import Stream
from everview.errors import PipelineError
from everview.frontends.dialects import LANGUAGES
from everview.frontends.fluent import QueryPart
from everview.frontends.sql import CreateView, Drop, bind
from everview.frontends.sql.parameters import ParameterValues
from everview.frontends.sql.spark import spark_query
from everview.lowering.closing import on_close
from everview.lowering.lower import Lowering
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan
from everview.plan.node import Plan, walk
from everview.plan.nodes import Scan
from everview.plan.plain_groups import plain_groups
from everview.plan.timed import CLOCK, CLOCK_SCHEMA, is_watermark, kept_in_time
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.runtimes.spark.stored import BY_EPOCHS, BY_FRAME, ON_CLOSE, RENAMED, WITH_VALUES, StoredDefinition
from everview.scalars.expressions import Exists, InQuery, Scalar
from everview.scalars.session_zone import UTC
from everview.spark.dataframes import read_frame, substituted
from everview.spark.our_own import expressions_of, is_ours
from everview.spark.recomputing import RecomputedView
from everview.spark.written import ReadTables, WrittenView
from everview.types import Schema, unknown_name
from everview.verify import Compared, verify_plans
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Queries:
    """The views that were defined by texts, in order."""

    def __init__(self, circuit: Circuit, zone: str = UTC) -> None:
        """``zone`` is the time zone in which texts are read."""
        self._circuit, self._zone = circuit, zone
        self._views: dict[str, WrittenView] = {}
        self.fluent: dict[str, QueryPart] = {}  # how the rows of fluent queries are put together
        self._streams: dict[str, Stream] = {}
        self._delayed: dict[str, Plan] = {}  # what was derived an epoch ago
        self._lowering = Lowering(circuit, self._streams)  # one for all, so that what views share is there once

    def __contains__(self, name: str) -> bool:
        return name in self._views

    def define(self, views: Sequence[NamedPlan], source: tuple[str, str] | None = None) -> None:
        """Add the views of a front end; ``source`` is the text that defines them, with its dialect."""
        self.check(views)
        for view in views:
            self.add(view, source=source)

    def define_text(self, text: str, language: str) -> None:
        """Add the views of a text of a language whose texts define views."""
        self.define(LANGUAGES[language](text, self.readable()), (text, language))

    def define_sql(self, text: str, dialect: str, params: Any = None) -> tuple[str, ...]:
        """Add, replace or drop the views of a text, and return the names of those that are gone.

        A materialized one is a view of the pipeline, a plain one a name for its query.
        """
        gone: list[str] = []
        for statement in bind(text, self.readable(), dialect, ParameterValues.of(params)):
            match statement:
                case CreateView():
                    self._create(statement)
                case Drop(kind="view"):
                    for name in statement.names:
                        if name in self or name in self._circuit.sinks or not statement.if_exists:
                            gone += self.drop(name, cascade=statement.cascade)
                case _:
                    raise PipelineError(
                        f"a pipeline takes views, not {statement.text.split()[0].upper()}",
                        hint="write CREATE MATERIALIZED VIEW name AS SELECT …; sources come from frames",
                    )
        return tuple(name for name in gone if name not in self and name not in self._circuit.sinks)

    def define_frame(self, name: str, frame: DataFrame, keys: Mapping[str, tuple[str, ...]], *, replace: bool) -> None:
        """Add the view that a DataFrame means, or put it in place of the one of its name."""
        tables = self.readable(keys)
        read = read_frame(frame, tables)
        plan = read.plan if not any(map(is_watermark, self._circuit.sources)) else plain_groups(read.plan)
        view = NamedPlan(name, plan, optimize(plan, None, dict(keys)), tuple(dict.fromkeys(tables.read)))
        self._put(WrittenView(view, None, None, frame=frame, arbitrary=read.arbitrary), replacing=replace)

    def define_recomputed(self, view: RecomputedView, *, replace: bool) -> None:
        """Add or replace a view recomputed by Spark; its rows arrive through a source of its own."""
        self.relations()  # the source is among the streams
        plan = Scan(view.source, view.schema)
        named = NamedPlan(view.name, plan, plan, view.reads)
        made = WrittenView(named, None, None, frame=view.frame, arbitrary=view.arbitrary, recomputed=view)
        self._put(made, replacing=replace)

    def _put(self, made: WrittenView, *, replacing: bool) -> None:
        if replacing and made.named.name in self:
            self._replace(made)
            return
        self.check([made.named])
        self._add(made)

    @property
    def written(self) -> Iterator[StoredDefinition]:
        """The views as they were written; without a text where none says all."""
        for name, view in self._views.items():
            yield StoredDefinition(name, *self._said(name, view))

    def _said(self, name: str, view: WrittenView) -> tuple[str, str]:
        """The text of a view and its dialect; or no text and the reason."""
        statement = view.statement
        if view.renamed:
            return "", RENAMED
        if statement is not None and statement.parameters:
            return "", WITH_VALUES
        if statement is not None:
            return ("", ON_CLOSE) if statement.on_close else (statement.text, statement.dialect)
        if view.frame is not None:
            return "", BY_FRAME
        if self.timed(name):
            return "", BY_EPOCHS
        return view.source or ("", RENAMED)

    @property
    def recomputed_views(self) -> list[RecomputedView]:
        """The views that Spark computes in full after every epoch."""
        return [view.recomputed for view in self._views.values() if view.recomputed is not None]

    def _create(self, statement: CreateView) -> None:
        if statement.if_not_exists and statement.name in self:
            return
        view, text = self._bound(statement)
        if statement.or_replace and statement.name in self:
            self._replace(WrittenView(view, text, None, statement))
            return
        self.check([view])
        self.add(view, text, statement)

    def _bound(self, written: CreateView) -> tuple[NamedPlan, str | None]:
        """The plan of one CREATE VIEW statement over the present relations, and its query in Spark's SQL."""
        tables, given = self.readable(), ParameterValues.by_names(written.given)
        (statement,) = bind(written.text, tables, written.dialect, given)
        assert isinstance(statement, CreateView), "the text of a view defines one"
        statement = replace(statement, name=written.name)  # which may be another one since
        if not any(map(is_watermark, self._circuit.sources)) and not statement.on_close:
            return statement.named(dict.fromkeys(tables.read)), spark_query(statement)
        plain = replace(statement, plan=plain_groups(statement.plan))
        named = plain.named(dict.fromkeys(tables.read))
        if not statement.on_close:
            return named, spark_query(statement)
        return on_close(named, self._lowering.of(named.optimized)), None

    # -- changing views

    def readers(self, name: str) -> list[str]:
        """The views that read a view, directly or by way of others, in the order of their definition."""
        reached = {name}
        for other, view in self._views.items():
            scanned = {node.relation for node in self._whole(view.plan) if isinstance(node, Scan)}
            if other != name and not reached.isdisjoint({*view.named.reads, *scanned}):
                reached.add(other)
        return [other for other in self._views if other in reached and other != name]

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a view, with ``cascade`` also its readers; returns the dropped names."""
        if name not in self and name not in self._circuit.sinks:
            raise unknown_name("view", name, [*self._views, *self._circuit.sinks])
        readers = self.readers(name)
        if readers and not cascade:
            raise PipelineError(
                f"view {name} cannot be dropped: {', '.join(readers)} read{'s' if len(readers) == 1 else ''} it",
                hint="drop the readers first, or drop it with CASCADE",
            )
        gone = [name, *readers]
        self._forget(gone)
        return gone

    def rename(self, name: str, new: str) -> None:
        """Give a view another name; views that read it by its name must not be there."""
        node = self._circuit.sinks.get(name)
        if node is None:
            raise unknown_name("view", name, self._circuit.sinks)
        readers = self.readers(name)
        if readers:
            raise PipelineError(
                f"view {name} cannot be renamed: {', '.join(readers)} read{'s' if len(readers) == 1 else ''} it",
                hint="drop the readers first, and define them again by the new name",
            )
        self.require_free(new)
        self._require_timeless([name])
        view, sink = self._views.get(name), self._circuit[node]
        assert isinstance(sink, Sink), "a name of a sink is a sink's"
        self._forget([name])
        self._circuit.sink_again(replace(sink, name=new), self._circuit.stream(sink.input))
        if view is not None:
            again = None if view.recomputed is None else replace(view.recomputed, name=new)
            named = replace(view.named, name=new)
            statement = None if view.statement is None else replace(view.statement, name=new)
            said: dict[str, Any] = {"statement": statement, "source": None, "recomputed": again, "renamed": True}
            self._views[new] = replace(view, named=named, **said)
            if view.stream is not None:
                self._streams[new] = view.stream

    def _replace(self, made: WrittenView) -> None:
        """Define a view in place of the one of its name; the views that read it are bound again."""
        view = made.named
        readers = self.readers(view.name)
        through = [name for name in view.reads if name == view.name or name in readers]
        if through:
            raise PipelineError(
                f"view {view.name} would read itself, by way of {through[0]}", hint="let it read other views"
            )
        old = self._views[view.name]
        before = {name: self._views[name] for name in readers}
        same = old.plan.schema == view.schema and old.named.materialized and view.materialized
        stuck = [name for name, reader in before.items() if not same and reader.statement is None]
        told = "have other columns"
        if same and old.named.is_set and not view.is_set:
            told = "have rows twice"
            stuck = [name for name, reader in before.items() if reader.by_sets]
        if stuck:
            raise PipelineError(
                f"view {view.name} cannot {told}: {stuck[0]} reads it, and was not written in SQL",
                hint=f"drop {stuck[0]} first, and define it again afterwards",
            )
        fluent = {name: self.fluent[name] for name in readers if name in self.fluent}
        self._forget([view.name, *readers])
        self.check([view])
        self._add(made)
        self.put_back(before.values())
        self.fluent |= fluent

    def take_out(self, source: str) -> list[WrittenView]:
        """Let go of the views that read a source, and return them; all must have been written in SQL."""
        readers = {name: self._views[name] for name in self.readers(source)}
        for name, reader in readers.items():
            if reader.statement is None:
                raise not_in_sql(source, name)
        self._forget([*readers])
        return [*readers.values()]

    def require_keyless(self, source: str) -> None:
        """Refuse another key of a source if readers were planned by the one it has."""
        for name in self.readers(source):
            if self._views[name].by_keys:
                raise PipelineError(
                    f"source {source} cannot have another key: {name} reads it, and counts on the key",
                    hint=f"drop {name} first, and define it again afterwards; or change both over a restart",
                )

    def put_back(self, views: Iterable[WrittenView]) -> None:
        """Define views again after they were let go; views in SQL are bound anew."""
        for view in views:
            again = view
            if view.statement is not None:
                named, query = self._bound(view.statement)
                again = WrittenView(named, query, None, view.statement, renamed=view.renamed)
            self.check([again.named])
            self._add(again)

    def _forget(self, names: Sequence[str]) -> None:
        """Let go of views and of the streams that were built for them."""
        self._require_timeless(names)
        for name in names:
            self._views.pop(name, None)
            self._streams.pop(name, None)
            self.fluent.pop(name, None)
            if name in self._circuit.sinks:
                self._circuit.drop_sink(name)
        self._lowering = Lowering(self._circuit, self._streams)

    def _require_timeless(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._delayed or self.timed(name):
                raise PipelineError(
                    f"view {name} depends on the epoch before, and cannot be changed at work",
                    hint="change its rules in the program, and start that again on the same state",
                )

    def mark(self) -> Callable[[], None]:
        """A function that makes everything as it is now."""
        views, fluent, streams, delayed = dict(self._views), dict(self.fluent), dict(self._streams), dict(self._delayed)

        def back() -> None:
            self._views, self.fluent = dict(views), dict(fluent)
            self._streams, self._delayed = dict(streams), dict(delayed)
            self._lowering = Lowering(self._circuit, self._streams)

        return back

    # -- what a front end may read

    def readable(
        self, keys: Mapping[str, tuple[str, ...]] | None = None, carried: Mapping[str, Schema] | None = None
    ) -> ReadTables:
        """The sources and views of the pipeline.

        ``keys`` are the keys of sources; ``carried`` are relations, not there yet, that hold what was derived an epoch
        ago.
        """
        carried = carried or {}
        sets = [name for name, view in self._views.items() if view.named.is_set]
        known = ReadTables(self.relations() | dict(carried), keys=keys, sets=[*sets, *carried], what="source or view")
        known.zone = self._zone
        return known

    def relations(self) -> dict[str, Schema | Plan]:
        """The relations that a text may read: columns of sources and of kept views, and plans of plain views."""
        sources = {name: self._circuit.stream(node) for name, node in self._circuit.sources.items()}
        self._streams |= sources
        views = {name: v.plan if v.stream is None else v.plan.schema for name, v in self._views.items()}
        return {name: stream.schema for name, stream in sources.items()} | views

    # -- views

    def check(self, views: Sequence[NamedPlan]) -> None:
        """Refuse views whose names are not free, or that fail whatever the rows are."""
        for view in views:
            self.require_free(view.name)
        rehearse_plans([view.optimized for view in views if view.materialized])

    def require_free(self, name: str) -> None:
        """Refuse a name that a view or a source has."""
        if name in self._circuit.sinks or name in self._views or name in self._circuit.sources:
            raise PipelineError(f"there is a view or source {name} already", hint="give it another name")

    def add(
        self,
        view: NamedPlan,
        text: str | None = None,
        statement: CreateView | None = None,
        source: tuple[str, str] | None = None,
    ) -> None:
        """Add a view that was checked; ``text`` is its query in Spark's SQL, if it has one.

        ``statement`` is how it was written in SQL, ``source`` the text and the dialect of another language.
        """
        self._add(WrittenView(view, text, None, statement, source=source))

    def _add(self, written: WrittenView) -> None:
        view = written.named
        stream, name, plan = None, view.name, view.plan
        if view.materialized:
            optimized = kept_in_time(name, view.optimized)
            if optimized is not view.optimized and CLOCK not in self._streams:
                self._streams[CLOCK] = self._circuit.source(CLOCK, CLOCK_SCHEMA)
            stream = self._streams[name] = self._lowering.of(optimized).under(plan.schema)
            stream.sink(name)
        self._views[name] = replace(written, stream=stream)

    def plan_of(self, name: str) -> Plan | None:
        """The plan of a view; None for views built of streams or with rows of the epoch before."""
        view = self._views.get(name)
        if view is None:
            return None
        return view.named.optimized if view.stream is None else kept_in_time(name, view.named.optimized)

    # -- what the epoch before left

    def delayed(self, name: str, schema: Schema) -> Callable[[str], None]:
        """Add a relation with the contents of a view one epoch ago, and return a function that sets the view."""
        stream, connect = self._circuit.feedback(schema)
        self._streams[name], self._delayed[name] = stream, Scan(name, schema)
        stream.sink(name)
        return lambda view: connect(self._streams[view])

    def timed(self, name: str) -> bool:
        """Whether a view depends on the epoch before."""
        plan = self._delayed[name] if name in self._delayed else self._views[name].plan if name in self else None
        read = () if plan is None else (node.relation for node in self._whole(plan) if isinstance(node, Scan))
        return not self._delayed.keys().isdisjoint(read)

    def verified(self, relations: Mapping[str, Batch], views: Mapping[str, Batch]) -> Mapping[str, Compared]:
        """Verify views that depend on the epoch before: compute their plans over the sources and that epoch."""
        kept = {name: view.plan for name, view in self._views.items() if view.stream is not None}
        return verify_plans({**self._delayed, **kept}, relations, views).views

    @property
    def carried(self) -> tuple[str, ...]:
        """The relations that hold what was derived an epoch ago."""
        return tuple(self._delayed)

    # -- by plain Spark

    def asks_spark(self, name: str) -> bool:
        """Whether Spark can compute a view: no recursion over sets, no as-of join, no function of ours.

        The view and all views that it reads must have been written in SQL or as DataFrames that have one answer, and
        none asks the time, which is the clock's and not that of the asking.
        """
        view = self._views.get(name)
        if view is None or not view.by_spark:
            return False
        known = view.frame is not None  # a DataFrame calls functions that Spark has
        for node in self._own(view.plan):
            if is_ours(node, known):
                return False
            if isinstance(node, Scan) and node.relation in self._views and not self.asks_spark(node.relation):
                return False
        return True

    def _own(self, plan: Plan) -> Iterator[Plan]:
        """The nodes of a plan, and of the queries in its expressions."""
        for node in walk(plan):
            yield node
            for part in expressions_of(node):
                if isinstance(part, Exists | InQuery | Scalar):
                    yield from self._own(part.plan)

    def _whole(self, plan: Plan) -> Iterator[Plan]:
        """The nodes of a plan, and of the views that it reads."""
        for node in walk(plan):
            yield node
            for part in expressions_of(node):
                if isinstance(part, Exists | InQuery | Scalar):
                    yield from self._whole(part.plan)
            if isinstance(node, Scan) and node.relation in self._views:
                yield from self._whole(self._views[node.relation].plan)

    def recomputed(self, spark: SparkSession, sources: Mapping[str, DataFrame], view: str) -> DataFrame:
        """The rows of a view computed by Spark, from the contents of sources and of views Spark cannot compute."""
        if view in sources:
            return sources[view]
        written = self._views[view]
        if written.frame is not None:
            return substituted(written.frame, lambda name: self.recomputed(spark, sources, name))
        read = self._read_by(view)
        frames: dict[str, Any] = {}
        given: list[str] = []
        for name in [*sources, *(name for name in self._views if name in read and name != view)]:
            text = self._views[name].text if name in self._views else None
            mark = f"source{len(frames)}"
            if text is None:
                frames[mark] = self.recomputed(spark, sources, name)
            query = f"SELECT * FROM {{{mark}}}" if text is None else _escaped(text)
            given.append(f"{_quoted(name)} AS ({query})")
        return spark.sql(f"WITH {', '.join(given)} SELECT * FROM ({_escaped(written.text or '')})", **frames)

    def _read_by(self, view: str) -> set[str]:
        """The relations that a view written in SQL reads, also by way of others that are."""
        read, waiting = set[str](), [view]
        while waiting:
            written = self._views.get(waiting.pop())
            if written is not None and written.frame is None:
                new = {*written.named.reads} - read
                read |= new
                waiting += new
        return read


def not_in_sql(source: str, view: str) -> PipelineError:
    """The error of a source that is to have other columns than a view was made for."""
    return PipelineError(
        f"source {source} cannot have other columns: {view} reads it, and was not written in SQL",
        hint=f"drop {view} first, and define it again afterwards; or change both in the program, and start that again",
    )


def _quoted(name: str) -> str:
    return _escaped("`" + name.replace("`", "``") + "`")


def _escaped(text: str) -> str:
    """A query text escaped so that Spark sees no placeholders for frames in it."""
    return text.replace("{", "{{").replace("}", "}}")
