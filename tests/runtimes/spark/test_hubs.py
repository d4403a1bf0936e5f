"""A hub does not leave one task with all the work: what is proposed for it is dealt to all, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from everview.circuit import Circuit, Stream
from everview.multiway import Atom, join
from everview.operators.extending import Extending
from everview.runtimes.embedded import Embedded
from spark import in_process
from spark.in_process import engine, tick

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HUB = 7
EDGES = 100_000
SHARDS, PARTITIONS = 8, 4
Ticks = list[dict[str, Any]]


def paths(circuit: Circuit) -> Stream:
    """P(a), E(a, b), F(b, c)."""
    p = circuit.source("p", "a BIGINT NOT NULL")
    e = circuit.source("e", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    f = circuit.source("f", "b BIGINT NOT NULL, c BIGINT NOT NULL")
    return join([Atom(p, ("a",)), Atom(e, ("a", "b")), Atom(f, ("b", "c"))])


def query() -> Circuit:
    circuit = Circuit()
    paths(circuit).sink("found", keep=False)
    return circuit


def pairs(names: str, one: Any, two: Any, weight: int = 1) -> pa.Table:
    size = max(np.size(one), np.size(two))
    columns = {name: np.broadcast_to(values, size).copy() for name, values in zip(names, (one, two), strict=True)}
    return pa.table({**columns, "_weight": np.full(size, weight)})


def many(n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers in no order, so that neither the hub's edges nor the others are dealt by chance."""
    return np.random.default_rng(n).permutation(n)


def ones(*values: int, weight: int = 1) -> list[Any]:
    return [((value,), weight) for value in values]


def hub_met(n: int) -> Ticks:
    """One row meets a hub that was there before; and leaves it."""
    load = {"e": pairs("ab", HUB, many(n)), "f": pairs("bc", many(2 * n) // 2, many(2 * n))}
    return [load, {"p": ones(HUB)}, {"p": ones(HUB, weight=-1)}]


def hub_met_in_parts(n: int) -> Ticks:
    """The hub has grown in several ticks, so that it lies in several batches."""
    numbers = np.array_split(many(n), 3)
    grown: Ticks = [{"e": pairs("ab", HUB, part)} for part in numbers]
    return [{"f": pairs("bc", many(2 * n) // 2, many(2 * n))}, *grown, {"p": ones(HUB)}]


def hub_met_from_behind(n: int) -> Ticks:
    """A row of F meets all those that lead to it."""
    return [{"p": ones(*range(n)), "e": pairs("ab", many(n), HUB)}, {"f": [((HUB, 1), 1)]}]


def hub_met_while_it_changes(n: int) -> Ticks:
    """What is dealt by how the hub was finds all that it is: some edges come in the same tick, and some go."""
    edges = many(n)
    come, go = pairs("ab", np.arange(n, n + n // 10), HUB), pairs("ab", edges[: n // 10], HUB, weight=-1)
    load = {"p": ones(*range(2 * n)), "e": pairs("ab", edges, HUB)}
    return [load, {"e": pa.concat_tables([come, go]), "f": [((HUB, 1), 1)]}]


def hub_of_a_tick(n: int) -> Ticks:
    """All edges of a hub in one change, and then all of them away."""
    edges = many(n)
    load = {"p": ones(HUB), "f": pairs("bc", edges, edges)}
    return [load, {"e": pairs("ab", HUB, edges)}, {"e": pairs("ab", HUB, edges, weight=-1)}]


def hub_behind_another_node(n: int) -> Ticks:
    """The hub is one step further: the first variable has one value, and the next has many."""
    load = {"e": pairs("ab", 1, HUB), "f": pairs("bc", HUB, many(n))}
    return [load, {"p": ones(1)}, {"p": ones(1, weight=-1)}]


def hub_that_comes_with_who_meets_it(n: int) -> Ticks:
    """Hub and row arrive in one tick: nobody could know before."""
    return [{"p": ones(*range(n))}, {"e": pairs("ab", many(n), HUB), "f": [((HUB, 1), 1)]}]


LIVES = (
    *(hub_met, hub_met_in_parts, hub_met_from_behind, hub_met_while_it_changes, hub_of_a_tick),
    *(hub_behind_another_node, hub_that_comes_with_who_meets_it),
)


@contextmanager
def proposals() -> Generator[Counter[int]]:
    """How many proposals each task follows."""
    from pyspark import TaskContext

    shares = Counter[int]()
    extended = Extending._extended

    def watched(self: Any, prefixes: Any, spots: Any, level: Any, capacity: int, **options: Any) -> Any:
        context = TaskContext.get()
        assert context is not None, "joins run in tasks"
        shares[context.partitionId()] += capacity
        return extended(self, prefixes, spots, level, capacity, **options)

    with patch.object(Extending, "_extended", watched):
        yield shares


def assert_even(shares: Counter[int], tasks: int, most: float = 2) -> None:
    """No task has more than so many times its share."""
    assert max(shares.values()) * tasks <= most * shares.total(), shares


@pytest.mark.parametrize("life", LIVES)
def test_a_hub_is_the_work_of_all_tasks(life: Callable[[int], Ticks], tmp_path: Path) -> None:
    expected, heavy = Embedded(query()), 0
    with (
        patch.object(in_process, "PARTITIONS", PARTITIONS),
        engine(query(), tmp_path / "state", shards=SHARDS) as run,
    ):
        for changes in life(EDGES):
            with proposals() as shares:
                found = tick(run, changes)
            assert found == expected.tick(changes)
            if found["found"]:
                assert shares.total() >= EDGES
                assert_even(shares, PARTITIONS)
                heavy += 1
    assert heavy, "the hub was met"


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The rows that meet the hub are found by all tasks, and are those that one process finds."""

    def task(b: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        return pa.array([-1 if context is None else context.partitionId()] * len(b), pa.int64())

    def by_task() -> Circuit:
        circuit = Circuit()
        found = paths(circuit)
        found.sink("found", keep=False)
        found.map(task, "task BIGINT NOT NULL", columns=["b"]).sink("tasks", keep=False)
        return circuit

    expected = Embedded(query())
    load, met, _ = hub_met(EDGES)
    with engine(by_task(), tmp_path / "state", session=spark, shards=SHARDS) as run:
        assert tick(run, load)["found"] == expected.tick(load)["found"]
        found = tick(run, met)
        assert found["found"] == expected.tick(met)["found"]
    shares = Counter({number: weight for (number,), weight in found["tasks"]})
    assert shares.total() == 2 * EDGES
    assert len(shares) == in_process.PARTITIONS
    assert_even(shares, in_process.PARTITIONS, 1.5)
