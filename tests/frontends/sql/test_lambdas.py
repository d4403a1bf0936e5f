"""Functions over the elements of arrays, in views that change, beside the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import everview as ev
from everview.errors import ArithmeticFailure, EverviewError

VIEW = """
CREATE MATERIALIZED VIEW v AS SELECT id,
  transform(a, x -> x + id) AS moved, transform(a, (x, i) -> x * i) AS by_place, filter(a, x -> x > id) AS large,
  filter(a, (x, i) -> i = 0) AS first_one, exists(a, x -> x = 1) AS one, forall(a, x -> x > 0) AS above,
  aggregate(a, 0, (s, x) -> s + coalesce(x, 0)) AS added, reduce(b, '', (s, x) -> concat(s, x), s -> length(s)) AS long,
  zip_with(a, b, (x, y) -> concat(x, y)) AS both, transform(a, x -> transform(b, y -> concat(y, x, id))) AS nested,
  transform(a, x -> x * x + 1) AS squares, transform(a, x -> x * x + 2) AS more_squares
FROM t
"""
ROWS = some.lists(
    some.tuples(
        some.integers(0, 3),
        some.none() | some.lists(some.none() | some.integers(-2, 3), max_size=3),
        some.none() | some.lists(some.none() | some.sampled_from(("p", "q")), max_size=3),
    ),
    max_size=5,
)


def as_it_means(row: Any) -> Any:
    id_, a, b = row
    strings = None if a is None else [None if x is None else str(x) for x in a]
    pad = max(len(a or ()), len(b or ()))
    verdicts = None if a is None else [None if x is None else x == 1 for x in a]
    above = None if a is None else [None if x is None else x > 0 for x in a]

    def joined(*parts: Any) -> Any:
        return None if None in parts else "".join(parts)

    def at(values: Any, place: int) -> Any:
        return values[place] if place < len(values) else None

    return (
        id_,
        a and [None if x is None else x + id_ for x in a] if a is not None else None,
        None if a is None else [None if x is None else x * i for i, x in enumerate(a)],
        None if a is None else [x for x in a if x is not None and x > id_],
        None if a is None else a[:1],
        None if verdicts is None else True if True in verdicts else None if None in verdicts else False,
        None if above is None else False if False in above else None if None in above else True,
        None if a is None else sum(x or 0 for x in a),
        None if b is None or None in b else len("".join(b)),
        None if strings is None or b is None else [joined(at(strings, i), at(b, i)) for i in range(pad)],
        None if strings is None else [None if b is None else [joined(y, x, str(id_)) for y in b] for x in strings],
        None if a is None else [None if x is None else x * x + 1 for x in a],
        None if a is None else [None if x is None else x * x + 2 for x in a],
    )


@settings(max_examples=25, deadline=None)
@given(some.lists(ROWS, min_size=1, max_size=3))
def test_as_they_mean(ticks: list[list[Any]]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id INT, a ARRAY<INT>, b ARRAY<STRING>)")
    db.sql(VIEW)
    held: list[Any] = []
    for rows in ticks:
        gone, held = held[: len(held) // 2], held[len(held) // 2 :]
        held += rows
        db.apply({"t": [(row, -1) for row in gone] + [(row, 1) for row in rows]})
        assert sorted(db.view("v").rows(), key=repr) == sorted(map(as_it_means, held), key=repr)
    assert db.verify()


def test_constants_other_dialects_and_conditions() -> None:
    db = ev.connect()
    assert db.sql("SELECT aggregate(array(1, 2), 0L, (s, x) -> s + x, s -> s * 10)").rows() == [(30,)]
    assert db.sql("SELECT transform(array(0, 2), x -> CASE WHEN x > 0 THEN 4 / x END)").rows() == [([None, 2.0],)]
    assert db.sql("SELECT transform(array(struct(1 AS p)), s -> s.p + 1)").rows() == [([2],)]
    text = "SELECT list_transform([1, 2], x -> x + 1), list_filter([1, 2], lambda x: x > 1)"
    assert db.sql(text, dialect="duckdb").rows() == [([2, 3], [2])]
    with pytest.raises(ArithmeticFailure):
        db.sql("SELECT transform(array(0), x -> 1 / x)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("transform(1, x -> x)", "no array"),
        ("transform(array(1), (x, y, z) -> x)", "1 to 2 values"),
        ("transform(array(1), (x, x) -> x)", "two values of one name"),
        ("transform(array(1), x -> y)", '"y"'),
        ("transform(array(1), x -> sum(x))", "the aggregate sum"),
        ("transform(array(1), x -> (SELECT x))", "subquery"),
        ("filter(array(1), x -> x + 1)", "BOOLEAN"),
        ("aggregate(array(1), DATE '2020-01-01', (s, x) -> x)", "a state that is"),
        ("zip_with(array(1), (x, y) -> x)", "other arguments"),
        ("upper(x -> x)", "a lambda"),
    ],
)
def test_mistakes_are_told(text: str, said: str) -> None:
    with pytest.raises(EverviewError, match=said):
        ev.connect().sql(f"SELECT {text}")
