"""The graph of the worked example, and one of every kind of node, to build tests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

Spec = dict[str, Any]

WORKED: Spec = {
    "relations": [
        {"name": "A", "schema": ["a", "b"]},
        {"name": "B", "schema": ["b", "c"]},
        {"name": "P", "schema": ["b"]},
        {"name": "Q", "schema": ["a", "c"]},
    ],
    "nodes": [
        {"id": "scanA", "op": "Scan", "rel": "A"},
        {"id": "scanB", "op": "Scan", "rel": "B"},
        {"id": "scanP", "op": "Scan", "rel": "P"},
        {
            "id": "join1",
            "op": "Join",
            "inputs": ["scanA", "scanP", "scanB"],
            "vo": ["a", "b", "c"],
            "atoms": [
                {"rel": "A", "vars": ["a", "b"]},
                {"rel": "P", "vars": ["b"]},
                {"rel": "B", "vars": ["b", "c"]},
            ],
        },
        {
            "id": "qFilter",
            "op": "Compute",
            "mode": "Pointwise",
            "rel": "Q",
            "inputs": ["join1"],
            "tupleVars": ["a", "c"],
        },
        {"id": "proj", "op": "Project", "inputs": ["qFilter"], "attrs": ["a", "c"]},
    ],
    "outputs": [{"name": "Res", "from": "proj"}],
}

EVERYTHING: Spec = {
    "relations": [
        {"name": "A", "schema": ["a", "b"]},
        {"name": "B", "schema": [{"name": "b", "type": "Integer"}, "c"]},
        {"name": "N", "schema": ["a", "c"]},
        {"name": "E", "schema": ["a", "c"]},
        {"name": "Q", "schema": ["a"]},
    ],
    "nodes": [
        {"id": "a", "op": "Scan", "rel": "A"},
        {"id": "b", "op": "Scan", "rel": "B"},
        {"id": "not", "op": "Scan", "rel": "N"},
        {"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "E"},
        {
            "id": "join",
            "op": "Join",
            "inputs": ["a", "b"],
            "vo": ["b", "a", "c"],
            "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"], "rel": "B"}],
        },
        {"id": "ac", "op": "Project", "inputs": ["join"], "attrs": ["a", "c"]},
        {"id": "u", "op": "Union", "inputs": ["ac", "e", "steps"]},
        {
            "id": "step",
            "op": "Join",
            "inputs": ["u", "u"],
            "vo": ["a", "b", "c"],
            "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}],
        },
        {"id": "steps", "op": "Project", "inputs": ["step"], "attrs": ["a", "c"]},
        {"id": "d", "op": "Diff", "inputs": ["u", "not"], "key": ["a"]},
        {"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["d"], "tupleVars": ["a"]},
        {"id": "r", "op": "Rename", "inputs": ["q"], "names": {"a": "from", "c": "to"}},
    ],
    "outputs": [{"name": "Res", "from": "r"}, {"name": "All", "from": "u"}],
}


def edited(spec: Spec, edit: Callable[[Spec], Any]) -> Spec:
    """A copy of a graph with something changed."""
    copy = deepcopy(spec)
    edit(copy)
    return copy


def node(spec: Spec, name: str) -> Spec:
    return next(one for one in spec["nodes"] if one["id"] == name)


def small(*nodes: Spec, output: str | None = None, relations: dict[str, list[Any]] | None = None) -> Spec:
    """A graph of some nodes over ``R[a, b]`` and ``S[a, b]``, which are scanned as r and s."""
    known: dict[str, list[Any]] = {"R": ["a", "b"], "S": ["a", "b"], **(relations or {})}
    return {
        "relations": [{"name": name, "schema": columns} for name, columns in known.items()],
        "nodes": [{"id": "r", "op": "Scan", "rel": "R"}, {"id": "s", "op": "Scan", "rel": "S"}, *nodes],
        "outputs": [{"name": "out", "from": output or (nodes[-1]["id"] if nodes else "r")}],
    }


class Says:
    """A predicate that is true of some tuples."""

    def __init__(self, true: Iterable[tuple[Any, ...]] = ()) -> None:
        self.true = set(true)
        self.calls: list[list[tuple[Any, ...]]] = []

    def eval_many(self, candidates: Any) -> Any:
        self.calls.append(list(candidates))
        return {row for row in candidates if row in self.true}


class Lists:
    """A computed relation that lists its tuples; answers to a handle stay until it is asked with a later one."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        self.rows = set(rows)
        self.handles: list[int] = []
        self.answer: Any = None

    def enumerate(self) -> Any:
        return set(self.rows)

    def delta_since(self, handle: int) -> Any:
        self.handles.append(handle)
        return {} if self.answer is None else self.answer
