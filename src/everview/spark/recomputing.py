"""Views that Spark computes in full after every epoch, because somebody has asked for that by name.

Such a view is a source of the circuit. After an epoch Spark computes its DataFrame over what the pipeline holds; what
that has more or less than the view is the source's change, in an epoch of its own. So sinks, changes, other views and
the state have a recomputed view as they have any other, exactly once; only that it comes one epoch after what it reads.
Nothing is remembered on disk: what the state holds is compared with what Spark computes, also after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal

from everview.errors import EverviewError, PipelineError
from everview.runtimes.embedded.turning import RECOMPUTED
from everview.spark.dataframes import standing_in, substituted
from everview.spark.paths import relist
from everview.spark.shaping import column_of
from everview.spark.spec import schema_of
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Otherwise = Literal["recompute"]
WEIGHT: Final = "_weight"
_UNCOMPARED: Final = ("map<", "variant", "interval")  # in the names of types that Spark does not group by


@dataclass(frozen=True, slots=True)
class RecomputedView:
    """A view recomputed by Spark: its DataFrame, the relations read by it, and why it has no incremental plan."""

    name: str
    frame: DataFrame
    schema: Schema
    reads: tuple[str, ...]
    arbitrary: bool  # whether Spark may answer otherwise when it is asked again
    why: str
    source: str  # that has its rows

    def __str__(self) -> str:
        return f"{self.name} is computed in full by Spark after every epoch: {self.why}"

    def weighted(self) -> DataFrame:
        """A frame with the columns of its changes."""
        return _weighted(self.frame, 1)


def recomputed_view(name: str, frame: DataFrame, error: EverviewError) -> RecomputedView:
    """The view of a DataFrame that could not be read, as the error says."""
    if WEIGHT in frame.columns:
        raise PipelineError(f'view {name} cannot have a column "{WEIGHT}"', hint="give the column another name")
    if frame.isStreaming:
        raise PipelineError(f"view {name} cannot be recomputed from a stream", hint="read the stream as a source")
    standing = standing_in(frame)
    if not standing.relations:
        raise PipelineError(f"view {name} reads no source and no view", hint="begin with p.frame(name)")
    schema = schema_of(frame)
    source = f"{RECOMPUTED}{name}, {blake2b(str(schema).encode(), digest_size=2).hexdigest()})"  # by columns, too
    return RecomputedView(name, frame, schema, standing.relations, not standing.repeatable, error.message, source)


def levels(views: Sequence[RecomputedView], reach: Callable[[str], Sequence[str]]) -> list[list[RecomputedView]]:
    """The views in order of recomputation: each after all views below it.

    ``reach`` gives the views that read a view.
    """
    depth: dict[str, int] = {}
    for view in views:  # in the order of their definition
        before = [depth[other.name] for other in views if other.name in depth and view.name in reach(other.name)]
        depth[view.name] = 1 + max(before, default=-1)
    return [[view for view in views if depth[view.name] == level] for level in sorted({*depth.values()})]


def difference(view: RecomputedView, held: DataFrame, relation: Callable[[str], DataFrame]) -> DataFrame:
    """The change of a view: rows computed by Spark and missing in the view, and rows the view has too many."""
    from pyspark.sql import functions as F

    relist(view.frame)
    now = substituted(view.frame, relation)
    columns = [column_of(name).cast(field.dataType) for name, field in zip(now.columns, held.schema, strict=True)]
    both = _weighted(now.select(*columns).toDF(*held.columns), 1).unionAll(_weighted(held, -1))
    if any(name in field.dataType.simpleString() for field in held.schema for name in _UNCOMPARED):
        return both  # the epoch adds up the weights
    weight = column_of(WEIGHT)
    added = both.groupBy(*map(column_of, held.columns)).agg(F.sum(weight).alias(WEIGHT))
    return added.filter(weight != 0)


def _weighted(frame: DataFrame, weight: int) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.withColumn(WEIGHT, F.lit(weight).cast("bigint"))


class Recomputing:
    """Which views Spark recomputes, and at which epoch of this process each was."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[int, DataFrame]] = {}

    def due(self, views: Sequence[RecomputedView], epoch: int) -> bool:
        """Whether an epoch has passed since views were computed, or their definitions have changed."""
        return any(self._at.get(view.name) != (epoch, view.frame) for view in views)

    def done(self, views: Sequence[RecomputedView], epoch: int) -> None:
        """Remember that all views are those of an epoch."""
        self._at = {view.name: (epoch, view.frame) for view in views}
