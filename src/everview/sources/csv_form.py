"""The form of a CSV file: how its values are separated, quoted, decoded and read as values.

>>> CsvForm(delimiter=";", decimal=",").delimiter_of(Path("prices.csv"))
';'
>>> CsvForm().delimiter_of(Path("prices.tsv.gz"))
'\\t'
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadRows, SourceError
from everview.types import BIGINT, DATE, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Schema

compute: Any = pc
MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_FORMAT_HINT: Final = "as in date_format='%d.%m.%Y'"


@dataclass(frozen=True, slots=True)
class CsvForm:
    """Options of CSV. ``decimal`` is the mark in numbers, ``nulls`` the texts without quotes that are NULL.

    ``thousands`` is the mark between groups of three digits, as the dot of ``1.240,50``; a number may do without it.

    Without a ``delimiter`` the name says it: a tab for ``.tsv``, else a comma. Dates and timestamps are as SQL writes
    them unless a format says otherwise, as in ``%d.%m.%Y``. Without a ``header`` the columns are those of the schema.
    """

    delimiter: str | None = None
    quote: str = '"'
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    timestamp_format: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        for what, given in (("delimiter", self.delimiter), ("decimal", self.decimal), ("quote", self.quote)):
            if given is not None and not (given.isascii() and len(given) == 1) and not (what == "quote" and not given):
                raise SourceError(f"{what} is {given!r}, not one ASCII character", hint=f"as in {what}=';'")
        if self.delimiter is not None and self.delimiter in (self.quote, "\n", "\r"):
            raise SourceError(f"the delimiter cannot be {self.delimiter!r}", hint="give another one")
        if self.thousands is not None and (len(self.thousands) != 1 or self.thousands in f"{self.decimal}+-0123456789"):
            message = f"thousands is {self.thousands!r}, which cannot stand between the digits of a number"
            raise SourceError(message, hint="one character, and not the decimal mark: decimal=',', thousands='.'")
        try:
            codecs.lookup(self.encoding)
            "".encode(self.encoding)
        except (LookupError, ValueError):
            hint = "as in encoding='latin-1'"
            raise SourceError(f"the encoding {self.encoding!r} is not known", hint=hint) from None
        for how in (self.date_format, self.timestamp_format):
            if how is not None and "%" not in how:
                raise SourceError(f"{how!r} is no format of dates", hint=_FORMAT_HINT)

    def delimiter_of(self, path: Path) -> str:
        """The delimiter of a file."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","

    @property
    def is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    # -- values

    def typed(self, schema: Schema, table: pa.Table) -> pa.Table:
        """The table with text of this form as dates, timestamps and decimals, where columns of the schema are such."""
        for place, name in enumerate(table.column_names):
            if name in schema and pa.types.is_string(table.column(place).type):
                column = self._typed(name, schema[name].type, table.column(place))
                table = table.set_column(place, name, column)
        return table

    def _typed(self, name: str, type_: Any, column: Any) -> Any:
        if isinstance(type_, Decimal):
            return self._plain(name, type_, column)
        if pa.types.is_floating(type_.arrow) or pa.types.is_integer(type_.arrow):  # a row is bad, or has thousands
            return _cast(name, type_, compute.utf8_trim_whitespace(self._plain(name, type_, column)))
        if pa.types.is_boolean(type_.arrow):
            return _cast(name, type_, column)
        how = self.date_format if type_ == DATE else self.timestamp_format if type_ in MOMENTS else None
        return column if how is None else _moments(name, type_.arrow, column, how)

    def _plain(self, name: str, type_: Any, column: Any) -> Any:
        """Text of numbers with this form's marks as SQL writes it."""
        if self.thousands is not None:
            wrong = compute.invert(compute.match_substring_regex(column, self.number))
            row = int(compute.index(wrong, True).as_py())
            if row >= 0:
                message = f'column "{name}", rows[{row}]: {column[row].as_py()!r} is no {type_.sql}'
                raise BadRows(message, hint="nothing of it was taken in")
            column = compute.replace_substring(column, self.thousands, "")
        return compute.replace_substring(column, self.decimal, ".") if self.decimal != "." else column

    @property
    def number(self) -> str:
        """The pattern of a number that may have thousands, in the syntax of Arrow."""
        group, mark = (f"\\x{{{ord(character or ','):x}}}" for character in (self.thousands, self.decimal))
        digits = rf"([0-9]+|[0-9]{{1,3}}({group}[0-9]{{3}})+)({mark}[0-9]*)?|{mark}[0-9]+"
        return rf"^\s*([+-]?({digits})([eE][+-]?[0-9]+)?|(?i:nan|[+-]?inf(inity)?))\s*$"

    def inferred(self, table: pa.Table) -> pa.Table:
        """The table with text columns as dates, timestamps or numbers, if a format or mark that is given fits all."""
        for place, name in enumerate(table.column_names):
            column = table.column(place)
            if not pa.types.is_string(column.type) or column.null_count == len(column):
                continue
            if self.thousands is not None and compute.all(compute.match_substring_regex(column, self.number)).as_py():
                table = table.set_column(place, name, self._counted(name, column))
                continue
            for how, arrow in ((self.date_format, DATE.arrow), (self.timestamp_format, TIMESTAMP.arrow)):
                try:
                    typed = None if how is None else _moments(name, arrow, column, how)
                except BadRows:
                    continue
                if typed is not None:
                    table = table.set_column(place, name, typed)
                    break
        return table

    def _counted(self, name: str, column: Any) -> Any:
        """Text of numbers as whole numbers, or as floats if one of them is not whole."""
        try:
            return self._typed(name, BIGINT, column)
        except BadRows:
            return self._typed(name, DOUBLE, column)


def _cast(name: str, type_: Any, column: Any) -> Any:
    try:
        return column.cast(type_.arrow)
    except pa.ArrowInvalid as error:
        said = f"{column[0].as_py()!r} is no {type_.sql}" if len(column) == 1 else str(error)
        raise BadRows(f'column "{name}": {said}', hint="nothing of it was taken in") from None


def _moments(name: str, arrow: pa.DataType, column: Any, how: str) -> Any:
    """Text in a format as dates or timestamps; one without a zone is in UTC."""
    try:
        moments = compute.strptime(column, format=how, unit="us", error_is_null=True)
    except pa.ArrowInvalid as error:
        raise SourceError(f"{how!r} is no format of dates: {error}", hint=_FORMAT_HINT) from None
    if moments.null_count > column.null_count:
        wrong = compute.and_(moments.is_null(), column.is_valid())
        row = int(compute.index(wrong, True).as_py())
        message = f'column "{name}", rows[{row}]: {column[row].as_py()!r} is not of the form {how}'
        raise BadRows(message, hint="nothing of it was taken in")
    return moments.cast(arrow)
