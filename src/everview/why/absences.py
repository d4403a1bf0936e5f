"""Why a row is not there: the first condition on its way that fails, and the rows that come nearest.

The walk goes down the plan with what is known of the row. Where the rows that a node reads are there, the node itself
is the reason; where they are not, the reason lies below. A union lacks a row for one reason in each input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from everview.plan.conditions import conjuncts
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
from everview.plan.tree import title
from everview.why.find import NO_LOOPS, Finder, Lookups
from everview.why.push import Entry, Row, Wanted, outside, parted, pushed, same
from everview.why.telling import named, told, value_told
from everview.why.tree import Why


@dataclass(frozen=True, slots=True)
class Missing:
    """A plan, and the values that none of its rows has, where recursive relations have the rows of ``loops``."""

    plan: Plan
    wanted: Wanted
    loops: Lookups
    within: tuple[Recursive, ...] = ()

    def of(self, plan: Plan, wanted: Wanted) -> Missing:
        """The same question of another plan."""
        return Missing(plan, wanted, self.loops, self.within)


class AbsenceFinder:
    """Reasons for the absence of rows; ``rows`` bounds the nearest rows that are shown."""

    def __init__(self, finder: Finder, rows: int) -> None:
        self._finder, self._rows = finder, rows
        self._entered: set[str] = set()  # recursive relations, each of which is looked into once

    def of_view(self, view: str, row: Row) -> Why:
        """Why a view has no such row."""
        plan = self._finder.held.plan_of(view)
        assert plan is not None, "a view has a plan"
        below = self._of(Missing(plan, dict(enumerate(row)), NO_LOOPS))
        name = f"not in view {self._finder.held.shown(view)}"
        return Why(name, outside(plan.schema, row), plan.schema.names, (below,))

    def _of(self, asked: Missing) -> Why:
        self._finder.budget.spend()
        node = closed(asked.plan)
        if isinstance(node, OverSeveral):
            return self._over_several(node, asked)
        match node:
            case Scan(relation, schema):
                plan = self._finder.held.plan_of(relation)
                if plan is None:
                    return self._nearest(asked, f"{relation} has no row with {told(schema, asked.wanted)}")
                below = self._of(Missing(plan, asked.wanted, NO_LOOPS))
                return Why(f"not in view {self._finder.held.shown(relation)}", None, children=(below,))
            case Values(schema=schema):
                return self._nearest(asked, f"the query writes no row with {told(schema, asked.wanted)}")
            case Reference() as reference:
                return self._reference(reference, asked)
            case one:
                return self._over_one(one, asked)

    def _find(self, asked: Missing, plan: Plan, wanted: Wanted) -> list[Entry]:
        return [entry for entry in self._finder.find(plan, wanted, asked.loops) if entry[1] > 0]

    def _said(self, asked: Missing, note: str, near: Iterable[Row], plan: Plan, more: Iterable[Why] = ()) -> Why:
        """A reason, with the rows of a plan that come nearest."""
        rows = list(near)
        names = plan.schema.names
        label = f"near: {named(plan)}" if named(plan) != title(plan) else "near"
        shown = [Why(label, outside(plan.schema, r), names) for r in rows[: self._rows]]
        return Why(title(asked.plan), None, (), (*shown, *more), max(len(rows) - self._rows, 0), note=note)

    # -- leaves

    def _nearest(self, asked: Missing, note: str) -> Why:
        """The nearest rows of a leaf: equal but for one column, else equal in at least one."""
        wanted, rows = asked.wanted, dict[Row, None]()
        for column in reversed(wanted):
            others = {c: v for c, v in wanted.items() if c != column}
            if others:
                rows |= dict.fromkeys(row for row, _ in self._some(asked, others))
        if not rows:
            for column, value in wanted.items():
                rows |= dict.fromkeys(row for row, _ in self._some(asked, {column: value}))
        return self._said(asked, note, rows, asked.plan)

    def _some(self, asked: Missing, wanted: Wanted) -> list[Entry]:
        return self._finder.some(asked.plan, wanted, asked.loops, self._rows)[0]

    def _reference(self, plan: Reference, asked: Missing) -> Why:
        note = f"{plan.name} has no row with {told(plan.schema, asked.wanted)}"
        if plan.name in self._entered:
            return Why(title(plan), None, note=note)
        self._entered.add(plan.name)
        (bound,) = [dict(r.bindings)[plan.name] for r in asked.within if plan.name in dict(r.bindings)][-1:]
        return Why(title(plan), None, children=(self._of(asked.of(bound, asked.wanted)),), note=note)

    # -- one input

    def _over_one(self, plan: OverOne, asked: Missing) -> Why:
        input_, below = plan.input, asked.wanted if isinstance(plan, Filter) else pushed(plan, asked.wanted)
        if below is None:
            return self._said(asked, "constants or equal columns of the query rule out these values", (), plan)
        rows = [row for row, _ in self._find(asked, input_, below)]
        if not rows:
            return self._of(asked.of(input_, below))
        match plan:
            case Filter():
                return self._filtered_out(plan, rows, asked)
            case Distinct():
                return self._of(asked.of(input_, below))
            case Top() if any(self._find(asked, input_, asked.wanted)):
                first = [row for row, _ in self._finder.applied(plan, [(row, 1) for row in rows])]
                return self._said(asked, "other rows stand before it", first, plan)
            case Project() | Aggregate() | Window() | Explode() | Top():
                made = [row for row, _ in self._finder.applied(plan, self._find(asked, input_, below))]
                if not made:
                    return self._said(asked, "nothing comes of the rows", rows, input_)
                nearest = sorted(made, key=lambda row: -_alike(row, asked.wanted))
                return self._said(asked, _differs(plan, nearest[0], asked.wanted), nearest, plan)

    def _filtered_out(self, plan: Filter, rows: list[Row], asked: Missing) -> Why:
        """Why a filter lets none of these rows through: the first condition that fails, and the rows it fails for."""
        parts, input_ = list(conjuncts(plan.predicate)), plan.input
        failing = [next((p for p in parts if self._finder.value(p, input_, r) is not True), None) for r in rows]
        first = next((p for p in parts if p in failing), None)
        near = [row for row, failed in zip(rows, failing, strict=True) if failed == first]
        return self._said(asked, f"{first} is {self._value(first, input_, near[0])}", near, input_)

    def _value(self, expression: Any, plan: Plan, row: Row) -> str:
        value = self._finder.value(expression, plan, row)
        return "NULL" if value is None else str(value).lower()

    # -- several inputs

    def _over_several(self, plan: OverSeveral, asked: Missing) -> Why:
        wanted = asked.wanted
        match plan:
            case Join():
                return self._join(plan, asked)
            case Multiway():
                return self._multiway(plan, asked)
            case Union(inputs):
                reasons = [self._of(asked.of(input_, wanted)) for input_ in inputs]
                return reasons[0] if len(reasons) == 1 else Why(title(plan), None, children=tuple(reasons))
            case Intersect(left, right):
                lacking = left if not self._find(asked, left, wanted) else right
                return self._of(asked.of(lacking, wanted))
            case Except(left, right):
                if not self._find(asked, left, wanted):
                    return self._of(asked.of(left, wanted))
                rows = [row for row, _ in self._find(asked, right, wanted)]
                return self._said(asked, "the right side has the row", rows, right)
            case Asof(left) | During(left):
                return self._led(plan, left, asked)
            case Recursive(_, body):
                lookups = self._finder.loop(plan, asked.loops).lookups(asked.loops)
                return self._of(Missing(body, wanted, lookups, (*asked.within, plan)))
            case Lateral():
                raise AssertionError("an optimized plan has no lateral join")

    def _led(self, plan: Asof | During, left: Plan, asked: Missing) -> Why:
        own, _ = parted(asked.wanted, len(left.schema))
        rows = [row for row, _ in self._find(asked, left, own)]
        if not rows:
            return self._of(asked.of(left, own))
        if isinstance(plan, During):
            return self._said(asked, "its time is not now", rows, left)
        made = [row for row, _ in self._finder.find(plan, own, asked.loops)]
        if made:
            return self._said(asked, _differs(plan, made[0], asked.wanted), made, plan)
        return self._said(asked, "no row is in force at its time", rows, left)

    def _join(self, plan: Join, asked: Missing) -> Why:
        if plan.kind in ("semi", "anti"):
            return self._half(plan, asked)
        wanted, inputs = parted(asked.wanted, len(plan.left.schema)), (plan.left, plan.right)
        side = 1 if plan.kind == "right" else 0
        rows = [row for row, _ in self._find(asked, inputs[side], wanted[side])]
        if not rows and plan.kind == "full":
            side = 1
            rows = [row for row, _ in self._find(asked, inputs[side], wanted[side])]
        lead, other, theirs = inputs[side], inputs[1 - side], wanted[1 - side]
        if not rows:
            return self._of(asked.of(lead, wanted[side]))
        near = self._pairs_near(plan, rows, side, asked)
        if near:
            return self._said(asked, _differs(plan, near[0], asked.wanted), near, plan)
        if plan.kind != "inner":
            return self._said(asked, "the row has no partner, so the other side is NULL", rows, lead)
        partner = self._finder.required(plan, rows[0], side, theirs)
        if partner is None:
            return self._said(asked, "NULL meets nothing", rows, lead)
        first = self._said(asked, _unmet(plan), rows, lead)
        if self._find(asked, other, partner):  # keys meet, another condition does not
            return first
        below = self._of(asked.of(other, partner))
        return Why(first.node, None, (), (*first.children, below), first.more, note=first.note)

    def _pairs_near(self, plan: Join, rows: list[Row], side: int, asked: Missing) -> list[Row]:
        """The pairs of the first row of a side that has partners, the likest of what is wanted first."""
        for row in rows[: self._rows]:
            made = [other for other, _ in self._finder.partners(plan, row, side, {}, asked.loops)]
            if made:
                pairs = [row + other if side == 0 else other + row for other in made]
                return sorted(pairs, key=lambda pair: -_alike(pair, asked.wanted))
        return []

    def _half(self, plan: Join, asked: Missing) -> Why:
        rows = [row for row, _ in self._find(asked, plan.left, asked.wanted)]
        if not rows:
            return self._of(asked.of(plan.left, asked.wanted))
        if plan.kind == "anti":
            near = [r for row in rows for r, _ in self._finder.partners(plan, row, 0, {}, asked.loops)]
            return self._said(asked, "rows are there that must not be", near, plan.right)
        partner = self._finder.required(plan, rows[0], 0, {})
        first = self._said(asked, _unmet(plan), rows, plan.left)
        if partner is None or self._find(asked, plan.right, partner):
            return first
        return Why(first.node, None, (), (*first.children, self._of(asked.of(plan.right, partner))), note=first.note)

    def _multiway(self, plan: Multiway, asked: Missing) -> Why:
        """The first input of a multiway join without a match for the inputs before it."""
        start: dict[int, Any] = {}
        for column, value in asked.wanted.items():
            if not same(start.setdefault(plan.select[column], value), value):
                return self._said(asked, "one variable has two values", (), plan)
        bindings: list[tuple[dict[int, Any], tuple[Why, ...]]] = [(start, ())]
        for number in self._finder.order(plan, start):
            input_, terms = plan.inputs_[number], plan.variables[number]
            going: list[tuple[dict[int, Any], tuple[Why, ...]]] = []
            for bound, near in bindings[: self._rows]:
                known = {c: bound[v] for c, v in enumerate(terms) if v is not None and v in bound}
                for row, _ in self._find(asked, input_, known)[: self._rows]:
                    new = {**bound, **{v: row[c] for c, v in enumerate(terms) if v is not None}}
                    made = Why(f"near: {named(input_)}", outside(input_.schema, row), input_.schema.names)
                    going.append((new, (*near, made)))
            if not going:
                bound, near = bindings[0]
                known = {c: bound[v] for c, v in enumerate(terms) if v is not None and v in bound}
                below = self._of(asked.of(input_, known))
                note = f"no row of {named(input_)} goes with the others"
                return Why(title(plan), None, (), (*near, below), max(len(bindings) - 1, 0), note=note)
            bindings = going
        return self._said(asked, "NULL meets nothing", (), plan)


def _unmet(plan: Join) -> str:
    return f"no partner meets {' and '.join(map(str, conjuncts(plan.condition)))}"


def _alike(row: Row, wanted: Wanted) -> int:
    return sum(same(row[c], v) for c, v in wanted.items())


def _differs(plan: Plan, row: Row, wanted: Wanted) -> str:
    """Where a row differs from what is wanted, in words."""
    for column, value in wanted.items():
        if not same(row[column], value):
            field = plan.schema.fields[column]
            return f"{field.name} is {value_told(field.type, row[column])}, not {value_told(field.type, value)}"
    return "it is there"
