"""Where a pipeline's checkpoint is: a directory that every machine sees, or a place in an object store."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from everview.errors import PipelineError
from everview.runtimes.spark.beside import StoreFolder, is_remote, local_folder
from everview.runtimes.spark.stored import directory
from everview.spark.folders import Folder, Local, local_path
from everview.spark.sinks import QUARANTINE, quarantine, read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SET_ASIDE = "source STRING, reason STRING, raw STRING, epoch BIGINT"


@dataclass(frozen=True, slots=True)
class CheckpointPlace:
    """A checkpoint: the state's path or URL, and the places of what lies beside the state."""

    path: Path | str
    notes: Folder  # of small files
    spark: Path  # where Spark keeps its position in the streams
    aside: Path | StoreFolder  # where bad rows are

    @classmethod
    def of(cls, checkpoint: str) -> CheckpointPlace:
        """The place that a path or URL names; a URL of no store that we know is refused."""
        root = local_path(checkpoint)
        if root is not None:
            return cls(root, Local(root), root / "spark", root / "quarantine")
        if not is_remote(checkpoint):
            raise PipelineError(
                f"a state directory cannot be at {checkpoint}",
                hint="give a path, or a file: URL, on a filesystem that every machine of the cluster shares; "
                "or the URL of an object store",
            )
        directory(checkpoint)  # refuses schemes that it does not know
        notes, aside = StoreFolder(checkpoint, "notes"), StoreFolder(checkpoint, "quarantine")
        return cls(checkpoint, notes, local_folder(checkpoint) / "spark", aside)

    def holds_aside(self, epoch: int) -> bool:
        """Whether rows of an epoch were set aside before."""
        if isinstance(self.aside, Path):
            return (self.aside / f"epoch={epoch:010d}").exists()
        return _epoch_name(epoch) in self.aside.names()

    def set_aside(self, epoch: int, parts: Sequence[pa.Table]) -> None:
        """Keep the bad rows of an epoch, instead of an earlier attempt's."""
        table = pa.concat_tables(parts)
        if isinstance(self.aside, Path):
            quarantine(str(self.aside), epoch, table)
            return
        written = io.BytesIO()
        numbered = table.select(QUARANTINE.names).cast(QUARANTINE)
        pq.write_table(numbered.append_column("epoch", pa.array([epoch] * table.num_rows, pa.int64())), written)
        self.aside.write(_epoch_name(epoch), written.getvalue())

    def read_aside(self, spark: SparkSession) -> DataFrame:
        """The bad rows of all epochs."""
        if isinstance(self.aside, Path):
            return read_quarantine(spark, str(self.aside))
        kept = [self.aside.read(name) for name in self.aside.names()]
        tables = [pq.read_table(io.BytesIO(data)) for data in kept if data is not None]
        rows = pa.concat_tables(tables) if tables else None
        return spark.createDataFrame(rows if rows is not None and rows.num_rows else [], SET_ASIDE)


def _epoch_name(epoch: int) -> str:
    return f"epoch={epoch:010d}.parquet"
