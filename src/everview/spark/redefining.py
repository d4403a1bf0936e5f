"""The definitions of a pipeline: sources, views and sinks, which change all together or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.circuit.circuit import Circuit
from everview.circuit.rewrite import part
from everview.circuit.stream import Stream
from everview.errors import EverviewError, PipelineError
from everview.runtimes.tables import Table
from everview.spark.bound import BoundSources
from everview.spark.queries import Queries, not_in_sql
from everview.spark.recomputing import WEIGHT, Otherwise, RecomputedView, recomputed_view
from everview.spark.sinks import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = logging.getLogger("everview.spark")


class PipelineDefinitions:
    """The definitions of a pipeline; `mark` before a change gives the way back."""

    def __init__(self, circuit: Circuit, *, given: bool, zone: str) -> None:
        self.workshop = circuit  # where streams are built; it may have nodes of views that are gone
        self.given = given
        self.sources = BoundSources(circuit, given=given)
        self.queries = Queries(circuit, zone)
        self.sinks: list[SinkSpec] = []
        self._dropped = False

    @property
    def circuit(self) -> Circuit:
        """The circuit of the views that there are, over all sources."""
        shop = self.workshop
        return part(shop, shop.sources.values(), shop.sinks)[0] if self._dropped else shop

    @property
    def tables(self) -> Mapping[str, Table]:
        return self.sources.tables

    @property
    def delivered(self) -> tuple[str, ...]:
        """The views with sinks."""
        return tuple(dict.fromkeys(sink.view for sink in self.sinks))

    @property
    def version(self) -> object:
        """A value that is another one when views or sources are."""
        shop = self.workshop
        return tuple(shop.sinks.items()), tuple(shop.sources.items()), tuple(self.tables.items())

    def mark(self) -> Callable[[], None]:
        """A function that makes all definitions as they are now."""
        shop, queries, dropped = self.workshop.mark(), self.queries.mark(), self._dropped
        sinks, sources = tuple(self.sinks), dict(self.sources.by_name)

        def back() -> None:
            self.workshop.back_to(shop)
            queries()
            self.sinks[:], self._dropped = sinks, dropped
            self.sources.by_name = sources

        return back

    def rebind(self, name: str, frame: DataFrame, **how: Any) -> Stream:
        """Bind a source anew, to another frame and perhaps with other columns; see `BoundSources.bind`.

        Views that read it must then have been written in SQL, and are bound again.
        """
        shop, before, key = self.workshop, self.workshop.sources[name], self.sources.keys.get(name)
        had, back, how = shop.stream(before).schema, shop.mark(), {**how, "replaced": True}
        del self.sources.by_name[name]
        if self.given:
            return self.sources.bind(name, frame, **how)
        shop.drop_source(name)
        if self.sources.bind(name, frame, **how).schema == had:
            if self.sources.keys.get(name) != key:
                self.queries.require_keyless(name)
            shop.back_to(back)
            return shop.stream(before)
        views = self.queries.take_out(name)
        for view in shop.sinks:
            if before in part(shop, (), [view])[1]:
                raise not_in_sql(name, view)
        self._dropped = True
        self.queries.put_back(views)
        return shop.stream(shop.sources[name])

    def sql(self, text: str, dialect: str, params: Any = None) -> None:
        """Define, replace or drop views by a text; sinks of views that are gone end."""
        before = self.workshop.sinks
        gone = self.queries.define_sql(text, dialect, params)
        self._let_go(gone, before)

    def frame(self, name: str, frame: DataFrame, *, replace: bool, otherwise: Otherwise | None = None) -> None:
        """Define a view by a DataFrame, or put it in place of the one of its name.

        ``otherwise`` says what becomes of a DataFrame that cannot be read; by default it is refused.
        """
        before, back = self.workshop.sinks, self.mark()
        try:
            self.queries.define_frame(name, frame, self.sources.keys, replace=replace)
        except PipelineError:
            raise  # of names and of other views, not of the DataFrame
        except EverviewError as error:
            if otherwise is None:
                raise
            back()
            self._recompute(recomputed_view(name, frame, error), replace=replace)
        self._let_go((), before)

    def _recompute(self, view: RecomputedView, *, replace: bool) -> None:
        """Define a view that Spark computes in full after every epoch, and the source that has its rows."""
        kept = {name for name, bound in self.sources.by_name.items() if bound.keep}
        for name in view.reads:
            if name not in kept and name not in self.workshop.sinks:
                raise PipelineError(
                    f"view {view.name} cannot be recomputed: the rows of {name} are not kept",
                    hint="make a source with keep=True, and a view with CREATE MATERIALIZED VIEW",
                )
        if view.source not in self.sources.by_name:
            style: dict[str, Any] = {"changes": "weights", "weight": WEIGHT, "recomputed": True}
            self.sources.bind(view.source, view.weighted(), schema=None, keep=True, **style)
        self.queries.define_recomputed(view, replace=replace)
        log.warning("%s", view)

    def drop(self, view: str, *, cascade: bool) -> None:
        """Drop a view and its sinks; with ``cascade``, also the views that read it."""
        before = self.workshop.sinks
        self._let_go(self.queries.drop(view, cascade=cascade), before)

    def rename(self, view: str, new: str) -> None:
        """Give a view another name; its sinks go on."""
        self.queries.rename(view, new)
        self._dropped = True
        self.sinks[:] = [replace(sink, view=new) if sink.view == view else sink for sink in self.sinks]

    def _let_go(self, gone: tuple[str, ...] | list[str], before: Mapping[str, int]) -> None:
        self.sinks[:] = [sink for sink in self.sinks if sink.view not in gone]
        now = self.workshop.sinks
        self._dropped |= any(now.get(name) != node for name, node in before.items())
