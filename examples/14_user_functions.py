"""User functions: vectorised over Arrow, one call a row, or one a group; and what happens when one is not pure.

A function in a view may depend on its arguments only. When a row is deleted, the circuit computes its image
again and takes that away: if the image is another one now, the view keeps a row that nothing stands for.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import everview as ev
from everview.circuit import Stream
from everview.errors import FunctionError, NegativeWeight

PAYMENT = "id BIGINT NOT NULL, amount DECIMAL(12,2) NOT NULL, note STRING"
PAYMENTS = [
    ((1, "120.00", "rent, march"), +1),
    ((2, "8.50", "lunch"), +1),
    ((3, "40.00", None), +1),
]


def run(build: Callable[[Stream], Stream], *, positive: bool = False, **options: Any) -> ev.Embedded:
    """A circuit of one source and one view, at work."""
    circuit = ev.Circuit()
    build(circuit.source("payment", PAYMENT)).sink("view", positive=positive)
    return ev.Embedded(circuit, **options)


def show(what: str, rows: Any) -> None:
    print(f"{what}\n  " + "\n  ".join(map(str, rows)))


# -- vectorised: one Arrow array a column in, one array a declared column out; `columns` says which are given


def is_large(amount: pa.Array) -> pa.Array:
    return pc.greater_equal(amount, pa.scalar(Decimal("40.00")))


def fee(amount: pa.Array) -> pa.Array:
    return pc.multiply(amount, pa.scalar(Decimal("0.01")))


def large_with_fee(payment: Stream) -> Stream:
    large = payment.filter(is_large, columns=["amount"])
    return large.extend(fee, "fee DECIMAL(14,4) NOT NULL", columns=["amount"])


def vectorised() -> None:
    large = run(large_with_fee)
    large.tick({"payment": PAYMENTS})
    show("Large payments and their fees, vectorised", sorted(large.view("view").rows()))
    assert [row[-1] for row in sorted(large.view("view").rows())] == [Decimal("1.2000"), Decimal("0.4000")]


# -- by row: plain Python, one call for every row that changes


def shout(id: int, amount: Decimal, note: str | None) -> str:
    return (note or "no note").upper()


def words(id: int, amount: Decimal, note: str | None) -> list[tuple[int, str]]:
    return [(id, word) for word in re.findall(r"\w+", note or "")]


def by_row() -> None:
    loud = run(lambda payment: payment.map(shout, "note STRING NOT NULL", by_row=True))
    loud.tick({"payment": PAYMENTS})
    show("Notes, one call a row", sorted(loud.view("view").rows()))
    assert ("NO NOTE",) in loud.view("view").rows()

    index = run(lambda payment: payment.flat_map(words, "id BIGINT NOT NULL, word STRING NOT NULL"))
    index.tick({"payment": PAYMENTS})
    show("Words, any number of rows for each", sorted(index.view("view").rows()))
    assert len(index.view("view")) == 3

    out = index.tick({"payment": [((1, "120.00", "rent, march"), -1)]})["view"]
    assert out.to_zset() == ev.ZSet({(1, "march"): -1, (1, "rent"): -1}), "they go with their row"


# -- by group: an aggregate of your own


def longest(notes: list[str]) -> str:
    return max(notes, key=len)


def by_group() -> None:
    options = {"type": "STRING", "by_group": True, "nulls": "skip"}
    notes = run(lambda payment: payment.aggregate([], longest=(longest, "note", options)))
    notes.tick({"payment": PAYMENTS})
    assert notes.view("view").rows() == [("rent, march",)]
    notes.tick({"payment": [((1, "120.00", "rent, march"), -1)]})
    show("The longest note, when the first has gone", notes.view("view").rows())
    assert notes.view("view").rows() == [("lunch",)]


# -- mistakes: the tick is refused, and nothing has changed


def half(id: pa.Array, amount: pa.Array, note: pa.Array) -> pa.Array:
    return amount[: len(amount) // 2]


def refused(what: str, attempt: Callable[[], Any]) -> ev.EverviewError:
    try:
        attempt()
    except (FunctionError, NegativeWeight) as error:
        print(f"{what}\n  {error}")
        return error
    raise AssertionError("this should have been refused")


def mistakes() -> None:
    short = run(lambda payment: payment.map(half, "amount DECIMAL(12,2)"))
    refused("A function that returns too little", lambda: short.tick({"payment": PAYMENTS}))
    assert short.epoch == 0

    raising = run(lambda payment: payment.map(lambda id, amount, note: 1 // 0, "x BIGINT", by_row=True))
    error = refused("A function that raises", lambda: raising.tick({"payment": PAYMENTS}))
    assert isinstance(error.__cause__, ZeroDivisionError)


# -- names: a state on disk knows functions by name, and all lambdas have the same


def above(limit: int) -> ev.Function:
    return ev.Function(f"above {limit}", lambda amount: pc.greater(amount, limit), "columns")


def names() -> None:
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        nameless = above(50).call
        attempt = lambda: run(lambda payment: payment.filter(nameless, columns="amount"), path=state)  # noqa: E731
        refused("A lambda and a state directory", attempt)
        with run(lambda payment: payment.filter(above(50), columns="amount"), path=state) as kept:
            kept.tick({"payment": PAYMENTS})
            assert len(kept.view("view")) == 1


# -- purity


def numbered() -> Callable[..., int]:
    """A function with a memory: every call gives another number."""
    counter = itertools.count()

    def number(id: int, amount: Decimal, note: str | None) -> int:
        return next(counter)

    return number


def impure(payment: Stream) -> Stream:
    return payment.extend(numbered(), "number BIGINT NOT NULL", by_row=True)


def purity() -> None:
    checked = run(impure, check_functions=True)
    error = refused("Caught by check_functions=True", lambda: checked.tick({"payment": PAYMENTS}))
    assert "not pure" in error.message

    guarded = run(impure, positive=True)
    guarded.tick({"payment": PAYMENTS})
    before = guarded.view("view").rows()
    deletion = [((2, "8.50", "lunch"), -1)]
    error = refused("Caught by a positive sink", lambda: guarded.tick({"payment": deletion}))
    assert isinstance(error, NegativeWeight)
    assert guarded.view("view").rows() == before

    # With neither, the row stays, and beside it stands one of weight -1.
    unguarded = run(impure)
    unguarded.tick({"payment": PAYMENTS})
    unguarded.tick({"payment": deletion})
    owed = [row for row, weight in unguarded.view("view").contents() if weight < 0]
    show("Not caught at all", owed)
    assert len(unguarded.view("view")) == 3, "one too many"


if __name__ == "__main__":
    vectorised()
    by_row()
    by_group()
    mistakes()
    names()
    purity()
