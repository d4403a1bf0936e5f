"""Verifying a pipeline: its views are computed from scratch, from the contents of its sources, and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from everview.errors import PipelineError
from everview.runtimes.spark.engine import Engine
from everview.spark.redefining import PipelineDefinitions
from everview.verify import SHOWN, Compared, Rest, Verdict, verify

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


ASIDE: Final = 1 + 3e-7  # moves a number by less than the last of six digits


def verified(
    spark: SparkSession,
    engine: Engine,
    definitions: PipelineDefinitions,
    views: tuple[str, ...],
    shown: Callable[[str], DataFrame],
    tables: Callable[[], Mapping[str, DataFrame]],
) -> Verdict:
    """The verdict on some views, or on all; ``shown`` gives the rows of a view, ``tables`` those of the sources."""
    start, queries, run = perf_counter(), definitions.queries, engine.run
    for name in views:
        run.view(name)
    _require_kept([name for name in definitions.sources.by_name if name not in run.tables])
    wanted = views or tuple(run.views)
    by_spark = [name for name in wanted if queries.asks_spark(name)]
    contents = dict(tables()) if by_spark else {}
    if any(view.name in by_spark for view in queries.recomputed_views):
        contents |= {name: shown(name) for name in run.views if not queries.asks_spark(name)}
    verdicts = {name: compared(name, shown(name), queries.recomputed(spark, contents, name)) for name in by_spark}
    others = {name: run.view(name).contents() for name in wanted if name not in verdicts}
    if others:
        sources = {name: engine.contents(name) for name in definitions.sources.by_name}
        timed = {name: others.pop(name) for name in [*others] if queries.timed(name)}
        verdicts |= verify(definitions.circuit, sources, others).views
        before = {name: run.view(name).contents() for name in queries.carried}
        verdicts |= queries.verified(sources | before, timed) if timed else {}
    return Verdict({name: verdicts[name] for name in wanted}, perf_counter() - start)


def _require_kept(unkept: list[str]) -> None:
    if unkept:
        raise PipelineError(
            f"there is nothing to verify against: the contents of {', '.join(unkept)} are not kept",
            hint="make these sources with keep=True",
        )


def compared(view: str, held: DataFrame, wanted: DataFrame) -> Compared:
    """Compare a view with the rows that Spark computes; floating-point numbers agree to six digits.

    Two numbers that differ by their last bit may lie on either side of a half, and be rounded apart. So rows that
    differ are compared again with all numbers moved a little, away from that half.
    """
    mine, same = _as_held(held, held), _as_held(wanted, held)
    ours, theirs, missing, extra = _counts(mine, same)
    if missing and missing == extra and _has_floats(held):
        _, _, missing, extra = _counts(_as_held(held, held, ASIDE), _as_held(wanted, held, ASIDE))
    return Compared(
        view,
        ours,
        theirs,
        Rest(missing, _first(same.exceptAll(mine)) if missing else ()),
        Rest(extra, _first(mine.exceptAll(same)) if extra else ()),
    )


def _has_floats(held: DataFrame) -> bool:
    from pyspark.sql import types as t

    return any(isinstance(field.dataType, t.DoubleType | t.FloatType) for field in held.schema.fields)


def _counts(mine: DataFrame, same: DataFrame) -> tuple[int, int, int, int]:
    """How many rows there are on each side, and how many of each the other lacks; in one job, so that both run once."""
    from pyspark.sql import functions as f

    names = [f"c{place}" for place in range(len(mine.columns))]
    sides = [
        frame.toDF(*names).withColumns({"ours": f.lit(ours), "theirs": f.lit(1 - ours)})
        for frame, ours in ((mine, 1), (same, 0))
    ]
    rows = sides[0].unionAll(sides[1]).groupBy(*names).agg(f.sum("ours").alias("ours"), f.sum("theirs").alias("theirs"))
    lacking = (
        f.greatest(f.col("theirs") - f.col("ours"), f.lit(0)),
        f.greatest(f.col("ours") - f.col("theirs"), f.lit(0)),
    )
    (counts,) = rows.agg(f.sum("ours"), f.sum("theirs"), *(f.sum(each) for each in lacking)).collect()
    ours, theirs, missing, extra = (int(count or 0) for count in counts)
    return ours, theirs, missing, extra


def _as_held(frame: DataFrame, held: DataFrame, times: float = 1.0) -> DataFrame:
    """The rows with the types of a view and what can be compared; floating-point numbers are multiplied by a factor."""
    return frame.select(*(_column_as_held(frame, held, place, times) for place in range(len(held.columns))))


def _column_as_held(frame: DataFrame, held: DataFrame, place: int, times: float) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    type_, name = held.schema.fields[place].dataType, held.columns[place]
    written = frame.columns[place].replace("`", "``")  # a name may have a dot in it
    column = frame[f"`{written}`"].cast(type_)
    if isinstance(type_, t.DoubleType | t.FloatType):
        return f.format_string("%.6g", column * f.lit(times) + f.lit(0.0)).alias(name)  # 0 has no sign
    if "map<" in type_.simpleString() or "variant" in type_.simpleString():
        return f.to_json(f.struct(column)).alias(name)  # Spark does not compare them
    return column.alias(name)


def _first(frame: DataFrame) -> tuple[tuple[tuple[Any, ...], int], ...]:
    return tuple((tuple(row), 1) for row in frame.take(SHOWN))
