"""WITH RECURSIVE: relations that are defined by themselves, alone or by each other.

A relation that is not recursive after all is bound like any other. The others are grouped by which of them read each
other, and each group is one `Recursive`.

With UNION a relation is a set, so that cycles end. With UNION ALL it is a bag: the rows of the start, those that a step
derives from them, those that a step derives from these, and so on, each as often as it is derived. Rounds of a step are
added up, so the step must be linear: it reads the relation once, and not through what looks at rows together, such as
DISTINCT.

The columns of a recursive relation are those of its branches that do not read it; if a branch that does needs wider
types, all are bound again with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.dialect import LEVEL
from everview.frontends.sql.names import fold
from everview.frontends.sql.queries import defined, query
from everview.frontends.sql.rewrite import all_plans
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Except, Join, Recursive, Reference, Top, Window
from everview.plan.references import not_linear
from everview.plan.typing import common
from everview.types import Field, Schema

ROUNDS = 12  # of finding the types; each widens a column


def recursive(ctes: list[exp.CTE], context: QueryContext) -> QueryContext:
    """The context with all that WITH RECURSIVE defines."""
    names = [fold(cte.alias) for cte in ctes]
    twice = next((cte for i, cte in enumerate(ctes) if names[i] in names[:i]), None)
    if twice is not None:
        raise context.error(f'WITH defines "{twice.alias}" twice', twice, "give it another name")
    reads = {name: _read(cte.this, set(names)) for name, cte in zip(names, ctes, strict=True)}
    by_name = dict(zip(names, ctes, strict=True))
    for group in _groups(names, reads):
        if len(group) == 1 and group[0] not in reads[group[0]]:
            cte = by_name[group[0]]
            context = defined(cte, query(cte.this, context), context)
        else:
            context = _fixed_point([by_name[name] for name in group], context)
    return context


def _read(node: exp.Expr, names: set[str]) -> set[str]:
    return {fold(table.name) for table in node.find_all(exp.Table)} & names


def _groups(names: list[str], reads: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of names that read each other, each group after the groups it reads."""
    reach = {name: _reachable(name, reads) for name in names}
    done: set[str] = set()
    groups: list[list[str]] = []
    waiting = list(names)
    while waiting:
        ready = next(n for n in waiting if all(m in done or n in reach[m] for m in reach[n]))
        group = [m for m in waiting if m == ready or (m in reach[ready] and ready in reach[m])]
        groups.append(group)
        done.update(group)
        waiting = [m for m in waiting if m not in done]
    return groups


def _reachable(name: str, reads: Mapping[str, set[str]]) -> set[str]:
    reachable: set[str] = set()
    waiting = [name]
    while waiting:
        for other in reads[waiting.pop()] - reachable:
            reachable.add(other)
            waiting.append(other)
    return reachable


def _fixed_point(ctes: list[exp.CTE], context: QueryContext) -> QueryContext:
    """The context with relations that read each other."""
    inner = {fold(cte.alias): f"{cte.alias}" for cte in ctes}
    taken = {p.name for bound in context.ctes.values() for p in _references(bound.plan)}
    labels = {name: _free(label, taken) for name, label in inner.items()}
    schemas = _starts(ctes, labels, context)
    for _ in range(ROUNDS):
        bound = _bound(ctes, labels, schemas, context)
        wider = {name: _wider(schemas[name], b, ctes, context) for name, b in bound.items()}
        if wider == schemas:
            return _defined(ctes, labels, bound, context)
        schemas = wider
    raise context.error("the types of a recursive relation grow with every round", ctes[0], "cast its columns")


def _free(label: str, taken: set[str]) -> str:
    while label in taken:
        label += "'"
    return label


def _references(plan: Plan) -> list[Reference]:
    return [p for p in all_plans(plan) if isinstance(p, Reference)]


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a union, from left to right."""
    branches: list[exp.Expr] = []
    while isinstance(node, (exp.Union, exp.Subquery, exp.Paren)):
        if isinstance(node, exp.Union):
            branches.append(node.expression)
        node = node.this
    return [node, *reversed(branches)]


def _starts(ctes: list[exp.CTE], labels: Mapping[str, str], context: QueryContext) -> dict[str, Schema]:
    """The columns of each relation, by a branch that reads only what is known."""
    schemas: dict[str, Schema] = {}
    waiting = {fold(cte.alias): cte for cte in ctes}
    while waiting:
        for name, cte in waiting.items():
            branch = next((b for b in _branches(cte.this) if not _read(b, set(waiting))), None)
            branch = _start(cte.this, set(waiting)) if branch is None else branch
            if branch is not None:
                inner = _around(cte, _seen(ctes, labels, schemas, context))
                schemas[name] = _named(query(branch, inner), cte, context)
                del waiting[name]
                break
        else:
            cte = next(iter(waiting.values()))
            hint = "start with rows: WITH RECURSIVE r AS (SELECT … FROM t UNION SELECT … FROM r)"
            raise context.error(f'recursive relation "{cte.alias}" starts with nothing', cte, hint)
    return schemas


def _start(node: exp.Expr, names: set[str]) -> exp.Expr | None:
    """A query with all union branches dropped that read the given relations; None if another part reads them."""
    node = node.copy()
    for union in reversed([*node.find_all(exp.Union)]):  # the innermost first
        sides = [side for side in (union.this, union.expression) if not _read(side, names)]
        if len(sides) == 1 and union.parent is not None:
            union.replace(sides[0].copy())
    return None if _read(node, names) else node


def _around(cte: exp.CTE, context: QueryContext) -> QueryContext:
    """The context of the branches of a relation: with the relations of its own WITH."""
    from everview.frontends.sql.queries import with_clause

    return with_clause(cte.this, context)


def _seen(
    ctes: list[exp.CTE], labels: Mapping[str, str], schemas: Mapping[str, Schema], context: QueryContext
) -> QueryContext:
    known = {name: Bound(Reference(labels[name], s), s.names) for name, s in schemas.items()}
    return replace(context, ctes={**context.ctes, **known})


def _named(bound: Bound, cte: exp.CTE, context: QueryContext) -> Schema:
    """The columns of a query under the names that WITH gives them."""
    names = defined(cte, bound, context).ctes[fold(cte.alias)].names
    fields = bound.plan.schema.fields
    return Schema(Field(name, f.type, f.nullable) for name, f in zip(_unique(names), fields, strict=True))


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    from everview.plan.node import unique

    return unique(names)


def _bound(
    ctes: list[exp.CTE], labels: Mapping[str, str], schemas: Mapping[str, Schema], context: QueryContext
) -> dict[str, Bound]:
    inner = _seen(ctes, labels, schemas, context)
    return {fold(cte.alias): _one(cte, schemas[fold(cte.alias)], inner, context) for cte in ctes}


def _one(cte: exp.CTE, schema: Schema, inner: QueryContext, context: QueryContext) -> Bound:
    for part in ("order", "limit", "offset"):
        if cte.this.args.get(part) is not None:
            hint = "limit the query that reads it"
            raise context.unsupported(f"{part.upper()} of a recursive relation", cte, hint)
    try:
        bound = query(cte.this, inner)
    except EverviewError as error:
        context.source.locate(error, cte)
        raise
    if len(bound.names) != len(schema):
        raise context.error(f'"{cte.alias}" has {len(schema)} columns and {len(bound.names)}', cte)
    return bound


def _wider(schema: Schema, bound: Bound, ctes: list[exp.CTE], context: QueryContext) -> Schema:
    fields: list[Field] = []
    for old, new in zip(schema.fields, bound.plan.schema.fields, strict=True):
        type_ = common(old.type, new.type)
        if type_ is None:
            raise context.error(f'column "{old.name}" is {old.type} and {new.type}', ctes[0], "cast one of them")
        fields.append(Field(old.name, type_, old.nullable or new.nullable))
    return Schema(fields)


def _defined(
    ctes: list[exp.CTE], labels: Mapping[str, str], bound: Mapping[str, Bound], context: QueryContext
) -> QueryContext:
    from everview.plan.nodes import Project

    bindings: list[tuple[str, Plan]] = []
    schemas: dict[str, Schema] = {}
    extremes = _extremes(ctes, labels, bound, context)
    several = [cte for cte in ctes if not _is_set(cte.this) and labels[fold(cte.alias)] not in extremes]
    bags = tuple(labels[fold(cte.alias)] for cte in several)
    for cte in ctes:
        name = fold(cte.alias)
        schemas[name] = _named(bound[name], cte, context)
        plan = bound[name].plan
        if plan.schema != schemas[name]:
            plan = Project(plan, plan.columns, schemas[name].names)
        _check_adds_only(plan, set(labels.values()), cte, context, bool(extremes))
        if labels[name] in bags:
            _check_linear(plan, frozenset(bags), cte, context)
        bindings.append((labels[name], plan))
    for cte in ctes:
        name = fold(cte.alias)
        body = Recursive(tuple(bindings), Reference(labels[name], schemas[name]), bags, level=_level(ctes))
        context = replace(context, ctes={**context.ctes, name: Bound(body, schemas[name].names)})
    return context


def _level(ctes: list[exp.CTE]) -> int | None:
    """The least ``MAX RECURSION LEVEL`` of relations that read each other."""
    aliases = (cte.args.get("alias") for cte in ctes)
    return min((alias.meta[LEVEL] for alias in aliases if alias is not None and LEVEL in alias.meta), default=None)


def _extremes(
    ctes: list[exp.CTE], labels: Mapping[str, str], bound: Mapping[str, Bound], context: QueryContext
) -> Mapping[str, tuple[int, ...]]:
    """The relations that keep the least or greatest values of groups, with the ways in which these go."""
    if not any(isinstance(part, Aggregate) for b in bound.values() for part in all_plans(b.plan)):
        return {}
    from everview.frontends.sql.extremes import NotMonotone, check_extremes, extremes_of

    names = frozenset(labels.values())
    extremes = {labels[name]: extremes_of(bound[name].plan, names) for name in bound}
    ways = {label: way for label, way in extremes.items() if way is not None}
    if not ways:
        return {}
    known = {labels[n]: ways.get(labels[n], (0,) * len(b.plan.schema)) for n, b in bound.items()}
    for cte in ctes:
        try:
            check_extremes(bound[fold(cte.alias)].plan, known)
        except NotMonotone as error:
            hint = "an extreme comes only to the same extreme again, by sums and the like; do the rest on the result"
            raise context.error(f'recursive relation "{cte.alias}" uses its extreme in {error}', cte, hint) from None
    return ways


def _is_set(node: exp.Expr) -> bool:
    """Whether a query gives no row twice, judged by its outermost operator."""
    match node:
        case exp.Subquery() | exp.Paren():
            return _is_set(node.this)
        case exp.Union() | exp.Intersect() | exp.Except():
            return bool(node.args.get("distinct", True))
        case _:
            return node.args.get("distinct") is not None


def _check_linear(plan: Plan, labels: frozenset[str], cte: exp.CTE, context: QueryContext) -> None:
    """Refuse a bag whose rounds cannot be added up."""
    how = not_linear(plan, labels)
    if how is not None:
        hint = "with UNION ALL every row counts, so a step reads the relation once and plainly; write UNION for a set"
        raise context.error(f'recursive relation "{cte.alias}" reads itself {how}, under UNION ALL', cte, hint)


def _check_adds_only(plan: Plan, labels: set[str], cte: exp.CTE, context: QueryContext, extremes: bool = False) -> None:
    """Refuse recursion through an operator that removes rows when rows are added: it may have no fixed point."""
    for part in all_plans(plan):
        what = _takes_away(part, labels)
        if what is not None and not (extremes and isinstance(part, Aggregate)):
            hint = "recursion may only add rows; do this outside of it, on its result"
            if isinstance(part, Aggregate):
                hint += "; min and max may be of all its rows: SELECT k, min(v) FROM (… UNION ALL …) GROUP BY k"
            raise context.error(f'recursive relation "{cte.alias}" reads itself through {what}', cte, hint)
        for expression in part.expressions:
            _check_subqueries(expression, labels, cte, context)


def _takes_away(plan: Plan, labels: set[str]) -> str | None:
    def reads(part: Plan) -> bool:
        return any(r.name in labels for r in _references(part))

    match plan:
        case Aggregate() | Window() | Top():
            return f"{_ARTICLES[type(plan)]}" if reads(plan.input) else None
        case Except():
            return "the right side of EXCEPT" if reads(plan.right) else None
        case Join(left, right, kind):
            sides = {"anti": (right,), "left": (right,), "right": (left,), "full": (left, right)}.get(kind, ())
            return f"the side of a {kind} join that may have no match" if any(map(reads, sides)) else None
        case _:
            return None


_ARTICLES: dict[type[Plan], str] = {Aggregate: "an aggregate", Window: "a window function", Top: "LIMIT"}


def _check_subqueries(expression: object, labels: set[str], cte: exp.CTE, context: QueryContext) -> None:
    from everview.scalars.expressions import Exists, Expression, InQuery, Scalar, walk

    assert isinstance(expression, Expression)
    for part in walk(expression):
        if not isinstance(part, (Exists, InQuery, Scalar)) or not any(r.name in labels for r in _references(part.plan)):
            continue
        if isinstance(part, Scalar) or part.negated or part is not expression:
            hint = "join it, or do this outside of the recursion"
            raise context.error(f'recursive relation "{cte.alias}" reads itself in a subquery', cte, hint)
