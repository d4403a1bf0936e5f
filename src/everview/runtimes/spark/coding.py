"""The first stage on a cluster: changes of a source, as Spark has them, to rows of the wire.

A source is read once. What a row has goes to Python as Arrow, text and bytes as they are, and is encoded there in the
layout of the schema, split by shard, in few large matrices; short decimals are made words by the JVM. The task keeps
the distinct values behind the codes, and passes them on as dictionary entries, to be stored and, where a later stage
reads them, for every task.

The codes are those of `everview.codes.encode`: hashes of values, the same in every task. A task that meets two values
with one hash says so, as does who loads the entries of two tasks that met one each: `CodeCollision`. The changes are
then coded again with the exceptions that it led to.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from everview.codes import Dictionary, Entries, encode
from everview.codes.buffers import bytes_of, fixed_array, valid_of
from everview.codes.coerce import null_not_allowed
from everview.errors import CodeCollision, EverviewError
from everview.operators.exchange import Exchange, spread
from everview.operators.operator import ByKey, Layout
from everview.runtimes.spark.passing import InlinePasser, Passer
from everview.runtimes.spark.values import ValuePassing, attempt, entries_for
from everview.runtimes.spark.wire import SCHEMA, Row, RowKind, error_row, pack_entries, to_batches
from everview.runtimes.spark.worker import settle
from everview.runtimes.tables import ARRIVAL, COMMAND, ORDER, WEIGHT, followed_by
from everview.types import COMPOSITE, TIMESTAMP, VARIANT, Decimal, Schema, Type
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
    """The coding of one source's changes as rows of the wire.

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
        """The columns of a row as they are encoded: a word that is made already has a one-word type that keeps NULL."""
        return Schema(replace(f, type=TIMESTAMP) if is_made(f.type) else f for f in self.schema.fields)

    @property
    def meta(self) -> tuple[str, ...]:
        """The columns that go to Python besides those of the schema."""
        return (*((ORDER,) if self.keyed and self.ordered else ()), *((WEIGHT,) if self.weighted else ()))

    def matrix(self, table: pa.Table, dictionary: Dictionary, arrived: int) -> Matrix:
        """The rows as words, of which ``arrived`` is the number of the first."""
        self._require_values(table)
        # In one piece: words that are made already are taken as they are, and not for moments that must be possible.
        words = encode(self.layout, table.select(self.layout.names).combine_chunks(), dictionary)
        given = {name: table.column(name).to_numpy() for name in self.meta}
        arrival = np.arange(arrived, arrived + table.num_rows)
        return followed_by(COMMAND if self.keyed else (WEIGHT,), words, {ARRIVAL: arrival, **given})

    def passer(self) -> InlinePasser:
        """The writer of the rows that a task passes on."""
        passing = self.passing
        return (
            InlinePasser() if passing is None else Passer(passing.path, passing.epoch, attempt(f"coding.{self.node}"))
        )

    def _require_values(self, table: pa.Table) -> None:
        for field in self.schema.fields:
            if is_made(field.type) and not field.nullable and (column := table.column(field.name)).null_count:
                raise null_not_allowed(field.name, column.is_valid().index(False).as_py())

    def split(self, matrix: Matrix) -> list[Matrix]:
        """The rows for each shard."""
        if not self.partition:
            return spread(matrix, self.shards)
        return Exchange(Layout(self.schema), ByKey(self.partition)).split(matrix, self.shards)


def is_hashed(type_: Type) -> bool:
    """Is the code of a value the hash of its own bytes? That of a composite one or a variant is of canonical bytes."""
    return type_.interned and type_ != VARIANT and not isinstance(type_, COMPOSITE)


def is_made(type_: Type) -> bool:
    """Is the word made before rows are encoded? A hash; and by the JVM a short decimal, which is half as long then."""
    return is_hashed(type_) or (isinstance(type_, Decimal) and type_.words() == 1)


def coded(frame: DataFrame, coding: Coding, exceptions: Entries | None = None) -> DataFrame:
    """Normalized changes as a frame of the wire schema: cells, the values of their codes, and rows that are bad."""
    missing = [name for name in ("_reason", "_raw") if name not in frame.columns]
    frame = frame.selectExpr("*", *(f"CAST(NULL AS STRING) AS {name}" for name in missing))
    return frame.select(*_columns(coding)).mapInArrow(_rows_coder(coding, exceptions), SCHEMA)


# -- in the JVM


def _columns(coding: Coding) -> Iterator[Column]:
    for f in coding.schema.fields:
        column = _column(f.name)
        if is_hashed(f.type):
            yield column.cast("binary").alias(f.name)
        else:
            yield _short_decimal(f.type, column).alias(f.name) if is_made(f.type) else column
    yield from map(_column, coding.meta)
    yield bad_text().alias(BAD)


def _short_decimal(type_: Type, column: Column) -> Column:
    """The word of a decimal; NULL has none."""
    from pyspark.sql import functions as F

    assert isinstance(type_, Decimal), "of words, the JVM makes those of decimals"
    return (column * F.lit(decimal.Decimal(10**type_.scale))).cast("bigint")


def bad_text() -> Column:
    """A bad row's reason and text as one, which is NULL for a good one: less to carry than two columns."""
    from pyspark.sql import functions as F

    return F.when(F.col("_reason").isNotNull(), F.to_json(F.struct(F.col("_reason"), F.col("_raw"))))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


# -- in a task


def _rows_coder(coding: Coding, exceptions: Entries | None) -> Coder:
    def rows(batches: Batches) -> Iterator[Row]:
        values, arrived = _Values(coding, exceptions), _first_arrival()
        with coding.passer() as passer:
            for table, bad in gathered(_viewed(coding, batch) for batch in batches):
                yield from _bad_rows(coding, bad)
                matrix = coding.matrix(values.in_words(table), values.dictionary, arrived)
                arrived += table.num_rows
                for shard, part in enumerate(coding.split(matrix)):
                    yield from passer.moved(coding.node, shard, part)
                if values.dictionary.nbytes > LARGE:
                    yield from values.rows()
                    values = _Values(coding, exceptions)
            yield from passer.finish()
        yield from values.rows()

    return _coder(rows)


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
    """A batch in the layout's types, as far as its bytes can stay; text and bytes have yet to become words."""
    pairs = zip(coding.schema.fields, batch.columns, strict=False)
    columns: list[Any] = [c.view(TIMESTAMP.arrow) if is_made(f.type) and not is_hashed(f.type) else c for f, c in pairs]
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

    def in_words(self, table: pa.Table) -> pa.Table:
        """Rows whose text and bytes are replaced by their words, as the layout has them."""
        for place, field in enumerate(self.coding.schema.fields):
            if is_hashed(field.type):
                chunks = [self._words(field.type.kind, chunk) for chunk in table.column(place).chunks]
                kept: Any = TIMESTAMP.arrow
                column = pa.chunked_array(chunks, kept)
                table = table.set_column(place, table.schema.names[place], column)
        return table

    def _words(self, kind: int, column: Any) -> Any:
        valid = valid_of(column)
        return fixed_array(TIMESTAMP, self.take(kind, column), valid)

    def take(self, kind: int, column: Any) -> Words:
        """Keep the values of a column; their codes."""
        if not pa.types.is_binary(column.type):
            column = column.cast(pa.binary())
        return self.dictionary.intern_bytes(kind, bytes_of(column), valid_of(column))

    def entries(self) -> Entries:
        """The entries, of which other tasks may have some; two values that share a hash are refused."""
        entries = self.dictionary.export()
        new = np.flatnonzero(entries.exceptions[self._known :]) + self._known
        if len(new):
            value = entries.data[entries.offsets[new[0]] : entries.offsets[new[0] + 1]].tobytes()
            hint = "intern the value on the driver, then encode again: it gets an exception code"
            raise CodeCollision(f"two values of kind {entries.kinds[new[0]]} have one hash: {value!r}", hint=hint)
        return entries

    def rows(self) -> Iterator[Row]:
        """Entries to be stored, and for every task of the next stage that may need them."""
        entries = self.entries()
        if not len(entries):
            return
        passing = self.coding.passing
        if passing is None:
            yield Row(RowKind.NEW, -1, 0, 0, pack_entries(entries).data)
        else:
            yield from passing.rows(entries, attempt(f"coding.{self.coding.node}"))
        if self.coding.broadcast:
            yield from entries_for(entries, self.coding.partitions)
