"""Prepared statements and portals: what a client keeps on the server under names of its own."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from everview.serve.postgres.commands import DoorCommand, TurnSavepoint, TurnTransaction
from everview.serve.postgres.results import RowSource, SubscribedRows
from everview.serve.postgres.states import ClientError

if TYPE_CHECKING:
    from everview.scalars.expressions import Literal
    from everview.serve.postgres.execution import RunOutcome, SqlStatement

Columns = tuple[tuple[str, int], ...]  # names and OIDs
MOST_KEPT: Final = 10_000  # prepared statements, portals, savepoints of one connection


@dataclass(frozen=True)
class PreparedText:
    """A statement as a client has prepared it: a command of the door, SQL, or nothing at all."""

    text: str
    command: DoorCommand | None = None
    statement: SqlStatement | None = None
    oids: tuple[int, ...] = ()
    query: SqlStatement | None = None  # of a cursor
    told: list[Columns] = field(default_factory=list[Columns], compare=False)  # how it has been described, if it has

    def tell(self, columns: Columns) -> None:
        """Take note of how a client has been told to read the rows."""
        self.told[:] = [columns]

    def require_as_told(self, columns: Columns) -> None:
        """Refuse rows with other columns than a client has been told of, which it would misread."""
        if self.told and self.told != [columns]:
            hint = "prepare the statement again"
            raise ClientError("cached plan must not change result type", "0A000", hint=hint)

    @property
    def empty(self) -> bool:
        """Whether there is no statement in the text."""
        return self.statement is None and self.command is None

    @property
    def ends_failure(self) -> bool:
        """Whether it may run in a transaction that has failed."""
        command = self.command
        ends = isinstance(command, TurnTransaction) and command.kind != "BEGIN"
        return ends or (isinstance(command, TurnSavepoint) and command.kind == "ROLLBACK")


@dataclass(eq=False)
class Portal:
    """A prepared statement with its values, and what is left of its rows once it has run."""

    prepared: PreparedText
    values: tuple[Literal, ...] = ()
    formats: tuple[int, ...] = ()
    outcome: RunOutcome | None = None
    source: RowSource | None = None
    sent: int = 0
    hold: bool = False  # whether the COMMIT of its transaction lets it last
    lasting: bool = False  # until it is closed, or the connection ends
    tag: str | None = None  # once it has come to its end

    def fetch(self, count: int | None, word: str) -> RunOutcome:
        """The next rows of one that has run, as an answer of their own; they are behind then."""
        whole = self.outcome
        if whole is None or whole.rows is None:
            raise ClientError("the cursor has no rows to fetch", "55000")
        rows = whole.rows.slice(self.sent, count)
        self.sent += rows.num_rows
        return replace(whole, tag=f"{word} {rows.num_rows}", rows=rows)

    def close(self) -> None:
        """Follow nothing any more."""
        if isinstance(self.source, SubscribedRows):
            self.source.close()


def require_room(kept: Sized) -> None:
    """Refuse another portal or statement on a connection that keeps very many."""
    if len(kept) >= MOST_KEPT:
        raise ClientError(f"a connection keeps at most {MOST_KEPT:,} of them", "53000", hint="close some")


class KeptByName:
    """The prepared statements and portals of a connection; the empty name is for the one at hand."""

    def __init__(self) -> None:
        self.statements: dict[str, PreparedText] = {}
        self._portals: dict[str, Portal] = {}

    def prepare(self, name: str, prepared: PreparedText) -> None:
        """Keep a statement; only that without a name may be replaced."""
        self.require_new(name)
        require_room(self.statements)
        self.statements[name] = prepared

    def require_new(self, name: str) -> None:
        """Refuse a name that a statement has."""
        if name and name in self.statements:
            raise ClientError(f'prepared statement "{name}" already exists', "42P05")

    def statement(self, name: str) -> PreparedText:
        """The statement of a name."""
        if name not in self.statements:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise ClientError(f"{what} does not exist", "26000")
        return self.statements[name]

    def open(self, name: str, portal: Portal) -> None:
        """Keep a portal; only that without a name may be replaced."""
        if name and name in self._portals:
            raise ClientError(f'cursor "{name}" already exists', "42P03")
        require_room(self._portals)
        self.close(name)
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        """The portal of a name."""
        if name not in self._portals:
            raise ClientError(f'portal "{name}" does not exist', "34000")
        return self._portals[name]

    @property
    def portals(self) -> frozenset[str]:
        """The names of the portals that are open, but for the one at hand."""
        return frozenset(self._portals) - {""}

    def close(self, name: str) -> None:
        """Let go of a portal, if there is one of that name."""
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()

    def close_portals(self) -> None:
        """Let go of all portals."""
        for name in tuple(self._portals):
            self.close(name)

    def end_transaction(self, *, committed: bool) -> None:
        """Let go of all portals but those that outlive their transaction."""
        for name, portal in tuple(self._portals.items()):
            portal.lasting = portal.lasting or (portal.hold and committed)
            if not portal.lasting:
                self.close(name)
