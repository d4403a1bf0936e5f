"""What Spark's UI and the terminal say while an epoch is under way: which one it is, and which step of it."""

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
    """A function that names the step of an epoch; one that is ``alone``, not of a stream, has a job group of its own.

    The job group of a stream is the one by which Spark stops it.
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
