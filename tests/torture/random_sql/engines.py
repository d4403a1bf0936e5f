"""Everview, DuckDB and Spark, asked the same queries over the same tables.

An answer is a bag of rows, or a `Failure`. Everview keeps each query as a view and is given the stream tick by tick;
the others are given the tables as they are after a tick, and compute.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

import everview as ev
from everview.errors import EverviewError
from torture.random_sql.comparing import Bag, bag
from torture.random_sql.constants import written
from torture.random_sql.tables import COLUMNS, WIDE, Row, TableShape, Tick, contents
from torture.random_sql.trees import SPARK_TYPES

if TYPE_CHECKING:
    import random

    from pyspark.sql import SparkSession

MOST_ROWS = 3_000  # an answer with more is not worth the time
LONGEST_ANSWER = 20  # seconds that DuckDB may take


@dataclass(frozen=True)
class Failure:
    """No answer: `kind` is the class of the error, `stage` when it came."""

    stage: str  # create, tick, read, analyse, run
    kind: str
    message: str
    raw: bool = False  # not an error meant for users

    def __str__(self) -> str:
        return f"{self.kind} ({self.stage}): {self.message}"

    @property
    def cause(self) -> str:
        """The message without what differs between queries."""
        first = self.message.splitlines()[0] if self.message else ""
        return f"{self.kind} ({self.stage}): {normal(first)[:110]}"


Answer = Bag | Failure


def normal(text: str) -> str:
    """A text without its literals, numbers and aliases."""
    text = re.sub(r"'(?:[^'\\]|\\.|'')*'", "'…'", text)
    text = re.sub(r'"(?:[^"\\]|\\.|"")*"', '"…"', text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]\d+)?D?", "0", text)


# -- Everview


def everview_answers(
    shapes: tuple[TableShape, ...], ticks: list[Tick], texts: list[str], made_after: int
) -> list[list[Answer]]:
    """For each query its answers after each tick from `made_after` on, when views are made; 0 is before the first."""
    answers = _together(shapes, ticks, texts, made_after)
    if answers is not None:
        return answers
    alone = [_together(shapes, ticks, [text], made_after) for text in texts]
    return [
        found[0] if found is not None else _until_failure(shapes, ticks, text, made_after)
        for text, found in zip(texts, alone, strict=True)
    ]


def _database(shapes: tuple[TableShape, ...]) -> ev.Database:
    db = ev.connect()
    for shape in shapes:
        db.sql(f"CREATE TABLE {shape.name} ({shape.spark()})")
    return db


def _create(db: ev.Database, name: str, text: str) -> Failure | None:
    try:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    except Exception as error:  # noqa: BLE001
        return _failure("create", error)
    return None


def _failure(stage: str, error: BaseException) -> Failure:
    message = error.message if isinstance(error, EverviewError) else str(error)
    return Failure(stage, type(error).__name__, message, raw=not isinstance(error, EverviewError))


def _read(db: ev.Database, name: str) -> Answer:
    try:
        return bag(db.view(name).rows())
    except Exception as error:  # noqa: BLE001
        return _failure("read", error)


def _together(
    shapes: tuple[TableShape, ...], ticks: list[Tick], texts: list[str], made_after: int
) -> list[list[Answer]] | None:
    """All views in one database; None if a tick fails, which is the fault of one of them."""
    db = _database(shapes)
    answers: list[list[Answer]] = [[] for _ in texts]
    failed: dict[int, Failure] = {}
    for at in range(len(ticks) + 1):
        if at > 0:
            try:
                db.apply(dict(ticks[at - 1]))
            except Exception:  # noqa: BLE001
                return None
        if at == made_after:
            failed = {n: failure for n, text in enumerate(texts) if (failure := _create(db, f"v{n}", text)) is not None}
        if at >= max(made_after, 1):
            for n in range(len(texts)):
                answers[n].append(failed[n] if n in failed else _read(db, f"v{n}"))
    return answers


def _until_failure(shapes: tuple[TableShape, ...], ticks: list[Tick], text: str, made_after: int) -> list[Answer]:
    """One view that makes a tick fail: its answers before, and the failure from there on."""
    db = _database(shapes)
    answers: list[Answer] = []
    failure: Failure | None = None
    for at in range(len(ticks) + 1):
        if at > 0 and failure is None:
            try:
                db.apply(dict(ticks[at - 1]))
            except Exception as error:  # noqa: BLE001
                failure = _failure("tick", error)
        if at == made_after and failure is None:
            failure = _create(db, "v0", text)
        if at >= max(made_after, 1):
            answers.append(_read(db, "v0") if failure is None else failure)
    return answers


# -- DuckDB


class DuckDB:
    """Tables that are filled anew after each tick."""

    def __init__(self, shapes: tuple[TableShape, ...]) -> None:
        self.shapes = shapes
        self._held: dict[str, list[Row]] = {}
        self._open()

    def _open(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
        for shape in self.shapes:
            self.connection.execute(f"CREATE TABLE {shape.name} ({shape.duckdb()})")

    def load(self, tables: dict[str, list[Row]]) -> None:
        self._held = tables
        for shape in self.shapes:
            self.connection.execute(f"DELETE FROM {shape.name}")
            rows = tables[shape.name]
            if rows:
                row = "(" + ", ".join("?" for _ in shape.columns) + ")"
                values = ", ".join(row for _ in rows)
                self.connection.execute(f"INSERT INTO {shape.name} VALUES {values}", [v for r in rows for v in r])

    def answer(self, text: str) -> Answer:
        watch = threading.Timer(LONGEST_ANSWER, self.connection.interrupt)
        watch.start()
        try:
            rows = self.connection.execute(text).fetchmany(MOST_ROWS + 1)
        except duckdb.FatalException as error:  # after which it does nothing more
            self.connection.close()
            self._open()
            self.load(self._held)
            return Failure("run", type(error).__name__, str(error))
        except duckdb.Error as error:
            return Failure("run", type(error).__name__, str(error))
        finally:
            watch.cancel()
        return Failure("run", "TooMany", "more rows than are compared") if len(rows) > MOST_ROWS else bag(rows)


def duckdb_answers(
    shapes: tuple[TableShape, ...], ticks: list[Tick], texts: list[str | None], made_after: int
) -> list[list[Answer]]:
    """As `everview_answers`; a query that DuckDB cannot say (None) fails."""
    engine = DuckDB(shapes)
    answers: list[list[Answer]] = [[] for _ in texts]
    for at in range(max(made_after, 1), len(ticks) + 1):
        engine.load(contents(shapes, ticks[:at]))
        for n, text in enumerate(texts):
            hopeless = answers[n] and isinstance(answers[n][-1], Failure)
            answers[n].append(
                Failure("create", "NotThere", "")
                if text is None
                else answers[n][-1]
                if hopeless
                else engine.answer(text)
            )
    engine.connection.close()
    return answers


# -- Spark


class Spark:
    """Temporary views that are replaced when the tables change, in a session of their own."""

    SETTINGS = {  # noqa: RUF012
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        # Queries over a few rows take longer to compile than to run.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }

    def __init__(self, session: SparkSession) -> None:
        self.session = session.newSession()
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # a refusal is an answer, too
        for name, value in self.SETTINGS.items():
            self.session.conf.set(name, value)

    def load(self, shapes: tuple[TableShape, ...], tables: dict[str, list[Row]], chance: random.Random) -> None:
        for shape in shapes:
            types = {c: WIDE.get(c, SPARK_TYPES[COLUMNS[c]]) for c in shape.columns}
            # A row of NULLs, so that an empty table has its types too; it is not selected.
            rows = [(True, tuple(None for _ in types)), *((False, row) for row in tables[shape.name])]
            values = ", ".join(
                "("
                + ", ".join([str(hidden).lower(), *(_literal(c, v, chance) for c, v in zip(types, row, strict=True))])
                + ")"
                for hidden, row in rows
            )
            columns = ", ".join(f"CAST({c} AS {kind}) AS {c}" for c, kind in types.items())
            self.session.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW {shape.name} AS SELECT {columns}"
                f" FROM VALUES {values} AS v(hidden, {', '.join(types)}) WHERE NOT hidden"
            )

    def answer(self, text: str) -> Answer:
        from pyspark.errors import PySparkException

        stage = "analyse"
        try:
            frame = self.session.sql(text)
            stage = "run"
            rows = frame.collect()
        except PySparkException as error:
            condition = error.getCondition() or type(error).__name__
            return Failure(stage, condition, str(error).split("SQLSTATE")[0].split("== SQL")[0].strip()[:300])
        except Exception as error:  # noqa: BLE001
            java = re.search(r"\[([A-Z_.]+)\] (.*)", str(error))  # py4j's errors carry Spark's in their text
            return Failure("run", java[1] if java else type(error).__name__, java[2] if java else str(error)[:300])
        return bag([tuple(_in_utc(value) for value in row) for row in rows])


def _literal(column: str, value: Any, chance: random.Random) -> str:
    return written(COLUMNS[column], value, chance, frozenset({"empty_array"})).spark


def _in_utc(value: Any) -> Any:
    """Spark gives times in the zone of this process, without saying so."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    return value
