"""Everview's states as a Spark data source: ``spark.read.format("everview").load(path)``.

Spark finds this module by its name and asks for `DefaultSource`. It imports the modules of every such source, so
nothing of Everview is loaded before a state is read.

What is read is settled when the frame is made: the view, its columns and the epochs. So every task, and every use of
the frame in a query, sees the same. A frame made later sees later epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    from pyspark.sql.types import StructType

    from everview.types import Field, Schema
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:  # before Spark 4.2, which then reads all that is there when it first asks
        AvailableNow = object

__all__ = ["DefaultSource"]

OPTIONS = ("path", "view", "epoch", "since", "until", "weights", "epochs")
WEIGHT, EPOCH = "_weight", "_epoch"
ROWS = 1 << 16  # of a record batch
PARTITION_BYTES = 4 << 20  # shards with less to read share a partition


class DefaultSource(DataSource):
    """A view of a state: its contents at an epoch, or its changes between two.

    Options: ``view`` (its name; a state's only view needs none), ``epoch`` (the contents then, instead of now),
    ``weights=true`` (each different row once, with its ``_weight``), ``since`` and ``until`` (the changes after the one
    epoch and up to the other, with ``_weight``), ``epochs=true`` (these epoch by epoch, with ``_epoch``; a stream
    always is).
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._asked = ReadOptions.of(options)
        self._scan = self._asked.scan()

    @classmethod
    def name(cls) -> str:
        return "everview"

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._scan.arrow)

    def reader(self, schema: StructType) -> DataSourceReader:
        self._require(schema)
        return StateReader(self._scan)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from everview.errors import EverviewError

        if not self._scan.epochs:
            hint = 'add .option("epochs", "true"): its rows then have _weight and _epoch'
            raise EverviewError("a stream of a view is the stream of its changes", hint=hint)
        if self._asked.until is not None:
            raise EverviewError("a stream has no end", hint="leave out until, or use spark.read")
        self._require(schema)
        return StreamReader(self._scan)

    def _require(self, schema: StructType) -> None:
        """Refuse columns that a user has given and that the view does not have."""
        from everview.errors import SchemaError

        own = self.schema()
        if [(f.name, f.dataType) for f in schema] != [(f.name, f.dataType) for f in own]:
            raise SchemaError(
                f"view {self._scan.view} has the columns {own.simpleString()}, not {schema.simpleString()}",
                hint="leave out the schema: the state says what it is",
            )


# -- what is asked for


@dataclass(frozen=True)
class ReadOptions:
    """The options of a read, checked one by one and together."""

    path: str
    view: str | None
    epoch: int | None
    since: int | None
    until: int | None
    weights: bool
    epochs: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        from everview.errors import EverviewError
        from everview.types import unknown_name

        given = {name.lower(): value for name, value in options.items() if "." not in name}
        for name in given:
            if name not in OPTIONS:
                raise unknown_name("option", name, OPTIONS)
        if "path" not in given:
            raise EverviewError("no state to read", hint='give one path: spark.read.format("everview").load(path)')
        asked = cls(
            path=given["path"],
            view=given.get("view"),
            epoch=_epoch(given, "epoch"),
            since=_epoch(given, "since"),
            until=_epoch(given, "until"),
            weights=_flag(given, "weights"),
            epochs=_flag(given, "epochs"),
        )
        asked._check()
        return asked

    @property
    def changes(self) -> bool:
        return self.epochs or self.since is not None or self.until is not None

    def _check(self) -> None:
        from everview.errors import EverviewError

        if self.changes and self.epoch is not None:
            hint = "epoch gives the contents then; since and until give changes"
            raise EverviewError("contents at an epoch and changes between epochs are two things", hint=hint)

    def scan(self) -> StateScan:
        """The scan that the options ask for in the state as it is now."""
        from everview.errors import EverviewError
        from everview.runtimes.spark import stored

        path = stored.directory(self.path)
        with stored.opened(path, self.until if self.changes else self.epoch) as state:
            view = _one_view(stored.views(state), self.view)
            relation = stored.view(state, view)
            if (self.since or 0) > state.epoch:
                hint = "since comes before until, which is the last epoch by default"
                raise EverviewError(f"no epoch is after {self.since} and up to {state.epoch}", hint=hint)
            return StateScan(
                path=path,
                view=view,
                schema=relation.schema,
                since=(self.since or 0) if self.changes else None,
                until=state.epoch,
                weights=self.weights or self.changes,
                epochs=self.epochs,
            )


def _epoch(given: Mapping[str, str], option: str) -> int | None:
    from everview.errors import EverviewError

    if option not in given:
        return None
    if not given[option].strip().isdecimal():
        raise EverviewError(f'option {option} is "{given[option]}"', hint="it is the number of an epoch: 0, 1, 2, …")
    return int(given[option])


def _flag(given: Mapping[str, str], option: str) -> bool:
    from everview.errors import EverviewError

    value = given.get(option, "false").lower()
    if value not in ("true", "false"):
        raise EverviewError(f'option {option} is "{given[option]}"', hint="it is true or false")
    return value == "true"


def _one_view(views: Mapping[str, Any], asked: str | None) -> str:
    from everview.errors import EverviewError

    if not views:
        raise EverviewError("the state has no views", hint="it has none before its first epoch")
    if asked is not None or len(views) == 1:
        return next(iter(views)) if asked is None else asked
    raise EverviewError(f"the state has {len(views)} views", hint=f"choose one as option view: {', '.join(views)}")


# -- what is read


@dataclass(frozen=True)
class StateScan:
    """A scan of a view: its columns, and its contents at epoch ``until`` or its changes since another epoch."""

    path: Path
    view: str
    schema: Schema
    since: int | None
    until: int
    weights: bool
    epochs: bool

    @property
    def arrow(self) -> pa.Schema:
        """The columns that Spark is given."""
        import pyarrow as pa

        from everview.errors import SchemaError

        added = [name for name, there in ((WEIGHT, self.weights), (EPOCH, self.epochs)) if there]
        for name in added:
            if name in self.schema:
                raise SchemaError(f"view {self.view} has a column {name} of its own", hint="rename it in the view")
        if not self.schema.fields and not added:
            raise SchemaError(f"view {self.view} has no columns", hint="read it with option weights=true")
        fields = [_arrow_field(self.view, field) for field in self.schema]
        return pa.schema([*fields, *(pa.field(name, pa.int64(), nullable=False) for name in added)])

    def batches(self, matrices: Sequence[tuple[int, Any]], states: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Matrices of words, each with its epoch, as record batches for Spark."""
        import numpy as np

        from everview.runtimes.spark import stored

        if not any(len(matrix) for _, matrix in matrices):
            return
        rows = np.concatenate([matrix for _, matrix in matrices])
        epochs = np.repeat([epoch for epoch, _ in matrices], [len(matrix) for _, matrix in matrices])
        dictionary = stored.dictionary_for(self.schema, rows, states)
        counts = np.ones(len(rows), np.int64) if self.weights else np.maximum(rows[:, -1], 0)
        ends = np.cumsum(counts)
        for start in range(0, int(ends[-1]), ROWS):
            some = np.searchsorted(ends, np.arange(start, min(start + ROWS, int(ends[-1]))), side="right")
            yield from self._table(rows[some], epochs[some], dictionary).to_batches()

    def _table(self, rows: Any, epochs: Any, dictionary: Any) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        from everview.codes import decode

        columns = decode(self.schema, rows[:, :-1], dictionary).columns
        shown = [_shown(field, column) for field, column in zip(self.schema, columns, strict=True)]
        added = [rows[:, -1]] * self.weights + [epochs] * self.epochs
        return pa.Table.from_arrays([*shown, *(pa.array(np.ascontiguousarray(a)) for a in added)], schema=self.arrow)


def _arrow_field(view: str, field: Field) -> pa.Field[Any]:
    """A column as Spark has it: ids become text, and other types that Spark does not have are refused."""
    import pyarrow as pa

    from everview.codes.spark_variants import VARIANT_STRUCT
    from everview.errors import SchemaError
    from everview.types import ID, VARIANT

    if field.type == VARIANT:
        return pa.field(field.name, VARIANT_STRUCT, nullable=field.nullable)
    if field.type != ID and _foreign(field.type):
        hint = f"read the other columns through a view that leaves {field.name} out, or gives it a type of SQL"
        raise SchemaError(f"Spark has no type for column {field.name} of view {view}: {field.type.sql}", hint=hint)
    return pa.field(field.name, pa.string() if field.type == ID else field.type.arrow, nullable=field.nullable)


def _foreign(type_: Any) -> bool:
    """Whether a type has values that Spark cannot show."""
    from everview.types import ANY, ID, VARIANT, Atom, parts_of_type

    return type_ in (ANY, ID, VARIANT) or isinstance(type_, Atom) or any(map(_foreign, parts_of_type(type_)))


def _shown(field: Field, column: Any) -> Any:
    import pyarrow as pa

    from everview.codes.spark_variants import in_parts
    from everview.types import ID, VARIANT, Id

    if field.type == VARIANT:
        return in_parts(column)
    if field.type != ID:
        return column
    return pa.array([None if raw is None else str(Id(raw)) for raw in column.to_pylist()], pa.string())


@dataclass
class ShardPartition(InputPartition):
    """A partition of some shards; for changes by epoch also the epochs, the first of which follows ``since``."""

    shards: tuple[int, ...]
    since: int = 0
    epochs: tuple[int, ...] = ()


@dataclass
class StateReader(DataSourceReader):
    """A batch reader of a view's contents, or of its changes between two epochs."""

    scan: StateScan

    def partitions(self) -> list[InputPartition]:
        since, until = self.scan.since or 0, self.scan.until
        return _parts_by_epoch(self.scan, since, until) if self.scan.epochs else _parts(self.scan, since, until)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from everview.runtimes.spark import stored

        assert isinstance(partition, ShardPartition)
        if self.scan.epochs:
            yield from _read_by_epoch(self.scan, partition)
            return
        with stored.between(self.scan.path, self.scan.since or 0, self.scan.until) as (before, after):
            matrices = [(0, stored.changes(before, after, self.scan.view, shard)) for shard in partition.shards]
            yield from self.scan.batches(matrices, [after] if before is None else [before, after])


class StreamReader(DataSourceStreamReader, AvailableNow):
    """A stream reader of a view's changes, epoch by epoch, without end; an offset is the last epoch that was read.

    While it runs, the reader holds the epochs between which it reads, so no vacuum removes them. If a vacuum removes
    epochs in between, their changes come with the next epoch that is there.
    """

    def __init__(self, scan: StateScan) -> None:
        self._scan = scan
        self._held: dict[int, Any] = {}  # readers by epoch
        self._last: int | None = None  # for a query that ends with what is there now

    def initialOffset(self) -> dict[str, int]:
        return {"epoch": self._scan.since or 0}

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:
        """The last epoch; before Spark 4.2 it is asked for without arguments."""
        return {"epoch": self._newest() if self._last is None else self._last}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._newest()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return _parts_by_epoch(self._scan, start["epoch"], end["epoch"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ShardPartition)
        return _read_by_epoch(self._scan, partition)

    def commit(self, end: dict[str, int]) -> None:
        for epoch in [epoch for epoch in self._held if epoch < end["epoch"]]:
            self._held.pop(epoch).close()

    def stop(self) -> None:
        while self._held:
            self._held.popitem()[1].close()

    def _newest(self) -> int:
        from everview.runtimes.spark import stored

        before = self._held[max(self._held)] if self._held else None
        state = stored.opened(self._scan.path) if before is None else before.at()
        if state.epoch in self._held:
            state.close()
        else:
            self._held[state.epoch] = state
        return state.epoch


def _parts(scan: StateScan, since: int, until: int) -> list[InputPartition]:
    """Partitions of contents or changes: small shards share one."""
    from everview.runtimes.spark import stored

    with stored.between(scan.path, since, until) as (before, after):
        return [ShardPartition(some) for some in _together(stored.sizes(before, after, scan.view))]


def _parts_by_epoch(scan: StateScan, since: int, until: int) -> list[InputPartition]:
    from everview.runtimes.spark import stored

    epochs = stored.epochs_between(scan.path, since, until)
    with stored.between(scan.path, since, until) as (before, after):
        return [ShardPartition(some, since, epochs) for some in _together(stored.sizes(before, after, scan.view))]


def _read_by_epoch(scan: StateScan, part: ShardPartition) -> Iterator[pa.RecordBatch]:
    from everview.runtimes.spark import stored

    for run in stored.by_epoch(scan.path, scan.view, scan.schema, part.shards, part.since, part.epochs):
        yield from scan.batches(run.changes, run.states)


def _together(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The shards in groups with enough to read."""
    group: list[int] = []
    size = 0
    for shard, nbytes in enumerate(sizes):
        group.append(shard)
        size += nbytes
        if size >= PARTITION_BYTES:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)
