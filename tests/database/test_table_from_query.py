"""Tables made with their first rows: all of it or nothing, whatever stands under their name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import everview as ev
from everview.errors import DefinitionError, DuplicateKey, EverviewError, NullNotAllowed, SqlError, UnknownName
from everview.sources import Memory

ROWS = [(1, "x"), (2, "y")]


@pytest.fixture(params=["memory", "disk"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ev.Database]:
    with ev.connect() if request.param == "memory" else ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, b STRING); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        yield db


def held(db: ev.Database) -> list[tuple[object, ...]]:
    return sorted(db.table("t").rows())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TABLE t AS SELECT 5 AS q", DefinitionError),
        ("CREATE OR REPLACE TABLE t (PRIMARY KEY (a)) AS SELECT 1 AS a UNION ALL SELECT 1", DuplicateKey),
        ("CREATE OR REPLACE TABLE t (PRIMARY KEY (a)) AS SELECT NULL AS a", NullNotAllowed),
        ("CREATE OR REPLACE TABLE t (PRIMARY KEY (q)) AS SELECT 1 AS a", UnknownName),
        ("CREATE OR REPLACE TABLE t (PRIMARY KEY (a), PRIMARY KEY (a)) AS SELECT 1 AS a", SqlError),
        ("CREATE OR REPLACE TABLE t (a INT PRIMARY KEY) AS SELECT 1 AS a", SqlError),
        ("CREATE OR REPLACE TABLE t (a) AS SELECT 1 AS b", SqlError),
    ],
)
def test_a_table_that_cannot_be_made_leaves_the_one_of_its_name(
    db: ev.Database, text: str, error: type[EverviewError]
) -> None:
    with pytest.raises(error):
        db.sql(text)
    assert held(db) == ROWS
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t; INSERT INTO t VALUES (3, 'z')")
    assert db.view("n").rows() == [(3,)]
    with pytest.raises(DuplicateKey):
        db.sql("INSERT INTO t VALUES (1, 'again')")
    assert db.verify()


def test_a_frame_for_a_name_that_is_taken(db: ev.Database) -> None:
    with pytest.raises(DefinitionError):
        db.create_table("t", pa.table({"a": [1]}))
    assert held(db) == ROWS


def test_a_view_of_the_name_stays(db: ev.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    with pytest.raises(DefinitionError):
        db.sql("CREATE TABLE v AS SELECT 1 AS a")
    with pytest.raises(DefinitionError):
        db.attach("v", Memory("id BIGINT", "id", [(1,)]))
    with pytest.raises(DefinitionError):
        db.sql("CREATE OR REPLACE TABLE t AS SELECT 5 AS q")
    assert sorted(db.view("v").rows()) == [(1,), (2,)]
    assert held(db) == ROWS


def test_a_table_replaced_by_other_columns(db: ev.Database) -> None:
    db.sql("CREATE OR REPLACE TABLE t AS SELECT a + 6 AS c FROM t")
    assert held(db) == [(7,), (8,)]
    db.sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (s)) AS SELECT concat('k', c) AS s FROM t")
    assert held(db) == [("k7",), ("k8",)]
    with pytest.raises(DuplicateKey):
        db.sql("INSERT INTO t VALUES ('k7')")


@pytest.mark.parametrize(
    "text",
    ["CREATE OR REPLACE TABLE t AS SELECT a + 6 AS c, concat('new ', b) AS d FROM t", "CREATE TABLE u AS FROM t"],
)
def test_a_kill_before_any_write_leaves_all_of_it_or_nothing(tmp_path: Path, text: str) -> None:
    """What a killed process leaves is what has been written until then: a copy of the directory at every operation."""
    copies: list[Path] = []

    def copy(operation: str, path: Path) -> None:
        copies.append(tmp_path / f"copy {len(copies)}")
        shutil.copytree(tmp_path / "state", copies[-1])

    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, b STRING); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        before = {name: sorted(db.table(name).rows()) for name in db.tables()}
        durable = db._core.run.durable
        assert durable is not None
        durable.store._files.announce = copy
        epoch = db.epoch
        db.sql(text)
        assert db.epoch == epoch + 1
        copy("end", tmp_path)
        durable.store._files.announce = lambda operation, path: None
        after = {name: sorted(db.table(name).rows()) for name in db.tables()}
    found: list[dict[str, list[tuple[object, ...]]]] = []
    for path in copies:
        (path / "lock").unlink(missing_ok=True)
        with ev.connect(path) as killed:
            found.append({name: sorted(killed.table(name).rows()) for name in killed.tables()})
            assert killed.verify()
    count = found.index(after)
    assert count > 3
    assert found == [before] * count + [after] * (len(found) - count)
