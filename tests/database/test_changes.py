"""INSERT, UPDATE, DELETE and MERGE in all their forms, beside DuckDB where it has them."""

from __future__ import annotations

from typing import Any

import pytest

import everview as ev
from empty_duckdb import empty_duckdb
from everview.errors import DuplicateKey, SqlError

SETUP = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 7, b VARCHAR)",
    "CREATE TABLE s (id INT, a INT, b VARCHAR)",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, NULL), (3, NULL, 'z')",
    "INSERT INTO s VALUES (2, 200, 'two'), (3, 300, NULL), (4, 400, 'four')",
)
BOTH = [
    "INSERT INTO t VALUES (4, DEFAULT, 'd') RETURNING *",
    "INSERT INTO t (id) VALUES (5) RETURNING a + 1 AS more, id",
    "INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING RETURNING id",
    "INSERT INTO t SELECT * FROM s ON CONFLICT (id) DO UPDATE SET a = excluded.a + coalesce(t.a, 0) RETURNING *",
    "INSERT INTO t SELECT * FROM s ON CONFLICT (id) DO UPDATE SET b = excluded.b WHERE t.a > 15 RETURNING id, b",
    "INSERT OR REPLACE INTO t SELECT * FROM s RETURNING *",
    "INSERT OR IGNORE INTO t SELECT * FROM s RETURNING *",
    "UPDATE t SET a = a + 1, b = DEFAULT WHERE a > 5 RETURNING *",
    "UPDATE t SET a = s.a, b = s.b FROM s WHERE s.id = t.id RETURNING t.id, t.a, t.b",
    "DELETE FROM t WHERE a IS NULL RETURNING id",
    "DELETE FROM t USING s WHERE s.id = t.id AND s.a > 250 RETURNING t.id",
    "DELETE FROM t RETURNING id",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.b IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a "
    "WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, s.b)",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN DO NOTHING",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = t.a + 1",
]


@pytest.mark.parametrize("text", BOTH)
def test_as_in_duckdb(text: str) -> None:
    db, duck = ev.connect(), empty_duckdb()
    for statement in SETUP:
        db.sql(statement, dialect="duckdb")
        duck.execute(statement)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT b, sum(a) AS a, count(*) AS n FROM t GROUP BY b")
    given, expected = db.sql(text, dialect="duckdb"), duck.execute(text).fetchall()
    if " RETURNING " in text:
        assert sorted(given.rows(), key=repr) == sorted(expected, key=repr)
    else:
        assert [(given,)] == expected
    for query in ("SELECT * FROM t", "SELECT b, sum(a)::BIGINT, count(*) FROM t GROUP BY b"):
        held = duck.execute(query).fetchall()
        now = db.table("t").rows() if query.endswith("t") else db.view("v").rows()
        assert sorted(now, key=repr) == sorted(held, key=repr)


def rows(text: str, *before: str) -> Any:
    db = ev.connect()
    for statement in (*SETUP, *before):
        db.sql(statement)
    db.sql(text)
    return db.sql("SELECT * FROM t ORDER BY id").rows()


def test_what_spark_has_and_duckdb_has_not() -> None:
    assert rows("INSERT OVERWRITE t SELECT * FROM s WHERE id > 3") == [(4, 400, "four")]
    assert rows("TRUNCATE TABLE t") == []
    text = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert rows(text) == [
        (1, 10, "x"), (2, 200, "two"), (3, 300, None), (4, 400, "four")
    ]  # fmt: skip
    assert rows("UPDATE t SET (a, b) = (1, upper(b))")[0] == (1, 1, "X")
    assert rows("MERGE INTO t USING s ON false WHEN NOT MATCHED AND s.id = 4 THEN INSERT VALUES (4, DEFAULT, 'd')")[
        -1
    ] == (4, 7, "d")
    db = ev.connect()
    db.sql("CREATE TABLE d (a INT DEFAULT 3, b STRING)")
    assert db.sql("INSERT INTO d DEFAULT VALUES RETURNING *").rows() == [(3, None)]
    assert db.sql(
        "MERGE INTO d USING (SELECT 3 AS a) AS q ON d.a = q.a WHEN MATCHED THEN DELETE RETURNING a"
    ).rows() == [(3,)]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("INSERT INTO s VALUES (1, 2, 'x') ON CONFLICT DO NOTHING", SqlError, "no key"),
        ("INSERT INTO t VALUES (1, 2, 'x') ON CONFLICT (a) DO NOTHING", SqlError, "these are no key"),
        ("INSERT INTO t VALUES (8, 2, 'x'), (8, 3, 'y') ON CONFLICT DO NOTHING", DuplicateKey, "two rows"),
        ("INSERT INTO t VALUES (1, 2, 'x'), (1, 3, 'y') ON CONFLICT (id) DO UPDATE SET a = 1", SqlError, "several"),
        ("INSERT OVERWRITE t VALUES (1, 2, 'x') ON CONFLICT DO NOTHING", SqlError, "OVERWRITE"),
        ("INSERT INTO t VALUES (9, 2, 'x') RETURNING sum(a)", SqlError, "RETURNING of more"),
        ("UPDATE t SET a = q.a FROM (VALUES (1, 1), (1, 2)) AS q(id, a) WHERE q.id = t.id", SqlError, "several rows"),
        ("UPDATE t SET (a, b) = (1)", SqlError, "SET"),
        ("MERGE INTO t USING (SELECT 1 AS id) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *", SqlError, '"a"'),
        ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", SqlError, "without a row"),
    ],
)  # fmt: skip
def test_mistakes_change_nothing(text: str, kind: type[Exception], said: str) -> None:
    db = ev.connect()
    for statement in SETUP:
        db.sql(statement)
    with pytest.raises(kind, match=said):
        db.sql(text)
    assert len(db.table("t").rows()) == 3


def test_merge_into_a_table_with_arrays_says_which_row_several_change() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, a ARRAY<INT>); INSERT INTO t VALUES (1, array(1)), (2, array(2))")
    with pytest.raises(SqlError, match="several rows of the source change one row of t"):
        db.sql("MERGE INTO t USING t AS s ON true WHEN MATCHED THEN DELETE")
    assert db.sql("MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE") == 2


def test_returning_reads_the_rows_of_from_and_using_as_in_postgresql() -> None:
    db = ev.connect()
    for statement in SETUP:
        db.sql(statement)
    db.sql("ALTER TABLE t ADD COLUMN g INT GENERATED ALWAYS AS (a * 2)")
    updated = "UPDATE t SET a = q.a FROM (SELECT id, a FROM s WHERE id < 3) AS q WHERE q.id = t.id RETURNING "
    assert db.sql(updated + "t.id, q.a + 1, g, q.id").rows() == [(2, 201, 400, 2)]
    assert db.sql(updated + "*").rows() == [(2, 200, None, 400)]
    assert db.sql(updated + "*", dialect="postgres").rows() == [(2, 200, None, 400, 2, 200)]
    deleted = "DELETE FROM t USING s WHERE s.id >= t.id AND s.id < 4 AND t.id > 1 RETURNING "
    with pytest.raises(SqlError, match="several rows of the source change one row of t"):
        db.sql(deleted + "t.id, s.b")
    assert sorted(db.sql(deleted.replace(">=", "=") + "t.id, s.b").rows()) == [(2, "two"), (3, None)]
    assert db.sql(deleted + "t.id").rows() == []
    assert len(db.table("t").rows()) == 1
