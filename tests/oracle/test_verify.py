"""Views verified: what agrees, what is missing or too much, and how it is told."""

from __future__ import annotations

import dataclasses
import math
import random
from datetime import UTC, datetime
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given, settings

import everview as ev
from everview.circuit import Circuit
from everview.errors import EverviewError, SchemaError, UnknownName, VerificationFailed
from everview.oracle.plans import Evaluation
from everview.runtimes.embedded import Embedded
from everview.types import Id, Symbol
from everview.verify import Verdict, verify
from everview.zset import ZSet
from everview.zset.batch import Batch
from oracle.cases import Case
from recursion.programs import PROGRAMS, Program
from strategies import cases

ORDERS = "customer STRING, amount BIGINT NOT NULL"
HELD = {("Ada", 5): 1, ("Ada", 1): 2, ("Bob", 7): 1, (None, 1): 1}
TOTALS = {("Ada", 7): 1, ("Bob", 7): 1, (None, 1): 1}


def query() -> Circuit:
    circuit = Circuit()
    orders = circuit.source("orders", ORDERS)
    orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    orders.select("customer").sink("customers")
    circuit.source("unused", "n BIGINT").sink("copy")
    return circuit


def asked(totals: dict[Any, int]) -> Verdict:
    return verify(query(), {"orders": Batch.of(ORDERS, HELD.items())}, {"totals": batch(totals)})


def batch(totals: dict[Any, int]) -> Batch:
    return Batch.of("customer STRING, total BIGINT NOT NULL", list(totals.items()))


def test_views_that_agree() -> None:
    verdict = asked(TOTALS)
    assert verdict
    assert verdict.different == ()
    assert verdict["totals"].agree
    assert (verdict["totals"].rows, verdict["totals"].expected) == (3, 3)
    assert verdict.seconds > 0
    assert verdict.raise_if_different() is verdict
    assert str(verdict).startswith("1 view verified, in ")
    assert "totals: 3 rows, as it should be" in str(verdict)


def test_rows_that_are_missing_and_rows_too_many() -> None:
    verdict = asked({("Ada", 7): 1, ("Bob", 6): 1, ("Eve", 1): 3})
    totals = verdict["totals"]
    assert not verdict
    assert not totals
    assert verdict.different == ("totals",)
    assert (totals.missing.count, totals.extra.count) == (2, 2)
    assert totals.missing.examples == (((None, 1), 1), (("Bob", 7), 1))
    assert totals.extra.examples == ((("Bob", 6), 1), (("Eve", 1), 3))
    assert str(verdict).splitlines()[1:] == [
        "totals: 3 rows, and should be 3",
        "  lacks 2 rows",
        "    (None, 1)",
        "    ('Bob', 7)",
        "  has too many: 2 rows",
        "    ('Bob', 6)",
        "    ('Eve', 1) × 3",
    ]
    with pytest.raises(VerificationFailed, match=r"1 of 1 views differ[^$]*lacks 2 rows[^$]*hint: ") as raised:
        verdict.raise_if_different()
    assert isinstance(raised.value, EverviewError)


def test_weights_count() -> None:
    view = Batch.of("customer STRING", [(("Ada",), 5), (("Bob",), -1), ((None,), 1)])
    found = verify(query(), {"orders": ZSet(HELD)}, {"customers": view})["customers"]
    assert found.extra.examples == ((("Ada",), 2),)
    assert found.missing.examples == ((("Bob",), 2),)


def test_only_a_few_examples_are_shown() -> None:
    totals = asked({(f"c{n:02}", n): 1 for n in range(20)})["totals"]
    assert totals.extra.count == 20
    assert [row for row, _ in totals.extra.examples] == [(f"c{n:02}", n) for n in range(5)]
    assert "    … and 15 more" in str(totals).splitlines()


def test_html_is_escaped() -> None:
    html = asked({("<b>", 1): 1})._repr_html_()
    assert "<b>1 of 1 views differ</b>" in html
    assert "+ (&#x27;&lt;b&gt;&#x27;, 1)" in html
    assert "✗" in html
    assert "✓" in asked(TOTALS)._repr_html_()


def test_a_verdict_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked(TOTALS).seconds = 0.0  # type: ignore[misc]


def test_only_what_is_asked_for_is_computed() -> None:
    circuit = query()
    circuit.stream(0).delay().sink("late")
    assert verify(circuit, {"orders": ZSet(HELD)}, {"totals": batch(TOTALS)})


def test_nothing_is_taken_for_empty() -> None:
    views = {"totals": batch(TOTALS)}
    with pytest.raises(UnknownName, match='source "orders" were not given'):
        verify(query(), {}, views)
    with pytest.raises(UnknownName, match='source "order" does not exist'):
        verify(query(), {"order": ZSet()}, views)
    with pytest.raises(UnknownName, match='view "total" does not exist'):
        verify(query(), {"orders": ZSet()}, {"total": batch(TOTALS)})


def test_rows_of_another_circuit_are_refused() -> None:
    other = Batch.of("customer STRING, total DOUBLE", [(("Ada", 7.0), 1)])
    with pytest.raises(SchemaError, match="view totals"):
        verify(query(), {"orders": ZSet(HELD)}, {"totals": other})
    with pytest.raises(SchemaError, match="source orders"):
        verify(query(), {"orders": other}, {"totals": batch(TOTALS)})


def test_floats_are_compared_to_the_last_bit() -> None:
    circuit = Circuit()
    circuit.source("t", "x DOUBLE").aggregate([], s=("sum", "x")).sink("v")
    rows = ZSet({(0.1,): 10})
    assert verify(circuit, {"t": rows}, {"v": Batch.of("s DOUBLE", [((1.0,), 1)])})
    assert not verify(circuit, {"t": rows}, {"v": Batch.of("s DOUBLE", [((math.nextafter(1, 2),), 1)])})


EVERYTHING = (
    "b BOOLEAN, i INTEGER, n BIGINT, f FLOAT, x DOUBLE, d DATE, t TIMESTAMP, s STRING, r BINARY, y SYMBOL, id ID, "
    "z ANY, w DECIMAL(30,4), l ARRAY<STRING>, p STRUCT<k: BIGINT, v: ARRAY<DOUBLE>>, u ARRAY<TIMESTAMP>"
)
NOON = datetime(2026, 1, 31, 12, 0, 0, 1, UTC)
FULL = (
    *(True, 1, 2**62, 0.5, math.nan, NOON.date(), NOON, "ä", b"\x00", Symbol("a"), Id("i")),
    *((1, 1.0, True, "x", None, math.nan, NOON, NOON.date(), b"b", Symbol("s"), Id("q")), Number("1.5000")),
    *(["a", None], {"k": 1, "v": [math.nan, -0.0, None]}, [NOON, None]),
)


def test_values_of_every_type() -> None:
    circuit = Circuit()
    rows = circuit.source("t", EVERYTHING)
    names = rows.schema.names
    rows.sink("copy")
    rows.join(rows, "x", select=["left.z", "right.p"]).sink("pairs")
    rows.aggregate([], **{f"l{n}": ("min", n) for n in names}, **{f"g{n}": ("max", n) for n in names}).sink("ends")
    rows.aggregate(["z"], **{f"a{n}": ("array", n, {"nulls": "keep"}) for n in names}).sink("lists")
    rows.top(3, ["z desc", "p", "l desc"]).sink("top")
    rows.map(lambda *row: row[6:12], "t TIMESTAMP, s STRING, r BINARY, y SYMBOL, i ID, z BINARY").sink("columns")
    rows.map(lambda *row: row[6:11], "t TIMESTAMP, s STRING, r BINARY, y SYMBOL, i ID", by_row=True).sink("by row")
    nested = "l ARRAY<STRING>, p STRUCT<k: BIGINT, v: ARRAY<DOUBLE>>, u ARRAY<TIMESTAMP>"
    rows.map(lambda *columns: columns, nested, columns=["l", "p", "u"]).sink("nested")
    rows.map(lambda n, s: [s, n], "z ANY", columns=["n", "s"], by_row=True).sink("anything")
    run = Embedded(circuit)
    kinds: list[Any] = [1, 1.0, True, "x", -2.5, math.inf, math.nan, None, (), (2,), {"k": 1}, Number(2)]
    others = [tuple(z if n == "z" else v for n, v in zip(names, FULL, strict=True)) for z in kinds]
    found = [(FULL, 2), ((None,) * len(names), 1), *((row, 1) for row in others)]
    run.tick({"t": found})
    held = Batch.of(EVERYTHING, found)
    verdict = verify(circuit, {"t": held}, {name: view.contents() for name, view in run.views.items()})
    assert verdict, str(verdict)
    again = verify(circuit, {"t": held.to_zset()}, {name: v.contents() for name, v in run.views.items()})
    assert again, str(again)


@settings(max_examples=25)
@given(case=cases(max_ticks=3))
def test_what_runs_is_verified_and_what_was_changed_is_not(case: Case) -> None:
    circuit = case.build()
    run = Embedded(circuit)
    for tick in case.ticks:
        run.tick(tick)
    held = case.sums()[-1]
    sources = {name: Batch.of(schema, list(held[name])) for name, schema in case.sources.items()}
    views = {name: view.contents() for name, view in run.views.items()}
    verify(circuit, sources, views).raise_if_different()
    for name, view in views.items():
        if len(view):
            (row, weight) = next(iter(view))
            verdict = verify(circuit, sources, {name: view + view})
            assert verdict[name].missing.count + verdict[name].extra.count == len(view), (row, weight)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_recursive_views(program: Program) -> None:
    rng = random.Random(program.name)
    circuit = program.build()
    run = Embedded(circuit)
    held = {name: ZSet({draw(rng, 8): 1 for _ in range(12)}) for name, draw in program.draw.items()}
    run.tick({name: list(rows) for name, rows in held.items()})
    views = {name: view.contents() for name, view in run.views.items()}
    assert verify(circuit, held, views)
    wrong = {name: -view for name, view in views.items() if len(view)}
    assert set(verify(circuit, held, wrong).different) == set(wrong)


def test_a_join_by_equal_columns_does_not_try_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    value = Evaluation._value

    def counted(self: Evaluation, *given: Any) -> Any:
        tried.append(1)
        return value(self, *given)

    monkeypatch.setattr(Evaluation, "_value", counted)
    db = ev.connect()
    db.sql("CREATE TABLE a (k BIGINT, x STRING); CREATE TABLE b (k BIGINT, y STRING)")
    for kind in ("", "LEFT", "FULL"):
        db.sql(f"CREATE MATERIALIZED VIEW j{kind} AS SELECT a.k, b.y FROM a {kind} JOIN b ON a.k = b.k AND a.x <> b.y")
    db.apply({"a": [((k % 300 or None, str(k)), 1) for k in range(400)], "b": [((k, "7"), 1) for k in range(300)]})
    assert db.verify()
    assert 0 < len(tried) < 10_000
