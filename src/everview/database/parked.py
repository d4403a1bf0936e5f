"""Parked transactions: the changes of one that is to go on later, as rows, so that others can have their turn.

A transaction of SQL holds the database until it ends. Whoever serves several sessions parks it when another one wants
to change something, and resumes it with the session's next statement. Should others have changed the same rows
meanwhile, resuming is refused: `ConflictingChange`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes import decode
from everview.errors import ConflictingChange, DefinitionError, EverviewError, UnknownName

if TYPE_CHECKING:
    from everview.database.core import Core


@dataclass(frozen=True, slots=True)
class ParkedChanges:
    """The changes of a transaction so far: of each table the rows, and how often each comes or goes."""

    tables: Mapping[str, tuple[pa.Table, NDArray[np.int64]]]


def park(core: Core) -> ParkedChanges:
    """End the open transaction of SQL without letting it count, and return its changes."""
    with core.still:
        tx = core.access.open
        assert tx is not None and tx.by_sql, "a transaction of SQL is open"
        tx.settle()
        tables: dict[str, tuple[pa.Table, NDArray[np.int64]]] = {}
        for name in tx.changing:
            relation = core.definitions.relations[name]
            whole = np.concatenate(tx.pending(relation))  # shards have no row in common
            rows = decode(relation.stored, np.ascontiguousarray(whole[:, :-1]), core.run.dictionary)
            tables[name] = rows.select(list(relation.schema.names)), whole[:, -1].copy()
        core.transactions.rollback()
        return ParkedChanges(tables)


def resume(core: Core, parked: ParkedChanges) -> None:
    """Begin a transaction of SQL with the changes that were parked."""
    core.transactions.begin()
    try:
        tx = core.access.open
        assert tx is not None, "it has just begun"
        for name, (rows, weights) in parked.tables.items():
            tx.exchange_rows(name, (rows, weights))
    except EverviewError as error:
        core.transactions.rollback()
        if isinstance(error, DefinitionError | UnknownName):
            raise
        raise ConflictingChange(
            f"another transaction has changed the same rows: {error.message}",
            hint="nothing of this one counts; begin it again",
        ) from error
