"""A circuit as text: a line for every node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.circuit.nodes import Child, Export, Import, Sink, inputs_of, reads_of, title

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit


def line_of(circuit: Circuit, node_id: int) -> str:
    """A node with its edges and its output; a child with the lines of its own nodes."""
    node = circuit[node_id]
    edges = [str(i) if i is not None else "?" for i in inputs_of(node)]
    if isinstance(node, Import):
        edges = [f"outer {node.parent}"]
    if isinstance(node, Export):
        edges = [f"{node.child}.{node.node}"]
    edges += [f"{r.node} {r.moment.value}" for r in reads_of(node)]
    arguments = f"({', '.join(edges)})" if edges else ""
    result = "" if isinstance(node, Sink | Child) else f" → {node.output}"
    line = f"{node_id} {title(node)}{arguments}{result}"
    if not isinstance(node, Child):
        return line
    return "\n".join([line, *(_inner_line(node_id, inner) for inner in str(node.circuit).splitlines())])


def _inner_line(node_id: int, line: str) -> str:
    """A line of a child's circuit, as its parent shows it: deeper, and with its own number before."""
    text = line.lstrip()
    return f"  {line[: len(line) - len(text)]}{node_id}.{text}"
