"""Columns of frames: expressions of SQL that operators and methods put together, named as those of PySpark.

A column is text until a frame takes it: only then its names are looked up, and its type is found out.

>>> from everview import functions as F
>>> ((F.col("amount") * 2 > 10) & F.col("kind").isin("a", "it's")).alias("large")
Column<((`amount` * 2) > 10) AND (`kind` IN ('a', 'it\\'s')) AS `large`>
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, NoReturn

from everview.errors import QueryError, WrongType, shown
from everview.frontends.frame.steps import FrameStep
from everview.types import Type


@dataclass(frozen=True, eq=False, repr=False)
class FrameColumn:
    """A column: the text of its expression, its names if it is given any, and the frames whose columns it names."""

    text: str
    names: tuple[str, ...] = ()
    steps: tuple[FrameStep, ...] = ()
    whole: bool = False  # whether the text stands as an operand without parentheses
    way: str = ""  # of a key of an order: ASC or DESC, and where NULLs come
    cases: tuple[str, ...] | None = None  # the branches of `when`, as long as more may follow

    @property
    def item(self) -> str:
        """The column as an item of SELECT."""
        if not self.names:
            return self.text
        named = ", ".join(map(quoted, self.names))
        return f"{self.text} AS {named if len(self.names) == 1 else f'({named})'}"

    @property
    def operand(self) -> str:
        """The column as a part of another."""
        return self.text if self.whole else f"({self.text})"

    @property
    def key(self) -> str:
        """The column as a key of ORDER BY."""
        return f"{self.operand} {self.way}".rstrip()

    # -- names

    def alias(self, *names: str) -> FrameColumn:
        """The column under another name; a generator of several columns takes several."""
        for name in names:
            if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType(f"alias: {shown(name)} is no name", hint='write alias("total")')
        return replace(self, names=names)

    name = alias

    # -- arithmetic and logic

    def __add__(self, other: Any) -> FrameColumn:
        return infix(self, "+", other)

    def __radd__(self, other: Any) -> FrameColumn:
        return infix(other, "+", self)

    def __sub__(self, other: Any) -> FrameColumn:
        return infix(self, "-", other)

    def __rsub__(self, other: Any) -> FrameColumn:
        return infix(other, "-", self)

    def __mul__(self, other: Any) -> FrameColumn:
        return infix(self, "*", other)

    def __rmul__(self, other: Any) -> FrameColumn:
        return infix(other, "*", self)

    def __truediv__(self, other: Any) -> FrameColumn:
        return infix(self, "/", other)

    def __rtruediv__(self, other: Any) -> FrameColumn:
        return infix(other, "/", self)

    def __mod__(self, other: Any) -> FrameColumn:
        return infix(self, "%", other)

    def __rmod__(self, other: Any) -> FrameColumn:
        return infix(other, "%", self)

    def __pow__(self, other: Any) -> FrameColumn:
        return called("power", self, other)

    def __rpow__(self, other: Any) -> FrameColumn:
        return called("power", other, self)

    def __neg__(self) -> FrameColumn:
        return joined("(- {})", self)

    def __and__(self, other: Any) -> FrameColumn:
        return infix(self, "AND", other)

    def __rand__(self, other: Any) -> FrameColumn:
        return infix(other, "AND", self)

    def __or__(self, other: Any) -> FrameColumn:
        return infix(self, "OR", other)

    def __ror__(self, other: Any) -> FrameColumn:
        return infix(other, "OR", self)

    def __invert__(self) -> FrameColumn:
        return joined("(NOT {})", self)

    def bitwiseAND(self, other: Any) -> FrameColumn:
        """The bits that both have."""
        return infix(self, "&", other)

    def bitwiseOR(self, other: Any) -> FrameColumn:
        """The bits that either has."""
        return infix(self, "|", other)

    def bitwiseXOR(self, other: Any) -> FrameColumn:
        """The bits that one of both has."""
        return infix(self, "^", other)

    # -- comparisons

    def __eq__(self, other: object) -> FrameColumn:  # pyright: ignore[reportIncompatibleMethodOverride]
        return infix(self, "=", other)

    def __ne__(self, other: object) -> FrameColumn:  # pyright: ignore[reportIncompatibleMethodOverride]
        return infix(self, "!=", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> FrameColumn:
        return infix(self, "<", other)

    def __le__(self, other: Any) -> FrameColumn:
        return infix(self, "<=", other)

    def __gt__(self, other: Any) -> FrameColumn:
        return infix(self, ">", other)

    def __ge__(self, other: Any) -> FrameColumn:
        return infix(self, ">=", other)

    def eqNullSafe(self, other: Any) -> FrameColumn:
        """Whether both are equal, NULL to NULL, too."""
        return infix(self, "<=>", other)

    def isNull(self) -> FrameColumn:
        """Whether it is NULL."""
        return joined("({} IS NULL)", self)

    def isNotNull(self) -> FrameColumn:
        """Whether it is anything but NULL."""
        return joined("({} IS NOT NULL)", self)

    def isNaN(self) -> FrameColumn:
        """Whether it is no number."""
        return called("isnan", self)

    def between(self, lower: Any, upper: Any) -> FrameColumn:
        """Whether it lies between two values, or is one of them."""
        return joined("({} BETWEEN {} AND {})", self, lower, upper)

    def isin(self, *values: Any) -> FrameColumn:
        """Whether it equals one of some values."""
        listed = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset) else values
        if not listed:
            return joined("({} IS NULL AND false)", self)  # of nothing, not even NULL is one
        return joined(f"({{}} IN ({', '.join(['{}'] * len(listed))}))", self, *listed)

    # -- text

    def like(self, other: str) -> FrameColumn:
        """Whether the text has the form of a pattern with % and _."""
        return joined("({} LIKE {})", self, other)

    def ilike(self, other: str) -> FrameColumn:
        """As `like`, whatever the case."""
        return joined("({} ILIKE {})", self, other)

    def rlike(self, other: str) -> FrameColumn:
        """Whether a regular expression is found in the text."""
        return called("regexp_like", self, other)

    def startswith(self, other: Any) -> FrameColumn:
        """Whether the text begins with another."""
        return called("startswith", self, other)

    def endswith(self, other: Any) -> FrameColumn:
        """Whether the text ends with another."""
        return called("endswith", self, other)

    def contains(self, other: Any) -> FrameColumn:
        """Whether the text has another in it."""
        return called("contains", self, other)

    def substr(self, startPos: Any, length: Any) -> FrameColumn:
        """A part of the text, from a place counted from 1."""
        return called("substring", self, startPos, length)

    # -- parts of nested values

    def getItem(self, key: Any) -> FrameColumn:
        """The element of an array at a place counted from 0, the value of a map's key, or the field of a struct."""
        return replace(joined("{}[{}]", self, key), whole=True)

    def getField(self, name: str) -> FrameColumn:
        """The field of a struct."""
        return replace(joined(f"{{}}.{quoted(name).replace('{', '{{').replace('}', '}}')}", self), whole=True)

    __getitem__ = getItem

    def __getattr__(self, name: str) -> FrameColumn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.getField(name)

    # -- types

    def cast(self, dataType: str | Type) -> FrameColumn:
        """The value in another type, as in ``cast("decimal(10,2)")``; one that has none there is an error."""
        return joined(f"CAST({{}} AS {_type_text(dataType)})", self)

    astype = cast

    def try_cast(self, dataType: str | Type) -> FrameColumn:
        """The value in another type, or NULL."""
        return joined(f"TRY_CAST({{}} AS {_type_text(dataType)})", self)

    # -- cases

    def when(self, condition: FrameColumn, value: Any) -> FrameColumn:
        """Another case of `functions.when`."""
        if self.cases is None:
            raise QueryError("when() follows when()", hint="begin with F.when(condition, value)")
        return case(self, condition, value)

    def otherwise(self, value: Any) -> FrameColumn:
        """The value where no condition holds."""
        if self.cases is None:
            raise QueryError("otherwise() follows when()", hint="begin with F.when(condition, value)")
        last = as_column(value)
        text = f"CASE {' '.join(self.cases)} ELSE {last.operand} END"
        return FrameColumn(text, steps=(*self.steps, *last.steps), whole=True)

    # -- orders and windows

    def asc(self) -> FrameColumn:
        """A key of an order: the least first."""
        return replace(self, way="ASC NULLS FIRST")

    asc_nulls_first = asc

    def asc_nulls_last(self) -> FrameColumn:
        """A key of an order: the least first, NULL last."""
        return replace(self, way="ASC NULLS LAST")

    def desc(self) -> FrameColumn:
        """A key of an order: the greatest first."""
        return replace(self, way="DESC NULLS LAST")

    desc_nulls_last = desc

    def desc_nulls_first(self) -> FrameColumn:
        """A key of an order: NULL first, then the greatest."""
        return replace(self, way="DESC NULLS FIRST")

    def over(self, window: Any) -> FrameColumn:
        """The aggregate or window function over a `Window`."""
        from everview.frontends.frame.windows import FrameWindow

        if not isinstance(window, FrameWindow):
            raise WrongType(f"over: {shown(window)} is no window", hint='write over(Window.partitionBy("kind"))')
        return FrameColumn(f"{self.text} OVER ({window.text})", steps=(*self.steps, *window.steps), whole=True)

    # -- what a column is not

    def __bool__(self) -> NoReturn:
        raise QueryError("a column is neither true nor false", hint="write & for and, | for or, ~ for not")

    def __iter__(self) -> NoReturn:
        raise QueryError("a column is no list", hint="F.explode makes rows of the elements of an array")

    def __contains__(self, item: object) -> NoReturn:
        raise QueryError('"in" does not work on columns', hint="write contains(…) or isin(…)")

    def __repr__(self) -> str:
        return f"Column<{f'{self.text} {self.way}'.rstrip() if self.way else self.item}>"


# -- texts


def quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def named_column(name: str) -> FrameColumn:
    """The column of a name: ``amount``, ``t.amount``, ``person.address.city``, ``*`` or ``t.*``."""
    parts = name_parts(name)
    written = [*map(quoted, parts[:-1]), "*" if parts[-1] == "*" else quoted(parts[-1])]
    return FrameColumn(".".join(written), whole=True)


def name_parts(name: str) -> list[str]:
    """The parts of a name that dots divide; what is quoted is one part.

    >>> name_parts("t.`a.b`.c")
    ['t', 'a.b', 'c']
    """
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongType(f"{shown(name)} is no name of a column", hint='write F.col("amount")')
    parts, inside = [""], False
    for place, letter in enumerate(name):
        if letter == "`":
            inside = not inside
            if inside and place and name[place - 1] == "`":
                parts[-1] += "`"
        elif letter == "." and not inside:
            parts.append("")
        else:
            parts[-1] += letter
    if inside or not all(parts):
        raise QueryError(f'"{name}" is no name of a column', hint="quote a part that has dots in it: `a.b`.c")
    return parts


def _type_text(type_: str | Type) -> str:
    if isinstance(type_, str):
        return type_
    simple = getattr(type_, "simpleString", None)  # a type of PySpark
    return str(simple() if callable(simple) else type_)


def as_column(value: Any) -> FrameColumn:
    """A value as a column: a column as it is, anything else a literal."""
    return value if isinstance(value, FrameColumn) else literal_column(value)


def column_or_name(value: Any) -> FrameColumn:
    """A column as it is, or that of a name; anything else is a literal."""
    return named_column(value) if isinstance(value, str) else as_column(value)


def joined(form: str, *parts: Any) -> FrameColumn:
    """A column whose text is a form with the operands in its places."""
    columns = [as_column(part) for part in parts]
    text = form.format(*(column.operand for column in columns))
    steps = tuple(dict.fromkeys(step for column in columns for step in column.steps))
    outside = text[1:-1] if form[0] == "(" and form[-1] == ")" else text
    return FrameColumn(outside, steps=steps, whole=outside is text)


def infix(left: Any, sign: str, right: Any) -> FrameColumn:
    """Two operands and the sign between them."""
    return joined(f"({{}} {sign} {{}})", left, right)


def called(name: str, *arguments: Any) -> FrameColumn:
    """A call of a function; arguments that are no columns are literals."""
    columns = [as_column(argument) for argument in arguments]
    steps = tuple(dict.fromkeys(step for column in columns for step in column.steps))
    return FrameColumn(f"{name}({', '.join(column.text for column in columns)})", steps=steps, whole=True)


def case(before: FrameColumn | None, condition: Any, value: Any) -> FrameColumn:
    """The cases so far, and another."""
    if not isinstance(condition, FrameColumn):
        raise WrongType(f"when: {shown(condition)} is no condition", hint='write F.when(F.col("a") > 1, value)')
    then = as_column(value)
    cases = (*((before.cases or ()) if before is not None else ()), f"WHEN {condition.operand} THEN {then.operand}")
    steps = (*(() if before is None else before.steps), *condition.steps, *then.steps)
    return FrameColumn(f"CASE {' '.join(cases)} END", steps=steps, whole=True, cases=cases)


# -- literals


def literal_column(value: Any) -> FrameColumn:
    """A value as a literal.

    >>> [literal_column(v).text for v in (None, True, 3, 1.5, "it's", b"\\x01", dt.date(2026, 1, 2), [1, 2])]
    ['NULL', 'true', '3', '1.5D', "'it\\\\'s'", "X'01'", "DATE '2026-01-02'", 'array(1, 2)']
    """
    if isinstance(value, list | tuple):
        return called("array", *_values(value))
    write = next((write for kind, write in LITERALS if isinstance(value, kind)), None)
    if write is None:
        hint = "give numbers, texts, bytes, truths, dates, times, spans of time, or lists of these"
        raise WrongType(f"{shown(value)} is no value of a column", hint=hint)
    text = write(value)
    return FrameColumn(text, whole=not text.startswith("-"))


def _values(value: Sequence[Any]) -> Sequence[Any]:
    return value


def _whole_number(value: int) -> str:
    return str(value) if -(2**63) < value < 2**63 else f"{value}BD"


def _number(value: float) -> str:
    return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"


def _exact(value: Decimal) -> str:
    return f"{value:f}BD"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def _moment(value: dt.datetime) -> str:
    kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP_LTZ"
    return f"{kind} '{value.isoformat(' ')}'"


def _span(value: dt.timedelta) -> str:
    micros = value // dt.timedelta(microseconds=1)
    return f"make_dt_interval(0, 0, 0, {Decimal(micros).scaleb(-6):f}BD)"


LITERALS: Final[list[tuple[type, Callable[[Any], str]]]] = [
    (type(None), lambda _: "NULL"),
    (bool, lambda value: str(value).lower()),
    (int, _whole_number),
    (float, _number),
    (Decimal, _exact),
    (str, _text),
    (bytes, lambda value: f"X'{value.hex()}'"),
    (dt.datetime, _moment),
    (dt.date, lambda value: f"DATE '{value.isoformat()}'"),
    (dt.time, lambda value: f"TIME '{value.isoformat()}'"),
    (dt.timedelta, _span),
]
