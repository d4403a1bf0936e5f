"""Databases that differ only in how they run: a session must have the same answers in each."""

from __future__ import annotations

import datetime as dt
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import everview as ev
from everview.errors import DefinitionError, EverviewError
from everview.types import Variant

NOON = dt.datetime(2026, 1, 1, 12)
Contents = dict[str, Counter[str]]  # by the name of a table or view: its rows as texts, so that NaN equals itself


class UndoneError(Exception):
    """What a transaction raises that is to leave no trace."""


VALUES: dict[str, Any] = {  # what steps may name beside the database
    "UndoneError": UndoneError,
    "datetime": dt,
    "Decimal": Decimal,
    "Variant": Variant.of,
    "nan": float("nan"),
    "inf": float("inf"),
    "clock": lambda minutes: NOON + dt.timedelta(minutes=minutes),
}


@dataclass
class Way:
    """A database under one way to run it, with what its listeners were told."""

    name: str
    db: ev.Database
    path: Path | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    told: Contents = field(default_factory=Contents)
    schemas: dict[str, object] = field(default_factory=dict[str, object])  # of the views, when listening began

    def run(self, step: str) -> str | None:
        """Run a step; the text of an error that is the user's mistake."""
        scope: dict[str, Any] = {**VALUES, "db": self.db, "reopen": self._reopen}
        try:
            exec(step, scope)
        except (EverviewError, UndoneError) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.db = scope["db"]
        return None

    def contents(self) -> Contents:
        """The rows of all tables and views."""
        tables = {f"table {name}": counted(self.db.table(name).rows()) for name in self.db.tables()}
        return tables | {f"view {name}": counted(relation(self.db, name).rows()) for name in self.db.views()}

    def listen(self) -> None:
        """Listen to every kept view that nobody listens to yet."""
        for name in self.db.views():
            view = relation(self.db, name)
            if name not in self.told and hasattr(view, "subscribe"):
                self.told[name], self.schemas[name] = Counter(), view.schema
                view.subscribe(self._hear(name), snapshot=True)

    def heard(self) -> Contents:
        """What listeners were told in all; those of a view that has gone or has other columns now are forgotten."""
        there = set(self.db.views())
        for name in set(self.told):
            if name not in there or self.schemas[name] != relation(self.db, name).schema:
                del self.told[name]
        return {name: Counter({row: n for row, n in told.items() if n}) for name, told in self.told.items()}

    def _reopen(self, db: ev.Database) -> ev.Database:
        if self.path is None:
            return db
        self.told.clear()
        db.close()
        return ev.connect(self.path, **self.options)

    def _hear(self, name: str) -> Callable[[Any, int], None]:
        told = self.told[name]

        def hear(changes: Any, epoch: int) -> None:
            for row, weight in changes:
                told[repr(tuple(row))] += weight

        return hear


def relation(db: ev.Database, name: str) -> Any:
    """A kept view, or the answer to a plain one: what has rows and a schema."""
    try:
        return db.view(name)
    except DefinitionError:
        return db.sql(f"SELECT * FROM {name}")


def counted(rows: Any) -> Counter[str]:
    """Rows as texts, with how often each is there."""
    return Counter(repr(tuple(row)) for row in rows)


@contextmanager
def opened(chance: random.Random) -> Generator[list[Way]]:
    """The same empty database in several ways: in memory, in a directory, and over shards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        options: dict[str, Any] = {
            "durability": chance.choice(("tick", "none", "periodic")),
            "shards": chance.choice((None, 2, 3)),
        }
        ways = [
            Way("memory", ev.connect()),
            Way("directory", ev.connect(path, **options), path, options),
            Way("shards", ev.connect(shards=3)),
        ]
        try:
            for way in ways:
                way.db.advance(NOON)
            yield ways
        finally:
            for way in ways:
                way.db.close()
