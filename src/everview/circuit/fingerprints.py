"""Fingerprints: names for what nodes compute, the same in every run, by which a stored trace finds its node again.

A fingerprint is the hash of a node's whole subcircuit: what the node is, and the fingerprints of what it reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Node, Sink, inputs_of, reads_of, title

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit


def fingerprints(circuit: Circuit, texts: dict[int, str], outer: Mapping[int, str] | None) -> dict[int, str]:
    """The fingerprint of every node of a circuit; ``outer`` has those of its parent's nodes, if it is a child.

    Computed in two passes if one does not suffice, because the input of a feedback has its fingerprint only after the
    first: two loops are the same only if they do the same. ``texts`` caches the text of each node from one call to the
    next.
    """
    first = _fingerprints(circuit, texts, outer, {})
    return _fingerprints(circuit, texts, outer, first) if _looks_ahead(circuit) else first


def _looks_ahead(circuit: Circuit) -> bool:
    """Whether the fingerprint of some node depends on that of a later one: of a feedback, or of a trace as it was."""
    place = {node_id: number for number, node_id in enumerate(circuit.order())}
    return any(
        isinstance(node, Feedback | Child) or any(place[read.node] > place[node_id] for read in reads_of(node))
        for node_id, node in enumerate(circuit)
    )


def _fingerprints(
    circuit: Circuit, texts: dict[int, str], outer: Mapping[int, str] | None, first: Mapping[int, str]
) -> dict[int, str]:
    prints: dict[int, str] = {}
    for node_id in circuit.order():
        node = circuit[node_id]
        if node_id not in texts:
            texts[node_id] = node_text(node)
        parts = [texts[node_id], *_revisions(circuit, node)]
        match node:
            case Import():
                assert outer is not None, "a child is named within its parent"
                parts.append(outer[node.parent])
            case Child():
                inner = node.circuit.fingerprints(prints)
                parts += [inner[i] for i in sorted(inner)]
            case Export():
                parts += [prints[node.child], str(node.node)]
            case Feedback():
                assert node.input is not None, "an ordered circuit is connected"
                # At the root its number tells only loops apart, which have it from the first time: so what is
                # built before it does not matter.
                parts += [first[node.input]] if first and outer is None else [str(node_id), first.get(node.input, "")]
            case _:
                parts += [prints[i] for i in inputs_of(node) if i is not None]
                # A trace that is read before the tick may stand later in the order.
                parts += [f"{prints.get(r.node, first.get(r.node, ''))} {r.moment.value}" for r in reads_of(node)]
        prints[node_id] = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    return prints


def _revisions(circuit: Circuit, node: Node) -> list[str]:
    """The revisions of the functions that an operator calls, where those have any."""
    if not isinstance(node, Apply) or not node.operator.functions:
        return []
    known = circuit.functions
    return [known[name].revision for name in node.operator.functions if name in known and known[name].revision]


def node_text(node: Node) -> str:
    """The text of a node by itself, without its inputs."""
    if isinstance(node, Apply):
        return node.operator.text
    made = title(node)
    return f"{made}\n" if isinstance(node, Sink | Child) else f"{made}\n{node.output!r}"
