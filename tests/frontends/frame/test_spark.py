"""Frames against PySpark: the same functions over DataFrames of both give the same rows."""

from __future__ import annotations

import inspect
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from everview.errors import EverviewError
from everview.frontends.frame.functions import OWN, TAKES, names
from everview.spark.frames import frame_of
from frontends.frame.both import counted, database_of, without_spark
from frontends.frame.programs import BODIES
from spark.frames import interpreted
from torture.random_frames import NAMES, STEPS, Q, R, RandomPrograms, rows_of
from tpch.frames import PROGRAMS
from tpch.refreshing import generated, with_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANDOM = 8  # programs
WITHOUT_UDFS = tuple(step for step in STEPS if step is not RandomPrograms.called)  # which only Spark has


def test_functions_of_frames_and_of_spark_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    tables = with_answers(generated(0.002, tmp_path))
    programs = {**{name: PROGRAMS[name] for name in ("q1", "q2", "q7", "q13", "q16", "q21")}, **BODIES}
    db = database_of(tables)
    with without_spark():
        frames = {name: program({table: db.frame(table) for table in tables}) for name, program in programs.items()}
        kept = {name: db.define(name, frame) for name, frame in frames.items()}
    theirs = {name: frame_of(spark, rows).cache() for name, rows in tables.items()}
    with interpreted(spark):
        for name, program in programs.items():
            wanted = program(theirs)
            assert frames[name].columns == wanted.columns, name
            answer = counted(wanted.collect())
            assert counted(frames[name].collect()) == answer, name
            assert counted(kept[name].rows()) == answer, name
            assert answer, name


class _Both(RandomPrograms):
    """Random programs, each of which is made twice: of DataFrames of Spark, and of frames."""

    def program(self) -> Any:
        frame = self._renamed(self.relations[self.chance.choice(("r", "r", "q"))])
        for _ in range(self.chance.randint(1, 4)):
            frame = self._renamed(self.chance.choice(WITHOUT_UDFS)(self, frame))
        return frame


def test_random_programs_give_the_rows_that_spark_collects(spark: SparkSession) -> None:
    rows = rows_of(random.Random(5), range(12))
    q = [(k, NAMES[k], k * 10) for k in range(4)]
    theirs = {"r": spark.createDataFrame(rows, R).cache(), "q": spark.createDataFrame(q, Q).cache()}
    db = database_of({name: frame.toArrow() for name, frame in theirs.items()})
    compared = 0
    with interpreted(spark):
        for seed in range(RANDOM):
            with without_spark():
                try:
                    mine = _Both(random.Random(seed), None, {name: db.frame(name) for name in theirs}).program()
                except EverviewError as error:
                    mine = error
            try:
                wanted = _Both(random.Random(seed), spark, theirs).program()
            except AnalysisException as error:
                wanted = error
            assert isinstance(mine, EverviewError) == isinstance(wanted, AnalysisException), (seed, mine, wanted)
            if isinstance(wanted, AnalysisException):
                continue
            compared += 1
            assert mine.dtypes == wanted.dtypes, seed
            assert counted(mine.collect()) == counted(wanted.collect()), (seed, mine.bound.plan)
    assert compared > RANDOM / 2


def test_texts_are_values_where_pyspark_takes_them_for_values() -> None:
    from pyspark.sql import functions as theirs

    for name in sorted((names() & {*theirs.__all__}) - {*OWN}):
        for place, parameter in enumerate(inspect.signature(getattr(theirs, name)).parameters.values()):
            hint, said = str(parameter.annotation), TAKES.get(name, ())
            if name not in TAKES:
                assert parameter.annotation is not str, f"{name}: {parameter.name} is a text"
            elif place < len(said) and not said[place].startswith("*"):
                assert said[place].rstrip("!") == parameter.name, name
                assert said[place].endswith("!") == ("ColumnOrName" not in hint), (name, parameter.name)
