"""What a running circuit keeps, as explanations read it: rows of tables and views by values, plans, rounds of loops.

A database and a pipeline both run a circuit; they differ in how relations are named and defined, which `HeldByRun`
leaves to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes import to_rows
from everview.oracle.values import changed, inward
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, walk
from everview.plan.nodes import Filter, Recursive
from everview.plan.typing import call
from everview.runtimes.embedded.lookup import LookedUp
from everview.runtimes.embedded.runtime import Embedded
from everview.scalars.expressions import Literal
from everview.types import Schema
from everview.why.push import Entry, Row, Wanted, outside

Answer = tuple[pa.Table, NDArray[np.int64]]  # rows and their weights


class HeldByRun(ABC):
    """The holdings of a running circuit; see `everview.why.find.Holder`."""

    def __init__(self, run: Embedded) -> None:
        self.run, self._looked_up = run, LookedUp(run)

    @abstractmethod
    def schema_of(self, relation: str) -> Schema:
        """The columns of a relation."""

    @abstractmethod
    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a table, and for a view that has none."""

    @abstractmethod
    def keeps(self, relation: str) -> bool:
        """Whether the rows of a relation are held."""

    @abstractmethod
    def is_table(self, relation: str) -> bool:
        """Whether a relation is a table."""

    @abstractmethod
    def kept_views(self) -> Iterable[str]:
        """The views whose rows are held."""

    @abstractmethod
    def answer(self, plan: Plan) -> Answer | None:
        """The rows of a plan now, as a query gives them; None if too much would have to be read."""

    def shown(self, relation: str) -> str:
        """The name by which people know a relation."""
        return relation

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        """The rows with these values, at most so many, and how many there are."""
        schema = self.schema_of(relation)
        entries, count = self._looked_up.rows(relation, _values(schema, wanted), most)
        return inside_rows(schema, entries), count

    def answered(self, plan: Plan, wanted: Wanted, most: int) -> tuple[list[Entry], int] | None:
        """Some rows of a plan with the wanted values, and how many there are; None if no query can say these."""
        values = _values(plan.schema, wanted)
        if any(isinstance(value, list | dict | tuple) for value in values.values()):
            return None
        equal = [call("null_safe_equal", plan.column(c), Literal(v, plan.schema.types[c])) for c, v in values.items()]
        condition = conjunction(equal)
        answer = self.answer(plan if condition is None else Filter(plan, condition))
        if answer is None:
            return None
        rows, weights = answer
        shown = to_rows(plan.schema, rows.slice(0, most))
        return inside_rows(plan.schema, list(zip(shown, weights[:most].tolist(), strict=True))), rows.num_rows

    def loop(self, plan: Recursive) -> Mapping[str, Callable[[Wanted], list[tuple[Row, int]]]] | None:
        """The rows of a recursion's relations with the rounds in which they came, if these are kept."""
        names = tuple(name for name, _ in plan.bindings)
        for view in self.kept_views():
            whole = self.plan_of(view)
            if whole is None or plan not in set(walk(whole)):
                continue
            loops = self._looked_up.loops_behind(view, names)
            if len(loops) != 1 or len(loops[0].feedbacks) != len(names):
                continue
            orders = [self._looked_up.iterations(loops[0], i, p.schema) for i, (_, p) in enumerate(plan.bindings)]
            if all(order is not None for order in orders):
                return {name: partial(self._came, order) for name, order in zip(names, orders, strict=True)}
        return None

    def _came(self, order: Any, wanted: Wanted) -> list[tuple[Row, int]]:
        return inside_rows(order.schema, self._looked_up.came(order, _values(order.schema, wanted)))


def inside_rows(schema: Schema, entries: list[tuple[Row, int]]) -> list[tuple[Row, int]]:
    """Rows as explanations hold them, each with its number."""
    if not entries:
        return []
    rows = changed(schema.types, inward)([row for row, _ in entries])
    return list(zip(map(tuple, rows), (number for _, number in entries), strict=True))


def _values(schema: Schema, wanted: Wanted) -> dict[int, Any]:
    """The wanted values as people write them, by column."""
    part = Schema([schema.fields[column] for column in wanted])
    return dict(zip(wanted, outside(part, tuple(wanted.values())), strict=True))
