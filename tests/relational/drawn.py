"""Random graphs of relational operators, the worlds they look at, and what they mean, over plain Python sets.

A value is tagged with its type, because to Python ``1 == 1.0 == True``. The meaning is computed from scratch: each
strongly connected part of the graph by iteration from nothing, in the order of what reads what.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from everview.types import Id, Symbol

Row = tuple[Any, ...]
ATOMS: list[Any] = [1, 1.0, True, "a", Symbol("a"), Id("a"), "b", 2]
RELATIONS = {"A": ["a", "b"], "B": ["b", "c"], "C": ["a", "b"], "D": ["d"], "N": []}
COMPUTED = {"E": ["a", "b"], "F": ["x"], "G": ["x", "y"]}
VARIABLES = ["a", "b", "c", "d"]


def tagged(row: Row) -> Row:
    return tuple((type(value).__name__, value) for value in row)


def tags(rows: Iterable[Row]) -> set[Row]:
    return {tagged(row) for row in rows}


# -- graphs


class Drawn:
    """A graph under construction: its nodes, and the variables of each."""

    def __init__(self, chance: random.Random, size: int) -> None:
        self.chance = chance
        self.nodes: list[dict[str, Any]] = []
        self.variables: dict[str, list[str]] = {}
        for rel, columns in RELATIONS.items():
            self.add({"op": "Scan", "rel": rel}, columns)
        self.add({"op": "Compute", "mode": "Enumerable", "rel": "E"}, COMPUTED["E"])
        for _ in range(size):
            chance.choice(
                [self.join, self.join, self.union, self.project, self.diff, self.rename, self.judge, self.cycle]
            )()
        inner = [one["id"] for one in self.nodes]
        wanted = {inner[-1], *chance.sample(inner, 2)}
        chance.shuffle(self.nodes)  # the order in which nodes are written means nothing
        self.outputs = [{"name": f"out {one}", "from": one} for one in sorted(wanted)]

    @property
    def spec(self) -> dict[str, Any]:
        relations = [{"name": name, "schema": columns} for name, columns in {**RELATIONS, **COMPUTED}.items()]
        return {"relations": relations, "nodes": self.nodes, "outputs": self.outputs}

    def add(self, node: dict[str, Any], variables: list[str], name: str | None = None) -> str:
        name = name or f"n{len(self.nodes)}"
        self.nodes.append({"id": name, **node})
        self.variables[name] = list(variables)
        return name

    def pick(self) -> str:
        return self.chance.choice(list(self.variables))

    def atoms(self, inputs: list[str]) -> list[dict[str, Any]]:
        return [{"vars": self.chance.choices(VARIABLES, k=len(self.variables[one]))} for one in inputs]

    def bound(self, atoms: list[dict[str, Any]]) -> list[str]:
        found = list(dict.fromkeys(name for atom in atoms for name in atom["vars"]))
        self.chance.shuffle(found)
        return found

    def join(self) -> None:
        inputs = [self.pick() for _ in range(self.chance.randint(1, 3))]
        atoms = self.atoms(inputs)
        vo = self.bound(atoms)
        self.add({"op": "Join", "inputs": inputs, "vo": vo, "atoms": atoms}, vo)

    def matched(self, one: str, names: list[str]) -> str | None:
        """A node whose variables are these, made from one of as many."""
        old = self.variables[one]
        if len(old) != len(names):
            return None
        return (
            one
            if old == names
            else self.add({"op": "Rename", "inputs": [one], "names": dict(zip(old, names, strict=True))}, names)
        )

    def union(self) -> None:
        one = self.pick()
        names = self.variables[one]
        others = [self.matched(self.pick(), names) for _ in range(3)]
        inputs = [one, *(other for other in others if other)]
        self.add({"op": "Union", "inputs": inputs if len(inputs) > 1 else [one, one]}, names)

    def project(self) -> None:
        one = self.pick()
        names = self.variables[one]
        attrs = self.chance.sample(
            names, self.chance.randint(min(1, len(names)), len(names)) if self.chance.random() < 0.9 else 0
        )
        self.add({"op": "Project", "inputs": [one], "attrs": attrs}, attrs)

    def diff(self) -> None:
        left, right = self.pick(), self.pick()
        shared = [name for name in self.variables[left] if name in self.variables[right]]
        if shared or self.chance.random() < 0.3:
            key = self.chance.sample(shared, self.chance.randint(0, len(shared)))
            self.add({"op": "Diff", "inputs": [left, right], "key": key}, self.variables[left])

    def rename(self) -> None:
        one = self.pick()
        old = self.variables[one]
        self.matched(one, self.chance.sample(VARIABLES, len(old)))

    def judge(self) -> None:
        one = self.pick()
        names = self.variables[one]
        if not names:
            return
        rel = self.chance.choice(["F", "G"] if len(names) > 1 else ["F"])
        variables = self.chance.sample(names, len(COMPUTED[rel]))
        node = {"op": "Compute", "mode": "Pointwise", "rel": rel, "inputs": [one], "tupleVars": variables}
        self.add(node, names)

    def cycle(self) -> None:
        """``u = base ∪ π(u ⋈ others)``, sometimes with the union read twice, or with a rename on the way."""
        base = self.pick()
        names = self.variables[base]
        if len(names) > 2:
            return
        at = len(self.nodes)
        union, join, project = f"u{at}", f"j{at}", f"p{at}"
        self.variables[union] = names
        inputs = [union, *([union] if self.chance.random() < 0.3 else []), self.pick()]
        atoms = self.atoms(inputs)
        vo = self.bound(atoms)
        self.add({"op": "Join", "inputs": inputs, "vo": vo, "atoms": atoms}, vo, join)
        if len(vo) < len(names):
            last = union
        else:
            attrs = self.chance.sample(vo, len(names))
            last = self.add({"op": "Project", "inputs": [join], "attrs": attrs}, attrs, project)
            last = self.matched(last, names) or last
        self.add({"op": "Union", "inputs": [base, last]}, names, union)


# -- meaning


def meaning(spec: Mapping[str, Any], held: Mapping[str, set[Row]], truth: Any) -> dict[str, set[Row]]:
    """The tuples of every node; ``truth(node, candidates)`` says which are true."""
    nodes = {node["id"]: node for node in spec["nodes"]}
    schemas = {relation["name"]: relation["schema"] for relation in spec["relations"]}
    reach: dict[str, set[str]] = {}
    for one, node in nodes.items():
        found, waiting = set[str](), list(node.get("inputs", ()))
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                waiting += nodes[other].get("inputs", ())
        reach[one] = found
    names: dict[str, list[str]] = {}
    rows: dict[str, set[Row]] = {}

    def variables(one: str) -> list[str]:
        if one not in names:
            node = nodes[one]
            match node["op"]:
                case "Scan":
                    names[one] = schemas[node["rel"]]
                case "Join":
                    names[one] = node["vo"]
                case "Project":
                    names[one] = node["attrs"]
                case "Rename":
                    names[one] = [node["names"].get(name, name) for name in variables(node["inputs"][0])]
                case _:
                    names[one] = variables(node["inputs"][0]) if node.get("inputs") else schemas[node["rel"]]
        return names[one]

    def compute(one: str) -> set[Row]:
        node = nodes[one]
        inputs = [(variables(i), rows[i]) for i in node.get("inputs", ())]
        match node["op"]:
            case "Scan":
                return held[node["rel"]]
            case "Join":
                bindings: list[dict[str, Any]] = [{}]
                for (_, found), atom in zip(inputs, node["atoms"], strict=True):
                    bindings = [
                        merged
                        for binding in bindings
                        for row in found
                        if (merged := _merged(binding, atom["vars"], row)) is not None
                    ]
                return {tuple(binding[name] for name in node["vo"]) for binding in bindings}
            case "Union":
                return set().union(*(found for _, found in inputs))
            case "Diff":
                (left, found), (right, others) = inputs
                keys = {tuple(row[right.index(k)] for k in node["key"]) for row in others}
                return {row for row in found if tuple(row[left.index(k)] for k in node["key"]) not in keys}
            case "Project":
                columns = [inputs[0][0].index(name) for name in node["attrs"]]
                return {tuple(row[c] for c in columns) for row in inputs[0][1]}
            case "Rename":
                return inputs[0][1]
            case _ if node["mode"] == "Enumerable":
                return held[node["rel"]]
            case _:
                columns = [inputs[0][0].index(name) for name in node["tupleVars"]]
                true = truth(node, {tuple(row[c] for c in columns) for row in inputs[0][1]})
                return {row for row in inputs[0][1] if tuple(row[c] for c in columns) in true}

    def visit(one: str) -> None:
        if one in rows:
            return
        part = {other for other in reach[one] if one in reach[other]} | {one}
        for member in part:
            for other in nodes[member].get("inputs", ()):
                if other not in part:
                    visit(other)
        rows.update({member: set[Row]() for member in part})
        for member in part:
            variables(member)
        changed = True
        while changed:
            again = {member: compute(member) for member in part}
            changed = any(again[member] != rows[member] for member in part) and one in reach[one]
            rows.update(again)

    for one in nodes:
        visit(one)
    return rows


def _merged(binding: dict[str, Any], names: list[str], row: Row) -> dict[str, Any] | None:
    found = dict(binding)
    for name, value in zip(names, row, strict=True):
        if found.setdefault(name, value) != value:
            return None
    return found


# -- worlds


class World:
    """What relations and predicates hold, outside: the side that the kernel is told of and asks."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.atoms = chance.sample(ATOMS, 4)
        self.held: dict[str, set[Row]] = {name: set() for name in (*RELATIONS, "E")}
        self.enumerated = Enumerated()
        self.flipping = Flipping()
        self.asked = Asked()

    @property
    def providers(self) -> dict[str, Any]:
        return {"E": self.enumerated, "F": self.flipping, "G": self.asked}

    def row(self, arity: int) -> Row:
        return tuple(self.chance.choice(self.atoms) for _ in range(arity))

    def batch(self) -> dict[str, tuple[list[Row], list[Row]]]:
        """Adds and removes of some relations: of what is there and what is not, twice, and both at once."""
        found: dict[str, tuple[list[Row], list[Row]]] = {}
        for name, columns in RELATIONS.items():
            if self.chance.random() < 0.6:
                adds = [self.row(len(columns)) for _ in range(self.chance.randint(0, 4))]
                removes = [self.row(len(columns)) for _ in range(self.chance.randint(0, 4))]
                found[name] = adds, removes
        return found

    def take(self, batch: Mapping[str, tuple[list[Row], list[Row]]]) -> None:
        for name, (adds, removes) in batch.items():
            plus, minus = tags(adds), tags(removes)
            self.held[name] = (self.held[name] - (minus - plus)) | (plus - minus)

    def change(self) -> None:
        """Providers change their minds."""
        for provider, arity in ((self.enumerated, 2), (self.flipping, 1), (self.asked, 2)):
            for _ in range(self.chance.randint(0, 3)):
                row = self.row(arity)
                provider.rows.pop(tagged(row), None) if self.chance.random() < 0.4 else provider.rows.update(
                    {tagged(row): row}
                )


class Enumerated:
    """A provider that lists: it remembers what it had said when it was asked with a handle."""

    def __init__(self) -> None:
        self.rows: dict[Row, Row] = {}
        self.said: dict[int, dict[Row, Row]] = {}
        self.told: dict[Row, Row] = {}
        self.handles: list[int] = []

    def enumerate(self) -> list[Row]:
        self.told = dict(self.rows)
        self.said = {}
        return [*self.rows.values()] * 2

    def delta_since(self, handle: int) -> Any:
        self.handles.append(handle)
        before = self.said.setdefault(handle, self.told)
        self.told = dict(self.rows)
        adds = [row for key, row in self.rows.items() if key not in before]
        return {"adds": adds * 2, "removes": [row for key, row in before.items() if key not in self.rows]}


class Flipping:
    """A predicate that says, of what is watched, what is true now and what is not."""

    def __init__(self) -> None:
        self.rows: dict[Row, Row] = {}
        self.broken = False

    def eval_many(self, candidates: Any) -> Any:
        return [row for row in candidates if tagged(row) in self.rows]

    def flips_since(self, handle: int, watched: Any) -> Any:
        assert not self.broken, "broken"
        true = [row for row in watched if tagged(row) in self.rows]
        return {"true": [*true, *self.rows.values()], "false": [row for row in watched if tagged(row) not in self.rows]}


class Asked:
    """A predicate that is asked once for every candidate, and then stands by it."""

    def __init__(self) -> None:
        self.rows: dict[Row, Row] = {}
        self.broken = False

    def eval_many(self, candidates: Any) -> Any:
        assert not self.broken, "broken"
        return (row for row in candidates if tagged(row) in self.rows)
