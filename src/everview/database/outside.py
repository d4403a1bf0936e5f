"""What a transaction changes in sources that are attached and not kept, beside what it changes in tables.

Sources are written and all views over them are made ready before the tick, which may still be refused; they are
committed after it. Two systems are not committed in one: should a source refuse then, the tick has happened. Views
over sources show what these hold in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.runtimes.pull import PullPipeline, SourceTransaction
from everview.runtimes.pull.turn import StagedTransaction


class Outside:
    """Changes of sources under way; nothing begins before the first of them."""

    def __init__(self, pipeline: PullPipeline) -> None:
        self._pipeline = pipeline
        self._under: StagedTransaction | None = None

    @property
    def changes(self) -> SourceTransaction:
        """What is to change."""
        if self._under is None:
            self._under = self._pipeline.begin()
        return self._under.changes

    def savepoint(self) -> Mapping[str, Any]:
        """What is to change so far."""
        return {} if self._under is None else self._under.changes.savepoint()

    def back_to(self, savepoint: Mapping[str, Any]) -> None:
        """Forget what came after."""
        if self._under is not None:
            self._under.changes.back_to(savepoint)

    def stage(self) -> None:
        """Write to the sources, and make ready all views over them; what cannot be raises."""
        if self._under is not None:
            self._under.stage()

    def commit(self) -> None:
        """It all counts."""
        if self._under is not None:
            self._under.commit()
            self._under = None

    def end(self) -> None:
        """What has not been committed by now does not count."""
        if self._under is not None:
            self._under.rollback()
            self._under = None
