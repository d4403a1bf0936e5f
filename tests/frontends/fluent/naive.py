"""What a recipe means, from scratch: nested loops over dicts, one clause after the other, rows beneath one by one."""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Any

from everview.frontends.fluent.agg import Agg
from frontends.fluent.drawn import Recipe, Test
from frontends.fluent.music import COLUMNS, Music

Named = dict[str, Any]  # a row by the names of its columns, or a record


class Env:
    """A row of FROM: the rows of the relations that are side by side, by alias; None where there is no partner."""

    def __init__(self, own: str, rows: dict[str, Named | None]) -> None:
        self.own, self.rows = own, rows

    def get(self, name: str) -> Any:
        qualifier, dot, column = name.partition(".")
        if not dot:
            qualifier, column = self.own, name
        row = self.rows[qualifier]
        return None if row is None else row[column]


def evaluate(recipe: Recipe, music: Music) -> Any:
    """What a query gives."""
    found = _trees(recipe, music)
    if recipe.has("one"):
        return found[0] if found else None
    if _is_scalar(recipe):
        return next(iter(found[0].values()))
    return found


def _is_scalar(recipe: Recipe) -> bool:
    shown = [a for method, given, _ in recipe.calls if method == "select" for a in given]
    alone = len(shown) == 1 and isinstance(shown[0], Agg) and (shown[0].column != "*" or shown[0].function == "count")
    return alone and not recipe.has("group_by", "having", "limit")


def _calls(recipe: Recipe, *methods: str) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    return [call for call in recipe.calls if call[0] in methods]


def _trees(recipe: Recipe, music: Music, only: tuple[str, Any] | None = None) -> list[Named]:
    """The trees of a query; with ``only`` of the rows in which a column equals a value."""
    rows = _from(recipe, music)
    if only is not None:
        rows = [row for row in rows if _same(row.get(only[0]), only[1])]
    shown = [a for _, given, _ in _calls(recipe, "select") for a in given]
    if _calls(recipe, "group_by") or any(isinstance(a, Agg) for a in shown):
        found = _groups(recipe, rows, shown)
    else:
        found = [
            (_shown(recipe, row), row.get, [row.rows[a][k] if row.rows[a] else None for a, k in _keys(row)], row)
            for row in rows
        ]
    if _calls(recipe, "distinct"):
        found = _distinct(found)
    order = [(given[0], given[1]) for _, given, _ in _calls(recipe, "order_by")]
    found.sort(key=cmp_to_key(lambda a, b: _compare(a, b, order)))
    for _, (start,), _ in _calls(recipe, "start_after"):
        known = (None, start.get, [start["id"]], None)
        found = [one for one in found if _compare(one, known, order) > 0]
    for _, (count,), _ in _calls(recipe, "limit"):
        found = found[:count]
    trees = []
    for tree, get, _, _ in found:
        beneath = {
            name: _beneath(method, inner, named["on"], get, music)
            for method, (name, inner), named in _calls(recipe, "related_one", "related_many")
        }
        trees.append({**tree, **beneath})
    return trees


def _beneath(method: str, inner: Recipe, on: tuple[str, str], get: Any, music: Music) -> Any:
    value = get(on[0])
    found = [] if value is None else _trees(inner, music, (on[1], value))
    return found if method == "related_many" else found[0] if found else None


def _keys(row: Env) -> list[tuple[str, str]]:
    return [(alias, "id") for alias in row.rows]


# -- FROM and WHERE


def _from(recipe: Recipe, music: Music) -> list[Env]:
    own = recipe.relation
    rows = [Env(own, {own: row}) for row in music.dicts(own)]
    for method, (other,), named in _calls(recipe, "join", "left_join"):
        alias, (left, right) = named["as_"], named["on"]
        theirs = [row.rows[other.relation] for row in _from(other, music)]
        met: list[Env] = []
        for row in rows:
            partners: list[Named | None] = [their for their in theirs if _same(row.get(left), their[right])]
            if not partners and method == "left_join":
                partners = [None]
            met += [Env(own, {**row.rows, alias: partner}) for partner in partners]
        rows = met
    for _, (test,), _ in _calls(recipe, "where"):
        rows = [row for row in rows if holds(test, row.get) is True]
    for method, (other,), named in _calls(recipe, "exists", "not_exists"):
        left, right = named["on"]
        theirs = [row.get(right) for row in _from(other, music)]
        rows = [row for row in rows if any(_same(row.get(left), their) for their in theirs) == (method == "exists")]
    return rows


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a == b


def holds(test: Test, get: Any) -> bool | None:
    """Whether a condition is true, false or unknown."""
    if test.how == "compare":
        column, operator, value = test.parts
        return compared(get(column), operator, value)
    found = [holds(part, get) for part in test.parts]
    if test.how == "not":
        return None if found[0] is None else not found[0]
    decisive = test.how == "or"
    return decisive if decisive in found else None if None in found else not decisive


def compared(a: Any, operator: str, b: Any) -> bool | None:
    if operator.startswith("not "):
        found = compared(a, operator[4:], b)
        return None if found is None else not found
    match operator:
        case "is":
            return a is None
        case "is not":
            return a is not None
        case "in":
            answers = [compared(a, "=", one) for one in b]
            return True if True in answers else None if None in answers else False
        case "between":
            low, high = compared(a, ">=", b[0]), compared(a, "<=", b[1])
            return False if False in (low, high) else None if None in (low, high) else True
    if a is None or b is None:
        return None
    match operator:
        case "like":
            return _like(a, b)
        case "=":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def _like(text: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|.", pattern)
    turned = {"%": ".*", "_": "."}
    return re.fullmatch("".join(turned.get(p, re.escape(p[-1])) for p in parts), text, re.DOTALL) is not None


# -- SELECT


def _shown(recipe: Recipe, row: Env) -> Named:
    selects = _calls(recipe, "select")
    if not selects:
        joined = {alias: one and dict(one) for alias, one in row.rows.items() if alias != row.own}
        return {**(row.rows[row.own] or {}), **joined}
    found: Named = {}
    for _, columns, named in selects:
        for name in columns:
            qualifier, dot, column = name.partition(".")
            if not dot:
                found[name] = row.get(name)
            elif row.rows[qualifier] is None:
                found[qualifier] = None
            else:
                found.setdefault(qualifier, {})[column] = row.get(name)
        for name, column in named.items():
            found[name] = row.get(column)
    return found


def _distinct(found: list[Any]) -> list[Any]:
    seen: dict[Any, Any] = {}
    for tree, _, _, row in found:
        seen.setdefault(tuple(tree.values()), (tree, tree.get, list(tree.values()), row))
    return list(seen.values())


# -- GROUP BY


def _groups(recipe: Recipe, rows: list[Env], shown: list[Any]) -> list[Any]:
    by = [name for _, names, _ in _calls(recipe, "group_by") for name in names]
    groups: dict[tuple[Any, ...], list[Env]] = {} if by else {(): []}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    found = []
    for key, members in groups.items():
        flat = dict(zip(by, key, strict=True))
        flat |= {a.name: _aggregated(a, members) for a in shown if isinstance(a, Agg)}
        if all(compared(flat[c], how, value) is True for _, (c, how, value), _ in _calls(recipe, "having")):
            found.append((_grouped(shown, flat, members), flat.get, list(key), None))
    return found


def _grouped(shown: list[Any], flat: Named, members: list[Env]) -> Named:
    tree: Named = {}
    for what in shown:
        name = what.name if isinstance(what, Agg) else what
        qualifier, dot, column = name.partition(".")
        if not dot:
            tree[name] = flat[name]
        elif all(member.rows[qualifier] is None for member in members):
            tree[qualifier] = None
        else:
            tree.setdefault(qualifier, {})[column] = flat[name]
    return tree


def _aggregated(one: Agg, members: list[Env]) -> Any:
    if one.function == "array" and one.column == "*":
        return sorted((dict(member.rows[member.own] or {}) for member in members), key=lambda row: row["id"])
    values = [1 if one.column == "*" else member.get(one.column) for member in members]
    values = [value for value in values if value is not None]
    if one.distinct:
        values = list(dict.fromkeys(values))
    match one.function:
        case "count":
            return len(values)
        case "array":
            return sorted(values)
        case _ if not values:
            return None
        case "sum":
            return sum(values)
        case "avg":
            return sum(values) / len(values)
        case "min":
            return min(values)
        case _:
            return max(values)


# -- ORDER BY


def _compare(a: Any, b: Any, order: list[tuple[str, str]]) -> int:
    """By the columns of the order, then by what tells rows apart."""
    for column, way in order:
        found = _before(a[1](column), b[1](column))
        if found:
            return found if way == "asc" else -found
    for x, y in zip(a[2], b[2], strict=True):
        if found := _before(x, y):
            return found
    return 0


def _before(x: Any, y: Any) -> int:
    if x is None or y is None:
        return (x is not None) - (y is not None)
    return (x > y) - (x < y)


assert set(COLUMNS) == {"artist", "album", "track", "play"}
