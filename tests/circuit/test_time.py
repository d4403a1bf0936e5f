"""Streams in time: delay, integrate and differentiate, feedback, and joins put together from their parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import Circuit, Stream
from everview.errors import CircuitError
from everview.operators.linear import Plus
from everview.operators.operator import Layout
from everview.runtimes.embedded import Embedded
from everview.types import Schema
from everview.zset import ZSet
from strategies import changes, schemas, tick_lists

Build = Callable[[Stream], Stream]


def outputs(schema: Schema, build: Build, stream: list[ZSet], shards: int = 1) -> list[ZSet]:
    """What a circuit over one source puts out, tick by tick."""
    circuit = Circuit()
    build(circuit.source("t", schema)).sink("v", keep=False)
    run = Embedded(circuit, shards=shards, as_is=True)
    return [run.tick({"t": list(z)})["v"].to_zset() for z in stream]


@st.composite
def streams(draw: Callable[..., object]) -> tuple[Schema, list[ZSet]]:
    schema = draw(schemas(max_size=2))
    return schema, [ZSet.of(z) for z in draw(st.lists(changes(schema), min_size=1, max_size=6))]  # type: ignore[arg-type, union-attr]


both = st.sampled_from([1, 3])


@given(given_stream=streams(), shards=both)
def test_delay(given_stream: tuple[Schema, list[ZSet]], shards: int) -> None:
    schema, stream = given_stream
    assert outputs(schema, lambda s: s.delay(), stream, shards) == [ZSet(), *stream[:-1]]
    assert outputs(schema, lambda s: s.delay().delay(), stream, shards) == [ZSet(), ZSet(), *stream][: len(stream)]


@given(given_stream=streams(), shards=both)
def test_integrate_and_differentiate_are_inverse(given_stream: tuple[Schema, list[ZSet]], shards: int) -> None:
    schema, stream = given_stream
    sums = [sum(stream[: t + 1], ZSet()) for t in range(len(stream))]
    changes_ = [z - before for z, before in zip(stream, [ZSet(), *stream], strict=False)]
    assert outputs(schema, lambda s: s.integrate(), stream, shards) == sums
    assert outputs(schema, lambda s: s.differentiate(), stream, shards) == changes_
    assert outputs(schema, lambda s: s.integrate().differentiate(), stream, shards) == stream
    assert outputs(schema, lambda s: s.differentiate().integrate(), stream, shards) == stream


def running_sum(stream: Stream) -> Stream:
    """``out = x + z⁻¹(out)``."""
    before, connect = stream.circuit.feedback(stream.schema)
    total = stream + before
    connect(total)
    return total


@given(given_stream=streams(), shards=both)
def test_feedback_adds_up(given_stream: tuple[Schema, list[ZSet]], shards: int) -> None:
    schema, stream = given_stream
    assert outputs(schema, running_sum, stream, shards) == outputs(schema, lambda s: s.integrate(), stream, shards)


@given(given_stream=streams(), shards=both)
def test_feedback_through_operators_with_state(given_stream: tuple[Schema, list[ZSet]], shards: int) -> None:
    """All rows that were ever positive: ``out = distinct(x + z⁻¹(out))``."""

    def ever(stream: Stream) -> Stream:
        before, connect = stream.circuit.feedback(stream.schema)
        seen = (stream + before).distinct()
        connect(seen)
        return seen

    schema, stream = given_stream
    expected, held = [], ZSet()
    for z in stream:
        held = (z + held).distinct()
        expected.append(held)
    assert outputs(schema, ever, stream, shards) == expected


@given(given_stream=streams(), shards=both)
def test_traces_before_and_after_the_tick(given_stream: tuple[Schema, list[ZSet]], shards: int) -> None:
    schema, stream = given_stream
    sums = [sum(stream[:t], ZSet()) for t in range(len(stream) + 1)]
    assert outputs(schema, lambda s: s.trace().consolidate(), stream, shards) == sums[1:]
    assert outputs(schema, lambda s: s.trace().delay().consolidate(), stream, shards) == sums[:-1]


def from_parts(a: Stream, b: Stream) -> Stream:
    """The three terms of the notes: both changes, and each with the other's trace before the tick."""
    a_trace, b_trace = a.index("k").trace().delay(), b.index("k").trace().delay()
    select = ["left.k", "left.v", "right.w"]
    flipped = ["left.k", "right.v", "left.w"]
    return (
        a.join(b, "k", select=select)
        + a.join_trace(b_trace, "k", select=select)
        + b.join_trace(a_trace, "k", select=flipped)
    )


JOINED = {"a": Schema.parse("k STRING, v BIGINT NOT NULL"), "b": Schema.parse("k STRING, w DOUBLE")}


@given(ticks=tick_lists(JOINED), shards=both)
def test_the_join_of_three_terms_is_the_incremental_join(ticks: list[dict[str, list]], shards: int) -> None:
    by_hand, by_rule = Circuit(), Circuit()
    from_parts(*(by_hand.source(name, schema) for name, schema in JOINED.items())).sink("v")
    a, b = (by_rule.source(name, schema) for name, schema in JOINED.items())
    a.join(b, "k").sink("v")
    runs = [Embedded(by_hand, shards=shards, as_is=True), Embedded(by_rule, shards=shards)]
    for tick in ticks:
        one, other = (run.tick(tick)["v"].to_zset() for run in runs)
        assert one == other


@given(ticks=tick_lists(JOINED), shards=both)
def test_distinct_from_its_parts_is_the_incremental_distinct(ticks: list[dict[str, list]], shards: int) -> None:
    by_hand, by_rule = Circuit(), Circuit()
    s = by_hand.source("a", JOINED["a"])
    s.distinct_incremental(s.trace().delay()).sink("v")
    by_rule.source("a", JOINED["a"]).distinct().sink("v")
    runs = [Embedded(by_hand, shards=shards, as_is=True), Embedded(by_rule, shards=shards)]
    for tick in ({"a": tick.get("a", [])} for tick in ticks):
        one, other = (run.tick(tick)["v"].to_zset() for run in runs)
        assert one == other


def test_a_cycle_through_a_trace_is_refused() -> None:
    """``out = x + (everything out has put out so far)`` is written with a feedback."""
    circuit = Circuit()
    t = circuit.source("t", "a BIGINT NOT NULL")
    out = circuit.add(Plus(Layout(t.schema), 2), [t, None])
    circuit.connect(out.id, 1, out.trace().delay().consolidate())
    out.sink("v")
    with pytest.raises(CircuitError, match="depends on a trace of what it puts out"):
        Embedded(circuit, as_is=True)
