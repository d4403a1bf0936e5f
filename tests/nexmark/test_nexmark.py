"""The queries of Nexmark as views, after every tick of a stream with withdrawals and corrections, against DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from conformance.comparing import comparable
from everview.database.database import Database
from nexmark.events import Events, events, side_input
from nexmark.queries import IN_DUCKDB, QUERIES, TABLES

LOADED, TICK, TICKS = 3_000, 400, 4
RATE = 50  # events a second: a tick moves through windows of ten seconds
WITHDRAWN = 0.2  # of a tick's bids, withdrawn by the next one


@pytest.mark.slow
def test_all_queries_are_right_after_every_tick() -> None:
    db, duck = ev.connect(), duckdb.connect()
    db.sql(TABLES)
    for number in range(0, 23, 2):  # half of the views see the load, half are made after it
        _make(db, number)
    loaded = events(0, LOADED, rate=RATE)
    db.apply({name: _weighted(rows, 1) for name, rows in loaded.tables.items()} | {"side_input": side_input()})
    for number in range(1, 23, 2):
        _make(db, number)
    held = dict(loaded.tables)
    _check(db, duck, held, "after the load")
    random = np.random.default_rng(7)
    for at in range(TICKS):
        changes = _tick(held, events(LOADED + at * TICK, TICK, rate=RATE), random)
        db.apply(changes)
        _check(db, duck, held, f"after tick {at}")
    assert all(len(db.view(f"q{number}")) for number in QUERIES), "a query that never has rows shows nothing"
    db.apply({"bid": _weighted(held["bid"], -1)})
    _check(db, duck, held | {"bid": held["bid"].slice(0, 0)}, "without bids")


def _make(db: Database, number: int) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW q{number} AS {QUERIES[number]}")


def _tick(held: dict[str, pa.Table], new: Events, random: np.random.Generator) -> dict[str, pa.Table]:
    """What comes, some bids withdrawn, and auctions whose end is moved; `held` is what the tables have afterwards."""
    gone = random.random(held["bid"].num_rows) < WITHDRAWN * TICK / held["bid"].num_rows
    moved = held["auction"].slice(0, 5)
    column = held["auction"].schema.get_field_index("expires")
    later = moved.set_column(column, "expires", pa.array(moved["expires"].to_numpy() + np.timedelta64(20, "s")))
    changes = {
        "person": [(new.person, 1)],
        "auction": [(moved, -1), (later, 1), (new.auction, 1)],
        "bid": [(held["bid"].filter(pa.array(gone)), -1), (new.bid, 1)],
    }
    held["person"] = pa.concat_tables([held["person"], new.person])
    held["auction"] = pa.concat_tables([held["auction"].slice(5), later, new.auction])
    held["bid"] = pa.concat_tables([held["bid"].filter(pa.array(~gone)), new.bid])
    return {name: pa.concat_tables([_weighted(*part) for part in parts]) for name, parts in changes.items()}


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column("_weight", pa.array(np.full(rows.num_rows, weight)))


def _check(db: Database, duck: duckdb.DuckDBPyConnection, held: dict[str, Any], when: str) -> None:
    for name, rows in (held | {"side_input": side_input()}).items():
        duck.register("rows", rows)
        duck.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows")
    for number, query in IN_DUCKDB.items():
        found = comparable(db.view(f"q{number}").rows())
        expected = comparable(duck.execute(query).fetchall())
        assert not expected - found, f"query {number} {when}: missing {expected - found}"
        assert not found - expected, f"query {number} {when}: unexpected {found - expected}"
