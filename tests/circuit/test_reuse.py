"""Joins read the traces of tables and of wider indexes, and give what they give with traces of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from everview import connect
from everview.circuit import Circuit, Program, incrementalize
from everview.runtimes.embedded import Embedded, runtime
from everview.runtimes.tables import Table
from oracle.cases import Case
from strategies import cases

ORDERS = "o BIGINT NOT NULL, c BIGINT NOT NULL, day BIGINT, note STRING"
LINES = "o BIGINT NOT NULL, n BIGINT NOT NULL, p BIGINT NOT NULL, price BIGINT, note STRING"
KEYS = {"orders": ("o",), "lines": ("o", "n")}


def query(*views: str) -> Circuit:
    circuit = Circuit()
    orders, lines = circuit.source("orders", ORDERS), circuit.source("lines", LINES)
    made = {
        "by order": lambda: lines.select("o", "price").join(orders.select("o", "day"), "o"),
        "narrow": lambda: lines.select("p", "price").join(orders.select("c", "day"), ("p", "c")),
        "wide": lambda: lines.select("price", "n", "p").join(orders.select("day", "c", "o"), ("p", "c")),
        "pairs": lambda: lines.select("p", "o").join(lines.select("p", "n"), "p"),
    }
    for view in views:
        made[view]().sink(view)
    return circuit


def traces(circuit: Circuit, *, reuse: bool) -> list[str]:
    """The fields of the traces of joins."""
    program = Program(incrementalize(circuit), tables=KEYS, reuse=reuse)
    kept = {program.table(name) for name in KEYS} | {program.contents(name) for name in program.circuit.sinks}
    return sorted(",".join(layout.schema.names) for node, layout in program.traces.items() if node not in kept)


def test_a_join_reads_the_trace_of_a_table_whose_key_begins_with_its_own() -> None:
    assert traces(query("by order"), reuse=False) == ["o,day", "o,price"]
    assert traces(query("by order"), reuse=True) == []


def test_of_two_indexes_by_one_key_the_wider_is_kept() -> None:
    wide = ["c,day,o", "p,price,n"]
    assert traces(query("narrow"), reuse=True) == ["c,day", "p,price"]
    assert traces(query("wide"), reuse=True) == wide
    assert traces(query("narrow", "wide"), reuse=True) == wide
    assert traces(query("narrow", "pairs", "wide"), reuse=True) == ["c,day,o", "p,o", "p,price,n"]


def test_traces_have_the_names_that_they_have_without() -> None:
    both = query("narrow", "wide", "by order")
    own, shared = (Program(incrementalize(both), tables=KEYS, reuse=reuse).fingerprint for reuse in (False, True))
    assert shared.items() < own.items()


def test_a_change_of_other_columns_is_none_for_a_join() -> None:
    circuit = query("by order")
    run = Embedded(circuit, tables={name: Table(key) for name, key in KEYS.items()}, adopt=True)
    run.tick({"orders": [((1, 2, 3, "a"), 1)], "lines": [((1, 1, 5, 7, "x"), 1), ((1, 2, 5, 8, "x"), 1)]})
    run.tick({"orders": [((1, 2, 3, "a"), -1), ((1, 2, 3, "b"), 1)]})
    program, counted = run.program, run.state.compiled
    assert counted is not None
    joins = [n for n in range(len(program.circuit)) if "JoinTrace" in program.circuit.label(n)]
    assert len(joins) == 2
    assert sum(counted.spent(n).rows for n in joins) == 2  # of the first tick


@given(case=cases())
def test_the_same_changes_come_out(case: Case) -> None:
    circuit = case.build()
    tables = {name: Table(()) for name in case.sources}
    runs = [Embedded(circuit, tables=tables, adopt=adopt) for adopt in (False, True)]
    for tick in case.ticks:
        own, shared = ({name: sorted(map(repr, batch)) for name, batch in run.tick(tick).items()} for run in runs)
        assert own == shared


VIEWS = {
    "narrow": "SELECT l.p, sum(l.price) AS s FROM lines l JOIN orders o ON l.p = o.c WHERE o.day > 1 GROUP BY l.p",
    "wide": "SELECT l.p, l.price, l.n, o.o FROM lines l JOIN orders o ON l.p = o.c",
    "by_order": "SELECT o.day, count(*) AS n FROM lines l JOIN orders o ON l.o = o.o GROUP BY o.day",
}


def rows(tick: int) -> dict[str, list[tuple[tuple[object, ...], int]]]:
    orders = [((o, o % 3, o % 4, f"{tick}"), 1) for o in range(5 * tick, 5 * tick + 5)]
    lines = [((o, n, (o + n) % 3, o * n, "x"), 1) for o in range(5 * tick, 5 * tick + 5) for n in range(3)]
    gone = rows(tick - 1) if tick else {"orders": [], "lines": []}
    return {
        "orders": orders + [(row, -1) for row, weight in gone["orders"][:2] if weight > 0],
        "lines": lines + [(row, -1) for row, weight in gone["lines"][:4] if weight > 0],
    }


def test_a_state_with_traces_of_their_own_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one in which views come and go: a trace that another view's stood for is made when that goes."""
    prepared = runtime.prepared
    monkeypatch.setattr(runtime, "prepared", lambda *args, **kwargs: prepared(*args, **{**kwargs, "reuse": False}))
    with connect(tmp_path / "old") as db:
        db.sql(f"CREATE TABLE orders ({ORDERS}, PRIMARY KEY (o)); CREATE TABLE lines ({LINES}, PRIMARY KEY (o, n))")
        for name, text in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        db.apply(rows(0))
        own = len(list(db._core.run.state))
    monkeypatch.undo()
    with connect(tmp_path / "old") as db:
        assert len(list(db._core.run.state)) == own - 3
        db.apply(rows(1))
        db.drop("wide")
        db.apply(rows(2))
    with connect(tmp_path / "old") as db:
        db.verify()
        db.sql(f"CREATE MATERIALIZED VIEW wide AS {VIEWS['wide']}")
        db.apply(rows(3))
        db.verify()
