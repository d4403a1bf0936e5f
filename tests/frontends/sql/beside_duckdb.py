"""Views over four small tables, and the same queries in DuckDB, after every tick of random changes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import duckdb

import everview as ev
from conformance.comparing import comparable

TABLES = {"l": "a INT, b INT", "r": "a INT, b INT", "u": "a INT, b INT", "o": "a INT"}
VALUES = (None, 0, 1, 1, 2, 3)
TICKS = 5

Row = tuple[int | None, ...]


def check(views: Mapping[str, tuple[str, str]], chance: random.Random) -> None:
    """Compare views, each given by its query and by what DuckDB is asked, over ticks of random changes."""
    db, duck = ev.connect(), duckdb.connect()
    for table, columns in TABLES.items():
        db.sql(f"CREATE TABLE {table} ({columns})")
        duck.execute(f"CREATE TABLE {table} ({columns})")
    names = {view: f"v{at}" for at, view in enumerate(views)}
    for view, (query, _) in views.items():
        db.sql(f"CREATE MATERIALIZED VIEW {names[view]} AS {query}")
    held: dict[str, list[Row]] = {table: [] for table in TABLES}
    for _ in range(TICKS):
        tick: dict[str, list[tuple[Row, int]]] = {}
        for table, row, weight in _changes(chance, held):
            tick.setdefault(table, []).append((row, weight))
        db.apply(tick)
        for table, rows in held.items():
            duck.execute(f"DELETE FROM {table}")
            if rows:
                duck.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for view, (query, asked) in views.items():
            found, expected = comparable(db.view(names[view]).rows()), comparable(duck.execute(asked).fetchall())
            assert found == expected, f"{view}: {query}\n  over {held}"
    db.close()


def _changes(chance: random.Random, held: dict[str, list[Row]]) -> Iterator[tuple[str, Row, int]]:
    """A few rows of small numbers and NULL come, some twice, and some that are there go."""
    for table, columns in TABLES.items():
        for _ in range(chance.randint(0, 3)):
            row = tuple(chance.choice(VALUES) for _ in columns.split(","))
            held[table].append(row)
            yield table, row, 1
        for _ in range(chance.randint(0, 2)):
            if held[table]:
                yield table, held[table].pop(chance.randrange(len(held[table]))), -1
