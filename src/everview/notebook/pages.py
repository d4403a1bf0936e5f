"""What a live widget shows: a page of the rows of a view, or the circuit of a database with its work.

A page is read in one turn of the database, and costs what is shown: the first rows of a view are searched in its trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from everview.circuit.draw import DRAWN
from everview.circuit.nodes import title
from everview.database import Database
from everview.database.core import Core
from everview.database.views import View
from everview.types import Decimal, Schema
from everview.views import OrderedView, Subscription
from everview.zset.batch import Batch
from everview.zset.shown import as_changes
from everview.zset.tables import readable

SORTED: Final = (
    10_000  # rows of a view with ORDER BY that are sorted for a page; of more, the first are those of the trace
)
LOOK: Final = 0.25  # seconds between two looks at a circuit


class WidgetPage(Protocol):
    """What a widget shows, until it ends."""

    def begin(self, changed: Callable[[], None], ended: Callable[[str], None]) -> None:
        """Say from now on when there is something new, or that there will be nothing more."""
        ...

    def read(self) -> dict[str, Any]:
        """The state of the widget now."""
        ...

    @property
    def look(self) -> float | None:
        """Seconds after which to look again though nothing was said; None if it says so."""
        ...

    def close(self) -> None:
        """End what was begun."""
        ...


class ViewPage:
    """The first rows of a view, and how many it has. The count is kept by the changes: a tick costs their number."""

    look = None

    def __init__(self, view: View, rows: int, by: tuple[str, ...], drop: Callable[[], None] | None = None) -> None:
        self._view, self._most, self._by, self._drop = view, rows, by, drop
        self._subscription: Subscription | None = None
        self._ordered: OrderedView | None = None
        self._count = 0

    def begin(self, changed: Callable[[], None], ended: Callable[[str], None]) -> None:
        def told(changes: Batch, epoch: int) -> None:
            self._count += int(changes.weights.sum())
            changed()

        over = f"view {self._view.name} has ended"
        self._subscription = self._view.subscribe(told, snapshot=True, ended=lambda: ended(over))
        if self._by:
            self._ordered = self._view.ordered(*self._by, limit=self._most)

    def read(self) -> dict[str, Any]:
        with self._view.lock:
            rows, schema, count = self._rows(), self._view.schema, self._count
            epoch = core_of(self._view).run.epoch
        shown = f", the first {len(rows):,} are shown" if count > len(rows) else ""
        return {
            "caption": f"{self._view.name}: {count:,} row{'s' * (count != 1)}{shown}, epoch {epoch:,}",
            "columns": columns_of(schema),
            "rows": [[None if value is None else readable(value) for value in row] for row in rows],
            "problem": "",
        }

    def close(self) -> None:
        for each in (self._subscription, self._ordered):
            if each is not None:
                each.close()
        if self._drop is not None:
            self._drop()

    def _rows(self) -> list[tuple[Any, ...]]:
        if self._ordered is not None:
            return self._ordered.rows()[: self._most]
        core = core_of(self._view)
        if core.catalog.views[self._view.name].order and self._count <= SORTED:
            return self._view.rows()[: self._most]
        core.access.ready()
        first = as_changes(core.run.views[self._view.name].first(self._most))
        return [row for row, weight in first for _ in range(weight)][: self._most]


class CircuitPage:
    """The circuit of a database as a picture: at each node the rows held and the rows of the last tick.

    It looks at the number of the epoch now and then, so a tick does nothing for it. A circuit that is too large for a
    picture is a table of the nodes that did most.
    """

    look = LOOK

    def __init__(self, db: Database, rows: int) -> None:
        self._core, self._most = core_of(db), rows
        self._ended: Callable[[str], None] = lambda said: None
        self._seen: dict[int, int] = {}  # rows that each node had put out when it was last looked at
        self._program: Any = None
        self._picture = ""
        self._state: dict[str, Any] = {}
        self._epoch = -1

    def begin(self, changed: Callable[[], None], ended: Callable[[str], None]) -> None:
        self._ended = ended

    def read(self) -> dict[str, Any]:
        if self._core.access.closed:
            self._ended("the database is closed")
            return self._state
        if self._core.run.epoch == self._epoch and self._core.run.program is self._program:
            return self._state
        with self._core.still:
            self._core.access.ready()
            self._state = self._drawn()
        return self._state

    def close(self) -> None:
        """Nothing was begun."""

    def _drawn(self) -> dict[str, Any]:
        run = self._core.run
        program, compiled, circuit = run.program, run.state.compiled, run.program.circuit
        if program is not self._program:
            self._program, self._seen = program, {}
            self._picture = circuit.to_svg() if len(circuit) <= DRAWN else ""
        spent = {
            node: program.spent[node] if compiled is None else compiled.spent(node) for node in range(len(circuit))
        }
        came = {node: each.rows - self._seen.get(node, 0) for node, each in spent.items()}
        self._seen = {node: each.rows for node, each in spent.items()}
        held = {node: sum(len(trace.before) for trace in run.state.of(node)) for node in program.traces}
        self._epoch = run.epoch
        caption = f"circuit of {len(circuit)} nodes, epoch {run.epoch:,}"
        if self._picture:
            notes = {f"n{node}": [_note(held.get(node), came[node]), came[node] > 0] for node in spent}
            return {"caption": caption, "picture": self._picture, "notes": notes, "problem": ""}
        names = ("node", "operation", "holds", "rows", "new")
        busy = sorted(spent, key=lambda node: (-came[node], -spent[node].rows, node))[: self._most]
        rows = [
            [f"{node}", title(circuit[node]), f"{held.get(node, 0):,}", f"{spent[node].rows:,}", f"{came[node]:,}"]
            for node in busy
        ]
        columns = [{"name": name, "number": name != "operation"} for name in names]
        return {"caption": caption, "picture": "", "columns": columns, "rows": rows, "problem": ""}


def _note(held: int | None, came: int) -> str:
    parts = [f"holds {held:,}"] if held is not None else []
    return " · ".join([*parts, f"+{came:,}"] if came else parts)


def columns_of(schema: Schema) -> list[dict[str, Any]]:
    """The columns as a widget knows them: name, and whether values are numbers, which stand to the right."""
    numbers = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}
    return [
        {"name": field.name, "number": isinstance(field.type, Decimal) or field.type.sql in numbers} for field in schema
    ]


def core_of(handle: Database | View) -> Core:
    """The inside of a database, or of the one that a view belongs to."""
    return handle._core if isinstance(handle, Database) else handle._database  # pyright: ignore[reportPrivateUsage]
