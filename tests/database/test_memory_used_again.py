"""What was handed out stays what it was, while merges of large changes use the memory of replaced batches again."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import everview as ev
from everview.database.snapshots import snapshot_of
from everview.traces import pages
from everview.traces.spine import LARGE
from everview.types.words import Matrix

ROWS, TICKS = LARGE + 4_000, 9
T = "id BIGINT NOT NULL, k BIGINT NOT NULL"


def _copied(table: pa.Table) -> pa.Table:
    """The table in memory of its own."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(out.getvalue()).read_all()


class Held:
    """Tables and matrices of words, each with a copy that was made at once."""

    def __init__(self) -> None:
        self._tables: list[tuple[pa.Table, pa.Table]] = []
        self._matrices: list[tuple[Matrix, Matrix]] = []

    def table(self, table: pa.Table) -> None:
        self._tables = [*self._tables[-8:], (table, _copied(table))]

    def batch(self, batch: ev.Batch) -> None:
        self.table(batch.to_arrow())
        self._matrices = [*self._matrices[-8:], (batch.rows, batch.rows.copy())]

    def is_unchanged(self) -> bool:
        same = all(table.equals(copy) for table, copy in self._tables)
        return same and all((matrix == copy).all() for matrix, copy in self._matrices)


def _database() -> ev.Database:
    db = ev.connect()
    db.create_table("t", T)
    db.sql("CREATE MATERIALIZED VIEW by_k AS SELECT k, id FROM t WHERE k > 0")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT k % 20000 AS g, count(*) AS n FROM t GROUP BY k % 20000")
    return db


def _change(random: np.random.Generator, gone: pa.Table | None) -> pa.Table:
    """New rows, and most of those of another change taken back."""
    ids, k = random.integers(0, 1 << 40, ROWS), random.integers(-3, 1 << 30, ROWS)
    new = pa.table({"id": ids, "k": k, "_weight": np.ones(ROWS, np.int64)})
    if gone is None:
        return new
    taken = gone.filter(pc.greater(gone["_weight"], 0)).slice(0, ROWS - 2_000)
    minus = taken.set_column(2, "_weight", pc.negate(taken["_weight"]))
    return pa.concat_tables([new, minus])


def _expected(changes: list[pa.Table]) -> pa.Table:
    """What the view by k holds after some changes."""
    sums = pa.concat_tables(changes).group_by(["k", "id"]).aggregate([("_weight", "sum")])
    return sums.filter((pc.field("k") > 0) & (pc.field("_weight_sum") != 0)).select(["k", "id"])


def _sorted(table: pa.Table) -> pa.Table:
    return pa.table(table.sort_by([("k", "ascending"), ("id", "ascending")]).to_pydict())


def _fork_sees(held: Held) -> bool:
    """Whether a forked process still finds all as it was after this one has used memory again."""
    begin, go_on = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        os._exit(0 if held.is_unchanged() else 1)
    for _ in range(3):
        pages.untouched(ROWS * 4, 3)[:] = -1
    os.write(go_on, b".")
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_was_handed_out_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    used_again, taken = list[bool](), pages._taken

    def counted(size: int) -> Any:
        region = taken(size)
        used_again.append(region is not None)
        return region

    monkeypatch.setattr(pages, "_taken", counted)
    random, db, other, held, changes = np.random.default_rng(4), _database(), _database(), Held(), list[pa.Table]()
    db.view("by_k").subscribe(lambda change, *_: held.batch(change))

    def beside() -> None:
        """Let another thread merge large changes, too."""
        their = np.random.default_rng(5)
        for _ in range(TICKS):
            other.apply({"t": _change(their, None)})

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        for tick in range(TICKS):
            changes.append(_change(random, changes[tick - 2] if tick % 3 == 2 else None))
            for change in db.apply({"t": changes[-1]}).values():
                held.batch(change)
            held.table(db.view("by_k").to_arrow())
            held.batch(db.view("counts").contents())
            if tick == 3:
                snapshot = snapshot_of(db)
                then = _copied(snapshot.reader().view("by_k").to_arrow())
            if tick == TICKS // 2:
                assert _fork_sees(held)
            assert held.is_unchanged()
    finally:
        thread.join()
    assert any(used_again)
    assert snapshot.reader().view("by_k").to_arrow().equals(then)
    assert _sorted(db.view("by_k").to_arrow()).equals(_sorted(_expected(changes)))
