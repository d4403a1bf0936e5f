"""A new view over tables that hold rows: it starts from the traces of the tables, of which it reads what it needs."""

from __future__ import annotations

import re
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pytest

import everview as ev
from everview.circuit.nodes import Apply
from everview.kernels import large
from everview.kernels.threads import at_most
from everview.runtimes.embedded import walk
from everview.runtimes.embedded.hydrate import PassingCells
from everview.types import Schema
from everview.types.words import Matrix

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, a STRING, n INT NOT NULL, m DECIMAL(9, 2))"
ROWS = [((i, "even" if i % 2 == 0 else None, i % 3, Decimal(i)), 1) for i in range(30)]


def loaded() -> ev.Database:
    db = ev.connect()
    db.sql(TABLE)
    db.apply({"t": ROWS})
    return db


VIEWS = {
    "projected": "SELECT n, a FROM t",
    "same": "SELECT * FROM t",
    "indexed": "SELECT t.m, u.m AS other FROM t JOIN t AS u ON t.n = u.n",
    "summed": "SELECT a, sum(m) AS s, count(*) AS c FROM t GROUP BY a",
    "different": "SELECT DISTINCT n FROM t",
    "chosen": "SELECT id, m FROM t WHERE n = 1",
    "first": "SELECT m, id FROM t ORDER BY m DESC LIMIT 3",
    "computed": "SELECT n + 1 AS k, m * 2 AS d FROM t WHERE m * 3 > 9 AND a IS NULL",
    "texts": "SELECT a || 'x' AS x, upper(a) AS y FROM t WHERE n < 2",
    "known": "SELECT a, sum(n) AS s FROM t WHERE a = 'even' AND n IN (0, 2) GROUP BY a",
    "none": "SELECT id + 1 AS i FROM t WHERE n = 77",
    "both": "SELECT id FROM t WHERE n = 1 UNION ALL SELECT id FROM t WHERE m > 20",
    "outer": "SELECT t.id, u.id AS other FROM t LEFT JOIN (SELECT * FROM t WHERE n = 2) AS u ON t.m = u.m + 1",
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [1, 7, walk.BLOCK])
def test_a_view_over_rows_is_the_view_that_they_came_to(name: str, threads: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patched, at_most(threads):
        patched.setattr(walk, "BLOCK", block)
        patched.setattr(large, "LARGE", 5 if block < 100 else large.LARGE)
        patched.setattr(large, "MANY", 5 if block < 100 else large.MANY)
        _compare(name)


def _compare(name: str) -> None:
    db, other = loaded(), ev.connect()
    db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
    other.sql(TABLE)
    other.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
    other.apply({"t": ROWS})
    found, expected = (sorted(each.view("v").to_arrow().to_pylist(), key=str) for each in (db, other))
    assert found == expected
    change = {"t": [((1, None, 1, Decimal(1)), -1)]}
    assert db.apply(change)["v"].to_arrow() == other.apply(change)["v"].to_arrow()


@pytest.mark.parametrize("name", VIEWS)
def test_rows_that_words_do_not_suffice_for(name: str) -> None:
    with patch.object(walk.Computed, "write", lambda *_: -1):
        _compare(name)


def test_steps_that_are_not_written_are_counted() -> None:
    db = loaded()
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, m FROM t WHERE n = 1")
    lines = [line for line in db.explain("v").splitlines() if "steps 1" in line]
    assert [int(re.findall(r"rows (\d+)", line)[0]) for line in lines] == [30, 10, 10, 10, 10]


def test_columns_that_no_view_reads_are_not_copied() -> None:
    db = loaded()
    widths: list[int] = []

    def seen(rows: Matrix, columns: Matrix, out: Matrix) -> None:
        widths.append(len(columns))
        project_into(rows, columns, out)

    project_into = walk.project_into
    with patch.object(walk, "project_into", seen):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT n, sum(m) AS s FROM t GROUP BY n")
    assert widths == [2]


def test_an_error_shows_the_row_as_its_table_has_it() -> None:
    db = loaded()
    with pytest.raises(ev.EverviewError, match=r"the row of t: id=3, a=None, n=0, m="):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, 7 DIV n AS q FROM t WHERE id > 2")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    assert len(db.view("v").to_arrow()) == 30


def test_a_stream_goes_when_the_last_reader_has_taken_it() -> None:
    rows = np.zeros((1, 2), np.int64)
    cells = PassingCells({1: 2, 2: 1})
    cells.update({1: rows, 2: rows, 3: rows})
    assert cells.get(1) is rows
    assert cells.get(1) is rows
    assert 1 not in cells
    assert cells.get(2) is rows
    assert 2 not in cells
    assert cells.get(3) is cells.get(3) is rows
    assert cells.get(4) is None


def test_a_projection_of_a_projection_takes_the_words_of_the_trace() -> None:
    circuit = ev.Circuit()
    whole = circuit.source("t", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL"))
    turned = whole.select("c", "b", "a")
    last = turned.select("a")
    steps = [circuit[stream.id] for stream in (turned, last)]
    recipe: walk.Recipe | None = walk.Taken(np.arange(3))
    for step in steps:
        assert isinstance(step, Apply)
        assert recipe is not None
        recipe = walk.fused(step.operator, recipe, {})
    assert isinstance(recipe, walk.Taken)
    assert recipe.columns.tolist() == [0]
