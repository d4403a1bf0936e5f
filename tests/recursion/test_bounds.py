"""Recursions without end: refused when they are made, where that can be told; else ended by rounds, rows or memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
import pytest

import everview as ev
from everview import Circuit, Embedded, LoopBounds, connect
from everview.errors import EndlessLoop, EverviewError

EDGE = "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL)"
LENGTHS = """CREATE MATERIALIZED VIEW lengths AS WITH RECURSIVE r AS (
    SELECT a, b, 1 AS d FROM edge UNION SELECT r.a, edge.b, d + 1 FROM r JOIN edge ON r.b = edge.a) SELECT * FROM r"""
PATHS = """CREATE MATERIALIZED VIEW paths AS WITH RECURSIVE r AS (
    SELECT a, b FROM edge UNION SELECT r.a, edge.b FROM r JOIN edge ON r.b = edge.a) SELECT * FROM r"""

# the step of a recursion from n = 1, k = 5, s = 'a': whether it is refused when it is made
STEPS: dict[str, bool] = {
    "SELECT n + 1, k, s FROM r": True,
    "SELECT 1 + n, k, s FROM r": True,
    "SELECT n - 1, k, s FROM r": True,
    "SELECT n - -1, k, s FROM r": True,
    "SELECT CAST(n + 1 AS INT), k, s FROM r": True,
    "SELECT n, k, s || 'b' FROM r": True,
    "SELECT n, k, concat('b', s) FROM r": True,
    "SELECT n + 1, k, s FROM r WHERE n > 0": True,
    "SELECT n + 1, k, s FROM r WHERE 0 < n AND n + 1 >= 1": True,
    "SELECT n - 1, k, s FROM r WHERE n < 100": True,
    "SELECT m + 1, k, s FROM (SELECT n AS m, k, s FROM r) AS x": True,
    "SELECT n + 1, k, s FROM r WHERE n < 100": False,
    "SELECT n + 1, k, s FROM r WHERE 100 >= n": False,
    "SELECT n + 1, k, s FROM r WHERE n + 1 <= 100": False,
    "SELECT n + 1, k, s FROM r WHERE n BETWEEN 1 AND 50": False,
    "SELECT n + 1, k, s FROM r WHERE n <> 30": False,
    "SELECT n - 1, k, s FROM r WHERE n > -100": False,
    "SELECT n + 1, k - 1, s FROM r WHERE k > 0": False,
    "SELECT n, k, s || 'b' FROM r WHERE length(s) < 5": False,
    "SELECT (n + 1) % 7, k, s FROM r": False,
    "SELECT least(n + 1, 9), k, s FROM r": False,
    "SELECT n + 0, k, s FROM r": False,
    "SELECT n, k, s FROM r": False,
    "SELECT m + 1, k, s FROM (SELECT n AS m, k, s FROM r WHERE n < 9) AS x": False,
    "SELECT r.n + 1, r.k, r.s FROM r JOIN edge ON edge.a = r.n": False,
}


@pytest.mark.parametrize("limit", ["", " ORDER BY n LIMIT 10"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_never_ends_is_refused_when_it_is_made(step: str, limit: str) -> None:
    db = connect()
    db.sql(EDGE)
    query = f"WITH RECURSIVE r(n, k, s) AS (SELECT 1, 5, 'a' UNION {step}) SELECT n, k, s FROM r{limit}"
    if not STEPS[step]:
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert db.verify()
        return
    for text in (query, f"CREATE MATERIALIZED VIEW v AS {query}"):
        with pytest.raises(EndlessLoop, match=r'recursive relation "r" never ends: .* in every round') as found:
            db.sql(text)
        assert "inside of the recursion" in str(found.value.hint)
    assert not db.views()


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_a_query_may_say_how_many_steps_it_takes_at_most(union: str) -> None:
    """As in Spark, whose last step is the one that finds nothing."""
    db = connect()
    numbers = f"(n) MAX RECURSION LEVEL {{}} AS (SELECT 1 {union} SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r"
    assert sorted(db.sql(f"WITH RECURSIVE r {numbers.format(5)}").rows()) == [(n,) for n in range(1, 6)]
    with pytest.raises(EndlessLoop, match="after 5 iterations"):
        db.sql(f"WITH RECURSIVE r {numbers.format(4)}")
    with pytest.raises(EverviewError, match="in a kept view") as refused:
        db.sql(f"CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r {numbers.format(5)}")
    assert "count them in a column" in str(refused.value.hint)
    with pytest.raises(EverviewError, match="syntax error"):
        db.sql(f"WITH RECURSIVE r {numbers.format('many')}")


def test_bags_that_never_end_are_refused() -> None:
    """Also under UNION ALL, where every row counts."""
    query = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r {}) SELECT n FROM r ORDER BY n LIMIT 3"
    with pytest.raises(EndlessLoop, match="a LIMIT on its result does not end it"):
        connect().sql(query.format(""))
    assert connect().sql(query.format("WHERE n < 100")).rows() == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("rules", "refused"),
    {
        "p(0). p(x + 1) :- p(x).": True,
        'p("a"). p(cat(x, "b")) :- p(x).': True,
        "p(0). p(x + 1) :- p(x), x > 0.": True,
        "p(0). p(x + 1) :- p(x), x < 5.": False,
        "p(0). p((x + 1) % 5) :- p(x).": False,
        "p(0, 3). p(x + 1, y - 1) :- p(x, y), y > 0.": False,
    }.items(),
)
def test_rules_that_never_end_are_refused(rules: str, refused: bool) -> None:
    db = connect()
    if not refused:
        db.datalog(rules)
        assert db.verify()
        return
    with pytest.raises(EndlessLoop, match='recursive relation "p" never ends'):
        db.datalog(rules)
    assert not db.rules()


# -- at work


def _cycle(bounds: LoopBounds) -> ev.Database:
    db = connect(loops=bounds)
    db.sql(f"{EDGE}; {LENGTHS}")
    db.apply({"edge": [((1, 2), 1)]})
    return db


@pytest.mark.parametrize(
    ("bounds", "message", "hint"),
    [
        (LoopBounds(rounds=40), "after 40 iterations", "rounds=…"),
        (LoopBounds(rows=100), "traces have grown by 10", "rows=…"),
        (LoopBounds(memory=4_000), "rows, 0 MB", "memory=…"),
    ],
)
def test_each_bound_ends_a_loop_and_leaves_everything_as_it_was(bounds: LoopBounds, message: str, hint: str) -> None:
    db = _cycle(bounds)
    with pytest.raises(EndlessLoop, match=r"loop r has not ended [\s\S]*\n  in view lengths\n") as found:
        db.apply({"edge": [((2, 1), 1)]})
    assert message in str(found.value)
    assert hint in str(found.value.hint)
    assert db.view("lengths").rows() == [(1, 2, 1)]
    assert db.verify()
    db.apply({"edge": [((2, 3), 1)]})
    assert sorted(db.view("lengths").rows()) == [(1, 2, 1), (1, 3, 2), (2, 3, 1)]
    assert db.verify()


def test_a_view_that_cannot_be_filled_within_bounds_is_not_made() -> None:
    db = connect(loops=LoopBounds(rows=1_000))
    db.sql(EDGE)
    db.apply({"edge": [((n, n + 1), 1) for n in range(200)]})
    with pytest.raises(EndlessLoop, match="has not ended"):
        db.sql(PATHS)
    with pytest.raises(EndlessLoop):
        db.sql(PATHS.split(" AS ", 1)[1])
    assert not db.views()
    db.apply({"edge": [((n, n + 1), -1) for n in range(5, 200)]})
    db.sql(PATHS)
    assert len(db.view("paths").rows()) == 15


def test_a_loop_that_makes_no_values_may_take_longer() -> None:
    """A chain of 200 takes 200 rounds, and would never go on for ever."""
    db = connect(loops=LoopBounds(rounds=25))
    db.sql(f"{EDGE}; CREATE TABLE root (a BIGINT NOT NULL)")
    db.datalog("reached(x) :- root(x). reached(y) :- reached(x), edge(x, y).")
    db.apply({"edge": [((n, n + 1), 1) for n in range(200)], "root": [((0,), 1)]})
    assert len(db.view("reached").rows()) == 201
    with pytest.raises(EndlessLoop, match="loop reached has not ended after 250 iterations"):
        db.apply({"edge": [((n, n + 1), 1) for n in range(200, 300)]})
    assert len(db.view("reached").rows()) == 201


def _doubling(how: Callable[[Circuit], Circuit] = lambda c: c, **options: Any) -> Embedded:
    """A child by hand, whose rows double with every iteration."""
    circuit = Circuit()
    start = circuit.source("start", "n BIGINT NOT NULL")
    loop = circuit.child("doubling")
    number, again = loop.feedback(start.schema)
    twice, more = (number.map(lambda n, k=k: pc.add(pc.multiply(n, 2), k), start.schema) for k in (0, 1))
    numbers = (loop.enter(start) + twice + more).distinct()
    again(numbers)
    loop.leave(numbers).sink("number")
    return Embedded(how(circuit), **options)


@pytest.mark.parametrize("as_is", [False, True])
def test_growth_ends_a_loop_long_before_its_rounds_do(as_is: bool) -> None:
    run = _doubling(loops=LoopBounds(rows=50_000), as_is=as_is)
    with pytest.raises(EndlessLoop, match=r"doubling has not ended after 1\d iterations[\s\S]*\n  in view number\n"):
        run.tick({"start": [((1,), 1)]})
    assert run.epoch == 0
    assert run.view("number").rows() == []


def test_the_environment_sets_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_LOOP_ROUNDS", "7")
    db = _cycle(LoopBounds.given())
    assert db._core.run.bounds == LoopBounds(rounds=7)
    with pytest.raises(EndlessLoop, match="after 7 iterations"):
        db.apply({"edge": [((2, 1), 1)]})
    monkeypatch.setenv("EVERVIEW_LOOP_MEMORY", "much")
    with pytest.raises(EverviewError, match="EVERVIEW_LOOP_MEMORY is 'much', and no number"):
        connect()


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"rows": -1}, {"memory": 1.5}, {"rounds": True}, {"rows": None}])
def test_bounds_are_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(EverviewError, match=f"the {next(iter(wrong))} of a loop cannot be bounded by"):
        LoopBounds(**wrong)
