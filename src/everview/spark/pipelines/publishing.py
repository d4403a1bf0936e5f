"""Tables and sinks of a project: what others see of its datasets after an update.

A table is written anew if its rows have changed since it was written; a sink is given the rows that were added. Notes
say up to which epoch each of them has the rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from everview.spark.folders import Folder
from everview.spark.pipeline import Pipeline
from everview.spark.pipelines.declaring import DeclaredOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTES: Final = "project-tables"


class ProjectTables:
    """The tables and sinks of a project, and up to which epoch each has the rows of its view."""

    def __init__(self, pipeline: Pipeline, notes: Folder, place: str) -> None:
        """``place`` is the folder that has a folder for each table."""
        self._pipeline, self._notes, self._place = pipeline, notes, place
        written = notes.read(_NOTES)
        self._epochs: dict[str, Any] = {} if written is None else json.loads(written)

    def write(self, output: DeclaredOutput, view: str) -> bool:
        """Write the table of a dataset if its rows have changed since; says whether it was written."""
        written = [output.name, output.format, list(output.partition_by), self._pipeline.view(view).schema.json()]
        noted = self._epochs.get(output.name)
        catalog = self._pipeline.spark.catalog
        if noted and noted[1] == written and catalog.tableExists(output.name) and not self._changed(view, noted[0]):
            self._note(output.name, written)
            return False
        writer = self._pipeline.view(view).write.mode("overwrite").format(output.format or "parquet")
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        writer.option("path", f"{self._place}/{output.name}").saveAsTable(output.name)
        self._describe(output)
        self._note(output.name, written)
        return True

    def give(self, sink: DeclaredOutput, flow: str) -> bool:
        """Give a sink the rows that a flow has added since; says whether there were any."""
        noted = self._epochs.get(f"{sink.name}.{flow}", [0])
        if not self._changed(flow, noted[0]):
            return False
        rows = added_rows(self._pipeline.changes(flow, since=noted[0]))
        rows.write.format(sink.format or "").options(**sink.options).mode("append").save()
        self._note(f"{sink.name}.{flow}", None)
        return True

    def _changed(self, view: str, since: int) -> bool:
        """Whether a view may have changed after an epoch: epochs of other processes are not known here."""
        epochs = {done.epoch: done.rows_out.get(view, 0) for done in self._pipeline.progress}
        return any(epochs.get(epoch, 1) for epoch in range(since + 1, self._pipeline.epoch + 1))

    def _describe(self, output: DeclaredOutput) -> None:
        said = dict(output.properties) | ({} if output.comment is None else {"comment": output.comment})
        if said:
            listed = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in said.items())
            self._pipeline.spark.sql(f"ALTER TABLE {output.name} SET TBLPROPERTIES ({listed})")

    def _note(self, name: str, written: Any) -> None:
        self._epochs[name] = [self._pipeline.epoch, written]
        self._notes.write(_NOTES, json.dumps(self._epochs).encode())

    def known(self) -> Collection[str]:
        """The names of all that was written before."""
        return self._epochs.keys()


def added_rows(changes: DataFrame) -> DataFrame:
    """The rows that changes add, each as often as its weight says."""
    from pyspark.sql import functions as f

    positive = changes.filter(f.col("_weight") > 0)
    often = positive.withColumn("_weight", f.explode(f.sequence(f.lit(1), f.col("_weight"))))
    return often.drop("_weight")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
