"""Random queries over given tables."""

from __future__ import annotations

import random
from collections.abc import Iterable

from torture.random_sql.aggregates import Aggregates
from torture.random_sql.clauses import (
    Ending,
    Grouping,
    Item,
    Join,
    Pivot,
    Query,
    Recursive,
    Relation,
    Select,
    SetOperation,
    Table,
    With,
)
from torture.random_sql.constants import written
from torture.random_sql.expressions import Expressions, Scope, leaves
from torture.random_sql.features import FEATURES
from torture.random_sql.relations import Relations
from torture.random_sql.tables import TableShape
from torture.random_sql.trees import (
    ARRAY,
    BOOL,
    COMPARISON,
    DATE,
    DEC,
    DOUBLE,
    INT,
    PRODUCT,
    STR,
    TYPES,
    Among,
    Call,
    Constant,
    Exists,
    Expr,
    Form,
    Name,
    Scalar,
)

from torture.random_sql.constants import VALUES  # isort: skip

TRUE = Constant(BOOL, "true", "true")


class Queries:
    """Makes queries from a seeded chance; the same seed gives the same queries."""

    def __init__(
        self, chance: random.Random, shapes: tuple[TableShape, ...], features: frozenset[str] = FEATURES
    ) -> None:
        self.chance, self.features = chance, features
        self.expressions = Expressions(chance, features)
        self.aggregates = Aggregates(chance, features, self.expressions)
        self.relations = Relations(self, shapes)
        self.inside = 0  # how many subqueries stand around what is being made

    def fresh(self) -> Query:
        """A query of its own, with aliases from r1 on."""
        self.relations.count, self.relations.named, self.inside = 0, [], 0
        return self.query(2)

    def query(self, depth: int, types: tuple[str, ...] | None = None) -> Query:
        roll = self.chance.random()
        if depth > 0 and roll < 0.14 and "set_operations" in self.features:
            return self._set_operation(depth, types)
        if depth == 2 and types is None:
            if roll < 0.22 and "with" in self.features:
                return self._with(depth)
            if roll < 0.25 and "recursion" in self.features:
                return self._recursive()
            if roll < 0.30 and "pivot" in self.features:
                return self._pivot()
        return self._select(depth, types)

    # -- SELECT

    def _select(self, depth: int, types: tuple[str, ...] | None) -> Query:
        free = types is None
        if types is None:
            types = tuple(self.chance.choice(TYPES) for _ in range(self.chance.randint(1, 3)))
        made = self.relations.source(depth)
        scope = Scope(made.columns, self.subquery if "subqueries" in self.features else None)
        where = self.expressions.condition(scope, 2) if self.chance.random() < 0.4 else None
        roll = self.chance.random()
        if roll < 0.35 and "grouping" in self.features:
            query = self._grouped(types, free, scope, where, made.relation)
        elif roll < 0.55 and "windows" in self.features:
            query = Select(_items(self.aggregates.windows(types, scope)), made.relation, where)
        else:
            within = scope if "in_select" in self.features else scope.without_subqueries()
            items = [self.expressions.expr(kind, within, 2) for kind in types]
            distinct = "distinct" in self.features and self.chance.random() < 0.2
            query = Select(_items(items), made.relation, where, distinct=distinct)
        return self._ended(query)

    def _ended(self, query: Select) -> Select:
        chosen = "limit" in self.features and self.chance.random() < 0.12
        if not chosen or (ARRAY in query.types and "order_arrays" not in self.features):
            return query
        descending = tuple(self.chance.random() < 0.4 for _ in query.items)
        offset = self.chance.choice([None, None, 1])
        ending = Ending(descending, self.chance.randint(0, 5), offset)
        return Select(query.items, query.source, query.where, query.group, query.having, query.distinct, ending)

    # -- GROUP BY

    def _grouped(
        self, types: tuple[str, ...], free: bool, scope: Scope, where: Expr | None, source: Relation
    ) -> Select:
        keys = tuple(dict.fromkeys(self._key(scope) for _ in range(self.chance.choice([0, 1, 1, 2, 2, 3]))))
        bare = free and bool(keys) and "grouping_bare" in self.features and self.chance.random() < 0.1
        made = [] if bare else [self.aggregates.aggregate(kind, scope, 1) for kind in types]
        pool = Scope((*keys, *(each for each in made if each is not None)))
        group = self._grouping(keys)
        items = [self._grouped_item(kind, pool) for kind in types]
        items = [item if not bare else self.chance.choice(keys) for item in items]
        if free and group is not None and group.kind != "PLAIN" and self.chance.random() < 0.5:
            key = self.chance.choice(keys)
            items[-1] = Call(INT, Form("grouping({0})", "grouping({0})"), (key,))
        having = None
        if "having" in self.features and self.chance.random() < 0.25:
            inner = Scope(pool.columns, self.subquery if "subquery_having" in self.features else None)
            having = TRUE if bare else self.expressions.expr(BOOL, inner, 2)
        if free and group is None and not any(each is not None for each in made):
            items[0] = Call(INT, Form("count(*)", "count(*)"), ())
        query = Select(_items(items), source, where, group, having)
        return self._with_ordinals(query) if "ordinals" in self.features else query

    def _key(self, scope: Scope) -> Expr:
        """What to group by: a column, or an expression of one; a literal would be an ordinal."""
        plain = scope.without_subqueries()
        if "grouping_bare" in self.features and self.chance.random() < 0.02:
            return Constant(INT, "NULL", "CAST(NULL AS INT)")
        for _ in range(3):
            made = self.expressions.expr(self.chance.choice(TYPES), plain, self.chance.choice([0, 0, 1]))
            if any(isinstance(leaf, Name) for leaf in leaves(made)):
                return made
        return self.chance.choice(scope.columns)

    def _grouped_item(self, kind: str, pool: Scope) -> Expr:
        if "empty_group" in self.features and kind == DOUBLE and self.chance.random() < 0.05:
            return Call(DOUBLE, Form("10 / count(*)", "10 / count(*)", PRODUCT), ())
        return self.expressions.expr(kind, pool, 1)

    def _grouping(self, keys: tuple[Expr, ...]) -> Grouping | None:
        if not keys:
            return None
        if "grouping_sets" not in self.features or self.chance.random() < 0.6:
            return Grouping(keys)
        kind = self.chance.choice(["ROLLUP", "CUBE", "SETS"])
        sets = tuple(
            tuple(at for at in range(len(keys)) if self.chance.random() < 0.5) for _ in range(self.chance.randint(1, 3))
        )
        return Grouping(keys, kind, ((*range(len(keys)),), *sets) if kind == "SETS" else ())

    def _with_ordinals(self, query: Select) -> Select:
        """Sometimes keys that are output columns, by their places."""
        if query.group is None or query.group.kind != "PLAIN" or self.chance.random() > 0.2:
            return query
        exprs = [item.expr for item in query.items]
        if any(key not in exprs for key in query.group.keys):
            return query
        places = tuple(exprs.index(key) + 1 for key in query.group.keys)
        return Select(query.items, query.source, query.where, Grouping(query.group.keys, ordinals=places), query.having)

    # -- subqueries in expressions

    def subquery(self, scope: Scope, kind: str) -> Expr | None:
        """A scalar subquery of a type, or EXISTS or IN for a BOOLEAN."""
        if self.inside >= 2:
            return None
        self.inside += 1
        named, self.relations.named = self.relations.named, []
        try:
            return self._predicate(scope) if kind == BOOL and self.chance.random() < 0.8 else self._scalar(scope, kind)
        finally:
            self.inside -= 1
            self.relations.named = named

    def _predicate(self, scope: Scope) -> Expr:
        negated = "not_in" in self.features and self.chance.random() < 0.4
        if self.chance.random() < 0.5:
            return Exists(BOOL, self.correlated(scope, grouped=False), negated)
        kind = self.chance.choice(TYPES)
        value = self.expressions.expr(kind, scope.without_subqueries(), 1)
        return Among(BOOL, value, self.correlated(scope, grouped=False, kind=kind), negated)

    def _scalar(self, scope: Scope, kind: str) -> Expr | None:
        query = self.correlated(scope, grouped=True, kind=kind)
        return Scalar(kind, query) if query.types == (kind,) else None

    def correlated(self, outer: Scope, grouped: bool, kind: str | None = None) -> Select:
        """A subquery that may name columns around it; `grouped` makes it one row of one aggregate."""
        made = self.relations.source(0, 1)
        inner = Scope(made.columns)
        conditions = [self.expressions.condition(inner, 1)] if self.chance.random() < 0.3 else []
        names = [c for c in outer.columns if isinstance(c, Name)]
        if "correlated" in self.features and names and self.chance.random() < 0.75:
            linked = self._link(Scope(tuple(names)), inner)
            conditions += [linked] if linked is not None else []
        where = conditions[0] if conditions else None
        if len(conditions) == 2:
            where = Call(BOOL, Form("({0}) AND ({1})", "{0} AND {1}"), tuple(conditions))
        if not grouped:
            items = [self.expressions.expr(kind or self.chance.choice(TYPES), inner, 1)]
            return Select(_items(items), made.relation, where)
        aggregate = self.aggregates.aggregate(kind, inner, 1)
        if aggregate is None:
            aggregate = self.aggregates.aggregate(INT, inner, 1)
            assert aggregate is not None
        return Select(_items([self._scaled(aggregate, Scope(tuple(names)))]), made.relation, where)

    def _scaled(self, aggregate: Expr, outer: Scope) -> Expr:
        """Sometimes an aggregate times a number of the row outside."""
        numbers = outer.of(INT)
        if aggregate.type != INT or not numbers or "correlated" not in self.features or self.chance.random() > 0.25:
            return aggregate
        return Call(
            INT,
            Form("{0} * {1}", "{0} * {1}", PRODUCT, (PRODUCT, PRODUCT + 1)),
            (aggregate, self.chance.choice(numbers)),
        )

    def _link(self, outer: Scope, inner: Scope) -> Expr | None:
        pairs = [(a, b) for a in inner.columns for b in outer.of(a.type)]
        if not pairs:
            return None
        sign = self.chance.choice(["=", "=", "=", "<", "<>", ">="])
        a, b = self.chance.choice(pairs)
        sign = "=" if a.type == ARRAY else sign
        return Call(
            BOOL, Form(f"{{0}} {sign} {{1}}", f"{{0}} {sign} {{1}}", COMPARISON, (COMPARISON, COMPARISON + 1)), (a, b)
        )

    # -- around SELECT

    def _set_operation(self, depth: int, types: tuple[str, ...] | None) -> Query:
        left = self.query(depth - 1, types)
        wider = {INT: [INT, INT, DOUBLE, DEC], DEC: [DEC, DEC, DOUBLE]}
        others = (
            tuple(self.chance.choice(wider.get(kind, [kind])) for kind in left.types) if types is None else left.types
        )
        right = self.query(depth - 1, others)
        operator = self.chance.choice(["UNION", "UNION", "INTERSECT", "EXCEPT"])
        return SetOperation(operator, self.chance.random() < 0.5, left, right)

    def _with(self, depth: int) -> Query:
        named = self.query(depth - 1)
        self.relations.named = [("q0", named.types)]
        body = self.query(depth - 1)
        self.relations.named = []
        return With("q0", named, body)

    def _recursive(self) -> Query:
        """Paths of bounded length over a table: each row of the table is an edge between two of its numbers."""
        base, edge = self.relations.table(), self.relations.table()
        numbers = [c for c in base.columns if c.type == INT]
        start, (source, target) = (
            self.chance.choice(numbers),
            (self.chance.choice([c for c in edge.columns if c.type == INT]) for _ in range(2)),
        )
        one, name = Constant(INT, "1", "1"), "q0"
        first = Select(
            _items([start, one]), base.relation, self.expressions.condition(Scope(base.columns), 1), distinct=True
        )
        at, length = Name(INT, name, "c0"), Name(INT, name, "c1")
        more = Call(INT, Form("{0} + 1", "{0} + 1"), (length,))
        join = Join("INNER", Table(name, name), edge.relation, Call(BOOL, Form("{0} = {1}", "{0} = {1}"), (at, source)))
        bound = Call(BOOL, Form("{0} < 4", "{0} < 4"), (length,))
        step = Select(_items([target, more]), join, bound)
        body = Select(
            _items([at, Call(INT, Form("count(*)", "count(*)"), ())]), Table(name, name), None, Grouping((at,))
        )
        if self.chance.random() < 0.5:
            body = Select(_items([at, length]), Table(name, name))
        keeps_all = "recursion_all" in self.features and self.chance.random() < 0.3
        return Recursive(name, ("c0", "c1"), first, step, keeps_all, body)

    def _pivot(self) -> Query:
        made = self.relations.source(0, 2)
        scope = Scope(made.columns)
        aggregate = self.chance.choice(
            ["sum", "min", "max", "count"] if "pivot_edges" in self.features else ["sum", "max"]
        )
        of = self.chance.choice([INT, STR, DATE])
        value = self.chance.choice([INT, DEC] if aggregate == "sum" else [INT, STR, DATE])
        types = (self.chance.choice([INT, STR]), of, value)
        source = Select(_items([self.expressions.expr(kind, scope, 1) for kind in types]), made.relation)
        listed = self.chance.sample(VALUES[of], 2)
        if "pivot_edges" in self.features and self.chance.random() < 0.3:
            listed.append(None)
        return Pivot(
            source, aggregate, tuple(written(of, v, self.chance, self.features - {"short_dates"}) for v in listed)
        )


def _items(exprs: Iterable[Expr]) -> tuple[Item, ...]:
    return tuple(Item(expr, f"c{at}") for at, expr in enumerate(exprs))
