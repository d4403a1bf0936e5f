"""What compiling asks of the relations around a program: their columns, and whether a row may be there twice.

>>> known = Schemas({"edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL")})
>>> list(known.names()), known.is_set("edge")
(['edge'], False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from everview.plan.node import Plan
from everview.scalars.functions.user import is_registered, registered
from everview.types import BOOLEAN, Field, Schema, Type

# A relation without columns holds or does not: its one row, if it is there, says so.
NULLARY: Final = Schema([Field("holds", BOOLEAN, nullable=False)])


class Relations(Protocol):
    """The relations of a database, or of a pipeline."""

    def names(self) -> Iterable[str]:
        """Of all that may be read."""
        ...

    def relation(self, name: str) -> Schema | Plan:
        """The columns of one of them, or a plan that is read in its place."""
        ...

    def is_set(self, name: str) -> bool:
        """Does it hold every row once at most, by a key or by what it is?"""
        ...


@dataclass(frozen=True)
class Schemas:
    """Relations by their columns; those in ``sets`` hold no row twice."""

    schemas: Mapping[str, Schema] = field(default_factory=dict[str, Schema])
    sets: frozenset[str] = frozenset()

    def names(self) -> Iterable[str]:
        return self.schemas

    def relation(self, name: str) -> Schema | Plan:
        return self.schemas[name]

    def is_set(self, name: str) -> bool:
        return name in self.sets


def given_name(head: str) -> str:
    """The relation that holds the rows that were given to a head which has rules, too."""
    return f"{head}.given"


def arity(schema: Schema) -> int:
    """How many terms an atom of the relation has."""
    return 0 if schema == NULLARY else len(schema)


def function_type(name: str) -> Type | None:
    """What a user's function gives; None if there is none of that name."""
    if not is_registered(name) or registered(name).aggregate:
        return None
    return registered(name).type


def aggregate_type(name: str) -> Type | None:
    """What a user's aggregate gives; None if there is none of that name."""
    if not is_registered(name) or not registered(name).aggregate:
        return None
    return registered(name).type
