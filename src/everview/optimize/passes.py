"""The passes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from everview.multiway import Statistics
from everview.optimize.columns import narrow_joins, prune_columns
from everview.optimize.joins import arrange_joins
from everview.optimize.predicates import push_predicates
from everview.optimize.share import share_parts
from everview.optimize.simplify import drop_needless, fold_constants
from everview.optimize.subqueries import decorrelate
from everview.plan.node import Plan
from everview.plan.nodes import Project

if TYPE_CHECKING:
    from everview.optimize.keyed import Keys

Pass = Callable[[Plan], Plan]

# What a plan must go through to be lowered at all.
REQUIRED: tuple[Pass, ...] = (decorrelate,)

PASSES: tuple[Pass, ...] = (
    fold_constants,  # first, so that nobody looks at conditions that are decided
    decorrelate,  # everything after sees joins only
    drop_needless,  # projections between a filter and what it filters are gone
    push_predicates,  # before joins are put in order: their conditions say which relations belong together
    fold_constants,  # what met below may be decided now
    prune_columns,  # before joins are gathered: every column that is left becomes a variable
    drop_needless,  # projections that pruning has put upon each other
    arrange_joins,  # and then, with keys, `reduce_groups`: orders say which relations make others small
    narrow_joins,  # after: its projections would part the trees
    drop_needless,
    share_parts,  # last: what has become equal on the way is computed once
)


def optimize(plan: Plan, statistics: Mapping[str, Statistics] | None = None, keys: Keys | None = None) -> Plan:
    """A plan that means the same and is cheaper to keep.

    ``statistics`` says how large relations are, ``keys`` which columns tell the rows of a relation apart.

    Columns keep names and types; one may turn out never to be NULL.

    >>> from everview.plan.nodes import Filter, Scan
    >>> from everview.plan.typing import call, literal
    >>> from everview.types import Schema
    >>> edge = Scan("edge", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"))
    >>> starts = Project(edge, (edge.column(0),), ("start",))
    >>> print(optimize(Filter(starts, call("less", starts.column(0), call("add", literal(1), literal(2))))))
    Project a AS start
      Filter a < 3L
        Project a
          Scan edge
    """
    better = plan
    for change in PASSES:
        better = arrange_joins(better, statistics, keys) if change is arrange_joins else change(better)
        if change is arrange_joins and keys:
            from everview.optimize.reduce import reduce_groups  # here: only views over tables with keys are asked

            better = reduce_groups(better, keys)
    if better.schema.names != plan.schema.names:
        better = Project(better, better.columns, plan.schema.names)
    return better
