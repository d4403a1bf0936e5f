"""Queries to plans: SELECT in the order in which SQL evaluates it, set operations, common table expressions.

FROM, WHERE, GROUP BY, HAVING, window functions, QUALIFY, SELECT, DISTINCT, ORDER BY, LIMIT. All expressions of SELECT,
HAVING, QUALIFY and ORDER BY are first bound to the rows of FROM; then, step by step, what a step computes is replaced
by the column that it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql import generators, grouping
from everview.frontends.sql.casts import as_types, holds_interval, untyped
from everview.frontends.sql.context import Bound, Context
from everview.frontends.sql.expressions import Here, condition, expression, placed
from everview.frontends.sql.names import Scope, fold, short
from everview.frontends.sql.naming import column_name, direction
from everview.frontends.sql.pipes import Place
from everview.frontends.sql.rewrite import replaced
from everview.frontends.sql.rows import ONE_ROW, Rows
from everview.frontends.sql.sets import first_columns, set_operation, trimmed
from everview.frontends.sql.sources import from_clause, relation, renamed
from everview.frontends.sql.values import relation as constant_relation
from everview.frontends.sql.values import written
from everview.plan.node import Plan
from everview.plan.node import walk as walk_plan
from everview.plan.nodes import Aggregate, Distinct, Explode, Filter, Project, Top, Window
from everview.scalars.expressions import Column, Expression, Literal, Now, WindowCall, walk


def query(node: exp.Expr, context: Context) -> Bound:
    """A query as a relation: only the columns that it names, each of a type that a column can have."""
    bound = complete(node, context)
    plan, names = bound.plan, bound.names
    if len(plan.schema) > len(names):
        plan = first_columns(plan, len(names))
    return Bound(plan, names)


def complete(node: exp.Expr, context: Context) -> Bound:
    """A query with what it is sorted by, which may be columns after those that it names."""
    bound = untyped_query(node, context)
    parts = walk_plan(bound.plan)
    every = (*bound.plan.columns, *(e for part in parts for e in _computed(part)))
    wrong = next((e for e in every if holds_interval(e.type)), None)
    if wrong is not None:
        hint = "a column holds no interval: compute a number, as by datediff or unix_seconds"
        shown = f'"{wrong.name}"' if isinstance(wrong, Column) else str(wrong)[:60]
        raise context.unsupported(f"the interval {shown} as a column", node, hint)
    plan = as_types(bound.plan, [untyped(c).type for c in bound.plan.columns])
    return replace(bound, plan=plan)


def _computed(plan: Plan) -> Iterable[Expression]:
    """The expressions that become columns, which are given or kept."""
    match plan:
        case Aggregate(_, groups, calls):
            return (*groups, *(argument for call in calls for argument in call.children))
        case Window(_, calls):
            return tuple(part for call in calls for part in call.children)
        case Project() | Top() | Explode():
            return plan.expressions
        case _:
            return ()


def untyped_query(node: exp.Expr, context: Context) -> Bound:
    """A query whose columns may still be bare NULLs."""
    context = context.deeper(node)
    try:
        return _kind_of_query(node, context)
    except EverviewError as error:
        context.source.locate(error, node)
        raise


def _kind_of_query(node: exp.Expr, context: Context) -> Bound:
    context = with_clause(node, context)
    match node:
        case exp.Select():
            return select(node, context)
        case exp.Union() | exp.Intersect() | exp.Except():
            return _sorted(set_operation(node, context), node, context)
        case exp.Subquery():
            context.only(node, "this", "with_", "order", "limit", "offset")
            return _sorted(untyped_query(node.this, context), node, context)
        case exp.Paren():
            return untyped_query(node.this, context)
        case exp.Values():
            context.only(node, "expressions", "with_", "order", "limit", "offset")
            return _sorted(written(node, context), node, context)
        case exp.Table():
            context.only(node, "this", "db", "catalog")
            return relation(node, context)
        case _:
            raise context.unsupported(f"{node.key.upper()} as a query", node, "write SELECT …")


# -- WITH


def with_clause(node: exp.Expr, context: Context) -> Context:
    """The context with the relations that WITH defines."""
    clause = node.args.get("with_")
    if clause is None:
        return context
    context.only(clause, "expressions", "recursive")
    if clause.args.get("recursive"):
        from everview.frontends.sql.recursion import recursive

        return recursive(clause.expressions, context)
    seen: set[str] = set()
    for cte in clause.expressions:
        if fold(cte.alias) in seen:
            raise context.error(f'WITH defines "{short(cte.alias)}" twice', cte, "give it another name")
        seen.add(fold(cte.alias))
        context = define(cte, context)
    return context


def define(cte: exp.CTE, context: Context) -> Context:
    """The context with one common table expression more."""
    bound = query(cte.this, context)
    return defined(cte, bound, context)


def defined(cte: exp.CTE, bound: Bound, context: Context) -> Context:
    context.only(cte, "this", "alias", "materialized")
    alias = cte.args["alias"]
    context.only(alias, "this", "columns")
    names = renamed(bound.names, [c.name for c in alias.args.get("columns") or []], alias, context)
    return replace(context, ctes={**context.ctes, fold(alias.name): Bound(bound.plan, names)})


# -- ORDER BY and LIMIT of what has columns of its own


def _sorted(bound: Bound, node: exp.Expr, context: Context) -> Bound:
    """By its columns: their places, their names, or expressions of them."""
    order = node.args.get("order")
    if order is None and node.args.get("limit") is None and node.args.get("offset") is None:
        return bound
    plan = trimmed(bound)
    here = Here(context, Scope.over(plan, None, bound.names, context.outer), "ORDER BY")
    by = tuple(
        (key, direction(item)) for item in _items(order, context) for key in _keys(item.this, plan.columns, here)
    )
    return replace(_limited(Bound(plan, bound.names), by, node, context), order=by)


def _items(order: exp.Order | None, context: Context) -> list[exp.Ordered]:
    if order is None:
        return []
    context.only(order, "expressions")
    for item in order.expressions:
        context.only(item, "this", "desc", "nulls_first")
    return order.expressions


def _keys(node: exp.Expr, columns: Sequence[Expression], here: Here) -> list[Expression]:
    """What an item of ORDER BY sorts by: a column, or, for ALL, every one; a column may be called so."""
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        known = any(v.bare and v.called("all") for v in here.scope.visible)
        return [here.scope.find(("all",))] if known else list(columns)
    place = ordinal(node, len(columns), "ORDER BY", here.context)
    return [columns[place] if place is not None else expression(node, here)]


def ordinal(node: exp.Expr, count: int, clause: str, context: Context) -> int | None:
    """The place that a number in GROUP BY or ORDER BY means."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        return None
    if not 1 <= int(node.this) <= count:
        raise context.error(f"{clause} {node.this}: there is no such column", node, f"there are {count}")
    return int(node.this) - 1


def _limited(bound: Bound, by: tuple[tuple[Expression, str], ...], node: exp.Expr, context: Context) -> Bound:
    limit, offset = _count(node.args.get("limit"), context), _count(node.args.get("offset"), context) or 0
    if limit is None and not offset:
        return bound
    return replace(bound, plan=Top(bound.plan, by, limit, offset))


def _count(node: exp.Expr | None, context: Context) -> int | None:
    if node is None:
        return None
    if isinstance(node, exp.Fetch):
        context.only(node, "direction", "count")
        value = node.args.get("count") or exp.Literal.number(1)
    else:
        context.only(node, "expression")
        value = node.expression
    if isinstance(value, exp.Null) or (isinstance(value, (exp.Column, exp.Var)) and value.name.upper() == "ALL"):
        return None
    found = expression(value, Here(context, Scope(), "LIMIT"))
    if (
        isinstance(found, Literal)
        and isinstance(found.value, int)
        and not isinstance(found.value, bool)
        and found.value >= 0
    ):
        return found.value
    raise context.error("LIMIT and OFFSET take a whole number that is written down", node, "as in LIMIT 10")


# -- SELECT


@dataclass
class Selected:
    """A SELECT on its way: rows, and the expressions over them that remain to be computed."""

    rows: Rows
    names: list[str] = field(default_factory=list[str])
    items: list[Expression] = field(default_factory=list[Expression])
    having: Expression | None = None
    qualify: Expression | None = None
    order: list[tuple[Expression, str]] = field(default_factory=list[tuple[Expression, str]])
    on: list[Expression] = field(default_factory=list[Expression])  # DISTINCT ON
    generates: bool = False  # whether an item makes rows

    def expressions(self) -> list[Expression]:
        kept = [e for e in (self.having, self.qualify) if e is not None]
        return [*self.items, *kept, *(e for e, _ in self.order), *self.on]

    def change(self, how: Callable[[Expression], Expression], plan: Plan) -> None:
        """All expressions over the rows of another plan."""
        self.items = [how(e) for e in self.items]
        self.having = None if self.having is None else how(self.having)
        self.qualify = None if self.qualify is None else how(self.qualify)
        self.order = [(how(e), way) for e, way in self.order]
        self.on = [how(e) for e in self.on]
        self.rows = Rows(plan, self.rows.scope)


def select(node: exp.Select, context: Context) -> Bound:
    """The plan of a SELECT."""
    context.only(
        node, "expressions", "from_", "joins", "laterals", "where", "group", "having", "windows", "qualify",
        "distinct", "order", "limit", "offset", "with_", "hint",
    )  # fmt: skip
    if not node.expressions:
        raise context.error("SELECT of what?", node, "write SELECT * or name columns")
    rows = from_clause(node, context)
    if node.args.get("where") is not None:
        test = condition(node.args["where"].this, Here(context, rows.scope, "WHERE"))
        rows = Rows(Filter(rows.plan, test), rows.scope)
    found, here = _bind_items(node, rows, context)
    _bind_rest(node, found, here)
    grouping.group(node, found, here)
    if found.having is not None:
        found.rows = Rows(Filter(found.rows.plan, found.having), found.rows.scope)
        found.having = None
    _windows(found)
    if found.qualify is not None:
        found.rows = Rows(Filter(found.rows.plan, found.qualify), found.rows.scope)
    return _projected(node, found, context)


def _bind_items(node: exp.Select, rows: Rows, context: Context) -> tuple[Selected, Here]:
    """What SELECT lists; an item may name the ones before it."""
    named = {fold(w.name): w for w in node.args.get("windows") or []}
    for window in named.values():
        context.only(window, "this", "partition_by", "order", "spec", "alias", "over")
    found, aliases = Selected(rows), dict[str, Expression]()
    here = Here(context, rows.scope, "SELECT", aggregates=True, windows=True, named=named)
    for item in node.expressions:
        here = replace(here, scope=replace(here.scope, aliases=dict(aliases)))
        for name, value in _item(item, found, here):
            found.names.append(name)
            found.items.append(value)
            if isinstance(item, (exp.Alias, exp.Aliases)):
                aliases.setdefault(fold(name), value)
        if found.rows is not rows:
            here = replace(here, scope=replace(found.rows.scope, aliases=dict(aliases)))
            rows = found.rows
    return found, replace(here, scope=replace(here.scope, aliases=aliases))


def _item(node: exp.Expr, found: Selected, here: Here) -> Iterable[tuple[str, Expression]]:
    """An item, or the columns that a star stands for."""
    star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
    if isinstance(star, exp.Star):
        relation_name = node.table if isinstance(node, exp.Column) else None
        return _star(star, relation_name or None, node, here)
    if isinstance(node, Place):
        return [placed(node, here)]
    value = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
    if generators.name_of(value) is not None:
        return _generated(node, value, found, here)
    if isinstance(node, exp.Aliases):
        raise here.context.unsupported("several names for one expression", node)
    if isinstance(node, exp.Alias):
        here.context.only(node, "this", "alias")
        return [(node.alias, expression(value, here))]
    bound = expression(value, here)
    name = column_name(node)
    return [(f"{name}()" if isinstance(bound, Now) and isinstance(node, exp.Column) else name, bound)]


def _star(star: exp.Star, relation_name: str | None, node: exp.Expr, here: Here) -> list[tuple[str, Expression]]:
    here.context.only(star, "except_", "replace", "rename")
    try:
        columns = [(v.name, v.expression) for v in here.scope.star(relation_name)]
    except EverviewError as error:
        here.context.source.locate(error, node)
        raise
    known = [name for name, _ in columns]
    left_out = {_starred(part, known, here) for part in star.args.get("except_") or []}
    other = {_starred(exp.column(part.alias), known, here): part.this for part in star.args.get("replace") or []}
    new = {_starred(part.this, known, here): part.alias for part in star.args.get("rename") or []}
    found: list[tuple[str, Expression]] = []
    for name, value in columns:
        if fold(name) not in left_out:
            changed = expression(other[fold(name)], here) if fold(name) in other else value
            found.append((new.get(fold(name), name), changed))
    if not found:
        raise here.context.error("* stands for no columns", node, "is there a FROM clause?")
    return found


def _starred(part: exp.Expr, known: list[str], here: Here) -> str:
    from everview.types import unknown_name

    if fold(part.name) not in {fold(k) for k in known}:
        error = unknown_name("column", part.name, known)
        here.context.source.locate(error, part)
        raise error
    return fold(part.name)


def _generated(node: exp.Expr, call: exp.Expr, found: Selected, here: Here) -> list[tuple[str, Expression]]:
    """``SELECT explode(array)``: the rows beside those that a generator makes of each."""
    context, name = here.context, generators.name_of(call)
    if found.generates and context.dialect != "spark":  # elsewhere they go side by side
        hint = "put one of them into FROM, as in FROM t, LATERAL unnest(array) AS e(x)"
        raise context.unsupported("a second generator in SELECT", node, hint)
    found.generates = True
    generator = generators.bound(call, here.inside(name or "a generator"))
    given = [node.alias] if isinstance(node, exp.Alias) else [n.name for n in node.expressions]
    names = generators.names(generator, given if node is not call else [], node, context)
    start = len(found.rows.plan.schema)
    plan = generators.generated(found.rows.plan, generator, names)
    found.rows = Rows(plan, found.rows.scope)
    return [(name, plan.column(start + at)) for at, name in enumerate(names)]


def _bind_rest(node: exp.Select, found: Selected, here: Here) -> None:
    """HAVING, QUALIFY, ORDER BY and DISTINCT ON, over the same rows as the items."""
    if node.args.get("having") is not None:
        found.having = condition(node.args["having"].this, replace(here, clause="HAVING", windows=False))
    if node.args.get("qualify") is not None:
        found.qualify = condition(node.args["qualify"].this, replace(here, clause="QUALIFY"))
    by = replace(here, clause="ORDER BY")
    for item in _items(node.args.get("order"), here.context):
        keys = (
            _keys(item.this, found.items, by) if isinstance(item.this, exp.Var) else [_order_key(item.this, found, by)]
        )
        found.order += [(key, direction(item)) for key in keys]
    distinct = node.args.get("distinct")
    if distinct is not None:
        here.context.only(distinct, "on")
        on = distinct.args.get("on")
        if on is not None:
            parts = on.expressions if isinstance(on, exp.Tuple) else [on]
            found.on = [_order_key(part, found, replace(here, clause="DISTINCT ON")) for part in parts]


def _order_key(node: exp.Expr, found: Selected, here: Here) -> Expression:
    """A place, a name that SELECT gives, or an expression; the name goes before a column of FROM."""
    place = ordinal(node, len(found.items), here.clause, here.context)
    if place is not None:
        return found.items[place]
    if isinstance(node, exp.Column) and not node.table:
        named = [v for n, v in zip(found.names, found.items, strict=True) if fold(n) == fold(node.name)]
        if named and len(set(named)) == 1:
            return named[0]
    return expression(node, here)


def _windows(found: Selected) -> None:
    """Window functions become columns after those of the rows."""
    calls = tuple(dict.fromkeys(e for whole in found.expressions() for e in walk(whole) if isinstance(e, WindowCall)))
    if not calls:
        return
    plan = Window(found.rows.plan, calls, tuple(str(c)[:60] for c in calls))
    start = len(found.rows.plan.schema)

    def computed(e: Expression) -> Expression | None:
        return plan.column(start + calls.index(e)) if isinstance(e, WindowCall) else None

    found.change(lambda e: replaced(e, computed), plan)


def _projected(node: exp.Select, found: Selected, context: Context) -> Bound:
    """The items as columns, and after them what only ORDER BY reads."""
    names, items = tuple(found.names), list(found.items)
    extra = [e for e in dict.fromkeys([*(e for e, _ in found.order), *found.on]) if e not in items]
    if extra and node.args.get("distinct") is not None and not found.on:
        hint = "with DISTINCT, sort by what is selected"
        raise context.error("ORDER BY something that SELECT DISTINCT does not give", node.args["order"], hint)
    every = [*items, *extra]
    if node.args.get("distinct") is not None:
        every = [untyped(e) for e in every]  # rows are compared, so their columns have types
    plan = _project(found.rows.plan, every, (*names, *(f"sort key {i + 1}" for i in range(len(extra)))))
    places = {e: at for at, e in reversed(list(enumerate([*items, *extra])))}
    by = tuple((plan.column(places[e]), way) for e, way in found.order)
    if found.on:
        plan = Top(plan, by, 1, 0, tuple(places[e] for e in found.on))
    elif node.args.get("distinct") is not None:
        plan = Distinct(plan)
    return replace(_limited(Bound(plan, names), by, node, context), order=by)


def _project(plan: Plan, items: list[Expression], names: tuple[str, ...]) -> Plan:
    from everview.plan.node import unique

    if plan is ONE_ROW and all(isinstance(e, Literal) for e in items):
        return constant_relation([tuple(items)], unique(names))
    return Project(plan, tuple(items), names)
