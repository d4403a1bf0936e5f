"""Circuits: say what you want of whole tables, and let `incrementalize` work out what to do with changes.

A query circuit maps whole Z-sets to whole Z-sets. Two circuits put out its changes, tick by tick:

- ``lifted(query)`` integrates the inputs, computes everything anew, and differentiates: right by definition;
- ``incrementalize(query)`` replaces every operator by its derivative: the same, at the cost of the change.

``Embedded(query)`` applies `incrementalize` by itself; here it is done by hand, to look at the result.
"""

from __future__ import annotations

import random
from typing import Any

from everview import Circuit, Embedded, ZSet
from everview.circuit import explain, incrementalize, lifted
from everview.errors import CircuitError

Changes = dict[str, list[tuple[tuple[Any, ...], int]]]


def two_hops() -> Circuit:
    """Which node reaches which over one other, and how many nodes that makes for each start."""
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    hops = edge.join(edge, on=("b", "a"), select=["left.a", "right.b"]).distinct()
    hops.sink("hops")
    hops.aggregate(["a"], reached="count").sink("reach")
    return circuit


def build() -> Circuit:
    """Streams are values with methods; every method adds a node. `print` shows the nodes in order."""
    query = two_hops()
    print("The query, on whole tables:\n")
    print(query)
    print("\nIncremental, on changes (`before` and `after` say how a trace is read):\n")
    print(incrementalize(query))
    print("\nWhat became of each node, and by which rule:\n")
    print(explain(query))
    assert str(incrementalize(incrementalize(query))) == str(incrementalize(query)), "what is incremental stays"
    return query


def as_it_stands(query: Circuit) -> None:
    """Not made incremental, a circuit takes what a tick brings for whole tables."""
    whole, changes = Embedded(query, as_is=True), Embedded(query)
    for edges in ([((1, 2), +1), ((2, 3), +1)], [((2, 4), +1)]):
        by_table, by_change = (run.tick({"edge": edges})["hops"].to_zset() for run in (whole, changes))
    assert by_table == ZSet(), "the edge from 2 to 4 alone makes no two hops"
    assert by_change == ZSet({(1, 4): 1}), "together with what was there it does"


def share() -> None:
    """The same operator over the same input is the same node, so two views share their state."""
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    first = edge.select("a").distinct()
    size = len(circuit)
    second = edge.select("a").distinct()
    assert first.id == second.id
    assert len(circuit) == size, "nothing new was built"


def compare(query: Circuit) -> None:
    """The two circuits agree on every change, whatever comes: inserts, deletes, both, nothing."""
    incremental, by_definition = Embedded(incrementalize(query)), Embedded(lifted(query))
    compared = 0
    for changes in history(ticks=40):
        fast, slow = incremental.tick(changes), by_definition.tick(changes)
        for view in ("hops", "reach"):
            assert fast[view] == slow[view]
            compared += len(fast[view])
    assert sorted(incremental.view("reach").rows()) == sorted(by_definition.view("reach").rows())
    print(f"\nLifted and incremental agree on all {compared} changes of 40 ticks.")


def history(ticks: int) -> list[Changes]:
    """Edges that come and, if they are there, go again."""
    chosen, there, found = random.Random(7), set[tuple[int, int]](), list[Changes]()
    for _ in range(ticks):
        toggled = {(chosen.randrange(8), chosen.randrange(8)) for _ in range(chosen.randrange(5))}
        found.append({"edge": [(edge, -1 if edge in there else +1) for edge in sorted(toggled)]})
        there ^= toggled
    return found


def loop() -> None:
    """A feedback closes a cycle one tick late: here the integral by hand, ``I(s) = s + z⁻¹(I(s))``."""
    circuit = Circuit()
    paid = circuit.source("paid", "amount BIGINT NOT NULL")
    before, connect = circuit.feedback("amount BIGINT NOT NULL")
    after = before + paid
    connect(after)
    after.sink("so_far", keep=False)
    run = Embedded(circuit, as_is=True)
    for amount in (5, 7):
        out = run.tick({"paid": [((amount,), 1)]})
    assert list(out["so_far"]) == [((5,), 1), ((7,), 1)], "everything that was ever paid, every tick"


def mistakes() -> None:
    """What is ill-formed is refused, with the name of the node."""
    circuit = Circuit()
    paid = circuit.source("paid", "amount BIGINT NOT NULL")
    other = Circuit().source("paid", "amount BIGINT NOT NULL")
    try:
        paid.join(other, on="amount")
    except CircuitError as error:
        print(f"\nRefused: {error}")
    else:
        raise AssertionError("two circuits were joined")


def picture(query: Circuit) -> None:
    """Mermaid for code forges and notebooks, `to_dot` for Graphviz; in a notebook a circuit shows itself."""
    drawn = incrementalize(query).to_mermaid()
    print(f"\nAs a picture:\n\n{drawn}")
    assert drawn.startswith("flowchart LR")
    assert "-. before .->" in drawn


if __name__ == "__main__":
    query = build()
    as_it_stands(query)
    share()
    compare(query)
    loop()
    mistakes()
    picture(query)
