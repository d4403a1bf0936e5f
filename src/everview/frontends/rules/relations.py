"""Relations as rules see them: relations without columns, rows given to a head with rules, users' functions."""

from __future__ import annotations

from typing import Final

from everview.scalars.functions.user import is_registered, registered
from everview.types import BOOLEAN, Field, Schema, Type

# A relation without columns holds or does not: its one row, if it is there, says so.
NULLARY: Final = Schema([Field("holds", BOOLEAN, nullable=False)])


def given_name(head: str) -> str:
    """The name of the relation for rows given from outside to a head that has rules, too."""
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
