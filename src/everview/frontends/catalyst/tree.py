"""Trees of Catalyst as Spark writes them in JSON: a flat list of nodes, each before its children.

A node of a plan has expressions among its fields, and a subquery a plan among its own; all of them are such lists, and
become nodes here. Every node knows its path from the root, by which Spark can be asked for what JSON leaves out.

>>> text = '[{"class": "x.Not", "num-children": 1, "child": 0}, {"class": "x.Exists", "num-children": 0}]'
>>> tree = parsed(text)
>>> tree.kind, tree.at("child").kind, tree.at("child").path
('Not', 'Exists', (0,))
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

# A step from a node: the number of a child, the name of a field, or the name of a field that is a list and a place.
Step = int | str | tuple[str, int]
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CatalystNode:
    """A node of a plan or an expression: its class, its fields and its children."""

    kind: str  # the class without its package
    fields: Mapping[str, Any]
    children: tuple[CatalystNode, ...] = ()
    path: Path = field(default=(), compare=False)

    def at(self, name: str) -> CatalystNode:
        """The one node in a field: a child, or a tree of its own."""
        (node,) = self.all(name)
        return node

    def maybe(self, name: str) -> CatalystNode | None:
        """The node in a field that may be empty."""
        nodes = self.all(name)
        return nodes[0] if nodes else None

    def all(self, name: str) -> tuple[CatalystNode, ...]:
        """The nodes in a field that holds several."""
        value = self.fields.get(name)
        if value is None:
            return ()
        several = cast("list[int | CatalystNode]", value if isinstance(value, list) else [value])
        return tuple(self.children[each] if isinstance(each, int) else each for each in several)

    def object_name(self, name: str) -> str:
        """The name of the Scala object in a field: ``LeftOuter`` for ``…plans.LeftOuter$``."""
        value = self.fields.get(name)
        full = str(value.get("object") or value.get("product-class") or "") if isinstance(value, dict) else ""
        return full.rsplit(".", 1)[-1].rstrip("$").rsplit("$", 1)[-1]

    def id(self, name: str = "exprId") -> int:
        """The number of the attribute in a field."""
        return int(self.fields[name]["id"])

    def walk(self) -> Iterator[CatalystNode]:
        """The node and all below it, also in fields."""
        yield self
        for child in self.children:
            yield from child.walk()
        for value in self.fields.values():
            for part in _nodes(value):
                yield from part.walk()


def _nodes(value: Any) -> Iterator[CatalystNode]:
    if isinstance(value, CatalystNode):
        yield value
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _nodes(part)


def parsed(text: str, path: Path = ()) -> CatalystNode:
    """The tree of a plan or an expression."""
    return _tree(json.loads(text), path)


def _tree(flat: list[dict[str, Any]], path: Path) -> CatalystNode:
    node, rest = _one(flat, 0, path)
    assert rest == len(flat), "one tree is one list"
    return node


def _one(flat: list[dict[str, Any]], place: int, path: Path) -> tuple[CatalystNode, int]:
    """The tree that begins at a place of the list, and where the next begins."""
    said = flat[place]
    children: list[CatalystNode] = []
    following = place + 1
    for number in range(int(said["num-children"])):
        child, following = _one(flat, following, (*path, number))
        children.append(child)
    fields = {name: _value(value, path, name) for name, value in said.items() if name not in ("class", "num-children")}
    kind = str(said["class"]).rsplit(".", 1)[-1].rstrip("$")
    return CatalystNode(kind, fields, tuple(children), path), following


def _value(value: Any, path: Path, name: str, place: int | None = None) -> Any:
    """A field's value, with trees of their own as nodes."""
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    if items and isinstance(items[0], dict) and "num-children" in items[0]:
        return _tree(items, (*path, name if place is None else (name, place)))
    return [_value(item, path, name, number) for number, item in enumerate(items)]
