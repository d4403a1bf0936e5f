"""Recursion through min and max, under inserts and deletes, against algorithms that know nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview import connect
from everview.circuit import Circuit
from everview.errors import CircuitError, EndlessLoop, SqlError
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.oracle.plans import evaluate
from everview.plan.nodes import Aggregate, Recursive, Reference, Scan
from everview.runtimes.embedded import Embedded
from everview.scalars.expressions import AggregateCall
from everview.types import BIGINT
from everview.zset import ZSet
from recursion.extremes import CASES, EDGE, FOUND, ROOT, Case

NODE = st.integers(0, 5)
EDGES = st.tuples(NODE, NODE, st.integers(0, 4))
TICK = st.tuples(st.lists(EDGES, max_size=6), st.lists(NODE, max_size=1))


def _run(case: Case, shards: int = 1) -> Embedded:
    circuit = Circuit()
    relations = {"edge": circuit.source("edge", EDGE), "root": circuit.source("root", ROOT)}
    lower(optimize(case.plan), relations, circuit).sink("best")
    return Embedded(circuit, shards=shards)


def _toggled(held: set, rows: list) -> Iterator[tuple[tuple, int]]:
    """Every row comes if it is not there, and goes if it is."""
    for row in (row if isinstance(row, tuple) else (row,) for row in rows):
        yield row, -1 if row in held else 1
        held ^= {row}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@given(ticks=st.lists(TICK, min_size=1, max_size=6), shards=st.sampled_from((1, 3)))
@settings(max_examples=25, deadline=None)
def test_the_best_value_stays_the_best(case: Case, ticks: list, shards: int) -> None:
    run = _run(case, shards)
    edges, roots = set[tuple[int, int, int]](), set[tuple[int]]()
    for more, others in ticks:
        run.tick({"edge": list(_toggled(edges, more)), "root": list(_toggled(roots, others))})
        wanted = ZSet.of([((node, value), 1) for node, value in case.meaning(edges, [r for (r,) in roots]).items()])
        assert run.view("best").contents().to_zset() == wanted
        given = {"edge": [(e, 1) for e in edges], "root": [(r, 1) for r in roots]}
        assert evaluate(case.plan, given) == wanted


def test_a_chain_that_breaks_is_not_counted_up() -> None:
    """The last node of a ring that has lost its root goes at once: distances do not grow for ever."""
    run = _run(CASES[0])
    ring = [((n, (n + 1) % 30, 1), 1) for n in range(30)]
    run.tick({"edge": [*ring, ((100, 0, 1), 1)], "root": [((100,), 1)]})
    assert len(run.view("best").rows()) == 31
    out = run.tick({"edge": [((100, 0, 1), -1)]})["best"]
    assert len(out) == 30
    assert run.view("best").rows() == [(100, 0)]


def test_a_cycle_that_betters_itself_for_ever_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_LOOP_ROUNDS", "50")
    run = _run(CASES[0])
    run.tick({"edge": [((1, 2, 1), 1)], "root": [((1,), 1)]})
    with pytest.raises(EndlessLoop, match="loop best has not ended after 50 iterations"):
        run.tick({"edge": [((2, 1, -3), 1)]})
    assert run.epoch == 1
    assert sorted(run.view("best").rows()) == [(1, 0), (2, 1)]
    run.tick({"edge": [((2, 3, 5), 1)]})
    assert sorted(run.view("best").rows()) == [(1, 0), (2, 1), (3, 6)]


@pytest.mark.parametrize("function", ["sum", "count"])
def test_other_aggregates_are_refused(function: str) -> None:
    edge, known = Scan("edge", EDGE), Reference("r", FOUND)
    of = AggregateCall(function, (known.column(1),), False, None, (), BIGINT, False)
    plan = Recursive((("r", Aggregate(known, (known.column(0),), (of,), ("node", "value"))),), known)
    circuit = Circuit()
    with pytest.raises(CircuitError, match="reads itself through an aggregate"):
        lower(plan, {"edge": circuit.source("edge", edge.schema)}, circuit)


def test_sql_goes_on_refusing() -> None:
    db = connect()
    db.sql("CREATE TABLE edge (a BIGINT, b BIGINT, w BIGINT)")
    with pytest.raises(SqlError, match="through an aggregate"):
        db.sql(
            """CREATE MATERIALIZED VIEW best AS WITH RECURSIVE d(n, v) AS (
                 SELECT a, 0 FROM edge UNION SELECT b, MIN(v + w) FROM d JOIN edge ON n = a GROUP BY b
               ) SELECT * FROM d"""
        )
