"""Random changes of tables, and what the tables then hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st

import everview as ev
from frontends.pomologic.naive import Facts, named

TABLES = {
    "edge": "a BIGINT NOT NULL, b BIGINT NOT NULL",
    "node": "x BIGINT NOT NULL, label STRING NOT NULL",
    "event": "x BIGINT NOT NULL",
}
small = st.integers(0, 3)
ROWS = {
    "edge": st.tuples(small, small),
    "node": st.tuples(small, st.sampled_from(["red", "blue"])),
    "event": st.tuples(small),
}
change = st.sampled_from(list(TABLES)).flatmap(
    lambda name: st.tuples(st.just(name), ROWS[name], st.sampled_from([1, 1, -1]))
)
ticks = st.lists(st.lists(change, max_size=6), min_size=1, max_size=6)  # an empty one is a tick, too


class Fed:
    """A database, and beside it what its tables hold."""

    def __init__(self, database: ev.Database) -> None:
        self.database = database
        self.held: dict[str, Counter[Any]] = {name: Counter() for name in TABLES}

    @classmethod
    def new(cls, path: str | None = None) -> Fed:
        database = ev.connect(path)
        for name, columns in TABLES.items():
            database.create_table(name, columns)
        return cls(database)

    def apply(self, changes: list[tuple[str, Any, int]]) -> None:
        """One tick of those changes that remove nothing that is not there."""
        batch: dict[str, list[Any]] = {}
        for name, row, weight in changes:
            if self.held[name][row] + weight >= 0:
                self.held[name][row] += weight
                batch.setdefault(name, []).append((row, weight))
        self.database.apply(batch)

    @property
    def facts(self) -> Facts:
        return {
            name: named(self.database._core.holdings.schema_of(name).names, (row for row, w in rows.items() if w > 0))
            for name, rows in self.held.items()
        }

    def view(self, name: str) -> Any:
        """What a view holds, each row once."""
        rows = self.database.view(name).rows()
        found = named(self.database._core.holdings.schema_of(name).names, rows)
        assert len(found) == len(rows), f"{name} holds a row twice"
        return found
