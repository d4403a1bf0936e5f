"""Weighing a large delta adds up by group first: the entries are those of weighing row by row."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.codes import Dictionary, encode_pairs
from everview.kernels import large, sums
from everview.kernels.threads import at_most
from everview.operators.aggregate import Call, Weigh, slots, weigh
from everview.operators.operator import Context, Layout, word_columns
from everview.types import Schema

SCHEMA = Schema.parse(
    "g BIGINT, h STRING NOT NULL, b BIGINT, i INT NOT NULL, n DECIMAL(10, 2), w DECIMAL(38, 2), "
    "v DECIMAL(30, 0) NOT NULL, d DOUBLE, t BOOLEAN"
)
NUMBERS = range(2, 8)
BIG = 10**37
CALLS = [
    Call("count"),
    *(Call("count", (field,)) for field in range(len(SCHEMA))),
    *(Call(function, (field,)) for field in NUMBERS for function in ("sum", "avg")),
    Call("count_if", (8,)),
]


def decimals(most: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    return st.integers(-most, most).map(lambda n: decimal.Decimal(n).scaleb(-scale, decimal.Context(prec=60)))


def rows() -> st.SearchStrategy[tuple[Any, ...]]:
    nullable = lambda of: st.one_of(st.none(), of)  # noqa: E731
    return st.tuples(
        nullable(st.integers(0, 2)),
        st.sampled_from(["", "x", "y"]),
        nullable(st.one_of(st.integers(-3, 3), st.integers(-(1 << 63), (1 << 63) - 1))),
        st.integers(-(1 << 31), (1 << 31) - 1),
        nullable(decimals(10**10 - 1, 2)),
        nullable(decimals(BIG, 2)),
        decimals(10**30 - 1, 0),
        nullable(st.floats()),
        nullable(st.booleans()),
    )


def entries(operator: Weigh, delta: np.ndarray, least: int, threads: int) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch, at_most(threads):
        patch.setattr(weigh, "LARGE", least)
        patch.setattr(large, "LARGE", min(least, large.LARGE))
        patch.setattr(large, "MANY", min(least, large.MANY))
        patch.setattr(large, "PART", 2)
        patch.setattr("everview.kernels.group_sums.PART", 2)
        return operator.step([delta], [], Context(Dictionary(), {})).out


def compiled(operator: Weigh, delta: np.ndarray) -> np.ndarray:
    """The entries as the machine makes them."""
    assert operator._lines is not None
    return sums.weigh(delta, word_columns(operator.source.schema, operator.group), operator._lines[0])


@given(
    st.lists(st.tuples(rows(), st.integers(-3, 3)), min_size=1, max_size=30),
    st.sampled_from([(), (0,), (1,), (1, 0), (6, 7)]),
    st.lists(st.sampled_from(CALLS), max_size=6),
    st.integers(1, 3),
)
def test_the_entries_of_a_large_delta(
    pairs: list[tuple[Any, int]], group: tuple[int, ...], calls: list[Call], threads: int
) -> None:
    operator = Weigh(Layout(SCHEMA), group, slots(SCHEMA, calls))
    delta = encode_pairs(SCHEMA, pairs, Dictionary())
    found = entries(operator, delta, 1, threads)
    assert np.array_equal(found, entries(operator, delta, 1 << 40, 1))
    assert np.array_equal(found, compiled(operator, delta))


def test_a_part_that_cancels_between_parts_of_the_same_group() -> None:
    row = (None, "", None, 0, None, None, decimal.Decimal(0), None, None)
    delta = encode_pairs(SCHEMA, [(row, weight) for weight in (1, 0, 3, -3, 1, 0)], Dictionary())
    operator = Weigh(Layout(SCHEMA), (), slots(SCHEMA, CALLS[:1]))
    assert np.array_equal(entries(operator, delta, 1, 3), entries(operator, delta, 1 << 40, 1))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-(1 << 62), 1 << 62)), min_size=1, max_size=12))
@example([(1, 1 << 62), (1, 1 << 62), (1, -(1 << 62))])
def test_weights_beyond_64_bits(pairs: list[tuple[int, int]]) -> None:
    """Parts may leave the range of 64 bits where all rows do not: then rows are weighed one by one."""
    schema = Schema.parse("g BIGINT NOT NULL, n INT NOT NULL")
    operator = Weigh(Layout(schema), (0,), slots(schema, [Call("sum", (1,))]))
    delta = np.array([(g, g, w) for g, w in pairs])
    try:
        expected = entries(operator, delta, 1 << 40, 1)
    except OverflowError:
        with pytest.raises(OverflowError):
            compiled(operator, delta)
        return
    assert np.array_equal(entries(operator, delta, 1, 2), expected)
    assert np.array_equal(compiled(operator, delta), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("groups", [1, 5, 30_000])
@pytest.mark.parametrize("rows", [weigh.LARGE - 1, weigh.LARGE, 2 * weigh.LARGE + 1])
def test_around_the_size_that_counts_as_large(rows: int, groups: int, threads: int) -> None:
    random = np.random.default_rng([rows, groups])
    schema = Schema.parse("g BIGINT NOT NULL, n BIGINT NOT NULL, d DOUBLE NOT NULL")
    operator = Weigh(Layout(schema), (0,), slots(schema, [Call("sum", (1,)), Call("avg", (2,))]))
    numbers = random.normal(0, 1e9, rows).view(np.int64)
    codes = numbers ^ ((numbers >> 63) & ((1 << 63) - 1))
    columns = random.integers(0, groups, rows), random.integers(-(1 << 40), 1 << 40, rows), codes
    delta = np.column_stack([*columns, random.integers(-2, 3, rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weigh, "LARGE", 1 << 40)
        expected = operator.step([delta], [], Context(Dictionary(), {})).out
    with at_most(threads):
        assert np.array_equal(operator.step([delta], [], Context(Dictionary(), {})).out, expected)
