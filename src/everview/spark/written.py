"""Views of a pipeline as they were written: the plan of each, and what it takes to plan or compute it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everview.circuit.stream import Stream
from everview.frontends.dialects import EDN, FLUENT
from everview.frontends.sql import CreateView
from everview.plan.catalog import NamedPlan, Tables
from everview.plan.node import Plan
from everview.runtimes.spark.stored import WITH_VALUES
from everview.scalars.session_zone import UTC
from everview.spark.recomputing import RecomputedView
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BY_KEYS: Final = (EDN, FLUENT, WITH_VALUES)  # dialects whose views are planned by the keys of sources


@dataclass(frozen=True, slots=True)
class WrittenView:
    """A view defined by a text or a DataFrame: its plans, how Spark computes it if it can, and the stream if kept."""

    named: NamedPlan
    text: str | None
    stream: Stream | None
    statement: CreateView | None = None  # as it was written, if that was SQL
    frame: DataFrame | None = None  # of which it was read, if that was a DataFrame
    source: tuple[str, str] | None = None  # text and dialect, if it was written in another language than SQL
    arbitrary: bool = False  # whether Spark may answer with other rows that are as good
    recomputed: RecomputedView | None = None  # how Spark computes it after every epoch, if it does
    renamed: bool = False  # whether its text says another name

    @property
    def plan(self) -> Plan:
        return self.named.plan

    @property
    def by_keys(self) -> bool:
        """Whether its plan counts on the keys of sources: plans of SQL and of rules do not."""
        if self.statement is not None or self.recomputed is not None:
            return False
        return self.source is None or self.source[1] in _BY_KEYS

    @property
    def by_sets(self) -> bool:
        """Whether its plan counts on it that views by rules and by EDN hold no row twice."""
        return self.statement is None and self.frame is None and (self.source is None or self.source[1] != FLUENT)

    @property
    def by_spark(self) -> bool:
        """Whether Spark can be asked for its rows, and has one answer."""
        return self.text is not None or (self.frame is not None and not self.arbitrary)


class ReadTables(Tables):
    """The relations of a pipeline, and which of them were asked for."""

    read: tuple[str, ...] = ()
    zone: str = UTC

    @property
    def timezone(self) -> str:
        return self.zone

    def relation(self, name: str) -> Schema | Plan:
        self.read = (*self.read, name)
        return super().relation(name)
