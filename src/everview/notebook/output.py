"""Live widgets: `live` shows a view, a query or a circuit, and follows it until `close`."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from time import monotonic
from typing import Final

from everview.database import Database
from everview.database.views import View
from everview.doors import door
from everview.errors import EverviewError
from everview.notebook.pages import CircuitPage, ViewPage, WidgetPage
from everview.notebook.widget import LiveWidget

MOST_ROWS: Final = 1_000  # of a page
LONGEST: Final = 86_400  # seconds between two messages


class LiveOutput:
    """A widget that follows a view, a query or a circuit: a thread sends the page, at most once in ``every`` seconds.

    However many ticks come in between, one message has them all. Whatever goes wrong is written in the widget, and no
    tick fails for it. ``close`` ends it, and so does the end of the view or of the database.
    """

    def __init__(self, page: WidgetPage, every: float) -> None:
        self._page, self._every = page, every
        self._changed, self._stopped = Event(), Event()
        self._over = ""
        self.widget = LiveWidget()
        try:
            page.begin(self._changed.set, self._end)
            self.widget.show(page.read())
        except BaseException:
            self._close_all()
            raise
        self._thread = Thread(target=self._follow, name="everview live widget", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether it still follows."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def close(self) -> None:
        """End it, and take the widget away; a view that was made for a query is dropped."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._changed.set()
            self._close_all()

    def refresh(self) -> None:
        """Show what there is now, without waiting for the thread."""
        try:
            self.widget.show(self._page.read())
        except Exception as error:  # noqa: BLE001, whatever it is, it is told where the rows are
            said = error.message if isinstance(error, EverviewError) else f"{type(error).__name__}: {error}"
            self.widget.show({"problem": said})

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.widget)

    def __enter__(self) -> LiveOutput:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- inside

    def _close_all(self) -> None:
        try:
            self._page.close()
        finally:
            self.widget.close()

    def _end(self, said: str) -> None:
        """Note that nothing more will come; the last rows stay."""
        self._over = said
        self._changed.set()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            self._changed.wait(self._page.look)
            if self._stopped.is_set():
                return
            began = monotonic()
            self._changed.clear()
            if self._over:
                self.widget.show({"problem": self._over})
                return
            self.refresh()
            self._stopped.wait(max(0.0, self._every - (monotonic() - began)))


@door
def live(
    shown: View | Database,
    query: str | None = None,
    *,
    rows: int = 20,
    by: str | Sequence[str] = (),
    every: float = 0.1,
) -> LiveOutput:
    """A widget of a view, ``live(db.view("v"))``, of a query, ``live(db, "SELECT …")``, or of a circuit, ``live(db)``.

    It shows the first ``rows``, in the order of the view or ``by`` columns as in ``by="revenue desc"``, and follows
    them as ticks arrive, with at most one message in ``every`` seconds. A query is kept as a view, which `close` drops.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise EverviewError(f"a page cannot have {rows} rows", hint=f"rows is from 1 to {MOST_ROWS:,}")
    if not 0 <= every <= LONGEST:
        raise EverviewError(f"every {every} seconds cannot be", hint=f"from 0 to {LONGEST:,}: every=0.1")
    order = (by,) if isinstance(by, str) else tuple(by)
    if isinstance(shown, View):
        if query is not None:
            raise EverviewError("a query is asked of a database", hint='live(db, "SELECT …")')
        return LiveOutput(ViewPage(shown, rows, order), every)
    if query is None:
        return LiveOutput(CircuitPage(shown, rows), every)
    return LiveOutput(_query_page(shown, query, rows, order), every)


def _query_page(db: Database, query: str, rows: int, order: tuple[str, ...]) -> ViewPage:
    """The page of a query, kept as a view until it is closed."""
    taken = {name.casefold() for name in (*db.tables(), *db.views())}
    name = next(name for number in range(1, len(taken) + 2) if (name := f"live_{number}") not in taken)
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def drop() -> None:
        if name in db.views():
            db.drop(name)

    return ViewPage(db.view(name), rows, order, drop)
