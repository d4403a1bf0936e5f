"""Atoms that the host registers: types of its own, ordered by their bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from everview.errors import SchemaError, UnknownName
from everview.types.kinds import Type
from everview.types.spellings import CONSTRUCTORS, SPELLINGS


@dataclass(frozen=True, slots=True)
class Atom(Type):
    """A type of the host's own, made by `register_atom`; ordered by its bytes."""

    name: str

    @property
    def sql(self) -> str:
        return self.name

    @property
    def kind(self) -> int:
        return _atom_kind(self.name)

    @property
    def interned(self) -> bool:
        return True

    @property
    def host(self) -> HostAtom:
        """The class and the functions it was registered with."""
        try:
            return HOST_ATOMS[self.name]
        except KeyError:
            hint = "call register_atom before using its values"
            raise UnknownName(f"atom type {self.name} is not registered", hint=hint) from None


@dataclass(frozen=True, slots=True)
class HostAtom:
    """How values of a registered atom become bytes and back: ``from_bytes(to_bytes(v)) == v``."""

    type: Atom
    python: type
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]


HOST_ATOMS: dict[str, HostAtom] = {}
_ATOM_OF_CLASS: dict[type, HostAtom] = {}
_ATOM_OF_KIND: dict[int, HostAtom] = {}


def register_atom(
    name: str, python: type, to_bytes: Callable[[Any], bytes], from_bytes: Callable[[bytes], Any]
) -> Atom:
    """A new atom type, whose values are instances of `python`, equal and ordered as their bytes are.

    >>> from ipaddress import IPv4Address
    >>> from operator import attrgetter
    >>> from everview.types import Schema
    >>> IPV4 = register_atom("IPV4", IPv4Address, attrgetter("packed"), IPv4Address)
    >>> print(Schema.parse("host IPV4 NOT NULL, note STRING"))
    host IPV4 NOT NULL, note STRING
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or name.upper() in (*SPELLINGS, *CONSTRUCTORS):
        raise SchemaError(f"{name!r} cannot name an atom type", hint="choose a word that is no SQL type")
    if name in HOST_ATOMS and _qualified(HOST_ATOMS[name].python) != _qualified(python):
        taken = _qualified(HOST_ATOMS[name].python)
        raise SchemaError(f"atom type {name} is already {taken}", hint="register it under another name")
    host = HostAtom(Atom(name), python, to_bytes, from_bytes)
    twin = _ATOM_OF_KIND.get(host.type.kind)
    assert twin is None or twin.type == host.type, "two atom names of one kind"
    HOST_ATOMS[name] = _ATOM_OF_CLASS[python] = _ATOM_OF_KIND[host.type.kind] = host
    return host.type


def atom_of_class(python: type) -> HostAtom | None:
    """The atom registered for this class or for one it inherits from."""
    return next((_ATOM_OF_CLASS[c] for c in python.__mro__ if c in _ATOM_OF_CLASS), None)


def atom_of_kind(kind: int) -> HostAtom:
    """The atom whose values carry this kind."""
    try:
        return _ATOM_OF_KIND[kind]
    except KeyError:
        hint = "call register_atom before reading its values"
        raise UnknownName("a value of an atom type that is not registered", hint=hint) from None


def _qualified(python: type) -> str:
    return f"{python.__module__}.{python.__qualname__}"


@cache
def _atom_kind(name: str) -> int:
    """A stable 63-bit number far above `KINDS`."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1 | 1 << 40
