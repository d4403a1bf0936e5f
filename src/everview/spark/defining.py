"""How a pipeline is defined: its sources, views and sinks, in any of the languages, before the first epoch or later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everview.circuit.stream import Stream
from everview.errors import DatalogError, EdnError, PipelineError
from everview.frontends.dialects import EDN
from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.plans import in_one_dialect
from everview.frontends.edn.plans import named_plan as edn_plan
from everview.frontends.fluent import Query
from everview.frontends.graphspec import graph
from everview.frontends.rules.faults import within_depth
from everview.runtimes.spark.stored import WITH_VALUES
from everview.spark.bound import BoundSource
from everview.spark.change import PlannedChange
from everview.spark.claims import require_apart
from everview.spark.dataframes import standing_frame
from everview.spark.failures import in_our_words
from everview.spark.fluent import AtSparkPipeline
from everview.spark.lateness import Lateness, bind_watermark, promised
from everview.spark.parts import PipelineParts
from everview.spark.paths import PathOptions, framed
from everview.spark.recomputing import Otherwise
from everview.spark.rules import define_rules
from everview.spark.sinks import sink_of
from everview.types import Schema
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PipelineDefining(PipelineParts):
    """The methods of a pipeline that add and remove sources, views and sinks."""

    @in_our_words()
    def source(
        self,
        name: str,
        frame: DataFrame | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        table: str | None = None,
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
        replace: bool = False,
    ) -> Stream:
        """Take a source from a frame, from files or from a table, whose rows are changes of one of these styles.

        - ``append``: every row is new; ``weights``: a row counts as often as its weight says, which may be negative;
        - ``upsert``: a row takes the place of the one with its key; ``snapshot``: the rows are all there are;
        - ``cdc``: the column ``op`` says what was done; Debezium's envelope and Delta's change feed are recognised.

        ``schema`` names the columns to take, and which are NOT NULL: a frame read from files says that of none, and a
        number that may be NULL takes twice the room. ``order`` is the column that says which of several changes of a
        key is the last; without it, the last to arrive. ``keep=False`` saves the space of the source's contents, which
        `verify` needs.

        ``lateness``, as in ``("ts", "5 minutes")``, promises how much a row may be before the latest one of earlier
        epochs: traces drop what can never be read again, and later rows are set aside, see `quarantined`.

        With a ``path`` and a ``format`` in place of a frame, files are followed: each is read once, at the refresh that
        finds it first. A snapshot, or what is no ``stream``, is read as it is at every refresh. ``schema`` is then that
        of the files, of which ``columns`` are taken; ``options`` go to Spark's reader. Text that is not JSON, CSV or
        XML is set aside. With ``format="kafka"`` and no path, topics are followed; see docs/how-to/kafka.md.

        With ``replace`` the source takes the place of the one of its name, perhaps with other columns, which the rows
        held are given; views in SQL that read it are bound again. See docs/how-to/change-a-pipeline.md.

        A ``table`` of the catalog is followed as files are. With ``format="iceberg"`` and ``changes="cdc"``, a refresh
        reads what has changed since the snapshot that the state has read; docs/how-to/iceberg.md.
        """
        where = PathOptions(path, format, stream, columns, options, table)
        style: dict[str, Any] = {"key": key, "changes": changes, "op": op, "weight": weight, "order": order}
        frame, files = framed(self.spark, name, frame, where, schema, style, own=self._own_positions)
        style = style if files is None else files.style(style)
        with self._defining():
            before = self._sources.by_name.get(name) if replace else None
            self._require_standing(name, frame, before)
            bind = self._sources.bind if before is None else self._definitions.rebind
            made = bind(name, frame, schema=schema, keep=keep, files=files, **style)
            if order is not None:
                self._epochs.traps.order(self._sources.by_name[name].spec)
            if (promise := lateness or promised(before)) is not None:
                bind_watermark(self._sources, self.spark, name, promise)
            return made

    def _require_standing(self, name: str, frame: DataFrame, before: BoundSource | None) -> None:
        """Refuse to add or replace a stream while streams are followed."""
        if self._streaming.active and (frame.isStreaming or (before is not None and before.streaming)):
            raise PipelineError(
                f"stream {name} cannot be {'added' if before is None else 'replaced'} while streams are followed",
                hint="stop() first, and start() again afterwards: streams go on where they were",
            )

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
    def define(self, name: str, frame: DataFrame, *, replace: bool = False, otherwise: Otherwise | None = None) -> None:
        """Define a view by a DataFrame over frames of `frame`, with Spark's own methods and functions.

        The DataFrame is read as Spark has analysed it: types, casts and the session's time zone are Spark's. What
        cannot be read raises, with the expression, the line that wrote it, and what to write instead. With ``replace``
        the view takes the place of the one of its name.

        ``otherwise="recompute"`` lets Spark compute a DataFrame that cannot be read, in full after every epoch; what
        differs from before is the view's change, in an epoch of its own. `explain` and progress name such views.
        """
        if otherwise not in (None, "recompute"):
            raise PipelineError(f"otherwise cannot be {otherwise!r}", hint='leave it out, or write "recompute"')
        with self._defining():
            self._definitions.frame(name, frame, replace=replace, otherwise=otherwise)

    def materialized_view(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        replace: bool = False,
        otherwise: Otherwise | None = None,
    ) -> Any:
        """Define a view by a function that returns a DataFrame; the view has the function's name, or another.

        ```python
        @p.materialized_view
        def top_senders():
            return p.frame("exposure").orderBy(F.desc("total")).limit(10)
        ```
        """

        def decorated(made: Callable[[], DataFrame]) -> Callable[[], DataFrame]:
            self.define(made.__name__ if name is None else name, made(), replace=replace, otherwise=otherwise)
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
            given = as_arguments(args)
            plan = edn_plan(name, text, given, self._queries.readable(self._sources.keys))
            self._queries.define([plan], ("", WITH_VALUES) if given else (text, EDN))

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
        jdbc: str | None = None,
        **options: Any,
    ) -> None:
        """Deliver a view after every epoch, its changes or a snapshot of it: to a path, a table, a topic or a function.

        A sink that is added to a pipeline that has run gets the changes from then on; with ``begin="snapshot"``, first
        all rows that the view has, so that the sum of its changes is the view.

        A topic and a table of Delta or Iceberg take ``mode="upsert"``, by a ``key`` of the view's rows: the table is
        the view then, and so are the last records of a topic. They begin with a snapshot, unless told otherwise.
        ``exactly_once=False`` lets Spark send records to a topic without transactions. With ``jdbc``, the address of a
        database of PostgreSQL, SQLite or H2, the view is a table there, by its ``key``; each epoch is one transaction.
        """
        where: dict[str, Any] = {"format": format, "path": path, "table": table, "topic": topic, "callback": callback}
        how: dict[str, Any] = {"mode": mode, "begin": begin, "key": key, "exactly_once": exactly_once, "jdbc": jdbc}
        made = sink_of(view, **where, **how, options=options)
        with self._defining():
            require_apart(made, self._sinks, self.path)
            self._sinks.append(made)

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
