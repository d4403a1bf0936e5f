"""The kernel by example: the worked one, sets, batches, graphs that come and go, order, and what is kept."""

from __future__ import annotations

import json
import math
from ipaddress import IPv4Address
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import everview as ev
from everview.errors import EverviewError, GraphError
from everview.frontends.graphspec import graph
from everview.types import Id, Symbol, register_atom
from relational.specs import EVERYTHING, WORKED, Lists, Says, small

NOTHING = ev.Delta()
JOIN = {
    "id": "j",
    "op": "Join",
    "inputs": ["r", "s"],
    "vo": ["a", "b", "c"],
    "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}],
}
PATHS = small(
    {"id": "j", "op": "Join", "inputs": ["u", "r"], "vo": ["a", "b", "c"],
     "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}]},
    {"id": "p", "op": "Project", "inputs": ["j"], "attrs": ["a", "c"]},
    {"id": "n", "op": "Rename", "inputs": ["p"], "names": {"c": "b"}},
    {"id": "u", "op": "Union", "inputs": ["r", "n"]},
)  # fmt: skip


def kernel_of(spec: Any, providers: Any = None, **options: Any) -> ev.Kernel:
    kernel = ev.Kernel(**options)
    kernel.define_graph("g", spec, providers=providers)
    kernel.activate_graph("g")
    return kernel


@pytest.mark.parametrize("text", [False, True])
def test_the_worked_example(text: bool) -> None:
    """One binding, found by three atoms in one batch, counts once."""
    q = Says({("a1", "c3")})
    kernel = kernel_of(json.dumps(WORKED) if text else WORKED, {"Q": q})
    out = kernel.push_batch({"A": ev.Delta({("a1", "b2")}), "B": ev.Delta({("b2", "c3")}), "P": ev.Delta({("b2",)})})
    assert out == {"Res": ev.Delta(adds={("a1", "c3")})}
    assert q.calls == [[("a1", "c3")]]
    assert kernel.push_batch({"P": ev.Delta(removes={("b2",)})}) == {"Res": ev.Delta(removes={("a1", "c3")})}
    assert kernel.push_batch({"P": ev.Delta({("b2",)})}) == {"Res": ev.Delta(adds={("a1", "c3")})}
    assert q.calls == [[("a1", "c3")]] * 2, "a candidate that left is asked about again"


def test_input_is_a_set() -> None:
    kernel = kernel_of(small())
    assert kernel.push_batch({"R": ev.Delta([(1, 2), (1, 2)])}) == {"out": ev.Delta({(1, 2)})}
    assert kernel.push_batch({"R": ev.Delta({(1, 2)})}) == {"out": NOTHING}, "what is there is not added"
    assert kernel.push_batch({"R": ev.Delta(removes={(3, 4)})}) == {"out": NOTHING}, "what is not is not removed"
    both = ev.Delta(adds={(1, 2), (5, 6)}, removes={(1, 2), (5, 6)})
    assert kernel.push_batch({"R": both}) == {"out": NOTHING}, "both at once is no change, there or not"
    assert kernel.relation("R") == {(1, 2)}
    assert kernel.push_batch({"R": ev.Delta(removes=[(1, 2)] * 3)}) == {"out": ev.Delta(removes={(1, 2)})}


def test_a_difference_nets_what_both_sides_do() -> None:
    kernel = kernel_of(small({"id": "d", "op": "Diff", "inputs": ["r", "s"], "key": ["a"]}))
    assert kernel.push_batch({"R": {(1, "x")}, "S": {(1, "y")}}) == {"out": NOTHING}
    moved = {"R": ev.Delta({(2, "x")}, {(1, "x")}), "S": ev.Delta({(2, "y"), (3, "y")}, {(1, "y")})}
    assert kernel.push_batch(moved) == {"out": NOTHING}
    out = kernel.push_batch({"S": ev.Delta({(2, "z")}, {(2, "y")}), "R": {(4, "x")}})
    assert out == {"out": ev.Delta({(4, "x")})}
    assert kernel.push_batch({"S": ev.Delta(removes={(2, "z")})}) == {"out": ev.Delta({(2, "x")})}


def test_a_union_and_a_projection_count() -> None:
    kernel = kernel_of(
        small(
            {"id": "u", "op": "Union", "inputs": ["r", "s"]},
            {"id": "p", "op": "Project", "inputs": ["u"], "attrs": ["b"]},
        )
    )
    assert kernel.push_batch({"R": {(1, 1), (2, 1)}, "S": {(1, 1)}}) == {"out": ev.Delta({(1,)})}
    assert kernel.push_batch({"R": ev.Delta(removes={(1, 1)})}) == {"out": NOTHING}
    assert kernel.push_batch({"R": ev.Delta(removes={(2, 1)})}) == {"out": NOTHING}
    assert kernel.push_batch({"S": ev.Delta(removes={(1, 1)})}) == {"out": ev.Delta(removes={(1,)})}


def test_a_positive_cycle_runs_to_its_fixed_point() -> None:
    kernel = kernel_of(PATHS)
    ring = {(i, (i + 1) % 4) for i in range(4)}
    assert kernel.push_batch({"R": ring}) == {"out": ev.Delta({(i, j) for i in range(4) for j in range(4)})}
    kernel.push_batch({"R": ev.Delta(removes={(3, 0)})})
    assert kernel.output("out") == {(i, j) for i in range(4) for j in range(i + 1, 4)}
    kernel.push_batch({"R": ev.Delta({(2, 0)}, {(0, 1)})})
    assert kernel.output("out") == {(1, 2), (1, 3), (1, 0), (2, 3), (2, 0)}


def test_types_tell_values_apart() -> None:
    atoms = [True, False, 1, 0, 1.0, 0.0, "1", "", Symbol("1"), Id("1"), math.nan, math.inf, "é"]
    kernel = kernel_of(small(JOIN))
    out = kernel.push_batch({"R": [(i, atom) for i, atom in enumerate(atoms)], "S": [(atom, atom) for atom in atoms]})
    assert len(out["out"].adds) == len(atoms), "every atom meets itself alone"
    assert kernel.push_batch({"R": [(4, np.float64(1)), (2, np.int64(1)), (5, -0.0)]}) == {"out": NOTHING}
    assert len(kernel.push_batch({"S": ev.Delta(removes=[(1, 1)])})["out"].removes) == 1
    assert len(kernel.push_batch({"S": ev.Delta(removes=[(-0.0, 0.0), (math.nan, math.nan)])})["out"].removes) == 2


def test_results_are_in_order() -> None:
    rows = [("b",), ("a",), (Id("a"),), (Symbol("b"),), (2,), (10,), (1.5,), (True,), (False,),
            ("\uffff",), ("\U0001f600",), (math.nan,), (-math.inf,), ("é",), ("z",)]  # fmt: skip
    wanted = [(False,), (True,), (2,), (10,), (-math.inf,), (1.5,), (math.nan,), ("a",), ("b",), ("z",), ("é",),
              ("\uffff",), ("\U0001f600",), (Symbol("b"),), (Id("a"),)]  # fmt: skip

    def listed(**options: Any) -> list[Any]:
        spec = {"relations": [{"name": "R", "schema": ["a"]}], "nodes": [{"id": "r", "op": "Scan", "rel": "R"}],
                "outputs": [{"name": "out", "from": "r"}]}  # fmt: skip
        kernel = kernel_of(spec, **options)
        delta = kernel.push_batch({"R": rows})["out"]
        assert repr(list(delta.adds)) == repr(list(kernel.output("out"))) == repr(list(kernel.relation("R")))
        return list(delta.adds)

    assert repr(listed()) == repr(wanted)
    texts_first = listed(order=["Symbol", "String"])
    assert texts_first[0] == (Symbol("b"),)
    assert texts_first[1] == ("a",)
    backwards = listed(order=lambda value: -len(str(value)))
    assert [len(str(value)) for (value,) in backwards] == sorted((len(str(v)) for (v,) in rows), reverse=True)
    with pytest.raises(EverviewError, match="order given for atoms"):
        listed(order=lambda value: value)
    for order in (["Nothing"], ["String", "String"], "String"):
        with pytest.raises(EverviewError, match="order"):
            ev.Kernel(order=order)


def test_registered_atoms() -> None:
    register_atom("IPV4", IPv4Address, attrgetter("packed"), IPv4Address)
    kernel = kernel_of(small(relations={"R": [{"name": "a", "type": "IPV4"}, "b"]}), check_types=True)
    home = IPv4Address("127.0.0.1")
    assert kernel.push_batch({"R": {(home, 1)}}) == {"out": ev.Delta({(home, 1)})}
    assert kernel.push_batch({"R": {(IPv4Address("127.0.0.1"), 1)}}) == {"out": NOTHING}
    with pytest.raises(EverviewError, match='column "a"'):
        kernel.push_batch({"R": {("127.0.0.1", 1)}})


def test_rows_in_any_form() -> None:
    kernel = kernel_of(small())
    for n, rows in enumerate(
        (
            [{"b": "y", "a": "x"}],
            pa.table({"b": ["y"], "a": ["x"]}),
            pd.DataFrame({"a": ["x"], "b": ["y"]}),
            frozenset({("x", "y")}),
            iter([["x", "y"]]),
            [("x", "y"), {"a": "x", "b": "y"}],
            np.array([("x", "y")], [("a", "U1"), ("b", "U1")]),
        )
    ):
        assert kernel.push_batch({"R": ev.Delta(adds=rows)}) == {"out": ev.Delta({("x", "y")})}, n
        assert kernel.push_batch({"R": {"removes": [("x", "y")]}}) == {"out": ev.Delta(removes={("x", "y")})}
    with pytest.raises(EverviewError, match='relation "R"'):
        kernel.push_batch({"R": [{"a": "x"}]})
    with pytest.raises(EverviewError, match='relation "R"'):
        kernel.push_batch({"R": pa.table({"a": ["x"], "c": ["y"]})})


def test_a_relation_without_columns_holds_or_does_not() -> None:
    spec = small(
        {"id": "t", "op": "Scan", "rel": "T"},
        {"id": "any", "op": "Project", "inputs": ["r"], "attrs": []},
        {
            "id": "if",
            "op": "Join",
            "inputs": ["t", "r"],
            "vo": ["x", "y"],
            "atoms": [{"vars": []}, {"vars": ["x", "y"]}],
        },
        {"id": "unless", "op": "Diff", "inputs": ["s", "any"], "key": []},
        relations={"T": []},
    )
    spec["outputs"] = [{"name": name, "from": name} for name in ("t", "any", "if", "unless")]
    kernel = kernel_of(spec)
    for batch, *changes in (
        ({"S": {(1, 2)}, "T": [{}, ()]}, NOTHING, NOTHING, ev.Delta({(1, 2)}), ev.Delta({()})),
        ({"R": {(3, 4), (5, 6)}}, ev.Delta({()}), ev.Delta({(3, 4), (5, 6)}), ev.Delta(removes={(1, 2)}), NOTHING),
        ({"R": {"removes": [(3, 4)]}, "T": {"removes": [()]}}, NOTHING, ev.Delta(removes={(3, 4), (5, 6)}), NOTHING,
         ev.Delta(removes={()})),
    ):  # fmt: skip
        assert kernel.push_batch(batch) == dict(zip(("any", "if", "unless", "t"), changes, strict=True))
    assert kernel.relation("T") == set()
    assert kernel.output("any") == {()}
    with pytest.raises(EverviewError, match="its one tuple is"):
        kernel.push_batch({"T": {(1,)}})
    circuit = ev.Circuit()
    for name in "RS":
        circuit.source(name, "a BIGINT, b BIGINT")
    circuit.source("T", "c BIGINT")
    for name, stream in graph(circuit, spec).items():
        stream.sink(name)
    out = ev.Embedded(circuit).tick({"T": [((1,), 2), ((None,), 1)], "R": [((1, 2), 1)]})
    assert [list(out[name]) for name in ("t", "any", "if")] == [[((True,), 1)], [((True,), 1)], [((1, 2), 1)]]


def test_large_batches() -> None:
    """More than goes value by value."""
    kernel = kernel_of(small(JOIN))
    out = kernel.push_batch({"R": {(f"a{i}", i % 50) for i in range(2000)}, "S": {(i, i % 7) for i in range(50)}})
    assert out["out"].adds == {(f"a{i}", i % 50, i % 50 % 7) for i in range(2000)}
    out = kernel.push_batch({"S": ev.Delta(removes={(i, i % 7) for i in range(25)})})
    assert out["out"].removes == {(f"a{i}", i % 50, i % 50 % 7) for i in range(2000) if i % 50 < 25}


# -- graphs that come and go


def test_a_graph_begins_with_what_is_there() -> None:
    kernel = ev.Kernel()
    kernel.define_relation("R", ["a", "b"])
    kernel.push_batch({"R": {(1, 2)}})
    kernel.define_graph("g", small(JOIN))
    kernel.push_batch({"R": {(3, 4)}, "S": {(2, 5)}})
    assert kernel.activate_graph("g") == {"out": ev.Delta({(1, 2, 5)})}
    assert kernel.push_batch({"S": {(4, 6)}}) == {"out": ev.Delta({(3, 4, 6)})}


def test_a_bootstrap_batch_is_for_all() -> None:
    kernel = ev.Kernel()
    first = small()
    second = {**small(JOIN), "outputs": [{"name": "joined", "from": "j"}]}
    kernel.define_graph("first", first)
    kernel.define_graph("second", second)
    kernel.activate_graph("first", bootstrap={"R": {(1, 2), (7, 8)}})
    found = kernel.activate_graph("second", bootstrap={"R": ev.Delta({(3, 2)}, {(7, 8)}), "S": [(2, 9)]})
    assert found == {"out": ev.Delta({(3, 2)}, {(7, 8)}), "joined": ev.Delta({(1, 2, 9), (3, 2, 9)})}
    assert kernel.relation("R") == {(1, 2), (3, 2)}
    with pytest.raises(EverviewError):
        kernel.activate_graph("second", bootstrap={"R": {(0, 0)}})
    assert kernel.relation("R") == {(1, 2), (3, 2)}


def test_graphs_change_while_data_is_there() -> None:
    kernel = kernel_of(small())
    kernel.push_batch({"R": {(1, 2)}, "S": {(2, 3)}})
    kernel.deactivate_graph("g")
    assert kernel.push_batch({"R": {(4, 2)}}) == {}
    assert kernel.activate_graph("g") == {"out": ev.Delta({(1, 2), (4, 2)})}
    kernel.drop_graph("g")
    assert kernel.graphs == {}
    kernel.define_graph("g", small(JOIN))
    assert kernel.activate_graph("g") == {"out": ev.Delta({(1, 2, 3), (4, 2, 3)})}
    kernel.define_graph("other", small())
    with pytest.raises(GraphError, match="output 'out'"):
        kernel.activate_graph("other")
    assert kernel.graphs == {"g": True, "other": False}
    assert kernel.push_batch({"R": ev.Delta(removes={(1, 2)})}) == {"out": ev.Delta(removes={(1, 2, 3)})}


def test_a_second_graph_does_not_disturb_the_first() -> None:
    q = Says({("x",)})
    kernel = ev.Kernel()
    spec = small({"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["r"], "tupleVars": ["a"]},
                 relations={"Q": ["a"]})  # fmt: skip
    kernel.define_graph("one", spec, providers={"Q": q})
    kernel.define_graph("two", {**spec, "outputs": [{"name": "again", "from": "q"}]}, providers={"Q": q})
    kernel.activate_graph("one")
    kernel.push_batch({"R": {("x", 1), ("y", 1)}})
    q.true = {("y",)}
    assert kernel.activate_graph("two") == {"out": NOTHING, "again": ev.Delta({("y", 1)})}
    assert kernel.output("out") == {("x", 1)}, "without flips, truth stays as it was when it was asked"
    assert kernel.push_batch({"R": {("x", 2), ("y", 2)}}) == {
        "out": ev.Delta({("x", 2)}),
        "again": ev.Delta({("y", 2)}),
    }


def test_relations_with_exact_deltas_keep_nothing() -> None:
    kernel = ev.Kernel()
    kernel.define_relation("R", ["a", "b"], exact=True)
    kernel.define_graph("g", small(JOIN))
    kernel.activate_graph("g")
    kernel.push_batch({"S": {(2, 5)}})
    assert kernel.push_batch({"R": {(1, 2)}}) == {"out": ev.Delta({(1, 2, 5)})}
    for read in (lambda: kernel.relation("R"), lambda: kernel.activate_graph("later")):
        with pytest.raises(EverviewError):
            read()
    with pytest.raises(EverviewError, match=r"exact|negative|weight"):
        kernel.push_batch({"R": ev.Delta(removes={(9, 2)})})
    kernel.define_graph("later", {**small(JOIN), "outputs": [{"name": "later", "from": "j"}]})
    with pytest.raises(GraphError, match="keeps nothing"):
        kernel.activate_graph("later")
    assert kernel.activate_graph("later", {"R": {(1, 2)}}) == {"out": NOTHING, "later": ev.Delta({(1, 2, 5)})}
    gone = kernel.push_batch({"R": ev.Delta(removes={(1, 2)})})
    assert gone == {"out": ev.Delta(removes={(1, 2, 5)}), "later": ev.Delta(removes={(1, 2, 5)})}


def test_everything_together() -> None:
    e, q = Lists({("x", "y")}), Says({("x",), ("1",)})
    kernel = kernel_of(EVERYTHING, {"E": e, "Q": q})
    assert kernel.output("All") == {("x", "y")}
    out = kernel.push_batch({"A": {("1", 5)}, "B": {(5, "x")}})
    assert out == {"Res": ev.Delta({("1", "x"), ("1", "y")}), "All": ev.Delta({("1", "x"), ("1", "y")})}
    assert kernel.push_batch({"N": {("1", "?")}})["Res"] == ev.Delta(removes={("1", "x"), ("1", "y")})
    e.answer = ev.Delta(removes={("x", "y")})
    assert kernel.push_batch()["All"] == ev.Delta(removes={("x", "y"), ("1", "y")})
    assert "to their fixed point" in kernel.explain("g")
    assert "output Res: r" in kernel.explain("g")
    kernel.vacuum()
    e.answer = None
    assert kernel.push_batch({"N": ev.Delta(removes={("1", "?")})})["Res"] == ev.Delta({("1", "x")})


def test_nodes_that_no_output_needs() -> None:
    """Nobody asks their providers, which may be given all the same."""
    q = Says()
    spec = small({"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["r"], "tupleVars": ["a"]},
                 relations={"Q": ["a"]}, output="r")  # fmt: skip
    for providers in ({"Q": q}, None):
        kernel = kernel_of(spec, providers)
        assert kernel.push_batch({"R": {(1, 2)}}) == {"out": ev.Delta({(1, 2)})}
    assert q.calls == []


def test_as_wide_as_can_be() -> None:
    columns = [f"c{i}" for i in range(255)]
    spec = {
        "relations": [{"name": "R", "schema": columns}],
        "nodes": [
            {"id": "r", "op": "Scan", "rel": "R"},
            {"id": "p", "op": "Project", "inputs": ["r"], "attrs": columns[::-1]},
            {"id": "j", "op": "Join", "inputs": ["r", "p"], "vo": columns[::-1],
             "atoms": [{"vars": columns}, {"vars": columns[::-1]}]},
        ],
        "outputs": [{"name": "out", "from": "j"}],
    }  # fmt: skip
    row = tuple(range(255))
    assert kernel_of(spec).push_batch({"R": {row}}) == {"out": ev.Delta({row[::-1]})}


def test_names_that_mean_something_elsewhere() -> None:
    """A relation, node or variable may have any name."""
    odd = ["_weight", "_order", "_arrival", "v0 of atom 1", "select", "a b", "é", "`", "c0"]
    spec = {
        "relations": [{"name": "relation R", "schema": odd}, {"name": "flips x", "schema": ["_weight"]}],
        "nodes": [
            {"id": "output", "op": "Scan", "rel": "relation R"},
            {"id": "j", "op": "Join", "inputs": ["output", "output"], "vo": odd,
             "atoms": [{"vars": odd}, {"vars": odd}]},
            {"id": "x", "op": "Compute", "mode": "Pointwise", "rel": "flips x", "inputs": ["j"],
             "tupleVars": ["_weight"]},
            {"id": "p", "op": "Project", "inputs": ["x"], "attrs": ["_weight", "_order"]},
        ],
        "outputs": [{"name": "output p", "from": "p"}, {"name": "watched x", "from": "x"}],
    }  # fmt: skip
    row = tuple(range(9))
    kernel = kernel_of(spec, {"flips x": Says({(0,)})})
    out = kernel.push_batch({"relation R": [row, (5, *row[1:])]})
    assert out == {"output p": ev.Delta({(0, 1)}), "watched x": ev.Delta({row})}


def test_a_delta_is_a_value() -> None:
    delta = ev.Delta([("b",), ("a",)], {(1,)})
    assert delta == ev.Delta({("a",), ("b",)}, [(1,)])
    assert hash(delta) == hash(ev.Delta({("a",), ("b",)}, [(1,)]))
    assert delta != ev.Delta({("a",), ("b",)}, [(1.0,)])
    assert list(delta.adds) == [("a",), ("b",)]
    assert (True,) not in delta.removes
    assert delta.adds & {("a",), ("c",)} == {("a",)}
    assert {("a",), ("c",)} - delta.adds == {("c",)}
    assert not ev.Delta()
    with pytest.raises(AttributeError):
        delta.adds = set()  # type: ignore[assignment]
