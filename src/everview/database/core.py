"""The core of a database: the objects sharing its work, and the acts that need several of them.

Each object has one duty, and reaches the others by the core:

- `Access`: who may use the database now, and what is under way;
- `Definitions`: the tables and views, and how they change;
- `Transactions`: how rows change, each time as one tick;
- `Holdings`: what relations hold, and answers computed from that;
- `Telling`: who listens, and when listeners are told;
- `Saving`: when ticks become durable;
- `Clock`: the current time that views read;
- `Attached`: sources that tables follow, or that are only read.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from everview.database.access import Access
from everview.database.attached import Attached
from everview.database.catalog import Assembled, Catalog
from everview.database.clock import Clock
from everview.database.defining import Definitions
from everview.database.holdings import Holdings
from everview.database.saving import Saving
from everview.database.telling import Telling
from everview.database.transactions import Transactions
from everview.errors import TransactionError
from everview.frontends.sql import Prepare
from everview.runtimes.embedded import Embedded

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.database.following import StateFollower
    from everview.database.runner import Runner
    from everview.types import Schema


class Core:
    """What a database is made of, whatever it is asked in; see `everview.database.database.Database`."""

    def __init__(
        self, run: Embedded, catalog: Catalog, assembled: Assembled, *, every: float = 0.0, clock: str = "told"
    ) -> None:
        self.run = run
        self.access = Access(run)
        self.still = self.access.turns  # blocks changes while held
        self.saving = Saving(run, self.access, every)
        self.holdings = Holdings(self)
        self.telling = Telling(self)
        self.definitions = Definitions(self, catalog, assembled)
        self.transactions = Transactions(self)
        self.clock = Clock(self, clock)
        self.attached = Attached(self)
        self.files: dict[str, tuple[Schema, pa.Table]] = {}  # the rows of files that the statement at hand reads
        self.prepared: dict[str, Prepare] = {}  # statements of SQL, by the folded names that PREPARE gave them
        self.follower: StateFollower | None = None  # of the process that writes, if this one only reads
        self.runner: Runner | None = None  # that polls attached sources, if there is one
        self._ended = False

    @property
    def catalog(self) -> Catalog:
        """The definitions that hold now."""
        return self.definitions.catalog

    def close(self) -> None:
        """See `Database.close`."""
        with self.still:
            self.access.ready()
            if self.access.open is not None:
                raise TransactionError("a transaction is open", hint="close when it has ended")
            if self._ended:
                return
            if self.runner is not None:
                self.runner.ask_to_stop()
            self.saving.cancel()
            self.access.closed = True
            with ExitStack() as closing:  # all of it, whatever one of them says
                closing.callback(self.telling.listeners.tell)
                closing.callback(self.attached.close)
                closing.callback(self.run.close)
                self.telling.listeners.end_all_but(())
            self._ended = True
