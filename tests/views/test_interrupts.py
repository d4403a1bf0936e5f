"""An exception at any line of a shape that takes a change: its listeners are told the difference, once, afterwards."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

import everview as ev
from everview.errors import ListenerError
from everview.sources.memory import Memory
from everview.views import OrderedView, Related, ScalarView, Shape, TableView
from torture.every_line import Passed, Place, RaiseAt
from torture.interrupts import SOURCE, traced

ALL = "views/", "listening/", "orders/"
TAKING = "views/bag.py", "views/ordered.py", "views/table.py", "views/level.py", "orders/"


class Told:
    """The rows that a listener of a shape makes of what it is told."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.rows, self.epochs = shape, Counter(dict(shape.contents())), []
        shape.subscribe(self)

    def __call__(self, changes: Any, epoch: int) -> None:
        assert not changes.snapshot, "a difference"
        assert epoch not in self.epochs, "told once"
        self.epochs.append(epoch)
        for row, weight in changes.net.values():  # no line that could be interrupted
            self.rows[row] += weight

    def right(self) -> bool:
        return {row: n for row, n in self.rows.items() if n} == dict(self.shape.contents())


def shapes_of(db: ev.Database) -> list[Shape]:
    best = OrderedView(db.view("v"), "n desc", limit=2)
    tree = db.view("v").tree(Related("same", "v", on=("n", "n"), by="id"), by="n")
    rest = OrderedView(db.view("v"), "n", offset=1)
    return [TableView(db.view("v")), best, TableView(best), ScalarView(db.view("total")), tree, rest]


@pytest.mark.parametrize(("error", "parts"), [(KeyboardInterrupt, ALL), (MemoryError, ALL), (ArithmeticError, TAKING)])
def test_every_line_of_a_change(error: type[BaseException], parts: tuple[str, ...]) -> None:
    """The last kind of error stands for a shape's own, after which others go on without it."""
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(n) AS total FROM t")
    db.apply({"t": [((n, n % 4), 1) for n in range(6)]})
    shapes = shapes_of(db)
    told = [Told(shape) for shape in shapes]
    last = 5

    def act() -> None:
        db.apply({"t": [((last, last % 4), -1), ((last + 1, (last + 1) % 4), 1)]})

    passed = Passed()
    traced(passed, act)
    places = [
        Place(*line, 1)
        for line in sorted(passed.lines)
        if line[0].startswith(tuple(f"{SOURCE}/{part}" for part in parts))
    ]
    assert len(places) > 80
    for place in places:
        last = max(row[0] for row in db.view("v").rows())
        raising = RaiseAt(place, error)
        with suppress(error, ListenerError):
            traced(raising, act)
        assert raising.raised, place
        ids = {row[0] for row in shapes[0]}
        assert (last in ids) != (last + 1 in ids), "as it was, or as it is"
        with suppress(ListenerError):
            db.apply({"t": [((-len(ids), last), 1)]})
        held = dict(db.view("v").contents())
        assert dict(shapes[0].contents()) == held, place
        assert all(each.right() for each in told), place
        assert sorted(shapes[1].rows()) == sorted(sorted(held, key=lambda row: (-row[1], row))[:2]), place
        assert shapes[3].value == sum(row[1] for row in held), place
        assert len(shapes[4]) == len(held), place


@pytest.mark.parametrize(
    ("error", "parts"),
    [(KeyboardInterrupt, (*ALL, "runtimes/pull/")), (MemoryError, TAKING), (ArithmeticError, TAKING)],
)
def test_queries_over_sources_that_are_not_kept(error: type[BaseException], parts: tuple[str, ...]) -> None:
    db = ev.connect()
    db.attach("t", Memory("id BIGINT, n BIGINT", "id", [(n, n % 4) for n in range(6)]), keep=False)
    shapes = [db.query("t").materialize(), db.query("t").order_by("n", "desc").order_by("id").limit(2).materialize()]
    told = [Told(shape) for shape in shapes]
    last, change = 5, 10

    def act() -> None:
        db.apply({"t": [((last, last % 4), -1), ((last + 1, (last + 1) % 4), 1)]})

    passed = Passed()
    traced(passed, act)
    ours = tuple(f"{SOURCE}/{part}" for part in parts)
    places = [Place(*line, 1) for line in sorted(passed.lines) if line[0].startswith(ours)]
    assert len(places) > 30
    for place in places:
        last = max(row["id"] for row in db.query("t").run() if row["id"] < 1000)
        with suppress(error, ListenerError):
            traced(RaiseAt(place, error), act)
        change += 1
        with suppress(ListenerError):
            db.apply({"t": [((1000 + change, change), 1)]})
        held = {(row["id"], row["n"]) for row in db.query("t").run()}
        assert {row for row, _ in shapes[0].contents()} == held, place
        assert all(each.right() for each in told), place
        assert [row["n"] for row in shapes[1].rows()] == sorted((row[1] for row in held), reverse=True)[:2], place
