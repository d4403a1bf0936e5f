"""Explode: a step is what it means, whatever the arrays hold and however the rows are weighted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everview.operators.explode import Explode
from everview.operators.operator import Layout
from everview.types import Schema
from everview.zset import ZSet
from operators.words import Words

SCHEMA = Schema.parse("n BIGINT, tags ARRAY<STRING>, m INT NOT NULL")
arrays = st.none() | st.lists(st.none() | st.sampled_from(["a", "b", ""]), max_size=4).map(tuple)
rows = st.tuples(st.none() | st.integers(0, 2), arrays, st.integers(0, 1))
changes = st.lists(st.tuples(rows, st.sampled_from([-2, -1, 1, 3])), max_size=8)


@given(
    changes=changes,
    outer=st.booleans(),
    keep=st.sampled_from([(0, 2), (2, 0), ()]),
    place=st.sampled_from([None, "at"]),
)
def test_a_step_is_what_it_means(changes: list[Any], outer: bool, keep: tuple[int, ...], place: str | None) -> None:
    words = Words()
    operator = Explode(Layout(SCHEMA), 1, keep, "tag", outer, place)
    delta = words.batch(Layout(SCHEMA), changes)
    out = operator.step([delta], [], words.context).out
    assert words.zset(operator.schema, out) == words.meant(operator, ZSet.of(changes))


def test_an_element_for_each_row() -> None:
    operator = Explode(Layout(SCHEMA), 1, (0,), "tag", outer=True)
    found = Words().meant(operator, ZSet.of([((1, ("a", "b"), 0), 2), ((2, (), 0), 1), ((3, None, 0), -1)]))
    assert found == ZSet.of([((1, "a"), 2), ((1, "b"), 2), ((2, None), 1), ((3, None), -1)])


def test_places_count_from_zero() -> None:
    operator = Explode(Layout(SCHEMA), 1, (0,), "tag", outer=True, place="at")
    found = Words().meant(operator, ZSet.of([((1, ("a", None), 0), 2), ((2, (), 0), 1)]))
    assert found == ZSet.of([((1, 0, "a"), 2), ((1, 1, None), 2), ((2, None, None), 1)])
