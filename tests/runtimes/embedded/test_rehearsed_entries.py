"""Entries of aggregates in a rehearsal: their places are numbers of sums, which nothing may make up."""

from __future__ import annotations

import pytest

import everview as ev
from everview.circuit.nodes import Apply
from everview.operators.aggregate import AggregateIncremental
from everview.runtimes.embedded import rehearse
from everview.types.words import Matrix


def _rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[rehearse.Rehearsal]:
    rehearsals: list[rehearse.Rehearsal] = []

    class Recorded(rehearse.Rehearsal):
        def __init__(self, program: rehearse.Program) -> None:
            super().__init__(program)
            rehearsals.append(self)

    monkeypatch.setattr(rehearse, "Rehearsal", Recorded)
    return rehearsals


def _places(rehearsal: rehearse.Rehearsal) -> list[tuple[Matrix, int]]:
    """The places of every aggregate's entries, and how many the aggregate has."""
    found: list[tuple[Matrix, int]] = []
    for node in rehearsal.program.circuit:
        if isinstance(node, Apply) and isinstance(node.operator, AggregateIncremental):
            entries = rehearsal.cells.get(node.inputs[0] or 0)
            if entries is not None and len(entries):
                found.append((entries[:, -2], 1 + max(slot.base for slot in node.operator.slots)))
    return found


@pytest.mark.parametrize("shards", [None, 2, 3])
def test_an_aggregate_over_nothing_gets_no_places_that_it_does_not_have(
    monkeypatch: pytest.MonkeyPatch, shards: int | None
) -> None:
    rehearsals = _rehearsed(monkeypatch)
    db = ev.connect() if shards is None else ev.connect(shards=shards)
    db.sql("CREATE TABLE t (a INTEGER, b BIGINT)")
    db.query("t").not_exists(db.query("t"), on=("b", "b")).materialize("none")  # whatever the rows are
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, max(b) AS most, count(*) AS n FROM none GROUP BY a")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT l.a, (SELECT max(r.a) FROM none r WHERE r.a = l.a) AS s FROM t l")
    for places, count in (pair for rehearsal in rehearsals for pair in _places(rehearsal)):
        assert places.max() < count
    db.sql("INSERT INTO t VALUES (1, 2)")
    assert db.view("w").rows() == [(1, None)]
