"""Why a row is there: the row taken apart node by node, from the top of a plan down to rows of tables.

A row of a set needs one derivation. A row of a bag under an aggregate or a window needs all of them, so each question
says how many derivations are to be shown, and the answer how many more there are. Where the rows at the leaves would
give more than was asked about, those that keep the others away are there, too; see `everview.why.alone`.

Questions are asked by generators, which yield one and are sent its answer, because a derivation may be longer than
Python's stack is high.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from everview.plan.conditions import conjuncts, split
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
from everview.scalars.expressions import AggregateCall, Column, Literal
from everview.why.alone import gives, is_monotone, read_by, stacked
from everview.why.find import NO_LOOPS, Finder, Lookups
from everview.why.push import Entry, Row, Wanted, outside, pushed, same
from everview.why.telling import named, told
from everview.why.tree import Why

GONE = "the rows behind it are not kept any more"


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """Why a plan has a row, where recursive relations have the rows of ``loops``; ``most`` derivations are shown."""

    plan: Plan
    row: Row
    most: int = 1
    loops: Lookups = field(default_factory=dict[str, Any])
    within: tuple[tuple[Recursive, Any, Lookups], ...] = ()  # the recursions around, and what they are in themselves


Asking = Generator[RowQuestion, Why, Why]


class Reasons:
    """Explanations of rows of plans; ``rows`` bounds the rows that are shown below one node.

    With ``beside``, rows that keep others away stand below what rests on these being away.
    """

    def __init__(self, finder: Finder, rows: int, *, beside: bool = False) -> None:
        self._finder, self._rows, self._beside = finder, rows, beside
        self._told: set[tuple[int, str, Row]] = set()
        self._base: dict[str, dict[Row, int]] = {}  # the rows of tables at the leaves, and how often they are needed

    def of_view(self, view: str, row: Row) -> Why:
        """Why a view has a row."""
        told, held = _answered(self, self._view(view, row, 1)), self._finder.held
        plan = held.plan_of(view)
        if plan is None or self._beside or not told.complete or not stacked(plan, held.plan_of):
            return told
        if gives(held, self._finder.budget, plan, row, self._base):
            return told
        return Reasons(self._finder, self._rows, beside=True).of_view(view, row)

    # -- asking

    def asked(self, question: RowQuestion) -> Asking:
        """The generator that answers a question."""
        self._finder.budget.spend()
        plan = closed(question.plan)
        if isinstance(plan, OverSeveral):
            return self._over_several(plan, question)
        match plan:
            case Scan() as scan:
                return self._scan(scan, question)
            case Values() | Reference() as leaf:
                return self._leaf(leaf, question)
            case one:
                return self._over_one(one, question)

    def _made(
        self, question: RowQuestion, children: Iterable[Why], more: int = 0, note: str = "", ways: int = 0
    ) -> Why:
        plan, below = question.plan, tuple(children)
        if _passes_on(plan) and len(below) == 1 and not (more or note or ways):
            return below[0]  # what only passes rows on needs no line of its own
        return Why(title(plan), outside(plan.schema, question.row), plan.schema.names, below, more, ways, note)

    def _all(
        self,
        question: RowQuestion,
        parts: Iterable[tuple[Plan, Row]],
        more: int = 0,
        note: str = "",
        beside: Iterable[Why] = (),
    ) -> Asking:
        """The answer that is made of the answers for rows of inputs."""
        children: list[Why] = []
        for plan, row in parts:
            children.append((yield replace(question, plan=plan, row=row)))
        return self._made(question, (*children, *beside), more, note)

    def _ways(self, question: RowQuestion, parts: Iterable[tuple[Plan, Row]], left: int) -> Asking:
        """The answer that is made of some derivations, with ``left`` others; where one is enough, those are no rows."""
        given = list(parts)
        made = yield from self._all(question, given, left, "" if given else GONE)
        return replace(made, more=0, ways=left) if left and question.most == 1 else made

    def _find(self, question: RowQuestion, plan: Plan, wanted: Wanted) -> list[Entry]:
        return self._finder.find(plan, wanted, question.loops or NO_LOOPS)

    def _keeping_away(self, question: RowQuestion, plan: Plan, wanted: Wanted) -> tuple[Why, ...]:
        """The rows of tables by which a plan has no other rows with these values, if they are to be shown."""
        held = self._finder.held
        if not self._beside or is_monotone(plan, held.plan_of):
            return ()
        read = read_by(held, self._finder.budget, plan, wanted, question.loops or NO_LOOPS)
        rows = [(name, row, w) for name, weighted in read.items() for row, w in weighted.items() if w > 0]
        leaves = [
            Why(f"Scan {name}", outside(schema := held.schema_of(name), row), schema.names, table=name, times=w)
            for name, row, w in rows[: self._rows]
        ]
        return (Why("kept away by", None, (), tuple(leaves), len(rows) - len(leaves)),) if leaves else ()

    # -- leaves

    def _scan(self, scan: Scan, question: RowQuestion) -> Asking:
        held, name = self._finder.held, scan.relation
        row, names = question.row, scan.schema.names
        if held.plan_of(name) is not None:
            return (yield from self._view(name, row, question.most))
        weight = sum(w for _, w in held.rows(name, dict(enumerate(row)))[0])
        note = "" if held.is_table(name) else "this view is made by a function, which cannot be looked into"
        times = max(weight, 1) if question.most > 1 else 1
        base = self._base.setdefault(name, {})
        base[row] = max(base.get(row, 0), times)
        return Why(title(scan), outside(scan.schema, row), names, table=name, times=times, note=note)

    def _view(self, name: str, row: Row, most: int) -> Asking:
        plan = self._finder.held.plan_of(name)
        assert plan is not None, "a view has a plan"
        below = yield RowQuestion(plan, row, most, NO_LOOPS)
        return Why(f"view {self._finder.held.shown(name)}", outside(plan.schema, row), plan.schema.names, (below,))

    def _leaf(self, plan: Values | Reference, question: RowQuestion) -> Asking:
        if isinstance(plan, Values):
            return self._made(question, (), note="written in the query")
        for recursion, loop, around in reversed(question.within):
            if plan.name in dict(recursion.bindings):
                return (yield from self._round(plan.name, recursion, loop, around, question))
        raise AssertionError("a reference stands inside its recursion")
        yield question

    def _round(self, name: str, recursion: Recursive, loop: Any, around: Lookups, question: RowQuestion) -> Asking:
        """A row of a recursive relation, by rows of earlier rounds; one that has been explained is not once more."""
        made = Why(f"recursive {name}", outside(question.plan.schema, question.row), question.plan.schema.names)
        known = id(loop), name, question.row
        if known in self._told and name not in recursion.bags:
            return replace(made, again=True)
        self._told.add(known)
        bag, came = name in recursion.bags, loop.round_of(name, question.row)
        if came is None:
            return replace(made, note=GONE)
        lookups = loop.lookups(around, None if bag else came)
        most = question.most if bag else 1
        below = yield replace(question, plan=dict(recursion.bindings)[name], loops=lookups, most=most)
        return replace(made, children=(below,))

    # -- one input

    def _over_one(self, plan: OverOne, question: RowQuestion) -> Asking:
        match plan:
            case Filter(input_) | Explode(input_):
                own = question.row[: len(input_.schema)]
                return (yield from self._all(question, [(input_, own)]))
            case Distinct(input_):
                return (yield from self._all(replace(question, most=1), [(input_, question.row)]))
            case Project():
                return (yield from self._project(plan, question))
            case Aggregate():
                return (yield from self._aggregate(plan, question))
            case Top():
                return (yield from self._top(plan, question))
            case Window():
                return (yield from self._window(plan, question))

    def _project(self, plan: Project, question: RowQuestion) -> Asking:
        wanted = pushed(plan, dict(enumerate(question.row)))
        assert wanted is not None, "the row is there"
        if len(wanted) == len(plan.input.schema) and all(isinstance(e, Column | Literal) for e in plan.expressions_):
            only = tuple(wanted[column] for column in range(len(wanted)))  # there is one, and so it is there
            return (yield from self._all(question, [(plan.input, only)]))
        entries = self._find(question, plan.input, wanted)
        made = [row for row, w in entries if w > 0 and question.row in self._finder.applied(plan, [(row, w)]).weights]
        shown = made[: question.most]
        return (yield from self._ways(question, [(plan.input, row) for row in shown], len(made) - len(shown)))

    def _aggregate(self, plan: Aggregate, question: RowQuestion) -> Asking:
        wanted = pushed(plan, dict(enumerate(question.row)))
        assert wanted is not None, "the row is there"
        loops, most = question.loops or NO_LOOPS, self._rows
        entries, count = self._finder.some(plan.input, wanted, loops, most)
        if not all(isinstance(e, Column) for e in plan.groups):
            groups = question.row[: len(plan.groups)]
            entries = [e for e in entries if self._group(plan, e[0]) == groups]
            count = len(entries)
        first = self._deciding(plan, question, wanted)
        rows = list(dict.fromkeys([*first, *(row for row, _ in entries)]))[: max(most, len(first))]
        children: list[Why] = []
        for row in rows:
            below = yield replace(question, plan=plan.input, row=row, most=most)
            children.append(replace(below, note=first[row]) if row in first else below)
        note = "no row is in the group" if not count else f"{count:,} different rows" if count > 1 else ""
        children += self._keeping_away(question, plan.input, wanted)
        return self._made(question, children, max(count - len(rows), 0), note)

    def _group(self, plan: Aggregate, row: Row) -> Row:
        return tuple(self._finder.value(e, plan.input, row) for e in plan.groups)

    def _deciding(self, plan: Aggregate, question: RowQuestion, wanted: Wanted) -> dict[Row, str]:
        """The rows that have the values that min and max have chosen, one for each call."""
        deciding: dict[Row, str] = {}
        for call, value in zip(plan.calls, question.row[len(plan.groups) :], strict=True):
            if call.function not in ("min", "max") or value is None:
                continue
            (argument,) = call.arguments
            if not isinstance(argument, Column):
                continue
            if not same(wanted.get(argument.index, value), value):
                continue
            for row, w in self._find(question, plan.input, {**wanted, argument.index: value}):
                if (
                    w > 0
                    and self._group(plan, row) == question.row[: len(plan.groups)]
                    and self._passes(plan, call, row)
                ):
                    deciding.setdefault(row, f"decides {call}")
                    break
        return deciding

    def _passes(self, plan: Aggregate, call: AggregateCall, row: Row) -> bool:
        return call.filter is None or self._finder.value(call.filter, plan.input, row) is True

    def _top(self, plan: Top, question: RowQuestion) -> Asking:
        """A row among the first, and the rows before it that the node passes over."""
        wanted = {c: question.row[c] for c in plan.partition}
        beside = self._keeping_away(question, plan.input, wanted)
        if not plan.offset:
            return (yield from self._all(question, [(plan.input, question.row)], beside=beside))
        before = self._finder.applied(
            replace(plan, limit=plan.offset, offset=0), self._find(question, plan.input, wanted)
        )
        rows = [row for row, _ in before if row != question.row]
        shown, most = rows[: self._rows], replace(question, most=self._rows)
        parts = [(plan.input, question.row), *((plan.input, row) for row in shown)]
        return (yield from self._all(most, parts, len(rows) - len(shown), f"after {plan.offset:,} rows", beside))

    def _window(self, plan: Window, question: RowQuestion) -> Asking:
        """A row with the results of window functions: the row itself, and the others of its partitions."""
        own = question.row[: len(plan.input.schema)]
        wanted = pushed(plan, dict(enumerate(question.row)))
        assert wanted is not None, "the row is there"
        mine = [tuple(self._finder.value(e, plan.input, own) for e in call.partition) for call in plan.calls]

        def beside(row: Row) -> bool:
            return any(
                tuple(self._finder.value(e, plan.input, row) for e in call.partition) == part
                for call, part in zip(plan.calls, mine, strict=True)
            )

        rows = [row for row, w in self._find(question, plan.input, wanted) if w > 0 and row != own and beside(row)]
        shown = [own, *rows[: self._rows - 1]]
        more = len(rows) + 1 - len(shown)
        asked = replace(question, most=self._rows)
        note = f"{len(rows) + 1:,} rows in its partitions"
        away = self._keeping_away(question, plan.input, wanted)
        return (yield from self._all(asked, [(plan.input, row) for row in shown], more, note, away))

    # -- several inputs

    def _over_several(self, plan: OverSeveral, question: RowQuestion) -> Asking:
        row = question.row
        match plan:
            case Join():
                return (yield from self._join(plan, question))
            case Asof(left, right):
                return (yield from self._asof(plan, left, right, question))
            case During(left):
                return (yield from self._all(question, [(left, row)], note="it is its time"))
            case Multiway():
                return (yield from self._multiway(plan, question))
            case Union(inputs):
                wanted = dict(enumerate(row))
                having = [i for i in inputs if any(w > 0 for _, w in self._find(question, i, wanted))]
                shown = having[: question.most]
                return (yield from self._ways(question, [(i, row) for i in shown], len(having) - len(shown)))
            case Intersect(left, right):
                return (yield from self._all(question, [(left, row), (right, row)]))
            case Except():
                return (yield from self._except(plan, question))
            case Recursive(_, body):
                loop = self._finder.loop(plan, question.loops or NO_LOOPS)
                around = question.loops or NO_LOOPS
                inner = (*question.within, (plan, loop, around))
                below = yield replace(question, plan=body, loops=loop.lookups(around), within=inner)
                beside = self._keeping_away(question, plan, dict(enumerate(row))) if plan.inflates else ()
                return self._made(question, (below, *beside)) if beside else below
            case Lateral():
                raise AssertionError("an optimized plan has no lateral join")

    def _except(self, plan: Except, question: RowQuestion) -> Asking:
        """A row that the right side has not, or of which the left side has more."""
        wanted = dict(enumerate(question.row))
        if plan.all and any(w > 0 for _, w in self._find(question, plan.right, wanted)):
            parts, asked = [(side, question.row) for side in plan.inputs], replace(question, most=self._rows)
            return (yield from self._all(asked, parts, note="the left side has it more often"))
        below = yield replace(question, plan=plan.left)
        note = f"no row with {told(plan.right.schema, wanted)}"
        beside = self._keeping_away(question, plan.right, wanted)
        return self._made(question, (below, Why(f"absent: {named(plan.right)}", None, (), beside, note=note)))

    def _join(self, plan: Join, question: RowQuestion) -> Asking:
        width, row, loops = len(plan.left.schema), question.row, question.loops or NO_LOOPS
        if plan.kind in ("semi", "anti"):
            below = yield replace(question, plan=plan.left)
            partners = self._finder.partners(plan, row, 0, {}, loops)
            if plan.kind == "anti":
                return self._made(question, (below, self._absent(plan, row, 0, question)))
            if not partners:
                return self._made(question, (below,), note=GONE)
            partner = yield replace(question, plan=plan.right, row=partners[0][0], most=1)
            return self._made(question, (below, partner), ways=len(partners) - 1)
        left, right = row[:width], row[width:]
        if plan.kind != "inner" and not self._meets(plan, left, right, question):
            padded_right = plan.kind == "left" or (plan.kind == "full" and self._has(question, plan.left, left))
            side, own = (0, left) if padded_right else (1, right)
            below = yield replace(question, plan=plan.inputs[side], row=own)
            note = f"NULL for {named(plan.inputs[1 - side])}"
            return self._made(question, (below, self._absent(plan, own, side, question)), note=note)
        return (yield from self._all(question, [(plan.left, left), (plan.right, right)]))

    def _absent(self, plan: Join, row: Row, side: int, question: RowQuestion) -> Why:
        """The explanation that a row of one side has no partner."""
        missing = plan.inputs[1 - side]
        known = self._finder.required(plan, row, side, {})
        if known is None:
            return Why(f"absent: {named(missing)}", None, note="NULL meets nothing")
        rest = [str(part) for part in conjuncts(split(plan.condition, len(plan.left.schema)).rest)]
        parts = [*([told(missing.schema, known)] if known else []), *rest]
        note = f"no row with {' and '.join(parts)}" if parts else "no row"
        return Why(f"absent: {named(missing)}", None, (), self._keeping_away(question, missing, known), note=note)

    def _meets(self, plan: Join, left: Row, right: Row, question: RowQuestion) -> bool:
        """Whether a row of an outer join is a pair, and not padded."""
        loops = question.loops or NO_LOOPS
        return self._has(question, plan.left, left) and any(
            other == right for other, _ in self._finder.partners(plan, left, 0, dict(enumerate(right)), loops)
        )

    def _has(self, question: RowQuestion, plan: Plan, row: Row) -> bool:
        return any(w > 0 for _, w in self._find(question, plan, dict(enumerate(row))))

    def _asof(self, plan: Asof, left: Plan, right: Plan, question: RowQuestion) -> Asking:
        width = len(left.schema)
        mine, other = question.row[:width], question.row[width:]
        beside = self._keeping_away(question, right, {b: mine[a] for a, b in plan.keys})
        if plan.how == "left" and other[plan.at[1]] is None:
            below = yield replace(question, plan=left, row=mine)
            absent = Why(f"absent: {named(right)}", None, (), beside, note="no row is in force at its time")
            return self._made(question, (below, absent), note=f"NULL for {named(right)}")
        return (yield from self._all(question, [(left, mine), (right, other)], beside=beside))

    def _multiway(self, plan: Multiway, question: RowQuestion) -> Asking:
        wanted = dict(enumerate(question.row))
        shown, count = list[tuple[Row, ...]](), 0
        for _, w, rows in self._finder.bindings(plan, wanted, question.loops or NO_LOOPS):
            if w <= 0:
                continue
            count += 1
            if len(shown) < question.most:
                shown.append(rows)
            if count > question.most + self._rows:
                break
        parts = dict.fromkeys(part for rows in shown for part in zip(plan.inputs_, rows, strict=True))
        return (yield from self._ways(question, parts, count - len(shown)))


def _passes_on(plan: Plan) -> bool:
    """Whether a node only passes rows on, perhaps without some of their columns."""
    if not isinstance(plan, Project):
        return isinstance(plan, Distinct | Union)
    columns = [e for e in plan.expressions_ if isinstance(e, Column)]
    names = [plan.input.schema.names[column.index] for column in columns]
    return len(columns) == len(plan.names) and tuple(names) == plan.schema.names


def _answered(reasons: Reasons, first: Asking) -> Why:
    """Run generators that ask each other questions, on an explicit stack instead of Python's."""
    stack, answer = [first], None
    while True:
        try:
            question = stack[-1].send(answer)  # pyright: ignore[reportArgumentType]
        except StopIteration as done:
            stack.pop()
            answer = done.value
            if not stack:
                return answer
        else:
            stack.append(reasons.asked(question))
            answer = None
