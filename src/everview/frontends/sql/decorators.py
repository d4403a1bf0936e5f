"""Decorators that register Python functions for SQL: scalar functions and aggregates.

>>> import pyarrow.compute as pc
>>> from everview.plan.catalog import registered_function
>>> @function("DOUBLE")
... def kelvin(celsius):
...     return pc.add(celsius, 273.15)
>>> registered_function("kelvin").type
DOUBLE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError

from everview.doors import door
from everview.errors import DefinitionError, shown
from everview.frontends.sql.functions import CHANCE, SPECIAL
from everview.frontends.sql.generators import GENERATORS
from everview.frontends.sql.parse import parse_expression
from everview.frontends.sql.written import NAMES, RANKS
from everview.operators.functions import Shape
from everview.plan.typing import is_function
from everview.scalars.functions.user import register
from everview.types import Type, parse_type

F = TypeVar("F", bound=Callable[..., Any])


@door
def function(type: str | Type | Any, *, name: str | None = None, by_row: bool = False) -> Callable[[F], F]:
    """A scalar function of SQL: Arrow arrays in, one array of ``type`` out, row for row.

    With ``by_row`` it is called with the values of one row, which is slow. It must be pure: the same result for the
    same arguments, always. It is known in every database and pipeline of the process, under its own name or ``name``.
    """
    return _registering("function", type, name, "rows" if by_row else "columns", aggregate=False)


@door
def aggregate(type: str | Type | Any, *, name: str | None = None, by_group: bool = False) -> Callable[[F], F]:
    """An aggregate of SQL: for every argument an Arrow list array, one list a group; one array of ``type`` out.

    The lists are in the order of their values, or as ORDER BY says, without rows where an argument is NULL. For a
    group without values the result is NULL. With ``by_group`` it is called with the Python lists of one group.
    """
    return _registering("aggregate", type, name, "rows" if by_group else "columns", aggregate=True)


def _registering(decorator: str, type_: object, name: str | None, shape: Shape, *, aggregate: bool) -> Callable[[F], F]:
    result = parse_type(type_) if isinstance(type_, str) else type_
    if not isinstance(result, Type):
        raise DefinitionError(
            f"a function of which type? @{decorator} was given {shown(type_)}", hint=f'write @ev.{decorator}("DOUBLE")'
        )

    def registering(call: F) -> F:
        called = name if name is not None else str(getattr(call, "__name__", ""))
        _check_name(called)
        register(called, call, result, shape, aggregate=aggregate)
        return call

    return registering


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise DefinitionError(f"{name!r} is no name of a function", hint='give it one: name="…", letters and digits')
    if _is_taken(name.lower()):
        raise DefinitionError(f"{name.lower()} is a function of SQL already", hint='give it another name: name="…"')


def _is_taken(name: str) -> bool:
    if is_function(name) or any(name in names for names in (NAMES, RANKS, SPECIAL, CHANCE, GENERATORS)):
        return True
    try:
        return not isinstance(parse_expression(f"{name}(x)"), exp.Anonymous)
    except SqlglotError:  # a word of the language
        return True
