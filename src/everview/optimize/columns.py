"""Leaving out columns that nobody reads, as far down in the plan as possible.

From the top, every node collects the columns that any of its readers needs; then the plan is built anew from the
bottom. So a part that is shared stays shared. Where rows as a whole matter (distinct, sets, places in an order,
recursion), all columns are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from everview.operators.window import SESSIONS
from everview.plan.node import Plan, unique
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Filter,
    Join,
    Multiway,
    Project,
    Recursive,
    Scan,
    Top,
    Union,
    Values,
    Window,
)
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal, WindowCall, columns_of, moved
from everview.scalars.kinds import VOID
from everview.types import STRING, Field, Schema

# Window functions that see peers only: which of several equal rows comes first does not matter to them.
OF_PEERS = ("rank", "dense_rank", "percent_rank", "cume_dist", *SESSIONS)


def prune_columns(plan: Plan) -> Plan:
    """The plan with the same columns, over narrower parts."""
    return _built(_Needs(plan), plan)


def narrow_joins(plan: Plan) -> Plan:
    """The plan with projections below joins, so that no join keeps a column that only earlier conditions read."""
    return _built(_Kept(plan), plan)


def _built(needs: _Needs, plan: Plan) -> Plan:
    built = needs.built(plan)
    return _picked(built, [built.places[column] for column in range(len(plan.schema))], plan)


@dataclass(frozen=True)
class Narrow:
    """A node that was built anew, and the new positions of its old columns."""

    plan: Plan
    places: dict[int, int]


def _typed(value: Expression) -> Expression:
    """The value with a bare NULL as text: a column needs a type, and one of NULLs is kept only to count rows."""
    return Literal(None, STRING) if value.type == VOID else value


def _with_a_type(field: Field) -> Field:
    return replace(field, type=STRING) if field.type == VOID else field


def _projected(inner: Narrow, expressions: Sequence[Expression], names: Sequence[str], needed: list[int]) -> Narrow:
    kept = tuple(_typed(_moved(expressions[column], inner)) for column in needed)
    return _numbered(Project(inner.plan, kept, tuple(names[column] for column in needed)), needed)


def _picked_values(row: Sequence[Literal], columns: list[int], fields: list[Field]) -> tuple[Literal, ...]:
    return tuple(Literal(row[column].value, field.type) for column, field in zip(columns, fields, strict=True))


def _picked(narrow: Narrow, columns: list[int], old: Plan) -> Plan:
    plan = narrow.plan
    if columns == list(range(len(plan.schema))) and plan.schema.names == old.schema.names:
        return plan
    return Project(plan, tuple(plan.column(column) for column in columns), old.schema.names)


class _Needs:
    """The columns that readers need of every node."""

    def __init__(self, plan: Plan) -> None:
        self.needs: dict[Plan, set[int]] = {plan: set(range(len(plan.schema)))}
        self._known: dict[Plan, Narrow] = {}
        for part in _from_the_top(plan):
            for input_, columns in zip(part.inputs, _asked(part, self.needs[part]), strict=True):
                self.needs.setdefault(input_, set()).update(columns or {0})  # a row has a column at least

    def built(self, plan: Plan) -> Narrow:
        if plan not in self._known:
            self._known[plan] = self._built(plan, sorted(self.needs[plan]))
        return self._known[plan]

    def _built(self, plan: Plan, needed: list[int]) -> Narrow:
        match plan:
            case Scan():
                return _some(plan, needed)
            case Values(rows, schema):
                fields = [_with_a_type(schema.fields[column]) for column in needed]
                narrow = tuple(_picked_values(row, needed, fields) for row in rows)
                return _numbered(Values(narrow, Schema(fields)), needed)
            case Project(input_, expressions, names):
                return _projected(self.built(input_), expressions, names, needed)
            case Filter(input_, predicate):
                inner = self.built(input_)
                return replace(inner, plan=Filter(inner.plan, _moved(predicate, inner)))
            case Join():
                return self._join(plan)
            case Multiway():
                return self._multiway(plan, needed)
            case Aggregate():
                return self._aggregate(plan, needed)
            case Window():
                return self._window(plan, needed)
            case Union():
                inputs = (_some_of(self.built(i), needed) for i in plan.inputs)
                return _numbered(Union(tuple(inputs)), needed)
            case Asof(left, right):
                return self._asof(plan, self.built(left), _whole(self.built(right), right))
            case _:
                inputs = tuple(_whole(self.built(i), i) for i in plan.inputs)
                return Narrow(plan.with_inputs(*inputs), _same(plan))

    def _asof(self, plan: Asof, left: Narrow, right: Plan) -> Narrow:
        keys = tuple((left.places[a], b) for a, b in plan.keys)
        times = (left.places[plan.at[0]], plan.at[1])
        made = replace(plan, left=left.plan, right=right, keys=keys, at=times)
        return Narrow(made, _beside(left.places, len(left.plan.schema), _same(plan.right), len(plan.left.schema)))

    def _sides(self, plan: Plan) -> list[Narrow]:
        """The inputs of a join."""
        return list(map(self.built, plan.inputs))

    def _join(self, plan: Join) -> Narrow:
        a, b = self._sides(plan)
        width = len(plan.left.schema)
        places = _beside(a.places, len(a.plan.schema), b.places, width)
        condition = None if plan.condition is None else moved(plan.condition, places.__getitem__)
        made = Join(a.plan, b.plan, plan.kind, condition)
        return Narrow(made, a.places if plan.kind in ("semi", "anti") else places)

    def _multiway(self, plan: Multiway, needed: list[int]) -> Narrow:
        inner = self._sides(plan)
        read = {plan.select[column] for column in needed} | plan.shared
        terms: list[tuple[int | None, ...]] = []
        for narrow, old in zip(inner, plan.variables, strict=True):
            own: list[int | None] = [None] * len(narrow.plan.schema)
            for before, after in narrow.places.items():
                own[after] = old[before] if old[before] in read else None
            terms.append(tuple(own))
        select, names = tuple(plan.select[column] for column in needed), tuple(plan.names[column] for column in needed)
        order = None if plan.order is None else tuple(v for v in plan.order if v in read)
        made = Multiway(tuple(n.plan for n in inner), tuple(terms), select, names, order, plan.null_safe)
        return _numbered(made, needed)

    def _aggregate(self, plan: Aggregate, needed: list[int]) -> Narrow:
        inner, count = self.built(plan.input), len(plan.groups)
        chosen = _calls(plan, needed)
        groups = tuple(_moved(g, inner) for g in plan.groups)
        calls = tuple(c for column in chosen if isinstance(c := _moved(plan.calls[column], inner), AggregateCall))
        kept = [*range(count), *(count + column for column in chosen)]
        made = Aggregate(inner.plan, groups, calls, tuple(plan.names[column] for column in kept))
        return _numbered(made, kept)

    def _window(self, plan: Window, needed: list[int]) -> Narrow:
        inner, width = self.built(plan.input), len(plan.input.schema)
        chosen = [column - width for column in needed if column >= width]
        if not chosen:
            return inner
        if plan.calls[chosen[0]].function in SESSIONS:  # where a session begins and ends: its end says when it is over
            chosen = [*range(len(plan.calls))]
        calls = tuple(c for column in chosen if isinstance(c := _moved(plan.calls[column], inner), WindowCall))
        made = Window(inner.plan, calls, tuple(plan.names[column] for column in chosen))
        places = {width + old: len(inner.plan.schema) + new for new, old in enumerate(chosen)}
        return Narrow(made, inner.places | places)


class _Kept(_Needs):
    """The needed columns, with the inputs of joins projected to nothing else."""

    def _sides(self, plan: Plan) -> list[Narrow]:
        asked = _asked(plan, self.needs[plan])
        return [self._side(i, sorted(columns or {0})) for i, columns in zip(plan.inputs, asked, strict=True)]

    def _side(self, plan: Plan, needed: list[int]) -> Narrow:
        built = self.built(plan)
        if len(needed) == len(built.plan.schema):
            return built
        return _numbered(_some_of(built, needed), needed)


def _from_the_top(plan: Plan) -> list[Plan]:
    """All nodes from the top down: a node comes after every node that reads it."""
    done: dict[Plan, None] = {}

    def visit(part: Plan) -> None:
        if part not in done:
            for input_ in part.inputs:
                visit(input_)
            done[part] = None

    visit(plan)
    return list(reversed(done))


def _asked(plan: Plan, needed: set[int]) -> list[set[int]]:
    """The columns of its inputs that a node needs if these of its own columns are needed."""
    match plan:
        case Project(_, expressions, _):
            return [_read(expressions[column] for column in needed)]
        case Filter(_, predicate):
            return [needed | columns_of(predicate)]
        case Join(left):
            return list(_apart(_read(plan.expressions) | needed, len(left.schema)))
        case Multiway():
            return _asked_of_atoms(plan, needed)
        case Aggregate():
            return [_read([*plan.groups, *(plan.calls[column] for column in _calls(plan, sorted(needed)))])]
        case Window(input_):
            return [_asked_of_window(plan, needed, len(input_.schema))]
        case Union():
            return [set(needed) for _ in plan.inputs]
        case Asof(left, right):
            own, _ = _apart(needed, len(left.schema))
            return [own | {a for a, _ in plan.keys} | {plan.at[0]}, set(range(len(right.schema)))]
        case Recursive() | Top() | _:
            return [set(range(len(i.schema))) for i in plan.inputs]


def _apart(columns: set[int], width: int) -> tuple[set[int], set[int]]:
    """The columns before ``width``, and those from there on, counted from 0."""
    return {column for column in columns if column < width}, {column - width for column in columns if column >= width}


def _asked_of_window(plan: Window, needed: set[int], width: int) -> set[int]:
    own, results = _apart(needed, width)
    calls = [plan.calls[number] for number in results]
    read = own | _read(calls)
    if all(call.function in OF_PEERS or _is_of_all(call) or read <= _told_apart(call) for call in calls):
        return read
    return set(range(width))


def _asked_of_atoms(plan: Multiway, needed: set[int]) -> list[set[int]]:
    read = {plan.select[column] for column in needed} | plan.shared
    return [{column for column, variable in enumerate(terms) if variable in read} for terms in plan.variables]


def _is_of_all(call: WindowCall) -> bool:
    """Whether a call is an aggregate of whole peers, or of the whole partition."""
    ordered = call.function in ("first_value", "last_value", "nth_value", "lag", "lead", "ntile", "row_number")
    return not ordered and (call.frame is None or call.frame.unit == "range")


def _told_apart(call: WindowCall) -> set[int]:
    """The columns that are equal in rows of the same place, which may then stand in any order."""
    return {by.index for by in (*call.partition, *(by for by, _ in call.order)) if isinstance(by, Column)}


def _calls(plan: Aggregate, needed: list[int]) -> list[int]:
    """The calls of an aggregate that are read; at least one if there are no groups, as the single row must stay."""
    count = len(plan.groups)
    calls = [column - count for column in needed if column >= count]
    return calls or ([] if count else [0])


def _read(expressions: Iterable[Expression]) -> set[int]:
    return {column for e in expressions for column in columns_of(e)}


def _moved(expression: Expression, inner: Narrow) -> Expression:
    return moved(expression, inner.places.__getitem__)


def _numbered(plan: Plan, columns: list[int]) -> Narrow:
    return Narrow(plan, {old: new for new, old in enumerate(columns)})


def _same(plan: Plan) -> dict[int, int]:
    return {column: column for column in range(len(plan.schema))}


def _some(plan: Plan, needed: list[int]) -> Narrow:
    if len(needed) == len(plan.schema):
        return Narrow(plan, _same(plan))
    names = plan.schema.names
    return _numbered(
        Project(plan, tuple(plan.column(column) for column in needed), tuple(names[column] for column in needed)),
        needed,
    )


def _some_of(narrow: Narrow, needed: list[int]) -> Plan:
    """The needed columns of a part, in their order."""
    places = [narrow.places[column] for column in needed]
    if places == list(range(len(narrow.plan.schema))):
        return narrow.plan
    plan = narrow.plan
    return Project(
        plan, tuple(plan.column(column) for column in places), unique(plan.schema.names[column] for column in places)
    )


def _whole(narrow: Narrow, old: Plan) -> Plan:
    """All columns of a part, in their old positions."""
    return _picked(narrow, [narrow.places[column] for column in range(len(old.schema))], old)


def _beside(a: dict[int, int], width: int, b: dict[int, int], old_width: int) -> dict[int, int]:
    """The new positions of the columns of two parts side by side."""
    return a | {old_width + old: width + new for old, new in b.items()}
