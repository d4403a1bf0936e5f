"""Arrow columns of one type to Arrow columns of another, where every value stays what it is.

The result is checked there and back: what a cast would round, cut off or reinterpret goes to `coerce`, value
by value, which accepts what is exact after all and names the first row that is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from everview.codes.buffers import (
    NO_OCTETS,
    Column,
    bytes_of,
    list_array,
    nulls,
    offsets_of,
    struct_array,
    valid_of,
)
from everview.codes.coerce import ROUND_TO_MICROS, null_not_allowed
from everview.codes.columns import any_of, check_years, from_python
from everview.errors import NullNotAllowed, WrongType
from everview.kernels import canonical_read as reading
from everview.later import Later
from everview.types import (
    ANY,
    COMPOSITE,
    STRING,
    SYMBOL,
    VARIANT,
    Array,
    Atom,
    Decimal,
    Field,
    MapType,
    ScalarType,
    Schema,
    Struct,
    Type,
    type_of_arrow,
    unknown_name,
)
from everview.types.arrow import EXTENSIONS

if TYPE_CHECKING:
    from everview.codes.maps import check_keys, entries_of, is_variant_struct, of_variant_parts, variants
else:  # a start does without
    check_keys = Later("everview.codes.maps", "check_keys")
    entries_of = Later("everview.codes.maps", "entries_of")
    is_variant_struct = Later("everview.codes.maps", "is_variant_struct")
    of_variant_parts = Later("everview.codes.maps", "of_variant_parts")
    variants = Later("everview.codes.maps", "variants")


def conform(field: Field, column: Column) -> Column:
    """The column with exactly the field's Arrow type, and no NULL where none may be."""
    type_ = field.type
    if column.type != type_.arrow:
        column = _convert(field, column)
    elif type_ == ANY:
        _check_any(field.name, column)
    elif type_ == VARIANT:
        column = variants(field.name, column)
    check_years(field.name, type_, column)
    check_text(field.name, type_, column)
    if not field.nullable and column.null_count:
        raise null_not_allowed(field.name, _first_null(column))
    if has_required(type_):
        _check_inside(field.name, type_, column)
    return column


def check_given(schema: Schema, table: pa.Table | pa.RecordBatch) -> None:
    """Refuse values that the Arrow type admits and the column's type does not."""
    for field in schema.fields:
        if field.name in table.schema.names and (column := table.column(field.name)).type == field.type.arrow:
            check_years(field.name, field.type, column)
            check_text(field.name, field.type, column)


def check_text(name: str, type_: Type, column: Column) -> None:
    """Refuse bytes that are not UTF-8, which Arrow itself does not check."""
    if type_ in (STRING, SYMBOL) or isinstance(type_, COMPOSITE):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            hint = "decode it with its own encoding, or declare the column BINARY"
            raise WrongType(f'column "{name}" is not valid Unicode: {error}', hint=hint) from None


def conform_chunks(field: Field, column: Column) -> list[Column]:
    """The chunks of a column, each conformed; an error counts rows from the start of the column."""
    if not isinstance(column, pa.ChunkedArray):
        return [conform(field, column)]
    try:
        return [conform(field, chunk) for chunk in column.chunks]
    except (WrongType, NullNotAllowed):
        conform(field, column.combine_chunks())
        raise


def _convert(field: Field, column: Column) -> Column:
    type_ = field.type
    if at.is_null(column.type):
        return nulls(type_, len(column))
    if at.is_dictionary(column.type) or at.is_run_end_encoded(column.type):
        return conform(field, _decoded(column))
    if (plain := _without_extension(type_, column)) is not None:
        return conform(field, plain)
    if type_ == ANY:
        return any_of(*_own_type(field.name, column))
    _check_microseconds(field.name, column)
    try:
        converted = _cast(field, column)
    except pa.ArrowException:
        converted = None
    if converted is not None:
        return converted
    return from_python(Field(field.name, type_), _python_values(field.name, column))


def _without_extension(type_: Type, column: Column) -> Column | None:
    """The values of an extension type that stands for a type here; None if it is of no such type."""
    name = getattr(column.type, "extension_name", "")
    if name not in EXTENSIONS or type_ not in (EXTENSIONS[name], ANY):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if name == "arrow.uuid":
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    return column.storage.cast(EXTENSIONS[name].arrow)


def _check_microseconds(name: str, column: Column) -> None:
    """Refuse timestamps finer than a microsecond, which is what a word holds."""
    fine = at.is_timestamp(column.type) or at.is_duration(column.type) or at.is_time64(column.type)
    if not fine or column.type.unit != "ns":
        return
    finer = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) % 1000 != 0
    if finer.any():
        row = int(finer.argmax())
        message = f'column "{name}", rows[{row}]: {column[row]} is finer than a microsecond'
        raise WrongType(message, hint=ROUND_TO_MICROS)


def _decoded(column: Column) -> Column:
    """A column whose values stand in a dictionary, or once a run, with each value in its place."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_decoded(chunk) for chunk in column.chunks] or [pa.array([], pa.null())])
    if not at.is_dictionary(column.type):
        return pc.call_function("run_end_decode", [column])
    words = column.dictionary
    if at.is_string_view(words.type) or at.is_binary_view(words.type):  # of which Arrow takes none by index
        words = words.cast(pa.large_string() if at.is_string_view(words.type) else pa.large_binary())
    if isinstance(words, pa.ExtensionArray):
        words = words.storage
    return words.take(column.indices)


def _python_values(name: str, column: Column) -> list[Any]:
    """The values one by one. Whatever its name says, a list of structs as Python values is a list of dicts."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError, KeyError, ArithmeticError, pa.ArrowException) as error:
        raise WrongType(
            f'column "{name}" of Arrow type {column.type} has a value that Python does not hold: {error}',
            hint="cast the column before, or repair it",
        ) from None


def _own_type(name: str, column: Column) -> tuple[Type, Column]:
    type_ = type_of_arrow(column.type)
    return type_, conform(Field(name, type_), column)


def _cast(field: Field, column: Column) -> Column | None:
    """The column cast, or None when some value might not survive it."""
    match field.type:
        case Array(element) if not isinstance(column, pa.ExtensionArray):
            return _cast_lists(field, element, column)
        case Struct() if at.is_struct(column.type):
            return _cast_structs(field, column)
        case MapType() if at.is_map(column.type):
            return _cast_maps(field, field.type, column)
        case MapType() if _is_entries(column):
            return _map_of_entries(field, field.type, column)
        case ScalarType("VARIANT") if is_variant_struct(column.type):
            return of_variant_parts(column)
        case Decimal():
            return _to_decimal(column, field.type.arrow)
        case ScalarType(name) if name in _CASTS:
            return _CASTS[name](column, field.type.arrow)
        case Atom() | ScalarType("ID") if _is_binary(column.type):
            return column.cast(pa.binary())
        case ScalarType("ID") if _is_string(column.type):
            return column.cast(pa.string()).cast(pa.binary())
        case _:
            return None


def _is_string(arrow: pa.DataType) -> bool:
    return at.is_string(arrow) or at.is_large_string(arrow) or at.is_string_view(arrow)


def _is_binary(arrow: pa.DataType) -> bool:
    return (
        at.is_binary(arrow) or at.is_large_binary(arrow) or at.is_binary_view(arrow) or at.is_fixed_size_binary(arrow)
    )


def _is_number(arrow: pa.DataType) -> bool:
    return at.is_integer(arrow) or at.is_floating(arrow) or at.is_decimal(arrow)


def _to_integer(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if _is_number(column.type) else None


def _to_floating(column: Column, arrow: pa.DataType) -> Column | None:
    if at.is_integer(column.type):
        return _there_and_back(column, column.cast(pa.float64()), arrow)
    if at.is_decimal(column.type):
        there = _through_text(column, pa.float64())
        return there.cast(arrow) if _through_text(there, column.type).equals(column) else None
    if not at.is_floating(column.type):
        return None
    floats = column.cast(arrow)
    grew = pc.and_(pc.is_inf(floats), pc.invert(pc.is_inf(column.cast(pa.float64()))))
    return None if pc.any(grew).as_py() else floats


def _to_decimal(column: Column, arrow: pa.DataType) -> Column | None:
    if at.is_integer(column.type):
        return column.cast(pa.decimal128(20, 0)).cast(arrow)
    if at.is_decimal(column.type):
        return column.cast(arrow)
    if at.is_floating(column.type):
        column = column.cast(pa.float64()).cast(pa.string())
    if not _is_string(column.type):
        return None
    there = column.cast(arrow)
    # Arrow reads texts such as 1e-55 as zero.
    lost = pc.and_(pc.equal(there, pa.scalar(0, arrow)), pc.match_substring_regex(column, "^[^eE]*[1-9]"))
    return None if pc.any(lost).as_py() else there


def _to_date(column: Column, arrow: pa.DataType) -> Column | None:
    if at.is_timestamp(column.type):
        return _there_and_back(column, column.cast(arrow), arrow)
    return column.cast(arrow) if at.is_date(column.type) or _is_string(column.type) else None


def _to_timestamp(column: Column, arrow: pa.DataType) -> Column | None:
    if at.is_timestamp(column.type) or at.is_date(column.type):
        return column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(arrow)
    return column.cast(pa.timestamp("us")).cast(arrow) if _is_string(column.type) else None


def _to_local_timestamp(column: Column, arrow: pa.DataType) -> Column | None:
    if at.is_timestamp(column.type) and column.type.tz is not None:
        return None
    moments = at.is_timestamp(column.type) or at.is_date(column.type)
    return column.cast(arrow) if moments or _is_string(column.type) else None


def _to_time(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if at.is_time(column.type) else None


def _to_span(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if at.is_duration(column.type) else None


def _to_months(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if at.is_integer(column.type) else None


def _to_text(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if _is_string(column.type) else None


def _to_binary(column: Column, arrow: pa.DataType) -> Column | None:
    return column.cast(arrow) if _is_binary(column.type) else None


def _there_and_back(column: Column, there: Column, arrow: pa.DataType) -> Column | None:
    return there.cast(arrow) if there.cast(column.type).equals(column) else None


def _through_text(column: Column, arrow: pa.DataType) -> Column:
    """Between decimals and floats Arrow's own cast is an ulp off at times; the shortest text is exact."""
    return column.cast(pa.string()).cast(arrow)


_CASTS: Final[dict[str, Callable[[Column, pa.DataType], Column | None]]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _to_integer),
    "FLOAT": _to_floating,
    "DOUBLE": _to_floating,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
    "TIMESTAMP_NTZ": _to_local_timestamp,
    "TIME": _to_time,
    "INTERVAL DAY": _to_span,
    "INTERVAL DAY TO SECOND": _to_span,
    "INTERVAL YEAR TO MONTH": _to_months,
    "STRING": _to_text,
    "SYMBOL": _to_text,
    "BINARY": _to_binary,
}


def _cast_lists(field: Field, element: Type, column: Column) -> Column | None:
    if at.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    if not _is_list(column.type):
        return None
    if not at.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    child = _cast_inside(Field(field.name, element), column.values)
    if child is None:
        return None
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(
        field.type.arrow, len(column), buffers, column.null_count, column.offset, children=[child]
    )


def _cast_maps(field: Field, type_: MapType, column: Column) -> Column | None:
    keys = _cast_inside(Field(f"{field.name}.key", type_.key), column.keys)
    values = _cast_inside(Field(f"{field.name}.value", type_.value), column.items)
    if keys is None or values is None:
        return None
    if len(column) == 0:
        return pa.array([], type_.arrow)
    entries = struct_array(type_.entry, len(keys), [keys, values], NO_OCTETS)
    return list_array(type_, offsets_of(column), entries, valid_of(column))


def _is_entries(column: Column) -> bool:
    """Whether a column is one of lists of structs of two fields, as some have maps."""
    if not at.is_list(column.type) or not at.is_struct(column.type.value_type):
        return False
    return column.type.value_type.num_fields == 2 and not column.values.null_count


def _map_of_entries(field: Field, type_: MapType, column: Column) -> Column | None:
    keys = _cast_inside(Field(f"{field.name}.key", type_.key), column.values.field(0))
    values = _cast_inside(Field(f"{field.name}.value", type_.value), column.values.field(1))
    if keys is None or values is None or len(column) == 0:
        return None
    entries = struct_array(type_.entry, len(keys), [keys, values], NO_OCTETS)
    return list_array(type_, offsets_of(column), entries, valid_of(column))


def _is_list(arrow: pa.DataType) -> bool:
    return (
        at.is_list(arrow)
        or at.is_large_list(arrow)
        or at.is_fixed_size_list(arrow)
        or at.is_list_view(arrow)
        or at.is_large_list_view(arrow)
    )


def _cast_structs(field: Field, column: Column) -> Column | None:
    type_ = field.type
    assert isinstance(type_, Struct)
    names = [f.name for f in type_.fields]
    given = [column.type.field(i).name for i in range(column.type.num_fields)]
    for name in given:
        if name not in names:
            raise unknown_name(f'field of column "{field.name}"', name, names)
    children: list[Column] = []
    for f in type_.fields:
        part = column.field(given.index(f.name)) if f.name in given else nulls(f.type, len(column))
        child = _cast_inside(Field(f"{field.name}.{f.name}", f.type), part)
        if child is None:
            return None
        children.append(child)
    return struct_array(type_, len(column), children, valid_of(column))


def _cast_inside(field: Field, child: Column) -> Column | None:
    """The cast of a child array, or None if a value does not survive: only the whole column knows its row."""
    if child.type == field.type.arrow and field.type != ANY:
        return child
    if at.is_null(child.type):
        return nulls(field.type, len(child))
    if field.type == ANY:
        return any_of(*_own_type(field.name, child)) if child.type != pa.binary() else child
    return _cast(field, child)


def _first_null(column: Column) -> int:
    return column.is_valid().index(False).as_py()


@cache
def has_required(type_: Type) -> bool:
    """Whether a struct somewhere inside a type has a NOT NULL field, or there is a map, whose keys are checked."""
    match type_:
        case MapType():
            return True
        case Array(element):
            return has_required(element)
        case Struct(fields):
            return any(not f.nullable or has_required(f.type) for f in fields)
        case _:
            return False


def _check_inside(name: str, type_: Type, column: Column) -> None:
    """Refuse NULL in NOT NULL fields of structs, and keys that come twice; errors name the row of the column."""
    rows = np.arange(len(column))
    _check_parts(name, type_, column, rows)


def _check_parts(name: str, type_: Type, column: Column, rows: np.ndarray[Any, Any]) -> None:
    present = column.is_valid().to_numpy(zero_copy_only=False)
    match type_:
        case Array(element):
            parents = pc.list_parent_indices(column).to_numpy()
            _check_parts(name, element, column.flatten(), rows[parents])
        case Struct(fields):
            inside = column.filter(pa.array(present))
            for i, f in enumerate(fields):
                part = inside.field(i)
                if not f.nullable and part.null_count:
                    raise null_not_allowed(f"{name}.{f.name}", int(rows[present][_first_null(part)]))
                _check_parts(f"{name}.{f.name}", f.type, part, rows[present])
        case MapType(_, value):
            check_keys(name, type_, column, rows)
            entries = entries_of(column)
            parents = pc.list_parent_indices(entries).to_numpy()
            _check_parts(f"{name}.value", value, entries.flatten().field(1), rows[parents])
        case _:
            pass


def _check_any(name: str, column: Column) -> None:
    row = reading.first_malformed(*bytes_of(column), valid_of(column))
    if row >= 0:
        hint = "an ANY column is binary and holds what codes.pack makes; give Python values, or a typed column"
        raise WrongType(f'column "{name}", rows[{row}]: not the encoding of a value', hint=hint)
