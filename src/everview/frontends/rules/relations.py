"""Relations as rules see them: relations without columns, rows given to a head with rules, users' functions."""

from __future__ import annotations

from everview.scalars.functions.user import is_registered, registered
from everview.types import Type


def given_name(head: str) -> str:
    """The name of the relation for rows given from outside to a head that has rules, too."""
    return f"{head}.given"


def function_type(name: str) -> Type | None:
    """The type of a user's function's result; None if no function has the name."""
    if not is_registered(name) or registered(name).aggregate:
        return None
    return registered(name).type


def aggregate_type(name: str) -> Type | None:
    """The type of a user's aggregate's result; None if no aggregate has the name."""
    if not is_registered(name) or not registered(name).aggregate:
        return None
    return registered(name).type
