"""Operators that are programs over words, against what they say of values."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.codes import Dictionary, decode_rows, encode_pairs
from everview.operators.by_words import ByWords
from everview.operators.linear import Matching, NotNull, Project, Recode
from everview.operators.operator import Context, Layout
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.where import Test as WordTest
from everview.operators.where import Where
from everview.runtimes.embedded.walk import Recipe, Taken, all_words, fused
from everview.types import Schema

D = decimal.Decimal
TABLE = Schema.parse(
    "id BIGINT NOT NULL, l BIGINT, n INTEGER, d DOUBLE, w DECIMAL(30,2), s STRING, t STRING, a ARRAY<INTEGER>, x ANY,"
    " y ANY"
)
ANYTHING = st.sampled_from([None, 0, 1, 1.5, "p", "q", True, (1, 2)])
ROWS = st.tuples(
    st.integers(-3, 3),
    st.sampled_from([None, 0, 1, -(2**63), 2**63 - 1]),
    st.sampled_from([None, 0, 1, -(2**31)]),
    st.sampled_from([None, 0.0, -1.5, float("inf")]),
    st.sampled_from([None, D("0.00"), D("-1.25"), D("9999999999999999999999999999.99")]),
    st.sampled_from([None, "", "p", "q"]),
    st.sampled_from([None, "", "p", "q"]),
    st.sampled_from([None, (), (1, 2), (None,)]),
    ANYTHING,
    ANYTHING,
)
Row = tuple[Any, ...]


def place(name: str) -> int:
    return TABLE.index(name)


def _where(*tests: WordTest) -> Where:
    return Where(Layout(TABLE), tests)


def _matching(same: tuple[tuple[int, int], ...], *constants: tuple[int, Any]) -> Matching:
    return Matching(Layout(TABLE), same, constants)


L, N, S, T, A, X, Y, W = map(place, ("l", "n", "s", "t", "a", "x", "y", "w"))
KEPT: list[tuple[ByWords, Callable[[Row], bool]]] = [
    (_where(WordTest(L, "greater", (0,))), lambda r: r[L] is not None and r[L] > 0),
    (
        _where(WordTest(L, "is_null"), WordTest(S, "not_equal", ("p",))),
        lambda r: r[L] is None and r[S] not in (None, "p"),
    ),
    (_where(WordTest(S, "equal", ("q", "z", "p"))), lambda r: r[S] in ("p", "q")),
    (_where(WordTest(N, "less_equal", (-1, 0))), lambda r: r[N] is not None and r[N] <= 0),
    (_where(WordTest(S, "equal", (), T)), lambda r: r[S] is not None and r[S] == r[T]),
    (_where(WordTest(A, "equal", ((1, 2),))), lambda r: r[A] == (1, 2)),
    (_where(WordTest(N, "is_not_null")), lambda r: r[N] is not None),
    (_where(), lambda r: True),
    (NotNull(Layout(TABLE), L), lambda r: r[L] is not None),
    (NotNull(Layout(TABLE), W), lambda r: r[W] is not None),
    (NotNull(Layout(TABLE), X), lambda r: r[X] is not None),
    (NotNull(Layout(TABLE), 0), lambda r: True),
    (_matching(((S, T), (X, Y))), lambda r: r[S] == r[T] and same(r[X], r[Y])),
    (_matching((), (L, None), (W, D("-1.25"))), lambda r: r[L] is None and r[W] == D("-1.25")),
    (_matching((), (X, "p")), lambda r: same(r[X], "p")),
    (_matching((), (X, 1), (S, None)), lambda r: same(r[X], 1) and r[S] is None),
]


def same(a: Any, b: Any) -> bool:
    """Values of one type that are equal: 1, 1.0 and TRUE are three values of ANY."""
    return type(a) is type(b) and a == b


def ran(operator: ByWords, rows: list[Row]) -> tuple[list[Row], list[int]]:
    """What an operator makes of rows with the weights 1, 2, 3."""
    dictionary = Dictionary()
    delta = encode_pairs(TABLE, [(row, number) for number, row in enumerate(rows, start=1)], dictionary)
    out = operator.step([delta], (), Context(dictionary)).out
    return decode_rows(operator.output.schema, out[:, :-1], dictionary), out[:, -1].tolist()


def shown(rows: list[Row]) -> list[str]:
    return [repr(row) for row in rows]


@pytest.mark.parametrize("case", range(len(KEPT)))
@settings(max_examples=25)
@given(rows=st.lists(ROWS, min_size=1, max_size=6))
def test_rows_are_kept_by_their_values(case: int, rows: list[Row]) -> None:
    operator, wanted = KEPT[case]
    (everything, _) = ran(_where(), rows)
    kept, weights = ran(operator, rows)
    expected = [number for number, row in enumerate(everything) if wanted(_tuples(row))]
    assert weights == [number + 1 for number in expected]
    assert shown(kept) == shown([everything[number] for number in expected])


def _tuples(row: Row) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


@settings(max_examples=40)
@given(rows=st.lists(ROWS, min_size=1, max_size=6))
def test_rows_are_laid_out_anew(rows: list[Row]) -> None:
    everything, _ = ran(_where(), rows)
    padded = Schema((*TABLE.select(["l", "x"]).fields, *TABLE.select(["w", "s"]).fields))
    found, weights = ran(Pad(Layout(TABLE), (None, X, None, S), padded), rows)
    assert shown(found) == shown([(None, row[X], None, row[S]) for row in everything])
    assert weights == list(range(1, len(rows) + 1))
    chosen, _ = ran(Project(Layout(TABLE), (S, W, L), TABLE.select(["s", "w", "l"])), rows)
    assert shown(chosen) == shown([(row[S], row[W], row[L]) for row in everything])
    present, weights = ran(Present(Layout(TABLE), (L, S)), rows)
    there = [
        (number, row) for number, row in enumerate(everything, start=1) if row[L] is not None and row[S] is not None
    ]
    assert shown(present) == shown([row for _, row in there])
    assert weights == [number for number, _ in there]


NARROW = Schema.parse("a TINYINT, b INTEGER NOT NULL, c DECIMAL(12,2), d DECIMAL(18,2) NOT NULL, e STRING NOT NULL")
WIDER = Schema.parse("a BIGINT, b BIGINT NOT NULL, c DECIMAL(30,2), d DECIMAL(19,2), e STRING")


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([None, -128, 127]),
            st.integers(-(2**31), 2**31 - 1),
            st.sampled_from([None, D("-0.01"), D("9999999999.99")]),
            st.sampled_from([D("0.00"), D("-9999999999999999.99")]),
            st.sampled_from(["p", ""]),
        ),
        max_size=5,
    )
)
def test_values_are_the_same_in_wider_words(rows: list[Row]) -> None:
    dictionary = Dictionary()
    delta = encode_pairs(NARROW, [(row, 1) for row in rows], dictionary)
    out = Recode(Layout(NARROW), WIDER).step([delta], (), Context(dictionary)).out
    assert decode_rows(WIDER, out[:, :-1], dictionary) == rows
    again = encode_pairs(WIDER, [(row, 1) for row in rows], dictionary)
    assert np.array_equal(out, again)


WHOLE = tuple(range(len(TABLE)))
LAID_OUT: list[ByWords] = [
    *(operator for operator, _ in KEPT),
    Pad(Layout(TABLE), (None, X, W, S), Schema((*TABLE.select(["l", "x", "w", "s"]).fields,))),
    Present(Layout(TABLE), (L, S)),
    Recode(Layout(TABLE), Schema.parse(str(TABLE).replace("n INTEGER", "n BIGINT").replace("d DOUBLE", "d DOUBLE"))),
]


@pytest.mark.parametrize("case", range(len(LAID_OUT)))
@settings(max_examples=15)
@given(rows=st.lists(ROWS, min_size=1, max_size=6), order=st.permutations(WHOLE), data=st.data())
def test_projections_before_and_after_are_one_program(
    case: int, rows: list[Row], order: list[int], data: st.DataObject
) -> None:
    """The rows of a wider table, in another order of columns, at once and step by step."""
    operator = LAID_OUT[case]
    stored = Schema(TABLE.fields[field] for field in order)
    before = Project(Layout(stored), tuple(order.index(field) for field in WHOLE), TABLE)
    output = operator.output.schema
    chosen = tuple(data.draw(st.lists(st.sampled_from(range(len(output))), min_size=1, max_size=4, unique=True)))
    after = Project(Layout(output), chosen, Schema(output.fields[field] for field in chosen))
    dictionary = Dictionary()
    pairs = [(tuple(row[field] for field in order), number) for number, row in enumerate(rows, start=1)]
    delta = expected = encode_pairs(stored, pairs, dictionary)
    recipe: Recipe | None = Taken(all_words(delta))
    for step in (before, operator, after):
        expected = step.step([expected], (), Context(dictionary)).out
        recipe = fused(step, recipe, {}) if recipe is not None else None
    if recipe is None:  # a word that is computed would be left out
        assert isinstance(operator, Recode | Pad)
        return
    out = np.empty((len(rows), expected.shape[1]), np.int64)
    count = recipe.bound(dictionary).write(delta, out)
    assert out[:count].tolist() == expected.tolist()
