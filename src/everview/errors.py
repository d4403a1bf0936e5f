"""Errors for users: one class for each kind of mistake, every message with a hint that says what to do.

A mistake of ours is an assertion; every class here is about something that Everview was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def shown(value: Any, most: int = 80) -> str:
    """A value for a message: its ``repr`` in one line, cut if it is long; safe even if ``repr`` raises.

    >>> shown("ab"), shown("x" * 100, 10)
    ("'ab'", "'xxxxxx...")
    """
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001, a class of the user's
        said = f"<{type(value).__name__}>"
    said = " ".join(said.split()) if "\n" in said else said
    said = re.sub(r" at 0x[0-9a-f]+", "", said)  # an address tells nobody anything
    return said if len(said) <= most else said[: most - 3] + "..."


class EverviewError(Exception):
    """The root of every error meant for users.

    >>> str(EverviewError("column \\"x\\" does not exist", hint="available: a, b"))
    'column "x" does not exist\\n  hint: available: a, b'
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  hint: {hint}")
        self.message = message
        self.hint = hint

    def tell(self, more: str) -> None:
        """Add a line to the message, before the hint.

        >>> error = EverviewError("division by zero", hint="try_divide gives NULL there")
        >>> error.tell("in view v")
        >>> print(error)
        division by zero
          in view v
          hint: try_divide gives NULL there
        """
        self.message = f"{self.message}\n  {more}"
        self.args = (self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}",)


class SchemaError(EverviewError):
    """A schema or layout that cannot be, or two that do not fit each other."""


class UnknownName(EverviewError):
    """A table, view, column, function or type that does not exist."""


class WrongArity(EverviewError):
    """A row with more or fewer values than its relation has columns."""


class WrongType(EverviewError):
    """A value that its column's type does not hold."""


class TypeMismatch(WrongType):
    """An expression whose operands have types that do not go together; the message names them."""


class ArithmeticFailure(EverviewError):
    """A number that its type does not hold, or a division by zero; the message names expression and operands."""


class CastFailure(EverviewError):
    """A value that is none of another type, such as text that is no number; the message names both."""


class SqlError(EverviewError):
    """A text of SQL that cannot be read, is ambiguous, or asks for what cannot be maintained."""


class DatalogError(EverviewError):
    """A rule or a program that cannot be; the message says where, and shows the rule."""


class UnknownRelation(DatalogError, UnknownName):
    """A rule reads a relation that nothing defines."""


class UnboundVariable(DatalogError):
    """A variable of a rule that no positive part of its body binds."""


class NotStratified(DatalogError):
    """A relation that depends on its own negation, or on an aggregate of itself; the message names the cycle."""


class NotRangeRestricted(UnboundVariable):
    """A variable in the head of a rule that no selection of its body binds."""


class BadAggregate(DatalogError):
    """An aggregate whose parameters are bound elsewhere, or do not stand exactly once in its atom."""


class EndlessInduction(DatalogError):
    """An inductive rule that could go on for ever without any change from outside."""


class TypeConflict(DatalogError, TypeMismatch):
    """A variable or a column that would have two types; the message names both."""


class EdnError(EverviewError):
    """A text of EDN, or a query or transaction in it, that cannot be read or cannot be; the message has its place."""


class BadPattern(EverviewError):
    """A regular expression, a LIKE pattern or a pattern of dates that means nothing, or not the same here."""


class NullNotAllowed(EverviewError):
    """NULL in a column declared NOT NULL."""


class WeightOverflow(EverviewError):
    """A weight or a sum left the range of 64 bits."""


class CircuitError(EverviewError):
    """An ill-formed circuit; the message names the node."""


class EndlessLoop(EverviewError):
    """A recursive circuit that has not come to its fixed point within its limit."""


class FunctionError(EverviewError):
    """A user's function raised, returned the wrong shape, or is not pure."""


class NegativeWeight(EverviewError):
    """A view that is to be positive would hold a row with a negative weight."""


class DuplicateKey(EverviewError):
    """Two rows with one primary key; the message names the table and the key, and `key` has its values by column."""

    def __init__(self, message: str, *, hint: str | None = None, key: Mapping[str, object] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key or {}


class BrokenConstraint(EverviewError):
    """A tick would leave rows that break a CHECK, UNIQUE or FOREIGN KEY constraint."""


class TransactionError(EverviewError):
    """A transaction used in a way that cannot work, or something that cannot be done inside of one."""


class DefinitionError(EverviewError):
    """A table or view that cannot be made, changed or dropped as asked, because of what there is."""


class ConflictingChange(TransactionError):
    """A transaction that changes rows which another one has changed meanwhile; trying again helps."""


class NotPermitted(EverviewError):
    """A statement or a request that its role, or the door it came by, does not allow."""


class LimitReached(EverviewError):
    """More rows, bytes, time or connections than a server allows; the message says which."""


class StatementTimeout(LimitReached):
    """A statement that took longer than it may."""


class StatementCancelled(EverviewError):
    """A statement that was cancelled before it had ended."""


class ListenerError(EverviewError):
    """A listener raised; the tick it was told of has been applied."""


class SlowReader(EverviewError):
    """A queue of changes is full, and its reader too slow, or the very thread that would have to wait for it."""


class ShapeError(EverviewError):
    """A view that cannot be read in this shape: a single value of several rows, a tree without its root."""


class ForkedProcess(EverviewError):
    """An object used in a forked child of the process that opened it."""


class StoreError(EverviewError):
    """A state directory that cannot be used as asked."""


class CorruptState(StoreError):
    """Bytes on disk that are not what was written; the message names the file and the slice."""


class LockedState(StoreError):
    """Another writer has the state directory open."""


class ForeignState(StoreError):
    """A state directory of another plan, or of a newer format."""


class CodeCollision(EverviewError):
    """Two values met under one code in different dictionaries; the tick must be encoded again."""


class SinkError(EverviewError):
    """A sink that cannot be, or that did not take an epoch; the epoch itself has been committed."""


class MissingRuntime(EverviewError):
    """Java or PySpark is not there, or is too old."""


class SourceError(EverviewError):
    """A source that cannot be read as it is described."""


class LostPosition(SourceError):
    """A source that does not know any more what came after a position."""


class SchemaDrift(SourceError):
    """A later batch of a source whose columns no longer fit."""


class VerificationFailed(EverviewError):
    """Views that do not hold what their definition says of the rows in their sources."""


class PipelineError(EverviewError):
    """A pipeline is defined or used in a way that cannot work."""


class DataFrameError(EverviewError):
    """A DataFrame that cannot be read into a view; the message names the node, the expression and the line."""


class BadRows(SourceError):
    """Rows arrived that cannot be taken, and the pipeline does not set such rows aside."""


class QueryError(EverviewError):
    """A fluent query or a frame that cannot be: a clause that does not go with others, or is not known as written."""


class Ungrouped(QueryError):
    """A column beside aggregates that may have several values in a group."""


class NoSuchRow(EverviewError):
    """A question about a row that is not there, or that is there where its absence was asked about."""


class TooMuchToExplain(EverviewError):
    """An explanation of a row that looks at more rows than it may, or takes longer."""


class GraphError(EverviewError):
    """A graph of relational operators that cannot be, or not now; the message names the node or the relation."""


class ProviderError(EverviewError):
    """A provider of a computed relation raised, or answered what cannot be; the message names node and relation."""


class HistoryWarning(UserWarning):
    """The rows of a stream depend on when its input came, not only on which input rows are there."""
