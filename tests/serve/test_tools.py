"""Tools over PostgreSQL's drivers: they are told the same of a schema by this server and by PostgreSQL itself.

The driver of JDBC is the real one, with the methods that DBeaver and Metabase call; `tool_queries.txt` has statements
that these send by themselves: ``same`` compares all rows, ``columns`` the names of columns and how many rows there are,
where OIDs and what concerns files differ.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from broker import free_ports
from cluster import cluster
from everview.serve import Role
from jdbc import connected, java, rows_of, strings
from serving import served_to_postgres, server_process

SCHEMA = """
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT NOT NULL, city TEXT, UNIQUE (name, city));
CREATE TABLE sale (
  id BIGINT, part SMALLINT, shop INT REFERENCES shop (id), amount NUMERIC(10, 2) NOT NULL DEFAULT 1.50, at TIMESTAMPTZ,
  CHECK (amount > 0), PRIMARY KEY (part, id));
CREATE TABLE line (
  id BIGINT PRIMARY KEY, sale_part SMALLINT, sale BIGINT, note TEXT,
  FOREIGN KEY (sale_part, sale) REFERENCES sale (part, id));
CREATE TABLE kinds (
  b BOOLEAN, i2 SMALLINT, i4 INT, i8 BIGINT, f4 REAL, f8 DOUBLE PRECISION, s TEXT, y BYTEA, d DATE, t TIMESTAMPTZ,
  p TIMESTAMP, a BIGINT[]);
INSERT INTO shop VALUES (1, 'one', 'Ulm'), (2, 'two', NULL);
CREATE MATERIALIZED VIEW cities AS SELECT city FROM shop WHERE city IS NOT NULL OR id > 1;
CREATE VIEW plain AS SELECT city FROM shop;
COMMENT ON TABLE shop IS 'where things are sold';
COMMENT ON COLUMN shop.city IS 'where it is';
"""
# A method of java.sql.DatabaseMetaData, and its arguments: those whose answers are the same in every detail.
METADATA = [
    ("getTables", None, "public", None, None),
    ("getTables", None, None, "s%", ["TABLE", "VIEW", "MATERIALIZED VIEW"]),
    ("getColumns", None, "public", None, None),
    ("getColumns", "everview", "public", "sale", "am%"),
    ("getPrimaryKeys", None, "public", "sale"),
    ("getPrimaryKeys", None, None, "line"),
    ("getImportedKeys", None, "public", "line"),
    ("getImportedKeys", None, None, "sale"),
    ("getExportedKeys", None, "public", "sale"),
    ("getExportedKeys", None, None, "shop"),
    ("getCrossReference", None, "public", "shop", None, "public", "sale"),
    ("getSchemas",),
    ("getSchemas", None, "pub%"),
    ("getTableTypes",),
    ("getProcedures", None, "public", None),
    ("getProcedureColumns", None, "public", None, None),
    ("getFunctions", None, "public", None),
    ("getFunctionColumns", None, "public", None, None),
    ("getTablePrivileges", None, "public", "shop"),
    ("getColumnPrivileges", None, "public", "shop", None),
    ("getBestRowIdentifier", None, "public", "sale", 2, True),
    ("getVersionColumns", None, "public", "sale"),
    ("getUDTs", None, "public", None, None),
    ("getClientInfoProperties",),
]


@pytest.fixture(scope="module")
def gateway():
    with java() as started:
        yield started


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The addresses of PostgreSQL and of a server of ours, with the same schema."""
    (port,) = free_ports(1)
    script = tmp_path_factory.mktemp("tools") / "made.sql"
    script.write_text("SELECT 1")
    with cluster(port) as dsn, server_process(script, "--port", 0) as (_, _, own):
        with psycopg.connect(dsn, autocommit=True) as client:
            client.execute("CREATE DATABASE everview")
        for each in (port, own):
            with psycopg.connect(dsn_of(each), autocommit=True) as client:
                client.execute(SCHEMA)
        yield port, own


def dsn_of(port):
    return f"postgresql://everview@127.0.0.1:{port}/everview"


@pytest.fixture(scope="module")
def drivers(gateway, addresses):
    """What the driver says of both by each method."""
    with (
        connected(gateway, f"127.0.0.1:{addresses[0]}/everview", user="everview") as theirs,
        connected(gateway, f"127.0.0.1:{addresses[1]}/everview", user="everview") as ours,
    ):
        yield theirs.getMetaData(), ours.getMetaData()


@pytest.mark.parametrize("call", METADATA, ids=lambda call: " ".join(map(str, call)))
def test_the_driver_of_jdbc_is_told_the_same(gateway, drivers, call):
    method, *given = call
    values = [strings(gateway, value) if isinstance(value, list) else value for value in given]
    theirs, ours = (rows_of(getattr(metadata, method)(*values)) for metadata in drivers)
    assert ours == theirs


def test_the_driver_of_jdbc_is_told_of_indexes_and_types(drivers):
    theirs, ours = (rows_of(metadata.getIndexInfo(None, "public", "shop", False, False)) for metadata in drivers)
    assert [{**row, "PAGES": 0} for row in theirs] == ours
    known, told = ({row["TYPE_NAME"]: row for row in rows_of(metadata.getTypeInfo())} for metadata in drivers)
    assert {name: known[name] for name in told} == told
    assert {"int4", "int8", "text", "numeric", "timestamptz", "date", "bool", "_int8"} <= set(told)
    assert {"TABLE_CAT": "everview"} in rows_of(drivers[1].getCatalogs())


def test_the_driver_of_jdbc_is_told_of_the_server(drivers):
    theirs, ours = drivers
    assert ours.getDatabaseProductName() == "PostgreSQL"
    assert {"explain", "returning", "ilike"} <= set(ours.getSQLKeywords().split(","))
    for method in ("getMaxColumnNameLength", "getMaxColumnsInIndex", "getUserName", "supportsTransactions"):
        assert getattr(ours, method)() == getattr(theirs, method)()


def test_rows_come_by_jdbc(gateway, addresses):
    with connected(gateway, f"127.0.0.1:{addresses[1]}/everview", user="everview", prepareThreshold="1") as client:
        for _ in range(3):  # by name, and in binary, from the second time on
            prepared = client.prepareStatement("SELECT id, name, city FROM shop WHERE id <= ? ORDER BY id")
            prepared.setInt(1, 2)
            rows = rows_of(prepared.executeQuery())
        assert rows == [{"ID": 1, "NAME": "one", "CITY": "Ulm"}, {"ID": 2, "NAME": "two", "CITY": None}]


def cases():
    text = (Path(__file__).parent / "tool_queries.txt").read_text()
    return [tuple(case.strip("\n").split("\n----\n")) for case in text.split("\n====\n")]


def test_statements_of_tools_are_answered_as_by_postgresql(addresses):
    with psycopg.connect(dsn_of(addresses[0])) as theirs, psycopg.connect(dsn_of(addresses[1])) as ours:
        for text, how in cases():
            expected, found = theirs.execute(text), ours.execute(text)
            names, told = ([column.name for column in each.description] for each in (expected, found))
            rows, given = expected.fetchall(), found.fetchall()
            if how == "same":
                assert (told, given) == (names, rows), text
            else:
                assert (set(names) <= set(told), len(given)) == (True, len(rows)), text


@pytest.mark.parametrize(
    ("role", "told"),
    [
        (Role.READ, (True, False, False, ["ada=r/ada"])),
        (Role.WRITE, (True, True, False, ["ada=arwdD/ada"])),
        (Role.ADMIN, (True, True, True, None)),
    ],
)
def test_a_role_is_told_what_it_may(role, told):
    query = "SELECT has_table_privilege('t', 'select'), has_table_privilege('t', 'insert'), "
    query += "has_table_privilege('ada', 't', 'trigger'), relacl FROM pg_class WHERE relname = 't'"
    with (
        served_to_postgres(sql="CREATE TABLE t (a INT)", anyone=role) as server,
        psycopg.connect(f"postgresql://ada@127.0.0.1:{server.port}/x") as client,
    ):
        assert client.execute(query).fetchone() == told
