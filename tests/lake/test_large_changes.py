"""Changes that are kept in the state, in tables of Delta and Iceberg: tasks merge them, and each epoch counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from everview.errors import SinkError
from everview.runtimes.spark.stored_change import StoredChange
from everview.spark import delta as delta_sinks
from everview.spark import iceberg as iceberg_sinks
from everview.spark.sinks import deliver, sink_of
from lake_session import LEFT_OPEN
from spark.test_large_changes import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, LEFT_OPEN]
FIRST = [((k, f"old {k}"), 1) for k in range(30)]
THEN = [*(((k, f"old {k}"), -1) for k in range(20)), *(((k, f"new {k}"), 1) for k in (*range(10), *range(40, 50)))]
AFTER = {k: f"{'new' if k < 10 or k >= 40 else 'old'} {k}" for k in (*range(10), *range(20, 30), *range(40, 50))}


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_large_change_is_merged_by_tasks(
    lake: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    schema, state = "k BIGINT NOT NULL, s STRING", uuid4().hex
    epochs = [stored(tmp_path / str(number), FIRST, then, schema=schema) for number, then in enumerate(([], THEN))]
    epochs[0] = replace(epochs[0], since=0, rows=len(FIRST))
    monkeypatch.setattr(StoredChange, "batch", lambda _: pytest.fail("the driver has fetched a whole change"))
    name = f"ice.b{uuid4().hex[:8]}.v" if format == "iceberg" else f"v{uuid4().hex[:8]}"
    spec = sink_of("v", table=name, format=format, mode="upsert", key="k")
    changes = sink_of("v", table=f"{name}_changes", format=format)

    def give(sink: Any, epoch: int) -> None:
        delta_sinks._seen.clear()
        iceberg_sinks._seen.clear()
        deliver(lake, sink, epoch, epochs[epoch - 1], lambda: pytest.fail("not asked"), state=state)

    for epoch in (1, 2, 2):  # the last one again, as after a crash
        give(spec, epoch)
        give(changes, epoch)
    lake.catalog.refreshTable(name)
    assert {row.k: row.s for row in lake.table(name).collect()} == AFTER
    rows = [tuple(row) for row in lake.table(f"{name}_changes").collect()]
    assert sorted(rows) == sorted((*row, weight, e) for e, bag in ((1, FIRST), (2, THEN)) for row, weight in bag)
    lake.sql(f"DELETE FROM {name} WHERE k = 20")
    epochs.append(stored(tmp_path / "3", FIRST, [((20, "old 20"), -1), ((20, "x"), 1)], schema=schema))
    with pytest.raises(SinkError, match="was not what the view was"):
        give(spec, 3)
