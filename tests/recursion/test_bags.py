"""Recursive UNION ALL keeps every row as often as it is derived, under changes of any weight; cycles are refused."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import everview as ev
from everview.errors import EndlessLoop, WeightOverflow

WALKS = """CREATE MATERIALIZED VIEW walks AS WITH RECURSIVE w(a, b) AS (
             SELECT a, b FROM edge UNION ALL SELECT w.a, e.b FROM w JOIN edge e ON w.b = e.a) SELECT * FROM w"""
# Even and odd walks are made of each other, and `ends`, a set, of both.
PARITY = """CREATE MATERIALIZED VIEW {name}_walks AS WITH RECURSIVE
              odd(a, b) AS (SELECT a, b FROM edge UNION ALL SELECT v.a, e.b FROM even v JOIN edge e ON v.b = e.a),
              even(a, b) AS (SELECT o.a, e.b FROM odd o JOIN edge e ON o.b = e.a),
              ends(b) AS (SELECT b FROM odd UNION SELECT b FROM even)
            SELECT * FROM {name}"""


def counted(edges: Counter[tuple[int, int]]) -> list[Counter[tuple[int, int]]]:
    """The walks of 1, 2, … edges, each as often as there are ways to make it."""
    found = [Counter(edges)]
    while found[-1]:
        longer: Counter[tuple[int, int]] = Counter()
        for (a, b), ways in found[-1].items():
            for (c, d), times in edges.items():
                if b == c:
                    longer[a, d] += ways * times
        found.append(longer)
    return found


def repeated(rows: Counter[Any]) -> list[Any]:
    return sorted(rows.elements())


@pytest.mark.parametrize("seed", range(4))
def test_walks_are_counted_under_change(seed: int) -> None:
    chance, db = random.Random(seed), ev.connect()
    db.sql("CREATE TABLE edge (a INT, b INT)")
    db.sql(WALKS)
    for name in ("odd", "even", "ends"):
        db.sql(PARITY.format(name=name))
    held: Counter[tuple[int, int]] = Counter()
    for _ in range(6):
        new = Counter((a, chance.randrange(a + 1, 8)) for a in (chance.randrange(6) for _ in range(5)))
        gone = Counter(chance.sample(list(held.elements()), chance.randrange(held.total() + 1)))
        held += new
        held -= gone
        changes = Counter(new)
        changes.subtract(gone)
        db.apply({"edge": [(row, weight) for row, weight in changes.items() if weight]})
        rounds = counted(held)
        assert sorted(db.view("walks").rows()) == repeated(sum(rounds, Counter()))
        assert sorted(db.view("odd_walks").rows()) == repeated(sum(rounds[::2], Counter()))
        assert sorted(db.view("even_walks").rows()) == repeated(sum(rounds[1::2], Counter()))
        assert sorted(db.view("ends_walks").rows()) == sorted({(b,) for _, b in held})
    assert db.verify()


def test_a_change_that_closes_a_cycle_is_refused() -> None:
    db = ev.connect(loops=ev.LoopBounds(rounds=200))
    db.sql("CREATE TABLE edge (a INT, b INT)")
    db.sql(WALKS)
    db.sql("INSERT INTO edge VALUES (1, 2), (2, 3)")
    with pytest.raises(EndlessLoop):
        db.sql("INSERT INTO edge VALUES (3, 1)")
    assert sorted(db.view("walks").rows()) == [(1, 2), (1, 3), (2, 3)]
    db.sql("DELETE FROM edge WHERE a = 1")
    db.sql("INSERT INTO edge VALUES (3, 1)")
    assert sorted(db.view("walks").rows()) == [(2, 1), (2, 3), (3, 1)]


def test_rows_that_double_each_round_end_in_an_error_that_says_so() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE edge (a INT, b INT)")
    db.sql(WALKS)
    with pytest.raises(WeightOverflow, match="more often than 64 bits count"):
        db.sql("INSERT INTO edge VALUES (0, 1), (1, 0), (0, 0), (1, 1)")
    assert db.view("walks").rows() == []
