"""The oracle itself, held to answers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, Stream, incrementalize
from everview.errors import CircuitError, EndlessLoop, WeightOverflow
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.types import Id, Symbol
from everview.zset import ZSet

Query = Callable[[Stream], Stream]
Rows = dict[Any, int]
PAIRS = "k STRING, n BIGINT"


def asked(schema: str, query: Query, rows: Rows) -> Rows:
    circuit = Circuit()
    query(circuit.source("t", schema)).sink("v")
    return dict(evaluate(circuit, {"t": ZSet(rows)})["v"])


@dataclass(frozen=True)
class Answer:
    """A query over one table, what the table holds, and what the query must give."""

    schema: str
    query: Query
    rows: Rows
    expected: Rows


ANSWERS = {
    "map adds images": Answer(
        "n BIGINT", lambda t: t.map(pc.abs, "n BIGINT"), {(1,): 1, (-1,): 2, (2,): 1, (-2,): -1}, {(1,): 3}
    ),
    "map by row": Answer(
        "n BIGINT", lambda t: t.map(lambda n: (n, str(n)), "n BIGINT, k STRING", by_row=True), {(1,): 2}, {(1, "1"): 2}
    ),
    "filter drops NULL": Answer(
        "n BIGINT", lambda t: t.filter(lambda n: pc.greater(n, 0)), {(1,): 1, (None,): 1, (0,): 1}, {(1,): 1}
    ),
    "flat map": Answer(
        "s STRING", lambda t: t.flat_map(list, "c STRING"), {("ab",): 2, ("b",): -1}, {("a",): 2, ("b",): 1}
    ),
    "extend": Answer("n BIGINT", lambda t: t.extend(lambda n: pc.add(n, 1), "m BIGINT"), {(1,): 1}, {(1, 2): 1}),
    "select": Answer(PAIRS, lambda t: t.select("n"), {("a", 1): 1, ("b", 1): -1, ("c", 2): 1}, {(2,): 1}),
    "not null": Answer(PAIRS, lambda t: t.not_null("n"), {("a", 1): 1, ("b", None): 1}, {("a", 1): 1}),
    "negate": Answer(PAIRS, lambda t: -t, {("a", 1): 2}, {("a", 1): -2}),
    "plus": Answer(PAIRS, lambda t: t.plus(t, t), {("a", 1): 2}, {("a", 1): 6}),
    "minus": Answer(PAIRS, lambda t: t - t.not_null("n"), {("a", 1): 2, ("a", None): 1}, {("a", None): 1}),
    "distinct": Answer(PAIRS, lambda t: t.distinct(), {("a", 1): 2, ("b", 1): -1}, {("a", 1): 1}),
    "join multiplies": Answer(
        PAIRS,
        lambda t: t.join(t, "k"),
        {("a", 1): 2, ("a", 2): -1},
        {("a", 1, 1): 4, ("a", 1, 2): -2, ("a", 2, 1): -2, ("a", 2, 2): 1},
    ),
    "NULL joins NULL": Answer(PAIRS, lambda t: t.join(t, "n", select=["k"]), {("a", None): 1}, {("a",): 1}),
    "NaN joins NaN": Answer(
        "x DOUBLE", lambda t: t.join(t, "x"), {(math.nan,): 2, (-0.0,): 1}, {(math.nan,): 4, (0.0,): 1}
    ),
    "semijoin": Answer(
        PAIRS,
        lambda t: t.semijoin(t.not_null("n"), "k"),
        {("a", 1): 1, ("a", None): 3, ("b", None): 1},
        {("a", 1): 1, ("a", None): 3},
    ),
    "semijoin needs a positive key": Answer(
        PAIRS, lambda t: t.semijoin(-t, "k"), {("a", 1): 1, ("b", 1): -1}, {("b", 1): -1}
    ),
    "antijoin": Answer(
        PAIRS,
        lambda t: t.antijoin(t.not_null("n"), "k"),
        {("a", 1): 1, ("a", None): 3, ("b", None): 1},
        {("b", None): 1},
    ),
    "left join": Answer(
        PAIRS,
        lambda t: t.left_join(t.not_null("n"), "k"),
        {("a", 1): 1, ("b", None): 1},
        {("a", 1, 1): 1, ("b", None, None): 1},
    ),
    "full join": Answer(
        PAIRS,
        lambda t: t.filter(lambda k, n: pc.equal(k, "a")).full_join(t.not_null("n"), ("k", "k")),
        {("a", None): 1, ("b", 2): 1},
        {("a", None, None, None): 1, (None, None, "b", 2): 1},
    ),
    "count rows and values": Answer(
        PAIRS,
        lambda t: t.aggregate(["k"], n="count", m=("count", "n")),
        {("a", 1): 2, ("a", None): 1},
        {("a", 3, 2): 1},
    ),
    "no group of weight zero": Answer(
        PAIRS, lambda t: t.aggregate(["k"], n="count"), {("a", 1): 1, ("a", 2): -1, ("b", 1): -1}, {}
    ),
    "sum and avg": Answer(
        PAIRS,
        lambda t: t.aggregate([], s=("sum", "n"), a=("avg", "n")),
        {("a", 1): 2, ("a", 3): 1, ("a", None): 1},
        {(5, 5 / 3): 1},
    ),
    "of NULL alone": Answer(
        PAIRS,
        lambda t: t.aggregate([], s=("sum", "n"), a=("avg", "n"), l=("min", "n")),
        {("a", None): 1},
        {(None, None, None): 1},
    ),
    "min and max of text": Answer(
        PAIRS,
        lambda t: t.aggregate([], l=("min", "k"), g=("max", "k")),
        {("b", 1): 1, ("ä", 1): 1, ("z", 1): 1, ("~", 1): -1},
        {("b", "ä"): 1},
    ),
    "a value whose weights cancel is no minimum": Answer(
        PAIRS, lambda t: t.aggregate([], l=("min", "n")), {("a", 1): 1, ("b", 1): -1, ("c", 2): 1}, {(2,): 1}
    ),
    "float sums are exact": Answer(
        "x DOUBLE", lambda t: t.aggregate([], s=("sum", "x")), {(0.1,): 10, (1e300,): 1, (-1e300,): 1}, {(1.0,): 1}
    ),
    "float specials": Answer(
        "x DOUBLE",
        lambda t: t.aggregate([], s=("sum", "x"), l=("min", "x"), g=("max", "x")),
        {(math.inf,): 1, (math.nan,): 1, (1.0,): 1},
        {(math.nan, 1.0, math.nan): 1},
    ),
    "decimal avg rounds half up": Answer(
        "d DECIMAL(9,2)",
        lambda t: t.aggregate([], a=("avg", "d")),
        {(Number("0.01"),): 1, (Number("0.00"),): 31},
        {(Number("0.000313"),): 1},
    ),
    "and away from zero": Answer(
        "d DECIMAL(9,2)",
        lambda t: t.aggregate([], a=("avg", "d")),
        {(Number("-0.01"),): 1, (Number("0.00"),): 31},
        {(Number("-0.000313"),): 1},
    ),
    "top takes places by weight": Answer(
        PAIRS, lambda t: t.top(3, ["n"]), {("a", 1): 2, ("b", 2): 5, ("c", 3): 1}, {("a", 1): 2, ("b", 2): 1}
    ),
    "top skips": Answer(
        PAIRS, lambda t: t.top(2, ["n"], skip=1), {("a", 1): 2, ("b", 2): 5}, {("a", 1): 1, ("b", 2): 1}
    ),
    "top of each group": Answer(
        PAIRS,
        lambda t: t.top(1, ["n desc"], by=["k"]),
        {("a", 1): 1, ("a", 2): 1, ("b", None): 1},
        {("a", 2): 1, ("b", None): 1},
    ),
    "NULL is least": Answer(PAIRS, lambda t: t.top(1, ["n"]), {("a", None): 1, ("b", -5): 1}, {("a", None): 1}),
    "or last": Answer(PAIRS, lambda t: t.top(1, ["n asc nulls last"]), {("a", None): 1, ("b", -5): 1}, {("b", -5): 1}),
    "descending it is last": Answer(
        PAIRS, lambda t: t.top(1, ["n desc"]), {("a", None): 1, ("b", -5): 1}, {("b", -5): 1}
    ),
    "or first": Answer(
        PAIRS, lambda t: t.top(1, ["n desc nulls first"]), {("a", None): 1, ("b", -5): 1}, {("a", None): 1}
    ),
    "ties are broken by value": Answer(
        PAIRS, lambda t: t.top(1, ["n"]), {("z", 1): 1, ("b", 1): 1, ("y", 1): 1}, {("b", 1): 1}
    ),
    "symbols and IDs": Answer(
        "s SYMBOL, i ID",
        lambda t: t.map(lambda s, i: (s, i), "s SYMBOL, i ID").aggregate([], s=("max", "s"), i=("min", "i")),
        {(Symbol("a"), Id("x")): 1, (Symbol("b"), Id("y")): 1},
        {(Symbol("b"), Id("x")): 1},
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_oracle_answers(name: str) -> None:
    answer = ANSWERS[name]
    assert ZSet(asked(answer.schema, answer.query, answer.rows)) == ZSet(answer.expected)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_runtime_answers(name: str) -> None:
    answer, circuit = ANSWERS[name], Circuit()
    answer.query(circuit.source("t", answer.schema)).sink("v")
    run = Embedded(circuit)
    for entry in answer.rows.items():
        run.tick({"t": [entry]})
    assert run.view("v").contents().to_zset() == ZSet(answer.expected)


def test_sums_out_of_range_are_errors() -> None:
    with pytest.raises(WeightOverflow, match="sum"):
        asked("n BIGINT", lambda t: t.aggregate([], s=("sum", "n")), {(2**63 - 1,): 1, (1,): 1})
    low = {(-(2**63) + 1,): 1, (-1,): 1}
    assert asked("n BIGINT", lambda t: t.aggregate([], s=("sum", "n")), low) == {(-(2**63),): 1}


def edges(circuit: Circuit) -> Stream:
    return circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")


def test_a_child_is_evaluated_to_its_fixed_point() -> None:
    circuit = Circuit()
    edge = edges(circuit)
    loop = circuit.child("closure")
    path, again = loop.feedback(edge.schema)
    longer = path.join(loop.enter(edge), ("b", "a"), select=["left.a", "right.b"])
    paths = (loop.enter(edge) + longer).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    found = evaluate(circuit, {"edge": ZSet({(1, 2): 1, (2, 3): 1, (3, 1): 1})})
    assert found == {"path": ZSet({(a, b): 1 for a in (1, 2, 3) for b in (1, 2, 3)})}


def test_a_child_without_end_is_an_error() -> None:
    circuit = Circuit()
    edge = edges(circuit)
    loop = circuit.child("growth", limit=10)
    total, again = loop.feedback(edge.schema)
    again(total + loop.enter(edge))
    loop.leave(total).sink("v")
    with pytest.raises(EndlessLoop, match=r"loop growth has not ended after 10 iterations.*fed back 1, 1, .* rows"):
        evaluate(circuit, {"edge": ZSet({(1, 2): 1})})


@pytest.mark.parametrize(
    ("query", "node"),
    [
        (lambda t: t.delay(), "z⁻¹"),
        (lambda t: t.integrate(), "Consolidate"),
        (lambda t: t.join_trace(t.index("a").trace(), "a"), "JoinTrace"),
    ],
)
def test_what_is_no_query_is_refused_by_name(query: Query, node: str) -> None:
    circuit = Circuit()
    query(edges(circuit)).sink("v")
    with pytest.raises(CircuitError, match=node):
        evaluate(circuit, {})


def test_an_incremental_circuit_is_no_query() -> None:
    circuit = Circuit()
    edges(circuit).distinct().sink("v")
    with pytest.raises(CircuitError, match="before `incrementalize`"):
        evaluate(incrementalize(circuit), {})
