"""Subqueries become joins of the query around them, whatever they read from it.

- ``EXISTS`` and ``IN`` as conditions are semijoins, their negations antijoins. ``NOT IN`` must know that NULL is not
  equal to anything nor different from it: rows are given up for an equal row, for a row with NULL, and a NULL for any.
- In other places a truth value is a column: that of the rows with a partner, beside that of those without.
- A value is the column of an outer join.
- In the condition of an outer, semi or anti join it is a column of the side that it reads (`sides`); where it reads
  both, the pairs are computed first, then the rows without one.
- What the subquery reads from outside is bound by the condition of the join (`reach`), else by equalities inside
  (`pull`), else by the distinct values outside (`push`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.errors import SqlError
from everview.optimize.subqueries.pull import pulled
from everview.optimize.subqueries.push import Domain
from everview.optimize.subqueries.reach import Reach, reached
from everview.optimize.subqueries.shifting import opened, picked, shifted, unbound
from everview.optimize.subqueries.sides import completed, read_by, replaced
from everview.plan import node
from everview.plan.conditions import conjunction, conjuncts
from everview.plan.node import Plan, unique
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Lateral, Project, Top, Union, Values, Window
from everview.plan.outers import Subquery, is_subquery, subqueries
from everview.plan.typing import call
from everview.scalars.expressions import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InQuery,
    Literal,
    Scalar,
    rewritten,
)
from everview.types import BIGINT, BOOLEAN


def decorrelate(plan: Plan) -> Plan:
    """The plan without subqueries in its expressions."""
    return node.rewritten(plan, _without)


def _without(plan: Plan) -> Plan:
    if isinstance(plan, Lateral):
        return _lateral(plan)
    if not any(True for e in plan.expressions for _ in subqueries(e)):
        return plan
    plan = plan.with_expressions(*(rewritten(e, _inner) for e in plan.expressions))
    match plan:
        case Filter(input_, predicate):
            return _filtered(input_, [_positive(p) for p in conjuncts(predicate)])
        case Join():
            return _joined(plan)
        case Project() | Aggregate():
            (input_,) = plan.inputs
            extended, expressions = _with_values(input_, plan.expressions)
            return plan.with_inputs(extended).with_expressions(*expressions)
        case Top() | Window():
            width, added = len(plan.input.schema), len(plan.schema) - len(plan.input.schema)
            extended, expressions = _with_values(plan.input, plan.expressions)
            made = plan.with_inputs(extended).with_expressions(*expressions)
            return picked(made, [*range(width), *range(len(made.schema) - added, len(made.schema))])
        case _:
            raise SqlError(f"a subquery in a {type(plan).__name__}", hint="write it as a join")


def _inner(expression: Expression) -> Expression:
    """The expression with the subqueries inside its subqueries turned into joins."""
    return replace(expression, plan=decorrelate(expression.plan)) if is_subquery(expression) else expression


def _positive(part: Expression) -> Expression:
    """The condition with NOT drawn into EXISTS and IN."""
    if isinstance(part, Call) and part.function == "not":
        (inner,) = part.arguments
        if isinstance(inner, Exists | InQuery):
            return replace(inner, negated=not inner.negated)
    return part


def _lateral(plan: Lateral) -> Plan:
    """A lateral join as a join: the right side is computed for all values that it reads of the left."""
    right, condition, values = _reach(plan.left, plan.right, distinct=False)
    width, start = len(plan.left.schema), len(right.schema) - len(values)
    made = Join(plan.left, right, plan.kind, conjunction(condition))
    return picked(made, [*range(width), *range(width + start, len(made.schema))])


# -- conditions


def _filtered(input_: Plan, parts: Sequence[Expression]) -> Plan:
    width = len(input_.schema)
    plain = [p for p in parts if not any(True for _ in subqueries(p))]
    kept = _kept(input_, plain)
    for part in parts:
        if isinstance(part, Exists | InQuery) and not any(True for c in part.children for _ in subqueries(c)):
            kept = _having(kept, part)
    rest = [p for p in parts if p not in plain and not isinstance(p, Exists | InQuery)]
    rest += [p for p in parts if isinstance(p, InQuery) and any(True for c in p.children for _ in subqueries(c))]
    if not rest:
        return kept
    extended, expressions = _with_values(kept, rest)
    return picked(_kept(extended, expressions), range(width))


def _kept(plan: Plan, parts: Sequence[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _having(input_: Plan, part: Exists | InQuery) -> Plan:
    """The rows for which a subquery as a condition is true."""
    right, condition, values = _reach(input_, part.plan, distinct=True)
    if isinstance(part, Exists):
        return Join(input_, right, "anti" if part.negated else "semi", conjunction(condition))
    equal = [call("equal", a, v) for a, v in zip(part.arguments, values, strict=True)]
    if not part.negated:
        return Join(input_, right, "semi", conjunction([*condition, *equal]))
    if len(equal) > 1:
        possible = [call("coalesce", e, TRUE) for e in equal]
        return Join(input_, right, "anti", conjunction([*condition, *possible]))
    without = Join(input_, right, "anti", conjunction([*condition, *equal]))
    (argument,), (value,) = part.arguments, values
    if value.nullable:
        without = Join(without, right, "anti", conjunction([*condition, call("is_null", value)]))
    if not argument.nullable:
        return without
    known, unknown = call("is_not_null", argument), call("is_null", argument)
    return Union((Filter(without, known), Join(Filter(without, unknown), right, "anti", conjunction(condition))))


def _reach(input_: Plan, plan: Plan, *, distinct: bool) -> tuple[Plan, list[Expression], list[Expression]]:
    """The right side of a join for a subquery, the condition, and the subquery's columns, over both sides."""
    inside = opened(plan)
    reach = reached(inside) if distinct else None
    if reach is not None:
        return reach.plan, *_over_both(input_, reach)
    bound, columns, start = _bound(input_, inside)
    width = len(input_.schema)
    right = Join(input_, bound, "inner").both
    values: list[Expression] = [
        Column(width + column, f.name, f.type, f.nullable)
        for column, f in ((column, right.fields[width + column]) for column in range(start, len(bound.schema)))
    ]
    return bound, columns, values


def _over_both(input_: Plan, reach: Reach) -> tuple[list[Expression], list[Expression]]:
    width = len(input_.schema)
    places = {column: column for column in range(width)}
    condition = [shifted(c, width, places) for c in reach.conditions]
    return condition, [shifted(v, width, places) for v in reach.values]


def _bound(input_: Plan, inside: Plan) -> tuple[Plan, list[Expression], int]:
    """An opened subquery with columns for its outer values, the conditions on these columns, and their number."""
    over_all, wanted = pulled(inside), unbound(inside)
    if over_all is not None and over_all.empty is None and set(over_all.outers) == set(wanted):
        return over_all.plan, _meeting(input_, over_all.plan, over_all.outers, "equal"), len(over_all.outers)
    domain = _domain(input_, wanted)
    made = domain.pushed(inside)
    return made, _meeting(input_, made, wanted, "null_safe_equal"), len(wanted)


def _domain(input_: Plan, outers: tuple[int, ...]) -> Domain:
    return Domain(Distinct(picked(input_, outers)), outers)


def _meeting(input_: Plan, right: Plan, outers: Sequence[int], equality: str) -> list[Expression]:
    both = Join(input_, right, "inner")
    width = len(input_.schema)
    return [call(equality, both.column(outer), both.column(width + column)) for column, outer in enumerate(outers)]


# -- values


def _with_values(input_: Plan, expressions: Sequence[Expression]) -> tuple[Plan, tuple[Expression, ...]]:
    """A plan with columns for the values of subqueries after its own, and the expressions over them."""
    plan = input_
    known: dict[Expression, Expression] = {}

    def valued(e: Expression) -> Expression:
        nonlocal plan
        if not is_subquery(e):
            return e
        if e not in known:
            plan, known[e] = _attached(plan, e)
        return known[e]

    changed = tuple(rewritten(e, valued) for e in expressions)
    return plan, changed


def _attached(plan: Plan, subquery: Subquery) -> tuple[Plan, Expression]:
    """The plan with a further column, from which the value of a subquery follows."""
    match subquery:
        case Scalar():
            return _with_scalar(plan, subquery)
        case Exists():
            right, condition, _ = _reach(plan, subquery.plan, distinct=True)
            return _marked(plan, right, condition, Literal(not subquery.negated, BOOLEAN), _said(subquery.negated))
        case InQuery():
            return _with_membership(plan, subquery)


def _said(truth: bool) -> Literal:
    return TRUE if truth else FALSE


def _marked(
    plan: Plan, right: Plan, condition: Sequence[Expression], yes: Literal, no: Literal
) -> tuple[Plan, Expression]:
    """The plan with a column that tells which rows have a partner."""
    made = Union(
        (
            _beside(Join(plan, right, "semi", conjunction(condition)), yes),
            _beside(Join(plan, right, "anti", conjunction(condition)), no),
        )
    )
    return made, made.column(len(plan.schema))


def _beside(plan: Plan, value: Expression) -> Plan:
    return Project(plan, (*plan.columns, value), unique([*plan.schema.names, "subquery"]))


def _with_membership(plan: Plan, subquery: InQuery) -> tuple[Plan, Expression]:
    """The plan with the value of IN: true for an equal row, else unknown if a NULL might make one equal, else false."""
    right, condition, values = _reach(plan, subquery.plan, distinct=True)
    equal = [call("equal", a, v) for a, v in zip(subquery.arguments, values, strict=True)]
    yes, no = _said(not subquery.negated), _said(subquery.negated)
    if not any(e.nullable for e in equal):
        return _marked(plan, right, [*condition, *equal], yes, no)
    possible = [call("coalesce", e, TRUE) for e in equal]
    there = Join(plan, right, "semi", conjunction([*condition, *equal]))
    absent = Join(plan, right, "anti", conjunction([*condition, *equal]))
    unknown = Join(absent, right, "semi", conjunction([*condition, *possible]))
    different = Join(absent, right, "anti", conjunction([*condition, *possible]))
    made = Union((_beside(there, yes), _beside(unknown, Literal(None, BOOLEAN)), _beside(different, no)))
    return made, made.column(len(plan.schema))


def _with_scalar(plan: Plan, subquery: Scalar) -> tuple[Plan, Expression]:
    inside, width = opened(subquery.plan), len(plan.schema)
    over_all, wanted = pulled(inside), unbound(inside)
    if not wanted and _always_one(inside):
        joined = Join(plan, picked(inside, [0]), "inner")
        return joined, joined.column(width)
    if over_all is not None and set(over_all.outers) == set(wanted):
        right, outers, equality = over_all.plan, over_all.outers, "equal"
        nothing = None if over_all.empty is None else over_all.empty[0]
    else:
        right, outers, equality, nothing = _domain(plan, wanted).pushed(inside), wanted, "null_safe_equal", None
    right = _single(picked(right, [*range(len(outers)), len(outers)]), len(outers), inside)
    if nothing is not None and not (isinstance(nothing, Literal) and nothing.value is None):
        right = Project(right, (*right.columns, TRUE), unique([*right.schema.names, "there"]))
        joined = Join(plan, right, "left", conjunction(_meeting(plan, right, outers, equality)))
        there = joined.column(len(joined.schema) - 1)
        value = joined.column(width + len(outers))
        return joined, call("if", call("is_not_null", there), value, nothing)
    joined = Join(plan, right, "left", conjunction(_meeting(plan, right, outers, equality)))
    return joined, joined.column(width + len(outers))


def _single(plan: Plan, keys: int, inside: Plan) -> Plan:
    """A plan of keys and a value, which fails where a key has several values."""
    if _at_most_one(inside):
        return plan
    value = plan.column(keys)
    count = AggregateCall("count", (), False, None, (), BIGINT, False)
    only = AggregateCall("min", (value,), False, None, (), value.type, value.nullable)
    names = unique([*plan.schema.names[:keys], "rows", plan.schema.names[keys]])
    made = Aggregate(plan, plan.columns[:keys], (count, only), names)
    if not keys:
        # Of no rows at all there is no value, and no row to say so is needed: an outer join gives NULL.
        made = Filter(made, call("greater", made.column(0), Literal(0, BIGINT)))
    checked = call("if", call("is_one_row", made.column(keys)), made.column(keys + 1), Literal(None, value.type))
    return Project(made, (*made.columns[:keys], checked), plan.schema.names)


def _at_most_one(plan: Plan) -> bool:
    """Whether a subquery has at most one row, whatever it reads."""
    match plan:
        case Aggregate():
            return not plan.groups
        case Project(input_) | Filter(input_) | Distinct(input_):
            return _at_most_one(input_)
        case Top(input_, _, limit, _, partition):
            return (limit is not None and limit <= 1 and not partition) or _at_most_one(input_)
        case Values(rows):
            return len(rows) <= 1
        case _:
            return False


def _always_one(plan: Plan) -> bool:
    """Whether a subquery has just one row."""
    match plan:
        case Aggregate():
            return not plan.groups
        case Project(input_) | Distinct(input_):
            return _always_one(input_)
        case Values(rows):
            return len(rows) == 1
        case _:
            return False


# -- conditions of joins


def _joined(plan: Join) -> Plan:
    """A join without subqueries in its condition.

    Those of an inner join are asked of the pairs, after it. Of another join, those that read one side become columns of
    that side; if there are others, the pairs are computed first, then the rows without a partner.
    """
    if plan.kind == "inner":
        return _pairs(plan)
    width = len(plan.left.schema)
    asked = tuple(dict.fromkeys(s for e in plan.expressions for s in subqueries(e)))
    lefts = tuple(s for s in asked if all(column < width for column in read_by(s)))
    rights = tuple(s for s in asked if s not in lefts and all(column >= width for column in read_by(s)))
    left, left_values = _with_values(plan.left, lefts)
    right, right_values = _with_values(plan.right, [replaced(s, {}, lambda column: column - width) for s in rights])
    start = len(left.schema)
    known: dict[Expression, Expression] = dict(zip(lefts, left_values, strict=True))
    known.update(zip(rights, (shifted(v, start, {}) for v in right_values), strict=True))
    moved = [
        replaced(e, known, lambda column: column if column < width else column - width + start)
        for e in plan.expressions
    ]
    made: Plan = Join(left, right, plan.kind, conjunction(moved))
    if len(lefts) + len(rights) < len(asked):
        made = completed(made, _pairs(made))
    if plan.kind in ("semi", "anti"):
        return picked(made, range(width))
    return picked(made, [*range(width), *range(start, start + len(plan.right.schema))])


def _pairs(plan: Join) -> Plan:
    """The pairs of a join of any kind for which its condition holds."""
    parts = [_positive(p) for p in conjuncts(plan.condition)]
    plain = [p for p in parts if not any(True for _ in subqueries(p))]
    rest = [p for p in parts if p not in plain]
    return _filtered(Join(plan.left, plan.right, "inner", conjunction(plain)), rest)
