"""Relations and queries as trees: what stands in FROM, SELECT and its clauses, set operations, WITH and PIVOT."""

from __future__ import annotations

from dataclasses import dataclass

from torture.random_sql.trees import DEC, DOUBLE, INT, Engine, Expr, Node

# -- relations


@dataclass(frozen=True)
class Relation(Node):
    """What stands in FROM."""


@dataclass(frozen=True)
class Table(Relation):
    name: str
    alias: str

    def text(self, engine: Engine) -> str:
        return f"{self.name} AS {self.alias}"


@dataclass(frozen=True)
class Derived(Relation):
    """A subquery in FROM."""

    query: Query
    alias: str
    lateral: bool = False

    def text(self, engine: Engine) -> str:
        return f"{'LATERAL ' * self.lateral}({self.query.text(engine)}) AS {self.alias}"


@dataclass(frozen=True)
class Values(Relation):
    """Rows of literals."""

    rows: tuple[Row, ...]
    alias: str
    names: tuple[str, ...]

    def text(self, engine: Engine) -> str:
        rows = ", ".join(row.text(engine) for row in self.rows)
        return f"(VALUES {rows}) AS {self.alias}({', '.join(self.names)})"


@dataclass(frozen=True)
class Row(Node):
    values: tuple[Expr, ...]

    def text(self, engine: Engine) -> str:
        return f"({', '.join(value.text(engine) for value in self.values)})"


@dataclass(frozen=True)
class Join(Relation):
    """Two relations, joined ON a condition, USING columns, by nature, or in full."""

    kind: str  # INNER, LEFT, RIGHT, FULL, CROSS, LEFT SEMI, LEFT ANTI, NATURAL LEFT, ...
    left: Relation
    right: Relation
    on: Expr | None = None
    using: tuple[str, ...] = ()

    def text(self, engine: Engine) -> str:
        kind = self.kind
        if engine == "duckdb":
            kind = kind.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
        right = self.right.text(engine)
        text = f"{self.left.text(engine)} {kind} JOIN {f'({right})' if isinstance(self.right, Join) else right}"
        if self.using:
            return f"{text} USING ({', '.join(self.using)})"
        if self.on is not None:
            return f"{text} ON {self.on.text(engine)}"
        needs_condition = kind.split()[0] in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
        return f"{text} ON true" if needs_condition else text


@dataclass(frozen=True)
class Generated(Relation):
    """Rows made from a value of each row of `source`: explode and its kin.

    `style` is Spark's: `VIEW` for LATERAL VIEW, `CALL` for a lateral join with the function.
    """

    source: Relation
    function: str
    arg: Expr
    alias: str
    names: tuple[str, ...]
    outer: bool = False
    style: str = "VIEW"

    def text(self, engine: Engine) -> str:
        source, arg = self.source.text(engine), self.arg.text(engine)
        names = ", ".join(self.names)
        if engine == "spark" and self.style == "VIEW":
            return f"{source} LATERAL VIEW {'OUTER ' * self.outer}{self.function}({arg}) {self.alias} AS {names}"
        if engine == "spark":
            join = "LEFT JOIN LATERAL" if self.outer else "JOIN LATERAL"
            on = " ON true" * self.outer  # without it, Spark's LEFT JOIN of a generator drops rows as an inner one does
            return f"{source} {join} {self.function}({arg}) AS {self.alias}({names}){on}"
        keeps_all = self.outer or self.function.endswith("_outer")
        join = "LEFT JOIN" if keeps_all else "INNER JOIN"
        return f"{source} {join} LATERAL ({self._rows(arg)}) AS {self.alias}({names}) ON true"

    def _rows(self, arg: str) -> str:
        """What the function makes of one array, in DuckDB's words."""
        match self.function.removesuffix("_outer"):
            case "inline":
                return f"SELECT made.a, made.b FROM (SELECT unnest({arg}) AS made)"
            case "posexplode":
                return f"SELECT CAST(unnest(range(len({arg}))) AS INT), unnest({arg})"
            case _:
                return f"SELECT unnest({arg})"


# -- queries


@dataclass(frozen=True)
class Query(Node):
    """What has rows; its columns are called c0, c1, ... unless it says otherwise."""

    @property
    def types(self) -> tuple[str, ...]:
        raise NotImplementedError


@dataclass(frozen=True)
class Item(Node):
    """An output column."""

    expr: Expr
    name: str

    def text(self, engine: Engine) -> str:
        return f"{self.expr.text(engine)} AS {self.name}"


@dataclass(frozen=True)
class Grouping(Node):
    """GROUP BY: plain, ROLLUP, CUBE, or GROUPING SETS as positions of keys; `ordinals` writes plain keys as 1, 2."""

    keys: tuple[Expr, ...]
    kind: str = "PLAIN"
    sets: tuple[tuple[int, ...], ...] = ()
    ordinals: tuple[int, ...] = ()

    @property
    def has_sets(self) -> bool:
        """Whether there are sets of keys; the empty set alone is an aggregate of everything."""
        return self.kind in ("ROLLUP", "CUBE") or (self.kind == "SETS" and any(self.sets))

    def text(self, engine: Engine) -> str:
        if self.ordinals and engine == "spark":
            return ", ".join(map(str, self.ordinals))
        keys = [key.text(engine) for key in self.keys]
        if self.kind == "PLAIN":
            return ", ".join(keys)
        if self.kind == "SETS":
            chosen = ("(" + ", ".join(keys[at] for at in chosen if at < len(keys)) + ")" for chosen in self.sets)
            return f"GROUPING SETS ({', '.join(chosen)})"
        return f"{self.kind} ({', '.join(keys)})"


@dataclass(frozen=True)
class Ending(Node):
    """ORDER BY of all columns, so that LIMIT has one meaning."""

    descending: tuple[bool, ...]
    limit: int | None
    offset: int | None

    def order(self, engine: Engine, count: int) -> str:
        parts = (_direction(f"{at + 1}", self.descending[at % len(self.descending)], engine) for at in range(count))
        text = f" ORDER BY {', '.join(parts)}"
        if self.limit is not None:
            text += f" LIMIT {self.limit}"
        if self.offset is not None:
            text += f" OFFSET {self.offset}"
        return text


def _direction(text: str, descending: bool, engine: Engine) -> str:
    nulls = ("NULLS LAST" if descending else "NULLS FIRST") if engine == "duckdb" else ""
    return f"{text} {'DESC' if descending else 'ASC'} {nulls}".strip()


@dataclass(frozen=True)
class Select(Query):
    items: tuple[Item, ...]
    source: Relation | None
    where: Expr | None = None
    group: Grouping | None = None
    having: Expr | None = None
    distinct: bool = False
    ending: Ending | None = None

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(item.expr.type for item in self.items)

    def text(self, engine: Engine) -> str:
        text = f"SELECT {'DISTINCT ' * self.distinct}{', '.join(item.text(engine) for item in self.items)}"
        if self.source is not None:
            text += f" FROM {self.source.text(engine)}"
        if self.where is not None:
            text += f" WHERE {self.where.text(engine)}"
        if self.group is not None:
            text += f" GROUP BY {self.group.text(engine)}"
        text += self._having(engine)
        if self.ending is not None:
            text += self.ending.order(engine, len(self.items))
        return text

    def _having(self, engine: Engine) -> str:
        """Of no rows Spark makes no group where there are grouping sets; DuckDB must be told."""
        conditions = [] if self.having is None else [self.having.text(engine)]
        if engine == "duckdb" and self.group is not None and self.group.has_sets:
            conditions.append("count(*) > 0")
        return f" HAVING {' AND '.join(conditions)}" if conditions else ""


@dataclass(frozen=True)
class SetOperation(Query):
    """UNION, INTERSECT or EXCEPT, of bags with ALL; INTERSECT binds tighter, so few parentheses are needed."""

    operator: str
    all: bool
    left: Query
    right: Query

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(map(_wider, self.left.types, self.right.types))

    def text(self, engine: Engine) -> str:
        def side(query: Query, is_right: bool) -> str:
            text = query.text(engine)
            if isinstance(query, Select):
                return f"({text})" if query.ending else text
            if not isinstance(query, SetOperation) or engine == "duckdb" or is_right:
                return f"({text})"
            return f"({text})" if self.operator == "INTERSECT" and query.operator != "INTERSECT" else text

        return f"{side(self.left, False)} {self.operator}{' ALL' * self.all} {side(self.right, True)}"


def _wider(left: str, right: str) -> str:
    numbers = (INT, DEC, DOUBLE)
    return max(left, right, key=numbers.index) if left != right and {left, right} <= set(numbers) else left


@dataclass(frozen=True)
class With(Query):
    """A named query before another, which reads it by `Table`."""

    name: str
    named: Query
    body: Query

    @property
    def types(self) -> tuple[str, ...]:
        return self.body.types

    def text(self, engine: Engine) -> str:
        return f"WITH {self.name} AS ({self.named.text(engine)}) {self.body.text(engine)}"


@dataclass(frozen=True)
class Recursive(Query):
    """WITH RECURSIVE: `step` reads `name`, whose columns are `names`."""

    name: str
    names: tuple[str, ...]
    base: Query
    step: Query
    all: bool
    body: Query

    @property
    def types(self) -> tuple[str, ...]:
        return self.body.types

    def text(self, engine: Engine) -> str:
        rows = f"{self.base.text(engine)} UNION{' ALL' * self.all} {self.step.text(engine)}"
        return f"WITH RECURSIVE {self.name}({', '.join(self.names)}) AS ({rows}) {self.body.text(engine)}"


@dataclass(frozen=True)
class Pivot(Query):
    """Rows of (key, of, value) turned: one column for each listed value of `of`, NULL where there is no such row."""

    source: Query  # c0 the key, c1 what is turned, c2 what is aggregated
    aggregate: str
    listed: tuple[Expr, ...]

    @property
    def types(self) -> tuple[str, ...]:
        result = INT if self.aggregate == "count" else self.source.types[2]
        return (self.source.types[0], *(result for _ in self.listed))

    def text(self, engine: Engine) -> str:
        source = self.source.text(engine)
        if engine == "spark":
            listed = ", ".join(f"{value.text(engine)} AS c{at}" for at, value in enumerate(self.listed, 1))
            return f"SELECT * FROM ({source}) PIVOT ({self.aggregate}(c2) FOR c1 IN ({listed}))"
        columns = ", ".join(
            f"CASE WHEN count(*) FILTER (WHERE {same}) > 0 THEN {self.aggregate}(c2) FILTER (WHERE {same}) END AS c{at}"
            for at, value in enumerate(self.listed, 1)
            for same in [f"c1 IS NOT DISTINCT FROM {value.text(engine)}"]
        )
        return f"SELECT c0, {columns} FROM ({source}) GROUP BY c0"
