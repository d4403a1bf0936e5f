"""Asking why: a row as a user gives it is checked and looked up, then explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.codes import decode_rows, encode_rows
from everview.errors import NoSuchRow, QueryError, WrongArity, shown
from everview.types import Schema
from everview.why.absences import AbsenceFinder
from everview.why.bounds import Budget
from everview.why.find import NO_LOOPS, Finder
from everview.why.held import HeldByRun, inside_rows
from everview.why.push import Row, outside
from everview.why.reasons import Reasons
from everview.why.tree import Why

LONGEST = 1e9  # seconds; more than that is forever


class WhyAsked:
    """Questions about the rows of one view; ``asked`` is the name of what is asked, as hints write it.

    What is interned for a question is forgotten when that has been answered.
    """

    def __init__(self, held: HeldByRun, view: str, *, rows: int, seconds: float, asked: str) -> None:
        seconds = min(seconds, LONGEST)
        if rows < 1 or not seconds > 0:
            raise QueryError(
                f"an explanation of {rows} rows in {seconds:g} seconds", hint="give at least one row, and more than 0 s"
            )
        self._held, self._view, self._rows, self._seconds, self._asked = held, view, rows, seconds, asked
        self._schema = held.schema_of(view)

    def why(self, row: Any) -> Why:
        """Why the view has a row."""
        return self._told(row, absent=False)

    def why_not(self, row: Any) -> Why:
        """Why the view does not have a row."""
        return self._told(row, absent=True)

    def _told(self, row: Any, *, absent: bool) -> Why:
        dictionary = self._held.run.dictionary
        mark = dictionary.mark()
        try:
            finder, wanted = Finder(self._held, Budget(self._seconds)), self._row(row)
            if self._is_there(finder, wanted) == absent:
                raise self._mistaken(wanted, absent=absent)
            return (AbsenceFinder if absent else Reasons)(finder, self._rows).of_view(self._view, wanted)
        finally:
            dictionary.rollback(mark)

    def _mistaken(self, wanted: Row, *, absent: bool) -> NoSuchRow:
        name = self._held.shown(self._view)
        row = shown(outside(self._schema, wanted))
        if absent:
            return NoSuchRow(f"view {name} has the row {row}", hint=f"{self._asked}.why({name!r}, …) says why")
        hint = f"{self._asked}.why_not({name!r}, …) says what is missing"
        return NoSuchRow(f"view {name} has no row {row}", hint=hint)

    def _row(self, given: Any) -> Row:
        """A row as a user gives it, in a sequence or by the names of columns, as explanations hold it."""
        schema, name = self._schema, self._held.shown(self._view)
        if isinstance(given, Mapping):
            values: Mapping[Any, Any] = given
            if set(values) != set(schema.names):
                raise WrongArity(
                    f"a row of {name} has the columns {', '.join(schema.names)}", hint="give each its value"
                )
            given = tuple(values[column] for column in schema.names)
        if isinstance(given, str | bytes) or not isinstance(given, tuple | list):
            raise QueryError(f"{shown(given)} is no row of {name}", hint=f"give a tuple: ({', '.join(schema.names)})")
        return _coded(schema, tuple(given), self._held)

    def _is_there(self, finder: Finder, row: Row) -> bool:
        wanted, plan = dict(enumerate(row)), self._held.plan_of(self._view)
        if self._held.keeps(self._view):
            return any(w > 0 for _, w in self._held.rows(self._view, wanted)[0])
        assert plan is not None, "what is not kept has a plan"
        return any(w > 0 for _, w in finder.some(plan, wanted, NO_LOOPS, 1)[0])


def _coded(schema: Schema, given: tuple[Any, ...], held: HeldByRun) -> Row:
    """A row with the values that the types of its columns make of it."""
    dictionary = held.run.dictionary
    made: list[Row] = decode_rows(schema, encode_rows(schema, [given], dictionary)[:, :-1], dictionary)
    ((row, _),) = inside_rows(schema, [(made[0], 1)])
    return row
