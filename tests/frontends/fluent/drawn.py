"""Random fluent queries as recipes: data that any database can build a query of, and a naive evaluator can read.

A recipe is a relation and the calls of methods in order. Arguments are plain values; a recipe among them stands for
the query that it makes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from everview.frontends.fluent import agg
from everview.frontends.fluent.agg import Agg
from frontends.fluent.music import COLUMNS, REFERENCES, VALUES


@dataclass(frozen=True)
class Recipe:
    """A query: of which relation, and which methods are called with what."""

    relation: str
    calls: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = ()

    def then(self, method: str, *arguments: Any, **named: Any) -> Recipe:
        return replace(self, calls=(*self.calls, (method, arguments, named)))

    def has(self, *methods: str) -> bool:
        return any(method in methods for method, _, _ in self.calls)

    def __str__(self) -> str:
        def shown(value: Any) -> str:
            return str(value) if isinstance(value, Recipe) else repr(value)

        text = f'db.query("{self.relation}")'
        for method, arguments, named in self.calls:
            given = [*map(shown, arguments), *(f"{name}={shown(value)}" for name, value in named.items())]
            text += f".{method}({', '.join(given)})"
        return text

    __repr__ = __str__


def build(db: Any, recipe: Recipe) -> Any:
    """The query of a recipe; ``db`` has a method ``query``."""
    query = db.query(recipe.relation)
    for method, arguments, named in recipe.calls:
        given = [_built(db, query, a) for a in arguments]
        query = getattr(query, method)(*given, **{name: _built(db, query, a) for name, a in named.items()})
    return query


def _built(db: Any, query: Any, value: Any) -> Any:
    if isinstance(value, Recipe):
        return build(db, value)
    if isinstance(value, Test):
        return value.condition(query)
    return value


# -- conditions


@dataclass(frozen=True)
class Test:
    """A condition: ``("and" | "or" | "not", parts)`` or ``(column, operator, value)``."""

    __test__ = False
    how: str
    parts: tuple[Any, ...]

    def condition(self, query: Any) -> Any:
        if self.how == "compare":
            column, operator, value = self.parts
            return query.and_((column, operator, value))
        return getattr(query, f"{self.how}_")(*(part.condition(query) for part in self.parts))


def values_of(column: str) -> st.SearchStrategy[Any]:
    """Values to compare a column with."""
    return VALUES[column.rpartition(".")[2]]


@st.composite
def comparisons(draw: st.DrawFn, columns: list[str]) -> Test:
    column = draw(st.sampled_from(columns))
    operators = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "between"]
    if column.rpartition(".")[2] in ("name", "title", "country"):
        operators += ["like", "not like"]
    operator = draw(st.sampled_from(operators))
    values = values_of(column)
    if operator in ("in", "not in"):
        value: Any = tuple(draw(st.lists(values, min_size=1, max_size=3)))
    elif operator in ("is", "is not"):
        value = None
    elif operator == "between":
        value = (draw(values), draw(values))
    elif operator in ("like", "not like"):
        value = draw(st.sampled_from(["%", "a%", "_", "%b\\%", "", "A"]))
    else:
        value = draw(values)
    return Test("compare", (column, operator, value))


def conditions(columns: list[str]) -> st.SearchStrategy[Test]:
    """Conditions over columns."""
    return st.recursive(
        comparisons(columns),
        lambda inner: (
            st.builds(Test, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=2).map(tuple))
            | inner.map(lambda one: Test("not", (one,)))
        ),
        max_leaves=3,
    )


# -- queries


def ways(relation: str) -> list[tuple[str, str, str]]:
    """The relations that one refers to or is referred to by: their names, and the columns that are equal."""
    out = [(other, column, "id") for table, column, other in REFERENCES if table == relation]
    return out + [(table, "id", column) for table, column, other in REFERENCES if other == relation]


@st.composite
def filtered(draw: st.DrawFn, relation: str) -> Recipe:
    """Some rows of a relation."""
    found = Recipe(relation)
    if draw(st.integers(0, 2)) == 2:
        found = found.then("where", draw(conditions(list(COLUMNS[relation]))))
    return found


@st.composite
def recipes(draw: st.DrawFn, relation: str | None = None, depth: int = 2, groups: bool = True) -> Recipe:
    """Queries; with relations beneath each other to some depth."""
    relation = draw(st.sampled_from(list(COLUMNS))) if relation is None else relation
    found, columns = Recipe(relation), list(COLUMNS[relation])
    for number in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        other, left, right = draw(st.sampled_from(ways(relation)))
        alias, kind = f"{other}{number}", draw(st.sampled_from(["join", "left_join"]))
        found = found.then(kind, draw(filtered(other)), as_=alias, on=(left, right))
        columns += [f"{alias}.{column}" for column in COLUMNS[other]]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        found = found.then("where", draw(conditions(columns)))
    if draw(st.integers(0, 3)) == 3:
        other, left, right = draw(st.sampled_from(ways(relation)))
        method = draw(st.sampled_from(["exists", "not_exists"]))
        found = found.then(method, draw(filtered(other)), on=(left, right))
    kind = draw(st.sampled_from(["plain", "plain", "select", "distinct", "group"] if groups else ["plain"]))
    if kind == "group":
        return draw(limits(*draw(grouped(found, columns))))
    if kind == "distinct":
        found = found.then("select", *draw(_some(list(COLUMNS[relation])))).then("distinct")
    elif kind == "select":
        found = found.then("select", *draw(_some(columns)), again=draw(st.sampled_from(columns)))
    if depth and kind != "distinct":
        for number in range(draw(st.sampled_from([0, 1, 1, 2]))):
            found = draw(related(found, relation, f"{number}", depth - 1))
    shown = list(found.calls[-2][1]) if kind == "distinct" else columns
    return draw(limits(found, shown, relation if kind == "plain" and not found.has("join", "left_join") else None))


def _some(columns: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(columns), min_size=1, max_size=3, unique=True)


@st.composite
def related(draw: st.DrawFn, found: Recipe, relation: str, number: str, depth: int) -> Recipe:
    other, left, right = draw(st.sampled_from(ways(relation)))
    method = draw(st.sampled_from(["related_one", "related_many"]))
    inner = draw(recipes(other, depth, groups=False))
    inner = replace(inner, calls=tuple(call for call in inner.calls if call[0] != "one"))
    return found.then(method, f"{other}s{number}", inner, on=(left, right))


@st.composite
def grouped(draw: st.DrawFn, found: Recipe, columns: list[str]) -> tuple[Recipe, list[str]]:
    """Groups with aggregates, or one group of all rows; and the columns that they can be sorted by."""
    by = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True))
    chosen: list[Agg] = []
    for number in range(draw(st.integers(1, 3))):
        chosen.append(draw(aggregates(columns, f"a{number}")))
    if by:
        found = found.then("group_by", *by)
    found = found.then("select", *by, *chosen)
    if draw(st.integers(0, 4)) == 4:
        found = found.then("select", agg.array("*", "records"))
    first = chosen[0]
    if first.function in ("count", "min", "max") and draw(st.booleans()):
        value = st.integers(0, 2) if first.function == "count" else values_of(first.column)
        found = found.then("having", "a0", draw(st.sampled_from([">", "<=", "="])), draw(value))
    return found, [*by, *(one.name for one in chosen if one.function != "array")]


@st.composite
def aggregates(draw: st.DrawFn, columns: list[str], name: str) -> Agg:
    function = draw(st.sampled_from(["count", "count", "sum", "avg", "min", "max", "array"]))
    if function == "count" and draw(st.booleans()):
        return agg.count("*", name)
    numbers = [c for c in columns if c.rpartition(".")[2] in ("id", "rating", "year")]
    column = draw(st.sampled_from(numbers if function in ("sum", "avg") else columns))
    if function == "count":
        return agg.count(column, name, distinct=draw(st.booleans()))
    return getattr(agg, function)(column, name)


@st.composite
def limits(draw: st.DrawFn, found: Recipe, columns: list[str], relation: str | None = None) -> Recipe:
    """An order, a limit; a start, if only rows of one relation are shown as they are."""
    if columns:
        for column in draw(st.lists(st.sampled_from(columns), max_size=2, unique=True)):
            found = found.then("order_by", column, draw(st.sampled_from(["asc", "desc"])))
    if relation is not None and draw(st.booleans()):
        found = found.then("start_after", {column: draw(VALUES[column]) for column in COLUMNS[relation]})
    if draw(st.booleans()):
        found = found.then("limit", draw(st.integers(0, 3)))
    if draw(st.integers(0, 9)) == 9:
        found = found.then("one")
    return found
