"""Holdings: the contents of the relations of a database now, and the answers of plans over them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes import decode
from everview.later import Later
from everview.plan.node import Plan
from everview.runtimes.embedded.once import PlannedAnswer
from everview.types import Schema, unknown_name
from everview.zset.batch import Batch
from everview.zset.shown import as_changes

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.files import file_contents
    from everview.database.past import past_rows
else:
    file_contents = Later("everview.database.files", "file_contents")
    past_rows = Later("everview.database.past", "past_rows")

MANY_ROWS: Final = 10_000  # of a table; for views over smaller ones no sizes are looked at


class Holdings:
    """The readable side of a database: contents of tables and materialized views, and answers computed from them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def now(self, name: str) -> Batch:
        """The contents of a table or a materialized view; the caller holds the lock and has called `Access.ready`."""
        run, relations = self._core.run, self._core.definitions.relations
        if name in relations:
            return as_changes(relations[name].rows(run.state))
        if name in run.views:
            return as_changes(run.views[name].held())
        raise unknown_name("relation", name, [*relations, *run.views])

    def contents_of(self, name: str) -> Batch:
        """The contents of a table or a materialized view, each row with its weight."""
        with self._core.still:
            self._core.access.ready()
            return self.now(name)

    def contents_now(self, name: str) -> Batch:
        """The contents of a relation; of a table, with what the open transaction has changed so far."""
        tx, relations = self._core.access.open, self._core.definitions.relations
        if name in self._core.files:
            return file_contents(self._core, name)
        if name not in relations and " VERSION AS OF " in name and (past := past_rows(self._core, name)) is not None:
            return past
        if tx is not None and name in relations:
            return tx.contents(relations[name])
        return self.contents_of(name)

    def sizes_of(self, names: Iterable[str]) -> dict[str, int]:
        """Approximate sizes of tables; none if all are small, because then any plan will do."""
        with self._core.still:
            self._core.access.ready()
            run, relations = self._core.run, self._core.definitions.relations
            sizes = {name: relations[name].stored_rows(run.state) for name in sorted(names) if name in relations}
        return sizes if max(sizes.values(), default=0) >= MANY_ROWS else {}

    def stored_rows(self, name: str) -> int:
        """The number of stored rows of a table or a materialized view, with rows that cancel each other."""
        run, relations = self._core.run, self._core.definitions.relations
        if name in relations:
            return relations[name].stored_rows(run.state)
        node = run.views[name].node
        return 0 if node is None else sum(len(trace.past) for trace in run.state.of(node))

    def schema_of(self, name: str) -> Schema:
        """The columns of a relation."""
        self._core.access.settle()
        relations = self._core.catalog.relations
        if name not in relations:
            raise unknown_name("relation", name, relations)
        return relations[name].schema

    def answered(self, plan: Plan) -> tuple[pa.Table, NDArray[np.int64]]:
        """The rows of a plan now, and their weights; nothing of the answer stays in the database."""
        return self.answered_by(PlannedAnswer(plan))

    def answered_by(self, planned: PlannedAnswer) -> tuple[pa.Table, NDArray[np.int64]]:
        """The rows of a plan that is kept for later answers, and their weights; see `answered`."""
        core = self._core
        with core.still:
            core.access.ready()
            core.access.require_open()
            mark = core.run.dictionary.mark()
            try:
                rows = planned.run(self.contents_now, core.run.dictionary, core.run.bounds)
                return decode(rows.schema, rows.rows[:, :-1], rows.dictionary), rows.weights
            finally:
                core.run.dictionary.rollback(mark)
