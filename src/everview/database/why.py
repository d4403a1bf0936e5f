"""Why a view has a row, and why it has not: questions to a database, answered from what its relations hold."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from everview.codes import decode_rows, encode_rows, to_rows
from everview.errors import NoSuchRow, QueryError, WrongArity, shown
from everview.oracle.values import changed, inward
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, walk
from everview.plan.nodes import Filter, Recursive
from everview.plan.typing import call
from everview.runtimes.embedded.lookup import LookedUp
from everview.scalars.expressions import Literal
from everview.types import Schema
from everview.why import Absences, Budget, Finder, Reasons, Why
from everview.why.find import NO_LOOPS
from everview.why.push import Entry, Row, Wanted, outside

if TYPE_CHECKING:
    from everview.database.core import Core


LONGEST = 1e9  # seconds; more than that is forever


def why(core: Core, view: str, row: Any, *, rows: int, seconds: float) -> Why:
    """See `Database.why`."""
    with _asking(core, view, row, rows, seconds) as (name, wanted, finder):
        if not _is_there(core, finder, name, wanted):
            raise NoSuchRow(
                f"view {view} has no row {_as_given(core, name, wanted)}",
                hint=f"db.why_not({view!r}, …) says what is missing",
            )
        return Reasons(finder, rows).of_view(name, wanted)


def why_not(core: Core, view: str, row: Any, *, rows: int, seconds: float) -> Why:
    """See `Database.why_not`."""
    with _asking(core, view, row, rows, seconds) as (name, wanted, finder):
        if _is_there(core, finder, name, wanted):
            raise NoSuchRow(
                f"view {view} has the row {_as_given(core, name, wanted)}", hint=f"db.why({view!r}, …) says why"
            )
        return Absences(finder, rows).of_view(name, wanted)


@contextmanager
def _asking(core: Core, view: str, row: Any, rows: int, seconds: float) -> Generator[tuple[str, Row, Finder]]:
    """The view's name, the row as explanations hold it, and a finder; what was interned meanwhile is forgotten."""
    seconds = min(seconds, LONGEST)
    if rows < 1 or not seconds > 0:
        raise QueryError(
            f"an explanation of {rows} rows in {seconds:g} seconds", hint="give at least one row, and more than 0 s"
        )
    with core.still:
        core.access.ready()
        core.access.require_open()
        name = core.catalog.find_view(view)
        definition = core.catalog.views[name]
        if definition.plan is None:
            raise QueryError(
                f"view {view} is made by a function, which cannot be looked into",
                hint="define it in SQL, Datalog, EDN or step by step",
            )
        mark = core.run.dictionary.mark()
        try:
            finder = Finder(HeldByDatabase(core), Budget(seconds))
            yield name, _row(core, view, definition.schema, row), finder
        finally:
            core.run.dictionary.rollback(mark)


def _row(core: Core, view: str, schema: Schema, given: Any) -> Row:
    """A row as a user gives it, in a sequence or by the names of columns, as explanations hold it."""
    if isinstance(given, Mapping):
        values: Mapping[Any, Any] = given
        if set(values) != set(schema.names):
            raise WrongArity(f"a row of {view} has the columns {', '.join(schema.names)}", hint="give each its value")
        given = tuple(values[name] for name in schema.names)
    if isinstance(given, str | bytes) or not isinstance(given, tuple | list):
        raise QueryError(f"{shown(given)} is no row of {view}", hint=f"give a tuple: ({', '.join(schema.names)})")
    dictionary = core.run.dictionary
    made: list[Row] = decode_rows(schema, encode_rows(schema, [tuple(given)], dictionary)[:, :-1], dictionary)
    (row,) = changed(schema.types, inward)(made)
    return tuple(row)


def _is_there(core: Core, finder: Finder, name: str, row: Row) -> bool:
    wanted = dict(enumerate(row))
    if finder.held.keeps(name):
        return any(w > 0 for _, w in finder.held.rows(name, wanted)[0])
    return any(w > 0 for _, w in finder.some(core.catalog.views[name].optimized, wanted, NO_LOOPS, 1)[0])


def _as_given(core: Core, name: str, row: Row) -> str:
    return shown(outside(core.catalog.views[name].schema, row))


class HeldByDatabase:
    """What a database keeps, as explanations read it; see `everview.why.find.Holder`."""

    def __init__(self, core: Core) -> None:
        self._core, self._looked_up = core, LookedUp(core.run)

    def rows(self, relation: str, wanted: Wanted, most: int | None = None) -> tuple[list[Entry], int]:
        """The rows with these values, at most so many, and how many there are."""
        schema = self._core.catalog.relations[relation].schema
        values = dict(zip(wanted, _outside(schema, wanted), strict=True))
        entries, count = self._looked_up.rows(relation, values, most)
        return _inside(schema, entries), count

    def answered(self, plan: Plan, wanted: Wanted, most: int) -> tuple[list[Entry], int] | None:
        """Some rows of a plan with the wanted values, and how many there are; None if no query can say these."""
        values = dict(zip(wanted, _outside(plan.schema, wanted), strict=True))
        if any(isinstance(value, list | dict | tuple) for value in values.values()):
            return None
        equal = [call("null_safe_equal", plan.column(c), Literal(v, plan.schema.types[c])) for c, v in values.items()]
        condition = conjunction(equal)
        rows, weights = self._core.holdings.answered(plan if condition is None else Filter(plan, condition))
        shown = to_rows(plan.schema, rows.slice(0, most))
        return _inside(plan.schema, list(zip(shown, weights[:most].tolist(), strict=True))), rows.num_rows

    def keeps(self, relation: str) -> bool:
        """Whether the rows of a relation are held."""
        catalog = self._core.catalog
        return relation in catalog.tables or (relation in catalog.views and catalog.views[relation].materialized)

    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a table, and for a view that a function makes."""
        view = self._core.catalog.views.get(relation)
        return None if view is None else view.optimized

    def is_table(self, relation: str) -> bool:
        """Whether a relation is a table."""
        return relation in self._core.catalog.tables

    def shown(self, relation: str) -> str:
        """The name by which people know a relation."""
        return self._core.catalog.shown.get(relation, relation)

    def loop(self, plan: Recursive) -> Mapping[str, Callable[[Wanted], list[tuple[Row, int]]]] | None:
        """The rows of a recursion's relations with the rounds in which they came, if these are kept."""
        names = tuple(name for name, _ in plan.bindings)
        for view in self._core.catalog.views.values():
            if not view.materialized or view.optimized is None or plan not in set(walk(view.optimized)):
                continue
            loops = self._looked_up.loops_behind(view.name, names)
            if len(loops) != 1 or len(loops[0].feedbacks) != len(names):
                continue
            orders = [self._looked_up.iterations(loops[0], i, p.schema) for i, (_, p) in enumerate(plan.bindings)]
            if all(order is not None for order in orders):
                return {name: partial(self._came, order) for name, order in zip(names, orders, strict=True)}
        return None

    def _came(self, order: Any, wanted: Wanted) -> list[tuple[Row, int]]:
        values = dict(zip(wanted, _outside(order.schema, wanted), strict=True))
        entries = self._looked_up.came(order, values)
        return _inside(order.schema, entries)


def _inside(schema: Schema, entries: list[tuple[Row, int]]) -> list[tuple[Row, int]]:
    """Rows as explanations hold them, each with its number."""
    if not entries:
        return []
    rows = changed(schema.types, inward)([row for row, _ in entries])
    return list(zip(map(tuple, rows), (number for _, number in entries), strict=True))


def _outside(schema: Schema, wanted: Wanted) -> Row:
    part = Schema([schema.fields[column] for column in wanted])
    return outside(part, tuple(wanted.values()))
