"""Every aggregate, in random company, is after every tick what the oracle says; and the oracle by hand."""

from __future__ import annotations

import math
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given, reject

from everview.circuit import Circuit
from everview.errors import WeightOverflow
from everview.oracle import evaluate
from everview.zset import ZSet
from oracle.aggregations import aggregated_cases
from oracle.cases import Case
from oracle.ways import check

FAST = ("incremental", "lifted", "5 shards")


def checked(case: Case, *ways: str) -> None:
    """A sum that leaves its type is an error whoever adds it up, and says nothing here."""
    try:
        for held in case.sums():
            evaluate(case.build(), held)
    except WeightOverflow:
        reject()
    check(case, *ways)


@given(case=aggregated_cases())
def test_every_tick_leaves_what_the_oracle_says(case: Case) -> None:
    checked(case, *FAST)


@pytest.mark.slow
@given(case=aggregated_cases(max_ticks=8))
def test_every_tick_of_a_longer_life_leaves_what_the_oracle_says(case: Case) -> None:
    checked(case)


def one(schema: str, rows: dict[Any, int], call: Any) -> Any:
    circuit = Circuit()
    circuit.source("t", schema).aggregate([], found=call).sink("v")
    ((row, weight),) = evaluate(circuit, {"t": ZSet(rows)})["v"]
    assert weight == 1
    return row[0]


N = "n BIGINT, s STRING"
ROWS = {(1, "a"): 2, (4, "b"): 1, (None, "c"): 1, (7, None): 1, (9, "z"): -1}

# what is asked, and the answer
ANSWERS: list[tuple[Any, Any]] = [
    (("count distinct", "n"), 3),
    (("count distinct", ["n", "s"]), 2),
    (("sum distinct", "n"), 12),
    (("avg distinct", "n"), 4.0),
    (("variance distinct", "n"), 9.0),
    (("variance pop distinct", "n"), 6.0),
    (("stddev distinct", "n"), 3.0),
    (("array", "n"), [1, 1, 4, 7]),
    (("array distinct", "n"), [1, 4, 7]),
    (("array", "n", {"order": ["s desc"], "nulls": "keep"}), [None, 4, 1, 1, 7]),
    (("array", "n", {"order": ["n desc nulls first"], "nulls": "keep"}), [None, 7, 4, 1, 1]),
    (("string", "s", {"separator": "+"}), "a+a+b+c"),
    (("string distinct", "s", {"order": "s desc"}), "cba"),
    (("median", "n"), 2.5),
    (("percentile", "n", 0.25), 1.0),
    (("percentile", "n", 1), 7.0),
    (("percentile discrete", "n", 0.5), 1.0),
    (("percentile discrete", "s", 0.75), "b"),
    (("quantile", "n", 0.5), 1),
    (("quantile", "n", 0.5, {"order": "n desc"}), 4),
    (("mode", "n"), 1),
    (("mode distinct", "s", {"order": "s desc"}), "c"),
    (("avg double", "n"), 4 / 3),
    (("first", "n", {"order": ["s"]}), 7),
    (("first", "n", {"order": ["s nulls last"]}), 1),
    (("last", "n", {"order": ["s"]}), None),
    (("last", "n", {"order": ["s"], "nulls": "skip"}), 4),
    ((lambda ns, ss: len(ns) * 100 + len(ss), ["n", "s"], {"type": "BIGINT", "by_group": True}), 505),
    ((max, "n", {"type": "BIGINT", "by_group": True, "nulls": "skip"}), 7),
]


@pytest.mark.parametrize(("call", "answer"), ANSWERS, ids=range(len(ANSWERS)))
def test_the_oracle_answers(call: Any, answer: Any) -> None:
    assert one(N, ROWS, call) == answer


def test_whether_all_or_any_are_true() -> None:
    rows = {(True,): 2, (False,): 1, (None,): 3}
    assert [one("b BOOLEAN", rows, (call, "b")) for call in ("bool_and", "bool_or")] == [False, True]
    gone = {(True,): -1, (False,): 1, (None,): 3}
    assert [one("b BOOLEAN", gone, (call, "b")) for call in ("bool_and", "bool_or")] == [False, False]
    assert [one("b BOOLEAN", {(None,): 1}, (call, "b")) for call in ("bool_and", "bool_or")] == [None, None]


def test_variances_are_rounded_once_and_roots_once_more() -> None:
    assert one("x DOUBLE", {(1e300,): 1, (-1e300,): 1}, ("variance", "x")) == math.inf
    assert one("x DOUBLE", {(1e300,): 1, (-1e300,): 1}, ("stddev", "x")) == math.sqrt(2) * 1e300
    assert one("x DOUBLE", {(1e16,): 1, (1e16 + 2,): 1}, ("variance", "x")) == 2.0
    assert one("x DOUBLE", {(1.0,): 1}, ("variance", "x")) is None
    assert math.isnan(one("x DOUBLE", {(1.0,): 1, (math.inf,): 1}, ("stddev", "x")))
    assert one("d DECIMAL(30,4)", {(Number("0.0001"),): 1, (Number("0.0003"),): 1}, ("variance", "d")) == 2e-8


def test_a_function_is_called_for_blocks_of_groups() -> None:
    import pyarrow.compute as pc

    seen: list[int] = []

    def total(lists: Any) -> Any:
        seen.append(len(lists))
        return pc.list_value_length(lists)

    circuit = Circuit()
    circuit.source("t", "g BIGINT NOT NULL").aggregate(["g"], n=(total, "g", {"type": "INTEGER"})).sink("v")
    found = evaluate(circuit, {"t": ZSet({(g,): g + 1 for g in range(10)})})["v"]
    assert found == ZSet({(g, g + 1): 1 for g in range(10)})
    assert seen == [1, 2, 4, 3]
