"""Queries to plans: SELECT in the order in which SQL evaluates it, set operations, common table expressions.

FROM, WHERE, GROUP BY, HAVING, window functions, QUALIFY, SELECT, DISTINCT, ORDER BY, LIMIT. All expressions of SELECT,
HAVING, QUALIFY and ORDER BY are first bound to the rows of FROM; then, step by step, each expression that a step
computes is replaced by its new column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql import generators, grouping
from everview.frontends.sql.casts import as_types, untyped
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, condition, expression
from everview.frontends.sql.leaves import placed
from everview.frontends.sql.names import Scope, fold, short
from everview.frontends.sql.naming import column_name, direction
from everview.frontends.sql.pipes import Place
from everview.frontends.sql.rewrite import replaced
from everview.frontends.sql.rows import ONE_ROW, NamedRows
from everview.frontends.sql.sets import first_columns, set_operation, trimmed
from everview.frontends.sql.sources import WINDOWING, from_clause, relation, renamed
from everview.frontends.sql.stars import star_of, starred
from everview.frontends.sql.unordered import ordered, refuse_unordered
from everview.frontends.sql.values import relation as constant_relation
from everview.frontends.sql.values import written
from everview.later import Later
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Project, Top, Window
from everview.plan.typing import call, literal
from everview.scalars.evaluate import fold as computed
from everview.scalars.expressions import AggregateCall, Cast, Expression, Literal, Now, WindowCall, walk
from everview.types import INTEGER

if TYPE_CHECKING:
    from everview.frontends.sql.event_windows import windowed
else:
    windowed = Later("everview.frontends.sql.event_windows", "windowed")


def query(node: exp.Expr, context: QueryContext) -> Bound:
    """Bind a query as a relation with only its named columns, each of a type allowed in columns.

    Its order stays known if it is by these columns.
    """
    bound = complete(node, context)
    plan, names = bound.plan, bound.names
    if len(plan.schema) == len(names):
        return bound
    return Bound(first_columns(plan, len(names)), names)


def complete(node: exp.Expr, context: QueryContext) -> Bound:
    """Bind a query with its sort keys; a sort key may be an extra column after the named columns."""
    return _typed(untyped_query(node, context))


def _typed(bound: Bound) -> Bound:
    """A query whose bare NULLs have a type."""
    return replace(bound, plan=as_types(bound.plan, [untyped(c).type for c in bound.plan.columns]))


def untyped_query(node: exp.Expr, context: QueryContext) -> Bound:
    """A query whose columns may still be bare NULLs."""
    context = context.deeper(node)
    try:
        return _kind_of_query(node, context)
    except EverviewError as error:
        context.source.locate(error, node)
        raise


def _kind_of_query(node: exp.Expr, context: QueryContext) -> Bound:
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


def with_clause(node: exp.Expr, context: QueryContext) -> QueryContext:
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


def define(cte: exp.CTE, context: QueryContext) -> QueryContext:
    """The context with one common table expression more."""
    bound = query(cte.this, context)
    return defined(cte, bound, context)


def defined(cte: exp.CTE, bound: Bound, context: QueryContext) -> QueryContext:
    context.only(cte, "this", "alias", "materialized")
    alias = cte.args["alias"]
    context.only(alias, "this", "columns")
    names = renamed(bound.names, [c.name for c in alias.args.get("columns") or []], alias, context)
    return replace(context, ctes={**context.ctes, fold(alias.name): Bound(bound.plan, names, bound.order)})


# -- ORDER BY and LIMIT of what has columns of its own


def _sorted(bound: Bound, node: exp.Expr, context: QueryContext) -> Bound:
    """A query with an ORDER BY over its own columns: their places, their names, or expressions of them."""
    order = node.args.get("order")
    if order is None and node.args.get("limit") is None and node.args.get("offset") is None:
        return bound
    plan = trimmed(bound)
    site = Site(context, Scope.over(plan, None, bound.names, context.outer), "ORDER BY")
    by = tuple(
        (ordered(key, "ORDER BY", item, context), direction(item))
        for item in _items(order, context)
        for key in _keys(item.this, plan.columns, site)
    )
    return replace(_limited(Bound(plan, bound.names), by, node, context), order=by)


def _items(order: exp.Order | None, context: QueryContext) -> list[exp.Ordered]:
    if order is None:
        return []
    context.only(order, "expressions")
    for item in order.expressions:
        context.only(item, "this", "desc", "nulls_first")
    return order.expressions


def _keys(node: exp.Expr, columns: Sequence[Expression], site: Site) -> list[Expression]:
    """The keys of an item of ORDER BY: one, or for ALL every column, unless a column is called "all"."""
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        known = any(v.bare and v.called("all") for v in site.scope.visible)
        return [site.scope.find(("all",))] if known else list(columns)
    place = ordinal(node, len(columns), "ORDER BY", site.context)
    return [columns[place] if place is not None else expression(node, site)]


def ordinal(node: exp.Expr, count: int, clause: str, context: QueryContext) -> int | None:
    """The position that a number in GROUP BY or ORDER BY means; None for another expression."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        return None
    if not 1 <= int(node.this) <= count:
        raise context.error(f"{clause} {node.this}: there is no such column", node, f"there are {count}")
    return int(node.this) - 1


def _limited(bound: Bound, by: tuple[tuple[Expression, str], ...], node: exp.Expr, context: QueryContext) -> Bound:
    limit, offset = _count(node.args.get("limit"), context), _count(node.args.get("offset"), context) or 0
    if limit is None and not offset:
        return bound
    if limit and _with_ties(node.args.get("limit")):
        ties = _ties(bound.plan, by, limit + offset, node, context)
        return replace(bound, plan=Top(ties, by, None, offset) if offset else ties)
    return replace(bound, plan=Top(bound.plan, by, limit, offset))


def _with_ties(node: exp.Expr | None) -> bool:
    options = None if node is None else node.args.get("limit_options")
    return options is not None and bool(options.args.get("with_ties"))


def _ties(
    plan: Plan, by: tuple[tuple[Expression, str], ...], limit: int, node: exp.Expr, context: QueryContext
) -> Plan:
    """The first rows and the peers of the last of them: those whose rank is within the limit."""
    if not by:
        raise context.error("WITH TIES of which order?", node, "write ORDER BY")
    rank = WindowCall("rank", (), (), by, None, INTEGER, False)
    ranked = Window(plan, (rank,), ("rank",))
    width = len(plan.schema)
    kept = Filter(ranked, call("less_equal", ranked.column(width), literal(min(limit, (1 << 63) - 1))))
    return first_columns(kept, width)


def _count(node: exp.Expr | None, context: QueryContext) -> int | None:
    if node is None:
        return None
    if isinstance(node, exp.Fetch):
        context.only(node, "direction", "count", "limit_options")
        if node.args.get("limit_options") is not None:
            context.only(node.args["limit_options"], "rows", "with_ties")
        value = node.args.get("count") or exp.Literal.number(1)
    else:
        context.only(node, "expression")
        value = node.expression
    if isinstance(value, exp.Null) or (isinstance(value, (exp.Column, exp.Var)) and value.name.upper() == "ALL"):
        return None
    count = expression(value, Site(context, Scope(), "LIMIT"))
    count = computed(count) if isinstance(count, Cast) else count
    if isinstance(count, Literal) and count.value is None:  # as LIMIT NULL, or a parameter that has no value yet
        return None
    if (
        isinstance(count, Literal)
        and isinstance(count.value, int)
        and not isinstance(count.value, bool)
        and count.value >= 0
    ):
        return count.value
    raise context.error("LIMIT and OFFSET take a whole number that is written down", node, "as in LIMIT 10")


# -- SELECT


@dataclass
class UnfinishedSelect:
    """A SELECT while it is bound: the rows so far, and the expressions still to be computed over these rows."""

    rows: NamedRows
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
        """Move on to the rows of another plan, with all expressions changed to read them."""
        self.items = [how(e) for e in self.items]
        self.having = None if self.having is None else how(self.having)
        self.qualify = None if self.qualify is None else how(self.qualify)
        self.order = [(how(e), way) for e, way in self.order]
        self.on = [how(e) for e in self.on]
        self.rows = NamedRows(plan, self.rows.scope)


def select(node: exp.Select, context: QueryContext) -> Bound:
    """The plan of a SELECT."""
    context.only(
        node, "expressions", "from_", "joins", "laterals", "where", "group", "having", "windows", "qualify",
        "distinct", "order", "limit", "offset", "with_", "hint", "cluster", "distribute", "sort",
    )  # fmt: skip
    if not node.expressions:
        raise context.error("SELECT of what?", node, "write SELECT * or name columns")
    return selected(node, from_clause(node, context), context)


def over_rows(node: exp.Select, rows: NamedRows, context: QueryContext) -> Bound:
    """The plan of a SELECT without FROM, over rows that are given."""
    try:
        bound = selected(node, rows, context)
    except EverviewError as error:
        context.source.locate(error, node)
        raise
    return _typed(bound)


def selected(node: exp.Select, rows: NamedRows, context: QueryContext) -> Bound:
    """The plan of a SELECT over the rows of its FROM."""
    if node.args.get("where") is not None:
        test = condition(node.args["where"].this, Site(context, rows.scope, "WHERE"))
        rows = NamedRows(Filter(rows.plan, test), rows.scope, order=rows.order)
    if any(called.name.lower() in _OF_TIME for called in node.find_all(exp.Anonymous)):
        node, rows = windowed(node, rows, context)
    unfinished, site = bind_items(node, rows, context)
    _bind_rest(node, unfinished, site)
    _check_places(node, unfinished, site)
    grouping.group(node, unfinished, site)
    if unfinished.having is not None:
        unfinished.rows = NamedRows(Filter(unfinished.rows.plan, unfinished.having), unfinished.rows.scope)
        unfinished.having = None
    _windows(unfinished)
    if unfinished.qualify is not None:
        unfinished.rows = NamedRows(Filter(unfinished.rows.plan, unfinished.qualify), unfinished.rows.scope)
    return _projected(node, unfinished, context)


_OF_TIME = frozenset(
    ["window", "session_window", *(f"{name}{edge}" for name in WINDOWING for edge in ("", "_start", "_end"))]
)


def _check_places(node: exp.Select, unfinished: UnfinishedSelect, site: Site) -> None:
    """CLUSTER BY, DISTRIBUTE BY and SORT BY say where rows lie, and not which: their columns must be there."""
    for part in ("cluster", "distribute", "sort"):
        written = node.args.get(part)
        for item in () if written is None else written.expressions:
            expression(item.this if isinstance(item, exp.Ordered) else item, replace(site, clause=f"{part.upper()} BY"))
        if written is not None and node.args.get("limit") is not None and node.args.get("order") is None:
            hint = "which rows come first depends on it: write ORDER BY"
            raise site.context.unsupported(f"LIMIT after {part.upper()} BY", node, hint)


def bind_items(node: exp.Select, rows: NamedRows, context: QueryContext) -> tuple[UnfinishedSelect, Site]:
    """Bind the items of SELECT; an item may name the ones before it."""
    named = {fold(w.name): w for w in node.args.get("windows") or []}
    for window in named.values():
        context.only(window, "this", "partition_by", "order", "spec", "alias", "over")
    unfinished, aliases = UnfinishedSelect(rows), dict[str, Expression]()
    site = Site(context, rows.scope, "SELECT", aggregates=True, windows=True, named=named)
    casts: dict[int, str] = {}  # by place, the columns that are cast and not named
    for item in node.expressions:
        site = replace(site, scope=replace(site.scope, aliases=dict(aliases)))
        for name, value in _item(item, unfinished, site):
            unfinished.names.append(name)
            unfinished.items.append(value)
            if isinstance(item, (exp.Alias, exp.Aliases)):
                aliases.setdefault(fold(name), value)
            elif context.dialect == "spark" and _is_cast_column(item, value):
                casts[len(unfinished.names) - 1] = item.this.name
        if unfinished.rows is not rows:
            site = replace(site, scope=replace(unfinished.rows.scope, aliases=dict(aliases)))
            rows = unfinished.rows
    _name_casts(casts, unfinished.names)
    return unfinished, replace(site, scope=replace(site.scope, aliases=aliases))


def _is_cast_column(item: exp.Expr, value: Expression) -> bool:
    """Whether an item casts a column, and not what a word such as ``current_date`` stands for."""
    column = isinstance(item, exp.Cast) and isinstance(item.this, exp.Column)
    return column and not any(isinstance(part, Now) for part in walk(value))


def _name_casts(casts: Mapping[int, str], names: list[str]) -> None:
    """Name a column that is cast as it was called, as Spark does, unless another one is called so."""
    taken = Counter(map(fold, [*casts.values(), *(name for at, name in enumerate(names) if at not in casts)]))
    for at, name in casts.items():
        if taken[fold(name)] == 1:
            names[at] = name


def _item(node: exp.Expr, unfinished: UnfinishedSelect, site: Site) -> Iterable[tuple[str, Expression]]:
    """An item, or the columns that a star stands for."""
    star = star_of(node)
    if star is not None:
        return starred(star, node, site)
    if isinstance(node, Place):
        return [placed(node, site)]
    value = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
    if generators.name_of(value) is not None:
        return _generated(node, value, unfinished, site)
    if isinstance(node, exp.Aliases):
        raise site.context.unsupported("several names for one expression", node)
    if isinstance(node, exp.Alias):
        site.context.only(node, "this", "alias")
        return [(node.alias, expression(value, site))]
    bound = expression(value, site)
    name = column_name(node)
    return [(f"{name}()" if isinstance(bound, Now) and isinstance(node, exp.Column) else name, bound)]


def _generated(
    node: exp.Expr, call: exp.Expr, unfinished: UnfinishedSelect, site: Site
) -> list[tuple[str, Expression]]:
    """``SELECT explode(array)``: the rows beside those that a generator makes of each."""
    context, name = site.context, generators.name_of(call)
    if unfinished.generates and context.dialect != "spark":  # elsewhere they go side by side
        hint = "put one of them into FROM, as in FROM t, LATERAL unnest(array) AS e(x)"
        raise context.unsupported("a second generator in SELECT", node, hint)
    unfinished.generates = True
    generator = generators.bound(call, site.inside(name or "a generator"))
    given = [node.alias] if isinstance(node, exp.Alias) else [n.name for n in node.expressions]
    names = generators.names(generator, given if node is not call else [], node, context)
    start = len(unfinished.rows.plan.schema)
    plan = generators.generated(unfinished.rows.plan, generator, names)
    unfinished.rows = NamedRows(plan, unfinished.rows.scope)
    return [(name, plan.column(start + place)) for place, name in enumerate(names)]


def _bind_rest(node: exp.Select, unfinished: UnfinishedSelect, site: Site) -> None:
    """Bind HAVING, QUALIFY, ORDER BY and DISTINCT ON over the same rows as the items."""
    if node.args.get("having") is not None:
        unfinished.having = condition(node.args["having"].this, replace(site, clause="HAVING", windows=False))
    if node.args.get("qualify") is not None:
        unfinished.qualify = condition(node.args["qualify"].this, replace(site, clause="QUALIFY"))
    by = replace(site, clause="ORDER BY")
    for item in _items(node.args.get("order"), site.context):
        keys = (
            _keys(item.this, unfinished.items, by)
            if isinstance(item.this, exp.Var)
            else [_order_key(item.this, unfinished, by)]
        )
        unfinished.order += [(ordered(key, "ORDER BY", item, site.context), direction(item)) for key in keys]
    if not unfinished.order and _takes_rows_as_they_come(node, unfinished):
        unfinished.order = list(unfinished.rows.order)
    distinct = node.args.get("distinct")
    if distinct is not None:
        site.context.only(distinct, "on")
        on = distinct.args.get("on")
        if on is not None:
            parts = on.expressions if isinstance(on, exp.Tuple) else [on]
            chosen = [_order_key(part, unfinished, replace(site, clause="DISTINCT ON")) for part in parts]
            unfinished.on = [ordered(key, "DISTINCT ON", on, site.context) for key in chosen]


def _takes_rows_as_they_come(node: exp.Select, unfinished: UnfinishedSelect) -> bool:
    """Whether LIMIT is of the rows of FROM, and so takes the first ones in the order of a subquery."""
    limited = node.args.get("limit") is not None or node.args.get("offset") is not None
    made = any(node.args.get(part) is not None for part in ("group", "having", "distinct"))
    computed = any(isinstance(part, (AggregateCall, WindowCall)) for item in unfinished.items for part in walk(item))
    return limited and not made and not computed


def _order_key(node: exp.Expr, unfinished: UnfinishedSelect, site: Site) -> Expression:
    """Bind a key of ORDER BY: a place, a name that SELECT gives, a column of FROM, or an expression."""
    place = ordinal(node, len(unfinished.items), site.clause, site.context)
    if place is not None:
        return unfinished.items[place]
    if isinstance(node, exp.Column) and not node.table:
        named = [v for n, v in zip(unfinished.names, unfinished.items, strict=True) if fold(n) == fold(node.name)]
        if named and len(set(named)) == 1:
            return named[0]
    return expression(node, site)


def _windows(unfinished: UnfinishedSelect) -> None:
    """Compute window functions as columns behind the row's own; functions read by others come first."""
    while calls := _window_calls(unfinished.expressions()):
        inner = _window_calls(child for call in calls for child in call.children)
        _windowed(unfinished, inner or calls)


def _window_calls(expressions: Iterable[Expression]) -> tuple[WindowCall, ...]:
    return tuple(dict.fromkeys(e for whole in expressions for e in walk(whole) if isinstance(e, WindowCall)))


def _windowed(unfinished: UnfinishedSelect, calls: tuple[WindowCall, ...]) -> None:
    plan = Window(unfinished.rows.plan, calls, tuple(str(c)[:60] for c in calls))
    start = len(unfinished.rows.plan.schema)

    def computed(e: Expression) -> Expression | None:
        return plan.column(start + calls.index(e)) if e in calls else None

    unfinished.change(lambda e: replaced(e, computed), plan)


def _projected(node: exp.Select, unfinished: UnfinishedSelect, context: QueryContext) -> Bound:
    """The items as columns, and after them the columns that only ORDER BY reads."""
    names, items = tuple(unfinished.names), list(unfinished.items)
    extra = [e for e in dict.fromkeys([*(e for e, _ in unfinished.order), *unfinished.on]) if e not in items]
    if extra and node.args.get("distinct") is not None and not unfinished.on:
        hint = "with DISTINCT, sort by what is selected"
        raise context.error("ORDER BY something that SELECT DISTINCT does not give", node.args["order"], hint)
    every = [*items, *extra]
    if node.args.get("distinct") is not None:
        every = [untyped(e) for e in every]  # rows are compared, so their columns have types
        if not unfinished.on:
            refuse_unordered((e.type for e in every), "SELECT DISTINCT of", node, context)
    plan = _project(unfinished.rows.plan, every, (*names, *(f"sort key {i + 1}" for i in range(len(extra)))))
    places = {e: place for place, e in reversed(list(enumerate([*items, *extra])))}
    by = tuple((plan.column(places[e]), way) for e, way in unfinished.order)
    if unfinished.on:
        plan = Top(plan, by, 1, 0, tuple(places[e] for e in unfinished.on))
    elif node.args.get("distinct") is not None:
        plan = Distinct(plan)
    return replace(_limited(Bound(plan, names), by, node, context), order=by)


def _project(plan: Plan, items: list[Expression], names: tuple[str, ...]) -> Plan:
    from everview.plan.node import unique

    if plan is ONE_ROW and all(isinstance(e, Literal) for e in items):
        return constant_relation([tuple(items)], unique(names))
    return Project(plan, tuple(items), names)
