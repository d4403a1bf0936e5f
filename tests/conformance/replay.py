"""A conformance file under way: Everview and DuckDB side by side."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot

import everview as ev
from conformance.comparing import comparable
from conformance.files import Delta, Expect, File, Refused, Row, Sql, Tick
from empty_duckdb import empty_duckdb
from everview.errors import EverviewError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Change = tuple[str, Row, int]
Changes = Mapping[str, list[tuple[Row, int]]]


class Replay:
    """In one process, by the database."""

    def __init__(self, file: File, chance: random.Random) -> None:
        self.file, self.chance = file, chance
        self.duck = empty_duckdb()
        self.tables: dict[str, str] = {}
        self.views: dict[str, str] = {}
        self.waiting: list[Change] = []
        self.begun = False

    def run(self) -> None:
        with ExitStack() as stack:
            self.open(stack)
            for block in self.file.blocks:
                match block:
                    case Sql(text, line):
                        self._statement(text, line)
                    case Delta(table, rows):
                        self.waiting += [(table, row, weight) for row, weight in rows]
                    case Tick():
                        self._flush()
                    case Expect(view, rows, line):
                        self._flush()
                        assert comparable(self.rows(view)) == comparable(rows), f"{self.file.name}:{line}: {view}"
                    case Refused(said, text, line):
                        with pytest.raises(EverviewError) as refusal:
                            self.define(text)
                        assert said.lower() in str(refusal.value).lower(), f"{self.file.name}:{line}: {refusal.value}"
            self._flush()

    # -- what is asked of Everview

    def open(self, stack: ExitStack) -> None:
        self.db = ev.connect()

    def define(self, text: str) -> None:
        self.db.sql(text)

    def apply(self, changes: Changes) -> None:
        self.db.apply(changes)

    def rows(self, view: str) -> list[Row]:
        return self.db.view(view).rows()

    # -- beside DuckDB

    def _statement(self, text: str, line: int) -> None:
        self._flush()
        created = sqlglot.parse_one(text, read="spark")
        assert isinstance(created, sqlglot.exp.Create), "files create tables and views"
        name = created.find(sqlglot.exp.Table).name
        if created.kind == "TABLE":
            self.tables[name] = text
            self.duck.execute(created.sql("duckdb"))
        else:
            self.views[name] = created.expression.sql("duckdb")
            if self.file.outside:
                self.duck.execute(f'CREATE VIEW "{name}" AS {self.views[name]}')
        self.define(text)
        self._check(f"{self.file.name}:{line}")

    def _flush(self) -> None:
        """Apply what waits: at the beginning in random ticks, later in one."""
        for tick in self._ticks():
            changes: dict[str, list[tuple[Row, int]]] = {}
            for table, row, weight in tick:
                changes.setdefault(table, []).append((row, weight))
            self.apply(changes)
            for table, row, weight in tick:
                self._change(table, row, weight)
            self._check(f"{self.file.name} after {tick!r:.300}")
        self.waiting = []

    def _ticks(self) -> Iterator[list[Change]]:
        if self.begun or any(weight < 0 for _, _, weight in self.waiting):
            if self.waiting:
                yield self.waiting
        else:
            changes = list(self.waiting)
            self.chance.shuffle(changes)
            while changes:
                size = self.chance.randint(1, len(changes))
                yield changes[:size]
                changes = changes[size:]
        self.begun = bool(self.waiting) or self.begun

    def _change(self, table: str, row: Row, weight: int) -> None:
        places = ", ".join("?" for _ in row)
        for _ in range(weight):
            self.duck.execute(f'INSERT INTO "{table}" VALUES ({places})', list(row))
        if weight < 0:
            columns = [c[0] for c in self.duck.execute(f'DESCRIBE "{table}"').fetchall()]
            same = " AND ".join(f'"{c}" IS NOT DISTINCT FROM ?' for c in columns)
            wanted = f'SELECT rowid FROM "{table}" WHERE {same} LIMIT {-weight}'
            self.duck.execute(f'DELETE FROM "{table}" WHERE rowid IN ({wanted})', list(row))

    def _check(self, where: str) -> None:
        if not self.file.outside:
            return
        for view in self.views:
            expected: Counter[Any] = comparable(self.duck.execute(f'SELECT * FROM "{view}"').fetchall())
            found = comparable(self.rows(view))
            assert found == expected, f"{where}: {view}\n  missing {expected - found}\n  unexpected {found - expected}"


class SparkReplay(Replay):
    """By tasks on Spark: all views are defined before the first tick, and there are few ticks."""

    def __init__(
        self,
        file: File,
        chance: random.Random,
        spark: SparkSession,
        state: Path,
        unchecked: int = 0,
        place: Any = "cluster",
    ) -> None:
        """The first ``unchecked`` epochs are not looked at: every look at a view is a job of Spark."""
        super().__init__(file, chance)
        self.spark, self.state = spark, state
        self.begun = True  # one tick for what a file has before its first
        self.unchecked, self.place = unchecked + 1, place

    def open(self, stack: ExitStack) -> None:
        from everview.spark import Pipeline

        self.pipeline = stack.enter_context(Pipeline(self.spark, self.state, shards=3, place=self.place))

    def define(self, text: str) -> None:
        created = sqlglot.parse_one(text, read="spark")
        if not (isinstance(created, sqlglot.exp.Create) and created.kind == "TABLE"):
            self.pipeline.sql(text)
            return
        table = created.find(sqlglot.exp.Table).name
        self.pipeline.source(table, self._frame(table, []), changes="weights")

    def apply(self, changes: Changes) -> None:
        self.unchecked -= 1
        self.pipeline.refresh(**{table: self._frame(table, rows) for table, rows in changes.items()})

    def rows(self, view: str) -> list[Row]:
        return [tuple(row) for row in self.pipeline.view(view).collect()]

    def _check(self, where: str) -> None:
        if self.unchecked <= 0:
            super()._check(where)

    def _frame(self, table: str, rows: list[tuple[Row, int]]) -> Any:
        """Rows as Spark has them: text becomes what the column is."""
        columns = sqlglot.parse_one(self.tables[table], read="spark").find_all(sqlglot.exp.ColumnDef)
        types = {column.name: column.args["kind"].sql("spark") for column in columns}
        raw = ", ".join(f"`{name}` STRING" for name in types)
        texts = [(*map(_text, row), weight) for row, weight in rows]
        frame = self.spark.createDataFrame(texts, f"{raw}, _weight BIGINT")
        return frame.selectExpr(*(f"{_read(name, of)} AS `{name}`" for name, of in types.items()), "_weight")


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value) if isinstance(value, list) else str(value)


def _read(name: str, of: str) -> str:
    """Text as a value of a type, in Spark's SQL."""
    return f"from_json(`{name}`, '{of}')" if "<" in of else f"CAST(`{name}` AS {of})"
