"""Random DataFrame programs and change streams: every view is what Spark collects for the same DataFrame, every epoch.

A program is a few steps of the DataFrame API, each drawn for the columns that the frame has by then. What is refused is
counted by its cause.
"""

from __future__ import annotations

import datetime as dt
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from everview.errors import EverviewError
from everview.spark import Pipeline
from spark.frames import by_pipeline, by_spark
from torture.outcome import Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = "id BIGINT NOT NULL, k INT, v DECIMAL(8,2), s STRING, d DATE, f DOUBLE, w BOOLEAN"
Q = "k INT NOT NULL, name STRING, n BIGINT"
NAMES = ("ann", "Bob", "", "çelik", "bob ")
KINDS = {
    **dict.fromkeys(("int", "bigint", "double", "decimal"), "number"),
    **{"string": "text", "date": "day", "boolean": "truth"},
}


@dataclass
class RandomPrograms:
    """Programs over the relations r and q; the same for the same chance."""

    chance: random.Random
    spark: Any
    relations: dict[str, DataFrame]

    def program(self) -> DataFrame:
        """A DataFrame of some steps over one of the relations."""
        frame = self._renamed(self.relations[self.chance.choice(("r", "r", "q"))])
        for _ in range(self.chance.randint(1, 4)):
            try:
                frame = self._renamed(self.chance.choice(STEPS)(self, frame))
            except AnalysisException:  # of a step that Spark does not have for these columns
                continue
        return frame

    def _renamed(self, frame: DataFrame) -> DataFrame:
        return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))

    # -- columns

    def columns(self, frame: DataFrame, kind: str) -> list[str]:
        """The columns of a kind: numbers, texts, days, truths."""
        return [name for name, type_ in frame.dtypes if KINDS.get(type_.partition("(")[0]) == kind]

    def some(self, frame: DataFrame, count: int = 1) -> list[str]:
        """Some columns, in the order of the frame."""
        chosen = self.chance.sample(range(len(frame.columns)), min(count, len(frame.columns)))
        return [frame.columns[place] for place in sorted(chosen)]

    def number(self, frame: DataFrame) -> Any:
        """A number of a row."""
        from pyspark.sql import functions as F

        known = self.columns(frame, "number")
        if not known:
            return F.lit(self.chance.randint(-3, 3))
        one = F.col(self.chance.choice(known))
        other = F.lit(self.chance.randint(1, 5))
        made = (one, one % 7 + other, F.coalesce(one, other), F.abs(one), F.when(one > other, one).otherwise(other),
                F.greatest(one, other), -one, F.try_divide(one, other), (one * 2).cast("double"),
                F.round(one, 1))  # fmt: skip
        return self.chance.choice(made)

    def text(self, frame: DataFrame) -> Any:
        """A text of a row."""
        from pyspark.sql import functions as F

        known = self.columns(frame, "text")
        if not known:
            return F.lit(self.chance.choice(NAMES))
        one = F.col(self.chance.choice(known))
        made = (one, F.upper(one), F.concat(one, F.lit("!")), F.substring(one, 1, 2), F.trim(one), F.lpad(one, 4, "*"))
        return self.chance.choice(made)

    def value(self, frame: DataFrame) -> Any:
        """Any value of a row."""
        from pyspark.sql import functions as F

        days = self.columns(frame, "day")
        made: list[Callable[[], Any]] = [
            lambda: self.number(frame),
            lambda: self.text(frame),
            lambda: self.test(frame),
            lambda: F.length(self.text(frame)),
            lambda: F.struct(*self.some(frame, 2)),
            lambda: F.array(self.number(frame).cast("double"), F.lit(1.0)),
        ]
        if days:
            day = F.col(self.chance.choice(days))
            made += [
                lambda: F.year(day),
                lambda: F.date_add(day, self.chance.randint(-40, 40)),
                lambda: F.trunc(day, "MM"),
            ]
        return self.chance.choice(made)()

    def test(self, frame: DataFrame) -> Any:
        """A condition on a row."""
        from pyspark.sql import functions as F

        column = F.col(self.some(frame)[0])
        made: list[Callable[[], Any]] = [
            lambda: self.number(frame) > self.chance.randint(-3, 5),
            lambda: self.text(frame).like(self.chance.choice(("a%", "%b%", "_o_"))),
            column.isNull,
            lambda: column.isNotNull() & (self.number(frame) != 2),
            lambda: ~(self.number(frame) <= 1) | column.isNull(),
            lambda: self.text(frame).isin(*self.chance.sample(NAMES, 2)),
        ]
        return self.chance.choice(made)()

    # -- steps

    def filtered(self, frame: DataFrame) -> DataFrame:
        return frame.where(self.test(frame))

    def projected(self, frame: DataFrame) -> DataFrame:
        return frame.select(*self.some(frame, 3), self.value(frame), self.value(frame))

    def joined(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        how = self.chance.choice(("inner", "left", "right", "full", "left_semi", "left_anti"))
        other = self.relations["q"].toDF("qk", "qname", "qn")
        if self.chance.random() < 0.3:
            other = self.relations["r"].where("v > 1").select(F.col("k").alias("qk"), F.col("s").alias("qname"))
        on = self.number(frame) == F.col("qk")
        return frame.join(other, on if self.chance.random() < 0.7 else on & (self.text(frame) < F.col("qname")), how)

    def grouped(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        frame = _comparable(frame)
        keys = self.some(frame, self.chance.randint(0, 2))
        numbers = self.number(frame)
        sums = (F.count("*"), F.sum(numbers), F.avg(numbers), F.min(self.text(frame)), F.count_distinct(numbers),
                F.max(numbers), F.count_if(self.test(frame)), F.sum(F.when(self.test(frame), numbers)))  # fmt: skip
        made = [one.alias(f"a{place}") for place, one in enumerate(self.chance.sample(sums, 2))]
        if len(keys) == 2 and self.chance.random() < 0.3:
            return frame.rollup(*keys).agg(*made)
        return frame.groupBy(*keys).agg(*made) if keys else frame.agg(*made)

    def windowed(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        frame = _comparable(frame)
        over = Window.partitionBy(*self.some(frame))
        by = over.orderBy(self.chance.choice((F.asc, F.desc_nulls_last))(self.some(frame)[0]))
        made = (F.rank().over(by), F.dense_rank().over(by), F.count("*").over(by), F.max(self.number(frame)).over(over),
                F.sum(F.lit(1)).over(by), F.percent_rank().over(by))  # fmt: skip
        return frame.select("*", self.chance.choice(made).alias("over"))

    def different(self, frame: DataFrame) -> DataFrame:
        return _comparable(frame).distinct()

    def united(self, frame: DataFrame) -> DataFrame:
        frame = _comparable(frame)
        other = frame.where(self.test(frame))
        return getattr(frame, self.chance.choice(("union", "intersect", "exceptAll", "subtract", "intersectAll")))(
            other
        )

    def first_rows(self, frame: DataFrame) -> DataFrame:
        frame = _comparable(frame)
        return frame.orderBy(*frame.columns).offset(self.chance.randint(0, 1)).limit(self.chance.randint(1, 4))

    def exploded(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        parts = F.split(self.text(frame), "")
        make = self.chance.choice((F.explode, F.explode_outer))
        return frame.select(*self.some(frame, 2), make(F.array_distinct(parts)))

    def filled(self, frame: DataFrame) -> DataFrame:
        return frame.fillna(0).dropna(subset=self.some(frame))

    def called(self, frame: DataFrame) -> DataFrame:
        """A column by a function of the user's: plain, with Arrow, or of pandas' series.

        Workers get the functions by their code, because they need not have this module.
        """
        from pyspark.sql import functions as F

        def doubled(numbers: pd.Series) -> pd.Series:
            return numbers * 2

        def shouted(texts: pa.Array) -> pa.Array:
            return pc.utf8_upper(texts)

        number, text = self.number(frame).cast("double"), self.text(frame)
        made = (
            F.udf(lambda value: None if value is None else value + 1, "double")(number),
            F.udf(lambda value: None if value is None else len(value), "int", useArrow=True)(text),
            F.pandas_udf(doubled, "double")(number),
            F.arrow_udf(shouted, "string")(text),
            F.udf(lambda value, times: [value] * times, "array<string>")(text, F.lit(2)),
        )
        return frame.select(*self.some(frame, 3), self.chance.choice(made).alias("made"))

    def pivoted(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        frame = _comparable(frame)
        texts = self.columns(frame, "text")
        by = texts[0] if texts else self.some(frame)[0]
        values: list[Any] = [*NAMES[:3]] if texts else [1, 2]
        made = self.chance.choice((F.sum(self.number(frame)), F.count(F.lit(1)), F.max(self.text(frame))))
        return frame.groupBy(*self.some(frame)).pivot(by, values).agg(made)

    def nested(self, frame: DataFrame) -> DataFrame:
        """Columns of nested types, and what is taken out of them again."""
        from pyspark.sql import functions as F

        number, text = self.number(frame).cast("double"), self.text(frame)
        rows = F.struct(number.alias("x"), F.struct(text.alias("y"), F.lit(1).alias("z")).alias("in"))
        several = F.array(number, F.lit(2.0), F.lit(None))
        keyed = F.create_map(F.lit("a"), number, F.lit("b"), F.lit(0.5))
        made = (
            rows,
            rows.getField("in").getField("y"),
            F.transform(several, lambda x: x + 1),
            F.filter(several, lambda x: x > 1),
            F.aggregate(F.array(F.lit(1.0), F.coalesce(number, F.lit(0.0))), F.lit(0.0), lambda a, x: a + x),
            F.map_values(F.transform_values(keyed, lambda k, v: v * 2)),
            keyed.getItem("a"),
            F.arrays_zip(several.alias("one"), F.array(text).alias("two")),
            F.sort_array(F.array_compact(several)),
            rows.withField("x", F.lit(0)),
        )
        return frame.select(*self.some(frame, 3), *self.chance.sample(made, 2))

    def unpivoted(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        numbers = self.columns(frame, "number")[:2]
        if not numbers:
            return frame
        kept = [name for name in self.some(frame, 2) if name not in numbers]
        return frame.select(*kept, *(F.col(n).cast("double").alias(n) for n in numbers)).unpivot(
            kept, numbers, "what", "how_much"
        )


STEPS = (
    *(RandomPrograms.filtered, RandomPrograms.projected, RandomPrograms.joined, RandomPrograms.grouped),
    *(RandomPrograms.windowed, RandomPrograms.different, RandomPrograms.united, RandomPrograms.first_rows),
    *(RandomPrograms.exploded, RandomPrograms.filled, RandomPrograms.projected, RandomPrograms.joined),
    *(RandomPrograms.called, RandomPrograms.pivoted, RandomPrograms.nested, RandomPrograms.unpivoted),
)


def _comparable(frame: DataFrame) -> DataFrame:
    """The columns whose sums and order do not depend on the order of rows: no nested ones, and no floating point."""
    kept = [
        name for name, type_ in frame.dtypes if type_ != "double" and not type_.startswith(("array", "struct", "map"))
    ]
    from pyspark.sql import functions as F

    return frame.select(*kept) if kept else frame.select(F.lit(1).alias("one"))


# -- rows and changes


def rows_of(chance: random.Random, ids: range) -> list[tuple[Any, ...]]:
    """Rows of r; those of the same ids take the place of earlier ones."""

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    return [
        (i, maybe(chance.randint(0, 4)), maybe(Decimal(chance.randint(-300, 900)) / 100), maybe(chance.choice(NAMES)),
         maybe(dt.date(2024, chance.randint(1, 12), 3)), maybe(chance.choice((0.5, -1.25, 3.0))),
         maybe(chance.random() < 0.5))
        for i in ids
    ]  # fmt: skip


@dataclass
class FrameTrial:
    """Batches of programs, each in one pipeline, and what came of them."""

    spark: SparkSession
    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])

    def batch(self, seed: int, count: int, place: str = "driver") -> list[str]:
        """Define some programs, change the rows twice, and say which views differ from Spark's answer."""
        chance, differing = random.Random(seed), list[str]()
        with tempfile.TemporaryDirectory() as folder, Pipeline(self.spark, Path(folder), shards=2, place=place) as p:  # pyright: ignore[reportArgumentType]
            p.source("r", self.spark.createDataFrame(rows_of(chance, range(12)), R), key="id", changes="upsert")
            q = [(k, NAMES[k], k * 10) for k in range(4)]
            p.source("q", self.spark.createDataFrame(q, Q), key="k", changes="upsert")
            programs = RandomPrograms(chance, self.spark, {name: p.frame(name) for name in ("r", "q")})
            frames: dict[str, DataFrame] = {}
            for number in range(count):
                frame = programs.program()
                try:
                    p.define(f"v{number}", frame)
                    frames[f"v{number}"] = frame
                except EverviewError as error:
                    self.refused[error.message.splitlines()[0]] += 1
            p.refresh()
            for epoch in range(3):
                relations = {name: p.table(name) for name in ("r", "q")}
                mine, wanted = by_pipeline(p, frames), by_spark(frames, relations)
                differing += [
                    f"seed {seed}, {name}, epoch {epoch}: {mine[name] - wanted[name]}, not {wanted[name] - mine[name]}"
                    f"\n{frames[name]._jdf.queryExecution().analyzed().toString()}"  # pyright: ignore[reportAttributeAccessIssue]
                    for name in frames
                    if mine[name] != wanted[name]
                ]
                self.compared += len(frames)
                if epoch < 2:
                    changed = rows_of(chance, range(epoch * 4, 14))
                    p.refresh(r=self.spark.createDataFrame(chance.sample(changed, 5), R))
        return differing


def run(seconds: float, seed: int) -> Outcome:
    """Compare random programs with a Spark session of this trial's own until the time is over."""
    from everview.spark import session

    spark = session("local[2]", memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    trial, outcome, start = FrameTrial(spark), Outcome(), time.monotonic()
    try:
        while time.monotonic() - start < seconds:
            outcome.faults += trial.batch(seed, 8, "cluster" if seed % 4 == 0 else "driver")
            seed += 1
    finally:
        spark.stop()
    outcome.tried["answers of programs compared with Spark"] += trial.compared
    outcome.notes.append(f"{60 * trial.compared / (time.monotonic() - start):.0f} answers compared a minute")
    outcome.notes += [f"{times} refused: {cause}" for cause, times in trial.refused.most_common()]
    return outcome
