"""A first circuit: payments between accounts, and three questions whose answers stay correct tick by tick.

- ``exposure``: how much each country has sent (a join and an aggregate);
- ``largest``: the three largest transfers (top k);
- ``corridors``: which countries pay which (two joins and distinct).

Rows that a tick adds to a view are marked ``+``, rows that it removes ``-``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.table import Column, Table

import everview as ev
from everview.errors import WrongType
from everview.runtimes.embedded import View

Row = tuple[Any, ...]
VIEWS = ("exposure", "largest", "corridors")

console = Console()


def payments() -> ev.Circuit:
    """The three views as one circuit over the whole tables, as if nothing ever changed."""
    circuit = ev.Circuit()
    account = circuit.source("account", "id BIGINT NOT NULL, owner STRING NOT NULL, country STRING NOT NULL")
    transfer = circuit.source(
        "transfer",
        "id BIGINT NOT NULL, src BIGINT NOT NULL, dst BIGINT NOT NULL, amount DECIMAL(12,2) NOT NULL",
    )

    sent = transfer.join(account, on=("src", "id"), select=["left.id", "dst", "amount", "country as origin"])
    sent.aggregate(["origin"], total=("sum", "amount"), transfers="count").sink("exposure", positive=True)

    transfer.select("id", "amount").top(3, "amount desc").sink("largest")

    both = sent.join(account, on=("dst", "id"), select=["origin", "country as target"])
    both.distinct().sink("corridors")
    return circuit


def main() -> None:
    circuit = payments()
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "bank"
        with ev.Embedded(circuit, state) as bank:  # from whole tables to changes
            live(bank)
            kept = contents(bank)
        reopen(circuit, state, kept)


def live(bank: ev.Embedded) -> None:
    tick(
        bank,
        "Insert: four accounts, five transfers",
        {
            "account": [
                ((1, "Ada", "UK"), +1),
                ((2, "Bob", "DE"), +1),
                ((3, "Cleo", "FR"), +1),
                ((4, "Dan", "UK"), +1),
            ],
            "transfer": [
                ((10, 1, 2, "120.00"), +1),
                ((11, 2, 3, "75.50"), +1),
                ((12, 3, 1, "300.00"), +1),
                ((13, 4, 2, "20.00"), +1),
                ((14, 1, 3, "64.25"), +1),
            ],
        },
    )
    assert column(bank, "exposure") == {"UK": "204.25", "DE": "75.50", "FR": "300.00"}
    assert {row[0] for row in bank.view("largest").rows()} == {12, 10, 11}

    out = tick(bank, "Insert: one transfer more", {"transfer": [((15, 2, 4, "90.00"), +1)]})
    assert len(out["exposure"]) == 2, "the old row of DE goes, the new one comes; no other is touched"

    out = tick(
        bank,
        "Update: Dan moves to Germany (the old row goes, the new one comes)",
        {"account": [((4, "Dan", "UK"), -1), ((4, "Dan", "DE"), +1)]},
    )
    assert column(bank, "exposure") == {"UK": "184.25", "DE": "185.50", "FR": "300.00"}
    assert (("DE", "DE"), 1) in list(out["corridors"]), "Bob pays Dan, both in DE now"

    out = tick(bank, "Delete: the largest transfer is taken back", {"transfer": [((12, 3, 1, "300.00"), -1)]})
    assert ("FR", "UK") not in bank.view("corridors").rows(), "it was the only one of its kind"
    assert dict(out["largest"].to_zset().map(lambda row: row[0])) == {12: -1, 11: +1}, "the next one moves up"

    refused(bank, {"account": [((5, "Eve", "US"), +1)], "transfer": [((16, 5, 1, "ten"), +1)]})


def refused(bank: ev.Embedded, changes: Mapping[str, Any]) -> None:
    """A tick is applied as a whole or not at all: the account was fine, the transfer was not."""
    before, epoch = contents(bank), bank.epoch
    console.rule("[bold]Error: an amount that is no number", align="left")
    try:
        bank.tick(changes)
    except WrongType as error:
        console.print(f"[red]{type(error).__name__}[/]: {error}\n", highlight=False)
    else:
        raise AssertionError("the tick should have been refused")
    assert contents(bank) == before
    assert bank.epoch == epoch
    console.print(f"Still epoch {bank.epoch}, and every view is as it was.\n", highlight=False)


def reopen(circuit: ev.Circuit, state: Path, kept: dict[str, list[Row]]) -> None:
    """The state is in a directory: another process goes on where this one stopped."""
    with ev.Embedded(circuit, state) as bank:
        assert contents(bank) == kept
        console.rule(f"[bold]Reopened at epoch {bank.epoch}: the views are there", align="left")
        console.print(Columns([drawn(bank.view(name)) for name in VIEWS], padding=(0, 3)), "")
        tick(bank, "And go on changing", {"transfer": [((17, 3, 4, "500.00"), +1)]})
        assert column(bank, "exposure")["FR"] == "500.00"


def tick(bank: ev.Embedded, title: str, changes: Mapping[str, Any]) -> dict[str, ev.Batch]:
    """Apply changes and show what they did to every view."""
    out = bank.tick(changes)
    console.rule(f"[bold]{title}", align="left")
    console.print(Columns([drawn(bank.view(name), out[name]) for name in VIEWS], padding=(0, 3)), "")
    return out


def drawn(view: View, changes: ev.Batch | None = None) -> Table:
    """The rows of a view now, with the last change marked; rows that went come last."""
    weights = dict(changes or [])
    mark = Column(width=1)
    table = Table(mark, *view.schema.names, title=view.name, title_justify="left", box=None, pad_edge=False)
    for row in ranked(view.name, view.rows()):
        new = weights.get(row, 0) > 0
        table.add_row("+" if new else "", *map(str, row), style="green" if new else None)
    for row in ranked(view.name, [row for row, weight in weights.items() if weight < 0]):
        table.add_row("-", *map(str, row), style="red strike")
    return table


def ranked(view: str, rows: list[Row]) -> list[Row]:
    """A view is a set of rows, in no particular order: whoever shows them chooses one."""
    return sorted(rows, key=lambda row: -row[1] if view == "largest" else row)


def contents(bank: ev.Embedded) -> dict[str, list[Row]]:
    return {name: sorted(bank.view(name).rows()) for name in VIEWS}


def column(bank: ev.Embedded, view: str) -> dict[str, str]:
    """The second column of a view by its first."""
    return {row[0]: str(row[1]) for row in bank.view(view).rows()}


if __name__ == "__main__":
    main()
