"""SQL through the database: definitions, changes and queries, and that a directory brings the texts back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview import Database, EverviewError, connect
from everview.errors import (
    BadPattern,
    DefinitionError,
    DuplicateKey,
    NegativeWeight,
    NullNotAllowed,
    SqlError,
    TransactionError,
    UnknownName,
)

SHOP = """
CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING, country STRING DEFAULT 'UK');
CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2));
CREATE TABLE note (account BIGINT, text STRING);
CREATE VIEW abroad AS SELECT id, owner FROM account WHERE country <> 'UK';
CREATE MATERIALIZED VIEW exposure AS
  SELECT a.country, SUM(t.amount) AS total FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country;
INSERT INTO account VALUES (1, 'Ada', 'UK'), (2, 'Bob', 'DE'), (3, 'Cid', 'DE');
INSERT INTO transfer VALUES (1, 1, 2, 10), (2, 2, 3, 2.5), (3, 3, 1, 4);
"""


@pytest.fixture
def db() -> Database:
    db = connect()
    db.sql(SHOP)
    return db


def test_definitions_and_changes(db: Database) -> None:
    assert db.tables() == ["account", "transfer", "note"]
    assert db.views() == ["abroad", "exposure"]
    assert db.epoch == 7, "a tick a statement"
    assert dict(db.view("exposure").rows()) == {"UK": 10, "DE": Decimal("6.50")}
    assert db.sql("INSERT INTO account (owner, id) VALUES ('Dan', 4)") == 1
    assert db.sql("UPDATE account SET country = 'FR' WHERE country = 'DE' AND id > 2") == 1
    assert db.sql("DELETE FROM transfer WHERE src = 1") == 1
    assert db.sql("SELECT * FROM exposure ORDER BY country") == [("DE", Decimal("2.50")), ("FR", Decimal("4.00"))]
    assert db.sql("SELECT owner FROM account WHERE country = 'UK' ORDER BY id") == [("Ada",), ("Dan",)]
    assert db.sql("INSERT INTO account SELECT id + 10, owner, country FROM account") == 4
    assert db.verify()


def test_queries(db: Database) -> None:
    answer = db.sql("SELECT owner AS who, country, id * 2 AS twice FROM account ORDER BY country DESC, id DESC LIMIT 2")
    assert answer == [("Ada", "UK", 2), ("Cid", "DE", 6)]
    assert answer.names == ("who", "country", "twice")
    assert (len(answer), answer[0], answer[-1:]) == (2, ("Ada", "UK", 2), [("Cid", "DE", 6)])
    assert answer.to_arrow().column_names == ["who", "country", "twice"]
    assert list(answer.to_pandas()["twice"]) == [2, 6]
    assert "<td>" in answer._repr_html_()
    assert str(answer).splitlines()[0].split() == ["who", "country", "twice"]
    assert db.sql("SELECT a.owner FROM abroad a JOIN exposure e ON e.total > 5 ORDER BY 1 LIMIT 1") == [("Bob",)]
    assert db.sql("SELECT count(*), sum(amount) FROM transfer WHERE id > 100") == [(0, None)]
    assert db.sql("SELECT 1 + 1") == [(2,)]
    assert db.sql("VALUES (1), (1), (2)").rows() in ([(1,), (1,), (2,)], [(2,), (1,), (1,)])
    assert db.sql("SELECT id FROM account ORDER BY owner = 'Bob' DESC, id")[0] == (2,)
    words = len(db._core.run.dictionary)
    assert db.sql("SELECT concat(owner, ' never seen') FROM account WHERE id = 1") == [("Ada never seen",)]
    assert len(db._core.run.dictionary) == words, "a query leaves nothing behind"


def test_order_of_null_and_nan(db: Database) -> None:
    db.sql("CREATE TABLE d (x DOUBLE)")
    db.apply({"d": [((x,), 1) for x in (1.0, None, float("nan"), -1.0)]})

    def shown(order: str) -> list[str]:
        return [str(x) for (x,) in db.sql(f"SELECT x FROM d ORDER BY x {order}")]

    assert shown("") == ["None", "-1.0", "1.0", "nan"]
    assert shown("DESC") == ["nan", "1.0", "-1.0", "None"]
    assert shown("NULLS LAST") == ["-1.0", "1.0", "nan", "None"]
    assert shown("DESC NULLS FIRST") == ["None", "nan", "1.0", "-1.0"]


def test_recursion_and_views_over_views(db: Database) -> None:
    db.sql("""
      CREATE MATERIALIZED VIEW reach AS
        WITH RECURSIVE r(a, b) AS (
          SELECT src, dst FROM transfer UNION SELECT r.a, t.dst FROM r JOIN transfer t ON t.src = r.b)
        SELECT * FROM r;
      CREATE MATERIALIZED VIEW counted AS SELECT a, count(*) AS n FROM reach GROUP BY a ORDER BY n DESC, a;
    """)
    assert db.view("counted").rows() == [(1, 3), (2, 3), (3, 3)]
    db.sql("DELETE FROM transfer WHERE id = 3")
    assert db.view("counted").rows() == [(1, 2), (2, 1)]
    assert db.view("counted").to_arrow().column("n").to_pylist() == [2, 1]
    assert db.sql("WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT a + 1 FROM r WHERE a < 5) SELECT sum(a) FROM r") == [
        (15,)
    ]
    assert db.verify()


def test_refused_changes_leave_all_as_it_was(db: Database) -> None:
    before = sorted(db.table("account").rows()), db.epoch
    for text, error in (
        ("INSERT INTO account VALUES (1, 'x', 'y')", DuplicateKey),
        ("INSERT INTO account VALUES (9, 'x', 'y'), (9, 'x', 'y')", DuplicateKey),
        ("INSERT INTO account (owner) VALUES ('x')", NullNotAllowed),
        ("INSERT INTO account VALUES (NULL, 'x', 'y')", NullNotAllowed),
        ("UPDATE account SET id = 1", DuplicateKey),
        ("UPDATE account SET id = NULL WHERE id = 1", NullNotAllowed),
        ("INSERT INTO exposure VALUES ('x', 1)", EverviewError),
        ("INSERT INTO account SELECT 1 / 0, 'x', 'y'", EverviewError),
        ("SELECT * FROM acount", UnknownName),
        ("SELEC 1", SqlError),
    ):
        with pytest.raises(error):
            db.sql(text)
        assert (sorted(db.table("account").rows()), db.epoch) == before, text


def test_keys_may_change_places(db: Database) -> None:
    assert db.sql("UPDATE account SET id = 4 - id") == 3
    assert db.sql("SELECT id, owner FROM account ORDER BY id") == [(1, "Cid"), (2, "Bob"), (3, "Ada")]


def test_bags(db: Database) -> None:
    db.sql("INSERT INTO note VALUES (1, 'x'), (1, 'x'), (2, 'y')")
    assert db.sql("SELECT * FROM note WHERE account = 1") == [(1, "x"), (1, "x")]
    assert db.sql("UPDATE note SET text = 'z' WHERE account = 1") == 2
    assert db.sql("DELETE FROM note WHERE text = 'z'") == 2
    assert db.table("note").rows() == [(2, "y")]


def test_transactions(db: Database) -> None:
    epoch = db.epoch
    with db.transaction() as tx:
        db.sql("INSERT INTO account VALUES (7, 'Eve', 'FR')")
        tx.insert("transfer", [(9, 7, 1, 100)])
        db.sql("UPDATE account SET owner = 'Eva' WHERE id = 7")
        assert db.sql("SELECT owner FROM account WHERE id = 7") == [("Eva",)], "SQL sees the changes of tables"
        assert db.sql("SELECT * FROM exposure WHERE country = 'FR'") == [], "and views as they were"
        with pytest.raises(DuplicateKey):
            db.sql("INSERT INTO account VALUES (8, 'x', 'x'), (7, 'x', 'x')")
    assert db.epoch == epoch + 1
    assert db.sql("SELECT total FROM exposure WHERE country = 'FR'") == [(100,)]
    with pytest.raises(KeyError), db.transaction():  # noqa: PT012
        db.sql("DELETE FROM account")
        raise KeyError
    assert len(db.table("account")) == 4


def test_transactions_of_sql(db: Database) -> None:
    epoch = db.epoch
    db.sql("BEGIN; INSERT INTO account VALUES (7, 'Eve', 'FR'); INSERT INTO transfer VALUES (9, 7, 1, 1)")
    with pytest.raises(TransactionError, match="already"):
        db.sql("BEGIN")
    with pytest.raises(TransactionError):
        db.sql("CREATE TABLE x (a INT)")
    db.sql("ROLLBACK")
    assert (db.epoch, len(db.table("account"))) == (epoch, 3)
    db.sql("START TRANSACTION; INSERT INTO account VALUES (7, 'Eve', 'FR'); DELETE FROM transfer; COMMIT")
    assert (db.epoch, db.view("exposure").rows()) == (epoch + 1, [])
    for text in ("COMMIT", "ROLLBACK"):
        with pytest.raises(TransactionError, match="BEGIN"):
            db.sql(text)
    with db.transaction(), pytest.raises(TransactionError):
        db.sql("COMMIT")


def test_merge(db: Database) -> None:
    db.sql("CREATE TABLE news (id BIGINT, owner STRING); INSERT INTO news VALUES (1, 'Adam'), (9, 'Zoe')")
    db.sql("""MERGE INTO account a USING news n ON a.id = n.id
              WHEN MATCHED THEN UPDATE SET owner = n.owner
              WHEN NOT MATCHED THEN INSERT (id, owner) VALUES (n.id, n.owner)""")
    assert db.sql("SELECT id, owner, country FROM account WHERE id IN (1, 9) ORDER BY id") == [
        (1, "Adam", "UK"),
        (9, "Zoe", "UK"),
    ]
    db.sql("INSERT INTO news VALUES (1, 'Twice')")
    with pytest.raises(SqlError, match="several rows"):
        db.sql("MERGE INTO account a USING news n ON a.id = n.id WHEN MATCHED THEN UPDATE SET owner = n.owner")


def test_definitions_that_are_refused(db: Database) -> None:
    before = db.tables(), db.views(), db.epoch
    for text in (
        "CREATE TABLE account (a INT)",
        "CREATE MATERIALIZED VIEW account AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW Exposure AS SELECT 1 AS a",
        "DROP TABLE account",
        "DROP VIEW account",
        "DROP TABLE exposure",
        "CREATE OR REPLACE MATERIALIZED VIEW exposure AS SELECT * FROM exposure",
    ):
        with pytest.raises(DefinitionError):
            db.sql(text)
    with pytest.raises(UnknownName):
        db.sql("DROP VIEW nothing")
    db.sql("DROP VIEW IF EXISTS nothing; CREATE TABLE IF NOT EXISTS account (a INT)")
    assert (db.tables(), db.views(), db.epoch) == before


def test_replaced_views_reach_their_readers(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW who AS SELECT owner FROM abroad")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM who")
    assert db.view("n").rows() == [(2,)]
    db.sql("CREATE OR REPLACE VIEW abroad AS SELECT id, owner FROM account")
    assert db.view("n").rows() == [(3,)]
    with pytest.raises(UnknownName):
        db.sql("CREATE OR REPLACE VIEW abroad AS SELECT id FROM account")
    with pytest.raises(DefinitionError, match="who"):
        db.sql("DROP VIEW abroad")
    db.sql("INSERT INTO account VALUES (5, 'Eve', 'FR')")
    assert db.view("n").rows() == [(4,)]
    assert db.verify()


def test_a_table_from_a_query_and_a_table_anew(db: Database) -> None:
    db.sql("CREATE TABLE copy AS SELECT owner, country FROM account WHERE country = 'DE'")
    assert sorted(db.table("copy").rows()) == [("Bob", "DE"), ("Cid", "DE")]
    db.sql("CREATE OR REPLACE TABLE copy (owner STRING, country STRING)")
    assert db.table("copy").rows() == []


def test_a_table_that_cannot_be_filled_is_not_there(db: Database) -> None:
    with pytest.raises(EverviewError):
        db.sql("CREATE TABLE broken AS SELECT CAST(owner AS BIGINT) AS n FROM account")
    assert "broken" not in db.tables()


def test_who_listens_sees_timestamps_as_rows_show_them(db: Database) -> None:
    db.sql("CREATE TABLE moments (at TIMESTAMP); CREATE MATERIALIZED VIEW seen AS SELECT at FROM moments")
    db.sql("INSERT INTO moments VALUES (TIMESTAMP '2026-01-01 12:00:00')")
    told: list[Any] = []
    db.view("seen").subscribe(lambda changes, _: told.extend(row for row, _ in changes), snapshot=True)
    assert told == db.view("seen").rows() == [(dt.datetime(2026, 1, 1, 12),)]


def test_explain(db: Database) -> None:
    text = db.sql("EXPLAIN SELECT count(*) FROM account WHERE id > 1")
    assert "optimized" in text
    assert "Scan account" in text
    assert "CREATE MATERIALIZED VIEW exposure" in db.explain("exposure")
    assert "AggregateIncremental" in db.explain("exposure")
    assert db.epoch == 7


def test_other_dialects(db: Database) -> None:
    db.sql('CREATE MATERIALIZED VIEW d AS SELECT "owner"::text AS o FROM account', dialect="duckdb")
    assert sorted(db.view("d").rows()) == [("Ada",), ("Bob",), ("Cid",)]


def test_defaults_of_time(tmp_path: Path) -> None:
    with connect(tmp_path / "s") as db:
        db.sql("""CREATE TABLE t (a INT PRIMARY KEY, at TIMESTAMP DEFAULT current_timestamp(),
                                  n DECIMAL(4,1) DEFAULT 1 + 0.5)""")
    with connect(tmp_path / "s") as db:
        db.sql("INSERT INTO t (a) VALUES (1), (2)")
        with db.transaction() as tx:
            tx.insert("t", [{"a": 3}])
            tx.insert("t", pa.table({"a": pa.array([4], pa.int32())}))
        rows = sorted(db.table("t").rows())
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    assert all(now - dt.timedelta(minutes=5) < at <= now and n == Decimal("1.5") for _, at, n in rows)
    assert rows[0][1] == rows[1][1], "one moment a statement"


VIEWS = {
    "by_country": "SELECT country, count(*) AS n, min(owner) AS first FROM account GROUP BY country",
    "totals": """SELECT a.country, sum(t.amount) AS total
                 FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country""",
    "lonely": "SELECT * FROM account a WHERE NOT EXISTS (SELECT 1 FROM transfer t WHERE t.src = a.id)",
    "known": "SELECT a.id, t.amount FROM account a LEFT JOIN transfer t ON t.dst = a.id AND t.amount > 2",
    "counted": "SELECT count(*) AS n, sum(amount) AS s FROM transfer",
    "best": "SELECT id, owner FROM account ORDER BY owner DESC, id LIMIT 2",
    "reach": """WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM transfer UNION
                SELECT r.a, t.dst FROM r JOIN transfer t ON t.src = r.b) SELECT * FROM r""",
    "over": "SELECT country FROM totals WHERE total > 3 UNION SELECT country FROM by_country WHERE n > 1",
    "words": "SELECT upper(concat(owner, '!')) AS w, CASE WHEN id > 2 THEN 'late' ELSE 'early' END AS c FROM account",
}
NEEDS = {"over": ("totals", "by_country")}
ids = st.integers(0, 4)
steps = st.one_of(
    st.tuples(
        st.just("upsert"),
        st.lists(st.tuples(ids, st.sampled_from(["Ada", "Bob", None]), st.sampled_from("xy")), max_size=3),
    ),
    st.tuples(st.just("transfer"), st.lists(st.tuples(ids, ids, ids, st.integers(-2, 5)), max_size=4)),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.just("update"), ids),
    st.tuples(st.just("create"), st.sampled_from(sorted(VIEWS))),
    st.tuples(st.just("create"), st.sampled_from(sorted(VIEWS))),
    st.tuples(st.just("drop"), st.sampled_from(sorted(VIEWS))),
    st.tuples(st.just("reopen"), st.sampled_from(["tick", "none"])),
)


def take(db: Database, what: str, how: Any) -> None:
    match what:
        case "upsert" | "transfer":
            with db.transaction() as tx:
                tx.upsert("account" if what == "upsert" else "transfer", how)
        case "delete":
            db.sql(f"DELETE FROM account WHERE id = {how}")
            db.sql(f"DELETE FROM transfer WHERE dst = {how}")
        case "update":
            db.sql(f"UPDATE transfer SET amount = amount + 1 WHERE src >= {how}")
        case "create":
            for name in (*NEEDS.get(how, ()), how):
                db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        case "drop":
            if how in db.views():
                db.drop(how, cascade=True)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=4, max_size=12), st.sampled_from([1, 1, 2]))
def test_views_are_what_the_oracle_says(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, Any]], shards: int
) -> None:
    path = tmp_path_factory.mktemp("sql") / "s"
    db = connect(path, shards=shards)
    db.sql("""CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING, country STRING);
              CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2))""")
    for what, how in drawn:
        if what == "reopen":
            views, epoch = db.views(), db.epoch
            db.close()
            db = connect(path, durability=how)
            assert (db.views(), db.epoch) == (views, epoch), "what is opened again is not computed again"
        else:
            take(db, what, how)
        db.verify().raise_if_different()
    db.close()


def test_hostile_values(db: Database) -> None:
    for text in ("'; DROP TABLE account; --", "nul \0 here", "\\", '"', "📦" * 1000, ""):
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        db.sql(f"INSERT INTO note VALUES (1, '{escaped}')")
        assert db.table("note").rows() == [(1, text)]
        assert db.sql(f"DELETE FROM note WHERE text = '{escaped}'") == 1
    with pytest.raises(NegativeWeight):
        db.apply({"note": [((1, "gone"), -1)]})


def test_a_view_is_verified_without_the_views_that_it_does_not_read() -> None:
    db = connect()
    db.sql("CREATE TABLE t (s STRING)")
    db.sql(r"CREATE MATERIALIZED VIEW letters AS SELECT regexp_replace(s, '\\pL', '-') AS s FROM t")
    db.sql("CREATE MATERIALIZED VIEW plain AS SELECT s FROM t")
    db.sql("INSERT INTO t VALUES ('aβ')")
    assert db.view("letters").rows() == [("--",)]
    assert db.verify("plain")
    with pytest.raises(BadPattern, match="cannot be judged"):
        db.verify("letters")


@pytest.mark.parametrize("pattern", [r"\Q.\E|x", r"b\z", r"\x{61}", "(?<n>a)b", "[[:alpha:]_]+", "[^[:punct:]]", ""])
def test_patterns_of_re2_are_judged(pattern: str) -> None:
    db = connect()
    db.sql("CREATE TABLE t (s STRING)")
    db.apply({"t": [((text,), 1) for text in ("a.b", "xx", "", "é_a", None, "b\n")]})
    written = pattern.replace("\\", "\\\\")
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT split(s, '{written}') AS a, regexp_like(s, '{written}') AS b FROM t")
    assert db.verify()


def test_an_order_without_what_it_orders_is_a_mistake() -> None:
    db = connect()
    db.sql("CREATE TABLE t (a INT, b INT)")
    with pytest.raises(EverviewError, match="nothing stands before ORDER BY"):
        db.sql("SELECT arg_min(b, ORDER BY a) AS x FROM t", dialect="duckdb")
