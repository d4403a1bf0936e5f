"""As-of joins: orders billed at the price of their time, of their arrival, and what happens when one is taken back.

- ``by time``: rows carry times; late and corrected prices revise the bills that they reach, and no others;
- ``forgetful``: an order is billed when it arrives, and forgotten; taking it back after the price has changed
  subtracts a bill that was never sent;
- ``remembered``: the same, but what was billed is remembered, and taken back exactly.

Rows that a tick adds to a view are marked ``+``, rows that it removes ``-``.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import everview as ev
from everview.errors import HistoryWarning

Row = tuple[Any, ...]


def shop() -> ev.Circuit:
    """Prices with the day since which they hold, and orders with their day."""
    circuit = ev.Circuit()
    order = circuit.source("order", "id BIGINT NOT NULL, item STRING NOT NULL, day BIGINT NOT NULL")
    price = circuit.source("price", "item STRING NOT NULL, since BIGINT NOT NULL, cents BIGINT NOT NULL")

    order.asof_join(price, on="item", at=("day", "since"), select=["id", "item", "cents"]).sink("by time")

    today = price.top(1, "since desc", by="item").select("item", "cents")  # what the shop asks for now
    forgetful = warned(order, today)
    forgetful.select("id", "item", "cents").sink("forgetful")
    order.as_of_now(today, on="item", select=["id", "item", "cents"], remember=True).sink("remembered")
    return circuit


def warned(order: ev.Stream, today: ev.Stream) -> ev.Stream:
    """The join that depends on history says so when it is built."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = order.as_of_now(today, on="item")
    assert [w.category for w in caught] == [HistoryWarning]
    print(f"HistoryWarning: {caught[0].message}.\n")
    return found


def main() -> None:
    run = ev.Embedded(shop())

    out = tick(run, "Bacon is 500, and ordered", {"price": [("bacon", 1, 500)], "order": [(1, "bacon", 3)]})
    assert all(out[view] == {(1, "bacon", 500): +1} for view in out), "order and price of one tick meet"

    out = tick(run, "From day 5 on it is 700", {"price": [("bacon", 5, 700)]})
    assert not any(out.values()), "nobody is billed again"

    out = tick(run, "An order of day 4 comes late", {"order": [(2, "bacon", 4)]})
    assert out["by time"] == {(2, "bacon", 500): +1}, "the price of day 4"
    assert out["remembered"] == {(2, "bacon", 700): +1}, "the price of now"

    out = tick(run, "It turns out that day 4 had a price of its own", {"price": [("bacon", 4, 450)]})
    assert out["by time"] == {(2, "bacon", 500): -1, (2, "bacon", 450): +1}, "order 1, of day 3, is not touched"
    assert not out["forgetful"]
    assert not out["remembered"]

    out = tick(run, "Order 1 is taken back", {"order": [(1, "bacon", 3)]}, weight=-1)
    assert out["by time"] == out["remembered"] == {(1, "bacon", 500): -1}, "what was billed goes"
    assert out["forgetful"] == {(1, "bacon", 700): -1}, "a bill that was never sent is taken back"
    assert dict(run.view("forgetful").contents())[1, "bacon", 500] == 1, "and the one that was sent stays"

    many()


def many() -> None:
    """Orders and prices in any order of time, against a search in plain Python."""
    chance, run = random.Random(3), ev.Embedded(shop_of_times())
    prices: dict[Row, int] = {}
    orders: list[Row] = []
    for number in range(200):
        item, day = chance.choice(["bacon", "eggs", "tea"]), chance.randrange(1_000)
        if number % 3 == 0 and (item, day) not in prices:
            prices[item, day] = chance.randrange(100, 900)
            run.tick({"price": [((item, day, prices[item, day]), +1)]})
        else:
            orders.append((number, item, day))
            run.tick({"order": [(orders[-1], +1)]})
    assert Counter(run.view("by time").rows()) == Counter(searched(orders, prices))
    print(f"{len(orders)} orders and {len(prices)} prices, in any order of time: billed as if all had been known.")


def shop_of_times() -> ev.Circuit:
    circuit = ev.Circuit()
    order = circuit.source("order", "id BIGINT NOT NULL, item STRING NOT NULL, day BIGINT NOT NULL")
    price = circuit.source("price", "item STRING NOT NULL, since BIGINT NOT NULL, cents BIGINT NOT NULL")
    select = ["id", "cents"]
    order.asof_join(price, on="item", at=("day", "since"), how="left", select=select).sink("by time")
    return circuit


def searched(orders: list[Row], prices: dict[Row, int]) -> list[Row]:
    found: list[Row] = []
    for number, item, day in orders:
        since = max((s for i, s in prices if i == item and s <= day), default=None)
        found.append((number, None if since is None else prices[item, since]))
    return found


def tick(run: ev.Embedded, title: str, rows: Mapping[str, list[Row]], weight: int = +1) -> dict[str, dict[Row, int]]:
    """Apply rows, all with the same weight, and show what they did."""
    out = run.tick({source: [(row, weight) for row in given] for source, given in rows.items()})
    print(title)
    for view, changes in out.items():
        shown = ", ".join(f"{'+' if w > 0 else '-'}{row}" for row, w in sorted(changes))
        print(f"  {view:<11} {shown or 'no change'}")
    print()
    return {view: dict(changes) for view, changes in out.items()}


if __name__ == "__main__":
    main()
