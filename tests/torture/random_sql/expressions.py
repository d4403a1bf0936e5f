"""Random expressions of a wanted type over the columns in scope."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from torture.random_sql.constants import PATTERNS, constant
from torture.random_sql.operators import RESULTS, Operator
from torture.random_sql.trees import BOOL, COMPARISON, PREDICATE, PRIMARY, STR, Call, Expr, Form, Name

Subquery = Callable[["Scope", str], Expr | None]


@dataclass(frozen=True)
class Scope:
    """The columns an expression may name, and the maker of subqueries, if they may stand where it stands."""

    columns: tuple[Expr, ...]
    subquery: Subquery | None = None

    def of(self, kind: str) -> tuple[Expr, ...]:
        return tuple(column for column in self.columns if column.type == kind)

    def without_subqueries(self) -> Scope:
        return replace(self, subquery=None)


class Expressions:
    """Makes expressions; `depth` bounds how far operators nest."""

    def __init__(self, chance: random.Random, features: frozenset[str]) -> None:
        self.chance, self.features = chance, features
        self.choices = {
            kind: tuple(self._written(op) for op in ops if op.feature is None or op.feature in features)
            for kind, ops in RESULTS.items()
        }

    def _written(self, operator: Operator) -> Operator:
        """The operator with operands as bare as its form allows, or all of them in parentheses."""
        if "bare_operators" in self.features:
            return operator
        return replace(operator, form=replace(operator.form, needs=tuple(PRIMARY for _ in operator.operands)))

    def expr(self, kind: str, scope: Scope, depth: int) -> Expr:
        if scope.subquery is not None and self.chance.random() < 0.08:
            made = scope.subquery(scope, kind)
            if made is not None:
                return made
        if depth <= 0 or self.chance.random() < 0.25:
            return self.leaf(kind, scope)
        if kind == BOOL and self.chance.random() < 0.12 and "like" in self.features:
            return self._like(scope, depth)
        chosen = self.chance.choice(self.choices[kind])
        if chosen.form.duckdb is None and self.chance.random() < 0.7:  # few that only Spark can judge
            chosen = self.chance.choice(self.choices[kind])
        return Call(kind, chosen.form, tuple(self.expr(each, scope, depth - 1) for each in chosen.operands))

    def leaf(self, kind: str, scope: Scope) -> Expr:
        columns = scope.of(kind)
        if columns and self.chance.random() < 0.75:
            return self.chance.choice(columns)
        if not columns and self.chance.random() < 0.7:
            return self._from_others(kind, scope)
        return constant(kind, self.chance, self.features)

    def _from_others(self, kind: str, scope: Scope) -> Expr:
        """A value of a type that no column has, from columns of other types."""
        able = [op for op in self.choices[kind] if all(scope.of(operand) for operand in op.operands)]
        if not able:
            return constant(kind, self.chance, self.features)
        chosen = self.chance.choice(able)
        return Call(kind, chosen.form, tuple(self.chance.choice(scope.of(operand)) for operand in chosen.operands))

    def condition(self, scope: Scope, depth: int) -> Expr:
        """A predicate that names a column if it can."""
        for _ in range(4):
            made = self.expr(BOOL, scope, depth)
            if any(isinstance(leaf, Name) for leaf in leaves(made)):
                return made
        return self.expr(BOOL, scope, depth)

    def _like(self, scope: Scope, depth: int) -> Expr:
        value = self.expr(STR, scope, depth - 1)
        binds = COMPARISON if "bare_operators" in self.features else PRIMARY
        word = self.chance.choice(["LIKE", "LIKE", "ILIKE"])
        quantifier = self.chance.choice([None, "ANY", "ALL"])
        negations = ["", "NOT "] if quantifier is None or "not_like_many" in self.features else [""]
        negation = self.chance.choice(negations)
        patterns = self.chance.sample(PATTERNS, 1 if quantifier is None else self.chance.randint(1, 3))
        if "doubled_quotes" not in self.features:
            patterns = [pattern.replace("'", "") for pattern in patterns]
        texts = ["'" + pattern.replace("'", "''") + "'" for pattern in patterns]
        each = [f"({{0}} {negation}{word} {text})" for text in texts]
        if quantifier is None:
            return Call(BOOL, Form(f"{{0}} {negation}{word} {texts[0]}", each[0], PREDICATE, (binds,)), (value,))
        spark = f"{{0}} {negation}{word} {quantifier} ({', '.join(texts)})"
        duckdb = (" OR " if quantifier == "ANY" else " AND ").join(each)
        return Call(BOOL, Form(spark, duckdb, PREDICATE, (binds,)), (value,))


def leaves(expr: Expr) -> list[Expr]:
    """The names and literals of an expression; a subquery counts as one."""
    if isinstance(expr, Call):
        return [leaf for arg in expr.args for leaf in leaves(arg)]
    return [expr]
