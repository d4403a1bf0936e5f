"""Name spaces, functions of SQL, comments, and what is defined, as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import DefinitionError, EverviewError, SqlError, UnknownName, WrongType


def rows(db: ev.Database, text: str) -> list[Any]:
    return db.sql(text).rows()


def test_schemas_are_stored(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE SCHEMA sales; CREATE SCHEMA IF NOT EXISTS Sales; CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        db.sql(
            "CREATE TABLE sales.t (id INT PRIMARY KEY, t INT REFERENCES default.t); INSERT INTO main.t VALUES (1, 2)"
        )
        db.sql("CREATE MATERIALIZED VIEW sales.v AS SELECT count(*) AS n FROM sales.t JOIN t AS u ON t.t = u.id")
        db.sql("INSERT INTO sales.t VALUES (7, 1)")
    with ev.connect(tmp_path / "state") as db:
        assert rows(db, "SHOW SCHEMAS") == [("default",), ("sales",)]
        assert rows(db, "SELECT sales.t.id FROM SALES.t") == [(7,)]
        assert db.view("sales.v").rows() == [(1,)]
        with pytest.raises(DefinitionError, match=r"schema sales holds sales\.t, sales\.v"):
            db.sql("DROP SCHEMA sales")
        db.sql("DROP SCHEMA sales CASCADE; DROP SCHEMA IF EXISTS sales")
        assert (db.tables(), db.views()) == (["t"], [])


def test_what_is_defined(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY COMMENT 'key', a INT DEFAULT 5, b INT AS (a + 1)) COMMENT 'whole'")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t; CREATE VIEW p AS SELECT 1 AS one")
        db.sql("COMMENT ON COLUMN t.a IS 'it''s'; COMMENT ON VIEW v IS 'kept'; COMMENT ON TABLE t IS ''")
    with ev.connect(tmp_path / "state") as db:
        assert rows(db, "SHOW TABLES") == [("default", name, False) for name in ("p", "t", "v")]
        assert rows(db, "SHOW TABLES LIKE 'T|p*'") == [("default", "p", False), ("default", "t", False)]
        assert rows(db, "SHOW VIEWS") == [("default", "p", False, False), ("default", "v", False, True)]
        assert rows(db, "SHOW COLUMNS IN t") == [("id",), ("a",), ("b",)]
        assert rows(db, "DESCRIBE t") == [
            ("id", "INTEGER", False, "key"), ("a", "INTEGER", True, "it's"), ("b", "INTEGER", True, None)
        ]  # fmt: skip
        assert rows(db, "DESCRIBE SELECT id + 1L AS x FROM t") == [("x", "BIGINT", False, None)]
        assert rows(db, "SHOW FUNCTIONS LIKE 'abs'") == [("abs",)]
        said = "SELECT table_name, table_type, comment FROM information_schema.tables ORDER BY 1"
        kinds = [("p", "VIEW", None), ("t", "BASE TABLE", None), ("v", "MATERIALIZED VIEW", "kept")]
        assert rows(db, said) == kinds
        said = "SELECT column_name, column_default, is_generated, generation_expression FROM information_schema.columns"
        columns = [("id", None, "NEVER", None), ("a", "5", "NEVER", None), ("b", None, "ALWAYS", "a + 1")]
        assert rows(db, f"{said} WHERE table_name = 't' ORDER BY ordinal_position") == columns
        assert rows(db, "SHOW CREATE TABLE v") == [("CREATE MATERIALIZED VIEW v AS SELECT a FROM t",)]


FUNCTIONS = """
CREATE TABLE t (id INT, a INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL);
CREATE FUNCTION more(x INT, y INT DEFAULT 3) RETURNS BIGINT RETURN x + y;
CREATE FUNCTION greatest_to(k INT) RETURNS INT RETURN (SELECT max(a) FROM t WHERE id <= k);
CREATE FUNCTION twice_more(x INT) RETURN more(more(x), x);
CREATE FUNCTION up_to(n INT) RETURNS TABLE (id INT) RETURN SELECT id, a FROM t WHERE id <= n;
CREATE FUNCTION odd(n INT) RETURNS TABLE (id BIGINT) RETURN SELECT id FROM range(1, n + 1, 2);
CREATE MATERIALIZED VIEW v AS SELECT id, more(a, id) AS m, greatest_to(id) AS g, twice_more(id) AS w FROM t
"""


def test_functions_are_expanded_and_stored(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql(FUNCTIONS)
        assert rows(db, "SELECT more(1), more(1, 2), more(y => 10, x => 5)") == [(4, 3, 15)]
        assert rows(db, "SELECT more(CAST(sum(a) AS INT)), sum(more(a, 1)) FROM t") == [(33, 32)]
        assert rows(db, "SELECT id FROM up_to(1 + 1) AS u ORDER BY id") == [(1,), (2,)]
        assert rows(db, "SELECT * FROM odd(2 + 3) UNION ALL SELECT * FROM odd(NULL)") == [(1,), (3,), (5,)]
        assert db.view("v").rows() == [(1, 11, 10, 5), (2, 22, 20, 7), (3, None, 20, 9)]
    with ev.connect(tmp_path / "state") as db:
        told: list[Any] = []
        db.view("v").subscribe(lambda changes, epoch: told.extend(changes))
        db.sql("CREATE OR REPLACE FUNCTION more(x INT, y INT DEFAULT 3) RETURNS BIGINT RETURN x * y")
        assert sorted(weight for _, weight in told) == [-1, -1, -1, 1, 1, 1]
        db.sql("INSERT INTO t VALUES (4, 5)")
        assert rows(db, "SELECT * FROM v WHERE id IN (1, 4) ORDER BY 1") == [(1, 10, 10, 3), (4, 20, 20, 48)]
        assert db.verify()
        assert rows(db, "SELECT routine_name FROM information_schema.routines ORDER BY 1")[0] == ("greatest_to",)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("SELECT more()", SqlError, 'was not given "x"'),
        ("SELECT more(1, 2, 3)", SqlError, "3 arguments"),
        ("SELECT more(1, z => 2)", UnknownName, '"z"'),
        ("SELECT more(x => 1, 2)", SqlError, "by place follows"),
        ("SELECT more(1, x => 2)", SqlError, "given twice"),
        ("SELECT more('a', DATE '2020-01-01')", WrongType, "more"),
        ("SELECT up_to(1)", SqlError, "gives a table"),
        ("SELECT * FROM more(1)", SqlError, "gives a value"),
        ("SELECT * FROM t, LATERAL (SELECT * FROM up_to(t.id))", EverviewError, "t"),
        ("CREATE FUNCTION abs(x INT) RETURN x", SqlError, "is a function of SQL"),
        ("CREATE FUNCTION more(x INT) RETURN x", DefinitionError, "already"),
        ("CREATE FUNCTION bad(x INT) RETURN x + nope", UnknownName, "nope"),
        ("CREATE FUNCTION bad(x INT, X INT) RETURN x", SqlError, "two parameters"),
        ("CREATE FUNCTION bad(x INT) RETURN bad(x)", UnknownName, "bad"),
        ("CREATE TEMPORARY FUNCTION bad(x INT) RETURN x", SqlError, "TEMPORARY"),
        ("DROP FUNCTION more", DefinitionError, "called by twice_more"),
        ("DROP FUNCTION greatest_to", DefinitionError, "view v calls greatest_to"),
        ("DROP FUNCTION nope", UnknownName, "nope"),
        ("SELECT * FROM nope.t", UnknownName, 'schema "nope"'),
        ("CREATE SCHEMA main", SqlError, "already"),
        ("SELECT * FROM information_schema.nope", UnknownName, "nope"),
        ("CREATE VIEW i AS SELECT * FROM information_schema.tables", SqlError, "information_schema in a view"),
        ("COMMENT ON COLUMN t.nope IS 'x'", UnknownName, "nope"),
        ("SHOW GRANTS", SqlError, "SHOW TABLES"),
    ],
)
def test_mistakes_are_told(text: str, kind: type[EverviewError], said: str) -> None:
    db = ev.connect()
    db.sql(FUNCTIONS)
    with pytest.raises(kind, match=said):
        db.sql(text)


def test_names_without_a_schema_are_of_the_one_in_use(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE SCHEMA sales; CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        db.sql("USE sales; CREATE TABLE t (a INT PRIMARY KEY, b STRING COMMENT 'text'); INSERT INTO t VALUES (2, 'x')")
        assert rows(db, "SELECT current_schema() AS s, t.a, sales.t.b FROM `t`") == [("sales", 2, "x")]
        db.sql("CREATE TABLE child (t INT REFERENCES t)")
        with pytest.raises(EverviewError, match=r"refers to no row of sales\.t"):
            db.sql("INSERT INTO child VALUES (3)")
        db.sql("""
            CREATE MATERIALIZED VIEW v AS
            WITH q AS (SELECT a FROM t), t2 AS (SELECT * FROM q)
            SELECT t.a, t.b, other.a AS c FROM t2 JOIN t USING (a) LEFT JOIN main.t AS other ON other.a = t.a - 1
            WHERE t.a IN (SELECT a FROM t)
        """)
        assert rows(db, "SHOW COLUMNS IN t") == [("a",), ("b",)]
        assert rows(db, "DESCRIBE t")[1][3] == "text"
        assert rows(db, "SELECT * FROM v") == [(2, "x", 1)]
        with pytest.raises(UnknownName, match=r"line 1, column 27"):
            db.sql("SELECT * FROM t WHERE 1 = nope")
        db.sql("USE SCHEMA default; UPDATE sales.t SET b = 'y'; DELETE FROM t")
        assert rows(db, "SELECT current_database() AS s") == [("default",)]
    with ev.connect(tmp_path / "state") as db:  # a view means what it meant, whatever is in use
        db.sql("USE sales")
        db.sql("INSERT INTO t VALUES (1, 'z')")
        assert db.view("sales.v").rows() == [(1, "z", None), (2, "y", None)]
        db.verify()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("USE nope", 'schema "nope" does not exist'),
        ("USE CATALOG c", "USE CATALOG is not supported"),
        ("USE sales; SELECT * FROM t", r'table or view "sales\.t" does not exist'),
        ("USE sales; CREATE VIEW v AS SELECT current_schema() AS s", r"current_schema\(\) in a view"),
        ("USE sales; DROP SCHEMA sales; SELECT * FROM t", 'schema "sales" does not exist'),
        ("DESCRIBE HISTORY t", "DESCRIBE HISTORY is not supported"),
    ],
)
def test_what_use_refuses(text: str, said: str) -> None:
    with ev.connect() as db:
        db.sql("CREATE SCHEMA sales; CREATE TABLE t (a INT)")
        with pytest.raises(EverviewError, match=said):
            db.sql(text)


def test_functions_are_of_the_default_schema_whatever_is_in_use() -> None:
    with ev.connect() as db:
        db.sql("CREATE SCHEMA sales; CREATE TABLE t (a INT); CREATE TABLE sales.t (a INT); INSERT INTO t VALUES (5)")
        db.sql("USE sales; CREATE FUNCTION most() RETURN (SELECT max(a) FROM t)")
        assert rows(db, "SELECT most()") == [(5,)]
        assert rows(db, "USE main; SELECT most()") == [(5,)]
        assert rows(db, "SHOW USER FUNCTIONS") == [("most",)]
        assert ("most",) not in rows(db, "SHOW SYSTEM FUNCTIONS")
