r"""COPY with a client: rows as lines of text or CSV, in both directions, or in binary.

>>> list(copied_lines([[b"1", None], [b"a\tb", b""]], CopyForm()))
[b'1\ta\\tb\n', b'\\N\t\n']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from everview.serve.postgres.copying_binary import rows_of_binary
from everview.serve.postgres.decode import decoded
from everview.serve.postgres.oids import oid_of
from everview.serve.postgres.states import ClientError
from everview.types import VARIANT, Schema, Type, Variant

_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
_UNESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_FALSE: Final = ("false", "off", "0")


@dataclass(frozen=True, slots=True)
class CopyForm:
    """The form of a COPY's rows."""

    is_csv: bool = False
    is_binary: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    match: bool = False  # whether the header has to name the columns

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CopyForm:
        """The form that the options of a statement name."""
        kind = options.get("format", "text").lower()
        is_csv = kind == "csv"
        if kind == "binary" and (unfit := [name for name in options if name not in ("format", "encoding")]):
            raise ClientError(f"cannot specify {unfit[0].upper()} in BINARY mode", "42601", hint="leave it out")
        delimiter = options.get("delimiter", "," if is_csv else "\t")
        quote = options.get("quote", '"')
        if len(delimiter) != 1 or len(quote) != 1 or delimiter in "\r\n" or delimiter == quote:
            raise ClientError("COPY delimiter must be a single one-byte character", "22023")
        encoding = options.get("encoding", "utf8").lower().replace("-", "")
        if encoding not in ("utf8", "unicode"):
            raise ClientError(f"COPY in the encoding {encoding.upper()} is not supported", "0A000", hint="send UTF8")
        match = options.get("header", "").lower() == "match"
        header = options.get("header", "false").lower() not in _FALSE
        return cls(
            is_csv, kind == "binary", header, delimiter, options.get("null", "" if is_csv else "\\N"), quote, match
        )


def copied_lines(columns: Sequence[Sequence[bytes | None]], form: CopyForm) -> Iterator[bytes]:
    """The lines of rows, given by columns of encoded text."""
    write = _csv_value if form.is_csv else _text_value
    for row in zip(*columns, strict=True):
        parts = [form.null if value is None else write(value.decode(), form) for value in row]
        yield (form.delimiter.join(parts) + "\n").encode()


def header_line(names: Sequence[str], form: CopyForm) -> bytes:
    """The line of the names of columns."""
    write = _csv_value if form.is_csv else _text_value
    return (form.delimiter.join(write(name, form) for name in names) + "\n").encode()


def _text_value(text: str, form: CopyForm) -> str:
    if not any(c in text for c in (*_ESCAPES, form.delimiter)):
        return text
    return "".join(_ESCAPES.get(c, f"\\{c}" if c == form.delimiter else c) for c in text)


def _csv_value(text: str, form: CopyForm) -> str:
    special = (form.delimiter, form.quote, "\n", "\r")
    if text != form.null and not any(c in text for c in special) and text != "\\.":
        return text
    return f"{form.quote}{text.replace(form.quote, form.quote * 2)}{form.quote}"


# -- rows that come


def received_rows(data: bytes, schema: Schema, form: CopyForm) -> list[tuple[Any, ...]]:
    """The rows that a client has sent, as values of the columns."""
    if form.is_binary:
        return [
            tuple(_value(v, t, binary=True) for v, t in zip(row, schema.types, strict=True))
            for row in rows_of_binary(data, len(schema))
        ]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ClientError('invalid byte sequence for encoding "UTF8"', "22021") from None
    lines = _csv_rows(text, form) if form.is_csv else _text_rows(text, form)
    rows: list[tuple[Any, ...]] = []
    for number, values in enumerate(lines, 1):
        if form.header and number == 1:
            if form.match and values != list(schema.names):
                hint = f"the columns are {', '.join(schema.names)}"
                raise ClientError("the header does not name the columns of the table", "22P04", hint=hint)
            continue
        if len(values) != len(schema):
            said = "missing data for column" if len(values) < len(schema) else "extra data after last expected column"
            raise ClientError(f"{said}, line {number}", "22P04", hint=f"the columns are {', '.join(schema.names)}")
        raw = [None if value is None else value.encode() for value in values]
        rows.append(tuple(_value(v, t, binary=False) for v, t in zip(raw, schema.types, strict=True)))
    return rows


def _value(raw: bytes | None, type_: Type, *, binary: bool) -> Any:
    if raw is None:
        return None
    value = decoded(raw, oid_of(type_), binary=binary)
    return Variant.of(value) if type_ == VARIANT else value


def _text_rows(text: str, form: CopyForm) -> Iterator[list[str | None]]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    for written in lines:
        line = written.removesuffix("\r")
        if line == "\\.":
            return
        yield [None if part == form.null else _unescaped(part) for part in _split(line, form.delimiter)]


def _split(line: str, delimiter: str) -> list[str]:
    """The parts of a line between delimiters that no backslash escapes."""
    if "\\" not in line:
        return line.split(delimiter)
    parts, start, place = list[str](), 0, 0
    while place < len(line):
        if line[place] == "\\":
            place += 2
            continue
        if line[place] == delimiter:
            parts.append(line[start:place])
            start = place + 1
        place += 1
    return [*parts, line[start:]]


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out, place = list[str](), 0
    while place < len(text):
        if text[place] == "\\" and place + 1 < len(text):
            out.append(_UNESCAPES.get(text[place + 1], text[place + 1]))
            place += 2
        else:
            out.append(text[place])
            place += 1
    return "".join(out)


def _csv_rows(text: str, form: CopyForm) -> Iterator[list[str | None]]:
    """The rows of CSV; an empty value is NULL unless it is in quotes."""
    for record in _records(text, form.quote):
        if record == "\\.":
            return
        yield _csv_values(record, form)


def _records(text: str, quote: str) -> Iterator[str]:
    """The lines of CSV; a line break in quotes ends none."""
    inside, start = False, 0
    for place, c in enumerate(text):
        if c == quote:
            inside = not inside
        elif c == "\n" and not inside:
            yield text[start:place].removesuffix("\r")
            start = place + 1
    if inside:
        raise ClientError("unterminated CSV quoted field", "22P04")
    if start < len(text):
        yield text[start:].removesuffix("\r")


def _csv_values(record: str, form: CopyForm) -> list[str | None]:
    return [None if written == form.null else _bare(written, form.quote) for written in _raw_values(record, form)]


def _bare(written: str, quote: str) -> str:
    """A value without its quotes; two of them inside of quotes are one."""
    if quote not in written:
        return written
    out, inside, place = list[str](), False, 0
    while place < len(written):
        c = written[place]
        if c != quote:
            out.append(c)
        elif inside and written[place + 1 : place + 2] == quote:
            out.append(quote)
            place += 1
        else:
            inside = not inside
        place += 1
    return "".join(out)


def _raw_values(record: str, form: CopyForm) -> list[str]:
    """The values of a record as they are written, quotes and all."""
    parts, start, inside = list[str](), 0, False
    for place, c in enumerate(record):
        if c == form.quote:
            inside = not inside
        elif c == form.delimiter and not inside:
            parts.append(record[start:place])
            start = place + 1
    return [*parts, record[start:]]
