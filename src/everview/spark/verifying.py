"""Verifying a pipeline: its views are computed from scratch, from the contents of its sources, and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from everview.errors import PipelineError
from everview.runtimes.spark.engine import Engine
from everview.spark.queries import compared
from everview.spark.redefining import PipelineDefinitions
from everview.verify import Verdict, verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    unkept = [name for name in definitions.sources.by_name if name not in run.tables]
    if unkept:
        raise PipelineError(
            f"there is nothing to verify against: the contents of {', '.join(unkept)} are not kept",
            hint="make these sources with keep=True",
        )
    wanted = views or tuple(run.views)
    by_spark = [name for name in wanted if queries.asks_spark(name)]
    found = {name: compared(name, shown(name), queries.recomputed(spark, tables(), name)) for name in by_spark}
    others = {name: run.view(name).contents() for name in wanted if name not in found}
    if others:
        sources = {name: engine.contents(name) for name in definitions.sources.by_name}
        timed = {name: others.pop(name) for name in [*others] if queries.timed(name)}
        found |= verify(definitions.circuit, sources, others).views
        before = {name: run.view(name).contents() for name in queries.carried}
        found |= queries.verified(sources | before, timed) if timed else {}
    return Verdict({name: found[name] for name in wanted}, perf_counter() - start)
