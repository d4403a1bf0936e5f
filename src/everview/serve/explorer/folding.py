"""A circuit folded by tables, views and recursion: few boxes, of which each can be opened.

Every node is at home in one box: the nodes that keep a table in the table's, those behind a view in the view's, unless
an earlier view has them already, and those of a recursion in the recursion's, which lies in a view's. What is closed is
one box, and what is not among the first of a level is one box, too: so a picture is bounded, however large the circuit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everview.circuit.draw import drawn_id, edges_of
from everview.circuit.nodes import Apply, Child, Export, Node, Sink, Source, inputs_of, reads_of, title
from everview.drawings import Arrow, Box, Diagram
from everview.operators.arrange import Arrange
from everview.serve.ingests import KEYS

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit
    from everview.database.catalog import Catalog

MOST: Final = 120  # boxes of one level that are drawn; all others are one
ALL: Final = 480  # boxes that are drawn at once
LETTERS: Final = 30  # of a title
NOTE: Final = ("0" * 16, "")  # the room for what is told of a box while it is looked at
REST: Final = "more"


@dataclass(frozen=True, slots=True)
class FoldBox:
    """A box of the drawing: a table, a view, a recursion, a node, or the ``more`` that are not drawn one by one."""

    id: str
    kind: str  # table, view, loop, state, node, more
    title: str
    nodes: int = 1
    relation: str = ""  # the table or view that it is, by the name that people know
    opens: bool = False


@dataclass(frozen=True, slots=True)
class FoldedDrawing:
    """A drawing: the diagram, its boxes by name, and the box that shows each node."""

    diagram: Diagram
    boxes: Mapping[str, FoldBox]
    seen: Mapping[str, str]
    opened: frozenset[str]


class FoldedCircuit:
    """A circuit with the home of each of its nodes; made once for a circuit, and asked for drawings."""

    def __init__(self, circuit: Circuit, catalog: Catalog) -> None:
        self.circuit = circuit
        self.boxes: dict[str, FoldBox] = {}
        self.inside: dict[str, list[str]] = {}  # what lies in a box, in the order of evaluation
        self.nodes: dict[str, tuple[Circuit, int]] = {}
        homes = _homes(circuit, catalog)
        for name, box in _relations(circuit, catalog, homes):
            self.boxes[name] = box
            self.inside[name] = []
        self.edges = list(self._all_edges(circuit))
        for node_id in circuit.order():
            self._add(circuit, node_id, self.inside[homes[node_id]])
        for name, inner in self.inside.items():
            self.boxes[name] = _counted(self.boxes[name], sum(1 for _ in self.below(inner)))
        self.top = self._top(catalog)
        self.ends = dict(self._ends())

    def below(self, names: Iterable[str]) -> Iterator[str]:
        """The nodes of some boxes, and of those in them."""
        for name in names:
            if name in self.nodes:
                yield name
            yield from self.below(self.inside.get(name, ()))

    def drawing(self, wanted: Sequence[str], focus: str = "") -> FoldedDrawing:
        """The drawing with these boxes opened, as far as there is room for what is in them."""
        room, opened = ALL - min(len(self.top), MOST), set[str]()
        for name in wanted:
            size = min(len(self.inside.get(name, ())), MOST)
            if size and size <= room:
                opened.add(name)
                room -= size
        boxes: dict[str, FoldBox] = {}
        seen: dict[str, str] = {}
        drawn = self._level(self._first(self.top, {*opened, focus}, focus), self.top, REST, opened, boxes, seen)
        return FoldedDrawing(Diagram(drawn, tuple(self._arrows(seen))), boxes, seen, frozenset(opened & set(boxes)))

    def _level(
        self,
        chosen: Collection[str],
        names: Sequence[str],
        rest: str,
        opened: Collection[str],
        boxes: dict[str, FoldBox],
        seen: dict[str, str],
    ) -> tuple[Box, ...]:
        """The boxes of one level and of its opened boxes; all are added to ``boxes`` and ``seen``."""
        drawn: list[Box] = []
        hidden: list[str] = []
        for name in names:
            if name not in chosen:
                hidden.append(name)
                continue
            boxes[name] = box = self.boxes[name]
            inner = self.inside.get(name, ())
            if name in opened:
                few = self._first(inner, opened)
                lies = Diagram(self._level(few, inner, f"{rest}:{name}", opened, boxes, seen))
                drawn.append(Box(name, (box.title,), inside=lies))
            else:
                seen |= dict.fromkeys(self.below((name,)), name)
                drawn.append(Box(name, (box.title, *NOTE)))
        if hidden:
            nodes = list(self.below(hidden))
            boxes[rest] = box = FoldBox(rest, "more", f"{len(hidden):,} more", len(nodes))
            seen |= dict.fromkeys(nodes, rest)
            drawn.append(Box(rest, (box.title, *NOTE)))
        return tuple(drawn)

    def _first(self, names: Sequence[str], wanted: Collection[str], focus: str = "") -> set[str]:
        """Which boxes of a level are drawn: wanted ones, those next to the focus, and the first of the rest."""
        if len(names) <= MOST:
            return set(names)
        chosen = dict.fromkeys(name for name in names if name in wanted)
        if focus:
            chosen |= dict.fromkeys(self._around(focus))
        for name in names:
            if len(chosen) >= MOST:
                break
            chosen[name] = None
        return set(list(chosen)[:MOST])

    def _around(self, focus: str) -> list[str]:
        """The boxes of the top level from near to far of one of them, along arrows in either direction."""
        home = {node: name for name in self.top for node in self.below((name,))}
        near: dict[str, dict[str, None]] = {}
        for source, target, _ in self.edges:
            a, b = home.get(source), home.get(target)
            if a is not None and b is not None and a != b:
                near.setdefault(a, {})[b] = None
                near.setdefault(b, {})[a] = None
        found = {focus: None}
        for name in (queue := [focus]):
            for other in near.get(name, ()):
                if other not in found and len(found) < MOST:
                    found[other] = None
                    queue.append(other)
        return list(found)

    def _arrows(self, seen: Mapping[str, str]) -> Iterator[Arrow]:
        """An arrow for the streams between two boxes; a dashed one if only traces are read."""
        arrows: dict[tuple[str, str], bool] = {}
        for source, target, label in self.edges:
            ends = seen.get(source), seen.get(target)
            if ends[0] is not None and ends[1] is not None and (ends[0] != ends[1] or source == target):
                pair = ends[0], ends[1]
                arrows[pair] = arrows.get(pair, True) and label != ""
        for (source, target), dashed in arrows.items():
            yield Arrow(source, target, dashed=dashed)

    def _all_edges(self, circuit: Circuit) -> Iterator[tuple[str, str, str]]:
        yield from edges_of(circuit)
        for node in circuit:
            if isinstance(node, Child):
                yield from self._all_edges(node.circuit)

    def _add(self, circuit: Circuit, node_id: int, into: list[str]) -> None:
        name, node = drawn_id(circuit, node_id), circuit[node_id]
        self.nodes[name] = circuit, node_id
        into.append(name)
        if isinstance(node, Child):
            self.boxes[name] = FoldBox(name, "loop", _short(f"recursion {node.name}"), opens=True)
            self.inside[name] = []
            for inner in node.circuit.order():
                self._add(node.circuit, inner, self.inside[name])
        else:
            self.boxes[name] = FoldBox(name, _kind(node), _short(title(node)))

    def _ends(self) -> Iterator[tuple[str, list[str]]]:
        """The nodes by which changes leave a folded box: of a table, the one that keeps its rows."""
        circuit = self.circuit
        for name, node_id in circuit.tables.items():
            yield f"t:{name}", [drawn_id(circuit, each) for each in inputs_of(circuit[node_id]) if each is not None]
        for name, node_id in circuit.sinks.items():
            yield f"v:{name}", [drawn_id(circuit, node_id)]
        for name, (owner, node_id) in self.nodes.items():
            if isinstance(owner[node_id], Child):
                exports = [
                    number for number, node in enumerate(owner) if isinstance(node, Export) and node.child == node_id
                ]
                yield name, [drawn_id(owner, number) for number in exports]

    def _top(self, catalog: Catalog) -> list[str]:
        """The boxes of tables and views; tables of the system's own only if something reads them."""
        home = {node: name for name, inner in self.inside.items() for node in self.below(inner)}
        read = {home[source] for source, target, _ in self.edges if home[source] != home[target]}
        own = {f"t:{name}" for name, table in catalog.tables.items() if table.internal or name == KEYS}
        return [
            name for name, inner in self.inside.items() if name not in self.nodes and inner and not own - read >= {name}
        ]


def _homes(circuit: Circuit, catalog: Catalog) -> dict[int, str]:
    """The box of each node of the root."""
    homes: dict[int, str] = {}
    sinks = circuit.sinks

    def claim(node_id: int, home: str) -> None:
        waiting = [node_id]
        while waiting:
            at = waiting.pop()
            if at in homes:
                continue
            homes[at] = home
            node = circuit[at]
            waiting += [each for each in inputs_of(node) if each is not None]
            waiting += [read.node for read in reads_of(node)]

    for name, node_id in circuit.sources.items():
        homes[node_id] = f"t:{name}"
    for name, node_id in circuit.tables.items():
        claim(node_id, f"t:{name}")
    for name in dict.fromkeys([*(name for name in catalog.views if name in sinks), *sinks]):
        view = catalog.views.get(name)
        guarded = None if view is None else view.guards
        claim(sinks[name], f"v:{name}" if guarded is None else f"t:{guarded[0]}")
    for node_id in range(len(circuit)):
        homes.setdefault(node_id, "o:")
    return homes


def _relations(circuit: Circuit, catalog: Catalog, homes: Mapping[int, str]) -> Iterator[tuple[str, FoldBox]]:
    for home in dict.fromkeys(homes[node_id] for node_id in circuit.order()):
        kind, _, name = home.partition(":")
        known = catalog.shown.get(name, name)
        relation = known if name in catalog.relations else ""
        kind = {"t": "table", "v": "view"}.get(kind, "more")
        yield home, FoldBox(home, kind, _short(known or "others"), relation=relation, opens=True)


def _counted(box: FoldBox, nodes: int) -> FoldBox:
    return FoldBox(box.id, box.kind, box.title, nodes, box.relation, box.opens)


def _kind(node: Node) -> str:
    if isinstance(node, Apply) and isinstance(node.operator, Arrange):
        return "state"
    return "end" if isinstance(node, Source | Sink) else "node"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
