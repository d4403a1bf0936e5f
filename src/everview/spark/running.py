"""A pipeline run from the command line: epochs as they come, until there is nothing left, or until it is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

from rich.console import Console

from everview.errors import EverviewError, PipelineError
from everview.spark.pipeline import Pipeline
from everview.spark.progress import LiveTable

EVERY: Final = 0.2  # seconds between two looks
ONCE: Final = "availableNow"
FOREVER: Final = {"processingTime": "1 second"}
_OURS = re.compile(r"everview\.errors\.\w+: (.*?)(?=\n\s*\n|\n\s+at |\n[A-Z=]|\Z)", re.DOTALL)


def run(pipeline: Pipeline, trigger: Mapping[str, Any] | None, console: Console) -> None:
    """Show the epochs of a pipeline: of all that is there by now, or, by a trigger that does not end, as they come."""
    if trigger is None or ONCE in trigger:
        _watched(pipeline, pipeline.refresh, console)
    else:
        _watched(pipeline, lambda: pipeline.start(trigger=trigger).awaitTermination(), console)
    nothing = "" if pipeline.progress else ": nothing was new"
    console.print(f"epoch {pipeline.epoch}{nothing}", highlight=False)


def _watched(pipeline: Pipeline, work: Callable[[], object], console: Console) -> None:
    """Work in a thread of its own, so that this one can show what is done, and be interrupted."""
    with LiveTable(tuple(pipeline.circuit.sinks), console=console) as live, ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(work)
        try:
            while not wait([under_way], timeout=EVERY).done:
                _show(pipeline, live)
        except KeyboardInterrupt:
            pipeline.stop()
            wait([under_way])
            return
        finally:
            _show(pipeline, live)
        _raise(under_way)


def _show(pipeline: Pipeline, live: LiveTable) -> None:
    for done in pipeline.progress[len(live.done) :]:
        live.add(done)


def _raise(done: Future[object]) -> None:
    from pyspark.errors import PySparkException

    try:
        done.result()
    except PySparkException as error:
        raise of_spark(error) from error


def of_spark(error: Exception) -> EverviewError:
    """What Spark says of a failure: our own words in it, if one of ours is the cause; else its first line.

    >>> print(of_spark(ValueError("[STREAM_FAILED] …\\neverview.errors.BadRows: 1 bad row\\n  hint: h\\n\\n\\tat y")))
    1 bad row
      hint: h
    """
    text = str(error).strip()
    found = _OURS.search(text)
    if found is None:
        return PipelineError(text.partition("\n")[0], hint="that is what Spark says of it")
    message, _, hint = found[1].partition("\n  hint: ")
    return PipelineError(message.strip(), hint=hint.strip() or None)
