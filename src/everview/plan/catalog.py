"""The contract with front ends: each reads a text against a catalog, and gives named plans.

`Readable` is all that a front end knows of the world around a text: a database, a pipeline and a set of sources each
implement it. `NamedPlan` is all that a front end gives back, and becomes a view there.

>>> edges = Tables({"edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL")}, keys={"edge": ("a",)})
>>> list(edges.names()), edges.is_set("edge")
(['edge'], True)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from everview.errors import DefinitionError
from everview.plan.node import Plan
from everview.plan.nodes import Scan
from everview.scalars.expressions import Expression, Order
from everview.scalars.functions.user import is_registered, registered
from everview.types import Schema, Type, unknown_name

_NAMED: Final = "table_schema STRING NOT NULL, table_name STRING NOT NULL"
# The relations of information_schema: what is defined, as rows.
INFORMATION: Final[dict[str, Schema]] = {
    "schemata": Schema.parse("schema_name STRING NOT NULL"),
    "tables": Schema.parse(f"{_NAMED}, table_type STRING NOT NULL, comment STRING"),
    "columns": Schema.parse(
        f"{_NAMED}, column_name STRING NOT NULL, ordinal_position INT NOT NULL, column_default STRING, "
        "is_nullable STRING NOT NULL, data_type STRING NOT NULL, is_generated STRING NOT NULL, "
        "generation_expression STRING, comment STRING"
    ),
    "views": Schema.parse(f"{_NAMED}, view_definition STRING, is_materialized BOOLEAN NOT NULL"),
    "table_constraints": Schema.parse(
        f"{_NAMED}, constraint_name STRING NOT NULL, constraint_type STRING NOT NULL, definition STRING NOT NULL"
    ),
    "key_column_usage": Schema.parse(
        f"{_NAMED}, constraint_name STRING NOT NULL, column_name STRING NOT NULL, ordinal_position INT NOT NULL, "
        "position_in_unique_constraint INT"
    ),
    "referential_constraints": Schema.parse(
        "constraint_schema STRING NOT NULL, constraint_name STRING NOT NULL, unique_constraint_schema STRING NOT NULL, "
        "unique_constraint_name STRING, match_option STRING NOT NULL, update_rule STRING NOT NULL, "
        "delete_rule STRING NOT NULL"
    ),
    "check_constraints": Schema.parse(
        "constraint_schema STRING NOT NULL, constraint_name STRING NOT NULL, check_clause STRING NOT NULL"
    ),
    "routines": Schema.parse("routine_name STRING NOT NULL, routine_definition STRING NOT NULL"),
}


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A view defined by a text: its name, its plan as written, and an equal plan that is cheaper to keep."""

    name: str
    plan: Plan
    optimized: Plan
    reads: tuple[str, ...] = ()  # the relations that the text names for it
    order: Order = ()  # in which its rows are shown
    is_set: bool = False  # whether it is known to hold no row twice
    materialized: bool = True  # whether its rows are kept; else it is a name for its plan
    whole: str = ""  # the view that it is a part of, and is dropped with
    beside: tuple[str, ...] = ()  # the views that it is defined with, because they read each other

    @property
    def schema(self) -> Schema:
        return self.plan.schema


class FrontEnd(Protocol):
    """A language whose texts define views: one function of a text and a catalog."""

    def __call__(self, text: str, catalog: Readable, only: str | None = None) -> tuple[NamedPlan, ...]:
        """The views of a text, each after the views it reads; with ``only``, just this view and the views it reads."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogFunction:
    """A user's function, of rows or of groups, as a text calls it: its name, its arguments and its result."""

    name: str
    arguments: tuple[Type, ...] | None  # None: takes what it gets
    type: Type
    nullable: bool = True
    aggregate: bool = False


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function defined in SQL: its name in lower case, and the text of its CREATE FUNCTION statement."""

    name: str
    text: str
    dialect: str = "spark"


def registered_function(name: str) -> CatalogFunction | None:
    """A function that was registered in this process; None if there is none of that name."""
    if not is_registered(name):
        return None
    user = registered(name)
    return CatalogFunction(user.function.name, None, user.type, aggregate=user.aggregate)


class Readable(Protocol):
    """The relations and functions that a text may name; an adapter says at least what its relations are."""

    @property
    def timezone(self) -> str:
        """The zone in which text without one is read, and days begin."""
        return "UTC"

    @property
    def current_schema(self) -> str:
        """The schema of relations whose names have none; empty is the default one."""
        return ""

    @abstractmethod
    def names(self) -> Iterable[str]:
        """The names of all relations that may be read."""
        ...

    @abstractmethod
    def relation(self, name: str) -> Schema | Plan:
        """The columns of a relation whose rows are kept, or the plan that is read in its place."""
        ...

    def find(self, name: str) -> str:
        """The name of a relation as it was defined; raises `UnknownName`."""
        if name not in self.names():
            raise unknown_name("relation", name, self.names())
        return name

    def scan(self, name: str) -> Plan:
        """The plan that reads a relation."""
        relation = self.relation(name)
        return Scan(name, relation) if isinstance(relation, Schema) else relation

    def as_of(self, name: str, when: int | datetime) -> Plan:
        """The plan that reads a relation as it was at an epoch, or at a moment."""
        raise DefinitionError(f"{name} is not read as of an earlier time here", hint="ask a database by SELECT")

    def files(self, format_: str, paths: Sequence[str], options: Mapping[str, Any]) -> Plan:
        """The plan that reads files, once."""
        raise DefinitionError("files are not read here", hint="ask a database by SELECT, or CREATE TABLE … AS SELECT")

    def key(self, name: str) -> tuple[str, ...]:
        """The columns that tell a relation's rows apart; none if it may hold a row twice, or nobody knows."""
        return ()

    def is_set(self, name: str) -> bool:
        """Whether a relation holds no row twice, by a key or by what it is."""
        return bool(self.key(name))

    def given(self, scan: Scan) -> Scan:
        """A scan of the table that is changed by the name of a relation; another one if rules add rows to the table."""
        return scan

    def function(self, name: str) -> CatalogFunction | None:
        """A user's function or aggregate, by its name in lower case."""
        return registered_function(name)

    def stored_function(self, name: str) -> StoredFunction | None:
        """A function of SQL, by its name in lower case."""
        return None

    def default(self, table: str, column: str) -> Expression | None:
        """The value of a column that INSERT leaves out; None is NULL."""
        return None

    def generated(self, table: str) -> Mapping[str, str]:
        """The columns of a table that are computed from its others, and the expressions of SQL by which they are."""
        return {}

    def schemas(self) -> Iterable[str]:
        """The names of schemas beside the default one; a relation of one of them is called ``schema.name``."""
        return ()

    def information(self, name: str) -> Sequence[tuple[Any, ...]] | None:
        """The rows of a relation of `INFORMATION`; None where nobody keeps account of definitions."""
        return None

    def created(self, name: str) -> str:
        """The statement that would define a relation as it is."""
        raise unknown_name("definition", name, ())

    def uniques(self, table: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns, beside the key, of which no two rows of a table have equal values."""
        return tuple(self.named_uniques(table).values())

    def named_uniques(self, table: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of each UNIQUE constraint of a table, by its name."""
        return {}


class Tables(Readable):
    """A catalog of relations that are given: schemas of tables, plans of views."""

    def __init__(
        self,
        relations: Mapping[str, Schema | Plan],
        functions: Iterable[CatalogFunction] = (),
        *,
        keys: Mapping[str, tuple[str, ...]] | None = None,
        sets: Iterable[str] = (),
        what: str = "relation",
    ) -> None:
        """Take the relations; ``sets`` names keyless ones without duplicate rows, ``what`` is their word in errors."""
        self.relations = dict(relations)
        self._functions = {f.name.lower(): f for f in functions}
        self._keys, self._sets, self._what = dict(keys or {}), frozenset(sets), what

    def names(self) -> Iterable[str]:
        return self.relations

    def relation(self, name: str) -> Schema | Plan:
        return self.relations[name]

    def find(self, name: str) -> str:
        if name not in self.relations:
            raise unknown_name(self._what, name, self.relations)
        return name

    def key(self, name: str) -> tuple[str, ...]:
        return self._keys.get(name, ())

    def is_set(self, name: str) -> bool:
        return name in self._sets or bool(self.key(name))

    def function(self, name: str) -> CatalogFunction | None:
        return self._functions.get(name) or registered_function(name)
