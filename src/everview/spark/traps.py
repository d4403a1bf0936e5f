"""Warnings of what would go unnoticed: changes that come late, deletes that are forgotten, files that are not read.

Each is told once in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from everview.runtimes.spark.engine import Engine
from everview.runtimes.tables import MOST_DELETES, TOMBSTONES
from everview.spark.bound import GIVEN, STATIC, BoundSource
from everview.spark.kafka import OFFSET
from everview.spark.paths import is_over_files
from everview.spark.spec import SourceSpec

log = logging.getLogger("everview.spark")
MANY_DELETES = MOST_DELETES // 2  # on a shard: what is left of them when the oldest have gone


class Traps:
    """The warnings of a pipeline."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()  # what was looked at, and of which source

    def order(self, spec: SourceSpec) -> None:
        """Warn of an order that a user has given and rows do not keep."""
        if spec.order not in (None, OFFSET) and spec.keyed and spec.row_order is None and spec.changes != "snapshot":
            log.warning(
                'source %s: its rows do not keep "%s", so that orders the changes of one epoch only: '
                "a change that comes in a later epoch is taken for the newest of its key",
                *(spec.name, spec.order),
            )

    def deletes(self, engine: Engine) -> None:
        """Warn when so many deletes are remembered that the oldest go, or will."""
        for name, table in engine.run.tables.items():
            if table.tombstones and ("deletes", name) not in self._seen and _most_deletes(engine, name) >= MANY_DELETES:
                self._seen.add(("deletes", name))
                log.warning(
                    "source %s: a shard remembers %d deletes or more; of more than %d the oldest are forgotten, "
                    "and a change that comes later than such a delete brings its row back",
                    *(name, MANY_DELETES, MOST_DELETES),
                )

    def read_once(
        self, sources: Mapping[str, BoundSource], offsets: Mapping[str, Any], given: Collection[str] = ()
    ) -> None:
        """Warn of frames over files that were read, and whose later files are not."""
        read, told = offsets.get(STATIC, ()), {*offsets.get(GIVEN, ()), *given}
        for name, bound in sources.items():
            if name not in read or name in told or bound.again or bound.streaming or ("files", name) in self._seen:
                continue
            self._seen.add(("files", name))
            if is_over_files(bound.frame):
                log.warning(
                    "source %s: its batch frame was read, and is not read again; files that came later are not seen: "
                    "p.source(…, path=…, format=…) follows them, and refresh(%s=frame) takes new rows",
                    *(name, name),
                )


def _most_deletes(engine: Engine, source: str) -> int:
    """The most deletes that a shard may remember of a source, without reading them."""
    node, slices = engine.program.table(source + TOMBSTONES), engine.store.manifest.slices
    assert node is not None, "a table that remembers deletes has another one for them"
    name, shards = engine.program.names[node], range(engine.program.shards)
    return max(sum(entry.ref.rows for entry in slices.get((name, shard), ())) for shard in shards)
