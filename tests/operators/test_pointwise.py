"""Pointwise: the change of truth against its definition, on random states, candidates and flips."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from everview.operators.functions import Function
from everview.operators.operator import Layout
from everview.operators.pointwise import Pointwise
from everview.types import Schema
from everview.zset import ZSet
from operators.words import Words, indexed

SCHEMA = Schema.parse("n BIGINT NOT NULL, s STRING NOT NULL")
LAYOUT: Layout = indexed(SCHEMA, 2)
ROWS = [(n, s) for n in range(3) for s in "ab"]
some = st.sets(st.sampled_from(ROWS))


def weighted(rows: Any, weight: int = 1) -> list[Any]:
    return [(row, weight) for row in rows]


@given(before=some, after=some, truth=some, true=some, false=some, split=st.booleans())
def test_truth_changes_as_defined(before: Any, after: Any, truth: Any, true: Any, false: Any, split: bool) -> None:
    """``true`` is also what the predicate holds for; flips are of any tuples, candidates or not."""
    truth, false = truth & before, false - true
    asked: list[set[Any]] = []

    def predicate(n: Any, s: Any) -> Any:
        asked.append(set(zip(n.to_pylist(), s.to_pylist(), strict=True)))
        return pc.equal(s, "a")

    w = Words(Function("predicate", predicate))
    delta = w.batch(LAYOUT, weighted(after - before) + weighted(before - after, -1))
    flips = w.batch(LAYOUT, weighted(true) + weighted(false, -1))
    halves = [sorted(before)[::2], sorted(before)[1::2]] if split else [before]
    views = [w.view(LAYOUT, [weighted(half) for half in halves]), w.view(LAYOUT, [weighted(truth)])]
    operator = Pointwise(LAYOUT, "predicate")
    out = operator.step([delta, flips], views, w.context).out

    def holds(row: Any) -> bool:
        if row not in after:
            return False
        if row in true or row in false:
            return row in true
        return row in truth if row in before else row[1] == "a"

    wanted = {row for row in ROWS if holds(row)}
    assert w.zset(SCHEMA, out) == ZSet.of(weighted(wanted - truth) + weighted(truth - wanted, -1))
    new = after - before - true - false
    assert asked == ([new] if new else []), "new candidates are asked about, all at once, and no others"
