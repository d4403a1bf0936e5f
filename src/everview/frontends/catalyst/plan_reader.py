"""The reader of plans: a node of Catalyst becomes the plan of ours that has the same rows.

Handlers for nodes register here with `reads_plan`; a node that has none is refused, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everview.errors import EverviewError
from everview.frontends.catalyst.reading import CatalystReading, ExpressionReader, FrameRows
from everview.frontends.catalyst.tree import CatalystNode

MARK: Final = "everview:"  # before the name of a relation, in the alias of the frame that stands for it
MOST_CONSTANTS: Final = 10_000  # rows of a relation that is part of the definition
PlanHandler = Callable[[CatalystNode, "PlanReader"], FrameRows]
PLANS: Final[dict[str, PlanHandler]] = {}


def reads_plan(*kinds: str) -> Callable[[PlanHandler], PlanHandler]:
    """Register a function as the way to read some nodes of plans."""

    def register(handler: PlanHandler) -> PlanHandler:
        for kind in kinds:
            assert kind not in PLANS, kind
            PLANS[kind] = handler
        return handler

    return register


class PlanReader:
    """Reads plans; ``outer`` reads expressions over the row of the query around a subquery."""

    def __init__(self, reading: CatalystReading, outer: ExpressionReader | None = None) -> None:
        self.reading, self.outer = reading, outer

    def read(self, node: CatalystNode) -> FrameRows:
        """The rows of a plan, with their order where one is asked for."""
        handler = PLANS.get(node.kind)
        try:
            if handler is None:
                raise self.reading.refused(node, f"the node {node.kind} cannot be read into a view", instead(node))
            return handler(node, self)
        except EverviewError:
            self.reading.blame(node)
            raise

    def rows(self, node: CatalystNode) -> FrameRows:
        """The rows of a plan, in no order."""
        return self.read(node).settled()

    def below(self, node: CatalystNode) -> FrameRows:
        """The rows of a node's one child, in no order."""
        return self.rows(node.children[0])

    def over(self, rows: FrameRows) -> ExpressionReader:
        """A reader of expressions over some rows."""
        return ExpressionReader(self.reading, rows, self.outer)


SOURCE: Final = "make it a source: p.source(name, frame), and write p.frame(name) in its place"
RECOMPUTE: Final = 'ask for it to be computed anew by Spark: p.define(…, otherwise="recompute")'
INSTEAD: Final = {
    "Sample": "a sample is another one every time; filter by a hash of a key: F.xxhash64(key) % 10 == 0",
    "Tail": "sort the other way round, and limit",
    "LogicalRelation": SOURCE,
    "DataSourceV2Relation": SOURCE,
    "StreamingRelationV2": SOURCE,
    "StreamingRelation": SOURCE,
    "StreamingDataSourceV2Relation": SOURCE,
    "HiveTableRelation": SOURCE,
    "ExternalRDD": SOURCE,
    "LogicalRDD": SOURCE,
    "EventTimeWatermark": "give the source its lateness: p.source(…, lateness=(column, span))",
    "DeduplicateWithinWatermark": "write dropDuplicates",
    "UnionLoop": "write the recursion as WITH RECURSIVE in p.sql",
}


def instead(node: CatalystNode) -> str:
    """The hint for a node that cannot be read: an alternative to it."""
    if node.kind.startswith("FlatMap"):
        return (
            f"write it as a grouped aggregate by F.pandas_udf or F.arrow_udf, which may return a struct; or {RECOMPUTE}"
        )
    if "Pandas" in node.kind or "Arrow" in node.kind or "Python" in node.kind:
        return f"its result may depend on the batch: write F.pandas_udf or F.arrow_udf of columns; or {RECOMPUTE}"
    return INSTEAD.get(node.kind, "write it with other methods of DataFrames, or by p.sql")
