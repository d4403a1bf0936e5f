"""Random relations: tables, subqueries, rows of literals, joins of every kind, and generators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torture.random_sql.clauses import Derived, Generated, Join, Relation, Row, Table, Values
from torture.random_sql.constants import constant
from torture.random_sql.expressions import Scope, Subquery
from torture.random_sql.tables import COLUMNS, TableShape
from torture.random_sql.trees import AND, ARRAY, COMPARISON, INT, STR, Call, Expr, Form, Name, Scalar

if TYPE_CHECKING:
    from torture.random_sql.queries import Queries

BOUND = 2_000  # rows that a relation may be guessed to have


@dataclass(frozen=True)
class Sourced:
    """A relation, the columns that it shows, and how many rows it may have."""

    relation: Relation
    columns: tuple[Name, ...]
    size: int


class Relations:
    """Makes relations; `queries` makes the subqueries in them."""

    def __init__(self, queries: Queries, shapes: tuple[TableShape, ...]) -> None:
        self.queries, self.shapes = queries, shapes
        self.chance, self.features, self.expressions = queries.chance, queries.features, queries.expressions
        self.named: list[tuple[str, tuple[str, ...]]] = []  # what WITH has named here
        self.count = 0

    def source(self, depth: int, most: int = 3) -> Sourced:
        """One relation or some joined, and perhaps a generator over them."""
        made = self.relation(depth)
        if "joins" in self.features:
            for _ in range(self.chance.choice([0, 0, 1, 1, 1, 2][: 2 * most])):
                made = self._joined(made, depth)
        arrays = [column for column in made.columns if column.type == ARRAY]
        if "generators" in self.features and self.chance.random() < (0.5 if arrays else 0.03):
            made = self._generated(made)
        return made

    def relation(self, depth: int) -> Sourced:
        kinds = ["table"] * 5
        kinds += ["derived"] * 2 if depth > 0 and "derived" in self.features else []
        kinds += ["values"] if "values" in self.features else []
        kinds += ["named"] * 4 if self.named else []
        match self.chance.choice(kinds):
            case "derived":
                return self.derived(depth)
            case "values":
                return self._values()
            case "named":
                name, types = self.chance.choice(self.named)
                alias = self.alias()
                return Sourced(Table(name, alias), _numbered(types, alias), 20)
            case _:
                return self.table()

    def table(self) -> Sourced:
        shape, alias = self.chance.choice(self.shapes), self.alias()
        return Sourced(Table(shape.name, alias), tuple(Name(COLUMNS[c], alias, c) for c in shape.columns), 10)

    def derived(self, depth: int) -> Sourced:
        query, alias = self.queries.query(depth - 1), self.alias()
        return Sourced(Derived(query, alias), _numbered(query.types, alias), 30)

    def alias(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def _values(self) -> Sourced:
        types = tuple(self.chance.choice([INT, INT, STR]) for _ in range(self.chance.randint(1, 2)))
        rows = tuple(
            Row(tuple(constant(kind, self.chance, self.features) for kind in types))
            for _ in range(self.chance.randint(1, 3))
        )
        alias = self.alias()
        return Sourced(Values(rows, alias, tuple(f"c{at}" for at in range(len(types)))), _numbered(types, alias), 3)

    # -- joins

    def _joined(self, left: Sourced, depth: int) -> Sourced:
        if (
            "using" in self.features
            and isinstance(left.relation, Table)
            and self.chance.random() < 0.2
            and not self.named
        ):
            return self._by_columns(left)
        if "lateral" in self.features and self.chance.random() < 0.12:
            return self._lateral(left)
        right = self.relation(depth)
        kinds = ["INNER"] * 3
        kinds += ["CROSS"] if left.size * right.size <= BOUND else []
        kinds += ["LEFT", "LEFT", "RIGHT", "FULL"] if "outer_joins" in self.features else []
        kinds += ["LEFT SEMI", "LEFT ANTI"] if "semi_joins" in self.features else []
        kind = self.chance.choice(kinds)
        columns = _beside(left.columns, right.columns)
        if kind == "CROSS":
            return Sourced(Join(kind, left.relation, right.relation), columns, left.size * right.size)
        on, is_equal = self._condition(kind, left, right)
        size = left.size + 2 * right.size if is_equal else left.size * right.size
        if kind in ("LEFT SEMI", "LEFT ANTI"):
            columns, size = left.columns, left.size
        return Sourced(Join(kind, left.relation, right.relation, on), columns, size)

    def _condition(self, kind: str, left: Sourced, right: Sourced) -> tuple[Expr, bool]:
        """Mostly an equality of the two sides, often more; sometimes any condition, where products stay small."""
        both = Scope(_beside(left.columns, right.columns), self._subqueries_on(kind))
        pairs = [
            (a, b) for a in _beside(left.columns, right.columns) for b in right.columns if a.type == b.type and a != b
        ]
        pairs = [(a, b) for a, b in pairs if a not in right.columns]
        free = left.size * right.size <= BOUND and "non_equal" in self.features
        if not pairs or (free and self.chance.random() < 0.3):
            return self.expressions.condition(both, 2), False
        if kind != "INNER" and {"correlated_on", "correlated"} <= self.features and self.chance.random() < 0.06:
            return self._both_scalar(left, right), True
        equal = _equal(*self.chance.choice(pairs))
        if self.chance.random() < 0.35:
            more = self.expressions.condition(both, 2)
            return Call("BOOL", Form("{0} AND {1}", "{0} AND {1}", AND, (AND, AND + 1)), (equal, more)), True
        return equal, True

    def _both_scalar(self, left: Sourced, right: Sourced) -> Expr:
        """An equality of two scalar subqueries, one correlated with each side."""
        sides = (self.queries.correlated(Scope(side.columns), grouped=True, kind=INT) for side in (left, right))
        return _equal(*(Scalar(INT, query) for query in sides))

    def _subqueries_on(self, kind: str) -> Subquery | None:
        if "subquery_on" not in self.features or (kind != "INNER" and "correlated_on" not in self.features):
            return None
        return self.queries.subquery

    def _by_columns(self, left: Sourced) -> Sourced:
        right = self.table()
        common = [a.name for a in left.columns if any(a.name == b.name for b in right.columns)]
        kind = self.chance.choice(["INNER", "LEFT", "RIGHT", "FULL"] if "outer_joins" in self.features else ["INNER"])
        natural = self.chance.random() < 0.4
        using = tuple(common) if natural else tuple(self.chance.sample(common, self.chance.randint(1, len(common))))
        merged = tuple(Name(COLUMNS[name], None, name) for name in using)
        others = tuple(c for c in (*left.columns, *right.columns) if c.name not in using)
        join = Join(
            f"NATURAL {kind}" if natural else kind, left.relation, right.relation, None, () if natural else using
        )
        return Sourced(join, (*merged, *others), left.size + 2 * right.size)

    def _lateral(self, left: Sourced) -> Sourced:
        query = self.queries.correlated(Scope(left.columns), grouped=self.chance.random() < 0.5)
        alias = self.alias()
        kind = self.chance.choice(["INNER", "LEFT"])
        on = None if kind == "INNER" else Call("BOOL", Form("true", "true"), ())
        columns = (*left.columns, *_numbered(query.types, alias))
        return Sourced(Join(kind, left.relation, Derived(query, alias, True), on), columns, left.size * 3)

    # -- generators

    def _generated(self, made: Sourced) -> Sourced:
        scope, alias = Scope(made.columns), self.alias()
        functions = ["explode"] * 3
        functions += ["explode_outer", "posexplode", "posexplode_outer"] if "outer_generators" in self.features else []
        functions += ["inline", "inline_outer"] if "inline" in self.features else []
        function = self.chance.choice(functions)
        names, types = _GENERATED[function.removesuffix("_outer")]
        arg = self._structs(scope) if function.startswith("inline") else self.expressions.expr(ARRAY, scope, 1)
        style = self.chance.choice(["VIEW", "CALL"] if "generator_calls" in self.features else ["VIEW"])
        outer = "outer_generators" in self.features and self.chance.random() < 0.3
        columns = _beside(made.columns, tuple(Name(kind, alias, name) for kind, name in zip(types, names, strict=True)))
        return Sourced(Generated(made.relation, function, arg, alias, names, outer, style), columns, made.size * 2)

    def _structs(self, scope: Scope) -> Expr:
        """An array of two structs of a number and a text, or nothing."""
        values = tuple(self.expressions.expr(kind, scope, 1) for kind in (INT, STR, INT, STR))
        spark = "array(struct(CAST({0} AS INT) AS k, {1} AS v), struct(CAST({2} AS INT) AS k, {3} AS v))"
        duckdb = "[{{'a': {0}, 'b': {1}}}, {{'a': {2}, 'b': {3}}}]"
        if self.chance.random() < 0.5:
            condition = self.expressions.condition(scope, 1)
            spark, duckdb = f"CASE WHEN {{4}} THEN {spark} END", f"CASE WHEN {{4}} THEN {duckdb} END"
            values = (*values, condition)
        return Call(ARRAY, Form(spark, duckdb), values)


# What generators are called with Spark: the columns they make, and their types.
_GENERATED = {
    "explode": (("e",), (INT,)),
    "posexplode": (("pos", "e"), (INT, INT)),
    "inline": (("k", "v"), (INT, STR)),
}


def _numbered(types: tuple[str, ...], alias: str) -> tuple[Name, ...]:
    return tuple(Name(kind, alias, f"c{at}") for at, kind in enumerate(types))


def _beside(left: tuple[Name, ...], right: tuple[Name, ...]) -> tuple[Name, ...]:
    """The columns of both; one that a USING has merged has no alias, so it must not have a namesake."""
    taken = {column.name for column in right}
    return (*(c for c in left if c.alias is not None or c.name not in taken), *right)


def _equal(left: Expr, right: Expr) -> Expr:
    return Call("BOOL", Form("{0} = {1}", "{0} = {1}", COMPARISON, (COMPARISON, COMPARISON + 1)), (left, right))
