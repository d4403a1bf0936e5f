"""CSV as text: a struct as one line, and a line as a struct; a field that does not fit is NULL."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value
from everview.types import BOOLEAN, STRING, TIMESTAMP, Type, type_of_arrow


@dataclass(frozen=True, slots=True)
class CsvCells:
    """The syntax of CSV text: separator, quote, escape, NULL text, and whether malformed lines fail."""

    sep: str = ","
    quote: str = '"'
    null: str = ""
    quote_all: bool = False
    strict: bool = False

    @classmethod
    def of(cls, options: Value | None) -> CsvCells:
        """The form that the options of a call ask for."""
        given: dict[str, str] = {} if options is None else json.loads(options.as_py())
        plain = cls(given.get("sep", ","), given.get("quote", '"'), given.get("nullValue", ""))
        return replace(plain, quote_all=given.get("quoteAll") == "TRUE", strict=given.get("mode") == "FAILFAST")


@cache
def _quoted_cell(form: CsvCells) -> re.Pattern[str]:
    quote, sep = re.escape(form.quote), re.escape(form.sep)
    return re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}(?={sep}|$)", re.DOTALL)


_FRACTION: Final = r"^\s*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Inf(inity)?)\s*$"


# -- reading


def _from_csv(out: Kind, a: Value, schema: Value, options: Value | None = None) -> Any:
    """The fields of each line, cast from text column by column."""
    form, lines = CsvCells.of(options), a.to_pylist()
    cells = [None if line is None else _cells(line, form) for line in lines]
    columns: list[Value] = []
    failed = np.array([row is not None and len(row) != len(out) for row in cells], bool)
    for place, field in enumerate(out):
        texts = pa.array([row[place] if row is not None and place < len(row) else None for row in cells], pa.string())
        columns.append(_typed(texts, type_of_arrow(field.type)))
        unread: Any = pc.and_(columns[-1].is_null(), texts.is_valid())
        failed |= unread.to_numpy(zero_copy_only=False)
    mask: Any = pa.array([line is None for line in lines], pa.bool_())
    made = pa.StructArray.from_arrays(columns, fields=list(out), mask=mask)
    return Checked(made, failed, "it is no line of the schema") if form.strict and failed.any() else made


def _cells(line: str, form: CsvCells) -> list[str | None]:
    """The cells of a line, an empty one as NULL; one with a quote in its midst is as it stands."""
    cells: list[str | None] = []
    place, pattern = 0, _quoted_cell(form)
    while place <= len(line):
        quoted = pattern.match(line, place)
        if quoted is not None:
            cells.append(re.sub(rf"\\([{re.escape(form.quote)}\\])", r"\1", quoted[1]) or None)
            place = quoted.end() + 1
            continue
        end = line.find(form.sep, place)
        end = len(line) if end < 0 else end
        cells.append(line[place:end] or None)
        place = end + 1
    return [None if cell == form.null else cell for cell in cells]


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


def _to_csv(out: Kind, a: Value, options: Value | None = None) -> Any:
    from everview.scalars.text_casts import to_string

    columns: list[list[str | None]] = []
    given: dict[str, str] = {} if options is None else json.loads(options.as_py())
    for place, field in enumerate(a.type):
        column = pc.struct_field(a, [place])
        if pa.types.is_null(field.type):
            columns.append([None] * len(a))
        elif pa.types.is_timestamp(field.type):
            columns.append(_moments(column, given.get("timeZone")))
        else:
            columns.append(to_string(column, type_of_arrow(field.type)).to_pylist())
    present = a.is_valid().to_pylist()
    rows = zip(*columns, strict=True) if columns else [()] * len(a)
    form = CsvCells.of(options)
    return pa.array([_line(row, form) if there else None for row, there in zip(rows, present, strict=True)], out)


def _moments(column: Value, zone: str | None) -> list[str | None]:
    """Timestamps as text, in UTC or by the clock of a zone."""
    if zone is not None and column.type == TIMESTAMP.arrow:
        from everview.scalars.functions.zone_formats import KERNELS as IN_ZONE

        pattern = pa.scalar("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
        made = IN_ZONE["date_format_in_zone"](pa.string(), column, pattern, pa.scalar(zone))
        return made.value.to_pylist() if isinstance(made, Checked) else made.to_pylist()
    text = pc.strftime(
        pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ"
    )
    return text.to_pylist()


def _line(cells: tuple[str | None, ...], form: CsvCells) -> str | None:
    return form.sep.join(_quoted(cell, form) for cell in cells) or None


def _quoted(cell: str | None, form: CsvCells) -> str:
    if cell is None:
        return f"{form.quote}{form.null}{form.quote}" if form.quote_all else form.null
    cell = cell.strip(" ")
    if cell and not form.quote_all and not any(mark in cell for mark in (form.sep, form.quote, "\n", "\r")):
        return cell
    escaped = cell.replace(form.quote, f"\\{form.quote}")
    return f"{form.quote}{escaped}{form.quote}"


KERNELS: Final[dict[str, Kernel]] = {"from_csv": _from_csv, "to_csv": _to_csv}
