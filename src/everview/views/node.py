"""Nodes of trees: immutable mappings, which versions of a tree can share.

>>> names = Names(("id", "tags"))
>>> node = Node(names, (7, ("a", "b")))
>>> node["id"], node.tags, node == {"id": 7, "tags": ("a", "b")}, hash(node) == hash(Node(names, (7, ("a", "b"))))
(7, ('a', 'b'), True, True)
>>> plain(node)
{'id': 7, 'tags': ['a', 'b']}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any


class Names:
    """The field names that many nodes share, and the place of each."""

    __slots__ = ("names", "places")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}


class Node(Mapping[str, Any]):
    """A frozen mapping of fields; its values are frozen, too. Fields are read as items, or as attributes."""

    __slots__ = ("_hash", "_names", "_values")

    _hash: int | None  # when it has been asked for
    _names: Names
    _values: tuple[Any, ...]

    def __init__(self, names: Names, values: tuple[Any, ...]) -> None:
        put = object.__setattr__
        put(self, "_names", names)
        put(self, "_values", values)
        put(self, "_hash", None)

    def __getitem__(self, name: str) -> Any:
        return self._values[self._names.places[name]]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names.places:
            raise AttributeError(f"no field {name!r}: there are {', '.join(self._names.names)}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: a node does not change")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.places)

    def __len__(self) -> int:
        return len(self._names.places)

    def last(self, count: int) -> tuple[Any, ...]:
        """The values of the last few fields."""
        return self._values[len(self._values) - count :]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Node) and other._names.names == self._names.names:
            return self._values == other._values
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        known: int | None = self._hash
        if known is None:
            known = hash(frozenset(self.items()))
            object.__setattr__(self, "_hash", known)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._names.names, self._values)

    def __repr__(self) -> str:
        return repr(dict(self))


def _again(names: tuple[str, ...], values: tuple[Any, ...]) -> Node:
    return Node(Names(names), values)


def held(value: Any) -> Any:
    """A value as nodes hold it: arrays as tuples, structs as nodes; NaN is one object."""
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, list | tuple):
        return tuple(map(held, value))
    if isinstance(value, dict):
        return Node(Names(tuple(map(str, value))), tuple(map(held, value.values())))
    return value


def plain(value: Any) -> Any:
    """A value with nodes as new dicts, and tuples as new lists."""
    if isinstance(value, Node):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, tuple) else value
