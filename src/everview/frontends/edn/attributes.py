"""Attributes: ``:track/name`` names a relation of entities and values, over tables as over facts.

In this order:

1. an attribute of facts, once facts of it have been transacted, or it has been declared: the table ``:track/name`` with
   columns ``e`` and ``v``;
2. column ``name`` of table ``track``, if that has a key of one column: the key is the entity, and NULL is no fact;
3. a relation of two columns that is called ``track/name``, or, of an attribute ``:to``, ``to``.

A hyphen may stand for an underscore.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.errors import EdnError
from everview.plan.catalog import Readable
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Project, Values
from everview.plan.typing import call
from everview.types import ANY, BIGINT, Field, Schema, Type, unknown_name

ENTITY = BIGINT  # of facts that are transacted


@dataclass(frozen=True)
class Fact:
    """Facts that are transacted, in a table of their own."""

    relation: str


@dataclass(frozen=True)
class Pair:
    """The rows of a relation of two columns."""

    relation: str


@dataclass(frozen=True)
class KeyedColumn:
    """A column of a table; the key of a row is the entity."""

    relation: str
    key: str
    column: str


@dataclass(frozen=True)
class EdnAttribute:
    """A relation of entities and values; ``value`` is None while it has no facts that tell the type."""

    name: str
    entity: Type
    value: Type | None
    plan: Plan | None = None
    is_set: bool = False
    means: Fact | Pair | KeyedColumn | None = None  # None of an attribute that is not there yet

    @property
    def is_fact(self) -> bool:
        return self.means is None or isinstance(self.means, Fact)

    def rows(self, type_: Type | None) -> Plan:
        """The relation; where the type of values is not known, it is empty, and ``type_`` is that of its column."""
        if self.plan is not None and self.value is not None:
            return self.plan
        return Values((), facts_schema(type_ or ANY))


def facts_schema(value: Type) -> Schema:
    """The columns of a table of facts."""
    return Schema([Field("e", ENTITY, nullable=False), Field("v", value, nullable=False)])


class Attributes:
    """The attributes that the relations of a database or a pipeline make."""

    def __init__(self, around: Readable) -> None:
        self.around = around
        self._names = frozenset(around.names())
        self._found: dict[str, EdnAttribute | None] = {}

    def find(self, name: str) -> EdnAttribute | None:
        """An attribute by its name, which begins with a colon, or None."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> EdnAttribute | None:
        names = self._names
        if name in names:
            return self._fact(name)
        space, _, column = name[1:].partition("/")
        if column:
            of_column = self._column(name, space, column, names)
            if of_column is not None:
                return of_column
        return next((self._pair(name, plain) for plain in _spelled(name[1:]) if plain in names), None)

    def facts(self) -> list[EdnAttribute]:
        """The attributes of facts: what a variable in their place ranges over."""
        return [self._fact(name) for name in self.around.names() if name.startswith(":") and name[1:2] != ":"]

    def unknown(self, name: str) -> EdnError:
        """The error for an attribute that does not exist."""
        space, _, column = name[1:].partition("/")
        if column and any(plain in self._names for plain in _spelled(space)):
            return self._no_column(name, space)
        known = sorted({*(fact.name for fact in self.facts()), *self._columns()})
        error = unknown_name("attribute", name, known)
        return EdnError(error.message, hint=error.hint if known else "transact facts of it, or declare it, first")

    def may_be_new(self, name: str) -> bool:
        """Can an unknown attribute get facts? Not if its name space is a table, which lacks such a column."""
        space, _, column = name[1:].partition("/")
        plain = name.startswith(":") and name[1:2] not in ("", "*", ":") and not name.startswith((":db/", ":db."))
        return plain and not (column and any(known in self._names for known in _spelled(space)))

    def source(self, name: str) -> tuple[str, Plan]:
        """A relation as a source of rows, by its name in any case."""
        names = list(self.around.names())
        known = next((n for n in names if n == name or n.casefold() == name.casefold()), None)
        if known is None:
            raise unknown_name("relation", name, names)
        return known, self.scan(known)

    def scan(self, name: str) -> Plan:
        return self.around.scan(name)

    # -- inside

    def _fact(self, name: str) -> EdnAttribute:
        plan = self.scan(name)
        value = plan.schema.types[1]
        return EdnAttribute(name, ENTITY, None if value == ANY else value, plan, True, Fact(name))

    def _column(self, name: str, space: str, column: str, names: frozenset[str]) -> EdnAttribute | None:
        table = next((plain for plain in _spelled(space) if plain in names), None)
        if table is None:
            return None
        plan, key = self.scan(table), self.around.key(table)
        plain_name = next((plain for plain in _spelled(column) if plain in plan.schema.names), None)
        if len(key) != 1 or plain_name is None:
            return None
        value, by = plan.schema.index(plain_name), plan.schema.index(key[0])
        types = plan.schema.types
        means = KeyedColumn(table, key[0], plain_name)
        return EdnAttribute(name, types[by], types[value], picked(plan, (by, value), ("e", "v")), True, means)

    def _pair(self, name: str, relation: str) -> EdnAttribute:
        plan = self.scan(relation)
        if len(plan.schema) != 2:
            raise EdnError(
                f"{name}: {relation} has {len(plan.schema)} columns, and an attribute has two",
                hint=f"name a column, {name}/{plan.schema.names[-1]}, or give it as a source: :in $ $r",
            )
        entity, value = plan.schema.types
        is_set = bool(self.around.key(relation))
        return EdnAttribute(name, entity, value, picked(plan, (0, 1), ("e", "v")), is_set, Pair(relation))

    def _columns(self) -> Iterable[str]:
        for name in self.around.names():
            if len(self.around.key(name)) == 1 and "/" not in name and not name.startswith(":"):
                yield from (f":{name}/{column}" for column in self.scan(name).schema.names)

    def _no_column(self, name: str, space: str) -> EdnError:
        table = next(plain for plain in _spelled(space) if plain in self._names)
        key = self.around.key(table)
        if len(key) != 1:
            has = f"a key of {len(key)} columns" if key else "no key"
            return EdnError(
                f"attribute {name}: {table} has {has}, so its rows are no entities",
                hint=f'read its rows: :in $ $r, [$r ?x ?y], args=["{table}"]',
            )
        columns = [f":{table}/{column}" for column in self.scan(table).schema.names]
        error = unknown_name("attribute", name, columns)
        return EdnError(error.message, hint=error.hint)


def _spelled(name: str) -> tuple[str, ...]:
    return (name,) if "-" not in name else (name, name.replace("-", "_"))


def picked(plan: Plan, columns: tuple[int, ...], names: tuple[str, ...]) -> Plan:
    """Some columns of the rows in which none of them is NULL."""
    there = [
        call("is_not_null", plan.column(column)) for column in dict.fromkeys(columns) if plan.column(column).nullable
    ]
    condition = conjunction(there)
    if columns == tuple(range(len(plan.schema))) and condition is None:
        return plan
    kept = plan if condition is None else Filter(plan, condition)
    return Project(kept, tuple(kept.column(column) for column in columns), names)
