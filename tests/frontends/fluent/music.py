"""The tables of the tests of fluent queries: artists, albums, tracks, plays; and changes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

TABLES: dict[str, str] = {
    "artist": "id BIGINT NOT NULL, name STRING NOT NULL, country STRING",
    "album": "id BIGINT NOT NULL, artist_id BIGINT, title STRING, year INTEGER",
    "track": "id BIGINT NOT NULL, album_id BIGINT, artist_id BIGINT, name STRING, rating BIGINT",
    "play": "id BIGINT NOT NULL, track_id BIGINT NOT NULL, seconds DOUBLE",
}
COLUMNS: dict[str, tuple[str, ...]] = {
    table: tuple(column.split()[0] for column in text.split(", ")) for table, text in TABLES.items()
}
TYPES: dict[str, dict[str, str]] = {
    table: {column.split()[0]: column.split()[1] for column in text.split(", ")} for table, text in TABLES.items()
}
# Which column of a table is equal to the id of another.
REFERENCES: tuple[tuple[str, str, str], ...] = (
    ("album", "artist_id", "artist"),
    ("track", "album_id", "album"),
    ("track", "artist_id", "artist"),
    ("play", "track_id", "track"),
)

Row = tuple[Any, ...]

ids = st.integers(1, 5)
texts = st.sampled_from(["", "a", "A", "ab", "b%", "é", "z"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "artist_id": ids | st.none(),
    "album_id": ids | st.none(),
    "track_id": ids,
    "name": texts,
    "title": texts | st.none(),
    "country": st.sampled_from(["DE", "UK", None]),
    "year": st.sampled_from([1999, 2000, 2026, None]),
    "rating": st.integers(0, 4) | st.none(),
    "seconds": st.sampled_from([0.0, 0.5, 1.5, None]),
}


def rows(table: str) -> st.SearchStrategy[Row]:
    """Rows of a table."""
    own = dict(VALUES)
    if table == "track":
        own["name"] = texts | st.none()
    return st.tuples(*(own[column] for column in COLUMNS[table]))


@dataclass
class Music:
    """What the tables hold: rows by their ids."""

    tables: dict[str, dict[int, Row]] = field(default_factory=lambda: {table: {} for table in TABLES})

    def put(self, tick: Tick) -> None:
        """Take in a tick."""
        for table, key, row in tick:
            if row is None:
                self.tables[table].pop(key, None)
            else:
                self.tables[table][key] = row

    def dicts(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table by the names of their columns."""
        return [dict(zip(COLUMNS[table], row, strict=True)) for row in self.tables[table].values()]


Change = tuple[str, int, Row | None]  # the table, the id, and the row that it has now, if any
Tick = list[Change]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    table = draw(st.sampled_from(list(TABLES)))
    row = draw(rows(table))
    return (table, row[0], None if draw(st.integers(0, 3)) == 3 else row)


ticks: st.SearchStrategy[Tick] = st.lists(changes(), max_size=8)
streams: st.SearchStrategy[list[Tick]] = st.lists(ticks, min_size=1, max_size=4).map(lambda found: found)


@st.composite
def filled(draw: st.DrawFn) -> Tick:
    """A first tick that fills all tables."""
    return [(t, row[0], row) for t in TABLES for row in draw(st.lists(rows(t), max_size=5, unique_by=lambda r: r[0]))]


def apply(db: Any, before: Music, tick: Tick) -> None:
    """Make the changes of a tick in a database, in one transaction; ``before`` says what is there."""
    there = {table: set(found) for table, found in before.tables.items()}
    with db.transaction() as tx:
        for table, key, row in tick:
            if row is not None:
                tx.upsert(table, [row])
                there[table].add(key)
            elif key in there[table]:
                tx.delete(table, [(key,)])
                there[table].discard(key)


def create(db: Any) -> None:
    """The tables, empty."""
    for table, columns in TABLES.items():
        db.create_table(table, columns, key="id")
