"""Views at random over what a database has: SQL of many kinds, rules, fluent queries, frames; each a line of Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torture.sessions.values import Column

Relations = Mapping[str, Sequence[Column]]

AGGREGATES = (
    "min({0})",
    "max({0})",
    "count({0})",
    "count(DISTINCT {0})",
    "first({0})",
    "mode({0})",
    "max_by({0}, {1})",
)
SUMS = (
    "sum({0})",
    "avg({0})",
    "sum(DISTINCT {0})",
    "sum({0}) FILTER (WHERE {1} IS NOT NULL)",
    "stddev({0})",
    "median({0})",
)


@dataclass
class Drawing:
    """What a view may be made of: the relations that there are, and the source of chance."""

    draw: random.Random
    relations: Relations

    def relation(self, having: Callable[[Sequence[Column]], bool] = lambda columns: True) -> str | None:
        names = [name for name, columns in self.relations.items() if columns and having(columns)]
        return self.draw.choice(names) if names else None

    def column(self, name: str, having: Callable[[Column], bool] = lambda column: True) -> str | None:
        names = [column.name for column in self.relations[name] if having(column)]
        return self.draw.choice(names) if names else None

    def pair(self) -> tuple[str, str, str, str] | None:
        """Two relations with a column each of one type: the names of both and of their columns."""
        left = self.relation()
        if left is None:
            return None
        mine = self.draw.choice(self.relations[left])
        right = self.relation(lambda columns: any(column.type == mine.type for column in columns))
        assert right is not None
        other = self.column(right, lambda column: column.type == mine.type)
        assert other is not None
        return left, mine.name, right, other

    def some(self, name: str, alias: str, prefix: str = "") -> str:
        """A few columns of a relation, for SELECT, under the names c0, c1, …"""
        columns = self.relations[name]
        chosen = self.draw.sample(list(columns), self.draw.randint(1, min(3, len(columns))))
        return ", ".join(f"{alias}.{column.name} AS {prefix}{n}" for n, column in enumerate(chosen))

    def condition(self, name: str, alias: str) -> str:
        column = self.draw.choice(self.relations[name])
        place = f"{alias}.{column.name}"
        if column.is_number:
            return self.draw.choice((f"{place} > 0", f"{place} <= 1", f"{place} IN (1, 2, NULL)", f"{place} <> 2"))
        if column.type == "STRING":
            return self.draw.choice((f"{place} >= 'a'", f"length({place}) = 1", f"{place} LIKE '%a%'"))
        if column.type == "BOOLEAN":
            return place
        return self.draw.choice((f"{place} IS NOT NULL", f"{place} IS NULL", f"{place} = {place}"))


def _select(d: Drawing) -> str | None:
    name = d.relation()
    if name is None:
        return None
    distinct = d.draw.choice(("", "DISTINCT "))
    return f"SELECT {distinct}{d.some(name, 'x', 'c')} FROM {name} x WHERE {d.condition(name, 'x')}"


def _star(d: Drawing) -> str | None:
    name = d.relation()
    return None if name is None else f"SELECT * FROM {name}"


def _join(d: Drawing) -> str | None:
    found = d.pair()
    if found is None:
        return None
    left, mine, right, other = found
    kind = d.draw.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    test = d.draw.choice(("=", "=", "<=>"))
    more = f" AND {d.condition(d.draw.choice((left, left)), 'l')}" if d.draw.random() < 0.3 else ""
    return (
        f"SELECT {d.some(left, 'l', 'a')}, {d.some(right, 'r', 'b')} FROM {left} l {kind} {right} r "
        f"ON l.{mine} {test} r.{other}{more}"
    )


def _exists(d: Drawing) -> str | None:
    found = d.pair()
    if found is None:
        return None
    left, mine, right, other = found
    no = d.draw.choice(("", "NOT "))
    if d.draw.random() < 0.5:
        return f"SELECT {d.some(left, 'l', 'c')} FROM {left} l WHERE l.{mine} {no}IN (SELECT {other} FROM {right})"
    return (
        f"SELECT {d.some(left, 'l', 'c')} FROM {left} l WHERE {no}EXISTS "
        f"(SELECT 1 FROM {right} r WHERE r.{other} = l.{mine} AND {d.condition(right, 'r')})"
    )


def _calls(d: Drawing, name: str, alias: str) -> list[str]:
    calls = ["count(*)"]
    any_column = f"{alias}.{d.column(name)}"
    calls.append(d.draw.choice(AGGREGATES).format(any_column, f"{alias}.{d.column(name)}"))
    number = d.column(name, lambda column: column.is_number)
    if number is not None:
        calls.append(d.draw.choice(SUMS).format(f"{alias}.{number}", any_column))
    return calls


def _group(d: Drawing) -> str | None:
    name = d.relation()
    if name is None:
        return None
    calls = ", ".join(f"{call} AS n{n}" for n, call in enumerate(_calls(d, name, "x")))
    key = d.column(name)
    shape = d.draw.random()
    if shape < 0.2:
        return f"SELECT {calls} FROM {name} x"
    if shape < 0.35:
        return f"SELECT x.{key} AS g, {calls} FROM {name} x GROUP BY ROLLUP (x.{key})"
    having = d.draw.choice(("", "", " HAVING count(*) > 1"))
    return f"SELECT x.{key} AS g, {calls} FROM {name} x GROUP BY x.{key}{having}"


def _set(d: Drawing) -> str | None:
    found = d.pair()
    if found is None:
        return None
    left, mine, right, other = found
    word = d.draw.choice(("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
    return f"SELECT {mine} AS c0 FROM {left} {word} SELECT {other} FROM {right}"


def _window(d: Drawing) -> str | None:
    name = d.relation()
    if name is None:
        return None
    key, first = d.column(name), d.column(name)
    every = ", ".join(f"x.{column.name}" for column in d.relations[name])
    number = d.column(name, lambda column: column.is_number) or first
    call = d.draw.choice(
        (
            "row_number() OVER (PARTITION BY x.{key} ORDER BY {all})",
            "rank() OVER (PARTITION BY x.{key} ORDER BY x.{first} DESC)",
            "lag(x.{first}) OVER (PARTITION BY x.{key} ORDER BY {all})",
            "count(*) OVER (PARTITION BY x.{key})",
            "min(x.{first}) OVER (PARTITION BY x.{key} ORDER BY {all} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            "sum(x.{number}) OVER (PARTITION BY x.{key} ORDER BY x.{first})",
            "ntile(2) OVER (ORDER BY {all})",
            "last_value(x.{first}) IGNORE NULLS OVER (ORDER BY {all})",
        )
    ).format(key=key, first=first, number=number, all=every)
    return f"SELECT {d.some(name, 'x', 'c')}, {call} AS w FROM {name} x"


def _top(d: Drawing) -> str | None:
    name = d.relation()
    if name is None:
        return None
    every = ", ".join(f"{column.name}{d.draw.choice(('', ' DESC', ' NULLS LAST'))}" for column in d.relations[name])
    offset = d.draw.choice(("", "", " OFFSET 1"))
    return f"SELECT * FROM {name} ORDER BY {every} LIMIT {d.draw.randint(1, 3)}{offset}"


def _recursive(d: Drawing) -> str | None:
    name = d.relation(lambda columns: sum(column.is_whole for column in columns) > 1)
    if name is None:
        return None
    a, b = d.draw.sample([column.name for column in d.relations[name] if column.is_whole], 2)
    if d.draw.random() < 0.5:
        return (
            f"WITH RECURSIVE path(a, b) AS (SELECT CAST({a} AS BIGINT), CAST({b} AS BIGINT) FROM {name} "
            f"UNION SELECT p.a, CAST(e.{b} AS BIGINT) FROM path p JOIN {name} e ON p.b = e.{a}) SELECT * FROM path"
        )
    return (
        f"WITH RECURSIVE down(n, depth) AS (SELECT CAST({a} AS BIGINT), 0 FROM {name} UNION "
        f"SELECT CAST(e.{b} AS BIGINT), d.depth + 1 FROM down d JOIN {name} e ON d.n = e.{a} WHERE d.depth < 4) "
        f"SELECT n, min(depth) AS depth FROM down GROUP BY n"
    )


def _scalar(d: Drawing) -> str | None:
    found = d.pair()
    if found is None:
        return None
    left, mine, right, other = found
    call = d.draw.choice(("count(*)", f"max(r.{d.column(right)})", f"min(r.{other})"))
    return f"SELECT l.{mine} AS c0, (SELECT {call} FROM {right} r WHERE r.{other} = l.{mine}) AS s FROM {left} l"


def _timed(d: Drawing) -> str | None:
    name = d.relation(lambda columns: any(column.type == "TIMESTAMP" for column in columns))
    if name is None:
        return None
    at = d.column(name, lambda column: column.type == "TIMESTAMP")
    shape = d.draw.random()
    if shape < 0.4:
        calls = ", ".join(f"{call} AS n{n}" for n, call in enumerate(_calls(d, name, "x")))
        emit = d.draw.choice(("", " EMIT ON WINDOW CLOSE"))
        return f"SELECT window.start AS s, {calls} FROM {name} x GROUP BY window(x.{at}, '5 minutes'){emit}"
    if shape < 0.7:
        return f"SELECT {d.some(name, 'x', 'c')} FROM {name} x WHERE x.{at} > now() - INTERVAL 10 MINUTES"
    return f"SELECT session_window.end AS e, count(*) AS n FROM {name} x GROUP BY session_window(x.{at}, '5 minutes')"


def _odd(d: Drawing) -> str | None:
    name = d.relation(lambda columns: any(column.type.startswith(("ARRAY", "STRUCT", "MAP")) for column in columns))
    if name is None:
        return None
    column = d.draw.choice([c for c in d.relations[name] if c.type.startswith(("ARRAY", "STRUCT", "MAP"))])
    if column.type.startswith("ARRAY"):
        return f"SELECT {d.some(name, 'x', 'c')}, e FROM {name} x LATERAL VIEW OUTER explode(x.{column.name}) AS e"
    if column.type.startswith("MAP"):
        return f"SELECT k, v, count(*) AS n FROM {name} x LATERAL VIEW explode(x.{column.name}) AS k, v GROUP BY k, v"
    return f"SELECT x.{column.name}.*, count(*) AS n FROM {name} x GROUP BY x.{column.name}"


QUERIES = (
    _select,
    _star,
    _join,
    _join,
    _exists,
    _group,
    _group,
    _set,
    _window,
    _top,
    _recursive,
    _scalar,
    _timed,
    _odd,
)


def sql_view(d: Drawing, name: str, replace: bool) -> str | None:
    """A statement that makes a view, as a line of Python."""
    query = d.draw.choice(QUERIES)(d)
    if query is None:
        return None
    word = "CREATE OR REPLACE" if replace else "CREATE"
    kind = "VIEW" if d.draw.random() < 0.12 else "MATERIALIZED VIEW"
    return f"db.sql({f'{word} {kind} {name} AS {query}'!r})"


def rules(d: Drawing, name: str, replace: bool) -> str | None:
    """Rules over whole numbers of a relation: a closure, mutual recursion, negation, an aggregate."""
    if replace:
        return None
    relation = d.relation(lambda columns: sum(column.is_whole for column in columns) > 1)
    if relation is None:
        return None
    columns = d.relations[relation]
    a, b = d.draw.sample([n for n, column in enumerate(columns) if column.is_whole], 2)
    terms = ["_"] * len(columns)

    def atom(x: str, y: str) -> str:
        return f"{relation}({', '.join({a: x, b: y}.get(n, term) for n, term in enumerate(terms))})"

    text = d.draw.choice(
        (
            f"{name}(x, y) :- {atom('x', 'y')}. {name}(x, z) :- {name}(x, y), {atom('y', 'z')}.",
            f"{name}(x) :- {atom('x', 'y')}, {name}odd(y). {name}odd(x) :- {atom('x', 'y')}, {name}(y). {name}(1).",
            f"{name}e(x, y) :- {atom('x', 'y')}. {name}(x) :- {name}e(x, _), !{name}e(_, x).",
            f"{name}(x, n) :- {atom('x', '_')}, n = count : {{ {atom('x', '_')} }}.",
            f"{name}(x, y, z) :- {atom('x', 'y')}, {atom('y', 'z')}, {atom('z', 'x')}.",
            f"{name}d(x, 0) :- {atom('x', '_')}, x = 1. {name}d(y, n + 1) :- {name}d(x, n), {atom('x', 'y')}, n < 5. "
            f"{name}(x, m) :- {name}d(x, _), m = min n : {{ {name}d(x, n) }}.",
        )
    )
    return f"db.datalog({text!r})"


def fluent(d: Drawing, name: str, replace: bool) -> str | None:
    """A fluent query that is kept."""
    found = d.pair()
    if found is None or replace:
        return None
    left, mine, right, other = found
    call = d.draw.choice(("join", "left_join"))
    text = f"db.query({left!r}).{call}(db.query({right!r}), on=({mine!r}, {other!r}), as_='p')"
    if d.draw.random() < 0.4:
        test = d.draw.choice(("exists", "not_exists"))
        text = f"db.query({left!r}).{test}(db.query({right!r}), on=({mine!r}, {other!r}))"
    return f"{text}.materialize({name!r})"


def frame(d: Drawing, name: str, replace: bool) -> str | None:
    """A frame that is kept: a join or a count."""
    found = d.pair()
    if found is None:
        return None
    left, mine, right, other = found
    text = f"db.frame({left!r}).groupBy({mine!r}).count()"
    if d.draw.random() < 0.5:
        selected = f"db.frame({right!r}).select(db.frame({right!r})[{other!r}].alias({mine!r})).distinct()"
        how = d.draw.choice(("inner", "left_anti", "left_semi"))
        text = f"db.frame({left!r}).join({selected}, on={mine!r}, how={how!r})"
    return f"db.define({name!r}, {text}, replace={replace})"


KINDS = (sql_view, sql_view, sql_view, sql_view, sql_view, rules, fluent, frame)
