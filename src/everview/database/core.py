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
from typing import TYPE_CHECKING, Protocol

from everview.database.access import Access
from everview.database.attached import Attached
from everview.database.catalog import Assembled, Catalog
from everview.database.clock import Clock
from everview.database.defining import Definitions
from everview.database.holdings import Holdings
from everview.database.saving import Saving
from everview.database.telling import Telling
from everview.database.transactions import Transactions
from everview.errors import NotPermitted, TransactionError
from everview.frontends.sql import Prepare, Statement
from everview.runtimes.embedded import Embedded

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.database.following import StateFollower
    from everview.database.runner import Runner
    from everview.types import Schema


class StatementGuard(Protocol):
    """Judges statements of SQL before they are run."""

    def took(self, statement: Statement) -> bool:
        """Whether the statement has been dealt with, and is not to be run; one that may not be raises."""
        ...


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
        self.definitions = self.defined(catalog, assembled)
        self.transactions = Transactions(self)
        self.clock = Clock(self, clock)
        self.attached = Attached(self)
        self.files: dict[str, tuple[Schema, pa.Table]] = {}  # the rows of files that the statement at hand reads
        self.schema = ""  # that of relations whose names have none, as USE says; empty is the default schema
        self.prepared: dict[str, Prepare] = {}  # statements of SQL, by the folded names that PREPARE gave them
        self.follower: StateFollower | None = None  # of the process that writes, if this one only reads
        self.runner: Runner | None = None  # that polls attached sources, if there is one
        self.sealed = False  # whether statements may reach no file and no source
        self.guard: StatementGuard | None = None  # asked before each statement of SQL is run, if there is one
        self._ended = False

    def defined(self, catalog: Catalog, assembled: Assembled) -> Definitions:
        """The definitions to begin with."""
        return Definitions(self, catalog, assembled)

    def require_unsealed(self, what: str) -> None:
        """Refuse what reaches beyond the database if its statements come from elsewhere."""
        if self.sealed:
            raise NotPermitted(
                f"{what} is not for statements that are served: they reach no file and no other system",
                hint="send the rows themselves: INSERT, or what the server takes in",
            )

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
                if self.follower is not None:
                    closing.callback(self.follower.close)
                closing.callback(self.run.close)
                self.telling.listeners.end_all_but(())
            self._ended = True
