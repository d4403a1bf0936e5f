"""Ill-formed circuits are refused, and the message names the node and says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from everview.circuit import Circuit, Stream, StreamTrace
from everview.errors import CircuitError, EverviewError, SchemaError, UnknownName
from everview.operators.arrange import Consolidate
from everview.operators.distinct import Distinct, DistinctIncremental
from everview.operators.join import JoinStream
from everview.operators.linear import Negate, Plus, Project
from everview.operators.operator import Layout, Moment
from everview.runtimes.embedded import Embedded
from everview.types import Schema

SCHEMA = Schema.parse("a BIGINT NOT NULL, s STRING")


def table(circuit: Circuit) -> Stream:
    return circuit.source("t", SCHEMA)


def cycle_without_feedback(circuit: Circuit) -> None:
    first = circuit.add(Plus(Layout(SCHEMA), 2), [table(circuit), None])
    circuit.connect(first.id, 1, -first)


def cycle_to_itself(circuit: Circuit) -> None:
    plus = circuit.add(Plus(Layout(SCHEMA), 2), [table(circuit), None])
    circuit.connect(plus.id, 1, plus)


def cycle_through_a_trace_after_the_tick(circuit: Circuit) -> None:
    plus = circuit.add(Plus(Layout(SCHEMA), 2), [table(circuit), None])
    circuit.connect(plus.id, 1, plus.trace().consolidate())


def port_left_open(circuit: Circuit) -> None:
    circuit.add(Plus(Layout(SCHEMA), 2), [table(circuit), None])


def feedback_left_open(circuit: Circuit) -> None:
    total, _ = circuit.feedback(SCHEMA)
    (table(circuit) + total).sink("v")


def too_few_inputs(circuit: Circuit) -> None:
    circuit.add(Plus(Layout(SCHEMA), 2), [table(circuit)])


def too_many_inputs(circuit: Circuit) -> None:
    t = table(circuit)
    circuit.add(Negate(Layout(SCHEMA)), [t, t])


def no_trace_given(circuit: Circuit) -> None:
    t = table(circuit).index("a", "s")
    circuit.add(DistinctIncremental(t.layout), [t])


def a_trace_not_asked_for(circuit: Circuit) -> None:
    t = table(circuit)
    circuit.add(Negate(Layout(SCHEMA)), [t], [t.trace()])


def other_types(circuit: Circuit) -> None:
    circuit.add(Negate(Layout(Schema.parse("a STRING, s STRING"))), [table(circuit)])


def other_width(circuit: Circuit) -> None:
    circuit.add(Negate(Layout(Schema.parse("a BIGINT, s STRING"))), [table(circuit)])


def not_indexed(circuit: Circuit) -> None:
    t = table(circuit)
    circuit.add(Distinct(t.index("a", "s").layout), [t])


def indexed_by_less(circuit: Circuit) -> None:
    t = table(circuit)
    circuit.add(Distinct(t.index("a", "s").layout), [t.index("a")])


def foreign_stream(circuit: Circuit) -> None:
    circuit.add(Negate(Layout(SCHEMA)), [table(Circuit())])


def foreign_sum(circuit: Circuit) -> None:
    table(circuit) + table(Circuit())


def foreign_join(circuit: Circuit) -> None:
    table(circuit).join(table(Circuit()), "a")


def foreign_sink(circuit: Circuit) -> None:
    circuit.sink("v", table(Circuit()))


def foreign_delay(circuit: Circuit) -> None:
    circuit.delay(table(Circuit()))


def foreign_trace(circuit: Circuit) -> None:
    table(circuit).join_trace(table(Circuit()).index("a").trace(), "a")


def foreign_feedback(circuit: Circuit) -> None:
    _, connect = circuit.feedback(SCHEMA)
    connect(table(Circuit()))


def two_sources_of_a_name(circuit: Circuit) -> None:
    table(circuit)
    circuit.source("t", "other BIGINT")


def two_sinks_of_a_name(circuit: Circuit) -> None:
    t = table(circuit)
    t.sink("v")
    t.distinct().sink("v")


def trace_of_what_keeps_none(circuit: Circuit) -> None:
    t = table(circuit).index("a")
    circuit.add(Consolidate(t.layout), [], [StreamTrace(t, Moment.AFTER)])


def connected_twice(circuit: Circuit) -> None:
    t = table(circuit)
    _, connect = circuit.feedback(SCHEMA)
    connect(t)
    connect(t)


def no_such_port(circuit: Circuit) -> None:
    t = table(circuit)
    circuit.connect((-t).id, 5, t)


def stream_of_a_sink(circuit: Circuit) -> None:
    table(circuit).sink("v")
    circuit.stream(circuit.sinks["v"])


def negative_limit(circuit: Circuit) -> None:
    table(circuit).top(-1, ["a"])


def negative_skip(circuit: Circuit) -> None:
    table(circuit).top(1, ["a"], skip=-1)


def more_places_than_there_are(circuit: Circuit) -> None:
    table(circuit).top(2**63 - 1, ["a"], skip=1)


def unreadable_order(circuit: Circuit) -> None:
    table(circuit).top(1, ["a upwards"])


Build = Callable[[Circuit], None]

ILL_FORMED: dict[Build, str] = {
    cycle_without_feedback: r"a cycle without feedback: node \d \((Plus|Negate)\) → node \d \((Plus|Negate)\) → ",
    cycle_to_itself: r"a cycle without feedback: node 1 \(Plus\) → node 1 \(Plus\)",
    cycle_through_a_trace_after_the_tick: "a cycle without feedback: .*Consolidate",
    port_left_open: r"port 1 of node 1 \(Plus\) is not connected",
    feedback_left_open: r"port 0 of node 0 \(z⁻¹\) is not connected",
    too_few_inputs: "Plus takes 2 inputs, not 1",
    too_many_inputs: "Negate takes 1 inputs, not 2",
    no_trace_given: "DistinctIncremental takes 1 traces, not 0",
    a_trace_not_asked_for: "Negate takes 0 traces, not 1",
    other_types: r"port 0 of Negate takes .*a STRING, s STRING.*, not .*a BIGINT NOT NULL, s STRING",
    other_width: r"port 0 of Negate takes .*\(a BIGINT, s STRING\), not .*a BIGINT NOT NULL",
    not_indexed: r"port 0 of Distinct takes \[a, s → \]",
    indexed_by_less: r"port 0 of Distinct takes \[a, s → \] .*, not \[a → s\]",
    foreign_stream: r"node 0 \(source t\).* belongs to another circuit",
    foreign_sum: "belongs to another circuit",
    foreign_join: "belongs to another circuit",
    foreign_sink: r"node 0 \(source t\).* belongs to another circuit",
    foreign_delay: r"node 0 \(source t\).* belongs to another circuit",
    foreign_trace: "belongs to another circuit",
    foreign_feedback: r"node 0 \(source t\).* belongs to another circuit",
    two_sources_of_a_name: "a source t already",
    two_sinks_of_a_name: "a sink v already",
    trace_of_what_keeps_none: r"reads a trace of node 1 \(Index\), which keeps none",
    connected_twice: r"port 0 of node 1 \(z⁻¹\) is connected already",
    no_such_port: r"node 1 \(Negate\) has no port 5",
    stream_of_a_sink: r"\(sink v\) has no output",
    negative_limit: "not -1 and 0",
    negative_skip: "not 1 and -1",
    more_places_than_there_are: "not 9223372036854775807 and 1",
    unreadable_order: "cannot read the order 'a upwards'",
}


@pytest.mark.parametrize("build", ILL_FORMED, ids=lambda build: build.__name__)
def test_an_ill_formed_circuit_is_refused_by_name(build: Build) -> None:
    with pytest.raises(CircuitError, match=ILL_FORMED[build]) as error:
        checked(build)
    assert error.value.hint


def checked(build: Build) -> None:
    circuit = Circuit()
    build(circuit)
    circuit.check()


def test_what_is_refused_is_not_built() -> None:
    circuit = Circuit()
    t = table(circuit)
    before = str(circuit)
    for build in (too_few_inputs, other_types):
        with pytest.raises(CircuitError):
            build(circuit)
    with pytest.raises(CircuitError):
        circuit.add(Plus(Layout(SCHEMA), 2), [t])
    assert str(circuit) == before


def test_a_circuit_that_is_not_whole_does_not_run() -> None:
    circuit = Circuit()
    feedback_left_open(circuit)
    with pytest.raises(CircuitError, match="not connected"):
        Embedded(circuit)


def keys_of_other_types(t: Stream, u: Stream) -> None:
    t.join(u, ("a", "s"))


def sums_of_other_types(t: Stream, u: Stream) -> None:
    t + u.select("s", "a")


def sums_of_other_widths(t: Stream, u: Stream) -> None:
    t + u.select("a")


def null_forgotten(t: Stream, u: Stream) -> None:
    t.recode("a BIGINT NOT NULL, s STRING NOT NULL")


def narrower_integers(t: Stream, u: Stream) -> None:
    t.select("a").recode("a INTEGER NOT NULL")


def sum_of_texts(t: Stream, u: Stream) -> None:
    t.aggregate([], x=("sum", "s"))


def names_twice(t: Stream, u: Stream) -> None:
    t.aggregate(["a"], a="count")


def keys_of_other_layouts(t: Stream, u: Stream) -> None:
    JoinStream(t.index("a").layout, u.index("s").layout, (), Schema())


MISFITS: dict[Callable[[Stream, Stream], None], str] = {
    keys_of_other_types: "join columns a and s have types BIGINT and STRING",
    sums_of_other_types: "columns a and s have types BIGINT and STRING",
    sums_of_other_widths: "differ in their number of columns",
    null_forgotten: "s STRING cannot be read as s STRING NOT NULL",
    narrower_integers: "a BIGINT NOT NULL cannot be read as a INTEGER NOT NULL",
    sum_of_texts: "sum of s STRING",
    names_twice: "names a twice",
    keys_of_other_layouts: "join keys differ",
}


@pytest.mark.parametrize("misfit", MISFITS, ids=lambda misfit: misfit.__name__)
def test_schemas_that_do_not_fit_are_refused(misfit: Callable[[Stream, Stream], None]) -> None:
    circuit = Circuit()
    t, u = table(circuit), circuit.source("u", SCHEMA)
    with pytest.raises(SchemaError, match=MISFITS[misfit]) as error:
        misfit(t, u)
    assert error.value.hint


UNKNOWN: dict[str, Callable[[Stream], object]] = {
    "select": lambda t: t.select("b"),
    "rename": lambda t: t.rename({"b": "c"}),
    "index": lambda t: t.index("b"),
    "not null": lambda t: t.not_null("b"),
    "join": lambda t: t.join(t, "b"),
    "semijoin": lambda t: t.semijoin(t, ("a", "b")),
    "aggregate by": lambda t: t.aggregate(["b"], n="count"),
    "aggregate of": lambda t: t.aggregate([], n=("sum", "b")),
    "top": lambda t: t.top(1, ["b desc"]),
    "top by": lambda t: t.top(1, ["a"], by=["b"]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_column_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UnknownName, match='column "b" does not exist') as error:
        UNKNOWN[name](table(Circuit()))
    assert "available: a, s" in str(error.value)


def test_unknown_sources_and_views_are_named() -> None:
    circuit = Circuit()
    table(circuit).sink("view")
    run = Embedded(circuit)
    with pytest.raises(UnknownName, match='source "T" does not exist'):
        run.tick({"T": []})
    with pytest.raises(UnknownName, match='view "vew" does not exist\n  hint: did you mean "view"'):
        run.view("vew")


def test_a_view_that_is_not_kept_has_no_contents() -> None:
    circuit = Circuit()
    table(circuit).sink("v", keep=False)
    with pytest.raises(EverviewError, match="view v keeps no contents"):
        Embedded(circuit).view("v").contents()


def test_an_operator_asserts_what_only_we_could_get_wrong() -> None:
    circuit = Circuit()
    stream = table(circuit)
    projected = circuit.add(Project(stream.layout, (0,), SCHEMA.select(["a"])), [stream])
    assert projected.schema == SCHEMA.select(["a"])
