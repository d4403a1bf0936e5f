"""Changes that a transaction makes in sources that are attached and not kept, beside its changes of tables.

Before the tick, which may still be refused, the sources are written and all views over them are made ready; after
the tick the sources are committed. Two systems do not commit as one: should a source refuse its commit, the tick has
happened all the same. Views over sources always show what the sources hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everview.runtimes.pull import PullPipeline, SourceTransaction
    from everview.runtimes.pull.turn import StagedTransaction


class Outside:
    """Changes of sources in an open transaction; turns of sources begin with the first change."""

    def __init__(self, pipeline: PullPipeline) -> None:
        self._pipeline = pipeline
        self._under: StagedTransaction | None = None
        self.alive = True  # until `end`: then whoever comes next undoes what an exception has left begun

    @property
    def changes(self) -> SourceTransaction:
        """The changes so far."""
        if self._under is None:
            self._under = self._pipeline.begin(self)
        return self._under.changes

    def savepoint(self) -> Mapping[str, Any]:
        """The changes so far, to come back to."""
        return {} if self._under is None else self._under.changes.savepoint()

    def back_to(self, savepoint: Mapping[str, Any]) -> None:
        """Forget the changes since a savepoint."""
        if self._under is not None:
            self._under.changes.back_to(savepoint)

    def stage(self) -> None:
        """Write to the sources, and make ready all views over them; raises if a source refuses."""
        if self._under is not None:
            self._under.stage()

    def commit(self) -> None:
        """Commit the changes in all sources."""
        if self._under is not None:
            self._under.commit()
            self._under = None

    def end(self) -> None:
        """Roll back what has not been committed."""
        if self._under is not None:
            self._under.rollback()
            self._under = None
        self.alive = False
