"""The first stage on a cluster: changes of a source, as Spark has them, to rows of the wire.

Text and bytes never leave the JVM on their way: there Spark's ``xxhash64`` gives them the codes that the dictionary
gives them, and short decimals are made words, too. What else a row has goes to Python as Arrow, and is encoded there
in the layout of the schema, split by shard, in few large matrices. The values behind the codes come by a second
branch of the same frame, those of a task each once, as dictionary entries for the driver and, where a later stage
reads them, for every task.

Both branches read the frame, and must find the same there. So each adds up the codes it meets; if the sums differ, the
frame is one that gives other rows each time it is read, and the driver refuses the tick.

The codes are those of `everview.codes.encode`. Two values that share a hash are not told apart here: loading both
entries raises `CodeCollision`, and the changes are coded again with the exceptions that it led to.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from everview.codes import Dictionary, Entries, encode
from everview.codes.buffers import bytes_of, valid_of
from everview.codes.coerce import null_not_allowed
from everview.codes.dictionary import FIRST_SEED
from everview.errors import EverviewError
from everview.kernels.xxh64 import hash_bytes
from everview.operators.exchange import Exchange, spread
from everview.operators.operator import ByKey, Layout
from everview.runtimes.spark.values import ValuePassing, attempt, entries_for
from everview.runtimes.spark.wire import SCHEMA, Row, RowKind, error_row, matrix_rows, pack_entries, to_batches
from everview.runtimes.spark.worker import settle
from everview.runtimes.tables import ARRIVAL, COMMAND, ORDER, WEIGHT, followed_by
from everview.types import COMPOSITE, NULL_WORD, TIMESTAMP, VARIANT, Decimal, Field, Schema, Type
from everview.types.words import Matrix, Words

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS: Final = 500_000  # of a batch to be split by shard: large enough for few rows on the wire
LARGE: Final = 64 << 20  # bytes of distinct values, after which a task sends them off and begins anew

BAD: Final = "_bad"  # the column that says why a row cannot be taken

Batches = Iterable[pa.RecordBatch]
Coder = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Coding:
    """How the changes of one source become rows of the wire.

    A row goes to the shard that `Exchange` by the fields ``partition`` gives it; without fields, to any. The rows of
    a keyed source carry their order and arrival before the weight. What is the same for all rows need not cross to
    Python: only ``weighted`` ones have weights, and only ``ordered`` ones an order. With ``broadcast``, the values
    behind the codes go to each of the ``partitions`` of the next stage, too.
    """

    node: int
    schema: Schema
    partition: tuple[int, ...]
    shards: int
    partitions: int
    keyed: bool = False
    broadcast: bool = False
    weighted: bool = True
    ordered: bool = True
    passing: ValuePassing | None = None  # where many values go; without it, all of them go to the driver

    @cached_property
    def layout(self) -> Schema:
        """The columns of a row as they go to Python: a word made in the JVM has a one-word type that keeps NULL."""
        return Schema(replace(f, type=TIMESTAMP) if is_made(f.type) else f for f in self.schema.fields)

    @property
    def meta(self) -> tuple[str, ...]:
        """The columns that go to Python besides those of the schema."""
        return (*((ORDER,) if self.keyed and self.ordered else ()), *((WEIGHT,) if self.weighted else ()))

    def matrix(self, table: pa.Table, dictionary: Dictionary, arrived: int) -> Matrix:
        """The rows as words, of which ``arrived`` is the number of the first."""
        self._require_values(table)
        # In one piece: words that the JVM has made are taken as they are, and not for moments that must be possible.
        words = encode(self.layout, table.select(self.layout.names).combine_chunks(), dictionary)
        given = {name: table.column(name).to_numpy() for name in self.meta}
        arrival = np.arange(arrived, arrived + table.num_rows)
        return followed_by(COMMAND if self.keyed else (WEIGHT,), words, {ARRIVAL: arrival, **given})

    def _require_values(self, table: pa.Table) -> None:
        for field in self.schema.fields:
            if is_made(field.type) and not field.nullable and (column := table.column(field.name)).null_count:
                raise null_not_allowed(field.name, column.is_valid().index(False).as_py())

    @cached_property
    def hashed_words(self) -> tuple[int, ...]:
        """The words that the JVM has hashed."""
        fields = enumerate(self.schema.fields)
        return tuple(self.schema.words(place).start for place, field in fields if is_hashed(field.type))

    def split(self, matrix: Matrix) -> list[Matrix]:
        """The rows for each shard."""
        if not self.partition:
            return spread(matrix, self.shards)
        return Exchange(Layout(self.schema), ByKey(self.partition)).split(matrix, self.shards)


def is_hashed(type_: Type) -> bool:
    """Is the code of a value the hash of its own bytes? That of a composite one or a variant is of canonical bytes."""
    return type_.interned and type_ != VARIANT and not isinstance(type_, COMPOSITE)


def is_made(type_: Type) -> bool:
    """Does the JVM make the word? A hash, and a short decimal, which as one word is half as long, and faster."""
    return is_hashed(type_) or (isinstance(type_, Decimal) and type_.words() == 1)


def coded(frame: DataFrame, coding: Coding, exceptions: Entries | None = None) -> DataFrame:
    """Normalized changes as a frame of the wire schema: cells, the values of their codes, and rows that are bad."""
    missing = [name for name in ("_reason", "_raw") if name not in frame.columns]
    frame = frame.selectExpr("*", *(f"CAST(NULL AS STRING) AS {name}" for name in missing))
    known = _Exceptions(exceptions)
    rows = frame.select(*_columns(coding, known)).mapInArrow(_rows_coder(coding, exceptions), SCHEMA)
    hashed = [f for f in coding.schema.fields if is_hashed(f.type)]
    if not hashed:
        return rows
    good = frame.filter("_reason IS NULL")
    return rows.unionAll(_values(good, hashed).mapInArrow(_values_coder(coding, exceptions), SCHEMA))


# -- in the JVM


class _Exceptions:
    """The values whose code is not their hash, by kind."""

    def __init__(self, entries: Entries | None) -> None:
        self.values: dict[int, list[tuple[bytes, int]]] = {}
        if entries is None:
            return
        for entry in np.flatnonzero(entries.exceptions).tolist():
            value = entries.data[entries.offsets[entry] : entries.offsets[entry + 1]].tobytes()
            self.values.setdefault(int(entries.kinds[entry]), []).append((value, int(entries.codes[entry])))

    def word(self, type_: Type, column: Column) -> Column:
        """The word of a value; NULL has none."""
        from pyspark.sql import functions as F

        if isinstance(type_, Decimal):
            return (column * F.lit(decimal.Decimal(10**type_.scale))).cast("bigint")
        code = F.when(column.isNotNull(), F.xxhash64(column))
        for value, other in self.values.get(type_.kind, ()):
            code = F.when(column.cast("binary") == F.lit(value), other).otherwise(code)
        return code


def _columns(coding: Coding, known: _Exceptions) -> Iterator[Column]:
    for f in coding.schema.fields:
        column = _column(f.name)
        yield known.word(f.type, column).alias(f.name) if is_made(f.type) else column
    yield from map(_column, coding.meta)
    yield bad_text().alias(BAD)


def bad_text() -> Column:
    """A bad row's reason and text as one, which is NULL for a good one: less to carry than two columns."""
    from pyspark.sql import functions as F

    return F.when(F.col("_reason").isNotNull(), F.to_json(F.struct(F.col("_reason"), F.col("_raw"))))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _values(frame: DataFrame, hashed: Sequence[Field]) -> DataFrame:
    """The columns whose values are to be kept, as bytes."""
    return frame.select(*(_column(f.name).cast("binary").alias(f"v{number}") for number, f in enumerate(hashed)))


# -- in a task


def _rows_coder(coding: Coding, exceptions: Entries | None) -> Coder:
    def rows(batches: Batches) -> Iterator[Row]:
        values = _Values(coding, exceptions)
        arrived, total = _first_arrival(), 0
        for table, bad in gathered(_viewed(coding, batch) for batch in batches):
            yield from _bad_rows(coding, bad)
            matrix = coding.matrix(table, values.dictionary, arrived)
            arrived += table.num_rows
            total += sum(_sum(matrix[:, word]) for word in coding.hashed_words)
            for shard, part in enumerate(coding.split(matrix)):
                yield from matrix_rows(RowKind.CELL, coding.node, shard, part)
        yield from values.rows(values.dictionary.export())
        yield from _sum_row(coding, total)

    return _coder(rows)


def _values_coder(coding: Coding, exceptions: Entries | None) -> Coder:
    kinds = [f.type.kind for f in coding.schema.fields if is_hashed(f.type)]

    def rows(batches: Batches) -> Iterator[Row]:
        values, total = _Values(coding, exceptions), 0
        for batch in batches:
            for kind, column in zip(kinds, batch.columns, strict=True):
                total += _sum(values.take(kind, column))
            if values.dictionary.nbytes > LARGE:
                yield from values.rows(values.hashed())
                values = _Values(coding, exceptions)
        yield from values.rows(values.hashed())
        yield from _sum_row(coding, -total)

    return _coder(rows)


def _sum(words: Any) -> int:
    """The sum of words that are not NULL."""
    return int(words[words != NULL_WORD].astype(np.uint64).sum())


def _sum_row(coding: Coding, total: int) -> Iterator[Row]:
    if total % (1 << 64):
        yield Row(RowKind.SUM, coding.node, 0, 0, (total % (1 << 64)).to_bytes(8, "little"))


def _coder(rows: Callable[[Batches], Iterator[Row]]) -> Coder:
    """A function for `mapInArrow`; a user's mistake is a row, since trying again would not help."""

    def code(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from to_batches(_caught(rows(batches)))
        settle()

    return code


def _caught(rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except EverviewError as error:
        yield error_row(-1, 0, error)


def gathered(batches: Iterable[pa.RecordBatch], rows: int = ROWS) -> Iterator[tuple[pa.Table, list[str]]]:
    """Record batches in tables of at least so many rows, but for the last: good rows, and what is said of bad ones.

    >>> batch = pa.record_batch({"a": [1, 2, 3], "_bad": [None, "odd", None]})
    >>> [(good.num_rows, bad) for good, bad in gathered([batch] * 2, rows=5)]
    [(4, ['odd', 'odd'])]
    """
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield _parted(pa.Table.from_batches(waiting))
            waiting, size = [], 0
    if size:
        yield _parted(pa.Table.from_batches(waiting))


def _parted(table: pa.Table) -> tuple[pa.Table, list[str]]:
    texts: Any = table.column(BAD)
    rows = table.drop_columns([BAD])
    if texts.null_count == len(texts):
        return rows, []
    return rows.filter(texts.is_null()), texts.drop_null().to_pylist()


def _bad_rows(coding: Coding, bad: list[str]) -> Iterator[Row]:
    """Rows that cannot be taken, for the driver: a JSON list of ``[reason, row]``."""
    if bad:
        refused = [(each["_reason"], each.get("_raw", "")) for each in map(json.loads, bad)]
        yield Row(RowKind.BAD, coding.node, 0, 0, json.dumps(refused).encode())


def _first_arrival() -> int:
    """The number of the first row of this task's partition: those of later partitions are greater."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId() << 33


def _viewed(coding: Coding, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in the layout's types, as far as its bytes can stay."""
    pairs = zip(coding.schema.fields, batch.columns, strict=False)
    columns: list[Any] = [c.view(TIMESTAMP.arrow) if is_made(f.type) else c for f, c in pairs]
    columns += batch.columns[len(columns) :]
    return pa.RecordBatch.from_arrays(columns, names=[*coding.layout.names, *coding.meta, BAD])


class _Values:
    """The distinct values that a task meets, after the exceptions that are known."""

    def __init__(self, coding: Coding, exceptions: Entries | None) -> None:
        self.coding = coding
        self.dictionary = Dictionary()
        if exceptions is not None and len(exceptions):
            self.dictionary.load(exceptions)
        self._known = len(self.dictionary)

    def take(self, kind: int, column: Any) -> Words:
        """Keep the values of a column; their codes."""
        if not pa.types.is_binary(column.type):
            column = column.cast(pa.binary())
        return self.dictionary.intern_bytes(kind, bytes_of(column), valid_of(column))

    def hashed(self) -> Entries:
        """The dictionary's entries with the codes of the JVM: values with the same hash get the same code.

        Whoever loads them is told of the collision, as two tasks would tell that met one value each.
        """
        entries = self.dictionary.export()
        new = np.flatnonzero(entries.exceptions[self._known :]) + self._known
        if len(new):
            entries.codes[new] = hash_bytes(entries.offsets, entries.data, FIRST_SEED)[new]
            entries.exceptions[new] = 0
        return entries

    def rows(self, entries: Entries) -> Iterator[Row]:
        """Entries for the driver, and for every task of the next stage that may need them."""
        if not len(entries):
            return
        passing = self.coding.passing
        if passing is None:
            yield Row(RowKind.NEW, -1, 0, 0, pack_entries(entries).data)
        else:
            yield from passing.rows(entries, attempt(f"coding.{self.coding.node}"))
        if self.coding.broadcast:
            yield from entries_for(entries, self.coding.partitions)
