"""Random tables, and streams of changes to them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torture.random_sql.constants import stored
from torture.random_sql.trees import ARRAY, BOOL, DATE, DEC, DOUBLE, DUCKDB_TYPES, INT, SPARK_TYPES, STR, TIME

# A name has one type in all tables, so that tables can be joined by nature.
COLUMNS = {
    "i": INT, "j": INT, "n": INT, "x": DOUBLE, "p": DEC, "s": STR, "u": STR, "b": BOOL, "d": DATE, "w": TIME,
    "a": ARRAY,
}  # fmt: skip
WIDE = {"n": "BIGINT"}

Row = tuple[Any, ...]
Tick = Mapping[str, list[tuple[Row, int]]]


@dataclass(frozen=True)
class TableShape:
    """A table's name and columns."""

    name: str
    columns: tuple[str, ...]

    def spark(self) -> str:
        return ", ".join(f"{c} {WIDE.get(c, SPARK_TYPES[COLUMNS[c]])}" for c in self.columns)

    def duckdb(self) -> str:
        return ", ".join(f"{c} {WIDE.get(c, DUCKDB_TYPES[COLUMNS[c]])}" for c in self.columns)


def tables(chance: random.Random) -> tuple[TableShape, ...]:
    """Three tables that share some columns; each has an INT to join by."""

    def columns() -> tuple[str, ...]:
        others = [name for name in COLUMNS if name != "i"]
        return ("i", *sorted(chance.sample(others, chance.randint(2, 5)), key=others.index))

    return tuple(TableShape(f"t{at}", columns()) for at in range(3))


def stream(shapes: tuple[TableShape, ...], chance: random.Random, ticks: int) -> list[Tick]:
    """A first load, which may leave tables empty, then ticks with inserts, deletes, updates, or nothing."""
    held: dict[str, list[Row]] = {shape.name: [] for shape in shapes}

    def row(shape: TableShape) -> Row:
        return tuple(stored(COLUMNS[name], chance) for name in shape.columns)

    def load() -> Tick:
        return {
            s.name: [(row(s), chance.choice([1, 1, 1, 2])) for _ in range(chance.choice([0, 3, 5, 7]))] for s in shapes
        }

    def change() -> Tick:
        changes: dict[str, list[tuple[Row, int]]] = {}
        for shape in shapes:
            if chance.random() < 0.3:
                continue
            changes[shape.name] = []
            for _ in range(chance.randint(1, 3)):
                changes[shape.name] += one(shape)
        return changes

    def one(shape: TableShape) -> list[tuple[Row, int]]:
        rows = held[shape.name]
        kind = chance.random()
        if not rows or kind < 0.4:
            return keep(shape, row(shape), 1)
        old = chance.choice(rows)
        if kind < 0.65:
            return keep(shape, old, -1)
        if kind < 0.9:
            at = chance.randrange(len(old))
            new = (*old[:at], stored(COLUMNS[shape.columns[at]], chance), *old[at + 1 :])
            return keep(shape, old, -1) + keep(shape, new, 1)
        passing = row(shape)
        return [(passing, 1), (passing, -1)]

    def keep(shape: TableShape, changed: Row, weight: int) -> list[tuple[Row, int]]:
        rows = held[shape.name]
        rows.append(changed) if weight > 0 else rows.remove(changed)
        return [(changed, weight)]

    first = load()
    for name, changes in first.items():
        held[name] += [r for r, weight in changes for _ in range(weight)]
    return [first, *({} if chance.random() < 0.07 else change() for _ in range(ticks - 1))]


def contents(shapes: tuple[TableShape, ...], ticks: list[Tick]) -> dict[str, list[Row]]:
    """The rows of every table after some ticks."""
    held = {shape.name: Counter[str]() for shape in shapes}
    rows: dict[str, Row] = {}
    for tick in ticks:
        for name, changes in tick.items():
            for row, weight in changes:
                rows[repr(row)] = row
                held[name][repr(row)] += weight
    return {name: [rows[key] for key in bag.elements()] for name, bag in held.items()}
