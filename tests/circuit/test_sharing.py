"""The same thing built twice is one node; what a node computes has the same name in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
from hypothesis import given

from everview.circuit import Circuit, Program, Stream, incrementalize
from everview.circuit.nodes import Apply
from everview.operators.arrange import Arrange
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from oracle.cases import Case
from strategies import cases


def table(circuit: Circuit, name: str = "t") -> Stream:
    return circuit.source(name, "a BIGINT NOT NULL, s STRING, x DOUBLE")


def traces(circuit: Circuit) -> int:
    return sum(isinstance(node, Apply) and isinstance(node.operator, Arrange) for node in circuit)


def odd(a: object, s: object, x: object) -> object:
    return pc.equal(pc.bit_wise_and(a, 1), 1)


TWICE: dict[str, Callable[[Stream, Stream], Stream]] = {
    "filter": lambda t, u: t.filter(odd),
    "map": lambda t, u: t.map(odd, "odd BOOLEAN"),
    "select": lambda t, u: t.select("s", "a"),
    "index": lambda t, u: t.index("s"),
    "negate": lambda t, u: -t,
    "plus": lambda t, u: t + u,
    "minus": lambda t, u: t - u,
    "distinct": lambda t, u: t.distinct(),
    "delay": lambda t, u: t.delay(),
    "join": lambda t, u: t.join(u, "a"),
    "semijoin": lambda t, u: t.semijoin(u, "a"),
    "antijoin": lambda t, u: t.antijoin(u, "a"),
    "full join": lambda t, u: t.full_join(u, "a"),
    "aggregate": lambda t, u: t.aggregate(["s"], n="count", total=("sum", "a"), low=("min", "x")),
    "top": lambda t, u: t.top(3, ["x desc"], by=["s"]),
    "integrate": lambda t, u: t.integrate(),
}


def test_the_same_is_built_once() -> None:
    circuit = Circuit()
    t, u = table(circuit), table(circuit, "u")
    for name, build in TWICE.items():
        first = build(t, u)
        size = len(circuit)
        assert build(t, u).id == first.id, name
        assert len(circuit) == size, name


def test_readers_of_one_index_share_its_trace() -> None:
    circuit = Circuit()
    t, u, v = table(circuit), table(circuit, "u"), table(circuit, "v")
    t.join(u, "a").sink("one")
    t.join(v, "a").sink("two")
    t.semijoin(u, "a").sink("three")
    t.antijoin(u, "a").sink("four")
    # Of t by a, of u by a and of its keys, of v by a: what they are read for makes no difference.
    assert traces(incrementalize(circuit)) == 4


def test_a_view_shares_the_trace_that_its_query_reads() -> None:
    circuit = Circuit()
    t = table(circuit)
    t.sink("all")
    t.distinct().sink("different")
    program = Program(incrementalize(circuit))
    assert len(program.traces) == 2
    assert program.contents("all") != program.contents("different")


def test_different_functions_of_one_name_are_told_apart() -> None:
    circuit = Circuit()
    t = table(circuit)
    streams = [t.filter(lambda a, s, x, n=n: pc.greater(a, n)) for n in range(3)]
    assert len({s.id for s in streams}) == 3
    assert len(circuit.functions) == 3
    assert t.filter(odd).id == t.filter(odd).id


def test_local_and_global_ids() -> None:
    circuit = Circuit()
    t = table(circuit)
    loop = circuit.child("loop")
    inner = loop.enter(t)
    deeper = loop.child("deeper")
    innermost = deeper.enter(t)
    assert circuit.global_id(t.id) == (0,)
    assert loop.global_id(inner.id) == (1, 0)
    assert deeper.global_id(innermost.id) == (1, 1, 0)
    assert repr(innermost).startswith("<stream of node 1.1.0 ")


@given(case=cases())
def test_nodes_are_numbered_so_that_inputs_come_first(case: Case) -> None:
    circuit = incrementalize(case.build())
    assert circuit.order() == tuple(range(len(circuit)))


# -- fingerprints

BUILD = """
from everview.circuit import Circuit, Program

def query(name="t", schema="a BIGINT NOT NULL, s STRING, x DOUBLE"):
    circuit = Circuit()
    t = circuit.source(name, schema)
    total = t.aggregate(["s"], n="count", total=("sum", "a"), low=("min", "s"))
    total.join(t, "s").sink("joined")
    t.top(3, ["x desc nulls first", "s"], by=["s"]).sink("top")
    t.delay().semijoin(t, "a").sink("seen")
    loop = circuit.child("closure")
    path, again = loop.feedback(t.schema)
    paths = (loop.enter(t) + path).distinct()
    again(paths)
    loop.leave(paths).sink("paths")
    return circuit

def prints(circuit, shards=1):
    from everview.circuit import incrementalize
    return sorted(Program(incrementalize(circuit), shards).fingerprint.items())
"""
namespace: dict[str, Callable[..., object]] = {}
exec(BUILD, namespace)  # the same text here and in another process
query, prints = namespace["query"], namespace["prints"]


def test_fingerprints_are_the_same_in_every_process() -> None:
    for seed in ("0", "4711"):
        run = subprocess.run(
            [sys.executable, "-c", BUILD + "print(prints(query()), prints(query(), 3))"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == f"{prints(query())} {prints(query(), 3)}"


def test_fingerprints_tell_apart_what_differs() -> None:
    variants = [
        query(),
        query(name="u"),
        query(schema="a BIGINT NOT NULL, s STRING, x DOUBLE NOT NULL"),
        query(schema="a BIGINT NOT NULL, s STRING NOT NULL, x DOUBLE"),
        query(schema="a BIGINT NOT NULL, s STRING, y BIGINT, x DOUBLE"),
    ]
    found = [{name for name, _ in prints(v)} for v in variants]  # type: ignore[union-attr]
    for i, one in enumerate(found):
        for other in found[i + 1 :]:
            assert not one & other


def test_a_trace_keeps_its_name_when_the_circuit_around_it_changes() -> None:
    def names(*, more: bool) -> set[str]:
        circuit = Circuit()
        if more:
            table(circuit, "before").distinct().sink("first")
        t = table(circuit)
        t.aggregate(["s"], n="count").sink("counts")
        if more:
            t.join(t, "a").sink("joined")
        return set(Program(incrementalize(circuit)).fingerprint)

    assert names(more=False) < names(more=True)


def closures(*sources: str) -> Circuit:
    """A closure of each of these sources, all written alike."""
    circuit = Circuit()
    streams = {name: circuit.source(name, "a BIGINT NOT NULL, b BIGINT NOT NULL") for name in dict.fromkeys(sources)}
    for number, name in enumerate(sources):
        loop = circuit.child("closure")
        edge = loop.enter(streams[name])
        path, again = loop.feedback(edge.schema)
        paths = (edge + path.join(edge, ("b", "a"), select=["left.a", "right.b"])).distinct()
        again(paths)
        loop.leave(paths).sink(f"paths {number}")
    return circuit


def test_loops_over_different_streams_keep_their_states_apart(tmp_path: Path) -> None:
    with Embedded(closures("e", "f"), tmp_path / "state") as run:
        run.tick({"e": [((1, 2), 1)], "f": [((2, 9), 1)]})
    with Embedded(closures("e", "f"), tmp_path / "state") as run:
        run.tick({"e": [((9, 10), 1)]})
        assert run.view("paths 0").contents().to_zset() == ZSet({(1, 2): 1, (9, 10): 1})


def test_loops_that_are_alike_keep_their_states_apart(tmp_path: Path) -> None:
    with Embedded(closures("e", "e"), tmp_path / "state") as run:
        run.tick({"e": [((1, 2), 1)]})
    with Embedded(closures("e", "e"), tmp_path / "state") as run:
        assert run.view("paths 0").contents().to_zset() == ZSet({(1, 2): 1})
        assert run.view("paths 1").contents().to_zset() == ZSet({(1, 2): 1})
