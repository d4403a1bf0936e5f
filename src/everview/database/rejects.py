"""Tables for rows that cannot be taken: each row with its file, its line and the reason.

Such a table is one like all others: a view may count its rows, and whoever has put them right deletes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everview.database.definitions import TableDefinition
from everview.errors import DefinitionError, DuplicateKey
from everview.sources.files import REJECTS

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction


def prepare_rejects(core: Core, feed: Any) -> None:
    """Make the table for a feed's refused rows, unless the feed names none or it exists."""
    name = getattr(feed, "rejects", None)
    if name is not None:
        make_rejects(core, name)


def make_rejects(core: Core, name: str) -> None:
    """Make the table of rejected rows, unless it exists."""
    known = core.catalog.tables.get(name)
    if known is None:
        core.definitions.define_table(TableDefinition.of(name, REJECTS))
    elif known.schema != REJECTS or known.fed:
        raise DefinitionError(
            f'table "{name}" is ({known.schema}), not one for rows that cannot be taken',
            hint=f"give another name; its columns are {', '.join(REJECTS.names)}",
        )


def insert_fitting(tx: OpenTransaction, table: str, rows: Any) -> list[tuple[int, str]]:
    """Insert the rows whose keys are not there, found by halves; gives the numbers of the others, and the reasons."""
    refused, waiting = list[tuple[int, str]](), [(0, rows.num_rows)]
    while waiting:
        start, count = waiting.pop()
        try:
            tx.insert(table, rows.slice(start, count))
        except DuplicateKey as error:
            if count == 1:
                refused.append((start, error.message))
                continue
            half = count // 2
            waiting += [(start + half, count - half), (start, half)]
    return refused
