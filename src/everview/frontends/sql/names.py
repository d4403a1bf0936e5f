"""Scopes: the columns a name can mean, in the rows of a query and in the rows of the queries around it.

Names do not look at case, quoted or not; where two columns differ only in case, the one that is written so is meant.
A column is found by its name, or by that of its relation and its own; what stands behind them are fields of a struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from everview.errors import EverviewError, SqlError, UnknownName
from everview.plan.node import Plan
from everview.plan.typing import call, literal
from everview.scalars.expressions import Column, Expression, Outer, rewritten
from everview.types import STRING, MapType, Struct, unknown_name

MOST_SHOWN = 30  # names in a hint
LONGEST = 60  # characters of a name in a message


def short(name: str) -> str:
    """A name shortened for a message."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def file_named(name: str) -> UnknownName | None:
    """The error for a relation whose name looks like that of a file of rows; None if it does not."""
    ending = re.search(r"\.(csv|tsv|json|jsonl|ndjson|parquet)(\.gz|\.zst)?$", name, re.IGNORECASE)
    if ending is None:
        return None
    kind = ending[1].lower()
    reader = "read_parquet" if kind == "parquet" else "read_json" if "json" in kind else "read_csv"
    return UnknownName(f'table or view "{name}" does not exist', hint=f"{reader}('{name}') reads a file")


def fold(name: str) -> str:
    """The form in which a name is looked up: without case."""
    return name.casefold()


@dataclass(frozen=True, slots=True)
class Visible:
    """A column in scope: the name of its relation, its own name, and the expression for its value.

    A column that USING merged is still there under the name of its relation, but not `bare`.
    """

    relation: str | None
    name: str
    expression: Expression
    bare: bool = True

    def of(self, relation: str) -> bool:
        return self.relation is not None and fold(self.relation) == fold(relation)

    def called(self, name: str) -> bool:
        return fold(self.name) == fold(name)


@dataclass(frozen=True)
class Scope:
    """The names in scope: the columns of a row, the scope around them, and the aliases given by SELECT."""

    visible: tuple[Visible, ...] = ()
    outer: Scope | None = None
    aliases: Mapping[str, Expression] = field(default_factory=dict[str, Expression])
    hidden: tuple[str, ...] = ()  # relations that semi joins took away: named in errors only

    @staticmethod
    def over(plan: Plan, relation: str | None, names: Iterable[str], outer: Scope | None = None) -> Scope:
        """All columns of a plan, under the name of a relation."""
        columns = zip(names, plan.columns, strict=True)
        return Scope(tuple(Visible(relation, name, column) for name, column in columns), outer)

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v.relation for v in self.visible if v.relation is not None))

    def find(self, parts: tuple[str, ...]) -> Expression:
        """The expression that a name means; raises if it means nothing or several things."""
        meant = self._here(parts)
        if meant is None and len(parts) == 1:
            meant = self.aliases.get(fold(parts[0]))
        depth, scope = 0, self.outer
        while meant is None and scope is not None:
            depth += 1
            meant = scope._here(parts)
            scope = scope.outer
        if meant is None:
            raise self._unknown(parts)
        return outward(meant, depth) if depth else meant

    def _here(self, parts: tuple[str, ...]) -> Expression | None:
        """The expression in this row: a column of a named relation first, then a column, then fields of a struct."""
        if len(parts) > 1:
            matched = [v for v in self.visible if v.of(parts[0]) and v.called(parts[1])]
            if matched:
                return _fields(self._one(matched, parts[:2]), parts[2:])
            if any(v.of(parts[0]) for v in self.visible):
                raise self._unknown(parts)
        matched = [v for v in self.visible if v.bare and v.called(str(parts[0]))]  # pyright: ignore[reportGeneralTypeIssues]
        return _fields(self._one(matched, parts[:1]), parts[1:]) if matched else None

    def _one(self, matched: list[Visible], parts: tuple[str, ...]) -> Expression:
        exact = [v for v in matched if v.name == parts[-1]]
        matched = exact if len(exact) == 1 else matched
        if len({v.expression for v in matched}) > 1:
            meant = [f"{v.relation}.{v.name}" if v.relation else v.name for v in matched]
            unnamed = len(set(meant)) < len(meant)
            hint = "give the columns different names" if unnamed else f"write {' or '.join(meant)}"
            raise SqlError(f'column "{short(".".join(parts))}" is ambiguous', hint=hint)
        return matched[0].expression

    def star(self, relation: str | None = None) -> list[Visible]:
        """The columns that a star stands for: all, or those of one relation."""
        if relation is None:
            return [v for v in self.visible if v.bare]
        columns = [v for v in self.visible if v.of(relation)]
        if not columns:
            raise self._unknown_relation(relation)
        return columns

    def beside(self, other: Scope, plan: Plan, width: int) -> Scope:
        """The scope of rows of this and then of the other; `plan` gives rows of both, `width` columns of this."""
        twice = {fold(r) for r in self.relations} & {fold(r) for r in other.relations}
        if twice:
            hint = "give one of them another name: FROM a AS x, a AS y"
            raise SqlError(f'two relations are called "{min(twice)}"', hint=hint)
        left = (_reread(v, plan, 0) for v in self.visible)
        right = (_reread(v, plan, width) for v in other.visible)
        return Scope((*left, *right), self.outer, hidden=(*self.hidden, *other.hidden))

    def _unknown(self, parts: tuple[str, ...]) -> EverviewError:
        name = ".".join(parts)
        if len(parts) > 1:
            known = [v.name for v in self.visible if v.of(parts[0])]
            if known:
                return _unknown("column", parts[1], known, shown=name)
            fields = [v for v in self.visible if v.called(parts[0])]
            if not fields:
                return self._unknown_relation(parts[0])
        known = [v.name for scope in self._outwards() for v in scope.visible if v.bare]
        return _unknown("column", name, list(dict.fromkeys(known)))

    def _unknown_relation(self, relation: str) -> EverviewError:
        if fold(relation) in self.hidden:
            hint = "a semi or anti join gives the columns of its left side only"
            return UnknownName(f'"{short(relation)}" is only asked for matches', hint=hint)
        known = [r for scope in self._outwards() for r in scope.relations]
        return _unknown("relation", relation, known)

    def _outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def outward(expression: Expression, depth: int) -> Expression:
    """An expression over the row around, as a query ``depth`` levels inside reads it."""

    def out(e: Expression) -> Expression:
        match e:
            case Column(index, name, type_, nullable):
                return Outer(index, depth, name, type_, nullable)
            case Outer():
                return replace(e, depth=e.depth + depth)
            case _:
                return e

    return rewritten(expression, out)


def reread(expression: Expression, plan: Plan, by: int = 0) -> Expression:
    """The expression over rows of a plan in which its columns stand so many places later."""

    def read(e: Expression) -> Expression:
        return replace(plan.column(e.index + by), name=e.name) if isinstance(e, Column) else e

    return rewritten(expression, read)


def _reread(v: Visible, plan: Plan, by: int) -> Visible:
    e = v.expression
    if not isinstance(e, Column):
        return replace(v, expression=reread(e, plan, by))
    nullable = plan.schema.fields[e.index + by].nullable
    if by == 0 and nullable == e.nullable:
        return v
    return Visible(v.relation, v.name, Column(e.index + by, e.name, e.type, nullable), v.bare)


def _fields(expression: Expression, parts: tuple[str, ...]) -> Expression:
    for part in parts:
        type_ = expression.type
        if isinstance(type_, MapType) and type_.key == STRING:
            expression = call("element_at", expression, literal(part))
            continue
        names = [f.name for f in type_.fields] if isinstance(type_, Struct) else []
        place = next((i for i, name in enumerate(names) if fold(name) == fold(part)), None)
        if place is None:
            if not names:
                hint = "only a struct has fields"
                raise SqlError(f'{expression} of type {type_} has no field "{part}"', hint=hint)
            raise unknown_name("field", part, names)
        expression = call("get_field", expression, literal(names[place]))
    return expression


def _unknown(what: str, name: str, known: list[str], shown: str = "") -> EverviewError:
    """The error of `types.unknown_name`, of long lists only what is near."""
    name, shown, known = short(name), short(shown), [short(k) for k in known]
    if len(known) > MOST_SHOWN:
        near = get_close_matches(name, known, n=5)
        known = near or known[:MOST_SHOWN]
    error = unknown_name(what, name, known)
    if not known:
        error = UnknownName(error.message, hint="there is no FROM clause")
    return UnknownName(f'{what} "{shown}" does not exist', hint=error.hint) if shown else error
