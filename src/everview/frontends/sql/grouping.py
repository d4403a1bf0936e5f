"""GROUP BY: groups and aggregates become columns; GROUPING SETS, ROLLUP and CUBE are a union of groupings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.aggregates import INDICATORS
from everview.frontends.sql.canonical import canonical
from everview.frontends.sql.casts import untyped
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import fold
from everview.frontends.sql.rewrite import replaced
from everview.frontends.sql.unordered import group_key
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Project, Union
from everview.plan.typing import call, literal
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal, WindowCall, walk
from everview.types import BIGINT, TINYINT

if TYPE_CHECKING:
    from everview.frontends.sql.queries import UnfinishedSelect

Sets = tuple[tuple[Expression, ...], ...]
MOST_SETS = 256
COUNTED = AggregateCall("count", (), False, None, (), BIGINT, False)
# Spark expands rows by their grouping sets, so of no rows there is no group, not even that of all rows. A constant key
# says so; only where ``()`` is the one set is it as without GROUP BY.
ALL_ROWS = Literal(0, TINYINT)


def group(node: exp.Select, select: UnfinishedSelect, site: Site) -> None:
    """Replace rows by groups, if the query has GROUP BY or aggregates."""
    clause = node.args.get("group")
    calls = _calls(select)
    if clause is None and not calls and select.having is None:
        return
    keys, sets = ((), ((),)) if clause is None else _keys(clause, node, select, replace(site, clause="GROUP BY"))
    plain = tuple(c for c in calls if c.function not in INDICATORS)
    if not plain and () in sets:
        plain = (COUNTED,)  # a row has a column at least
    if len(sets) > 1 and site.context.dialect == "spark":
        sets = tuple(chosen or (ALL_ROWS,) for chosen in sets)
    made = {key: group_key(key, clause or node, site.context) for key in keys}
    made_sets = tuple(tuple(made.get(key, key) for key in chosen) for chosen in sets)
    plan, flags = _aggregate(select.rows.plan, tuple(made.values()), made_sets, plain)

    place = _places(keys)

    def grouped(e: Expression) -> Expression | None:
        key = place(e)
        if key is not None:
            return plan.column(key)
        if isinstance(e, AggregateCall):
            if e.function in INDICATORS:
                return _indicator(e, keys, place, plan, flags, site.context, node)
            return plan.column(len(keys) + plain.index(e))
        if isinstance(e, Column):
            hint = f"add {e.name} to GROUP BY, or take an aggregate such as any_value({e.name})"
            raise site.context.error(f'column "{e.name}" is neither grouped nor aggregated', _place(node, e), hint)
        return None

    select.change(lambda e: replaced(e, grouped), plan)


def _places(keys: tuple[Expression, ...]) -> Callable[[Expression], int | None]:
    """A function from an expression to the number of the key that it equals in canonical form; None for other ones."""
    forms = {(canonical(key), key.type): place for place, key in reversed(list(enumerate(keys)))}
    if all(isinstance(key, Column | Literal) for key in keys):
        return lambda e: forms.get((e, e.type))
    return lambda e: forms.get((canonical(e), e.type))


def _place(node: exp.Select, column: Column) -> exp.Expr:
    """Where the name of a column stands in what a query lists."""
    parts = [*node.expressions, node.args.get("having"), node.args.get("order"), node.args.get("qualify")]
    for part in parts:
        for named in part.find_all(exp.Column) if part is not None else ():
            if fold(named.name) == fold(column.name):
                return named
    return node


def _calls(select: UnfinishedSelect) -> tuple[AggregateCall, ...]:
    return tuple(
        dict.fromkeys(e for whole in select.expressions() for e in walk(whole) if isinstance(e, AggregateCall))
    )


def _aggregate(
    plan: Plan, keys: tuple[Expression, ...], sets: Sets, calls: tuple[AggregateCall, ...]
) -> tuple[Plan, int]:
    """The groups of all sets, and the position of the first column that tells whether a key is absent."""
    names = tuple(_title(e) for e in (*keys, *calls))
    if sets == (keys,):
        return Aggregate(plan, keys, calls, names), -1
    parts: list[Plan] = []
    for chosen in sets:
        own = tuple(dict.fromkeys(chosen))
        part = Aggregate(plan, own, calls, tuple(_title(e) for e in (*own, *calls)))
        filled = [part.column(own.index(k)) if k in own else Literal(None, k.type) for k in keys]
        results = [part.column(len(own) + i) for i in range(len(calls))]
        absent = [Literal(int(k not in own), TINYINT) for k in keys]
        marks = tuple(f"grouping {i + 1}" for i in range(len(keys)))
        parts.append(Project(part, (*filled, *results, *absent), (*names, *marks)))
    return (parts[0] if len(parts) == 1 else Union(tuple(parts))), len(keys) + len(calls)


def _title(e: Expression) -> str:
    return e.name if isinstance(e, Column) else str(e)[:60]


def _indicator(
    e: AggregateCall,
    keys: tuple[Expression, ...],
    place: Callable[[Expression], int | None],
    plan: Plan,
    flags: int,
    context: QueryContext,
    node: exp.Select,
) -> Expression:
    places = [place(a) for a in e.arguments or keys]
    if None in places:
        raise context.error(f"{e.function} of what is not in GROUP BY", node, "name a column of GROUP BY")
    bits = [literal(0, TINYINT) if flags < 0 else plan.column(flags + key) for key in places if key is not None]
    if e.function == "grouping":
        return bits[0]
    bitmap: Expression = literal(0, BIGINT)
    for bit in bits:
        bitmap = call("add", call("multiply", bitmap, literal(2, BIGINT)), bit)
    return bitmap


# -- what is grouped by


def _keys(
    clause: exp.Group, node: exp.Select, select: UnfinishedSelect, site: Site
) -> tuple[tuple[Expression, ...], Sets]:
    """All keys in order, and the sets of them that make groups."""
    site.context.only(clause, "expressions", "grouping_sets", "rollup", "cube", "all")
    if _by_all(clause, site):
        keys = tuple(dict.fromkeys(untyped(e) for e in select.items if not _aggregates(e)))
        return keys, (keys,)
    plain, factors = _factors(clause, select, replace(site, aggregates=False, windows=False))
    if _count(factors) > MOST_SETS:
        raise site.context.error("too many grouping sets", clause, f"at most {MOST_SETS} are possible")
    sets = tuple(tuple(dict.fromkeys(k for part in chosen for k in part)) for chosen in product(*factors))
    if clause.args.get("all") is False:  # GROUP BY DISTINCT
        sets = tuple({frozenset(chosen): chosen for chosen in sets}.values())
    keys = tuple(dict.fromkeys([*plain, *(k for chosen in sets for k in chosen)]))
    for key in keys:
        _check_key(key, clause, site.context)
    return keys, (keys,) if len(sets) == 1 and set(sets[0]) == set(keys) else sets


_PARTS = ("expressions", "grouping_sets", "rollup", "cube")


def _by_all(clause: exp.Group, site: Site) -> bool:
    """Whether ALL stands for all items that are no aggregates; PostgreSQL's ``ALL a, b`` says what holds anyway."""
    if not clause.args.get("all") or _is_called_all(site):
        return False
    alone = not any(clause.args.get(part) for part in _PARTS)
    if not alone and site.context.dialect != "postgres":
        raise site.context.error("GROUP BY ALL and what else?", clause, "write GROUP BY ALL, or the keys alone")
    return alone


def _is_called_all(site: Site) -> bool:
    return any(v.bare and v.called("all") for v in site.scope.visible)


def _factors(clause: exp.Group, select: UnfinishedSelect, site: Site) -> tuple[list[Expression], list[Sets]]:
    """The plain keys, and the parts of GROUP BY as sets of keys: groups are made by one set of each part, together."""
    factors: list[Sets] = []
    plain: list[Expression] = []
    if clause.args.get("all") and _is_called_all(site):
        plain, factors = [site.scope.find(("all",))], [((site.scope.find(("all",)),),)]
    for part in clause.expressions:
        if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            factors.append(_sets(part, select, site))
        else:
            keys = _set(part, select, site) if isinstance(part, exp.Tuple) else (_key(part, select, site),)
            plain += keys
            factors.append((keys,))
    after = [p for name in ("rollup", "cube", "grouping_sets") for p in clause.args.get(name) or []]
    for part in after:
        if part.expressions:
            # ``GROUP BY a, b GROUPING SETS ((a), (b))``: the keys only say what there is.
            factors = [f for f in factors if f[0] not in {(p,) for p in plain}] if part is after[0] else factors
            factors.append(_sets(part, select, site))
        else:
            different = tuple(dict.fromkeys(plain))
            factors = [_prefixes(different) if isinstance(part, exp.Rollup) else _subsets(different)]
    return plain, factors


def _count(factors: list[Sets]) -> int:
    total = 1
    for factor in factors:
        total *= len(factor)
    return total


def _aggregates(e: Expression) -> bool:
    return any(isinstance(part, (AggregateCall, WindowCall)) for part in walk(e))


def _check_key(key: Expression, clause: exp.Expr, context: QueryContext) -> None:
    if _aggregates(key):
        raise context.error("GROUP BY an aggregate or a window function", clause, "group by what it is computed of")


def _sets(node: exp.Expr, select: UnfinishedSelect, site: Site) -> Sets:
    site.context.only(node, "expressions")
    if isinstance(node, exp.GroupingSets):
        chosen: list[tuple[Expression, ...]] = []
        for part in node.expressions:
            if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                chosen += _sets(part, select, site)
            else:
                chosen.append(_set(part, select, site))
        return tuple(chosen)
    groups = [_set(part, select, site) for part in node.expressions]
    if len(groups) > 12:
        raise site.context.error("too many columns in ROLLUP or CUBE", node, "at most 12 are possible")
    picked = _runs(groups) if isinstance(node, exp.Rollup) else _choices(groups)
    return tuple(tuple(k for part in some for k in part) for some in picked)


def _runs(groups: list[tuple[Expression, ...]]) -> list[tuple[tuple[Expression, ...], ...]]:
    return [tuple(groups[:count]) for count in range(len(groups), -1, -1)]


def _choices(groups: list[tuple[Expression, ...]]) -> list[tuple[tuple[Expression, ...], ...]]:
    return [some for count in range(len(groups), -1, -1) for some in combinations(groups, count)]


def _prefixes(keys: tuple[Expression, ...]) -> Sets:
    return tuple(keys[:count] for count in range(len(keys), -1, -1))


def _subsets(keys: tuple[Expression, ...]) -> Sets:
    return tuple(some for count in range(len(keys), -1, -1) for some in combinations(keys, count))


def _set(node: exp.Expr, select: UnfinishedSelect, site: Site) -> tuple[Expression, ...]:
    """``(a, b)`` or ``a``."""
    if isinstance(node, exp.Paren):
        return _set(node.this, select, site)
    parts = node.expressions if isinstance(node, exp.Tuple) else [node]
    return tuple(_key(part, select, site) for part in parts)


def _key(node: exp.Expr, select: UnfinishedSelect, site: Site) -> Expression:
    """Bind a key: a place in SELECT, a column of FROM, a name that SELECT gives, or an expression."""
    from everview.frontends.sql.queries import ordinal

    place = ordinal(node, len(select.items), "GROUP BY", site.context)
    if place is not None:
        key = untyped(select.items[place])
        _check_key(key, node, site.context)
        return key
    try:
        return untyped(expression(node, site))
    except EverviewError as error:
        site.context.source.locate(error, node)
        raise
