"""The meaning of a plan: every node by its definition, over all rows at once, from scratch.

Rows are tuples of Python values, bags are plain dictionaries; nothing is optimized, lowered or compiled. A subquery
is evaluated again for every row of the query around it, as SQL defines it.

>>> from everview.plan.nodes import Distinct, Project, Scan
>>> from everview.types import Schema
>>> edge = Scan("edge", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"))
>>> starts = Distinct(Project(edge, (edge.column(0),), ("start",)))
>>> evaluate(starts, {"edge": [((1, 2), 1), ((1, 3), 2)]})
ZSet({(1,): 1})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, assert_never

from everview.circuit.bounds import LoopBounds
from everview.errors import ArithmeticFailure, EndlessLoop
from everview.operators.index import Direction
from everview.oracle.asof import distance
from everview.oracle.calls_of_plans import called, direction
from everview.oracle.rows import Entry, Row, Rows
from everview.oracle.scalars import value_of
from everview.oracle.values import in_order, inward, outward
from everview.oracle.windows import framed
from everview.plan.growing import grows
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
    Leaf,
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
from everview.scalars.expressions import (
    AggregateCall,
    AggregateWindowCall,
    Call,
    Column,
    Exists,
    Expression,
    InQuery,
    Literal,
    Order,
    Outer,
    Scalar,
    WindowCall,
    rewritten,
)
from everview.types import DATE, TIMESTAMP, Schema, Type, unknown_name
from everview.zset import ZSet

CHOOSING = (
    *("lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "min", "max"),
    *("session start", "session last"),
)

Outside = tuple[Row, ...]  # the rows of the queries around, the nearest last
Given = Mapping[str, Iterable[tuple[Any, int]]]


def evaluate(plan: Plan, relations: Given) -> ZSet:
    """The rows of a plan when its relations hold these weighted rows, as views show them."""
    return ZSet.of(contents(plan, relations).outside(plan.schema))


def contents(plan: Plan, relations: Given) -> Rows:
    """`evaluate`, with rows as the oracle holds them."""
    return Evaluation(relations).of(plan, ())


class Evaluation:
    """The evaluation of plans over relations that hold given rows."""

    def __init__(self, relations: Given) -> None:
        self.relations = relations
        self.bound: dict[str, Rows] = {}
        clock = [time for (time,), w in Rows.inside(CLOCK_SCHEMA, relations.get(CLOCK, ())) if w > 0]
        self.now = _out(TIMESTAMP, max(clock)) if clock else None  # without a clock, the wall's time

    def of(self, plan: Plan, outside: Outside) -> Rows:
        plan = closed(plan)
        if isinstance(plan, OverSeveral):
            return self._over_several(plan, outside)
        match plan:
            case Scan() | Values() | Reference() as leaf:
                return self._leaf(leaf)
            case one:
                return self._over_one(one, outside)

    def _leaf(self, plan: Leaf) -> Rows:
        match plan:
            case Scan(relation, schema):
                if relation not in self.relations:
                    raise unknown_name("relation", relation, self.relations)
                return Rows.inside(schema, self.relations[relation])
            case Values(rows, schema):
                return Rows.inside(schema, [(tuple(literal.value for literal in row), 1) for row in rows])
            case Reference(name):
                return self.bound[name]
            case _:
                assert_never(plan)

    def _over_one(self, plan: OverOne, outside: Outside) -> Rows:
        match plan:
            case Project(input_, expressions, _):
                return Rows.of((self._values(expressions, r, outside), w) for r, w in self.of(input_, outside))
            case Filter(input_, predicate):
                kept = self.of(input_, outside)
                return Rows({r: w for r, w in kept if self._value(predicate, r, outside) is True})
            case Distinct(input_):
                return Rows({r: 1 for r, w in self.of(input_, outside) if w > 0})
            case Aggregate():
                return self._aggregate(plan, outside)
            case Top():
                return self._top(plan, outside)
            case Window():
                return self._window(plan, outside)
            case Explode():
                return Rows.of(self._explode(plan, outside))
            case _:
                assert_never(plan)

    def _over_several(self, plan: OverSeveral, outside: Outside) -> Rows:
        match plan:
            case Join():
                return Rows.of(self._join(plan, outside))
            case Asof():
                return Rows.of(self._asof(plan, outside))
            case During():
                return Rows({row: w for row, w in self.of(plan.left, outside) if self._during(plan, row, outside)})
            case Lateral():
                return Rows.of(self._lateral(plan, outside))
            case Multiway():
                return self._multiway(plan, outside)
            case Union():
                return Rows.of(entry for i in plan.inputs for entry in self.of(i, outside))
            case Intersect() | Except():
                return self._compared(plan, outside)
            case Recursive():
                return self._recursive(plan, outside)
            case _:
                assert_never(plan)

    def _during(self, plan: During, row: Row, outside: Outside) -> bool:
        (now,) = max((time for time, w in self.of(plan.right, outside) if w > 0), default=(None,))
        since, until = (None if e is None else self._value(e, row, outside) for e in (plan.since, plan.until))
        return now is not None and (since is None or since <= now) and (until is None or now < until)

    def _compared(self, plan: Intersect | Except, outside: Outside) -> Rows:
        a, b = self._both(plan.left, plan.right, outside)
        if isinstance(plan, Intersect):
            shared = {r: min(w, b[r]) for r, w in a.items() if r in b}
            return Rows(shared if plan.all else dict.fromkeys(shared, 1))
        if plan.all:
            return Rows({r: w - b.get(r, 0) for r, w in a.items() if w > b.get(r, 0)})
        return Rows({r: 1 for r in a if r not in b})

    # -- expressions

    def _values(self, expressions: Sequence[Expression], row: Row, outside: Outside) -> Row:
        return tuple(self._value(e, row, outside) for e in expressions)

    def _value(self, expression: Expression, row: Row, outside: Outside) -> Any:
        """The value of an expression; columns, outer columns and subqueries become constants first."""

        def known(e: Expression) -> Expression:
            match e:
                case Column(index):
                    return Literal(_out(e.type, row[index]), e.type)
                case Outer(index, depth):
                    return Literal(_out(e.type, outside[-depth][index]), e.type)
                case Exists(plan, negated):
                    verdict = any(w > 0 for _, w in self.of(plan, (*outside, row)))
                    return Literal(verdict != negated, e.type)
                case Scalar(plan):
                    return Literal(_out(e.type, self._scalar(plan, (*outside, row))), e.type)
                case InQuery(arguments, plan, negated):
                    given = tuple(_in(a.type, value_of(a, (), self.now)) for a in arguments)
                    verdict = _among(given, self.of(plan, (*outside, row)))
                    return Literal(verdict if verdict is None else verdict != negated, e.type)
                case _:
                    return e

        return _in(expression.type, value_of(rewritten(expression, known), (), self.now))

    def _scalar(self, plan: Plan, outside: Outside) -> Any:
        rows = [row for row, w in self.of(plan, outside) for _ in range(w)]
        if len(rows) > 1:
            raise ArithmeticFailure("a subquery that is used as a value gave several rows", hint="limit it to one")
        return rows[0][0] if rows else None

    # -- groups and orders

    def _aggregate(self, plan: Aggregate, outside: Outside) -> Rows:
        groups: dict[Row, list[Entry]] = {} if plan.groups else {(): []}
        for row, w in self.of(plan.input, outside):
            groups.setdefault(self._values(plan.groups, row, outside), []).append((row, w))
        there = {key: entries for key, entries in groups.items() if not plan.groups or sum(w for _, w in entries) > 0}
        return Rows(
            {(*key, *(self._call(c, entries, outside) for c in plan.calls)): 1 for key, entries in there.items()}
        )

    def _call(self, call: AggregateCall, entries: list[Entry], outside: Outside) -> Any:
        """The result of a call over the rows that its filter keeps, each as arguments and ORDER BY keys."""
        kept = [e for e in entries if call.filter is None or self._value(call.filter, e[0], outside) is True]
        by = tuple(e for e, _ in call.order)
        given = [(self._values((*call.arguments, *by), row, outside), w) for row, w in kept]
        return called(call, given)

    def _ordered(
        self, rows: Iterable[Entry], order: Order, types: Sequence[Type], outside: Outside
    ) -> list[tuple[Row, Row]]:
        """Rows sorted by some expressions and then by all columns, each with the sort keys; weight w makes w rows."""
        width = len(order)
        keyed: list[Entry] = [
            ((*self._values([e for e, _ in order], row, outside), *row), w) for row, w in rows if w > 0
        ]
        keys = [(place, e.type, direction(how)) for place, (e, how) in enumerate(order)]
        keys += [(width + place, type_, Direction.ASC) for place, type_ in enumerate(types)]
        return [(row[:width], row[width:]) for row, w in in_order(keyed, keys) for _ in range(w)]

    def _top(self, plan: Top, outside: Outside) -> Rows:
        first: list[Entry] = []
        for rows in self.of(plan.input, outside).by(plan.partition).values():
            ordered = self._ordered(rows, plan.order, plan.input.schema.types, outside)[plan.offset :]
            first += [(row, 1) for _, row in (ordered if plan.limit is None else ordered[: plan.limit])]
        return Rows.of(first)

    def _window(self, plan: Window, outside: Outside) -> Rows:
        """Window calls, those of one window together, one window after the other; earlier results break ties."""
        entries = list(self.of(plan.input, outside))
        windows: dict[object, list[int]] = {}
        for number, call in enumerate(plan.calls):
            windows.setdefault((call.partition, call.order), []).append(number)
        types, numbers = list(plan.input.schema.types), list[int]()
        for chosen in windows.values():
            calls = [plan.calls[number] for number in chosen]
            entries = list(Rows.of(self._windowed(calls, entries, types, outside)))
            types += [call.type for call in calls]
            numbers += chosen
        width = len(plan.input.schema)
        places = [*range(width), *(width + numbers.index(place) for place in range(len(plan.calls)))]
        return Rows.of((tuple(row[place] for place in places), w) for row, w in entries)

    def _windowed(
        self, calls: Sequence[WindowCall], entries: list[Entry], types: Sequence[Type], outside: Outside
    ) -> Iterator[Entry]:
        parts: dict[Row, list[Entry]] = {}
        for row, w in entries:
            parts.setdefault(self._values(calls[0].partition, row, outside), []).append((row, w))
        for part in parts.values():
            ordered = self._ordered(part, calls[0].order, types, outside)
            keys = [key for key, _ in ordered]
            results: list[list[Any]] = []
            for call in calls:
                inner = call.inner if isinstance(call, AggregateWindowCall) else ()
                read = (*call.arguments, *(by for by, _ in inner))
                arguments = [self._values(read, row, outside) for _, row in ordered]
                kept = [call.filter is None or self._value(call.filter, row, outside) is True for _, row in ordered]
                results.append(framed(call, keys, arguments, kept))
            for place, (_, row) in enumerate(ordered):
                yield (*row, *(_result(call, values[place]) for call, values in zip(calls, results, strict=True))), 1

    # -- several relations

    def _join(self, plan: Join, outside: Outside) -> Iterator[Entry]:
        left, right = list(self.of(plan.left, outside)), list(self.of(plan.right, outside))

        def meets(a: Row, b: Row) -> bool:
            return plan.condition is None or self._value(plan.condition, a + b, outside) is True

        near = _candidates(plan, right)
        pairs = [(i, j) for i, (a, _) in enumerate(left) for j in near(a) if meets(a, right[j][0])]
        lefts, rights = {i for i, _ in pairs}, {j for _, j in pairs}
        if plan.kind in ("semi", "anti"):
            yield from (e for i, e in enumerate(left) if (i in lefts) == (plan.kind == "semi"))
            return
        yield from ((left[i][0] + right[j][0], left[i][1] * right[j][1]) for i, j in pairs)
        if plan.kind in ("left", "full"):
            nothing = (None,) * len(plan.right.schema)
            yield from ((row + nothing, w) for i, (row, w) in enumerate(left) if i not in lefts)
        if plan.kind in ("right", "full"):
            nothing = (None,) * len(plan.left.schema)
            yield from ((nothing + row, w) for j, (row, w) in enumerate(right) if j not in rights)

    def _lateral(self, plan: Lateral, outside: Outside) -> Iterator[Entry]:
        nothing = (None,) * len(plan.right.schema)
        for row, w in self.of(plan.left, outside):
            partners = list(self.of(plan.right, (*outside, row)))
            yield from ((row + other, w * v) for other, v in partners)
            if not partners and plan.kind == "left":
                yield row + nothing, w

    def _explode(self, plan: Explode, outside: Outside) -> Iterator[Entry]:
        for row, w in self.of(plan.input, outside):
            elements = self._value(plan.array, row, outside) or ()
            for place, element in enumerate(elements):
                yield (*row, element) if plan.place is None else (*row, place, element), w
            if not elements and plan.outer:
                yield row + (None,) * (len(plan.schema) - len(row)), w

    def _asof(self, plan: Asof, outside: Outside) -> Iterator[Entry]:
        right = [row for row, w in self.of(plan.right, outside) if w > 0]
        left_time, right_time = plan.at
        type_ = plan.left.schema.fields[left_time].type
        nothing = (None,) * len(plan.right.schema)
        ties = [
            (field, f.type, Direction.ASC) for field, f in enumerate(plan.right.schema.fields) if field != right_time
        ]
        for row, w in self.of(plan.left, outside):
            t = row[left_time]
            near = [r for r in right if all(row[a] == r[b] for a, b in plan.keys) and t is not None]
            near = [r for r in near if r[right_time] is not None and _in_force(plan, t, r[right_time])]
            if plan.tolerance is not None:
                near = [r for r in near if distance(type_, t, r[right_time]) <= _units(plan.tolerance, type_)]
            if not near:
                if plan.how == "left":
                    yield row + nothing, w
                continue
            best = min(near, key=lambda r, t=t: (distance(type_, t, r[right_time]), r[right_time] > t))[right_time]
            last = in_order([(r, 1) for r in near if r[right_time] == best], ties)[-1][0]
            yield row + last, w

    def _multiway(self, plan: Multiway, outside: Outside) -> Rows:
        joining: frozenset[int] = frozenset() if plan.null_safe else plan.shared
        bindings: list[tuple[dict[int, Any], int]] = [({}, 1)]
        for input_, terms in zip(plan.inputs, plan.variables, strict=True):
            rows = list(self.of(input_, outside))
            bindings = [
                (bound, v * w)
                for before, v in bindings
                for row, w in rows
                if (bound := _bound(before, terms, row, joining)) is not None
            ]
        return Rows.of((tuple(bound[v] for v in plan.select), w) for bound, w in bindings)

    def _both(self, left: Plan, right: Plan, outside: Outside) -> tuple[dict[Row, int], dict[Row, int]]:
        a, b = ({row: w for row, w in self.of(side, outside) if w > 0} for side in (left, right))
        return a, b

    def _recursive(self, plan: Recursive, outside: Outside) -> Rows:
        """The body over all bindings, computed in rounds from nothing until a round changes nothing."""
        before = dict(self.bound)
        self.bound = before | {name: Rows({}) for name, _ in plan.bindings}
        limit = LoopBounds.given().of(None, grows=grows(plan))
        for _ in range(limit):
            derived = {name: self._binding(plan, name, p, outside) for name, p in plan.bindings}
            if all(derived[name].weights == self.bound[name].weights for name in derived):
                break
            self.bound = self.bound | derived
        else:
            raise EndlessLoop(f"a recursion has not ended after {limit:,} rounds", hint="does it make new values?")
        result = self.of(plan.body, outside)
        self.bound = before
        return result

    def _binding(self, plan: Recursive, name: str, part: Plan, outside: Outside) -> Rows:
        rows = self.of(part, outside)
        return rows if name in plan.bags else Rows({row: 1 for row, w in rows if w > 0})


def _result(call: WindowCall, value: Any) -> Any:
    """The result of a window function as rows hold it; a function that picks a row's value needs no conversion."""
    return value if call.function.lower() in CHOOSING else _in(call.type, value)


def _candidates(plan: Join, right: Sequence[Entry]) -> Callable[[Row], Sequence[int]]:
    """The numbers of the right rows that a left row may meet: those with the same values, where columns must be equal.

    Trying all pairs would take minutes where two tables have some thousand rows.
    """
    columns = list(_equal_columns(plan.condition, plan.left.schema, plan.right.schema))
    if not columns:
        every = range(len(right))
        return lambda row: every
    by_values: dict[Row, list[int]] = {}
    for number, (row, _) in enumerate(right):
        by_values.setdefault(tuple(row[b] for _, b in columns), []).append(number)
    return lambda row: by_values.get(tuple(row[a] for a, _ in columns), ())


def _equal_columns(condition: Expression | None, left: Schema, right: Schema) -> Iterator[tuple[int, int]]:
    """The columns of the left and the right of one type that a condition requires to be equal."""
    match condition:
        case Call("and", parts):
            for part in parts:
                yield from _equal_columns(part, left, right)
        case Call("equal", (Column(a), Column(b))):
            a, b = min(a, b), max(a, b) - len(left)
            if a < len(left) and b >= 0 and left[a].type == right[b].type and inward(left[a].type) is None:
                yield a, b
        case _:
            pass


def _in(type_: Type, value: Any) -> Any:
    change = inward(type_) if value is not None else None
    return value if change is None else change(value)


def _out(type_: Type, value: Any) -> Any:
    change = outward(type_) if value is not None else None
    return value if change is None else change(value)


def _among(given: Row, rows: Rows) -> bool | None:
    """Whether a row is among others; unknown if none equals it, but one with NULL might."""
    answers = {_equal(given, row) for row, w in rows if w > 0}
    return True if True in answers else None if None in answers else False


def _equal(a: Row, b: Row) -> bool | None:
    parts = [None if x is None or y is None else x == y for x, y in zip(a, b, strict=True)]
    return False if False in parts else None if None in parts else True


def _bound(before: dict[int, Any], terms: Sequence[int | None], row: Row, shared: frozenset[int]) -> Any:
    """A binding with the values of a row, unless they differ or are NULL where they join."""
    binding = dict(before)
    for variable, value in zip(terms, row, strict=True):
        if variable is None:
            continue
        if variable in shared and value is None:
            return None
        if binding.setdefault(variable, value) != value:
            return None
    return binding


def _in_force(plan: Asof, t: Any, since: Any) -> bool:
    if plan.strict and since == t:
        return False
    return plan.direction == "nearest" or (since <= t if plan.direction == "backward" else since >= t)


def _units(tolerance: Any, type_: Type) -> Any:
    if isinstance(tolerance, timedelta):
        return tolerance.days if type_ == DATE else tolerance // timedelta(microseconds=1)
    return tolerance
