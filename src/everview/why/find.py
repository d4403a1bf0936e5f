"""Finding rows of a plan that have known values in some columns, from the top: what is known is pushed to the inputs.

A join asks one side first and the other once for each row, by what the condition then says of it, so that the cost is
set by the rows that are found, not by what tables hold. A node's own meaning is that of `everview.oracle`, over the
rows that were found for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from everview.oracle.plans import Evaluation
from everview.oracle.rows import Rows
from everview.plan.conditions import Key, split
from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Distinct,
    During,
    Except,
    Explode,
    Filter,
    Intersect,
    Join,
    Lateral,
    Multiway,
    OverOne,
    OverSeveral,
    Project,
    Recursive,
    Reference,
    Scan,
    Top,
    Union,
    Values,
    Window,
    closed,
)
from everview.plan.timed import CLOCK, CLOCK_SCHEMA
from everview.scalars.expressions import Column, Expression, Literal
from everview.types import Schema
from everview.why.bounds import Budget
from everview.why.push import Entry, Row, Wanted, agrees, inside, is_exact, outside, parted, pushed, same

Lookup = Callable[[Wanted], list[Entry]]
Lookups = Mapping[str, Lookup]  # the rows of recursive relations, by name
NO_LOOPS: Lookups = {}
UNKNOWN = 1_000_000  # rows, of what nobody can say how many there are
MANY = 20_000  # rows, that a query reads faster
FEW = 20  # rows, for each of which partners are looked up
SOME = 1_000  # rows, where values of some columns are known


class Holder(Protocol):
    """What is kept: rows of tables and materialized views by values of columns, and the plans of views."""

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        """The rows with these values, at most so many, and how many there are."""
        ...

    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a table, and for a view that a function makes."""
        ...

    def keeps(self, relation: str) -> bool:
        """Whether the rows of a relation are held."""
        ...

    def is_table(self, relation: str) -> bool:
        """Whether a relation is a table."""
        ...

    def schema_of(self, relation: str) -> Schema:
        """The columns of a relation."""
        ...

    def shown(self, relation: str) -> str:
        """The name by which people know a relation."""
        ...

    def answered(self, plan: Plan, wanted: Wanted, most: int) -> tuple[list[Entry], int] | None:
        """Some rows of a plan with the wanted values, and how many there are, as a query gives them.

        None if a value cannot be written in a query.
        """
        ...

    def loop(self, plan: Recursive) -> Mapping[str, Callable[[Wanted], list[tuple[Row, int]]]] | None:
        """The rows of a recursion's relations with the rounds in which they came, if these are kept."""
        ...


class Finder:
    """Rows of plans over what a holder keeps."""

    def __init__(self, held: Holder, budget: Budget) -> None:
        self.held, self.budget = held, budget
        clock = held.rows(CLOCK, {})[0] if held.keeps(CLOCK) else []
        self._clock = [(outside(CLOCK_SCHEMA, row), w) for row, w in clock]
        self._nodes: dict[Plan, Plan] = {}
        self._loops: dict[tuple[Recursive, int], Any] = {}

    def find(self, plan: Plan, wanted: Wanted, loops: Lookups = NO_LOOPS) -> list[Entry]:
        """The rows of a plan with the wanted values, and their weights."""
        self.budget.spend()
        match closed(plan):
            case Scan(relation):
                return self._scan(relation, wanted)
            case Values(rows, schema):
                made = Rows.of(
                    (tuple(inside(t, e.value) for t, e in zip(schema.types, row, strict=True)), 1) for row in rows
                )
                return [entry for entry in made if agrees(entry[0], wanted)]
            case Reference(name):
                return loops[name](wanted)
            case (
                Join()
                | Asof()
                | During()
                | Lateral()
                | Multiway()
                | Union()
                | Intersect()
                | Except()
                | Recursive() as several
            ):
                entries = self._over_several(several, wanted, loops)
            case one:
                entries = self._over_one(one, wanted, loops)
        self.budget.spend(len(entries))
        return [entry for entry in entries if agrees(entry[0], wanted)]

    def some(self, plan: Plan, wanted: Wanted, loops: Lookups, most: int) -> tuple[list[Entry], int]:
        """Some of the rows that `find` gives, and how many there are; a table need not be read as a whole."""
        match plan:
            case Scan(relation) if self.held.keeps(relation):
                return self.held.rows(relation, wanted, most)
            case Project(Scan(relation), expressions, _) if self.held.keeps(relation) and is_exact(expressions):
                below = pushed(plan, wanted)
                entries, count = ([], 0) if below is None else self.held.rows(relation, below, most)
                made = list(self.applied(plan, entries))
                return made, len(made) if count == len(entries) else count
            case _:
                many = not loops and self.estimate(plan, wanted) > MANY
                made = self.held.answered(plan, wanted, most) if many else None
                if made is not None:
                    return made
                all_entries = self.find(plan, wanted, loops)
                return all_entries[:most], len(all_entries)

    def applied(self, plan: Plan, *inputs: Sequence[Entry]) -> Rows:
        """The rows of one node over these rows of its inputs."""
        if plan not in self._nodes:
            given = [Reference(str(place), input_.schema) for place, input_ in enumerate(plan.inputs)]
            self._nodes[plan] = plan.with_inputs(*given)
        plain = [e for e in plan.expressions if isinstance(e, Column | Literal)]
        if isinstance(plan, Project) and len(plain) == len(plan.expressions):
            return Rows.of((tuple(_plainly(e, row) for e in plain), w) for row, w in inputs[0])
        evaluation = Evaluation({CLOCK: self._clock})
        evaluation.bound = {str(place): Rows.of(rows) for place, rows in enumerate(inputs)}
        return evaluation.of(self._nodes[plan], ())

    def value(self, expression: Expression, plan: Plan, row: Row) -> Any:
        """The value of an expression over a row of a plan."""
        if isinstance(expression, Column | Literal):
            return _plainly(expression, row)
        ((made,),) = [r for r, _ in self.applied(_alone(expression, plan), [(row, 1)])]
        return made

    def loop(self, plan: Recursive, loops: Lookups) -> Any:
        """The recursion of a plan, within those around it."""
        from everview.why.loops import loop_of

        known = plan, id(loops)
        if known not in self._loops:
            self._loops[known] = loops, loop_of(self, plan, loops)
        return self._loops[known][1]

    # -- nodes

    def _scan(self, relation: str, wanted: Wanted) -> list[Entry]:
        if self.held.keeps(relation):
            entries, _ = self.held.rows(relation, wanted)
            self.budget.spend(len(entries))
            return entries
        plan = self.held.plan_of(relation)
        assert plan is not None, "what is not kept has a plan"
        return self.find(plan, wanted)

    def _over_one(self, plan: OverOne, wanted: Wanted, loops: Lookups) -> list[Entry]:
        below = pushed(plan, wanted)
        if below is None:
            return []
        entries = self.find(plan.input, below, loops)
        return list(self.applied(plan, entries))

    def _over_several(self, plan: OverSeveral, wanted: Wanted, loops: Lookups) -> list[Entry]:
        match plan:
            case Join():
                return list(Rows.of(self._join(plan, wanted, loops)))
            case Asof():
                return self._asof(plan, wanted, loops)
            case During(left, right):
                return list(self.applied(plan, self.find(left, wanted, loops), self.find(right, {}, loops)))
            case Multiway():
                return list(Rows.of((row, w) for row, w, _ in self.bindings(plan, wanted, loops)))
            case Union(inputs):
                return list(Rows.of(entry for input_ in inputs for entry in self.find(input_, wanted, loops)))
            case Intersect() | Except():
                return list(self.applied(plan, *(self.find(side, wanted, loops) for side in plan.inputs)))
            case Recursive(_, body):
                return self.find(body, wanted, self.loop(plan, loops).lookups(loops))
            case Lateral():
                raise AssertionError("an optimized plan has no lateral join")

    # -- joins

    def _asof(self, plan: Asof, wanted: Wanted, loops: Lookups) -> list[Entry]:
        """The rows of a join by time: what is wanted of the left side, with the right rows of the same keys."""
        lefts = self.find(plan.left, parted(wanted, len(plan.left.schema))[0], loops)
        near = {tuple(row[a] for a, _ in plan.keys) for row, _ in lefts}
        places = [b for _, b in plan.keys]
        rights = [e for key in near for e in self.find(plan.right, dict(zip(places, key, strict=True)), loops)]
        return list(self.applied(plan, lefts, rights))

    def _join(self, plan: Join, wanted: Wanted, loops: Lookups) -> Iterator[Entry]:
        width = len(plan.left.schema)
        if plan.kind in ("semi", "anti"):
            for row, w in self.find(plan.left, wanted, loops):
                if bool(self.partners(plan, row, 0, {}, loops)) == (plan.kind == "semi"):
                    yield row, w
            return
        left, right = parted(wanted, width)
        pads_right = plan.kind in ("left", "full") and all(v is None for v in right.values())
        pads_left = plan.kind in ("right", "full") and all(v is None for v in left.values())
        if not pads_right and not pads_left:
            yield from self._pairs(plan, left, right, loops)
        if pads_right:
            for row, w in self.find(plan.left, left, loops):
                partners = self.partners(plan, row, 0, {}, loops)
                yield from ((row + other, w * v) for other, v in partners or [((None,) * len(plan.right.schema), 1)])
        if pads_left:
            for row, w in self.find(plan.right, right, loops):
                partners = self.partners(plan, row, 1, {}, loops)
                if not pads_right:  # else the pairs have come already
                    yield from ((other + row, w * v) for other, v in partners)
                if not partners:
                    yield (None,) * width + row, w

    def _pairs(self, plan: Join, left: Wanted, right: Wanted, loops: Lookups) -> Iterator[Entry]:
        """The pairs of an inner join; the side with fewer rows leads."""
        keys = split(plan.condition, len(plan.left.schema)).keys
        left, right = _carried(keys, dict(left), dict(right))
        sizes = self.estimate(plan.left, left), self.estimate(plan.right, right)
        side = int(sizes[1] < sizes[0])
        lead, own = ((plan.left, left), (plan.right, right))[side]
        other, theirs = ((plan.right, right), (plan.left, left))[side]
        leading = self.find(lead, own, loops)
        columns = _columns(keys, side)
        if len(leading) < FEW or columns is None or sizes[1 - side] > FEW * len(leading):
            for row, w in leading:
                partners_of_row = self.partners(plan, row, side, theirs, loops)
                yield from ((row + r if side == 0 else r + row, w * v) for r, v in partners_of_row)
            return
        mine, beside = columns  # asking for every row would take longer than reading both sides
        partners = Rows.of(self.find(other, theirs, loops)).by(beside)
        pairs = [
            (row + r if side == 0 else r + row, w * v)
            for row, w in leading
            for r, v in partners.get(tuple(row[c] for c in mine), ())
        ]
        assert plan.condition is not None, "keys stand in a condition"
        yield from self.applied(Filter(Reference("pairs", plan.both), plan.condition), pairs) if pairs else ()

    def partners(self, plan: Join, row: Row, side: int, wanted: Wanted, loops: Lookups) -> list[Entry]:
        """The rows of the other side, with the wanted values, that meet the condition with a row of one side."""
        known = self.required(plan, row, side, wanted)
        if known is None:
            return []
        entries = self.find(plan.inputs[1 - side], known, loops)
        condition = split(plan.condition, len(plan.left.schema))
        if plan.condition is None or (
            condition.rest is None and all(isinstance((k.right, k.left)[side], Column) for k in condition.keys)
        ):
            return entries
        pairs = [(row + r if side == 0 else r + row, w) for r, w in entries]
        met = self.applied(Filter(Reference("pairs", plan.both), plan.condition), pairs).weights
        width = len(plan.left.schema)
        return [(pair[width:] if side == 0 else pair[:width], w) for pair, w in met.items()]

    def required(self, plan: Join, row: Row, side: int, wanted: Wanted) -> Wanted | None:
        """The values that a partner of a row of one side must have, those wanted included; None if there is none."""
        known = dict(wanted)
        for key in split(plan.condition, len(plan.left.schema)).keys:
            mine, theirs = (key.left, key.right) if side == 0 else (key.right, key.left)
            value = self.value(mine, plan.inputs[side], row)
            if value is None and not key.null_safe:
                return None
            if isinstance(theirs, Column) and not same(known.setdefault(theirs.index, value), value):
                return None
        return known

    def bindings(self, plan: Multiway, wanted: Wanted, loops: Lookups) -> Iterator[tuple[Row, int, tuple[Row, ...]]]:
        """The rows of a multiway join, each with its weight and the rows of the inputs that it is made of."""
        start: dict[int, Any] = {}
        for column, value in wanted.items():
            if not same(start.setdefault(plan.select[column], value), value):
                return
        joining: frozenset[int] = frozenset() if plan.null_safe else plan.shared
        if any(start.get(v, 0) is None for v in joining):
            return
        order = self.order(plan, start)

        def extended(place: int, bound: dict[int, Any], w: int, taken: dict[int, Row]) -> Iterator[Any]:
            if place == len(order):
                yield tuple(bound[v] for v in plan.select), w, tuple(taken[i] for i in range(len(order)))
                return
            number = order[place]
            terms = plan.variables[number]
            known = {column: bound[v] for column, v in enumerate(terms) if v is not None and v in bound}
            for row, weight in self.find(plan.inputs_[number], known, loops):
                new = _bound(bound, terms, row, joining)
                if new is not None:
                    yield from extended(place + 1, new, w * weight, {**taken, number: row})

        yield from extended(0, start, 1, {})

    def order(self, plan: Multiway, start: Mapping[int, Any]) -> list[int]:
        """The order in which inputs are searched: few rows first, then most known columns."""
        left = set(range(len(plan.inputs_)))

        def rows(number: int) -> int:
            known = {c: start[v] for c, v in enumerate(plan.variables[number]) if v is not None and v in start}
            return self.estimate(plan.inputs_[number], known)

        order = [min(left, key=lambda number: (rows(number), number))]
        while left := left - {*order}:
            known = {*start, *(v for number in order for v in plan.variables[number])}
            order.append(max(left, key=partial(_known_of, plan, known)))
        return order

    def estimate(self, plan: Plan, wanted: Wanted) -> int:
        """About how many rows `find` would give, told without finding them."""
        match plan:
            case Scan(relation) if self.held.keeps(relation):
                return self.held.rows(relation, wanted, 0)[1]
            case Values(rows):
                return len(rows)
            case Union(inputs):
                return sum(self.estimate(input_, wanted) for input_ in inputs)
            case Project() | Filter() | Explode() | Aggregate() | Distinct() | Top() | Window():
                below = pushed(plan, wanted)
                return 0 if below is None else self.estimate(plan.input, below)
            case _:
                return 1 if len(wanted) == len(plan.schema) else SOME if wanted else UNKNOWN


def _known_of(plan: Multiway, known: set[int | None], number: int) -> tuple[int, int]:
    """How much is known of an input; of two the earlier comes first."""
    return sum(v is not None and v in known for v in plan.variables[number]), -number


def _alone(expression: Expression, plan: Plan) -> Project:
    """The projection of rows of a plan to one value."""
    return Project(Reference("row", plan.schema), (expression,), ("value",))


def _plainly(expression: Column | Literal, row: Row) -> Any:
    if isinstance(expression, Column):
        return row[expression.index]
    return inside(expression.type, expression.value)


def _columns(keys: Sequence[Key], side: int) -> tuple[list[int], list[int]] | None:
    """The columns of one side and of the other that a condition wants equal; None if there are none."""
    equal = [(k.left.index, k.right.index) for k in keys if isinstance(k.left, Column) and isinstance(k.right, Column)]
    return ([pair[side] for pair in equal], [pair[1 - side] for pair in equal]) if equal else None


def _carried(keys: Sequence[Key], left: dict[int, Any], right: dict[int, Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """What is known of one side of an inner join, known of the other, too, where columns must be equal."""
    for key in keys:
        if isinstance(key.left, Column) and isinstance(key.right, Column):
            if key.left.index in left:
                right.setdefault(key.right.index, left[key.left.index])
            elif key.right.index in right:
                left.setdefault(key.left.index, right[key.right.index])
    return left, right


def _bound(
    before: Mapping[int, Any], terms: Sequence[int | None], row: Row, joining: frozenset[int]
) -> dict[int, Any] | None:
    """The variables with the values of a row; None if they differ, or are NULL where they join."""
    bound = dict(before)
    for variable, value in zip(terms, row, strict=True):
        if variable is None:
            continue
        if (variable in joining and value is None) or not same(bound.setdefault(variable, value), value):
            return None
    return bound
