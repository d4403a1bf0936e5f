"""SQLSTATE codes: what kind of mistake an error is, in the words of the SQL standard and of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from everview import errors as e
from everview.serve.scram import ScramError

# The first class that an error is of counts, so subclasses stand before their bases.
_STATES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ScramError, "08P01"),
    (e.DuplicateKey, "23505"),
    (e.NullNotAllowed, "23502"),
    (e.BrokenConstraint, "23514"),
    (e.ArithmeticFailure, "22003"),
    (e.CastFailure, "22P02"),
    (e.TypeMismatch, "42804"),
    (e.WrongType, "22P02"),
    (e.WrongArity, "42601"),
    (e.UnknownName, "42704"),
    (e.BadPattern, "2201B"),
    (e.WeightOverflow, "22003"),
    (e.ConflictingChange, "40001"),
    (e.TransactionError, "25000"),
    (e.NotPermitted, "42501"),
    (e.StatementTimeout, "57014"),
    (e.StatementCancelled, "57014"),
    (e.LimitReached, "54000"),
    (e.EndlessLoop, "54001"),
    (e.LostPosition, "55000"),
    (e.DefinitionError, "42809"),
    (e.FunctionError, "38000"),
    (e.SlowReader, "53400"),
    (e.LockedState, "55006"),
    (e.CorruptState, "XX001"),
    (e.StoreError, "58030"),
    (e.SchemaError, "42P16"),
    (e.SqlError, "42601"),
)
# What a message says, where its class does not tell enough.
_SAID: Final[tuple[tuple[type[BaseException], re.Pattern[str], str], ...]] = tuple(
    (kind, re.compile(pattern), state)
    for kind, pattern, state in (
        (e.UnknownName, r'^(table or view|table|view|relation) "', "42P01"),
        (e.UnknownName, r'column "|^"?[\w.`]+"? is no column', "42703"),
        (e.UnknownName, r"^function |^the function ", "42883"),
        (e.UnknownName, r'^schema "', "3F000"),
        (e.UnknownName, r"^prepared statement ", "26000"),
        (e.UnknownName, r'^type "', "42704"),
        (e.ArithmeticFailure, r"ivision by zero|ivide.* by zero|ivided by zero|modulo zero", "22012"),
        (e.BrokenConstraint, r"(?i)unique", "23505"),
        (e.BrokenConstraint, r"(?i)foreign key|references|refers? to", "23503"),
        (e.DefinitionError, r"there is (a|another) .* already|already (exists|there)|is taken", "42P07"),
        (
            e.DefinitionError,
            r"^schema .* (has|holds|contains)|is not empty|cannot be dropped|is read by|depend|is used by|are used by",
            "2BP01",
        ),
        (e.TransactionError, r"is open already", "25001"),
        (e.TransactionError, r"no transaction has begun", "25P01"),
        (e.StoreError, r"^the server (has stopped|is stopping)", "57P01"),
        (e.SqlError, r"not supported|cannot be maintained", "0A000"),
        (e.SqlError, r"ambiguous", "42702"),
        (e.SqlError, r"there is a (schema|table|view|function) .* already", "42P07"),
        (e.SqlError, r"parameter.* has no value|parameters are given", "08P01"),
        (e.SqlError, r"must appear in|neither (an )?aggregate|not grouped|GROUP BY", "42803"),
    )
)
_PLACE: Final = re.compile(r"\n\s*line (\d+), column (\d+):\n[^\n]*\n[^\n]*\^+")
INTERNAL: Final = "XX000"
CANCELED: Final = "57014"
IN_FAILED_TRANSACTION: Final = "25P02"


class ClientError(e.EverviewError):
    """A client's mistake in the protocol itself, with its SQLSTATE."""

    def __init__(self, message: str, state: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.state = state


def state_of(error: BaseException) -> str:
    """The SQLSTATE of an error.

    >>> state_of(e.UnknownName('table or view "t" does not exist')), state_of(e.DuplicateKey("…"))
    ('42P01', '23505')
    """
    if isinstance(error, ClientError):
        return error.state
    said = str(error)
    for kind, pattern, state in _SAID:
        if isinstance(error, kind) and pattern.search(said):
            return state
    return next((state for kind, state in _STATES if isinstance(error, kind)), INTERNAL)


def place_in(error: e.EverviewError, text: str) -> tuple[str, int | None]:
    """The message of an error without its place, and the place: a character of the text, from 1 on.

    >>> place_in(e.SqlError("no\\n  line 2, column 3:\\n    a b\\n      ^"), "SELECT\\na b")
    ('no', 10)
    """
    said = error.message
    match = _PLACE.search(said)
    if match is None:
        return said, None
    line, column = int(match[1]), int(match[2])
    before = sum(len(part) + 1 for part in text.split("\n")[: line - 1])
    place = before + column
    rest = said[: match.start()] + said[match.end() :]
    return rest, place if 1 <= place <= len(text) + 1 else None


def report_fields(error: BaseException, text: str = "", severity: str = "ERROR") -> Iterator[tuple[str, str]]:
    """The fields of an error as the protocol names them; one that is no user's mistake says nothing of the inside."""
    yield from (("S", severity), ("V", severity))
    if not isinstance(error, e.EverviewError):
        yield from (("C", INTERNAL), ("M", "internal error"))
        return
    said, place = place_in(error, text)
    yield from (("C", state_of(error)), ("M", said))
    if error.hint:
        yield "H", error.hint
    if place is not None:
        yield "P", str(place)
