"""The input of one epoch: changes of sources, fetched to the driver if they are few, else left to the tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.dictionary import Mark
from everview.operators.operator import ByKey
from everview.runtimes.spark.coding import Coding, coded
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.values import ValuePassing, reads_values
from everview.runtimes.tables import Commands
from everview.spark.combined import combined, only, split
from everview.spark.spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BAD = pa.schema([("source", pa.string()), ("reason", pa.string()), ("raw", pa.string())])


class Arrival:
    """The normalized frames of an epoch, by source; ``together`` holds the rows of all of them.

    Either is made when it is first read: Spark analyses every frame that is made, and a small epoch needs one of them.
    The only frame holds all rows as it is; those of several are `combined`.
    """

    def __init__(
        self,
        specs: Sequence[SourceSpec],
        frames: Callable[[], Sequence[DataFrame]],
        together: Callable[[], DataFrame],
        *,
        is_combined: bool,
    ) -> None:
        self.specs, self._make_frames, self._make_together, self._is_combined = specs, frames, together, is_combined

    @classmethod
    def of(cls, specs: Sequence[SourceSpec], frames: Sequence[DataFrame]) -> Arrival:
        """The input that comes as a frame for each source."""
        if len(frames) == 1:
            return cls(specs, lambda: frames, lambda: frames[0], is_combined=False)
        return cls(specs, lambda: frames, lambda: combined(frames), is_combined=True)

    @classmethod
    def in_one(cls, specs: Sequence[SourceSpec], together: DataFrame) -> Arrival:
        """The input that comes as one frame of `combined`."""

        def frames() -> list[DataFrame]:
            return [only(together, place) for place in range(len(specs))]

        return cls(specs, frames, lambda: together, is_combined=True)

    @cached_property
    def frames(self) -> Sequence[DataFrame]:
        return self._make_frames()

    @cached_property
    def together(self) -> DataFrame:
        return self._make_together()

    def local_bytes(self) -> int:
        """The size of the files that batch frames read, as far as they are on this machine."""
        files = (path.removeprefix("file:") for frame in self.frames for path in frame.inputFiles())
        paths = (Path(unquote("/" + path.lstrip("/"))) for path in files if ":" not in path)
        return sum(path.stat().st_size for path in paths if path.exists())

    def fetch(self, limit: int | None) -> Fetched | None:
        """All rows, on the driver; None if there are more than the limit."""
        frame = self.together if limit is None else self.together.limit(limit + 1)
        table = frame.toArrow()
        if limit is not None and table.num_rows > limit:
            return None
        parts = split(table, len(self.specs)) if self._is_combined else [table]
        return Fetched({spec.name: (spec, part) for spec, part in zip(self.specs, parts, strict=True)})

    def coded(self, engine: Engine) -> Callable[[Mark], DataFrame]:
        """The wire rows of all sources, encoded by tasks."""
        program = engine.program
        broadcast = reads_values(program, 0, program.pieces[0][1])
        exceptions = engine.run.dictionary.exceptions()

        def frame(_: Mark) -> DataFrame:
            parts: list[DataFrame] = []
            for spec, source_frame in zip(self.specs, self.frames, strict=True):
                arrival = program.arrival(spec.name)
                coding = Coding(
                    node=program.circuit.sources[spec.name],
                    schema=spec.schema,
                    partition=arrival.fields if isinstance(arrival, ByKey) else tuple(range(len(spec.schema))),
                    shards=program.shards,
                    partitions=engine.partitions,
                    keyed=spec.keyed,
                    broadcast=broadcast,
                    weighted=spec.changes in ("weights", "cdc"),
                    ordered=spec.keyed,
                    passing=ValuePassing(engine.path, engine.epoch + 1, engine.divisions),
                )
                parts.append(coded(source_frame, coding, exceptions))
            return reduce(lambda a, b: a.unionAll(b), parts)

        return frame

    def whole(self, engine: Engine) -> frozenset[int]:
        """The sources that are given as snapshots."""
        sources = engine.program.circuit.sources
        return frozenset(sources[spec.name] for spec in self.specs if spec.changes == "snapshot")


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows on the driver, by source."""

    parts: Mapping[str, tuple[SourceSpec, pa.Table]]

    @property
    def rows(self) -> dict[str, int]:
        return {name: table.num_rows for name, (_, table) in self.parts.items()}

    def bad(self) -> pa.Table:
        """The rows that cannot be taken, with the reasons."""
        tables: list[pa.Table] = []
        for name, (_, table) in self.parts.items():
            rows = table.filter(pc.is_valid(table.column("_reason")))
            columns: list[Any] = [pa.repeat(name, rows.num_rows), rows.column("_reason"), rows.column("_raw")]
            tables.append(pa.Table.from_arrays(columns, schema=BAD))
        return pa.concat_tables(tables) if tables else BAD.empty_table()

    def changes(self) -> dict[str, Any]:
        """The good rows by source, in the form that the engine takes."""
        by_source: dict[str, Any] = {}
        for name, (spec, table) in self.parts.items():
            rows = (
                table.filter(pc.is_null(table.column("_reason")))
                if table.column("_reason").null_count < len(table)
                else table
            )
            whole = spec.changes == "snapshot"
            if rows.num_rows or whole:
                by_source[name] = Commands(rows, whole) if spec.keyed else rows.select([*spec.schema.names, "_weight"])
        return by_source
