"""Recursion round by round on Spark: the same fixed points as in one process, after every tick."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from everview.circuit import incrementalize
from everview.circuit import program as circuit_program
from everview.codes import Dictionary, encode_pairs
from everview.operators.exchange import spread
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.durable import fingerprints
from everview.runtimes.embedded.tick import Tick
from everview.runtimes.spark.rounds import OnSpark
from everview.traces.store import Store
from everview.zset import ZSet
from everview.zset.batch import Batch
from recursion.programs import PROGRAMS, Program
from recursion.test_programs import changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARDS = 3
CHOSEN = {"closure": 3, "components": 2, "strong components": 1}  # and how many ticks of each


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in CHOSEN], ids=lambda p: p.name)
def test_rounds_on_spark(program: Program, spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(program.name)
    here = Embedded(program.build())
    ready = circuit_program.Program(incrementalize(program.build()), SHARDS)
    with Store.create(tmp_path / "state", fingerprints(ready)) as store:
        for facts, delta in changes(program, rng, ticks=CHOSEN[program.name], n=4):
            here.tick(delta)
            tick_on_spark(spark, ready, store, delta)
            for view, rows in program.meaning(facts).items():
                assert contents(ready, store, view) == ZSet.of([(row, 1) for row in rows])
                assert contents(ready, store, view) == here.view(view).contents().to_zset()


def tick_on_spark(spark: SparkSession, program: circuit_program.Program, store: Store, delta: dict) -> None:
    cells: list[dict[int, np.ndarray]] = [{} for _ in range(SHARDS)]
    for name, rows in delta.items():
        at = program.circuit.sources[name]
        words = encode_pairs(program.circuit.layout(at).schema, rows, Dictionary())
        for shard, part in enumerate(spread(words, SHARDS)):
            cells[shard][at] = part
    placed = OnSpark(spark, program, str(store.path), store.epoch, partitions=2)
    Tick(program, placed).run(cells)
    store.commit(store.epoch + 1, segments=[ref for refs in placed.written.values() for ref in refs])


def contents(program: circuit_program.Program, store: Store, view: str) -> ZSet:
    at = program.contents(view)
    assert at is not None
    slices = [s.array for shard in range(SHARDS) for s in store.slices(program.names[at], shard)]
    schema = program.circuit.layout(at).schema
    rows = np.concatenate(slices) if slices else program.empty(at)
    return Batch.consolidated(schema, rows, Dictionary()).to_zset()
