"""As-of joins: by the times of rows against the oracle, DuckDB and pandas; by the ticks of rows against a ledger."""

from __future__ import annotations

import datetime as dt
import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empty_duckdb import empty_duckdb
from everview.circuit import Circuit, Stream, incrementalize
from everview.errors import CircuitError, HistoryWarning, SchemaError
from everview.operators.asof import AsofIncremental, Toward
from everview.operators.index import Direction, Index
from everview.operators.operator import Layout
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.traces.looking import AHEAD, BACK, Look
from everview.traces.view import Batches
from everview.types import Schema
from everview.zset import ZSet
from operators.asofs import START, WEIGHTS, cases
from operators.words import Words, indexed
from oracle.cases import Case, Tick
from oracle.ways import check

Row = tuple[Any, ...]


@given(case=cases())
def test_every_tick_leaves_what_the_oracle_says(case: Case) -> None:
    check(case, "incremental", "lifted", "3 shards", "merging by 2, slowly", "vacuumed")


@settings(max_examples=10)
@given(case=cases())
def test_what_is_kept_goes_on(case: Case) -> None:
    check(case, "reopened")


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), size=st.integers(0, 40))
def test_the_ends_of_time(seed: int, size: int) -> None:
    """Times that are further apart than a word can say."""
    ends = [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1]
    chance = random.Random(seed)
    life: list[Tick] = [{} for _ in range(3)]
    for _ in range(size):
        row = (chance.choice(ends), chance.randint(0, 1))
        chance.choice(life).setdefault(chance.choice("lr"), []).append((row, chance.choice(WEIGHTS)))
    source = "t BIGINT NOT NULL, n BIGINT NOT NULL"
    steps = [
        ["asof_join", 0, 1, [], ["t", "t"], {"direction": way.value, "tolerance": reach, "strict": strict}, picks]
        for way in Toward
        for reach in (None, 1, 2**63 - 1)
        for strict in (False, True)
        for picks in [[[0, "t"], [0, "n"], [1, "t"], [1, "n"]]]
    ]
    check(Case({"l": source, "r": source}, steps, life), "incremental")


def test_times_without_a_distance() -> None:
    """A DOUBLE has an order, NaN last, and so a row before and one after."""
    rows = [float("-inf"), -0.0, 0.1, float("inf"), float("nan")]
    options = [{"direction": way, "strict": strict} for way in ("backward", "forward") for strict in (False, True)]
    steps = [["asof_join", 0, 1, [], ["t", "t"], each, [[0, "t"], [1, "t"]]] for each in options]
    life: list[Tick] = [{"l": [((t,), 1) for t in rows]}, {"r": [((t,), 1) for t in rows]}]
    life += [{"r": [((t,), -1)]} for t in rows]
    check(Case({"l": "t DOUBLE", "r": "t DOUBLE"}, steps, life), "incremental", "3 shards")


# -- against others


def history(seed: int) -> Iterator[tuple[Tick, dict[str, set[Row]]]]:
    """Ticks in which rows come and go, each source a set, the right one with at most one row a key and time."""
    chance = random.Random(seed)
    held: dict[str, dict[Row, Row]] = {"l": {}, "r": {}}
    for _ in range(6):
        tick: Tick = {"l": [], "r": []}
        for name, rows in held.items():
            for _ in range(chance.choice([0, 1, 12])):
                key = (chance.choice("xy"), chance.randint(0, 30), *([chance.randint(0, 3)] * (name == "l")))
                old = rows.pop(key, None)
                if old is not None:
                    tick[name].append((old, -1))
                if old is None or chance.random() < 0.5:
                    rows[key] = key if name == "l" else (*key, chance.choice("abc"))
                    tick[name].append((rows[key], 1))
        yield tick, {name: set(rows.values()) for name, rows in held.items()}


SIDES = {
    "l": "k STRING NOT NULL, t BIGINT NOT NULL, n BIGINT NOT NULL",
    "r": "k STRING NOT NULL, t BIGINT NOT NULL, v STRING",
}


def joined(**options: Any) -> Embedded:
    circuit = Circuit()
    left, right = (circuit.source(name, schema) for name, schema in SIDES.items())
    left.asof_join(right, "k", at="t", **options).sink("found")
    return Embedded(circuit)


def frames(held: dict[str, set[Row]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    left = pd.DataFrame(sorted(held["l"]), columns=["k", "t", "n"]).astype({"k": "object", "t": "int64", "n": "int64"})
    right = pd.DataFrame(sorted(held["r"]), columns=["k", "t", "v"]).astype({"k": "object", "t": "int64"})
    return left.sort_values("t"), right.sort_values("t")


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), how=st.sampled_from(["inner", "left"]), strict=st.booleans())
def test_duckdb_finds_the_same(seed: int, how: str, strict: bool) -> None:
    run = joined(how=how, strict=strict)
    sql = f"""
        SELECT l.k, l.t, l.n, r.t, r.v
        FROM l ASOF {how.upper()} JOIN r ON l.k = r.k AND l.t {">" if strict else ">="} r.t
    """
    with empty_duckdb() as other:
        for tick, held in history(seed):
            run.tick(tick)
            for name, frame in zip("lr", frames(held), strict=True):
                other.register(name, frame)
            assert Counter(run.view("found").rows()) == Counter(other.sql(sql).fetchall())


@settings(max_examples=25)
@given(data=st.data())
def test_pandas_finds_the_same(data: st.DataObject) -> None:
    direction = data.draw(st.sampled_from([t.value for t in Toward]))
    tolerance = data.draw(st.sampled_from([None, 0, 2, 5]))
    strict = data.draw(st.booleans()) and tolerance != 0  # pandas does not take both
    run = joined(how="left", direction=direction, tolerance=tolerance, strict=strict)
    for tick, held in history(data.draw(st.integers(0, 2**32))):
        run.tick(tick)
        left, right = frames(held)
        right["u"] = right["t"]
        options: Any = {"direction": direction, "tolerance": tolerance, "allow_exact_matches": not strict}
        found = pd.merge_asof(left, right, on="t", by="k", **options)
        rows = [(k, t, n, None if pd.isna(u) else int(u), None if pd.isna(v) else v) for k, t, n, v, u in found.values]
        assert Counter(run.view("found").rows()) == Counter(rows)


def test_tolerance_in_time() -> None:
    circuit = Circuit()
    left = circuit.source("l", "t TIMESTAMP NOT NULL, d DATE")
    right = circuit.source("r", "t TIMESTAMP, d DATE NOT NULL")
    left.asof_join(right, at="t", tolerance=dt.timedelta(minutes=1)).select("t_right").sink("minute")
    left.asof_join(right, at="d", tolerance=dt.timedelta(hours=36)).select("d_right").sink("day and a half")
    run = Embedded(circuit)
    for minutes in (1, 2):
        now = START - dt.timedelta(minutes=minutes)
        before = START.date() - dt.timedelta(days=minutes)
        run.tick({"r": [((now, before), 1)], "l": [((START, START.date()), 1)] if minutes == 1 else []})
    assert run.view("minute").rows() == [(START - dt.timedelta(minutes=1),)]
    assert run.view("day and a half").rows() == [(START.date() - dt.timedelta(days=1),)]
    run.tick({"r": [((START - dt.timedelta(minutes=1), START.date() - dt.timedelta(days=1)), -1)]})
    assert run.view("minute").rows() == run.view("day and a half").rows() == []


# -- what is looked at


class Watched(Batches):
    """A trace that notes how many of its rows are looked at again."""

    seen: int

    def within(self, spans: Any, group: int) -> Any:
        rows = super().within(spans, group)
        self.seen = len(rows)
        return rows


def looked_at(toward: Toward, right: Sequence[Sequence[Any]], change: Any, **options: Any) -> int:
    """Of left rows at times 0 to 99, how many a change of the right side looks at; ``right`` is one batch each."""
    schema, w = Schema.parse("k BIGINT NOT NULL, t BIGINT NOT NULL, v STRING"), Words()
    left = indexed(schema, 1)
    order = ((2, Direction.ASC),)
    ordered = Index(Layout(schema), (0, 1, 2), 1, order).output
    everything = tuple((side, field) for side in (0, 1) for field in range(3))
    names = Schema.parse("a BIGINT, b BIGINT, c STRING, d BIGINT, e BIGINT, f STRING")
    out = Schema(type(f)(f.name, f.type, i % 3 == 2) for i, f in enumerate(names))
    operator = AsofIncremental(
        left, ordered, everything, out, toward, options.get("strict", False), options.get("tolerance"), False
    )
    rows = w.batch(left, [((k, t, "l"), 1) for t in range(100) for k in (1, 2)])
    before = Watched(left.width + 1, [rows])
    before.seen = 0
    batches = [w.batch(ordered, [((1, t, v), weight) for t, v, weight in entries], order) for entries in right]
    trace = w.context.view(ordered, *batches)
    delta = w.batch(ordered, [((1, t, v), weight) for t, v, weight in change], order)
    operator.step([rows[:0], delta], [before, trace], w.context)
    return before.seen


TENTHS = [[(t, "r", 1) for t in range(0, 100, 10)]]


@pytest.mark.parametrize(
    ("toward", "right", "change", "options", "seen"),
    [
        (Toward.BACKWARD, TENTHS, [(34, "r", 1)], {}, 6),  # 34 to 39
        (Toward.BACKWARD, TENTHS, [(34, "r", 1)], {"strict": True}, 6),  # 35 to 40
        (Toward.BACKWARD, TENTHS, [(34, "r", 1)], {"tolerance": 2}, 3),
        (Toward.BACKWARD, TENTHS, [(30, "r", -1)], {}, 10),
        (Toward.BACKWARD, TENTHS, [(30, "r", 1)], {}, 0),  # it was there
        (Toward.BACKWARD, TENTHS, [(30, "a", 1)], {}, 0),  # it is not the last of its time
        (Toward.BACKWARD, TENTHS, [(30, "s", 1)], {}, 10),
        (Toward.BACKWARD, TENTHS, [(34, "r", -1)], {}, 0),  # it is not there
        (Toward.BACKWARD, TENTHS, [(34, "r", 1), (36, "r", 1), (70, "r", -1)], {}, 16),
        (Toward.FORWARD, TENTHS, [(34, "r", 1)], {}, 4),  # 31 to 34
        (Toward.FORWARD, TENTHS, [(34, "r", 1)], {"strict": True}, 4),  # 30 to 33
        (Toward.FORWARD, TENTHS, [(34, "r", 1)], {"tolerance": 1}, 2),
        (Toward.FORWARD, TENTHS, [(32, "r", 1), (34, "r", 1)], {}, 4),
        (Toward.NEAREST, TENTHS, [(34, "r", 1)], {}, 9),  # 31 to 39
        (Toward.NEAREST, TENTHS, [(34, "r", 1)], {"tolerance": 1}, 3),
        # A neighbour that has gone is none, in whichever batch; nor is one that is less than not there.
        (Toward.BACKWARD, [*TENTHS, [(40, "r", -1)]], [(34, "r", 1)], {}, 16),
        (Toward.FORWARD, [*TENTHS, [(30, "r", -1), (33, "r", -1)]], [(34, "r", 1)], {}, 14),
        (Toward.BACKWARD, [*TENTHS, [(40, "r", -1)], [(41, "r", 1)]], [(34, "r", 1)], {}, 7),
    ],
)
def test_only_what_lies_between_neighbours_is_looked_at(
    toward: Toward, right: Any, change: Any, options: Any, seen: int
) -> None:
    assert looked_at(toward, right, change, **options) == seen


def test_what_went_is_walked_over_once() -> None:
    """Many left rows among many right rows that have gone: were each walked over for each, this would take hours."""
    n = 200_000
    right = np.column_stack([np.zeros(n, np.int64), 2 * np.arange(n), np.ones(n, np.int64)])
    left = np.column_stack([np.zeros(n, np.int64), 2 * np.arange(n) + 1, np.ones(n, np.int64)])
    gone = right[1:-1] * np.array([1, 1, -1])  # all but the first and the last
    trace, last = Batches(3, [right, gone]), 2 * n - 2
    back, ahead, near = (trace.in_force(left, Look(1, 0, way)) for way in (BACK, AHEAD, BACK | AHEAD))
    assert back[:, 1].tolist() == [0] * (n - 1) + [last]
    assert ahead[:-1, 1].tolist() == [last] * (n - 1)
    assert ahead[-1].tolist() == [0, 0, 0]
    assert near[:, 1].tolist() == [0] * (n // 2) + [last] * (n // 2)
    for way in (BACK, AHEAD, BACK | AHEAD):
        spans = trace.spans(right, Look(1, 0, way))
        assert (spans[1:, 1] > spans[:-1, 2]).all()


# -- refusals


def sides(schema: str = "k BIGINT, t BIGINT, v STRING") -> tuple[Stream, Stream]:
    circuit = Circuit()
    return circuit.source("l", schema), circuit.source("r", schema)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"at": "v"}, SchemaError, "v STRING cannot be the time"),
        ({"at": "k"}, SchemaError, '"k" is a key of the as-of join and its time'),
        ({"at": ("t", "v")}, SchemaError, "have types BIGINT and STRING"),
        ({"at": "t", "direction": "sideways"}, CircuitError, "no direction 'sideways'"),
        ({"at": "t", "how": "full"}, CircuitError, "not 'full'"),
        ({"at": "t", "tolerance": -1}, CircuitError, "is negative"),
        ({"at": "t", "tolerance": dt.timedelta(1)}, SchemaError, "is no tolerance for t BIGINT"),
    ],
)
def test_refusals(options: Any, error: type[Exception], words: str) -> None:
    left, right = sides()
    with pytest.raises(error, match=words):
        left.asof_join(right, "k", **options)


def test_no_distance_between_doubles() -> None:
    left, right = sides("t DOUBLE")
    with pytest.raises(SchemaError, match="nearest"):
        left.asof_join(right, at="t", direction="nearest")
    with pytest.raises(SchemaError, match="no tolerance"):
        left.asof_join(right, at="t", tolerance=1)


def test_not_inside_a_child() -> None:
    left, right = sides()
    loop = left.circuit.child("loop")
    inner, other = loop.enter(left), loop.enter(right)
    with pytest.raises(CircuitError, match="an as-of join is inside a child"):
        inner.asof_join(other, "k", at="t")
    for remember in (False, True):
        with pytest.raises(CircuitError, match="as_of_now is inside a child"):
            inner.as_of_now(other, "k", remember=remember)
    left.asof_join(right, "k", at="t")
    operator = next(n.operator for n in left.circuit if type(getattr(n, "operator", None)).__name__ == "Asof")
    with pytest.raises(CircuitError, match="inside a child"):
        loop.add(operator, [inner, other])


# -- the story of the bacon


ORDERS = "id BIGINT NOT NULL, item STRING NOT NULL"
PRICES = "item STRING NOT NULL, price BIGINT NOT NULL"


def shop(shards: int, *, remember: bool) -> Embedded:
    circuit = Circuit()
    orders, prices = circuit.source("orders", ORDERS), circuit.source("prices", PRICES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        orders.as_of_now(prices, "item", remember=remember).sink("pay me")
    return Embedded(circuit, shards=shards)


BACON: list[Tick] = [
    {"orders": [((1, "bacon"), 1)], "prices": [(("bacon", 5), 1)]},  # both in one tick: they meet
    {"prices": [(("bacon", 5), -1), (("bacon", 7), 1)]},
    {"orders": [((2, "bacon"), 1)]},
    {"orders": [((1, "bacon"), -1)]},
]


@pytest.mark.parametrize("shards", [1, 3])
def test_an_order_keeps_its_price_and_taking_it_back_does_not_undo_it(shards: int) -> None:
    run = shop(shards, remember=False)
    changes = [dict(run.tick(tick)["pay me"]) for tick in BACON]
    assert changes == [{(1, "bacon", 5): 1}, {}, {(2, "bacon", 7): 1}, {(1, "bacon", 7): -1}]
    assert dict(run.view("pay me").contents()) == {(1, "bacon", 5): 1, (2, "bacon", 7): 1, (1, "bacon", 7): -1}


@pytest.mark.parametrize("shards", [1, 3])
def test_what_was_billed_is_remembered(shards: int) -> None:
    run = shop(shards, remember=True)
    changes = [dict(run.tick(tick)["pay me"]) for tick in BACON]
    assert changes == [{(1, "bacon", 5): 1}, {}, {(2, "bacon", 7): 1}, {(1, "bacon", 5): -1}]
    assert dict(run.view("pay me").contents()) == {(2, "bacon", 7): 1}


def test_by_event_time_the_bill_follows_the_prices() -> None:
    """The same story with times: a price that is corrected afterwards corrects the bill, and nothing else does."""
    run = joined()
    run.tick({"l": [(("bacon", 10, 1), 1)], "r": [(("bacon", 9, "cheap"), 1)]})
    assert list(run.tick({"r": [(("bacon", 11, "dear"), 1)]})["found"]) == []
    assert dict(run.tick({"r": [(("bacon", 9, "cheap"), -1), (("bacon", 9, "free"), 1)]})["found"]) == {
        ("bacon", 10, 1, 9, "cheap"): -1,
        ("bacon", 10, 1, 9, "free"): 1,
    }
    assert dict(run.tick({"l": [(("bacon", 10, 1), -1)]})["found"]) == {("bacon", 10, 1, 9, "free"): -1}


def test_the_warning_says_what_taking_back_does() -> None:
    left, right = sides()
    with pytest.warns(HistoryWarning, match="taking a row back subtracts it with what the other side says at that"):
        left.as_of_now(right, "k")
    left.as_of_now(right, "k", remember=True)


class Ledger:
    """What each order was billed, in plain Python."""

    def __init__(self) -> None:
        self.orders: Counter[Row] = Counter()
        self.prices: Counter[Row] = Counter()
        self.billed: dict[Row, Counter[Row]] = {}

    def tick(self, tick: Tick) -> None:
        changes = {name: ZSet.of(tick.get(name, [])) for name in ("orders", "prices")}
        for row, w in changes["prices"]:
            self.prices[row] += w
        for row, w in changes["orders"]:
            was, now = max(self.orders[row], 0), max(self.orders[row] + w, 0)
            self.orders[row] += w
            bill = self.billed.setdefault(row, Counter())
            if now > was:
                for price, v in self.prices.items():
                    if price[0] == row[1]:
                        bill[price] += (now - was) * v
            elif now == 0:
                bill.clear()
            else:
                self._give_back(bill, was - now, was)

    def _give_back(self, bill: Counter[Row], places: int, was: int) -> None:
        if all(w % was == 0 for w in bill.values()):
            for price in bill:
                bill[price] -= bill[price] // was * places
            return
        for price in sorted((p for p, w in bill.items() if w > 0), key=lambda p: p[1].encode()):
            taken = min(places, bill[price])
            bill[price] -= taken
            places -= taken

    def contents(self) -> ZSet:
        return ZSet.of(((*row, *price[1:]), w) for row, bill in self.billed.items() for price, w in bill.items())


def test_each_time_that_goes_takes_its_share_of_every_row() -> None:
    circuit = Circuit()
    orders, prices = circuit.source("orders", ORDERS), circuit.source("prices", "item STRING, price STRING")
    orders.as_of_now(prices, "item", remember=True).sink("pay me")
    run = Embedded(circuit)
    run.tick({"prices": [(("x", "5"), 1), (("x", "7"), 1)], "orders": [((1, "x"), 2)]})
    run.tick({"orders": [((1, "x"), -1)]})
    assert run.view("pay me").contents().to_zset() == ZSet({(1, "x", "5"): 1, (1, "x", "7"): 1})


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), size=st.integers(0, 60), shards=st.sampled_from([1, 3]))
def test_the_ledger_agrees(seed: int, size: int, shards: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(seed)
    life: list[Tick] = [{} for _ in range(6)]
    for _ in range(size):
        order = ("orders", (chance.randint(0, 2), chance.choice("xy")))
        price = ("prices", (chance.choice("xy"), chance.choice(["a", "b", "ä", "\U0001f600", "\uffff"])))
        name, row = chance.choice([order, order, price])
        chance.choice(life).setdefault(name, []).append((row, chance.choice(WEIGHTS)))
    circuit = Circuit()
    orders, prices = circuit.source("orders", ORDERS), circuit.source("prices", "item STRING, price STRING")
    orders.as_of_now(prices, "item", remember=True).sink("pay me")
    path = tmp_path_factory.mktemp("ledger") / "state"
    ledger, run = Ledger(), Embedded(circuit, path, shards=shards)
    for number, tick in enumerate(life):
        ledger.tick(tick)
        run.tick(tick)
        assert run.view("pay me").contents().to_zset() == ledger.contents()
        if number == 2:
            run.close()
            run = Embedded(circuit, path, shards=shards)
    run.close()


def test_only_what_is_selected_of_a_bill() -> None:
    circuit = Circuit()
    orders = circuit.source("orders", "id BIGINT NOT NULL, self STRING NOT NULL, price BIGINT")
    prices = circuit.source("prices", "item STRING NOT NULL, price BIGINT NOT NULL, note STRING")
    chosen = ["right.price as cost", "right.price as again", "id", "left.price"]
    orders.as_of_now(prices, ("self", "item"), select=chosen, remember=True).sink("pay me")
    run = Embedded(circuit)
    found = run.tick({"orders": [((1, "egg", 0), 1)], "prices": [(("egg", 2, "a"), 1), (("egg", 2, "b"), 1)]})
    assert dict(found["pay me"]) == {(2, 2, 1, 0): 2}
    assert dict(run.tick({"orders": [((1, "egg", 0), -1)]})["pay me"]) == {(2, 2, 1, 0): -2}


def test_history_is_no_query() -> None:
    run = shop(1, remember=True)
    with pytest.raises(CircuitError, match="no part of a query"):
        evaluate(run.program.circuit, {})
    left, right = sides()
    left.as_of_now(right, "k", remember=True).sink("v")
    assert str(incrementalize(incrementalize(left.circuit))) == str(incrementalize(left.circuit))
