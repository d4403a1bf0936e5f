"""A client's place on the server: its session, its settings, its stream, and the task that it waits for."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from everview.errors import EverviewError, StatementCancelled
from everview.serve.postgres import messages as m
from everview.serve.postgres.execution import RunOutcome, SqlStatement, run, run_now
from everview.serve.postgres.states import ClientError
from everview.serve.postgres.system_catalog import SystemCatalog
from everview.types import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everview.database import Database
    from everview.database.catalog import Catalog
    from everview.scalars.expressions import Literal
    from everview.serve.owner import Owner
    from everview.serve.postgres.results import SubscribedRows
    from everview.serve.postgres.settings import SessionSettings
    from everview.serve.postgres.wire import Wire
    from everview.serve.sessions import ClientSession
    from everview.serve.tasks import ServerTask

T = TypeVar("T")
log = logging.getLogger("everview.serve.postgres")


@dataclass(eq=False)
class PgContext:
    """The state that all parts of a conversation share."""

    owner: Owner
    session: ClientSession
    wire: Wire
    settings: SessionSettings
    database: str
    user: str
    process: int
    text: str = ""  # in which errors have their places
    stream: SubscribedRows | None = None  # the last subscription
    _task: ServerTask[Any] | Future[Any] | None = field(default=None)
    _system: SystemCatalog | None = field(default=None)

    # -- work

    async def wait(self, task: ServerTask[T] | Future[T]) -> T:
        """The result of a task of the owner; see `cancel`."""
        self._task = task
        try:
            return await asyncio.wrap_future(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and (current is None or not current.cancelling()):
                raise StatementCancelled("the statement was cancelled", hint="nothing of it counts") from None
            raise
        except EverviewError:
            raise
        except Exception as error:  # noqa: BLE001, the log has it
            raise _inside(error) from None
        finally:
            self._task = None

    def _now(self, work: Callable[[Database], T | None]) -> T | None:
        try:
            return self.session.now(work)
        except EverviewError:
            raise
        except Exception as error:  # noqa: BLE001, the log has it
            raise _inside(error) from None

    async def answer(self, statement: SqlStatement, values: Sequence[Literal]) -> RunOutcome:
        """Run a statement: on a snapshot if it reads only and its transaction has changed nothing."""
        most = self.owner.limits.rows
        reads = statement.reads and not self.changing
        if reads and not self.owner.closing:
            done = self._now(lambda db: run_now(db, statement, values, most))
            if done is not None:
                return done
        method = self.session.read if reads else self.session.write
        return await self.wait(
            method(lambda db: run(db, statement, values, self.system_of, most), seconds=self.settings.seconds)
        )

    def cancel(self) -> None:
        """Stop what runs now, as another connection asks."""
        task, stream = self._task, self.stream
        if task is not None:
            stop = getattr(task, "stop", task.cancel)
            stop()
        if stream is not None:
            stream.cancel()

    @property
    def changing(self) -> bool:
        """Whether the transaction of the session has changed something."""
        return self.session.parked is not None or self.owner.holds(self.session)

    # -- definitions

    @property
    def catalog(self) -> Catalog:
        """The definitions of the last epoch."""
        return self.owner.snapshot.catalog

    def view_schema(self, view: str) -> Schema:
        """The columns of a materialized view."""
        catalog = self.catalog
        return catalog.views[catalog.find_materialized(view)].schema

    def system_of(self, catalog: Catalog) -> SystemCatalog:
        """The system catalog, kept for as long as the definitions and the settings stay."""
        settings = self.settings.all()
        known = self._system
        if known is None or known.catalog is not catalog or known.settings != settings:
            known = SystemCatalog(
                catalog, self.database, self.user, self.process, settings, self._configure, self.session.role
            )
            self._system = known
        return known

    def _configure(self, name: str, value: str, local: bool) -> None:
        self.settings.set(name, value, local=local)

    # -- what is said

    def notice(self, text: str, state: str) -> None:
        """Warn the client."""
        self.wire.put(m.report(b"N", (("S", "WARNING"), ("V", "WARNING"), ("C", state), ("M", text))))


def _inside(error: Exception) -> ClientError:
    """The message to a client about an error that is no user's mistake."""
    if isinstance(error, RecursionError):
        hint = "name the inner parts in a WITH clause, or in views"
        return ClientError("the statement is nested too deeply", "42601", hint=hint)
    log.exception("a statement has failed inside", exc_info=error)
    return ClientError("internal error", "XX000", hint="the server's log says more")
