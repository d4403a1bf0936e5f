"""A tick that fails has not happened: contents, dictionary and epoch are as before, and later ticks are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.errors import (
    EverviewError,
    FunctionError,
    NegativeWeight,
    NullNotAllowed,
    UnknownName,
    WeightOverflow,
    WrongArity,
    WrongType,
)
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.types import ANY, Schema
from everview.zset import ZSet
from oracle.cases import Case, Tick
from strategies import cases

NEW = "a text that no other tick brings"


def facts(run: Embedded) -> dict[str, Any]:
    """All that a failed tick must leave alone."""
    contents = {name: view.contents().to_zset() for name, view in run.views.items()}
    return {"contents": contents, "dictionary": len(run.dictionary), "epoch": run.epoch}


def refuse(run: Embedded, changes: Any, error: type[EverviewError] = EverviewError) -> None:
    """Ticking with these changes raises, and nothing else."""
    before = facts(run)
    with pytest.raises(error):
        run.tick(changes)
    assert facts(run) == before


def wrong(tick: Tick, name: str, schema: Schema) -> list[tuple[Any, type[EverviewError]]]:
    """The tick with something wrong at its end, in every way that this source allows."""
    rows = tick.get(name, [])
    first, *rest = [None] * len(schema)
    found: list[tuple[Any, type[EverviewError]]] = [
        ({**tick, name: [*rows, ((first, *rest, 1, 2), 1)]}, WrongArity),
        ({**tick, name: [*rows, ((object(), *rest), 1)]}, WrongType),
        ({**tick, name: [*rows, (1, 2, 3)]}, WrongArity),
        ({**tick, name: 5}, WrongType),
        ({**tick, "nowhere": [((1,), 1)]}, UnknownName),
    ]
    if not all(f.nullable for f in schema.fields):
        found.append(({**tick, name: [*rows, ((first, *rest), 1)]}, NullNotAllowed))
    return found


@given(case=cases(max_steps=5, max_ticks=4), data=st.data())
def test_a_refused_tick_changes_nothing(case: Case, data: st.DataObject) -> None:
    query = case.build()
    run = Embedded(incrementalize(query), shards=data.draw(st.sampled_from([1, 3])))
    name = data.draw(st.sampled_from(list(case.sources)))
    schema = Schema.parse(case.sources[name])
    for tick, held in zip(case.ticks, case.sums(), strict=True):
        changes, error = data.draw(st.sampled_from(wrong(tick, name, schema)))
        refuse(run, changes, error)
        run.tick(tick)
        assert facts(run)["contents"] == evaluate(query, held)


class Trap:
    """A function that is the identity until it is armed, and then raises for the last row."""

    def __init__(self) -> None:
        self.armed = False

    def __call__(self, *row: Any) -> Any:
        if self.armed:
            raise ValueError("the trap has shut")
        return row


@given(case=cases(max_steps=5, max_ticks=4), shards=st.sampled_from([1, 3]))
def test_a_function_that_raises_changes_nothing(case: Case, shards: int) -> None:
    """Whatever the other nodes have done in the tick by then: the trap is behind the query."""
    query, trap = case.build(), Trap()
    for name, at in query.sinks.items():
        stream = query.stream(query[at].input)  # type: ignore[union-attr]
        if ANY not in stream.schema.types:
            stream.map(trap, stream.schema, by_row=True).sink(f"{name} again")
    run = Embedded(incrementalize(query), shards=shards)
    for tick, held in zip(case.ticks, case.sums(), strict=True):
        before = facts(run)
        trap.armed = True
        try:
            run.tick(tick)
        except FunctionError:
            assert facts(run) == before
            trap.armed = False
            run.tick(tick)
        trap.armed = False
        assert facts(run)["contents"] == evaluate(query, held)


# -- weights that leave 64 bits

Query = Callable[[Circuit], None]
HALF = 2**62
MOST = 2**63 - 1


def sources(circuit: Circuit) -> Any:
    return circuit.source("t", "a BIGINT NOT NULL, s STRING"), circuit.source("u", "a BIGINT NOT NULL")


def through_the_sink(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.sink("v")


def through_a_projection(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.select("a").sink("v")


def through_distinct(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.distinct().sink("v")


def through_a_join(circuit: Circuit) -> None:
    t, u = sources(circuit)
    t.join(u, "a").sink("v")


def through_a_self_join(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.join(t, "a").sink("v")


def through_addition(circuit: Circuit) -> None:
    t, u = sources(circuit)
    (t.select("a") + u).sink("v")


def through_a_negation(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    (-t).sink("v")


def through_a_count(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.aggregate(["a"], n="count").sink("v")


def through_a_sum(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.aggregate([], n=("sum", "a")).sink("v")


def through_a_text_order(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    t.top(3, ["s desc"]).sink("v")


def through_a_feedback(circuit: Circuit) -> None:
    t, _ = sources(circuit)
    total, connect = circuit.feedback(t.schema)
    connect(t + total)
    t.sink("v", keep=False)


IN_ONE_TICK: list[tuple[Query, Any]] = [
    (through_the_sink, {"t": [((1, NEW), MOST), ((1, NEW), 1)]}),
    (through_a_projection, {"t": [((1, NEW), MOST), ((1, None), 1)]}),
    (through_distinct, {"t": [((1, NEW), MOST), ((1, NEW), 1)]}),
    (through_a_join, {"t": [((1, NEW), 2**32)], "u": [((1,), 2**32)]}),
    (through_a_self_join, {"t": [((1, NEW), 2**32)]}),
    (through_addition, {"t": [((1, NEW), HALF)], "u": [((1,), HALF)]}),
    (through_a_negation, {"t": [((1, NEW), -(2**63))]}),
    (through_a_count, {"t": [((1, NEW), MOST), ((1, None), 1)]}),
    (through_a_sum, {"t": [((MOST, NEW), 1), ((1, NEW), 1)]}),
    (through_a_sum, {"t": [((2**40, NEW), 2**40)]}),
    (through_a_text_order, {"t": [((1, NEW), MOST), ((1, NEW), 1)]}),
]


@pytest.mark.parametrize(("query", "changes"), IN_ONE_TICK)
def test_a_weight_that_overflows_in_one_tick_changes_nothing(query: Query, changes: Any) -> None:
    circuit = Circuit()
    query(circuit)
    run = Embedded(incrementalize(circuit))
    run.tick({"t": [((7, "there"), 1)]})
    refuse(run, changes, WeightOverflow)
    run.tick({"t": [((7, "there"), -1), ((8, NEW), 1)]})
    assert facts(run)["contents"] == evaluate(circuit, {"t": ZSet({(8, NEW): 1})})


OVER_TICKS: list[tuple[Query, Any, Any]] = [
    (through_the_sink, {"t": [((1, "x"), HALF)]}, {"t": [((1, "x"), HALF), ((9, NEW), 1)]}),
    (through_the_sink, {"t": [((1, "x"), -HALF)]}, {"t": [((1, "x"), -HALF - 1), ((9, NEW), 1)]}),
    (through_a_projection, {"t": [((1, "x"), HALF)]}, {"t": [((1, NEW), HALF)]}),
    (through_a_feedback, {"t": [((1, "x"), HALF)]}, {"t": [((1, "x"), HALF), ((9, NEW), 1)]}),
    (through_distinct, {"t": [((1, "x"), HALF)]}, {"t": [((1, "x"), HALF), ((9, NEW), 1)]}),
    (through_a_join, {"u": [((1,), 2**32)]}, {"t": [((1, NEW), 2**32)]}),
    (through_a_count, {"t": [((1, "x"), HALF)]}, {"t": [((1, NEW), HALF)]}),
    (through_a_sum, {"t": [((MOST, "x"), 1)]}, {"t": [((1, NEW), 1)]}),
    (through_a_text_order, {"t": [((1, "x"), HALF)]}, {"t": [((1, "x"), HALF), ((9, NEW), 1)]}),
]


@pytest.mark.parametrize(("query", "first", "then"), OVER_TICKS)
def test_a_weight_that_overflows_over_ticks_changes_nothing(query: Query, first: Any, then: Any) -> None:
    """Some weights are summed for the first time when batches merge, which must not be after the tick counted."""
    circuit = Circuit()
    query(circuit)
    run = Embedded(circuit, as_is=True) if query is through_a_feedback else Embedded(circuit)
    run.tick(first)
    before = traces(run)
    with pytest.raises(WeightOverflow):
        run.tick(then)
    assert traces(run) == before
    assert len(run.dictionary) == (1 if "t" in first else 0)
    assert run.epoch == 1
    run.tick({"t": [((-9, NEW), 1)]})
    assert run.epoch == 2


def traces(run: Embedded) -> dict[int, Any]:
    return {at: [t.before.consolidated().tolist() for t in shards] for at, shards in run.state.traces.items()}


def test_a_positive_view_refuses_to_owe_rows() -> None:
    circuit = Circuit()
    circuit.source("t", "a BIGINT NOT NULL, s STRING").select("a").sink("v", positive=True)
    run = Embedded(incrementalize(circuit), shards=2)
    run.tick({"t": [((1, "x"), 1)]})
    refuse(run, {"t": [((1, NEW), -2)]}, NegativeWeight)
    run.tick({"t": [((1, NEW), -1)]})
    assert facts(run)["contents"] == {"v": ZSet()}


def test_a_function_that_is_not_pure_is_told_apart() -> None:
    counter = iter(range(100))
    circuit = Circuit()
    circuit.source("t", "a BIGINT").map(lambda a: next(counter), "n BIGINT", by_row=True).sink("v")
    run = Embedded(incrementalize(circuit), check_functions=True)
    refuse(run, {"t": [((1,), 1)]}, FunctionError)


def test_an_inspector_that_raises_changes_nothing() -> None:
    def disturbed(changes: ZSet) -> None:
        assert (13,) not in changes, "not today"

    circuit = Circuit()
    circuit.source("t", "a BIGINT").inspect(disturbed).sink("v")
    run = Embedded(circuit)
    run.tick({"t": [((1,), 1)]})
    refuse(run, {"t": [((2,), 1), ((13,), 1)]}, FunctionError)


def test_the_listener_of_a_view_hears_only_of_ticks_that_happened() -> None:
    circuit = Circuit()
    circuit.source("t", "a BIGINT NOT NULL").sink("v")
    run = Embedded(incrementalize(circuit))
    heard: list[Any] = []
    stop = run.view("v").subscribe(lambda changes, epoch: heard.append((changes.to_zset(), epoch)))
    run.tick({"t": [((1,), 1)]})
    refuse(run, {"t": [((None,), 1)]}, NullNotAllowed)
    run.tick({})
    run.tick({"t": [((1,), -1)]})
    stop()
    run.tick({"t": [((1,), 1)]})
    assert heard == [(ZSet({(1,): 1}), 1), (ZSet({(1,): -1}), 3)]
