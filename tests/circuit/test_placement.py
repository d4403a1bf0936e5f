"""Exchanges stand where rows must move, and nowhere else; stages are what lies between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from everview.circuit import Circuit, Program, Stream, incrementalize
from everview.circuit.nodes import Apply, inputs_of
from everview.operators.exchange import Exchange
from everview.operators.operator import ByKey, Single
from oracle.cases import Case
from strategies import cases


def program(build: Callable[[Stream, Stream], Stream], shards: int = 4) -> Program:
    circuit = Circuit()
    t = circuit.source("t", "a BIGINT NOT NULL, b BIGINT NOT NULL, s STRING")
    u = circuit.source("u", "a BIGINT NOT NULL, b BIGINT NOT NULL, s STRING")
    build(t, u).sink("v")
    return Program(incrementalize(circuit), shards)


def exchanges(found: Program) -> list[ByKey | Single]:
    operators = (node.operator for node in found.circuit if isinstance(node, Apply))
    return [o.partition for o in operators if isinstance(o, Exchange)]  # type: ignore[misc]


# what is built, how many exchanges it takes, and how many stages that makes
PLACED: dict[str, tuple[Callable[[Stream, Stream], Stream], int, int]] = {
    "a view holds rows by all their columns": (lambda t, u: t, 1, 2),
    "linear operators move nothing": (lambda t, u: -(t.not_null("s") + t), 1, 2),
    "distinct is by all columns, as the view": (lambda t, u: t.distinct(), 1, 2),
    "and so twice": (lambda t, u: t.distinct().filter(lambda *c: c[0]).distinct(), 1, 2),
    "a join moves both sides; its view takes the result where it is": (lambda t, u: t.join(u, "a"), 2, 2),
    "a join of what is by its key already": (
        lambda t, u: t.join(u, "a").join(t, "a", select=["left.a", "right.b"]),
        2,
        2,
    ),
    "a join by another column": (lambda t, u: t.join(u, "a").join(t, "b", select=["left.a"]), 5, 4),
    "a projection that loses the key": (
        lambda t, u: t.join(u, "a", select=["left.b", "right.s"]).aggregate(["b"], n="count"),
        3,
        3,
    ),
    "an aggregate by the key of a join": (lambda t, u: t.join(u, "a").aggregate(["a"], n="count"), 2, 2),
    "an aggregate and its view": (lambda t, u: t.aggregate(["a"], n="count", low=("min", "b")), 2, 2),
    "an aggregate by all its columns": (lambda t, u: t.aggregate(["a"]), 1, 2),
    "a sum of all is on one shard": (lambda t, u: t.aggregate([], n="count"), 1, 2),
    "the first of all, from those of each shard": (lambda t, u: t.top(1, ["a"]), 2, 3),
    "the first of each": (lambda t, u: t.top(1, ["b"], by=["a"]), 1, 2),
    "a semijoin": (lambda t, u: t.semijoin(u, "a"), 2, 2),
    "an antijoin": (lambda t, u: t.antijoin(u, "a"), 3, 3),
}


@pytest.mark.parametrize("name", PLACED)
def test_exchanges_stand_where_rows_must_move(name: str) -> None:
    build, moves, stages = PLACED[name]
    found = program(build)
    assert len(exchanges(found)) == moves, str(found.circuit)
    assert len(found.stages) == stages
    assert sorted(at for stage in found.stages for at in (*stage.nodes, *stage.moves)) == sorted(found.order)


def test_rows_of_one_shard_stay() -> None:
    single = program(lambda t, u: t.aggregate([], n="count"))
    assert exchanges(single)[0] == Single()


@pytest.mark.parametrize("name", PLACED)
def test_one_shard_has_one_stage(name: str) -> None:
    found = program(PLACED[name][0], shards=1)
    assert exchanges(found) == []
    assert len(found.stages) == 1


@given(case=cases())
def test_a_stage_hears_from_others_only_what_is_moved_or_stays(case: Case) -> None:
    """On any circuit: what a node reads is of its own stage, an exchange, or named as staying."""
    found = Program(incrementalize(case.build()), 3)
    where = {at: n for n, stage in enumerate(found.stages) for at in (*stage.nodes, *stage.moves)}
    for n, stage in enumerate(found.stages):
        for at in stage.nodes:
            node = found.circuit[at]
            for source in inputs_of(node):
                assert source is not None
                assert where[source] == n or (where[source] < n and source in stage.stays)
        for at in stage.moves:
            (source,) = inputs_of(found.circuit[at])
            assert source is not None
            assert where[source] < n
