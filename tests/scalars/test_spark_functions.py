"""Every function against Spark itself, in ANSI mode: values, types, and what fails or is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.errors import EverviewError, TypeMismatch
from everview.types import Type, type_of_arrow
from scalars import drawn_columns
from scalars.written import COLUMNS, SCHEMA, evaluated, expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's logarithms, powers and the like are within one unit in the last place of ours.
NEARLY = tuple(f"{name}(" for name in drawn_columns.NEARLY)


def pairs(name: str) -> list[tuple[str, str]]:
    """What Spark reads and what we read, of every line of a table."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [(parts[0], parts[-1]) for line in lines if line.strip() for parts in [line.split(" ;; ")]]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    # Hundreds of expressions in one projection are interpreted sooner than they are compiled.
    wanted = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    table = pa.table(COLUMNS, names=SCHEMA.names)
    made = spark.createDataFrame(table).repartition(1)
    made.createOrReplaceTempView("written")
    yield made
    spark.catalog.dropTempView("written")
    for name, value in before.items():
        spark.conf.set(name, value or "true")


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return [comparable(v) for v in value]
    if isinstance(value, dict):
        return {name: comparable(v) for name, v in value.items()}
    return value


def same(text: str, ours: list[Any], theirs: list[Any]) -> bool:
    if text.startswith(NEARLY):
        return all(_near(a, b) for a, b in zip(ours, theirs, strict=True))
    return [comparable(v) for v in ours] == [comparable(v) for v in theirs]


def _near(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-14)


def test_values_and_types_are_those_of_spark(frame: DataFrame) -> None:
    table = pairs("functions.txt")
    named = [f"{sql} AS c{at}" for at, (sql, _) in enumerate(table)]
    theirs = frame.selectExpr(*named).toArrow()
    wrong: list[str] = []
    for at, (sql, text) in enumerate(table):
        found = expression(text)
        column = theirs.column(at)
        of: Type = type_of_arrow(column.type)
        if found.type != of:
            wrong.append(f"{sql}: {found.type}, but Spark has {of}")
        ours = evaluated(found)
        if not same(text, ours, column.to_pylist()):
            wrong.append(f"{sql}: {ours}, but Spark has {column.to_pylist()}")
        if not found.nullable and None in column.to_pylist():
            wrong.append(f"{sql}: is said never to be NULL")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(("sql", "text"), pairs("failing.txt"))
def test_what_fails_in_spark_fails_here(frame: DataFrame, sql: str, text: str) -> None:
    found = expression(text)
    with pytest.raises(EverviewError):
        evaluated(found)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with pytest.raises((PySparkException, Py4JError)):
        frame.selectExpr(sql).collect()


@pytest.mark.parametrize(("sql", "text"), pairs("refused.txt"))
def test_what_spark_refuses_is_refused(frame: DataFrame, sql: str, text: str) -> None:
    with pytest.raises(TypeMismatch):
        expression(text)
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException):
        frame.selectExpr(sql)
