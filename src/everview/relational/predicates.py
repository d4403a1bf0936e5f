"""Type predicates, which the values of a column satisfy: known by name, or functions of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.errors import GraphError, WrongType
from everview.types import Id, Symbol, atom_of_class, unknown_name

Predicate = Callable[[Any], object]  # true or false of every atom


def _anything(value: Any) -> bool:
    return True


def _of(kind: type) -> Predicate:
    return lambda value: type(value) is kind


NAMED: Final[Mapping[str, Predicate]] = {
    "any": _anything,
    "Boolean": _of(bool),
    "Integer": _of(int),
    "Float": _of(float),
    "String": _of(str),
    "Symbol": _of(Symbol),
    "ID": _of(Id),
}


def _atom(name: str) -> Predicate:
    def holds(value: Any) -> bool:
        atom = atom_of_class(type(value))
        return atom is not None and atom.type.name == name

    return holds


def resolve(what: str, name: str, hosts: Mapping[str, Predicate], atoms: Mapping[str, Any]) -> Predicate:
    """The predicate of a name: the host's own, one of the atom types, or a registered one."""
    predicate = hosts.get(name) or NAMED.get(name)
    if predicate is not None:
        return predicate
    if name in atoms:
        return _atom(name)
    error = unknown_name(f"{what}: type", name, [*NAMED, *hosts, *atoms])
    raise GraphError(error.message, hint=error.hint)


def check_value(what: str, name: str, predicate: Predicate, value: Any) -> None:
    """Refuse a value that does not satisfy the predicate of its column."""
    try:
        holds = bool(predicate(value))
    except Exception as error:
        raise WrongType(
            f"{what}: predicate {name} raised {type(error).__name__} for {value!r}: {error}",
            hint="a predicate says True or False of every atom",
        ) from error
    if not holds:
        raise WrongType(f"{what}: {value!r} is no {name}", hint="give a value of the type, or declare the column any")
