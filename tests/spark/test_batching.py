"""Batches that Spark cuts by number: told for the jobs of one thread, and weighed again if rows are very long."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from everview.spark.batching import BYTES, RECORDS, ROWS, ROWS_OF_TEXT, UNWEIGHED, counted
from everview.spark.epochs import PipelineEpochs
from everview.types import Schema

NUMBERS, TEXT = Schema.parse("a BIGINT, d DECIMAL(30, 2)"), Schema.parse("a BIGINT, t STRING")


class Context:
    """The properties of a thread's jobs."""

    def __init__(self) -> None:
        self.properties: dict[str, str | None] = {BYTES: "77"}

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)

    def setLocalProperty(self, name: str, value: str | None) -> None:
        self.properties[name] = value


@pytest.mark.parametrize(("schemas", "rows"), [([NUMBERS], ROWS), ([NUMBERS, TEXT], ROWS_OF_TEXT)])
def test_batches_are_counted_for_a_while(schemas: list[Schema], rows: int) -> None:
    context = Context()
    with counted(cast(Any, SimpleNamespace(sparkContext=context)), "/state", schemas):
        assert context.properties == {BYTES: str(UNWEIGHED), RECORDS: str(rows)}
    assert context.properties == {BYTES: "77", RECORDS: None}


def test_batches_are_weighed_where_matrices_travel_in_rows() -> None:
    context = Context()
    with counted(cast(Any, SimpleNamespace(sparkContext=context)), "s3://bucket/state", [NUMBERS]):
        assert context.properties == {BYTES: "77"}


@pytest.mark.parametrize(
    ("message", "tries"), [("org.apache.arrow.vector.util.OversizedAllocationException: …", 2), ("no such file", 1)]
)
def test_an_epoch_of_very_long_rows_is_run_again(message: str, tries: int) -> None:
    context, seen = Context(), list[str | None]()

    def tick() -> str:
        seen.append(context.properties[BYTES])
        if len(seen) == 1:
            raise RuntimeError(message)
        return "ticked"

    epochs = SimpleNamespace(_spark=SimpleNamespace(sparkContext=context))
    arrival = SimpleNamespace(specs=[SimpleNamespace(schema=TEXT)])
    run: Callable[..., Any] = PipelineEpochs._in_batches
    if tries == 2:
        assert run(epochs, SimpleNamespace(path="/state"), arrival, tick) == "ticked"
        assert seen == [str(UNWEIGHED), "77"]
    else:
        with pytest.raises(RuntimeError, match=message):
            run(epochs, SimpleNamespace(path="/state"), arrival, tick)
