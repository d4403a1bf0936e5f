"""The compiled tick: what runs in it, what is returned to Python, and that neither shows in the answers."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.circuit import Circuit, incrementalize
from everview.errors import EverviewError, WeightOverflow
from everview.kernels import levels
from everview.kernels.merge import merge_some
from everview.runtimes.compiled import Compiled, Patience
from everview.runtimes.embedded import Embedded
from everview.traces import slots
from everview.traces.spine import SHARE


def _lines(db: ev.Database, view: str, *names: str, **options: bool) -> list[str]:
    return [line for line in db.explain(view, **options).splitlines() if any(f" {name}(" in line for name in names)]


@pytest.fixture
def shop() -> ev.Database:
    db = ev.connect()
    db.sql(
        """CREATE TABLE customer (id BIGINT PRIMARY KEY, country STRING);
        CREATE TABLE sale (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, amount DECIMAL(12, 2) NOT NULL);
        CREATE MATERIALIZED VIEW total AS
            SELECT country, sum(amount) AS amount, max(amount) AS most, count(*) AS n
            FROM sale JOIN customer ON customer = customer.id WHERE amount > 1 GROUP BY country;
        CREATE MATERIALIZED VIEW named AS SELECT upper(country) AS c FROM customer WHERE country LIKE 'a%';
        CREATE MATERIALIZED VIEW path AS WITH RECURSIVE r(a, b) AS
            (SELECT id, customer FROM sale UNION SELECT r.a, s.customer FROM r JOIN sale s ON r.b = s.id)
            SELECT * FROM r;
        CREATE MATERIALIZED VIEW circle AS
            SELECT count(*) AS n FROM sale a JOIN sale b ON a.customer = b.id
            JOIN sale c ON b.customer = c.id AND c.customer = a.id"""
    )
    return db


def test_explain_says_where_nodes_run(shop: ev.Database) -> None:
    shop.apply({"customer": [((1, "at"), 1)], "sale": [((1, 1, "2.50"), 1)]})
    assert all("compiled, call 1" in line for line in _lines(shop, "total", "JoinIncremental", "AggregateIncremental"))
    assert all("in Python: the function" in line for line in _lines(shop, "named", "Filter", "Map"))
    assert all("compiled, one call" in line for line in _lines(shop, "path", "child"))
    assert all("compiled, call 1" in line for line in _lines(shop, "circle", "MultijoinIncremental"))


def test_as_of_joins_are_compiled(shop: ev.Database) -> None:
    shop.sql(
        """CREATE TABLE rate (customer BIGINT NOT NULL, since BIGINT NOT NULL, percent BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW rated AS SELECT s.id, percent FROM sale s
            ASOF LEFT JOIN rate r ON s.customer = r.customer AND s.id >= r.since"""
    )
    shop.apply({"sale": [((i, i % 2, "2.50"), 1) for i in range(6)]})
    shop.apply({"rate": [((0, 2, 5), 1), ((1, 1, 6), 1)]})
    shop.apply({"rate": [((0, 2, 5), -1), ((0, 3, 7), 1)], "sale": [((5, 1, "2.50"), -1)]})
    rated = shop.view("rated").to_arrow()
    rows = zip(rated["id"].to_pylist(), rated["percent"].to_pylist(), strict=True)
    assert sorted(rows) == [(0, None), (1, 6), (2, None), (3, 6), (4, 7)]
    assert all("compiled, call 1" in line for line in _lines(shop, "rated", "AsofIncremental"))
    assert shop.verify()


def test_times_are_taken_when_asked_for(shop: ev.Database) -> None:
    rows = {"customer": [((1, "at"), 1)], "sale": [((1, 1, "2.50"), 1)]}
    shop.apply(rows)
    assert "µs" not in _lines(shop, "total", "AggregateIncremental")[0]
    assert "times are taken" in shop.explain("total", profile=True)
    shop.apply({"sale": [((2, 1, "3.50"), 1)]})
    assert "µs" in _lines(shop, "total", "AggregateIncremental")[0]
    assert "times are taken" not in shop.explain("total")
    assert shop.verify()


def test_levels_become_batches_and_nothing_is_lost(shop: ev.Database) -> None:
    for trace, _, _ in shop._core.run.state:
        trace.past.ledger[levels.LIMIT] = 5
    rng = random.Random(3)
    held: dict[int, tuple[int, int, str]] = {}
    shop.apply({"customer": [((i, f"a{i % 3}"), 1) for i in range(5)]})
    for tick in range(120):
        changes: list[tuple[tuple[int, int, str], int]] = []
        for _ in range(rng.randrange(4)):
            key = rng.randrange(12)
            if key in held:
                changes.append((held.pop(key), -1))
            else:
                held[key] = (key, rng.randrange(5), f"{rng.randrange(9)}.25")
                changes.append((held[key], 1))
        shop.apply({"sale": changes})
        if tick % 20 == 0:
            assert shop.verify()
    assert shop.verify()
    assert len(shop.table("sale")) == len(held)


def test_merging_that_is_owed_is_done_by_the_next_ticks() -> None:
    """Small ticks pay in shares, each when it is published, until nothing is owed; one trace after another."""
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
    for view in range(4):
        db.sql(f"CREATE MATERIALIZED VIEW m{view} AS SELECT v % {view + 7} AS g, min(k) AS s FROM t GROUP BY 1")
    db.apply({"t": [((k, k), 1) for k in range(-9_000, 0)]})
    spines = [trace.past for trace, _, _ in db._core.run.state]
    read, owing = [0], list[int]()

    def watched(*arguments: Any) -> Any:
        read.append(arguments[-1])
        return merge_some(*arguments)

    with patch.object(slots, "merge_some", watched):
        for tick in range(450):
            read.clear()
            db.apply({"t": [((tick * 10 + i, tick * i), 1) for i in range(10)]})
            assert sum(read) <= 4 * SHARE, "two merges of a trace, and of another whose levels became a batch"
            owing.append(sum(spine.owes > 0 for spine in spines))
    assert max(owing) > 2, "some tick has filled the levels of several traces"
    assert not owing[-1]
    assert db.verify()


def test_a_failure_behind_compiled_nodes_leaves_all_as_it_was(shop: ev.Database) -> None:
    shop.sql("CREATE MATERIALIZED VIEW odd AS SELECT id, 1 / (amount - 7) AS q FROM sale")
    shop.apply({"customer": [((1, "at"), 1)], "sale": [((1, 1, "2.50"), 1)]})
    before = {view: shop.view(view).to_arrow() for view in ("total", "path", "odd")}
    with pytest.raises(EverviewError, match="zero"):
        shop.apply({"sale": [((2, 1, "7.00"), 1)]})
    assert {view: shop.view(view).to_arrow() for view in before} == before
    shop.apply({"sale": [((3, 1, "8.00"), 1)]})
    assert shop.verify()


def test_constants_that_were_forgotten_are_known_again(shop: ev.Database) -> None:
    """The code of a text in a query is looked up once, and again after the dictionary has forgotten something."""
    shop.sql("CREATE MATERIALIZED VIEW odd AS SELECT id, 1 / (amount - 7) AS q FROM sale")
    shop.sql("CREATE MATERIALIZED VIEW far AS SELECT id FROM customer WHERE country = 'nz' OR country IN ('fj', 'ws')")
    assert all("compiled" in line for line in _lines(shop, "far", "Filter", "Where"))
    with pytest.raises(EverviewError, match="zero"):
        shop.apply({"customer": [((1, "nz"), 1)], "sale": [((2, 1, "7.00"), 1)]})
    shop.apply({"customer": [((1, "nz"), 1), ((2, "at"), 1)]})
    shop.apply({"customer": [((1, "nz"), -1)]})
    shop.vacuum()
    shop.apply({"customer": [((3, "ws"), 1), ((4, "nz"), 1), ((5, "za"), 1)]})
    assert sorted(shop.view("far").to_arrow()["id"].to_pylist()) == [3, 4]
    assert shop.verify()


def test_what_is_published_is_published_once(shop: ev.Database) -> None:
    shop.apply({"customer": [((1, "at"), 1)], "sale": [((1, 1, "2.50"), 1)]})
    compiled = shop._core.run.state.compiled
    assert isinstance(compiled, Compiled)
    compiled.publish()
    compiled.publish()
    assert shop.verify()
    assert shop.view("total").to_arrow().num_rows == 1


def test_code_that_is_not_at_hand_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        is_at_hand = False

    kernel = Kernel()
    monkeypatch.setattr(Patience, "TICKS", 3)
    assert [Patience(kernel).is_over()] == [False]
    patience = Patience(kernel)
    assert [patience.is_over() for _ in range(5)] == [False, False, False, True, True]
    kernel.is_at_hand = True
    assert Patience(kernel).is_over()


EDGES = [sign * (2**k + e) for k in (0, 25, 26, 51, 52, 59, 60, 61, 62) for e in (-1, 0, 1) for sign in (-1, 1)]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(EDGES), st.integers(1, 300)), min_size=1, max_size=6))
def test_sums_of_small_and_of_large_digits(rows: list[tuple[int, int, int]]) -> None:
    circuit = Circuit()
    source = circuit.source("t", "g BIGINT NOT NULL, v BIGINT NOT NULL, d DECIMAL(18,0) NOT NULL, e DECIMAL(5,0)")
    source.aggregate(["g"], v=("sum", "v"), d=("sum", "d"), e=("sum", "e"), n="count").sink("sums")
    run, wanted = Embedded(incrementalize(circuit)), dict[int, list[int]]()
    for g, v, weight in rows:
        d, e = v % 10**18 * (1 if v > 0 else -1), v % 10**5
        old = wanted.get(g, [0, 0, 0, 0])
        new = [total + weight * value for total, value in zip(old, (v, d, e, 1), strict=True)]
        added = {"t": [((g, v, d, e), weight)]}
        if not -(2**63) <= new[0] < 2**63:
            with pytest.raises(WeightOverflow):
                run.tick(added)
            continue
        wanted[g] = new
        change = [((g, *new), 1)] if not old[3] else [((g, *new), 1), ((g, *old), -1)]
        assert sorted(run.tick(added)["sums"], key=lambda each: -each[1]) == change


def _joined() -> Embedded:
    """A program of one piece of code, with a view that may not hold a row less often than not at all."""
    circuit = Circuit()
    sales = circuit.source("sales", "id BIGINT NOT NULL, customer BIGINT NOT NULL, amount BIGINT NOT NULL")
    customers = circuit.source("customers", "id BIGINT NOT NULL, country BIGINT NOT NULL")
    joined = sales.join(customers, ("customer", "id"), select=["country", "amount"])
    joined.aggregate(["country"], total=("sum", "amount"), n="count").sink("totals")
    joined.sink("joined")
    return Embedded(incrementalize(circuit))


_few = st.integers(0, 3)
_sales = st.lists(st.tuples(st.tuples(_few, _few, _few), st.sampled_from([-1, 1, 2])), max_size=6)
_customers = st.lists(st.tuples(st.tuples(_few, _few), st.sampled_from([-1, 1])), max_size=3)
_ticks = st.lists(
    st.fixed_dictionaries({}, optional={"sales": _sales, "customers": _customers}), min_size=3, max_size=12
)


def _outcome(run: Embedded, changes: dict[str, list[tuple[tuple[int, ...], int]]]) -> object:
    try:
        return {name: sorted(change) for name, change in run.tick(changes).items()}
    except EverviewError as error:
        return type(error), str(error)


@given(ticks=_ticks)
def test_the_straight_way_shows_and_refuses_what_the_others_do(ticks: list[dict[str, Any]]) -> None:
    straight, slow = _joined(), _joined()
    first = {"sales": [((1, 1, 1), 1)], "customers": [((1, 1), 1)]}
    assert _outcome(straight, first) == _outcome(slow, first)
    for changes in ticks:
        compiled = slow.state.compiled
        assert compiled is not None
        compiled.many = 0  # no tick is small
        assert _outcome(straight, changes) == _outcome(slow, changes)
        assert straight.epoch == slow.epoch
    for name in ("totals", "joined"):
        assert sorted(straight.view(name)) == sorted(slow.view(name))


def test_small_ticks_go_the_straight_way() -> None:
    run = _joined()
    run.tick({"customers": [((1, 1), 1)]})
    with patch.object(Compiled, "run", side_effect=AssertionError("the other way")):
        assert list(run.tick({"sales": [((1, 1, 5), 1)]})["totals"]) == [((1, 5, 1), 1)]
    with pytest.raises(WeightOverflow):
        run.tick({"sales": [((1, 1, 5), 1 << 62), ((1, 1, 5), 1 << 62)]})
    assert list(run.tick({"sales": [((1, 1, 5), -1)]})["totals"]) == [((1, 5, 1), -1)]


def test_rows_in_the_order_of_texts_go_the_straight_way() -> None:
    """Compiled code is told where the dictionary is: it moves as it grows, and it forgets what a refused tick added."""
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name STRING NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW few AS SELECT id, name FROM t ORDER BY name DESC, id LIMIT 5")
    db.apply({"t": [((-1, "m"), 1)]})
    for trace, _, _ in db._core.run.state:
        trace.past.ledger[levels.LIMIT] = 9
    rng, held = random.Random(2), {-1: "m"}
    with patch.object(Compiled, "run", side_effect=AssertionError("the other way")):
        for tick in range(150):
            gone = rng.choice(list(held))
            added = {tick * 20 + i: rng.choice("äbczß") * rng.randrange(1, 30) + str(tick) for i in range(12)}
            with pytest.raises(ev.EverviewError):
                db.apply({"t": [((tick * 20, f"zz{tick}"), 1), ((tick * 20, f"zy{tick}"), 1)]})
            db.apply({"t": [((gone, held.pop(gone)), -1), *((row, 1) for row in added.items())]})
            held |= added
            first = sorted(held.items(), key=lambda row: row[0])
            first.sort(key=lambda row: row[1].encode(), reverse=True)
            assert sorted(db.view("few").rows()) == sorted(first[:5])
    assert db.verify()


@pytest.mark.parametrize(("rows", "total"), [(1, (1, 5, 1)), (2, (1, 11, 2))])
def test_words_that_do_not_lie_one_after_the_other_arrive_as_they_are(rows: int, total: tuple[int, ...]) -> None:
    run = _joined()
    run.tick({"customers": [((1, 1), 1)]})
    wide = np.array([[1, 9, 1, 9, 5, 9, 1, 9], [2, 9, 1, 9, 6, 9, 1, 9]])
    outputs = run.advance([{run.program.circuit.sources["sales"]: wide[:rows, ::2]}], run.dictionary.mark())
    assert list(outputs["totals"]) == [(total, 1)]
