r"""Parameters of SQL: ``?`` by position and ``:name`` by name, whose values are bound as literals and never as text.

>>> given = ParameterValues.of([7, "O'Brien"])
>>> [str(value) for value in given.positional]
['7', "'O\\'Brien'"]
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import EverviewError, SqlError, TypeMismatch, WrongType, shown
from everview.frontends.sql.names import short
from everview.frontends.sql.places import SqlText
from everview.plan.typing import common, literal
from everview.scalars.expressions import Literal
from everview.scalars.kinds import DAY, DAY_TIME, MICROS, VOID
from everview.types import Array, Field, Struct, Type, Variant
from everview.types.names import check_names

if TYPE_CHECKING:
    from everview.frontends.sql.parse import Parsed

MARK = "?"  # before the number of a parameter without a name; no name begins so
DEEPEST_VALUE = 20  # levels of lists and dicts inside each other
KINDS = (
    "a parameter is a number, text, bytes, date, datetime, time, timedelta, Variant, None, or a list or dict of these"
)


# -- marks in a text


@dataclass(frozen=True, slots=True)
class ParameterMark:
    """A place in a text that a parameter's value takes: the parameter's name, and the offset."""

    name: str
    offset: int


def numbered(tokens: list[Token]) -> list[Token]:
    """The tokens with each ``?`` as a named parameter: ``:?1``, ``:?2`` and so on, in the order of the text."""
    if not any(token.token_type == TokenType.PLACEHOLDER for token in tokens):
        return tokens
    count, read = 0, list[Token]()
    for token in tokens:
        if token.token_type != TokenType.PLACEHOLDER:
            read.append(token)
            continue
        count += 1
        read.append(_token(token, TokenType.COLON, ":"))
        read.append(_token(token, TokenType.VAR, f"{MARK}{count}"))
    return read


def _token(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def parameter_name(written: str) -> str:
    """The name that values are found by: ``$1`` means the first ``?``."""
    return f"{MARK}{written}" if written.isdigit() else written


def place_of(name: str) -> int:
    """The place in the list of values that a name of `parameter_name` stands for; a very long number is one billion."""
    return int(name[1:]) if len(name) <= 10 else 10**9


def marks_of(tokens: Sequence[Token], names: AnySet[str]) -> tuple[ParameterMark, ...]:
    """The marks of a statement, in the order of its text; ``names`` are those of the parameters in its tree."""
    marks: list[ParameterMark] = []
    for before, token in pairwise(tokens):
        name = parameter_name(token.text)
        if before.token_type in (TokenType.COLON, TokenType.PARAMETER) and name in names:
            marks.append(ParameterMark(name, before.start))
    return tuple(marks)


# -- values


@dataclass(frozen=True)
class ParameterValues:
    """The values that were given beside a text: in a list for ``?``, by name for ``:name``."""

    positional: tuple[Literal, ...] = ()
    named: Mapping[str, Literal] = field(default_factory=dict[str, Literal])
    given: bool = False  # whether any were

    @classmethod
    def of(cls, params: Any) -> ParameterValues:
        """The values of a list, a tuple or a dict, each as a literal of the type that SQL has for it.

        A dict may have values for ``?``, too, by their places from 1 on: ``{1: 7, "least": 0}``.
        """
        if params is None:
            return NOTHING_GIVEN
        if isinstance(params, Mapping):
            places, names = _told_apart(params)
            named = {name: _named_literal(f":{name}", params[name]) for name in names}
            return cls(tuple(_named_literal(f"?{place}", params[place]) for place in places), named, given=True)
        if isinstance(params, (list, tuple)):
            return cls(tuple(_named_literal(f"?{i}", value) for i, value in enumerate(params, 1)), given=True)
        hint = 'write db.sql("… ?", [7]), or db.sql("… :id", {"id": 7})'
        raise WrongType(f"parameters are a list or a dict, not {shown(params)}", hint=hint)

    def shared(self, statements: Sequence[Parsed], source: SqlText) -> list[ParameterValues]:
        """The part of each statement; raises if a value is missing, or one is given that no statement has."""
        shares, start = list[ParameterValues](), 0
        for statement in statements:
            count = max((place_of(m.name) for m in statement.marks if m.name.startswith(MARK)), default=0)
            here = self.positional[start : start + count]
            start += count
            for mark in statement.marks:
                self._require(mark, len(here), source)
            wanted = {mark.name for mark in statement.marks}
            named = {name: value for name, value in self.named.items() if name in wanted}
            shares.append(ParameterValues(here, named, given=self.given))
        self._check_all_used(start, statements)
        return shares

    @classmethod
    def by_names(cls, values: Mapping[str, Literal]) -> ParameterValues:
        """The values of one statement, by the names that `by_name` gives them."""
        places = sorted(int(name[1:]) for name in values if name.startswith(MARK))
        named = {name: value for name, value in values.items() if not name.startswith(MARK)}
        return cls(tuple(values[f"{MARK}{place}"] for place in places), named, given=bool(values))

    @property
    def by_name(self) -> dict[str, Literal]:
        """The values of one statement, by the names that its tree has for them."""
        return {**{f"{MARK}{i}": value for i, value in enumerate(self.positional, 1)}, **self.named}

    def _require(self, mark: ParameterMark, count: int, source: SqlText) -> None:
        if not mark.name.startswith(MARK):
            if mark.name in self.named:
                return
            known = f"given: {', '.join(map(short, self.named))}" if self.named else f'give it: {{"{mark.name}": …}}'
            raise _placed(f"parameter :{short(mark.name)} has no value", mark, known, source)
        if place_of(mark.name) <= count:
            return
        if self.named and not self.positional:
            hint = "write :name instead, or name its place in the dict: {1: …}"
            raise _placed("? takes its value from a list, and a dict was given", mark, hint, source)
        hint = f"{len(self.positional)} given" if self.given else "give them beside the text: db.sql(text, [value])"
        raise _placed(f"parameter {mark.name[1:20]} has no value", mark, hint, source)

    def _check_all_used(self, used: int, statements: Sequence[Parsed]) -> None:
        wanted = {mark.name for statement in statements for mark in statement.marks}
        if len(self.positional) > used:
            names = sorted(name for name in wanted if not name.startswith(MARK))
            hint = f"the text names {', '.join(names)}: give a dict" if names else "write a ? for each, or give fewer"
            raise SqlError(f"{len(self.positional)} parameters are given, and the text has {used}", hint=hint)
        unused = next((name for name in self.named if name not in wanted), None)
        if unused is not None:
            known = ", ".join(sorted(f":{name}" for name in wanted if not name.startswith(MARK)))
            hint = f"it has {known}" if known else f"write :{short(unused)} where the value belongs"
            raise SqlError(f'parameter "{short(unused)}" is given, and the text does not have it', hint=hint)


NOTHING_GIVEN: Final = ParameterValues()
NO_PARAMETERS: Final[Mapping[str, Literal]] = {}


def _placed(message: str, mark: ParameterMark, hint: str, source: SqlText) -> SqlError:
    error = SqlError(message, hint=hint)
    error.tell(source.place(mark.offset))
    return error


def _told_apart(params: Mapping[Any, Any]) -> tuple[list[int], list[str]]:
    """The places of ``?`` that a dict has values for, which are all from 1 on, and the names."""
    places, names = list[int](), list[str]()
    for key in params:
        if isinstance(key, str):
            names.append(key)
        elif isinstance(key, int) and not isinstance(key, bool):
            places.append(key)
        else:
            raise WrongType(f"{shown(key)} is no name of a parameter", hint='a name is text: {"id": 7}')
    if sorted(places) != list(range(1, len(places) + 1)):
        raise WrongType(f"the dict has values for ? at {shown(places)}", hint="places are numbered from 1 on")
    return sorted(places), names


def _named_literal(name: str, value: Any) -> Literal:
    try:
        return literal_of(value)
    except UnicodeEncodeError:
        raise SqlError(f"parameter {short(name)} is not Unicode", hint="it holds half of a surrogate pair") from None
    except EverviewError as error:
        raise SqlError(f"parameter {short(name)}: {error.message}", hint=error.hint) from None


def literal_of(value: Any, depth: int = 0) -> Literal:
    """A Python value as a literal of the type that SQL has for it.

    Values of subclasses become plain ones, so that a stored plan says the same whoever gave the value.

    >>> literal_of([1, 2**40]).type.sql, literal_of({"a": 1, "b": None}).type.sql
    ('ARRAY<BIGINT>', 'STRUCT<a: INTEGER NOT NULL, b: VOID>')
    """
    if depth > DEEPEST_VALUE:
        raise TypeMismatch("the value is nested too deeply", hint=KINDS)
    match _plain(value):
        case str() as text:
            text.encode()
            return literal(text)
        case dt.timedelta() as span:
            rest = span.seconds * MICROS["second"] + span.microseconds
            return Literal(span.days * MICROS["day"] + rest, DAY_TIME if rest else DAY)
        case list() | tuple() as values:
            return _array([literal_of(v, depth + 1) for v in values])
        case dict() as fields:
            return _struct({name: literal_of(v, depth + 1) for name, v in fields.items()})
        case plain:
            return literal(plain)


def _plain(value: Any) -> Any:
    """A value without the class of whoever made it: of NumPy, of Arrow, of an enumeration."""
    if isinstance(value, (bool, type(None))):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (decimal.Decimal, dt.date, dt.time, dt.timedelta, Variant, list, tuple, dict)):
        return value
    for unwrap in ("as_py", "item"):  # of Arrow's scalars, of NumPy's
        method = getattr(type(value), unwrap, None)
        if callable(method) and type(value).__module__.partition(".")[0] in ("pyarrow", "numpy"):
            return _plain(method(value))
    raise TypeMismatch(f"{shown(value)} is no value of SQL", hint=KINDS)


def _array(values: list[Literal]) -> Literal:
    type_: Type = VOID
    for value in values:
        both = common(type_, value.type)
        if both is None:
            raise TypeMismatch(f"a list of {type_} and {value.type}", hint="give values of one type")
        type_ = both
    return Literal(tuple(_as(value, type_) for value in values), Array(type_))


def _as(value: Literal, type_: Type) -> Any:
    """The value of a literal as an element of a wider type."""
    from everview.plan.typing import cast
    from everview.scalars.evaluate import fold

    if value.type == type_ or value.value is None:
        return value.value
    wider = fold(cast(value, type_))
    if not isinstance(wider, Literal):
        raise TypeMismatch(f"a list of {value.type} and {type_}", hint="give values of one type")
    return wider.value


def _struct(fields: dict[Any, Literal]) -> Literal:
    check_names(list(fields), "a struct")
    type_ = Struct(tuple(Field(name, value.type, value.nullable) for name, value in fields.items()))
    return Literal(tuple(value.value for value in fields.values()), type_)
