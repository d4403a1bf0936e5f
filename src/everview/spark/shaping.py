"""Rows of a source in one shape: every column in its type, a weight, an order, and the reason if a row is bad.

No row is lost, and none fails the job: a row that means nothing comes out with its reason. Everything is an expression
of Spark's own, so it runs in the JVM, on batches and on streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.spark.spec import TYPES, Columns, SourceSpec, type_of
from everview.types import NULL_WORD, Array, Decimal, Field, MapType, Struct, Type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Bad = tuple["Column", "Column"]  # when a row is bad, and why
Shape = Callable[["DataFrame"], "DataFrame"]  # what makes changes of the rows of frames that have the same columns
LATE: Final = "it came after the watermark had passed it"  # the reason of a row that breaks a source's promise
UNREADABLE: Final = "text that cannot be read"  # the reason of a row that is no row

# What operations on rows are called, in lower case.
INSERTS: Final = ("c", "r", "i", "insert", "read", "+i")
UPDATES: Final = ("u", "update", "+u", "update_postimage", "update_after")
BEFORES: Final = ("-u", "update_preimage", "update_before", "ub")
DELETES: Final = ("d", "delete", "-d", "x")


class RowColumns:
    """The columns of a source's rows as the frame has them, by name."""

    def __init__(
        self, spec: SourceSpec, columns: Columns, column: Callable[[str], Column], corrupt: Column | None = None
    ) -> None:
        """``corrupt`` is the column of text that could not be read, if there is one."""
        self.spec = spec
        self.columns = columns
        self.column = column
        self.corrupt = corrupt

    def value(self, field: Field, deleted: Column | None) -> Column:
        """A column in its type; in a row that deletes a key, other columns do not count."""
        value = self._cast(field)
        if deleted is None or field.name in self.spec.key:
            return value
        return F.when(deleted, _default(field, self.columns[field.name].dataType)).otherwise(value)

    def _cast(self, field: Field) -> Column:
        column, type_ = self.column(field.name), self.columns[field.name].dataType
        if isinstance(type_, st.StringType) and type_ != st.StringType():
            return column.cast("string")  # a collation changes what is equal, and so the hash
        if isinstance(type_, st.YearMonthIntervalType):
            # A number of months crosses to Python, an interval of them does not.
            return column.cast("interval month").cast("int")
        return column.try_cast(field.type.sql) if self._narrower(field) else column

    def _narrower(self, field: Field) -> bool:
        """Whether Spark must cast a column; composite types and those only we have are converted by the encoder."""
        known = isinstance(field.type, Decimal) or field.type in TYPES.values()
        return known and type_of(self.columns[field.name].dataType, field.name) != field.type

    def keyless(self) -> Column:
        """Whether a part of the key is NULL."""
        return reduce(either, (self.column(name).isNull() for name in self.spec.key), F.lit(False))

    def faults(self, deleted: Column | None) -> Iterator[Bad]:
        """The tests for bad values in a row, each with its reason."""
        for field in self.spec.schema.fields:
            in_key = field.name in self.spec.key
            for wrong, why in self._faults(field, in_key):
                yield (wrong if deleted is None or in_key else ~deleted & wrong), F.lit(why)

    def _faults(self, field: Field, in_key: bool) -> Iterator[tuple[Column, str]]:
        column, given = self.column(field.name), self.columns[field.name]
        where = f'column "{field.name}"'
        if in_key:
            yield column.isNull(), f'NULL in key column "{field.name}"'
        elif not field.nullable and given.nullable:
            yield column.isNull(), f"NULL in {where}, which is NOT NULL"
        if self._narrower(field):
            yield (
                column.isNotNull() & self._cast(field).isNull(),
                f"{where}: a value that {field.type.sql} does not hold",
            )
        if isinstance(given.dataType, st.StringType):
            yield ~F.is_valid_utf8(column), f"{where}: text that is not UTF-8"
        if isinstance(given.dataType, st.DayTimeIntervalType):
            least = F.expr("INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND")
            yield column == least, f"{where}: the least interval of all, which stands for NULL"
        if isinstance(given.dataType, st.TimestampType):
            yield F.unix_micros(column) == NULL_WORD, f"{where}: the least timestamp of all, which stands for NULL"
        inside = _null_inside(field.type, given.dataType, column)
        if inside is not None:
            yield inside, f"NULL inside {where}, where it is NOT NULL"


def unreadable(text: Column, raw: Column) -> tuple[Bad, Column]:
    """The test for text that Spark could not parse, and a bad row's raw form: that text where there is one."""
    return (text.isNotNull(), F.lit(UNREADABLE)), F.coalesce(text, raw)


def either(a: Column, b: Column) -> Column:
    return a | b


def shape(
    row: RowColumns,
    deleted: Column | None,
    weight: Column,
    bad: Sequence[Bad],
    order: tuple[Column, Sequence[Bad]],
    raw: Column,
    *,
    streaming: bool,
) -> Shape:
    """What makes changes of rows: their values and weights, and the reasons of bad ones."""
    place, disorder = order
    if row.corrupt is not None:
        first, raw = unreadable(row.corrupt, raw)
        bad = (first, *bad)
    reason = _reason([*bad, *row.faults(deleted), *disorder])
    columns = [
        *(row.value(field, deleted).alias(field.name) for field in row.spec.schema.fields),
        weight.cast("bigint").alias("_weight"),
        place.cast("bigint").alias("_order"),
        _arrival(row.spec.keyed and not streaming).alias("_arrival"),
        reason.alias("_reason"),
        F.when(reason.isNotNull(), raw).alias("_raw"),
    ]
    return lambda frame: frame.select(*columns)


def _arrival(numbered: bool) -> Column:
    """The number of a row by arrival; 0 on a stream, as Spark numbers only the rows of its batches."""
    return F.monotonically_increasing_id() if numbered else F.lit(0).cast("bigint")


def _reason(bad: Sequence[Bad]) -> Column:
    """The first reason why a row is bad, if any."""
    reason = F.lit(None).cast("string")
    for wrong, why in reversed(bad):
        reason = F.when(wrong, why).otherwise(reason)
    return reason


def unknown_operation(op: Column) -> Column:
    return F.coalesce(F.concat(F.lit("unknown operation '"), op, F.lit("'")), F.lit("no operation: it is NULL"))


def sortable(column: Column, type_: st.DataType) -> Column:
    match type_:
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


def column_of(name: str) -> Column:
    return F.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _default(field: Field, type_: st.DataType) -> Column:
    """A filler for a column that does not count: NULL, or zero or empty where NULL is not allowed."""
    if field.nullable:
        return F.lit(None)
    return _zero(type_, field.type)


def _zero(type_: st.DataType, wanted: Type) -> Column:
    match type_:
        case st.ArrayType():
            return F.from_json(F.lit("[]"), type_)
        case st.MapType():
            return F.from_json(F.lit("{}"), type_)
        case st.StructType():
            assert isinstance(wanted, Struct)
            parts = {f.name: f.type for f in wanted.fields}
            return F.struct(*(_zero(f.dataType, parts[f.name]).alias(f.name) for f in type_.fields)).cast(type_)
        case st.VariantType():
            return F.parse_json(F.lit("null"))
        case st.DateType():
            return F.date_from_unix_date(F.lit(0))
        case st.TimestampType():
            return F.timestamp_micros(F.lit(0))
        case st.TimestampNTZType():
            return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        case st.DayTimeIntervalType():
            return F.expr("INTERVAL '0' DAY").cast(wanted.sql)
        case st.YearMonthIntervalType():
            return F.lit(0)
        case _ if type(type_).__name__ == "TimeType":
            return F.lit("00:00:00").cast("time")
        case st.StringType() | st.BinaryType():
            return F.lit("").cast(type_)
        case _:
            return F.lit(0).cast(wanted.sql)


def _null_inside(wanted: Type, type_: st.DataType, column: Column) -> Column | None:
    """The test for NULL in a part that must not be NULL; None if Spark's type rules it out."""
    match wanted, type_:
        case Struct(fields), st.StructType():
            parts = [part for f in fields for part in _null_parts(f, type_[f.name], column)]
            return column.isNotNull() & reduce(either, parts) if parts else None
        case Array(element), st.ArrayType():
            return _exists(element, type_.elementType, column)
        case MapType(_, value), st.MapType():
            return _exists(value, type_.valueType, F.map_values(column))
        case Array(Struct((_, value))), st.MapType():
            return _exists(value.type, type_.valueType, F.map_values(column))
        case _:
            return None


def _null_parts(wanted: Field, part_field: st.StructField, column: Column) -> Iterator[Column]:
    part = column.getField(wanted.name)
    if not wanted.nullable and part_field.nullable:
        yield part.isNull()
    inside = _null_inside(wanted.type, part_field.dataType, part)
    if inside is not None:
        yield inside


def _exists(wanted: Type, type_: st.DataType, column: Column) -> Column | None:
    if _null_inside(wanted, type_, F.lit(None)) is None:
        return None

    def test(element: Column) -> Column:
        inside = _null_inside(wanted, type_, element)
        assert inside is not None
        return F.coalesce(inside, F.lit(False))

    return column.isNotNull() & F.exists(column, test)
