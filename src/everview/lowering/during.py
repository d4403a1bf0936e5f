"""Lower `During`: rows that come when their time begins, and go when it ends.

``during = due(rows by since) − due(rows by until)``: linear in the rows, so that a row that is deleted, or changes its
times, cancels what it has been until now.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.circuit.stream import Stream
from everview.lowering.rows import extended, picked, present
from everview.operators.announce import Announce
from everview.operators.due import Due
from everview.operators.index import Index
from everview.operators.operator import Layout
from everview.plan.nodes import During
from everview.plan.typing import call
from everview.scalars.expressions import Expression


def while_there(plan: During, rows: Stream, clock: Stream) -> Stream:
    """The stream of the rows whose time it is."""
    known = clock.circuit.add(Announce(Layout(clock.schema)), [clock]).index()
    begun = rows if plan.since is None else _due(rows, plan.since, known)
    if plan.until is None:
        return begun
    # A row whose time ends before it begins is never there: it goes when it would come.
    end = plan.until if plan.since is None else call("greatest", plan.since, plan.until)
    return begun - _due(rows, end, known)


def _due(rows: Stream, moment: Expression, clock: Stream) -> Stream:
    """The rows whose moment has come."""
    width = len(rows.schema)
    timed, (place,) = extended(rows, (moment,))
    timed = present(timed, (place,))
    fields = (place, *(field for field in range(width) if field != place))
    indexed = rows.circuit.add(Index(timed.layout, fields, 1, spread=True), [timed])
    due = rows.circuit.add(Due(indexed.layout, clock.layout), [indexed, clock])
    return picked(due, _back(fields, width), rows.schema.names).under(rows.schema)


def _back(fields: Sequence[int], width: int) -> list[int]:
    """Where the columns of the rows stand among the fields of an index."""
    return [fields.index(column) for column in range(width)]
