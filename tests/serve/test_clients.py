"""Clients of PostgreSQL, the real ones, on one server: psql, psycopg, asyncpg and SQLAlchemy."""

from __future__ import annotations

import asyncio
import datetime as dt
import shutil
import subprocess
import threading
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql as psql_names
from psycopg.rows import dict_row
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from serving import server_process

SQL = """
CREATE TABLE shop (id INT PRIMARY KEY, name STRING NOT NULL, city STRING);
CREATE TABLE sale (
  id BIGINT PRIMARY KEY, shop INT REFERENCES shop (id), amount DECIMAL(10, 2) NOT NULL DEFAULT 1.5, at TIMESTAMP,
  CHECK (amount > 0));
CREATE TABLE kinds (
  b BOOLEAN, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, n DECIMAL(38, 10), s STRING, y BINARY, d DATE,
  t TIMESTAMP, p TIMESTAMP_NTZ, a ARRAY<BIGINT>);
INSERT INTO shop VALUES (1, 'one', 'Ulm'), (2, 'two', NULL);
INSERT INTO sale VALUES (1, 1, 2.50, TIMESTAMP '2024-05-06 07:08:09'), (2, 1, 1.25, NULL), (3, 2, 7, NULL);
CREATE MATERIALIZED VIEW totals AS
  SELECT name, sum(amount) AS total, count(*) AS n FROM sale JOIN shop ON sale.shop = shop.id GROUP BY name;
CREATE VIEW plain AS SELECT id FROM shop;
"""
UTC = dt.UTC
SLOW = """
WITH RECURSIVE t (n) AS (SELECT 1 UNION SELECT n + 1 FROM t CROSS JOIN range(2000) AS r WHERE n < 5000)
SELECT max(n) FROM t
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a server in a process of its own: some calls of clients do not let other threads run."""
    script = tmp_path_factory.mktemp("clients") / "made.sql"
    script.write_text(SQL)
    with server_process(script, "--port", 0) as (_, _, port):
        yield f"postgresql://ada@127.0.0.1:{port}/everview"


@pytest.fixture
def client(url):
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def said_by_psql(url, *commands, check=True):
    """The output of psql, its errors with it."""
    words = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(
        [shutil.which("psql"), "-X", url, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout + done.stderr


# -- psql


def cases(name):
    """The cases of a file: a command, and the output after a line of dashes; an empty line between two."""
    text = (Path(__file__).parent / name).read_text()
    return [tuple(case.strip("\n").split("\n----\n")) for case in text.split("\n====\n") if case.strip()]


def test_psql(url):
    told = cases("psql.txt")
    marks = [word for number, (command, _) in enumerate(told) for word in (f"\\echo @{number}", command)]
    parts = said_by_psql(url, *marks).split("@")[1:]
    found = {int(part.partition("\n")[0]): part.partition("\n")[2] for part in parts}
    for number, (command, output) in enumerate(told):
        assert [line.rstrip() for line in found[number].strip("\n").split("\n")] == output.split("\n"), command


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "SELECT\n  nope FROM shop",
            ['ERROR:  column "nope" does not exist', "LINE 2:   nope FROM shop", "          ^"],
        ),
        ("SELECT 1; SELEC 2", ["ERROR:", "LINE 1: SELECT 1; SELEC 2", "^"]),
        ("INSERT INTO shop VALUES (1, 'x', NULL)", ["two rows with id = 1", "HINT:"]),
    ],
)
def test_psql_shows_where_an_error_is(url, text, lines):
    said = said_by_psql(url, text, check=False)
    assert all(line in said for line in lines), said


def test_psql_copies_in_both_directions(url, tmp_path):
    (tmp_path / "rows.csv").write_text('id,name,city\n50,"a, b",\n51,c,""\n')
    said = said_by_psql(
        url,
        f"\\copy shop FROM '{tmp_path / 'rows.csv'}' WITH (FORMAT csv, HEADER)",
        f"\\copy (SELECT * FROM shop WHERE id >= 50 ORDER BY id) TO '{tmp_path / 'out.csv'}' CSV HEADER",
        "COPY (SELECT id, city FROM shop WHERE id >= 50 ORDER BY id) TO STDOUT",
        "DELETE FROM shop WHERE id >= 50",
    )
    assert said == "COPY 2\nCOPY 2\n50\t\\N\n51\t\nDELETE 2\n"
    assert (tmp_path / "out.csv").read_text() == 'id,name,city\n50,"a, b",\n51,c,""\n'


# -- queries that other tools send


def test_catalog_queries_of_tools(client):
    told = cases("catalog_queries.txt")
    for text, count in told:
        least = int(count.split()[-1])
        rows = client.execute(text).fetchall()
        assert len(rows) >= least, (text, rows)


# -- psycopg


@pytest.mark.parametrize("binary", [False, True])
def test_values_of_every_type_go_in_and_come_back(client, binary):
    row = (
        True, 7, -8, 9**18, 0.5, 1e300, Decimal("-1234567890.0000000001"), "ä'\\ \t\n", b"\0\xff",
        dt.date(1999, 12, 31), dt.datetime(2024, 5, 6, 7, 8, 9, 12345, UTC), dt.datetime(1960, 1, 1), [1, None, -3],
    )  # fmt: skip
    cursor = client.cursor(binary=binary)
    cursor.execute("DELETE FROM kinds")
    mark = "%b" if binary else "%t"
    for values in (row, (None,) * 13):
        cursor.execute(f"INSERT INTO kinds VALUES ({', '.join([mark] * 13)})", values)
    assert cursor.execute("SELECT * FROM kinds ORDER BY i4 NULLS LAST").fetchall() == [row, (None,) * 13]
    query = f"SELECT i4 FROM kinds WHERE n = {mark} AND d <= {mark} AND s LIKE {mark}"
    assert cursor.execute(query, (row[6], row[9], "ä%")).fetchall() == [(-8,)]


def broken(connection):
    connection.execute("INSERT INTO sale VALUES (10, 10, 5, NULL)")
    connection.execute("SELECT * FROM nowhere")


def test_a_transaction_is_one_tick(client, url):
    with psycopg.connect(url) as other:
        other.execute("INSERT INTO shop VALUES (10, 'ten', 'Bonn')")
        other.execute("INSERT INTO sale VALUES (10, 10, 5, NULL)")
        assert other.execute("SELECT amount FROM sale WHERE id = 10").fetchall() == [(5,)]
        assert client.execute("SELECT * FROM totals WHERE name = 'ten'").fetchall() == []
        with pytest.raises(psycopg.errors.UniqueViolation):
            other.execute("INSERT INTO sale VALUES (10, 10, 6, NULL)")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            other.execute("SELECT 1")
        other.rollback()
        assert other.execute("SELECT * FROM shop WHERE id = 10").fetchall() == []
        with other.transaction():
            other.execute("INSERT INTO shop VALUES (10, 'ten', 'Bonn')")
            with pytest.raises(psycopg.errors.UndefinedTable), other.transaction():  # a savepoint
                broken(other)
        other.commit()
    assert client.execute("SELECT count(*) FROM sale WHERE id = 10").fetchone() == (0,)
    assert client.execute("DELETE FROM shop WHERE id = 10").rowcount == 1


@pytest.mark.parametrize(
    ("text", "state", "place"),
    [
        ("SELECT * FROM nowhere", "42P01", 15),
        ("SELECT id, nope FROM shop", "42703", 12),
        ("SELECT nofn(id) FROM shop", "42883", 8),
        ("SELEC 1", "42601", 1),
        ("SELECT 1/0", "22012", None),
        ("SELECT CAST('x' AS INT)", "22P02", None),
        ("INSERT INTO shop VALUES (1, 'x', NULL)", "23505", None),
        ("INSERT INTO shop VALUES (9, NULL, NULL)", "23502", None),
        ("INSERT INTO sale VALUES (9, 1, -1, NULL)", "23514", None),
        ("INSERT INTO sale VALUES (9, 99, 1, NULL)", "23503", None),
        ("CREATE TABLE shop (id INT)", "42P07", None),
        ("DROP TABLE shop", "2BP01", None),
        ("CREATE TABLE noschema.t (id INT)", "3F000", 14),
        ("SELECT name, id FROM shop GROUP BY name", "42803", 14),
        ("SELECT count(*) FROM shop WHERE id", "42804", 33),
        ("ALTER SYSTEM SET x = 1", "0A000", 1),
        ("COPY shop TO '/tmp/x'", "42501", None),
        ("LISTEN x", "0A000", 1),
    ],
)
def test_errors_have_their_state_and_place(client, text, state, place):
    with pytest.raises(psycopg.Error) as caught:
        client.execute(text)
    assert (caught.value.diag.sqlstate, caught.value.diag.statement_position) == (state, place and str(place)), (
        caught.value
    )


def test_prepared_statements_and_portals_with_limits(client):
    for number in range(20):  # psycopg prepares what is asked several times
        assert client.execute("SELECT %s::int + 1", (number,), prepare=True).fetchone() == (number + 1,)
    with client.cursor(row_factory=dict_row) as cursor:
        cursor.execute(psql_names.SQL("SELECT {} FROM shop ORDER BY id LIMIT 1").format(psql_names.Identifier("name")))
        assert cursor.fetchall() == [{"name": "one"}]
    with client.pipeline():
        client.execute("INSERT INTO shop VALUES (30, 'a', NULL)")
        found = client.execute("SELECT name FROM shop WHERE id = 30")
        client.execute("DELETE FROM shop WHERE id = 30")
    assert found.fetchall() == [("a",)]
    with client.transaction():
        client.execute("PREPARE p (int) AS SELECT name FROM shop WHERE id = $1")
        assert client.execute("EXECUTE p (2)").fetchall() == [("two",)]
        client.execute("DEALLOCATE p")


@pytest.mark.parametrize(
    ("lookup", "values"),
    [
        ("SELECT * FROM shop WHERE id = %s", (2,)),
        ("SELECT name, id FROM shop WHERE id = %s", (1,)),
        ("SELECT city FROM shop WHERE id = %s", (10**12,)),
        ("SELECT city FROM shop WHERE id = %s", (None,)),
        ("SELECT at, amount, shop FROM sale WHERE id = %s", (1,)),
        ("SELECT total, n FROM totals WHERE name = %s", ("one",)),
        ("SELECT id FROM sale WHERE amount = %s", (Decimal("2.5"),)),
    ],
)
def test_lookups_by_key_are_the_same_without_a_plan(client, lookup, values):
    planned = client.execute(f"{lookup} AND true", values)
    found = client.execute(lookup, values)
    assert [(c.name, c.type_code) for c in found.description] == [(c.name, c.type_code) for c in planned.description]
    assert found.fetchall() == planned.fetchall()


def test_a_statement_is_cancelled(url):
    with psycopg.connect(url, autocommit=True) as connection:
        threading.Timer(0.5, connection.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(SLOW)
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("SET statement_timeout TO '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(SLOW)


def until_cancelled(connection, rows):
    for number, _ in enumerate(rows):
        if number == 0:
            connection.cancel()


def test_changes_of_a_view_come_without_end(client, url):
    with psycopg.connect(url, autocommit=True) as other:
        changes = other.cursor().stream("SUBSCRIBE totals")
        first = [next(changes), next(changes)]
        assert sorted(row[1:] for row in first) == [(1, "one", Decimal("3.75"), 2), (1, "two", Decimal(7), 1)]
        began = time.monotonic()
        client.execute("INSERT INTO sale VALUES (20, 1, 1, NULL)")
        change = [next(changes), next(changes)]
        assert time.monotonic() - began < 30
        assert sorted(row[1:] for row in change) == [(-1, "one", Decimal("3.75"), 2), (1, "one", Decimal("4.75"), 3)]
        assert first[0][0] < change[0][0] == change[1][0]
        threading.Timer(0.1, other.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(changes)
        client.execute("DELETE FROM sale WHERE id = 20")
        with closing(other.cursor().stream(f"SUBSCRIBE totals SINCE {change[0][0]}")) as since:
            assert min(row[1:] for row in (next(since), next(since)))[:2] == (-1, "one")
    with psycopg.connect(url, autocommit=True) as other:
        copied = other.cursor().copy("COPY (SUBSCRIBE totals) TO STDOUT")
        with pytest.raises(psycopg.errors.QueryCanceled), copied as copy:
            until_cancelled(other, copy)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        list(client.cursor().stream("SUBSCRIBE totals SINCE 1"))


def test_definitions_change(client):
    client.execute("CREATE TABLE made (id BIGINT PRIMARY KEY, v TEXT, w VARCHAR(10) DEFAULT 'x', at TIMESTAMPTZ)")
    client.execute("CREATE MATERIALIZED VIEW kept AS SELECT v, count(*) AS n FROM made GROUP BY v")
    assert client.execute("INSERT INTO made (id, v) VALUES (1, 'a'), (2, 'a') RETURNING id, w").fetchall() == [
        (1, "x"), (2, "x"),
    ]  # fmt: skip
    client.execute("ALTER TABLE made ADD COLUMN z INT")
    client.execute("REFRESH MATERIALIZED VIEW kept")
    assert client.execute("UPDATE made SET v = 'b' WHERE id = 2").rowcount == 1
    moved = client.execute("UPDATE made SET v = s.city FROM shop s WHERE s.id = made.id AND s.id = 9")
    assert moved.statusmessage == "UPDATE 0"
    assert client.execute("SELECT pg_get_viewdef('kept'::regclass)").fetchone() == (
        "SELECT v, count(*) AS n FROM made GROUP BY v",
    )
    assert client.execute("SELECT * FROM kept ORDER BY 1").fetchall() == [("a", 1), ("b", 1)]
    assert client.execute("SELECT * FROM made WHERE id = %s", (2,)).fetchone() == (2, "b", "x", None, None)
    client.execute("DROP MATERIALIZED VIEW kept; DROP TABLE made")


# -- asyncpg


async def use_asyncpg(connection):
    assert await connection.fetchval("SELECT count(*) FROM shop WHERE id = $1", 1) == 1
    statement = await connection.prepare("SELECT id, name, city FROM shop WHERE id <= $1 ORDER BY id")
    assert [tuple(row) for row in await statement.fetch(2)] == [(1, "one", "Ulm"), (2, "two", None)]
    assert [parameter.name for parameter in statement.get_parameters()] == ["int4"]
    rows = [(40, "x", None), (41, "y", "Ulm")]
    await connection.executemany("INSERT INTO shop VALUES ($1, $2, $3)", rows)
    async with connection.transaction():
        cursor = connection.cursor("SELECT * FROM shop WHERE id >= 40 ORDER BY id", prefetch=1)
        assert [tuple(row) async for row in cursor] == rows
    await connection.execute("DELETE FROM shop WHERE id >= 40")
    await connection.copy_records_to_table("shop", records=rows, columns=["id", "name", "city"])
    assert await connection.execute("DELETE FROM shop WHERE id >= 40") == "DELETE 2"
    with pytest.raises(asyncpg.UndefinedColumnError):
        await connection.fetch("SELECT nope FROM shop")
    with pytest.raises(asyncio.TimeoutError):
        await connection.fetch(SLOW, timeout=0.3)
    assert await connection.fetchval("SELECT max(id) FROM shop") == 2


def test_asyncpg(url):
    async def work():
        connection = await asyncpg.connect(url)
        try:
            await use_asyncpg(connection)
        finally:
            await connection.close()

    asyncio.run(work())


# -- SQLAlchemy


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(sa.String(50))
    books: Mapped[list[Book]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    title: Mapped[str | None]
    price: Mapped[Decimal] = mapped_column(sa.Numeric(10, 2))
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")


def test_sqlalchemy(url):
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        use_orm(connection)
        reflected(connection)
    engine.dispose()


def use_orm(connection):
    Base.metadata.create_all(connection)
    connection.commit()
    with Session(connection) as session:
        session.add(Author(id=1, name="Ada", books=[Book(id=1, title="Notes", price=Decimal("9.50"))]))
        session.commit()
        book = session.scalars(sa.select(Book).where(Book.price > 9)).one()
        assert (book.title, book.author.name) == ("Notes", "Ada")
        book.title = None
        session.commit()
        assert session.execute(sa.select(sa.func.count()).where(Book.title.is_(None))).scalar() == 1
    Base.metadata.drop_all(connection)
    connection.commit()


def reflected(connection):
    there = sa.inspect(connection)
    assert set(there.get_table_names()) == {"shop", "sale", "kinds"}
    assert (there.get_view_names(), there.get_materialized_view_names()) == (["plain"], ["totals"])
    assert there.get_pk_constraint("sale")["constrained_columns"] == ["id"]
    [key] = there.get_foreign_keys("sale")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["shop"], "shop", ["id"])
    [check] = there.get_check_constraints("sale")
    assert check["sqltext"] == "amount > 0"
    columns = {column["name"]: column for column in there.get_columns("sale")}
    assert isinstance(columns["amount"]["type"], sa.Numeric)
    assert columns["amount"]["type"].scale == 2
    assert [columns[name]["nullable"] for name in ("id", "shop", "amount")] == [False, True, False]
    metadata = sa.MetaData()
    metadata.reflect(connection)
    assert {fk.target_fullname for fk in metadata.tables["sale"].foreign_keys} == {"shop.id"}
    total = sa.Table("totals", metadata, autoload_with=connection)
    assert connection.execute(sa.select(total.c.n).order_by(total.c.name)).scalars().all() == [2, 1]
