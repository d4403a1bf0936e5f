"""Constraints hold after every tick: what breaks one is refused, and all is as it was before."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import everview as ev
from everview.errors import BrokenConstraint, DefinitionError, DuplicateKey, EverviewError, SqlError, UnknownName

TABLES = """
CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE);
CREATE TABLE child (
  id INT PRIMARY KEY, parent INT REFERENCES parent, code INT, n INT CHECK (n > 0),
  twice INT GENERATED ALWAYS AS (n * 2), CONSTRAINT same CHECK (n < 5 OR code IS NULL), UNIQUE (code, n),
  FOREIGN KEY (code) REFERENCES parent (code)
)
"""
SMALL = some.none() | some.integers(0, 3)
CHANGES = some.lists(
    some.tuples(some.just("parent"), some.sampled_from((1, -1)), some.tuples(some.integers(0, 3), SMALL))
    | some.tuples(
        some.just("child"),
        some.sampled_from((1, -1)),
        some.tuples(some.integers(0, 3), SMALL, SMALL, some.none() | some.integers(0, 6)),
    ),
    min_size=1,
    max_size=4,
)


def holds(parents: dict[int, Any], children: dict[int, Any]) -> bool:
    """Whether all constraints hold, by their definitions."""
    codes = [code for _, code in parents.values() if code is not None]
    pairs = [(code, n) for _, _, code, n, _ in children.values() if code is not None and n is not None]
    return (
        len(codes) == len(set(codes))
        and len(pairs) == len(set(pairs))
        and all(parent is None or parent in parents for _, parent, _, _, _ in children.values())
        and all(code is None or code in codes for _, _, code, _, _ in children.values())
        and all(n is None or (n > 0 and (n < 5 or code is None)) for _, _, code, n, _ in children.values())
    )


@settings(max_examples=40, deadline=None)
@given(some.lists(CHANGES, min_size=1, max_size=8))
def test_as_a_model_says(ticks: list[list[tuple[str, int, Any]]]) -> None:
    db = ev.connect()
    db.sql(TABLES)
    model: dict[str, dict[int, Any]] = {"parent": {}, "child": {}}
    for changes in ticks:
        wanted = {name: dict(rows) for name, rows in model.items()}
        with_rows: dict[str, list[tuple[Any, int]]] = {"parent": [], "child": []}
        for table, sign, values in changes:
            row = values if table == "parent" else (*values, None if values[3] is None else 2 * values[3])
            if sign < 0 and row[0] in wanted[table]:
                with_rows[table].append((wanted[table].pop(row[0]), -1))
            elif sign > 0 and row[0] not in wanted[table]:
                wanted[table][row[0]] = row
                with_rows[table].append((row, 1))
        if holds(wanted["parent"], wanted["child"]):
            told = db.apply(with_rows)
            assert not told
            model = wanted
        else:
            with pytest.raises(BrokenConstraint):
                db.apply(with_rows)
        assert {name: sorted(db.table(name).rows(), key=repr) for name in model} == {
            name: sorted(rows.values(), key=repr) for name, rows in model.items()
        }
    assert db.verify()


def test_they_are_stored(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql(TABLES)
        db.sql("INSERT INTO parent VALUES (1, 7)")
    with ev.connect(tmp_path / "state") as db:
        assert db.views() == []
        with pytest.raises(BrokenConstraint, match="parent = 2 refers to no row of parent"):
            db.sql("INSERT INTO child (id, parent) VALUES (1, 2)")
        db.sql("INSERT INTO child (id, parent, n) VALUES (1, 1, 2)")
        assert db.table("child").rows() == [(1, 1, None, 2, 4)]
        shown = db.sql("SHOW CREATE TABLE child").rows()[0][0]
    other = ev.connect()
    other.sql("CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE)")
    other.sql(shown)
    assert other.sql("SHOW CREATE TABLE child").rows()[0][0] == shown


def test_a_table_like_another_has_all_but_its_rows(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql(TABLES)
        db.sql("CREATE SCHEMA old; CREATE TABLE old.child LIKE CHILD; CREATE TABLE IF NOT EXISTS old.child LIKE parent")
        db.sql("CREATE VIEW v AS SELECT id + 1 AS more, code FROM parent; CREATE TABLE shown LIKE v")
        db.sql("INSERT INTO parent VALUES (1, 7); INSERT INTO old.child (id, parent, n) VALUES (1, 1, 2)")
        written, alike = (db.sql(f"SHOW CREATE TABLE {name}").rows()[0][0] for name in ("child", "old.child"))
        assert alike.replace("old.child", "child", 1) == written
        assert db.table("shown").schema.names == ("more", "code")
        with pytest.raises(BrokenConstraint, match="refers to no row of parent"):
            db.sql("INSERT INTO old.child (id, parent) VALUES (2, 2)")
        for text, said in (("CREATE TABLE x LIKE nothing", '"nothing" does not exist'), ("CREATE TABLE v LIKE v", "v")):
            with pytest.raises(ev.EverviewError, match=said):
                db.sql(text)
        db.sql("CREATE TABLE e (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES, TTL INTERVAL 1 DAY)")
        db.sql("CREATE TABLE f LIKE e; INSERT INTO f VALUES (TIMESTAMP '2030-01-01 00:00:00')")
    with ev.connect(tmp_path / "state") as db:
        db.sql("INSERT INTO f VALUES (TIMESTAMP '2029-01-01 00:00:00')")
        assert (len(db.table("f")), len(db.late("f")), len(db.table("e"))) == (1, 1, 0)
        said = "WATERMARK FOR ts AS ts - INTERVAL 5 MINUTE,\n  TTL INTERVAL 1 DAY"
        assert said in db.sql("SHOW CREATE TABLE f").rows()[0][0]
        assert db.verify()


def test_they_are_checked_when_a_transaction_ends() -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.sql("BEGIN; INSERT INTO child (id, parent) VALUES (1, 1); INSERT INTO parent VALUES (1, NULL); COMMIT")
    with pytest.raises(BrokenConstraint):
        db.sql("BEGIN; DELETE FROM parent; COMMIT")
    with pytest.raises(BrokenConstraint), db.transaction() as tx:
        tx.delete("parent", [1])
    assert db.table("parent").rows() == [(1, None)]
    db.sql("DROP TABLE parent CASCADE")
    db.sql("INSERT INTO child (id, parent) VALUES (2, 99)")


def test_generated_columns_of_rows_from_python() -> None:
    db = ev.connect()
    db.sql(
        "CREATE TABLE g (a INT PRIMARY KEY, b STRING AS (concat('x', a)), c INT NOT NULL GENERATED ALWAYS AS (a + 1))"
    )
    with db.transaction() as tx:
        tx.insert("g", [{"a": 1}, {"a": 2}])
        tx.upsert("g", [{"a": 2}, {"a": 3}])
        tx.insert("g", pa.table({"a": pa.array([4], pa.int32())}))
        tx.insert("g", [(5, "x5", 6)])
    assert sorted(db.table("g").rows()) == [(a, f"x{a}", a + 1) for a in range(1, 6)]
    with pytest.raises(BrokenConstraint, match='column "b" is generated'), db.transaction() as tx:
        tx.insert("g", [(6, "y", 7)])
    assert db.sql("UPDATE g SET a = 9 WHERE a = 1 RETURNING *").rows() == [(9, "x9", 10)]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("CREATE TABLE x (a INT REFERENCES nowhere)", UnknownName, "nowhere"),
        ("CREATE TABLE x (a INT REFERENCES parent (id) ON DELETE CASCADE)", SqlError, "ON DELETE CASCADE"),
        ("CREATE TABLE x (a INT, b INT, FOREIGN KEY (a, b) REFERENCES parent (id, code))", SqlError, "refers to a"),
        ("CREATE TABLE x (a INT, FOREIGN KEY (a, a) REFERENCES parent (id))", SqlError, "2 columns refer to 1"),
        ("CREATE TABLE x (a DATE REFERENCES parent (id))", EverviewError, "equal"),
        ("CREATE TABLE x (a INT CHECK (a > (SELECT max(id) FROM parent)))", SqlError, "a subquery"),
        ("CREATE TABLE x (a DATE CHECK (a > current_date))", SqlError, "the time"),
        ("CREATE TABLE x (a INT CHECK (b > 1))", UnknownName, '"b"'),
        ("CREATE TABLE x (a INT CHECK (a + 1))", EverviewError, "BOOLEAN"),
        ("CREATE TABLE x (a INT, UNIQUE (b))", UnknownName, '"b"'),
        ("CREATE TABLE x (a INT, b INT AS (a), c INT AS (b))", SqlError, "generated from b"),
        ("CREATE TABLE x (a INT GENERATED ALWAYS AS IDENTITY)", SqlError, "IDENTITY"),
        ("CREATE SEQUENCE s", SqlError, "CREATE SEQUENCE"),
        ("INSERT INTO child (id, twice) VALUES (1, 2)", SqlError, "generated"),
        ("UPDATE child SET twice = 1", SqlError, "generated"),
        ("DROP TABLE parent", DefinitionError, "constraint child_parent_fkey of child"),
        ("DROP VIEW `constraint same of child`", DefinitionError, "is no view"),
        ("INSERT INTO parent VALUES (1, 1), (1, 1)", DuplicateKey, "two rows"),
    ],
)
def test_mistakes_are_told(text: str, kind: type[EverviewError], said: str) -> None:
    db = ev.connect()
    db.sql(TABLES)
    with pytest.raises(kind, match=said):
        db.sql(text)


def test_times_have_the_digits_of_their_column() -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, a TIME(3), b TIME(0), c TIME)")
        db.sql(
            "INSERT INTO t VALUES (1, TIME'01:02:03.123', TIME'01:02:03', TIME'01:02:03.123456'), (2, NULL, NULL, NULL)"
        )
        with pytest.raises(BrokenConstraint, match=r"t_b_digits, .* b = TIME '01:02:03\.500000'"):
            db.sql("UPDATE t SET b = TIME'01:02:03.5'")
        with pytest.raises(BrokenConstraint, match="t_a_digits"), db.transaction() as tx:
            tx.insert("t", [(3, dt.time(1, 2, 3, 4), None, None)])
        db.sql("INSERT INTO t VALUES (3, CAST(TIME'01:02:03.999999' AS TIME(3)), NULL, NULL)")
        db.sql("ALTER TABLE t ADD COLUMN d TIME(1)")
        with pytest.raises(BrokenConstraint, match="t_d_digits"):
            db.sql("UPDATE t SET d = c")
        db.sql("DELETE FROM t WHERE id = 1")
        assert db.sql("SELECT a FROM t WHERE id = 3").rows() == [(dt.time(1, 2, 3, 999000),)]
        with pytest.raises(SqlError, match=r"TIME\(3\) inside of a type"):
            db.sql("CREATE TABLE u (s STRUCT<t: TIME(3)>)")


def test_a_broken_check_shows_values_as_sql_writes_them() -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (a BIGINT CHECK (a > 0), d DATE, at TIMESTAMP, s STRING, x DOUBLE)")
        said = r"a = -1, d = DATE '2026-01-02', at = TIMESTAMP '2026-01-02 03:04:05', s = 'it\\'s', x = 1\.5"
        with pytest.raises(BrokenConstraint, match=said):
            db.sql("INSERT INTO t VALUES (-1, DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05', 'it''s', 1.5)")
