"""The order of evaluation of a circuit's nodes: each after the nodes it needs in the same tick."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from everview.circuit.nodes import Feedback, Node, inputs_of, reads_of
from everview.errors import CircuitError
from everview.operators.operator import Moment

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit


def order_of(circuit: Circuit) -> tuple[int, ...]:
    """The nodes in order of evaluation: each after its needs of the same tick, else in order of building."""
    _check_connected(circuit)
    needs = [_needs(node) for node in circuit]
    if all(needed < node_id for node_id, others in enumerate(needs) for needed in others):
        return tuple(range(len(needs)))
    sorter = TopologicalSorter(dict(enumerate(needs)))
    try:
        sorter.prepare()
    except CycleError as error:
        path = " → ".join(circuit.label(node_id) for node_id in error.args[1])
        raise CircuitError(f"a cycle without feedback: {path}", hint="close the cycle with circuit.feedback") from None
    ready, order = list(sorter.get_ready()), list[int]()
    heapify(ready)
    while ready:
        order.append(node_id := heappop(ready))
        sorter.done(node_id)
        for later in sorter.get_ready():
            heappush(ready, later)
    return tuple(order)


def _needs(node: Node) -> set[int]:
    """The nodes to compute before a node: none for a feedback, whose output is its input of the tick before."""
    if isinstance(node, Feedback):
        return set()
    needed = {i for i in inputs_of(node) if i is not None}
    return needed | {r.node for r in reads_of(node) if r.moment is Moment.AFTER}


def _check_connected(circuit: Circuit) -> None:
    for node_id, node in enumerate(circuit):
        if None in inputs_of(node):
            port = inputs_of(node).index(None)
            raise CircuitError(f"port {port} of {circuit.label(node_id)} is not connected", hint="circuit.connect it")
