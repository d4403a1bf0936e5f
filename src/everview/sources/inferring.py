"""Types of columns that nobody has named: of the objects of a JSON file, and of numbers in a CSV file.

Inference loses nothing: a number keeps all its digits, and values of two types in one column are an error that names
both of their lines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadRows

compute: Any = pc
EXACT: Final = 1 << 53  # up to here a DOUBLE holds every whole number
DIGITS: Final = 38  # of a DECIMAL at most
NumberedObject = tuple[int, str, dict[str, Any]]  # the line of an object, its text, and the object

_KINDS: Final[dict[type, str]] = {
    bool: "a truth value", int: "a whole number", float: "a number", str: "text", list: "an array", dict: "an object",
}  # fmt: skip
_NUMBERS: Final = {"a whole number", "a number"}
_PLAIN: Final[dict[type, pa.DataType]] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


# -- JSON


def table_of_objects(objects: Sequence[NumberedObject]) -> pa.Table:
    """Objects as a table with all columns that one of them has.

    >>> table_of_objects([(1, "", {"a": 1}), (2, "", {"b": "x"})]).to_pylist()
    [{'a': 1, 'b': None}, {'a': None, 'b': 'x'}]
    """
    names = list(dict.fromkeys(name for _, _, row in objects for name in row))
    if not names:
        what = "its objects have no columns" if objects else "it has no objects"
        raise BadRows(f"{what}, so its columns are not known", hint="name them: schema => 'id BIGINT, name STRING'")
    return pa.table([_column(name, objects) for name in names], names)


def _column(name: str, objects: Sequence[NumberedObject]) -> Any:
    values = [row.get(name) for _, _, row in objects]
    kinds = set(map(type, values)) - {type(None)}
    simple: Any = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
    if simple is not None:
        try:
            made: Any = pa.array(values, simple)
        except (OverflowError, UnicodeEncodeError, pa.ArrowException):
            pass  # the line is found below
        else:
            if simple != pa.float64() or not compute.any(compute.is_inf(made)).as_py():
                return made
    shape = JsonShape(name)
    for line, text, row in objects:
        shape.take(row.get(name), line, text)
    return pa.array(values, shape.type)


class JsonShape:
    """The values at one place of many objects: of which kind they are, and which line said so first."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._kind = ""
        self._first = (0, "")  # the line and the text of a value of this kind
        self._longest = (0, 0)  # the whole number with the most digits, and its line
        self._element: JsonShape | None = None
        self._fields: dict[str, JsonShape] = {}

    def take(self, value: Any, line: int, text: str) -> None:
        """Take in a value of an object on a line, or raise `BadRows`."""
        if value is None:
            return
        kind = _KINDS[type(value)]
        if not self._kind:
            self._kind, self._first = kind, (line, _short(value))
        elif kind != self._kind:
            self._both(kind, value, line)
        match value:
            case str():
                _require_text(self.place, value, line)
            case bool():
                pass
            case int() if abs(value) > abs(self._longest[0]):
                self._longest = (value, line)
            case float() if math.isinf(value) and "nfinity" not in text:
                raise BadRows(
                    f'line {line}, column "{self.place}": a number that no DOUBLE holds',
                    hint="keep it as text: put it in quotes, and the column is a STRING",
                )
            case list():
                self._element = self._element or JsonShape(f"{self.place}[]")
                for inner in value:
                    self._element.take(inner, line, text)
            case dict():
                for name, inner in value.items():
                    self._fields.setdefault(name, JsonShape(f"{self.place}.{name}")).take(inner, line, text)
            case _:
                pass

    def _both(self, kind: str, value: Any, line: int) -> None:
        if {kind, self._kind} <= _NUMBERS:
            self._kind = "a number"
            return
        first, said = self._first
        root = self.place.partition(".")[0].partition("[")[0]
        place = f'line {line}, column "{self.place}": {_short(value)} is {kind}'
        raise BadRows(
            f"{place}, and {said} in line {first} is {self._kind}",
            hint=f"name the types: schema => '{root} VARIANT' takes both",
        )

    @property
    def type(self) -> pa.DataType:
        """The type that holds all values."""
        number, line = self._longest
        match self._kind:
            case "a truth value":
                return pa.bool_()
            case "text":
                return pa.string()
            case "a whole number" if -(1 << 63) <= number < 1 << 63:
                return pa.int64()
            case "a whole number" if abs(number) < 10**DIGITS:
                return pa.decimal128(DIGITS, 0)
            case "a number" if abs(number) <= EXACT:
                return pa.float64()
            case "a whole number" | "a number":
                raise BadRows(
                    f'line {line}, column "{self.place}": {_short(number)} has more digits than a column can hold',
                    hint="name the types, as in schema => 'n DECIMAL(38, 4)', or put such numbers in quotes",
                )
            case "an array":
                return pa.list_(pa.null() if self._element is None else self._element.type)
            case "an object":
                return pa.struct([(name, shape.type) for name, shape in self._fields.items()])
            case _:
                return pa.null()


def _require_text(place: str, text: str, line: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f'line {line}, column "{place}": half of a character, as \\ud800 is one, is no text'
        raise BadRows(message, hint="write both halves, or the character itself") from None


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= 60 else f"{said[:59]}…"


# -- CSV


def doubtful_columns(table: pa.Table) -> list[str]:
    """The columns of DOUBLE with a number so large that digits may have been lost when Arrow read it."""
    floats = (name for name, type_ in zip(table.column_names, table.schema.types, strict=True) if type_ == pa.float64())
    return [n for n in floats if compute.any(compute.greater_equal(compute.abs(table[n]), float(EXACT))).as_py()]


def exact_numbers(texts: Any, floats: Any, decimal: str) -> Any:
    """Numbers of a column as a type that keeps their digits: DECIMAL, else text; or the floats, if no digit is lost.

    >>> exact_numbers(pa.chunked_array([["12345678901234567890123", "1.5"]]), pa.chunked_array([[1e22, 1.5]]), ".").type
    Decimal128Type(decimal128(38, 1))
    """
    plain = compute.replace_substring(compute.utf8_trim_whitespace(texts), decimal, ".")
    plain = compute.replace_substring_regex(plain, r"^\+", "")
    written_out = compute.match_substring_regex(plain, r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)$")
    if not compute.all(written_out).as_py():
        long = compute.and_(written_out, compute.greater_equal(compute.abs(floats), float(EXACT)))
        named = compute.match_substring_regex(plain, "^(?i:[+-]?inf(inity)?)$")
        beyond = compute.and_(compute.is_inf(floats), compute.invert(named))
        return texts if compute.any(compute.or_(long, beyond)).as_py() else floats
    parts = compute.extract_regex(plain, r"^-?0*(?P<whole>[0-9]*)\.?(?P<rest>[0-9]*)$")
    whole, scale = (
        compute.max(compute.utf8_length(compute.struct_field(parts, name))).as_py() for name in ("whole", "rest")
    )
    if whole + scale > DIGITS:
        return texts
    trimmed = compute.replace_substring_regex(plain, r"\.$", "")
    return trimmed.cast(pa.decimal128(DIGITS, scale))
