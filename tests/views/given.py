"""A feed that a test drives by hand, and naive meanings of the shapes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

from everview.codes.order import atom_key
from everview.listening.subscription import Ended, Listener
from everview.types import Schema
from everview.views import Subscription

Row = tuple[Any, ...]
Pairs = Iterable[tuple[Row, int]]


class Given:
    """Rows that a test changes; the lock is a plain one."""

    def __init__(self, schema: str | Schema, name: str = "given") -> None:
        self.schema = Schema.parse(schema) if isinstance(schema, str) else schema
        self.name, self.lock, self.epoch = name, RLock(), 0
        self.held: list[tuple[Row, int]] = []
        self.subscriptions: list[Subscription] = []

    def contents(self) -> list[tuple[Row, int]]:
        return list(self.held)

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        with self.lock:
            found = Subscription(listener, self.epoch, self.subscriptions.remove, ended)
            self.subscriptions.append(found)
            if snapshot:
                listener(self.contents(), self.epoch)
            return found

    def change(self, changes: Pairs) -> None:
        with self.lock:
            given = list(changes)
            self.held += given
            self.epoch += 1
            raised: list[Exception] = []
            for subscription in tuple(self.subscriptions):
                try:
                    subscription.listener(given, self.epoch)
                except Exception as error:  # noqa: BLE001, the others are told
                    raised.append(error)
            if raised:
                raise raised[0]

    def end(self) -> None:
        for subscription in tuple(self.subscriptions):
            subscription.over()


def text(row: Any) -> str:
    """A row told apart from all others: 1 from True, NaN from nothing, 0.0 from -0.0 not."""
    if isinstance(row, tuple | list):
        return f"[{', '.join(map(text, row))}]"
    if isinstance(row, float):
        return "nan" if math.isnan(row) else repr(row + 0.0)
    return f"{type(row).__name__} {row!r}"


def bag(pairs: Pairs) -> Counter[str]:
    """Rows with weights, summed; none with weight 0."""
    found: Counter[str] = Counter()
    for row, weight in pairs:
        found[text(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def rows_of(pairs: Pairs) -> list[Row]:
    """The rows that are there, each as often as its weight."""
    pairs = list(pairs)
    some = {text(row): row for row, _ in pairs}
    return [some[key] for key, weight in bag(pairs).items() for _ in range(weight)]


def in_order(rows: Sequence[Row], by: Sequence[tuple[int, str]]) -> list[Row]:
    """Sorted by insertion of the definition: the last column first, NULL least, NaN greatest."""
    width = len(rows[0]) if rows else 0
    found = list(rows)
    for at in reversed(range(width)):
        found.sort(key=lambda row, at=at: atom_key(row[at]))
    for at, how in reversed(by):
        found.sort(key=lambda row, at=at: atom_key(row[at]), reverse=how == "desc")
    return found
