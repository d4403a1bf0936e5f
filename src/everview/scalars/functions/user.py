"""Users' functions, by name: given once, called in any query.

A scalar function is called with columns, or row by row. An aggregate is called with one list a group and column. It
sees no NULL, and it is not called for a group without values: as for SQL's own aggregates, the result is NULL there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import DefinitionError, FunctionError
from everview.operators.functions import Function, Shape
from everview.types import Type, unknown_name


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A pure function, its result type, and whether it is an aggregate."""

    function: Function
    type: Type
    aggregate: bool = False


_USERS: Final[dict[str, UserFunction]] = {}


def register(
    name: str, call: Callable[..., Any], type_: Type, shape: Shape = "columns", *, aggregate: bool = False
) -> None:
    """Make a function known; `shape` "rows" is the slow path, one call a row or group.

    The same function may be given again, as a module that is loaded twice does; another one under its name may not.
    """
    made = UserFunction(Function(name.lower(), call, shape), type_, aggregate)
    before = _USERS.get(name.lower())
    if before is not None and not _same(before, made):
        raise DefinitionError(
            f"there is another function {name.lower()} already",
            hint="give it another name: views that call the first one keep its results",
        )
    _USERS[name.lower()] = made


def register_next(name: str, call: Callable[..., Any], type_: Type, *, aggregate: bool = False) -> str:
    """Make a function of columns known under a name, or the next one that is free: ``net``, ``net 2``; returns it.

    A call that is equal to one of these is that one.
    """
    number = 1
    while True:
        free = name.lower() if number == 1 else f"{name.lower()} {number}"
        before = _USERS.get(free)
        if before is None:
            _USERS[free] = UserFunction(Function(free, call), type_, aggregate)
            return free
        if (before.function.call, before.type, before.aggregate) == (call, type_, aggregate):
            return free
        number += 1


def registered(name: str) -> UserFunction:
    """The function of that name; raises `UnknownName`."""
    function = _USERS.get(name.lower())
    if function is None:
        raise unknown_name("function", name, sorted(_USERS))
    return function


def user_function(name: str) -> Function:
    return registered(name).function


def is_registered(name: str) -> bool:
    return name.lower() in _USERS


def user_aggregate(name: str) -> Function:
    """An aggregate as operators call it, with one list for each group."""
    function = registered(name)
    made = _Each if function.function.shape == "rows" else _Lists
    return Function(function.function.name, made(function.function, function.type), function.function.shape)


@dataclass(frozen=True, slots=True)
class _Each:
    """An aggregate that is called with the lists of one group; NULL for empty lists."""

    function: Function
    type: Type

    def __call__(self, *lists: list[Any]) -> Any:
        return self.function.call(*lists) if lists[0] else None

    @property
    def digested(self) -> tuple[Callable[..., Any], ...]:
        """The function whose code counts."""
        return (self.function.call,)


@dataclass(frozen=True, slots=True)
class _Lists:
    """An aggregate that is called once with the lists of all groups that have values; NULL for the others."""

    function: Function
    type: Type

    def __call__(self, *lists: Any) -> Any:
        there = np.asarray(pc.list_value_length(lists[0])) > 0
        if there.all():
            return self._checked(self.function.call(*lists), len(there))
        if not there.any():
            return pa.array([None] * len(there), self.type.arrow)
        mask = pa.array(there)
        results = self._checked(self.function.call(*(column.filter(mask) for column in lists)), int(there.sum()))
        return results.take(pa.array(np.cumsum(there) - 1, mask=~there))

    @property
    def digested(self) -> tuple[Callable[..., Any], ...]:
        """The function whose code counts."""
        return (self.function.call,)

    def _checked(self, results: Any, groups: int) -> Any:
        name, type_ = self.function.name, self.type
        results = self.function.array(results, type_.arrow, "return one Arrow array, with one value a group")
        if len(results) != groups:
            raise FunctionError(
                f"function {name} returned {len(results)} values for {groups} groups",
                hint="an aggregate returns one value a group",
            )
        if results.type != type_.arrow:
            raise FunctionError(
                f"function {name} returned {results.type}, not {type_.arrow}", hint=f"declared: {type_}"
            )
        return results


# -- the same function again


def _same(a: UserFunction, b: UserFunction) -> bool:
    if (a.type, a.aggregate, a.function.shape) != (b.type, b.aggregate, b.function.shape):
        return False
    try:
        return bool(a.function.call == b.function.call or _said(a.function.call) == _said(b.function.call))
    except ValueError:  # a cell holds an array, whose comparison is none
        return False


def _said(call: Callable[..., Any]) -> Any:
    """The code of a function and the values it closes over, to compare; a function without code is itself."""
    code = getattr(call, "__code__", None)
    if code is None:
        return id(call)
    cells = tuple(cell.cell_contents for cell in getattr(call, "__closure__", None) or ())
    given = (getattr(call, "__defaults__", None), getattr(call, "__kwdefaults__", None))
    return call.__qualname__, code.co_code, code.co_consts, code.co_names, given, cells
