"""CSV as text: a struct as one line, and a line as a struct; a field that does not fit is NULL."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value
from everview.types import BOOLEAN, STRING, Type, type_of_arrow

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?=,|$)', re.DOTALL)
_FRACTION: Final = r"^\s*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Inf(inity)?)\s*$"


# -- reading


def _from_csv(out: Kind, a: Value, schema: Value) -> Any:
    """The fields of each line, cast from text column by column."""
    lines = a.to_pylist()
    cells = [None if line is None else _cells(line) for line in lines]
    columns: list[Value] = []
    for place, field in enumerate(out):
        texts = [row[place] if row is not None and place < len(row) else None for row in cells]
        columns.append(_typed(pa.array(texts, pa.string()), type_of_arrow(field.type)))
    mask: Any = pa.array([line is None for line in lines], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(out), mask=mask)


def _cells(line: str) -> list[str | None]:
    """The cells of a line, an empty one as NULL; one with a quote in its midst is as it stands."""
    cells: list[str | None] = []
    at = 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is not None:
            cells.append(re.sub(r'\\(["\\])', r"\1", quoted[1]) or None)
            at = quoted.end() + 1
            continue
        end = line.find(",", at)
        end = len(line) if end < 0 else end
        cells.append(line[at:end] or None)
        at = end + 1
    return cells


def _typed(texts: Value, to: Type) -> Value:
    """Texts as values of a type, NULL where they are none."""
    from everview.scalars.casts import convert

    if to == STRING:
        return texts
    if to == BOOLEAN:
        lower = pc.utf8_lower(texts)
        good = pc.is_in(lower, value_set=pa.array(["true", "false"]))
        return pc.if_else(good, pc.equal(lower, pa.scalar("true")), pa.scalar(None, pa.bool_()))
    if pa.types.is_integer(to.arrow):  # a number with space around it is none, but a fraction is
        texts = _kept(texts, r"^[+-]?[0-9]+$")
    elif pa.types.is_floating(to.arrow):
        texts = _kept(texts, _FRACTION)
    made = convert(texts, STRING, to)
    if not isinstance(made, Checked):
        return made
    return pc.if_else(pa.array(made.failed), pa.scalar(None, made.value.type), made.value)


def _kept(texts: Value, pattern: str) -> Value:
    return pc.if_else(pc.match_substring_regex(texts, pattern).fill_null(False), texts, pa.scalar(None, pa.string()))


# -- writing


def _to_csv(out: Kind, a: Value) -> Any:
    from everview.scalars.text_casts import to_string

    columns: list[list[str | None]] = []
    for place, field in enumerate(a.type):
        column = pc.struct_field(a, [place])
        if pa.types.is_null(field.type):
            columns.append([None] * len(a))
        elif pa.types.is_timestamp(field.type):
            columns.append(_moments(column))
        else:
            columns.append(to_string(column, type_of_arrow(field.type)).to_pylist())
    present = a.is_valid().to_pylist()
    rows = zip(*columns, strict=True) if columns else [()] * len(a)
    return pa.array([_line(row) if there else None for row, there in zip(rows, present, strict=True)], out)


def _moments(column: Value) -> list[str | None]:
    text = pc.strftime(
        pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ"
    )
    return text.to_pylist()


def _line(cells: tuple[str | None, ...]) -> str | None:
    return ",".join(map(_quoted, cells)) or None


def _quoted(cell: str | None) -> str:
    if cell is None:
        return ""
    cell = cell.strip(" ")
    if cell and not any(mark in cell for mark in ',"\n\r'):
        return cell
    escaped = cell.replace('"', '\\"')
    return f'"{escaped}"'


KERNELS: Final[dict[str, Kernel]] = {"from_csv": _from_csv, "to_csv": _to_csv}
