"""What arrives from Spark: DataFrames as signed changes of a source, one shape for every style.

A source says how its rows are meant: as new rows (**append**), as the latest state of their key (**upsert**), as
rows with weights (**weights**), as operations on rows (**cdc**, Debezium's envelope included), or as all there is
(**snapshot**). `normalized` gives them one shape: the columns of the source's schema, then

- ``_weight``: how often the row is added; for a keyed style 1 puts a row and -1 deletes by key,
- ``_order`` and ``_arrival``: which of several changes of a key is the last one; 0 where there is no key (on a
  stream, ``_arrival`` is 0 too: `arrived` or `split` number the rows of its batches),
- ``_reason``: why the row cannot be used, NULL for a good row; ``_raw``: a bad row as JSON, NULL for a good one.

No row is lost on the way, and none fails the job: a row that means nothing comes out with its reason. Everything is
an expression of Spark's own, so it runs in the JVM, on batches and on streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.spark.spec import (
    META,
    TYPES,
    Columns,
    SourceSpec,
    check_drift,
    columns_of,
    event_columns,
    inside,
    order_field,
    schema_of,
    spec_of,
    type_of,
)
from everview.types import NULL_WORD, Array, Decimal, Field, Struct, Type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "META",
    "SourceSpec",
    "arrived",
    "check_drift",
    "combined",
    "counted",
    "normalized",
    "only",
    "schema_of",
    "spec_of",
    "split",
]

Bad = tuple["Column", "Column"]  # when a row is bad, and why

_INSERTS: Final = ("c", "r", "i", "insert", "read", "+i")
_UPDATES: Final = ("u", "update", "+u", "update_postimage")
_BEFORES: Final = ("-u", "update_preimage", "ub")
_DELETES: Final = ("d", "delete", "-d", "x")


# -- one shape for every style --------------------------------------------------------------------------------


def normalized(frame: DataFrame, spec: SourceSpec) -> DataFrame:
    """The changes of a frame: the columns of the schema, then `META`."""
    if spec.envelope is not None:
        return _from_envelope(frame, spec)
    columns = columns_of(spec.name, frame.schema)
    row = _Row(spec, columns, _column)
    everything = F.to_json(F.struct(*map(_column, columns)))
    match spec.changes:
        case "append" | "upsert" | "snapshot":
            return _shaped(frame, row, _NEVER, F.lit(1), (), _order(spec, columns, frame), everything)
        case "weights":
            weight, bad = _weight(columns[spec.weight])
            return _shaped(frame, row, _NEVER, weight, (bad,), _order(spec, columns, frame), everything)
        case "cdc":
            return _from_operations(frame, row, columns, everything)


class _Row:
    """The columns of a source's rows as they are found, each by its name."""

    def __init__(self, spec: SourceSpec, columns: Columns, column: Callable[[str], Column]) -> None:
        self.spec = spec
        self.columns = columns
        self.column = column

    def value(self, field: Field, deleted: Column | None) -> Column:
        """A column in its type; when a key is deleted, nothing but the key counts."""
        value = self._cast(field)
        if deleted is None or field.name in self.spec.key:
            return value
        return F.when(deleted, _default(field, self.columns[field.name].dataType)).otherwise(value)

    def _cast(self, field: Field) -> Column:
        column, found = self.column(field.name), self.columns[field.name].dataType
        if isinstance(found, st.StringType) and found != st.StringType():
            return column.cast("string")  # a collation changes what is equal, and so the hash
        return column.try_cast(field.type.sql) if self._narrower(field) else column

    def _narrower(self, field: Field) -> bool:
        """Must Spark cast it? What is only in our types, or composite, is converted where it is encoded."""
        known = isinstance(field.type, Decimal) or field.type in TYPES.values()
        return known and type_of(self.columns[field.name].dataType, field.name) != field.type

    def keyless(self) -> Column:
        """Is a part of the key NULL?"""
        return reduce(_either, (self.column(name).isNull() for name in self.spec.key), F.lit(False))

    def faults(self, deleted: Column | None) -> Iterator[Bad]:
        """What may be wrong with the values of a row."""
        for field in self.spec.schema.fields:
            in_key = field.name in self.spec.key
            for wrong, why in self._faults(field, in_key):
                yield (wrong if deleted is None or in_key else ~deleted & wrong), F.lit(why)

    def _faults(self, field: Field, in_key: bool) -> Iterator[tuple[Column, str]]:
        column, found = self.column(field.name), self.columns[field.name]
        where = f'column "{field.name}"'
        if in_key:
            yield column.isNull(), f'NULL in key column "{field.name}"'
        elif not field.nullable and found.nullable:
            yield column.isNull(), f"NULL in {where}, which is NOT NULL"
        if self._narrower(field):
            yield (
                column.isNotNull() & self._cast(field).isNull(),
                f"{where}: a value that {field.type.sql} does not hold",
            )
        if isinstance(found.dataType, st.StringType):
            yield ~F.is_valid_utf8(column), f"{where}: text that is not UTF-8"
        if isinstance(found.dataType, st.TimestampType):
            yield F.unix_micros(column) == NULL_WORD, f"{where}: the least timestamp of all, which stands for NULL"
        inside = _null_inside(field.type, found.dataType, column)
        if inside is not None:
            yield inside, f"NULL inside {where}, where it is NOT NULL"


def _either(a: Column, b: Column) -> Column:
    return a | b


def _shaped(
    frame: DataFrame,
    row: _Row,
    deleted: Column | None,
    weight: Column,
    bad: Sequence[Bad],
    order: tuple[Column, Sequence[Bad]],
    raw: Column,
) -> DataFrame:
    """The changes of rows: their values and weights, and what is wrong with them."""
    place, disorder = order
    reason = _reason([*bad, *row.faults(deleted), *disorder])
    return frame.select(
        *(row.value(field, deleted).alias(field.name) for field in row.spec.schema.fields),
        weight.cast("bigint").alias("_weight"),
        place.cast("bigint").alias("_order"),
        _arrival(row.spec.keyed and not frame.isStreaming).alias("_arrival"),
        reason.alias("_reason"),
        F.when(reason.isNotNull(), raw).alias("_raw"),
    )


def _arrival(numbered: bool) -> Column:
    """The rows as they come, if they are numbered: Spark numbers no rows of a stream, only those of its batches."""
    return F.monotonically_increasing_id() if numbered else F.lit(0).cast("bigint")


_NEVER: Final = None  # nothing is deleted by key


def _reason(bad: Sequence[Bad]) -> Column:
    """The first thing that is wrong with a row, if any."""
    found = F.lit(None).cast("string")
    for wrong, why in reversed(bad):
        found = F.when(wrong, why).otherwise(found)
    return found


def _weight(field: st.StructField) -> tuple[Column, Bad]:
    column = _column(field.name)
    weight = column.try_cast("bigint")
    wrong = weight.isNull() | (weight.cast(field.dataType) != column)
    given = F.coalesce(column.cast("string"), F.lit("NULL"))
    return weight, (wrong, F.concat(F.lit("the weight is "), given, F.lit(", not a whole number of 64 bits")))


def _from_operations(frame: DataFrame, row: _Row, columns: Columns, raw: Column) -> DataFrame:
    """Flat rows with an operation each: before-images are the past of a key, or take a row away."""
    spec = row.spec
    assert spec.op is not None
    given = _column(spec.op)
    op = F.lower(F.trim(given))
    known = op.isin(*_INSERTS, *_UPDATES, *_BEFORES, *_DELETES)
    unknown = (given.isNull() | ~known, _unknown(given))
    order = _order(spec, columns, frame)
    away = op.isin(*_DELETES) if spec.keyed else op.isin(*_DELETES, *_BEFORES)
    weight = F.when(away, -1).otherwise(1)
    if not spec.keyed:
        return _shaped(frame, row, _NEVER, weight, (unknown,), order, raw)
    frame = frame.filter(op.isNull() | ~op.isin(*_BEFORES))
    deleted = F.coalesce(away, F.lit(False))
    no_key = (deleted & row.keyless(), F.lit("a delete without the values of its key"))
    return _shaped(frame, row, deleted, weight, (unknown, no_key), order, raw)


def _unknown(op: Column) -> Column:
    return F.coalesce(F.concat(F.lit("unknown operation '"), op, F.lit("'")), F.lit("no operation: it is NULL"))


def _order(spec: SourceSpec, columns: Columns, frame: DataFrame) -> tuple[Column, Sequence[Bad]]:
    """The place of a change among those of its key, and rows that have none."""
    if spec.order is None:
        return _file_time(frame) if spec.keyed else F.lit(0), ()
    column = _column(spec.order)
    why = F.lit(f'NULL in "{spec.order}", by which changes are ordered')
    return _sortable(column, columns[spec.order].dataType), ((column.isNull(), why),)


def _file_time(frame: DataFrame) -> Column:
    """When the file of a row was written, where rows come from files: Spark reads large files first, not early ones."""
    return F.unix_micros(F.col("_metadata.file_modification_time")) if _has_file_times(frame) else F.lit(0)


def _has_file_times(frame: DataFrame) -> bool:
    """Whether Spark knows the files of a frame's rows.

    The plan is asked, not Spark's analysis: that would log a failure, with its stack, for every frame without files.
    """
    if "_metadata" in frame.columns:
        return False  # a column of the user's
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return _resolves(frame)
    hidden = plan.queryExecution().analyzed().metadataOutput()
    found = [hidden.apply(at) for at in range(hidden.size())]
    types = [str(each.dataType().catalogString()) for each in found if each.name() == "_metadata"]
    return len(types) == 1 and "file_modification_time" in types[0] and _resolves(frame)


def _resolves(frame: DataFrame) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return len(frame.select(F.col("_metadata.file_modification_time")).columns) == 1
    except AnalysisException:
        return False


def _sortable(column: Column, of: st.DataType) -> Column:
    match of:
        case st.TimestampType():
            return F.unix_micros(column)
        case st.TimestampNTZType():
            # By way of the session's time zone, an hour a year would be there twice.
            minutes = F.unix_date(column.cast("date")).cast("bigint") * 1440 + F.hour(column) * 60 + F.minute(column)
            return minutes * 60_000_000 + (F.extract(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
        case st.DateType():
            return F.unix_date(column)
        case _:
            return column.cast("bigint")


def _column(name: str) -> Column:
    return F.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _default(field: Field, found: st.DataType) -> Column:
    """A value for a column that does not count: NULL, or the least remarkable one where NULL is not allowed."""
    if field.nullable:
        return F.lit(None)
    return _zero(found, field.type)


def _zero(found: st.DataType, wanted: Type) -> Column:
    match found:
        case st.ArrayType() | st.MapType():
            return F.from_json(F.lit("[]" if isinstance(found, st.ArrayType) else "{}"), found)
        case st.StructType():
            assert isinstance(wanted, Struct)
            parts = {f.name: f.type for f in wanted.fields}
            return F.struct(*(_zero(f.dataType, parts[f.name]).alias(f.name) for f in found.fields)).cast(found)
        case st.DateType():
            return F.date_from_unix_date(F.lit(0))
        case st.TimestampType():
            return F.timestamp_micros(F.lit(0))
        case st.TimestampNTZType():
            return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        case st.StringType() | st.BinaryType():
            return F.lit("").cast("string" if isinstance(found, st.StringType) else "binary")
        case st.BooleanType():
            return F.lit(False)
        case _:
            return F.lit(0).cast(wanted.sql)


def _null_inside(wanted: Type, found: st.DataType, column: Column) -> Column | None:
    """Is a part NULL that must not be? None if that cannot be."""
    match wanted, found:
        case Struct(fields), st.StructType():
            parts = [part for f in fields for part in _null_parts(f, found[f.name], column)]
            return column.isNotNull() & reduce(_either, parts) if parts else None
        case Array(element), st.ArrayType():
            return _exists(element, found.elementType, column)
        case Array(Struct((_, value))), st.MapType():
            return _exists(value.type, found.valueType, F.map_values(column))
        case _:
            return None


def _null_parts(wanted: Field, found: st.StructField, column: Column) -> Iterator[Column]:
    part = column.getField(wanted.name)
    if not wanted.nullable and found.nullable:
        yield part.isNull()
    inside = _null_inside(wanted.type, found.dataType, part)
    if inside is not None:
        yield inside


def _exists(wanted: Type, found: st.DataType, column: Column) -> Column | None:
    if _null_inside(wanted, found, F.lit(None)) is None:
        return None

    def test(element: Column) -> Column:
        inside = _null_inside(wanted, found, element)
        assert inside is not None
        return F.coalesce(inside, F.lit(False))

    return column.isNotNull() & F.exists(column, test)


# -- Debezium's envelope --------------------------------------------------------------------------------------


def _from_envelope(frame: DataFrame, spec: SourceSpec) -> DataFrame:
    """Events of before and after: each becomes no change (a tombstone), one, or two."""
    columns = columns_of(spec.name, frame.schema)
    beside = event_columns(columns, spec.envelope)
    found = {side: _nullable(inside(beside[side].dataType)) for side in ("before", "after")}

    def event(name: str) -> Column:
        return _column("payload").getField(name) if spec.envelope == "payload" else _column(name)

    order, ordered = _event_order(spec, beside, found, event)
    events = _keyed_events(spec, event) if spec.keyed else _weighed_events(event)
    rows = [
        F.when(when, _change(spec, found, event, side, weight, deleted, problem))
        for when, side, weight, deleted, problem in events
    ]
    tombstone = event("op").isNull() & event("before").isNull() & event("after").isNull()
    parted = frame.filter(~tombstone).select(
        F.struct(*map(_column, columns)).alias("_original"),
        order.alias("_order"),
        F.explode(F.filter(F.array(*rows), lambda change: change.isNotNull())).alias("_change"),
    )
    change = F.col("_change")
    row = _Row(spec, found["after"], lambda name: F.col("_change.row").getField(name))
    problem = (change.getField("problem").isNotNull(), change.getField("problem"))
    place: tuple[Column, Sequence[Bad]] = (F.coalesce(F.col("_order"), F.lit(NULL_WORD)), ())
    if ordered:
        why = F.lit(f'NULL in "{spec.order}", by which changes are ordered')
        place = (F.col("_order"), ((F.col("_order").isNull(), why),))
    deleted = change.getField("deleted") if spec.keyed else None
    raw = F.to_json(F.col("_original"))
    return _shaped(parted, row, deleted, change.getField("weight"), (problem,), place, raw)


def _nullable(columns: Columns) -> Columns:
    """What is NOT NULL in a row after may be missing in the row before."""
    return {name: st.StructField(name, f.dataType) for name, f in columns.items()}


Event = tuple["Column", str, int, bool, "Column"]  # when, which side, weight, deleted by key, what is wrong


def _keyed_events(spec: SourceSpec, event: Callable[[str], Column]) -> list[Event]:
    op, before, after = F.lower(F.trim(event("op"))), event("before"), event("after")
    put, delete = op.isin(*_INSERTS, *_UPDATES), op.isin(*_DELETES)
    was = [before.getField(name) for name in spec.key]
    moved = reduce(_either, (~a.eqNullSafe(after.getField(name)) for a, name in zip(was, spec.key, strict=True)))
    told = reduce(lambda a, b: a & b, (a.isNotNull() for a in was))
    fine = F.lit(None).cast("string")
    no_after = F.when(after.isNull(), "an operation without the row after it")
    no_key = F.when(before.isNull() | ~told, "a delete without the values of its key")
    return [
        (put & before.isNotNull() & after.isNotNull() & told & moved, "before", -1, True, fine),
        (put, "after", 1, False, no_after),
        (delete, "before", -1, True, no_key),
        (_meaningless(op), "after", 1, False, _no_operation(event("op"))),
    ]


def _weighed_events(event: Callable[[str], Column]) -> list[Event]:
    op, before, after = F.lower(F.trim(event("op"))), event("before"), event("after")
    insert, update, delete = op.isin(*_INSERTS), op.isin(*_UPDATES), op.isin(*_DELETES)
    no_after = F.when(after.isNull(), "an operation without the row after it")
    no_before = F.when(before.isNull(), "an operation without the row before it, in a source without a key")
    return [
        (update | delete, "before", -1, False, no_before),
        (insert | update, "after", 1, False, no_after),
        (_meaningless(op), "after", 1, False, _no_operation(event("op"))),
    ]


def _meaningless(op: Column) -> Column:
    return op.isNull() | ~op.isin(*_INSERTS, *_UPDATES, *_DELETES)


def _no_operation(op: Column) -> Column:
    truncated = F.lit("a table was truncated, which says nothing of the rows it had")
    return F.when(F.lower(op) == "t", truncated).otherwise(_unknown(op))


def _change(
    spec: SourceSpec,
    found: dict[str, Columns],
    event: Callable[[str], Column],
    side: str,
    weight: int,
    deleted: bool,
    problem: Column,
) -> Column:
    """One change of an event: the row of a side with exactly the columns of the schema, as they are after."""
    parts = [
        (event(side).getField(name) if name in found[side] else F.lit(None))
        .cast(found["after"][name].dataType)
        .alias(name)
        for name in spec.schema.names
    ]
    return F.struct(
        F.struct(*parts).alias("row"),
        F.lit(weight).alias("weight"),
        F.lit(deleted).alias("deleted"),
        problem.alias("problem"),
    )


def _event_order(
    spec: SourceSpec, beside: Columns, found: dict[str, Columns], event: Callable[[str], Column]
) -> tuple[Column, bool]:
    """The order of an event, and whether it was asked for: else it is the time of the event, if that is there."""
    if not spec.keyed:
        return F.lit(0), False
    if spec.order is None:
        known = isinstance(beside["ts_ms"].dataType, st.LongType) if "ts_ms" in beside else False
        return (event("ts_ms") if known else F.lit(0)).cast("bigint"), False
    of = order_field(spec, beside, found["after"]).dataType
    head, _, rest = spec.order.partition(".")
    if spec.order in beside:
        return _sortable(event(spec.order), of), True
    if rest and head in beside:
        return _sortable(event(head).getField(rest), of), True
    sides = [event(side).getField(spec.order).cast(of) for side in ("after", "before") if spec.order in found[side]]
    return _sortable(F.coalesce(*sides), of), True


# -- all sources of a pipeline in one frame -------------------------------------------------------------------


def combined(frames: Sequence[DataFrame]) -> DataFrame:
    """One frame of the changes of all sources, for one streaming query: each source's rows in a struct of its own.

    A row has its number in ``_source``, then `META`, then ``s0``, ``s1``…, of which all but its own are NULL.
    """
    assert frames, "a pipeline has a source"
    rows = [[c for c in frame.columns if c not in META] for frame in frames]
    # The struct of another source is NULL, and so is all that is in it, whatever that source says of its columns.
    types = [_may_be_null(frame.select(*map(_column, names)).schema) for frame, names in zip(frames, rows, strict=True)]

    def one(at: int, frame: DataFrame) -> DataFrame:
        own = F.struct(*map(_column, rows[at]))
        parts = [(own if at == other else F.lit(None)).cast(types[other]) for other in range(len(frames))]
        named = [part.alias(f"s{other}") for other, part in enumerate(parts)]
        return frame.select(F.lit(at).alias("_source"), *META, *named)

    return reduce(lambda a, b: a.unionAll(b), (one(at, frame) for at, frame in enumerate(frames)))


def _may_be_null(found: Any) -> Any:
    """A type with NULL allowed everywhere inside it."""
    match found:
        case st.StructType():
            return st.StructType([st.StructField(f.name, _may_be_null(f.dataType)) for f in found.fields])
        case st.ArrayType():
            return st.ArrayType(_may_be_null(found.elementType))
        case st.MapType():
            return st.MapType(_may_be_null(found.keyType), _may_be_null(found.valueType))
        case _:
            return found


def counted(frame: DataFrame, specs: Sequence[SourceSpec]) -> DataFrame:
    """What `combined` gave, with the rows of each source as metrics that Spark reports in a query's progress."""
    counts = [F.count(F.when(F.col("_source") == at, 1)).alias(spec.name) for at, spec in enumerate(specs)]
    return frame.observe("everview", *counts)


def arrived(batch: DataFrame) -> DataFrame:
    """A batch of a stream, its rows numbered as they came."""
    return batch.withColumn("_arrival", F.monotonically_increasing_id())


def only(frame: DataFrame, at: int) -> DataFrame:
    """The changes of one source, of what `combined` gave: its columns, then `META`."""
    return frame.filter(F.col("_source") == at).select(f"s{at}.*", *META)


def split(table: pa.Table, n: int) -> list[pa.Table]:
    """Each of ``n`` sources, of what `combined` gave as Arrow: its columns, then `META`."""
    return [_part(table, at) for at in range(n)]


def _part(table: pa.Table, at: int) -> pa.Table:
    number: Any = pa.scalar(at, pa.int32())
    own = table.select([f"s{at}", *META]).filter(pc.equal(table.column("_source"), number))
    row: Any = own.column(0)
    names = [f.name for f in row.type]
    columns: list[Any] = [*row.flatten(), *own.columns[1:]]
    return pa.Table.from_arrays(columns, names=[*names, *META])
