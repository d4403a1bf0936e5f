"""Lateness of sources: what came after the watermark is set aside, and the watermark moves with what came in time.

A source with a lateness promises that its rows are at most so much before the latest of the epochs before. Its
watermark is a source of its own, of one row, that changes in the same epoch; so it is part of the state, and the same
after a restart. Rows that break the promise get a reason, and are set aside as other bad rows are, but never refused.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyspark.sql.functions as F

from everview.errors import SourceError
from everview.plan.timed import Watermark, watermark_of
from everview.runtimes.spark.engine import Engine
from everview.scalars.kinds import MICROS
from everview.spark.bound import BoundSource, BoundSources
from everview.spark.changes import normalized
from everview.spark.shaping import LATE, column_of, sortable
from everview.spark.spec import SourceSpec
from everview.types import DATE, TIMESTAMP, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Lateness = tuple[str, dt.timedelta | str]
_WRITTEN: Final = re.compile(r"\s*(\d+)\s*([a-z]+?)s?\s*", re.IGNORECASE)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def watermark(name: str, schema: Schema, changes: str, lateness: Lateness) -> Watermark:
    """The promise of a source, checked: ``("ts", "5 minutes")``."""
    try:
        column, delay = lateness
    except (TypeError, ValueError):
        raise SourceError(f"source {name}: {lateness!r} is no lateness", hint='write ("ts", "5 minutes")') from None
    if changes != "append":
        raise SourceError(
            f'source {name} has changes="{changes}", and a lateness is of rows that are new',
            hint='only changes="append" has one: a later change of a row would go back before the watermark',
        )
    time = schema.fields[schema.index(column)]
    if time.type not in (TIMESTAMP, DATE):
        raise SourceError(f"source {name}: {column} is {time.type}, and no time", hint="a TIMESTAMP or a DATE is one")
    micros = _micros(name, delay)
    if time.type == DATE and micros % MICROS["day"]:
        raise SourceError(f"source {name}: the lateness of a DATE is whole days", hint='write "1 day"')
    return Watermark(column, micros)


def _micros(name: str, delay: dt.timedelta | str) -> int:
    if isinstance(delay, dt.timedelta):
        micros = delay // dt.timedelta(microseconds=1)
    else:
        micros = micros_of(delay)
    if micros is None or micros < 0:
        raise SourceError(f"source {name}: {delay!r} is no lateness", hint='write "5 minutes", or a timedelta')
    return micros


def micros_of(written: Any) -> int | None:
    """The microseconds of a text like ``5 minutes``; None if it is none.

    >>> micros_of("2 seconds"), micros_of("soon")
    (2000000, None)
    """
    match = _WRITTEN.fullmatch(str(written))
    return int(match[1]) * MICROS[match[2].lower()] if match and match[2].lower() in MICROS else None


def promised(bound: BoundSource | None) -> Lateness | None:
    """The lateness of a source, which one in its place has, too."""
    made = None if bound is None else bound.watermark
    return None if made is None else (made.column, dt.timedelta(microseconds=made.delay))


def bind_watermark(sources: BoundSources, spark: SparkSession, name: str, lateness: Lateness) -> None:
    """Give a source that was just bound its watermark."""
    bound = sources.by_name[name]
    made = watermark(name, bound.spec.schema, bound.spec.changes, lateness)
    sources.by_name[name] = replace(bound, watermark=made)
    sources.by_name.pop(watermark_of(name), None)  # of a source that was bound before
    time = bound.spec.schema[made.column]
    frame = _moment(spark, made.column, time.type == DATE, 0)
    schema = Schema([replace(time, nullable=False)])
    sources.bind(watermark_of(name), frame, schema=schema, keep=True, key=made.column, changes="snapshot")


def _moment(spark: SparkSession, column: str, day: bool, word: int) -> DataFrame:
    value = f"date_from_unix_date({word})" if day else f"timestamp_micros({word})"
    return spark.sql(f"SELECT {value} AS `{column.replace('`', '``')}`")


def judged(
    engine: Engine, sources: BoundSources, specs: Sequence[SourceSpec], frames: Sequence[DataFrame]
) -> tuple[Sequence[SourceSpec], Sequence[DataFrame]]:
    """The frames of an epoch with late rows marked, and with the watermarks as they are after the epoch."""
    told, more = list(frames), list[SourceSpec]()
    moved: list[DataFrame] = []
    for place, (spec, frame) in enumerate(zip(specs, frames, strict=True)):
        promise = sources.by_name[spec.name].watermark
        if promise is None:
            continue
        day = spec.schema[promise.column].type == DATE
        passed = _passed(engine, spec.name)
        told[place] = _marked(frame, spec, promise.column, passed)
        latest = _latest(told[place], promise.column)
        reached = None if latest is None else latest - (promise.delay // MICROS["day"] if day else promise.delay)
        if reached is not None and (passed is None or reached > passed):
            own = sources.by_name[watermark_of(spec.name)].spec
            more.append(own)
            moved.append(normalized(_moment(frame.sparkSession, promise.column, day, reached), own))
    return [*specs, *more], [*told, *moved]


def _passed(engine: Engine, name: str) -> int | None:
    """The watermark of a source before the epoch: microseconds or days since 1970."""
    for (moment,), _ in engine.contents(watermark_of(name)):
        if isinstance(moment, dt.datetime):
            zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
            return (zoned - _EPOCH) // dt.timedelta(microseconds=1)
        return (moment - _EPOCH.date()).days
    return None


def _word(frame: DataFrame, column: str) -> Any:
    """The word of a time, days or microseconds; of one without a zone as it is kept, whatever the session's zone."""
    return sortable(column_of(column), frame.schema[column].dataType)


def _marked(frame: DataFrame, spec: SourceSpec, column: str, passed: int | None) -> DataFrame:
    late = column_of(column).isNull()
    if passed is not None:
        late = late | (_word(frame, column) < F.lit(passed))
    late = F.col("_reason").isNull() & late
    raw = F.to_json(F.struct(*(column_of(name) for name in spec.schema.names)))
    return frame.withColumns(
        {
            "_raw": F.when(late, raw).otherwise(F.col("_raw")),
            "_reason": F.when(late, F.lit(LATE)).otherwise(F.col("_reason")),
        }
    )


def _latest(frame: DataFrame, column: str) -> int | None:
    """The latest time of the rows that are taken."""
    (row,) = frame.filter(F.col("_reason").isNull()).agg(F.max(_word(frame, column))).collect()
    return row[0]
