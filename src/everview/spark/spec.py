"""Specs of sources, checked against their frames when they are made, so that mistakes show at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

import pyspark.sql.types as st

from everview.errors import EverviewError, SchemaDrift, SchemaError, SourceError
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    YEAR_MONTH,
    Array,
    Decimal,
    Field,
    MapType,
    Schema,
    Struct,
    Type,
    unknown_name,
)
from everview.types.widening import fits_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Style = Literal["append", "upsert", "weights", "cdc", "snapshot"]
Envelope = Literal["columns", "payload"]
Columns = dict[str, st.StructField]  # of a frame or a struct, by name

ORDERS: Final = (TINYINT, SMALLINT, INTEGER, BIGINT, DATE, TIMESTAMP)  # types whose words are what is compared
ADDED: Final = ("append", "weights")  # styles whose rows are added up as they come
STYLES: Final[tuple[str, ...]] = get_args(Style)
META: Final = ("_weight", "_order", "_arrival", "_reason", "_raw")
_DELTA: Final = ("_commit_version", "_commit_timestamp")  # what Delta's change feed has besides `_change_type`
_ICEBERG: Final = ("_change_ordinal", "_commit_snapshot_id")  # and Iceberg's


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The spec of a source: how its rows are read as changes; `spec_of` makes one that fits its frame.

    ``envelope`` says where Debezium's before, after and op are, if they are there at all.
    """

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    changes: Style = "append"
    op: str | None = None
    weight: str = "_weight"
    order: str | None = None
    envelope: Envelope | None = None
    beside: tuple[str, ...] = ()  # the columns of an envelope, which are not of the row
    corrupt: str | None = None  # the column of text that Spark could not read

    @property
    def keyed(self) -> bool:
        """Whether rows stand for the latest state of their key; rows that are added up do not, even with a key."""
        return bool(self.key) and self.changes not in ADDED

    @property
    def row_order(self) -> str | None:
        """The column of rows that orders their changes, by which a late change is noticed; or None."""
        return self.order if self.order in self.schema.names and self.order not in self.beside else None


def spec_of(
    name: str,
    frame: DataFrame,
    *,
    key: str | Sequence[str] | None = None,
    changes: str = "append",
    op: str | None = None,
    weight: str = "_weight",
    order: str | None = None,
    schema: Schema | None = None,
    corrupt: str | None = None,
) -> SourceSpec:
    """The spec of a source, checked against its frame; with a schema, the columns are matched by name."""
    style = _style(name, changes)
    keys = _keys(name, style, key)
    if op is not None and style != "cdc":
        raise SourceError(f'{_of(name)}: op="{op}" needs changes="cdc"', hint='write changes="cdc"')
    if order is not None and (not keys or style in ADDED):
        hint = "leave it out: without a key, changes are added up, in whatever order they come"
        raise SourceError(f'{_of(name)}: order="{order}" without a key', hint=hint)
    columns = columns_of(name, frame.schema)
    envelope = _envelope(columns) if style == "cdc" and op in (None, "op") else None
    if style == "cdc" and envelope is None:
        op = _op(name, columns, op)
    if op == "_change_type" and order is None and keys:
        order = next((known for known in (_DELTA[0], _ICEBERG[0]) if known in columns), None)
    control = (*_control(columns, style, op, weight), corrupt)
    row = _row_columns(columns, envelope)
    chosen = _schema_of(name, [f for c, f in row.items() if c not in control]) if schema is None else schema
    outside = tuple(event_columns(columns, envelope)) if envelope else ()
    spec = SourceSpec(name, chosen, keys, style, "op" if envelope else op, weight, order, envelope, outside, corrupt)
    _check(spec, columns)
    return spec


def check_drift(frame: DataFrame, spec: SourceSpec) -> None:
    """Raise `SchemaDrift` if a later frame of the source no longer fits its spec."""
    try:
        columns = columns_of(spec.name, frame.schema)
        if spec.envelope != (_envelope(columns) if spec.envelope else None):
            raise SourceError(f"{_of(spec.name)}: before, after and op are gone", hint=_ENVELOPE_HINT)
        _check(spec, columns)
    except EverviewError as error:
        hint = f"{error.hint}; or start a new pipeline" if error.hint else "start a new pipeline"
        raise SchemaDrift(f"{error.message}, since the pipeline was started", hint=hint) from None


def schema_of(frame: DataFrame, columns: Sequence[str] | None = None) -> Schema:
    """The schema for the rows of a frame: for all of its columns, or for some."""
    fields = {f.name: f for f in frame.schema.fields}
    for name in columns or ():
        if name not in fields:
            raise unknown_name("column", name, fields)
    return _schema_of(None, [fields[name] for name in (fields if columns is None else columns)])


def _schema_of(name: str | None, fields: Sequence[st.StructField]) -> Schema:
    if not fields and name is not None:
        raise SourceError(f"{_of(name)} has no columns", hint="select at least one column that holds data")
    return Schema(Field(f.name, type_of(f.dataType, f.name), f.nullable) for f in fields)


def _style(name: str, changes: str) -> Style:
    if changes not in STYLES:
        hint = f"choose one of {', '.join(STYLES)}"
        raise SourceError(f'{_of(name)}: there are no changes of the style "{changes}"', hint=hint)
    return cast("Style", changes)


def _keys(name: str, style: Style, key: str | Sequence[str] | None) -> tuple[str, ...]:
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    if style in ("upsert", "snapshot") and not keys:
        hint = 'name the columns that identify a row: key="id"'
        raise SourceError(f'{_of(name)}: changes="{style}" needs a key', hint=hint)
    if len(set(keys)) < len(keys):
        raise SourceError(f"{_of(name)}: a column is twice in its key", hint=f"the key is {', '.join(keys)}")
    return keys


def columns_of(name: str, schema: st.StructType) -> Columns:
    """The columns of a frame by name; refuses names that differ in case only, which Spark cannot tell apart."""
    folded = [f.name.lower() for f in schema.fields]
    for place, column in enumerate(folded):
        if column in folded[:place]:
            raise SourceError(f'{_of(name)} has two columns "{schema.names[place]}"', hint="rename or drop one")
    return {f.name: f for f in schema.fields}


def _op(name: str, columns: Columns, op: str | None) -> str:
    if op is None:
        op = next((known for known in ("op", "_change_type") if known in columns), None)
    if op is None:
        raise SourceError(f'{_of(name)}: changes="cdc" needs a column that says what was done', hint=_ENVELOPE_HINT)
    return op


_ENVELOPE_HINT: Final = (
    'name it: op="…"; it is found by itself if it is called op or _change_type, or in Debezium\'s '
    "envelope of the structs before and after and the text op"
)


def _control(columns: Columns, style: Style, op: str | None, weight: str) -> tuple[str, ...]:
    """The control columns: they tell how a row changes, and are not part of the row."""
    if style == "weights":
        return (weight,)
    if style != "cdc" or op is None:
        return ()
    return (op, *_DELTA, *_ICEBERG) if op == "_change_type" else (op,)


def _envelope(columns: Columns) -> Envelope | None:
    """The place of Debezium's before, after and op in a frame; None if they are not there."""
    if _is_envelope(columns):
        return "columns"
    payload = columns.get("payload")
    inner = payload.dataType if payload is not None else None
    return "payload" if isinstance(inner, st.StructType) and _is_envelope(inside(inner)) else None


def _is_envelope(columns: Columns) -> bool:
    if not {"before", "after", "op"} <= columns.keys():
        return False
    return all(isinstance(columns[side].dataType, st.StructType) for side in ("before", "after"))


def inside(struct: st.DataType) -> Columns:
    assert isinstance(struct, st.StructType)
    return {f.name: f for f in struct.fields}


def event_columns(columns: Columns, envelope: Envelope | None) -> Columns:
    """The columns beside the row: those of the frame, or of the payload."""
    return inside(columns["payload"].dataType) if envelope == "payload" else columns


def _row_columns(columns: Columns, envelope: Envelope | None) -> Columns:
    """The columns of a row: those of the frame, or of the row after in an envelope."""
    return inside(event_columns(columns, envelope)["after"].dataType) if envelope else columns


def _check(spec: SourceSpec, columns: Columns) -> None:
    """Refuse a frame whose columns do not give what the spec asks for."""
    row = _row_columns(columns, spec.envelope)
    beside = event_columns(columns, spec.envelope)
    for f in spec.schema.fields:
        _check_column(spec.name, f, row)
        if f.name.lower() in META:
            hint = f"rename it: {', '.join(META)} are columns that changes have besides"
            raise SourceError(f'{_of(spec.name)}: a column cannot be called "{f.name}"', hint=hint)
    for name in spec.key:
        _there(spec.name, "the key", name, spec.schema.names)
    if spec.op is not None:
        _there(spec.name, "the operation", spec.op, beside)
        _typed(spec.name, "an operation is text", beside[spec.op], st.StringType)
    if spec.changes == "weights":
        _there(spec.name, "the weight", spec.weight, columns)
        _typed(spec.name, "a weight is a number", columns[spec.weight], st.NumericType)
    if spec.order is not None:
        _orderable(spec.name, order_field(spec, beside, row))
    if spec.row_order is not None:
        kept = spec.schema.fields[spec.schema.index(spec.row_order)]
        if kept.type not in ORDERS and not (isinstance(kept.type, Decimal) and kept.type.scale == 0):
            hint = "keep it as a timestamp, a date or a whole number, as it is in the frame"
            raise SourceError(f'{_of(spec.name)}: cannot order by "{kept.name}" as {kept.type.sql}', hint=hint)


def _there(name: str, what: str, column: str, available: Columns | Sequence[str]) -> None:
    if column not in available:
        error = unknown_name("column", column, available)
        raise SourceError(f"{_of(name)}: {what}: {error.message}", hint=error.hint)


def _typed(name: str, wish: str, field: st.StructField, wanted: type[st.DataType]) -> None:
    if not isinstance(field.dataType, wanted):
        type_ = field.dataType.simpleString().upper()
        raise SourceError(f'{_of(name)}: column "{field.name}" is {type_}', hint=f"{wish}: cast it first")


def order_field(spec: SourceSpec, beside: Columns, row: Columns) -> st.StructField:
    """The column that orders changes: beside the row, a part of a struct there, or in the row."""
    assert spec.order is not None
    if spec.order in beside or spec.envelope is None:
        _there(spec.name, "the order", spec.order, beside)
        return beside[spec.order]
    head, _, rest = spec.order.partition(".")
    if rest and head in beside and isinstance(beside[head].dataType, st.StructType):
        _there(spec.name, f"the order in {head}", rest, inside(beside[head].dataType))
        return inside(beside[head].dataType)[rest]
    _there(spec.name, "the order", spec.order, row)
    return row[spec.order]


def _orderable(name: str, field: st.StructField) -> None:
    type_ = field.dataType
    if isinstance(type_, (st.IntegralType, st.DateType, st.TimestampType, st.TimestampNTZType)):
        return
    if isinstance(type_, st.DecimalType) and type_.scale == 0 and type_.precision <= 18:
        return
    hint = "order by a timestamp, a date or a whole number: cast it first, or leave order out to go by arrival"
    raise SourceError(
        f'{_of(name)}: cannot order by "{field.name}", which is {type_.simpleString().upper()}', hint=hint
    )


def _of(name: str) -> str:
    return f'source "{name}"'


# -- types of Spark, and which fit where ----------------------------------------------------------------------

TYPES: Final[dict[type[st.DataType], Type]] = {
    st.BooleanType: BOOLEAN,
    st.ByteType: TINYINT,
    st.ShortType: SMALLINT,
    st.IntegerType: INTEGER,
    st.LongType: BIGINT,
    st.FloatType: FLOAT,
    st.DoubleType: DOUBLE,
    st.DateType: DATE,
    st.TimestampType: TIMESTAMP,
    st.TimestampNTZType: TIMESTAMP,  # as if in UTC
    st.StringType: STRING,
    st.CharType: STRING,
    st.VarcharType: STRING,
    st.BinaryType: BINARY,
    st.VariantType: VARIANT,
}


def type_of(type_: st.DataType, name: str) -> Type:
    """The type that holds a Spark type."""
    match type_:
        case st.DecimalType():
            return Decimal(type_.precision, type_.scale)
        case st.ArrayType():
            return Array(type_of(type_.elementType, name))
        case st.StructType():
            return Struct(Field(f.name, type_of(f.dataType, f"{name}.{f.name}"), f.nullable) for f in type_.fields)
        case st.MapType():
            return MapType(type_of(type_.keyType, name), type_of(type_.valueType, name))
        case st.DayTimeIntervalType(startField=start, endField=end):
            return DAY if start == end == st.DayTimeIntervalType.DAY else DAY_TIME
        case st.YearMonthIntervalType():
            return YEAR_MONTH
        case _ if type(type_) in TYPES:
            return TYPES[type(type_)]
        case _ if type(type_).__name__ == "TimeType":  # which Spark has from 4.1 on
            return TIME
        case _:
            hint = "cast it first to a number, text, a date or a timestamp, or drop it"
            raise SchemaError(f'column "{name}" is {type_.simpleString().upper()}, which no type here holds', hint=hint)


def _check_column(name: str, wanted: Field, columns: Columns) -> None:
    _there(name, "its schema", wanted.name, columns)
    given = type_of(columns[wanted.name].dataType, wanted.name)
    if wanted.type == TIMESTAMP_NTZ and isinstance(columns[wanted.name].dataType, st.TimestampNTZType):
        return
    if not fits_in(given, wanted.type):
        hint = f"cast it to {wanted.type.sql}: only a wider type of the same sort is taken as it is"
        raise SourceError(f'{_of(name)}: column "{wanted.name}" is {given.sql}, not {wanted.type.sql}', hint=hint)
