"""Rings of transfers: a join of three relations that meet in a cycle, with nothing kept between them.

Money that goes from a to b, from b to c and back to a. Two joins in a row would keep every path of two transfers, to
look for the few that close; here the join binds one account at a time, and keeps the transfers in two orders. For every
tick the program prints what changed, beside how many paths there are. Then an account pays very many, and one of
the others pays it.
"""

from __future__ import annotations

import random
from collections import Counter
from time import perf_counter
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Column, Table

import everview as ev
from everview.circuit import explain
from everview.multiway import Atom, Is, join

Transfer = tuple[int, int]
TRANSFER = "src BIGINT NOT NULL, dst BIGINT NOT NULL"
ACCOUNTS, TRANSFERS = 2_000, 20_000
HUB, PAID = 0, 1_500
FIGURES = ("Δ transfers", "Δ rings", "paths of two", "ms")


def starts_smallest(a: Any, b: Any, c: Any) -> Any:
    """A ring may begin with any of its accounts; let it be the smallest."""
    return pc.and_(pc.and_(pc.less(a, b), pc.less(a, c)), pc.not_equal(b, c))


def circuit() -> ev.Circuit:
    found = ev.Circuit()
    step = found.source("transfer", TRANSFER).distinct()
    rings = join([Atom(step, ("a", "b")), Atom(step, ("b", "c")), Atom(step, ("c", "a"))])
    rings.filter(starts_smallest, columns=["a", "b", "c"]).sink("rings", positive=True)

    # Who pays the hub and is paid by one whom the hub pays, and over how many: the weight of a row.
    through = join([Atom(step, (Is(HUB), "b")), Atom(step, ("b", "c")), Atom(step, ("c", Is(HUB)))], select=["c"])
    through.sink("through the hub")
    return found


def searched(transfers: set[Transfer]) -> set[tuple[int, int, int]]:
    """The same rings in plain Python, from scratch."""
    onward = payees(transfers)
    return {
        (a, b, c)
        for a, b in transfers
        for c in onward.get(b, ())
        if a < b and a < c and b != c and a in onward.get(c, ())
    }


def payees(transfers: set[Transfer]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for src, dst in transfers:
        found.setdefault(src, set()).add(dst)
    return found


def paths(transfers: set[Transfer]) -> int:
    into, out = (Counter(transfer[at] for transfer in transfers) for at in (1, 0))
    return sum(n * out[account] for account, n in into.items())


class Bank:
    """The transfers, the views of them, and a line for every tick."""

    def __init__(self) -> None:
        self.transfers: set[Transfer] = set()
        self.run = ev.Embedded(circuit())
        figures = [Column(name, justify="right") for name in FIGURES]
        self.table = Table("tick", *figures, box=None, pad_edge=False)

    def tick(self, title: str, add: set[Transfer], remove: set[Transfer] = frozenset()) -> Counter[Any]:
        self.transfers = (self.transfers - remove) | add
        changes = [(transfer, +1) for transfer in add] + [(transfer, -1) for transfer in remove]
        started = perf_counter()
        out = self.run.tick({"transfer": changes})["rings"]
        took = f"{1000 * (perf_counter() - started):.0f}"
        cells = len(changes), len(out), paths(self.transfers)
        self.table.add_row(title, *(f"{n:,}" for n in cells), took)
        assert set(self.run.view("rings").rows()) == searched(self.transfers), title
        return Counter(dict(out))


def main() -> None:
    chance, bank = random.Random(12), Bank()
    accounts = range(1, ACCOUNTS)
    bank.tick("what there is", {(chance.choice(accounts), chance.choice(accounts)) for _ in range(TRANSFERS)})
    rings = searched(bank.transfers)
    assert rings

    a, b, c = next(
        (a, b, c) for a in accounts for b, c in [(a + 1, a + 2)] if not {(a, b), (b, c), (c, a)} & bank.transfers
    )
    assert bank.tick("two transfers in a row", {(a, b), (b, c)})[a, b, c] == 0
    assert bank.tick("and the one that closes the ring", {(c, a)})[a, b, c] == 1
    assert bank.tick("one is cancelled", set(), {(b, c)})[a, b, c] == -1
    assert not bank.tick("nothing at all", set())

    hub = {(HUB, n) for n in chance.sample(accounts, PAID)}
    assert not bank.tick("an account pays very many", hub), "nobody pays it"
    closed = bank.tick("and is paid", {(a, HUB)})
    assert closed.total() > 0
    assert all(ring[0] == HUB and ring[2] == a for ring in closed), "the last to pay it closes them"
    weights = dict(bank.run.view("through the hub").contents())
    assert weights == {(a,): closed.total()}, "counted, not listed"
    assert bank.tick("which is cancelled", set(), {(a, HUB)}) == Counter({ring: -w for ring, w in closed.items()})

    Console().print(bank.table)
    print(f"All {len(bank.run.view('rings')):,} rings agree with a search from scratch, after every tick.\n")
    print("How changes are followed:")
    print("\n".join(line for line in explain(circuit()).splitlines() if "change of atom" in line))


if __name__ == "__main__":
    main()
