"""Users' functions, by name: given once, called in any query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from everview.operators.functions import Function, Shape
from everview.types import Type, unknown_name


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A pure function, and the type of what it gives."""

    function: Function
    type: Type


_USERS: Final[dict[str, UserFunction]] = {}


def register(name: str, call: Callable[..., Any], of: Type, shape: Shape = "columns") -> None:
    """Make a function known; `shape` "rows" is the slow path, one call a row."""
    _USERS[name.lower()] = UserFunction(Function(name.lower(), call, shape), of)


def registered(name: str) -> UserFunction:
    """The function of that name; raises `UnknownName`."""
    found = _USERS.get(name.lower())
    if found is None:
        raise unknown_name("function", name, sorted(_USERS))
    return found


def user_function(name: str) -> Function:
    return registered(name).function


def is_registered(name: str) -> bool:
    return name.lower() in _USERS
