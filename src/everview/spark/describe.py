"""The description of an epoch under way for Spark's UI and the terminal: its number and its step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from everview.spark.progress import ProgressLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = ("spark.job.description", "spark.jobGroup.id")  # of the thread, given back when the epoch is over


@contextmanager
def described(spark: SparkSession, epoch: int, *, alone: bool) -> Generator[Callable[[str], None]]:
    """Give a function that announces the step of an epoch; an epoch ``alone``, not of a stream, has its own job group.

    A stream keeps its job group, because Spark stops the stream by that.
    """
    context = getattr(spark, "sparkContext", None)
    if context is None:
        yield lambda _: None
        return
    name = f"everview epoch {epoch}"
    before = {each: context.getLocalProperty(each) for each in PROPERTIES}
    if alone:
        context.setJobGroup(name, name)

    def describe(step: str) -> None:
        context.setJobDescription(f"{name}: {step}")
        line.update(f"{name}: {step}")

    try:
        with ProgressLine(shown=alone) as line:
            yield describe
    finally:
        for each, value in before.items():
            context.setLocalProperty(each, value)
