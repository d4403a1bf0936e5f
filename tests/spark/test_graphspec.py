"""A graph of relational operators over the sources of a pipeline: the same views in tasks, in one process, by hand."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit
from everview.errors import EverviewError, GraphError, PipelineError
from everview.frontends.graphspec import graph
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.spark import Pipeline
from spark.in_process import engine, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC: dict[str, Any] = {
    "relations": [{"name": "edge", "schema": ["src", "dst"]}, {"name": "Open", "schema": ["x"]}],
    "nodes": [
        {"id": "e", "op": "Scan", "rel": "edge"},
        {"id": "shut", "op": "Compute", "mode": "Enumerable", "rel": "shut"},
        {
            "id": "j",
            "op": "Join",
            "inputs": ["u", "e"],
            "vo": ["src", "b", "dst"],
            "atoms": [{"vars": ["src", "b"]}, {"vars": ["b", "dst"], "rel": "edge"}],
        },
        {"id": "p", "op": "Project", "inputs": ["j"], "attrs": ["src", "dst"]},
        {"id": "u", "op": "Union", "inputs": ["p", "e"]},
        {"id": "to", "op": "Rename", "inputs": ["shut"], "names": {"id": "dst"}},
        {"id": "d", "op": "Diff", "inputs": ["u", "to"], "key": ["dst"]},
        {"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Open", "inputs": ["d"], "tupleVars": ["src"]},
    ],
    "outputs": [{"name": "reach", "from": "q"}, {"name": "path", "from": "u"}],
}
TYPES = {"edge": "src BIGINT, since STRING, dst BIGINT NOT NULL", "shut": "id BIGINT NOT NULL"}


class Even:
    """True of even numbers, and of nothing else."""

    def eval_many(self, candidates: Any) -> Any:
        return {(x,) for (x,) in candidates if x is not None and x % 2 == 0}


def circuit_of(spec: dict[str, Any] = SPEC) -> Circuit:
    circuit = Circuit()
    for name, schema in TYPES.items():
        circuit.source(name, schema)
    for name, stream in graph(circuit, spec, {"Open": Even()} if spec is SPEC else None).items():
        stream.sink(name)
    return circuit


def changes(chance: random.Random) -> dict[str, Any]:
    def edge() -> tuple[Any, ...]:
        return chance.choice([0, 1, 2, 3, None]), chance.choice(["a", None]), chance.randrange(4)

    weights = [1, 1, 2, -1]
    return {
        "edge": [(edge(), chance.choice(weights)) for _ in range(chance.randint(0, 8))],
        "shut": [((chance.randrange(4),), chance.choice(weights)) for _ in range(chance.randint(0, 2))],
    }


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_tasks_one_process_and_the_oracle_agree(seed: int) -> None:
    chance, given_ = random.Random(seed), {"edge": [], "shut": []}
    circuit = circuit_of()
    with TemporaryDirectory() as directory:
        here, tasks = Embedded(circuit), engine(circuit, Path(directory) / "state")
        for _ in range(3):
            arrived = changes(chance)
            for name, rows in arrived.items():
                given_[name] += rows
            wanted = here.tick(arrived)
            assert tick(tasks, arrived) == wanted
            found = {name: view.contents().to_zset() for name, view in here.views.items()}
            assert found == evaluate(circuit, given_)
        tasks.close()


def test_the_same_rows_by_a_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    edges = [(0, "a", 1), (0, "b", 1), (1, None, 2), (2, "a", 3)]
    with Pipeline(spark, tmp_path / "state", shards=4) as p:
        p.source("edge", spark.createDataFrame(edges, TYPES["edge"].replace(" NOT NULL", "")))
        p.source("shut", spark.createDataFrame([(2,)], "id BIGINT"), schema=TYPES["shut"])
        p.graph(SPEC, providers={"Open": Even()})
        p.refresh()
        assert {tuple(row) for row in p.view("reach").collect()} == {(0, 1), (0, 3), (2, 3)}
        assert p.view("path").count() == 6
        p.refresh(shut=spark.createDataFrame([(1,)], "id BIGINT"))
        assert {tuple(row) for row in p.view("reach").collect()} == {(0, 3), (2, 3)}
        p.verify()
        with pytest.raises(PipelineError, match="there is a view reach already"):
            p.graph(SPEC, providers={"Open": Even()})


class Flipping(Even):
    def flips_since(self, handle: int, watched: Any) -> Any:
        return {}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no provider": (SPEC, {"": None}, 'node "q"|provider of ""'),
    "truth that flips": (SPEC, {"Open": Flipping()}, 'node "q".*changes by itself'),
    "a provider of a source": (SPEC, {"Open": Even(), "shut": Even()}, "shut.*is a source"),
    "a provider of nothing": (SPEC, {"Open": Even(), "edge": Even()}, "which no node asks"),
    "no such source": (
        {**SPEC, "nodes": [{"id": "q", "op": "Scan", "rel": "T"}], "relations": [{"name": "T", "schema": ["x"]}],
         "outputs": [{"name": "o", "from": "q"}]},
        {},
        'relation "T" is no source',
    ),
    "no such column": (
        {**SPEC, "relations": [{"name": "edge", "schema": ["src", "end"]}], "nodes": [SPEC["nodes"][0]],
         "outputs": [{"name": "o", "from": "e"}]},
        {},
        'column "end"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    spec, providers, message = REFUSED[case]
    circuit = Circuit()
    for name, schema in TYPES.items():
        circuit.source(name, schema)
    with pytest.raises(GraphError, match=message):
        graph(circuit, spec, providers)
    assert len(circuit) == len(TYPES), "what is refused leaves nothing behind"


def test_types_that_do_not_fit() -> None:
    """A variable that stands for text and numbers is refused with the node's name, inside a cycle, too."""
    join = {"op": "Join", "vo": ["x"], "atoms": [{"vars": ["x"]}, {"vars": ["x"]}]}
    spec = {
        "relations": [{"name": "edge", "schema": ["since"]}],
        "nodes": [
            {"id": "t", "op": "Scan", "rel": "edge"},
            {"id": "n", "op": "Scan", "rel": "shut"},
            {"id": "j", "inputs": ["t", "n"], **join},
        ],
        "outputs": [{"name": "o", "from": "j"}],
    }
    with pytest.raises(GraphError, match='node "j"'):
        circuit_of(spec)
    cyclic = {**spec, "nodes": [*spec["nodes"][:2], {"id": "j", "inputs": ["t", "j"], **join},
                                {"id": "k", "inputs": ["n", "k"], **join}, {"id": "u", "inputs": ["j", "k"], **join}],
              "outputs": [{"name": "o", "from": "u"}]}  # fmt: skip
    with pytest.raises(GraphError, match='node "u"'):
        circuit_of(cyclic)
    tangled = {**spec, "nodes": [*spec["nodes"][:2], {"id": "j", "inputs": ["t", "u"], **join},
                                 {"id": "u", "inputs": ["j", "n"], **join}]}  # fmt: skip
    with pytest.raises(EverviewError, match=r'node "(j|u)"'):
        circuit_of(tangled)
