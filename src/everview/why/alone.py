"""What must stand beside the rows behind a row, so that these alone give it.

A plan is *monotone* if rows that are added below it never take a row of it away, as with joins. An aggregate, a window
or a negation over such a plan holds over some of the rows, too, if these include what was explained. Over another
negation it need not: ``t EXCEPT (t EXCEPT u)`` has a row because another keeps the same row of the inner EXCEPT away.
So of a plan with one such node over another it is looked up whether the base rows alone give the row. If they do
not, all that such a node has read stands beside them: over the same rows it says the same.

>>> from everview.plan.nodes import Distinct, Except, Scan
>>> from everview.types import Schema
>>> t, u = (Scan(name, Schema.parse("k BIGINT NOT NULL")) for name in "tu")
>>> is_monotone(Distinct(t), no_views), is_monotone(Except(t, u), no_views)
(True, False)
>>> stacked(Except(t, u), no_views), stacked(Except(t, Except(t, u)), no_views)
(False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Asof, Except, Join, Recursive, Scan, Top, Window
from everview.plan.timed import CLOCK
from everview.types import Schema
from everview.why.bounds import Budget
from everview.why.find import Finder, Holder, Lookups
from everview.why.push import Entry, Row, Wanted, agrees

PlanOf = Callable[[str], Plan | None]


def no_views(relation: str) -> None:
    """Know of no view, so that every relation is a table."""


def is_monotone(plan: Plan, plan_of: PlanOf) -> bool:
    """Whether rows that are added to tables never take a row of a plan away."""
    return _depth(plan, plan_of) == 0


def stacked(plan: Plan, plan_of: PlanOf) -> bool:
    """Whether a node that is not monotone stands over another one."""
    return _depth(plan, plan_of) > 1


def _depth(plan: Plan, plan_of: PlanOf) -> int:
    """How many nodes that are not monotone stand one over the other, views taken apart; 2 for all that are more."""
    known: dict[Plan, int] = {}
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        below = _below(node, plan_of)
        unknown = [each for each in below if each not in known]
        if unknown:
            waiting.extend(unknown)
            continue
        waiting.pop()
        depths = [known[each] for each in below]
        most = sum(depths) if isinstance(node, Recursive) else max(depths, default=0)  # bodies stand over bindings
        known[node] = min(most + (not _keeps_rows(node)), 2)
    return known[plan]


def _below(plan: Plan, plan_of: PlanOf) -> tuple[Plan, ...]:
    if not isinstance(plan, Scan):
        return plan.inputs
    view = plan_of(plan.relation)
    return () if view is None else (view,)


def _keeps_rows(node: Plan) -> bool:
    """Whether a node itself never loses a row by rows that are added to its inputs."""
    if isinstance(node, Join):
        return node.kind in ("inner", "semi")
    if isinstance(node, Recursive):
        return not node.inflates
    return not isinstance(node, Aggregate | Asof | Except | Top | Window)


class OfTables:
    """A holder of the rows of tables alone: every view is computed from them, and every recursion."""

    def __init__(self, held: Holder) -> None:
        self._held = held

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        """The rows with these values, at most so many, and how many there are."""
        return self._held.rows(relation, wanted, most)

    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a table, and for a view that a function makes."""
        return self._held.plan_of(relation)

    def keeps(self, relation: str) -> bool:
        """Whether a relation is a table, or as good as one."""
        return self._held.plan_of(relation) is None and self._held.keeps(relation)

    def is_table(self, relation: str) -> bool:
        """Whether a relation is a table."""
        return self._held.is_table(relation)

    def shown(self, relation: str) -> str:
        """The name by which people know a relation."""
        return self._held.shown(relation)

    def schema_of(self, relation: str) -> Schema:
        """The columns of a relation."""
        return self._held.schema_of(relation)

    def answered(self, plan: Plan, wanted: Wanted, most: int) -> None:
        """Nothing: what is not read here is not known here."""

    def loop(self, plan: Recursive) -> None:
        """Nothing: no rounds are kept."""


class SomeRows(OfTables):
    """Tables that hold only some of their rows."""

    def __init__(self, held: Holder, some: Mapping[str, Mapping[Row, int]]) -> None:
        super().__init__(held)
        self._some = some

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        if relation == CLOCK:
            return super().rows(relation, wanted, most)
        entries = [entry for entry in self._some.get(relation, {}).items() if agrees(entry[0], wanted)]
        return entries[:most], len(entries)


class ReadRows(OfTables):
    """Tables whose rows are noted as they are read."""

    def __init__(self, held: Holder) -> None:
        super().__init__(held)
        self.read: dict[str, dict[Row, int]] = {}

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        entries, count = super().rows(relation, wanted, most)
        if relation != CLOCK:
            self.read.setdefault(relation, {}).update(entries)
        return entries, count


def gives(held: Holder, budget: Budget, plan: Plan, row: Row, base: Mapping[str, Mapping[Row, int]]) -> bool:
    """Whether a plan has a row if tables hold these rows alone, so often."""
    wanted = dict(enumerate(row))
    return any(w > 0 for _, w in Finder(SomeRows(held, base), budget).find(plan, wanted))


def read_by(
    held: Holder, budget: Budget, plan: Plan, wanted: Wanted, loops: Lookups
) -> Mapping[str, Mapping[Row, int]]:
    """The rows of tables, with their weights, that a plan reads to say which rows have the wanted values."""
    reading = ReadRows(held)
    Finder(reading, budget).find(plan, wanted, loops)
    return reading.read
