"""ALTER TABLE changes a table, its rows and its constraints, all or nothing, and views that can go on do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import BrokenConstraint, CastFailure, DefinitionError, EverviewError, NullNotAllowed, UnknownName

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b STRING);
CREATE TABLE c (id INT, t INT REFERENCES t);
INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'); INSERT INTO c VALUES (1, 1);
CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t;
CREATE VIEW plain AS SELECT a + 1 AS a FROM t;
CREATE MATERIALIZED VIEW w AS SELECT s * 2 AS s2 FROM v JOIN plain ON plain.a = 11
"""


def made(path: Path | None = None) -> ev.Database:
    db = ev.connect(path)
    if not db.tables():
        db.sql(TABLES)
    return db


def rows(db: ev.Database, table: str = "t") -> list[Any]:
    return db.sql(f"SELECT * FROM {table} ORDER BY ALL").rows()


def test_a_column_comes_and_goes_while_views_go_on(tmp_path: Path) -> None:
    db, told = made(tmp_path / "state"), list[Any]()
    db.view("v").subscribe(lambda changes, epoch: told.extend(changes))
    db.sql("ALTER TABLE t ADD COLUMN z BIGINT DEFAULT 5, ADD COLUMN g INT AS (a * 2)")
    db.sql("ALTER TABLE t DROP COLUMN b")
    assert rows(db) == [(1, 10, 5, 20), (2, 20, 5, 40)]
    assert told == []
    db.sql("INSERT INTO t (id, a) VALUES (3, 30)")
    assert sorted(told) == [((30,), -1), ((60,), 1)]
    db.close()
    with made(tmp_path / "state") as db:
        assert rows(db)[2] == (3, 30, 5, 60)
        assert (db.view("v").rows(), db.view("w").rows()) == ([(60,)], [(120,)])
        assert db.verify()


def test_columns_are_renamed_with_what_names_them() -> None:
    db = made()
    db.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (b < 'z' AND id > 0)")
    db.sql("ALTER TABLE t RENAME COLUMN b TO `a b`")
    db.sql("ALTER TABLE t RENAME COLUMN id TO key")
    with pytest.raises(BrokenConstraint, match="few"):
        db.sql("INSERT INTO t VALUES (3, 1, 'z')")
    with pytest.raises(BrokenConstraint, match=r"t \(key\)"):
        db.sql("INSERT INTO c VALUES (2, 3)")
    db.sql("ALTER TABLE c RENAME TO d")
    with pytest.raises(BrokenConstraint):
        db.sql("INSERT INTO d VALUES (2, 3)")
    assert db.tables() == ["t", "d"]
    assert db.verify()


def test_types_defaults_and_nulls() -> None:
    db = made()
    db.sql("DROP VIEW v CASCADE; DROP VIEW plain")
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(10, 2); ALTER TABLE t ALTER COLUMN b SET DEFAULT 'new'")
    db.sql("ALTER TABLE t ALTER COLUMN a SET NOT NULL; INSERT INTO t (id, a) VALUES (3, 1.5)")
    assert [str(value) for value in rows(db)[2]] == ["3", "1.50", "new"]
    with pytest.raises(CastFailure):
        db.sql("ALTER TABLE t ALTER COLUMN b TYPE INT")
    with pytest.raises(NullNotAllowed):
        db.sql("INSERT INTO t (id) VALUES (4)")
    db.sql("ALTER TABLE t ALTER COLUMN a DROP NOT NULL; ALTER TABLE t ALTER COLUMN b DROP DEFAULT")
    db.sql("INSERT INTO t (id) VALUES (4)")
    with pytest.raises(NullNotAllowed):
        db.sql("ALTER TABLE t ALTER COLUMN a SET NOT NULL")
    assert rows(db)[3] == (4, None, None)


def test_keys_and_constraints_are_added_if_rows_keep_them() -> None:
    db = made()
    db.sql("ALTER TABLE c ADD PRIMARY KEY (id); ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)")
    for wrong in (
        "ADD CONSTRAINT p CHECK (a > 10)",
        "ADD COLUMN q INT DEFAULT 1 CHECK (q > 1)",
        "ADD COLUMN q INT NOT NULL",
    ):
        with pytest.raises(EverviewError):
            db.sql(f"ALTER TABLE t {wrong}")
    assert db.sql("DESCRIBE t").rows()[-1][0] == "b"
    with pytest.raises(BrokenConstraint):
        db.sql("INSERT INTO t VALUES (3, 10, NULL)")
    db.sql("ALTER TABLE t DROP CONSTRAINT u; INSERT INTO t VALUES (3, 10, NULL)")
    with pytest.raises(BrokenConstraint, match="two rows would have a = 10"):
        db.sql("ALTER TABLE t ADD UNIQUE (a)")
    assert db.verify()


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("ALTER TABLE t DROP COLUMN a", DefinitionError, "v reads it"),
        ("ALTER TABLE t RENAME COLUMN a TO e", DefinitionError, "drop or replace v first"),
        ("ALTER TABLE t RENAME TO u", DefinitionError, "read it by its name"),
        ("ALTER TABLE t DROP COLUMN id", DefinitionError, "a part of the key"),
        ("ALTER TABLE t ADD COLUMN A INT", DefinitionError, '"A" already'),
        ("ALTER TABLE t RENAME COLUMN b TO a", DefinitionError, '"a" already'),
        ("ALTER TABLE t DROP COLUMN nope", UnknownName, "nope"),
        ("ALTER TABLE t DROP CONSTRAINT nope", UnknownName, "nope"),
        ("ALTER TABLE c DROP COLUMN t", DefinitionError, "constraint c_t_fkey reads"),
        ("ALTER TABLE v ADD COLUMN x INT", EverviewError, "not a table"),
        ("ALTER VIEW v RENAME TO x", EverviewError, "ALTER VIEW"),
        ("ALTER TABLE nope ADD COLUMN x INT", UnknownName, "nope"),
    ],
)
def test_mistakes_change_nothing(text: str, kind: type[EverviewError], said: str) -> None:
    db = made()
    with pytest.raises(kind, match=said):
        db.sql(text)
    assert rows(db) == [(1, 10, "x"), (2, 20, "y")]
    db.sql("ALTER TABLE IF EXISTS nope ADD COLUMN x INT; ALTER TABLE t DROP COLUMN IF EXISTS nope")
