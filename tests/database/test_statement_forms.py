"""Statements in the forms that Spark and PostgreSQL have for them, beside those that every dialect has."""

from __future__ import annotations

from pathlib import Path

import pytest

import everview as ev
from everview.errors import EverviewError

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT);
CREATE TABLE s (id INT, x INT);
INSERT INTO t VALUES (1, 2, 3), (2, 4, 5);
INSERT INTO s VALUES (1, 7)
"""


@pytest.fixture
def db() -> ev.Database:
    made = ev.connect()
    made.sql(TABLES)
    return made


def rows(db: ev.Database, text: str, dialect: str = "spark") -> list[tuple[object, ...]]:
    return [*db.sql(text, dialect=dialect).rows()]


def test_a_column_is_added_where_it_is_said(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "db") as db:
        db.sql(TABLES)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, sum(a + b) AS n FROM t GROUP BY id")
        db.sql("ALTER TABLE t ADD COLUMN k INT DEFAULT 9 FIRST")
        db.sql("ALTER TABLE t ADD COLUMNS (g INT GENERATED ALWAYS AS (a * 2) AFTER id, z INT, e STRING AFTER a)")
        assert db.table("t").schema.names == ("k", "id", "g", "a", "e", "b", "z")
        assert {*rows(db, "SELECT * FROM t")} == {(9, 1, 4, 2, None, 3, None), (9, 2, 8, 4, None, 5, None)}
        db.sql("INSERT INTO t (id, a, b) VALUES (3, 5, 6)")
        assert {*db.view("v").rows()} == {(1, 5), (2, 9), (3, 11)}
        with pytest.raises(EverviewError, match="nowhere"):
            db.sql("ALTER TABLE t ADD COLUMN y INT AFTER nowhere")
        db.verify()
    with ev.connect(tmp_path / "db") as db:
        assert (9, 3, 10, 5, None, 6, None) in db.table("t").rows()


def test_a_type_is_changed_by_an_expression(db: ev.Database) -> None:
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE TEXT USING 'n' || (a + b)", dialect="postgres")
    assert {*rows(db, "SELECT id, a FROM t")} == {(1, "n5"), (2, "n9")}


def test_columns_are_set_from_one_row(db: ev.Database) -> None:
    db.sql("UPDATE t SET (a, b) = (SELECT x, x + 1 FROM s WHERE s.id = t.id)", dialect="postgres")
    assert {*rows(db, "SELECT * FROM t")} == {(1, 7, 8), (2, None, None)}
    db.sql("UPDATE t SET (a, b) = ROW(1, 2) WHERE id = 2", dialect="postgres")
    assert (2, 1, 2) in rows(db, "SELECT * FROM t")
    with pytest.raises(EverviewError, match="2 columns and 1 values"):
        db.sql("UPDATE t SET (a, b) = (SELECT x FROM s)")
    db.sql("INSERT INTO s VALUES (1, 8)")
    with pytest.raises(EverviewError):
        db.sql("UPDATE t SET (a, b) = (SELECT x, x FROM s)")


def test_a_conflict_is_named_by_its_constraint(db: ev.Database) -> None:
    db.sql("CREATE TABLE u (id INT PRIMARY KEY, a INT, CONSTRAINT once UNIQUE (a))")
    db.sql("INSERT INTO u VALUES (1, 1)")
    insert = "INSERT INTO u VALUES ({}) ON CONFLICT ON CONSTRAINT {} DO UPDATE SET {}"
    db.sql(insert.format("1, 5", "u_pkey", "a = excluded.a"), dialect="postgres")
    db.sql(insert.format("2, 5", "once", "id = excluded.id"), dialect="postgres")
    assert rows(db, "SELECT * FROM u") == [(2, 5)]
    with pytest.raises(EverviewError, match="key"):
        db.sql(insert.format("2, 5", "twice", "id = 3"), dialect="postgres")


FUNCTIONS = """
spark | (x INT) RETURNS INT LANGUAGE SQL DETERMINISTIC COMMENT 'c' RETURN x + 1
postgres | (x INT) RETURNS INT LANGUAGE SQL AS $$ SELECT x + 1 $$
postgres | (x INT) RETURNS INT AS $$ SELECT x + 1 $$ LANGUAGE SQL IMMUTABLE
postgres | (x INT) RETURNS INT LANGUAGE SQL AS 'SELECT x + 1'
postgres | (x INT) RETURNS INT LANGUAGE SQL AS $$ SELECT max(n) + 1 FROM (VALUES (x)) v(n) $$
""".strip().splitlines()


@pytest.mark.parametrize("line", FUNCTIONS)
def test_a_function_is_written_in_sql(line: str, tmp_path: Path) -> None:
    dialect, text = line.split(" | ")
    with ev.connect(tmp_path / "db") as db:
        db.sql(TABLES)
        db.sql(f"CREATE FUNCTION f{text}", dialect=dialect)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT f(a) AS n FROM t")
        assert {*db.view("v").rows()} == {(3,), (5,)}
    with ev.connect(tmp_path / "db") as db:
        assert rows(db, "SELECT f(1)") == [(2,)]


def test_a_function_of_another_language_is_refused(db: ev.Database) -> None:
    with pytest.raises(EverviewError, match="LANGUAGE"):
        db.sql("CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PLPGSQL AS $$ BEGIN $$", dialect="postgres")


def test_a_function_that_gives_a_table_reads_the_row_beside_it(db: ev.Database) -> None:
    db.sql("CREATE FUNCTION f(y INT) RETURNS TABLE(n INT) RETURN SELECT x + y AS n FROM s WHERE s.id <= y")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT t.id, q.n FROM t, LATERAL f(t.a) AS q")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT t.id, q.n FROM t LEFT JOIN LATERAL f(t.a - 3) AS q ON true")
    assert {*db.view("v").rows()} == {(1, 9), (2, 11)}
    assert {*db.view("w").rows()} == {(1, None), (2, 8)}
    db.sql("INSERT INTO s VALUES (3, 1); DELETE FROM t WHERE id = 1")
    assert {*db.view("v").rows()} == {(2, 11), (2, 5)}
    db.verify()


def test_a_view_is_given_another_query(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "db") as db:
        db.sql(TABLES)
        db.sql("CREATE VIEW p AS SELECT id FROM t; CREATE MATERIALIZED VIEW k COMMENT 'kept' AS SELECT id FROM t")
        db.sql("ALTER VIEW p AS SELECT a FROM t; ALTER VIEW k AS SELECT sum(a) AS n FROM t")
        assert {*rows(db, "SELECT * FROM p")} == {(2,), (4,)}
        db.sql("INSERT INTO t VALUES (3, 1, 1)")
        assert [*db.view("k").rows()] == [(7,)]
        with pytest.raises(EverviewError, match="nowhere"):
            db.sql("ALTER VIEW nowhere AS SELECT 1")
        with pytest.raises(EverviewError, match="create the view under it"):
            db.sql("ALTER VIEW p RENAME TO q")
    with ev.connect(tmp_path / "db") as db:
        assert [*db.view("k").rows()] == [(7,)]


def test_comments_come_and_go(db: ev.Database) -> None:
    db.sql("CREATE VIEW v COMMENT 'a view' AS SELECT 1 AS a; COMMENT ON COLUMN t.a IS 'x'")
    comments = "SELECT comment FROM information_schema.tables WHERE table_name = 'v'"
    assert rows(db, comments) == [("a view",)]
    assert rows(db, "SHOW TBLPROPERTIES v") == [("comment", "a view")]
    assert rows(db, "DESCRIBE t a") == [("col_name", "a"), ("data_type", "INTEGER"), ("comment", "x")]
    db.sql("COMMENT ON VIEW v IS NULL; COMMENT ON COLUMN t.a IS NULL")
    assert rows(db, comments) == [(None,)]
    assert rows(db, "SHOW TBLPROPERTIES v") == []
    assert rows(db, "DESCRIBE TABLE t a")[2] == ("comment", "NULL")


def test_what_is_there_is_shown_and_described(db: ev.Database) -> None:
    db.sql("CREATE SCHEMA more; CREATE FUNCTION f(x INT) RETURNS INT RETURN x")
    assert rows(db, "SHOW CATALOGS") == [("everview",)]
    assert rows(db, "SHOW CURRENT SCHEMA") == [("everview", "default")]
    db.sql("USE more")
    assert rows(db, "SHOW CURRENT NAMESPACE") == [("everview", "more")]
    assert rows(db, "DESCRIBE SCHEMA more") == [("Catalog Name", "everview"), ("Namespace Name", "more")]
    assert rows(db, "DESCRIBE FUNCTION f")[1] == ("Usage: CREATE FUNCTION f(x INT) RETURNS INT RETURN x",)
    assert "upper(text)" in str(rows(db, "DESCRIBE FUNCTION upper"))
    assert "aggregate" in str(rows(db, "DESCRIBE FUNCTION max_by"))
    for text in ("DESCRIBE SCHEMA none", "DESCRIBE FUNCTION uper", "DESCRIBE t nothing"):
        with pytest.raises(EverviewError, match="does not exist"):
            db.sql(f"USE default; {text}")


def test_information_schema_has_keys_references_and_checks(db: ev.Database) -> None:
    db.sql("CREATE TABLE c (k INT, n INT CHECK (n > 0), CONSTRAINT r FOREIGN KEY (k) REFERENCES t (id), UNIQUE (k, n))")
    usage = rows(db, "SELECT * FROM information_schema.key_column_usage")
    assert {*usage} == {
        ("default", "t", "t_pkey", "id", 1, None),
        ("default", "c", "r", "k", 1, 1),
        ("default", "c", "c_k_n_key", "k", 1, None),
        ("default", "c", "c_k_n_key", "n", 2, None),
    }
    references = rows(
        db, "SELECT constraint_name, unique_constraint_name FROM information_schema.referential_constraints"
    )
    assert references == [("r", "t_pkey")]
    assert rows(db, "SELECT * FROM information_schema.check_constraints") == [("default", "c_n_check", "n > 0")]


def test_a_table_and_a_view_are_made_with_data(db: ev.Database) -> None:
    db.sql("CREATE TABLE made AS SELECT a FROM t WITH DATA", dialect="postgres")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM made WITH DATA", dialect="postgres")
    assert [*db.view("v").rows()] == [(6,)]
    with pytest.raises(EverviewError, match="WITH NO DATA"):
        db.sql("CREATE TABLE none AS SELECT a FROM t WITH NO DATA", dialect="postgres")


@pytest.mark.parametrize(
    "text",
    ["SELECT nextval('q')", "CREATE SEQUENCE q", "DROP SEQUENCE q", "CREATE TABLE n (id INT DEFAULT nextval('q'))"],
)
def test_sequences_are_refused_with_a_way_out(db: ev.Database, text: str) -> None:
    with pytest.raises(EverviewError, match="number the rows where they come from"):
        db.sql(text, dialect="postgres")
    with pytest.raises(EverviewError, match="give the numbers"):
        db.sql("CREATE TABLE n (id SERIAL)", dialect="postgres")
