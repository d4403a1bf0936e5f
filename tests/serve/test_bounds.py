"""What one client asks does not hold up the others, however large the numbers in it; a refusal has its SQLSTATE."""

from __future__ import annotations

import asyncio
import decimal
import random
import time
import uuid
from contextlib import closing

import asyncpg
import psycopg
import pytest

from everview.serve.ingests import KEYS
from serving import Client, served, served_to_postgres
from wire_messages import Wire, bind, describe, parse

SQL = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING, n DECIMAL(38, 10), a ARRAY<BIGINT>, y BINARY);
INSERT INTO t VALUES (1, 'a', 1.5, array(1, 2), NULL), (2, 'b', NULL, array(3), NULL), (3, 'c', 2, NULL, NULL);
"""
SOON = 10.0  # seconds, of a machine that does other things, too


@pytest.fixture(scope="module")
def server():
    with served_to_postgres(sql=SQL) as running:
        yield running


@pytest.fixture
def client(server):
    with psycopg.connect(f"postgresql://ada@127.0.0.1:{server.port}/everview", autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        yield connection


def within(seconds, work):
    began = time.monotonic()
    found = work()
    assert time.monotonic() - began < seconds
    return found


def outcome(connection, text):
    """The rows of a query, or the SQLSTATE of its error."""
    try:
        return connection.execute(text).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def copied(connection, text, data):
    """The SQLSTATE of the error of a COPY; None if there is none."""
    try:
        with connection.cursor().copy(text) as copy:
            copy.write(data)
    except psycopg.Error as error:
        return error.sqlstate
    return None


# -- sizes


@pytest.mark.parametrize(
    ("text", "value", "state"),
    [
        ("SELECT $1::numeric", b"1e100000000", "22003"),
        ("SELECT $1::numeric", b"-1e100000000", "22003"),
        ("SELECT $1::numeric", b"1e-100000000", "22003"),
        ("SELECT $1::numeric", b"9" * 5000, "22003"),
        ("SELECT $1::float8", b"1e400", "22003"),
        ("SELECT $1::int4", b"99999999999", "22003"),
        ("SELECT $1::interval", b"9" * 50000 + b" years", "22008"),
        ("SELECT $1::interval", b"99999999999 years", "22008"),
        ("SELECT $1::interval", b"P" + b"9" * 50000 + b"Y", "22008"),
    ],
)
def test_a_value_beyond_its_type_is_refused_at_once(server, client, text, value, state):
    with closing(Wire(server.port)) as wire:
        assert state in wire.states(parse(text), bind(value))
        assert within(SOON, lambda: client.execute("SELECT 1").fetchone()) == (1,)


@pytest.mark.parametrize("text", ["SELECT $999999999999", "SELECT $65536", "SELECT $0", "SELECT $" + "9" * 6000])
def test_a_parameter_beyond_what_a_message_counts_is_none(server, text):
    with closing(Wire(server.port)) as wire:
        assert "42P02" in within(SOON, lambda: wire.states(parse(text), describe()))


def test_copied_numbers_are_bounded(client):
    for number in ("1e100000000", "1e-100000000"):
        with (
            pytest.raises(psycopg.errors.NumericValueOutOfRange),
            client.cursor().copy("COPY t (k, n) FROM STDIN") as copy,
        ):
            copy.write(f"9\t{number}\n")
    assert client.execute("SELECT count(*) FROM t").fetchone() == (3,)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT round(1.5, -20000000)",
        "SELECT length(repeat('x', 2000000000))",
        "SELECT lpad('x', 2000000000, 'ab')",
        "SELECT " + "+".join(["1"] * 1000),
        "SELECT " + "||".join(["'a'"] * 1500),
        "SELECT 1" + "::int" * 1000,
        "SELECT " + ",".join(["1"] * 66000),
        "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    ],
)
def test_a_statement_is_answered_or_refused_soon(client, server, text):
    assert within(SOON, lambda: outcome(client, text)) not in ("XX000", None)


def test_random_sizes_hold_up_nobody(server, client):
    rng = random.Random(19)
    functions = ["round", "floor", "repeat", "lpad", "rpad", "left", "right", "chr", "power", "substring", "format"]
    with psycopg.connect(f"postgresql://bea@127.0.0.1:{server.port}/everview", autocommit=True) as other:
        for _ in range(60):
            number = rng.choice((-1, 1)) * rng.choice((0, 1, 39, 65_536, 2**31 - 1, 2**31, 2**63, 10**30, 10**300))
            first = rng.choice(("1.5", "'x'", "v", "k", "n"))
            text = f"SELECT {rng.choice(functions)}({first}, {number}) FROM t"
            assert within(SOON, lambda text=text: outcome(other, text)) not in ("XX000", None), text
            assert within(SOON, lambda: client.execute("SELECT 1").fetchone()) == (1,)


def test_random_parameters_hold_up_nobody(server, client):
    rng = random.Random(19)
    for _ in range(120):
        name = rng.choice(
            ("numeric", "int2", "int4", "int8", "float8", "interval", "jsonb", "numeric[]", "date", "uuid")
        )
        value = rng.choice((b"1e%d", b"0e%d", b"-1e-%d", b"%d", b"%d days", b"P%dY", b"{1e%d}", b"%d-01-01"))
        value = value % rng.choice((1, 400, 65_536, 10**8, 10**18, 10**400))
        with closing(Wire(server.port)) as wire:
            assert "XX000" not in within(
                SOON, lambda w=wire, v=value, n=name: w.states(parse(f"SELECT $1::{n}"), bind(v))
            )
    assert within(SOON, lambda: client.execute("SELECT 1").fetchone()) == (1,)


# -- drivers


async def use_asyncpg(url):
    connection = await asyncpg.connect(url)
    try:
        assert [r["k"] for r in await connection.fetch("SELECT k FROM t WHERE k = ANY($1) ORDER BY k", [1, 3])] == [
            1,
            3,
        ]
        assert await connection.fetchval("SELECT $1::int[]", [4, None]) == [4, None]
        assert [r["a"] for r in await connection.fetch("SELECT a FROM t ORDER BY k")] == [[1, 2], [3], None]
        page = "SELECT k FROM t ORDER BY k LIMIT $1 OFFSET $2"
        assert [r["k"] for r in await connection.fetch(page, 1, 1)] == [2]
        assert [r["k"] for r in await connection.fetch(page, None, 0)] == [1, 2, 3]
        assert [r["k"] for r in await connection.fetch("SELECT k FROM t ORDER BY k LIMIT $1::int", 2)] == [1, 2]
        one = uuid.UUID(int=5)
        assert await connection.fetchval("SELECT $1::uuid", one) == str(one)
        statement = await connection.prepare("SELECT $1::oid[], $2::oid, $3::name, $4::uuid, $5::varchar, $6::json")
        assert [p.name for p in statement.get_parameters()] == ["oid[]", "oid", "name", "uuid", "varchar", "json"]
    finally:
        await connection.close()


def test_asyncpg_has_arrays_limits_and_uuids(server):
    began = time.monotonic()
    asyncio.run(use_asyncpg(f"postgresql://ada@127.0.0.1:{server.port}/everview"))
    assert time.monotonic() - began < 6 * SOON


@pytest.mark.parametrize(
    "value",
    [b"\xff\0a", b"", "a\\b'c\n\x01é", decimal.Decimal("1.50"), True, None, [1, 2], 2**62],
)
def test_values_in_the_text_itself_come_back(server, value):
    url = f"postgresql://ada@127.0.0.1:{server.port}/everview"
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        assert connection.execute("SELECT %s", (value,)).fetchone() == (value,)
        if isinstance(value, bytes):
            connection.execute("INSERT INTO t (k, y) VALUES (%s, %s)", (77, value))
            assert connection.execute("SELECT y FROM t WHERE k = 77").fetchone() == (value,)
            connection.execute("UPDATE t SET y = %s WHERE k = 77", (b"\xfe" + value,))
            assert connection.execute("SELECT y FROM t WHERE k = 77").fetchone() == (b"\xfe" + value,)
            connection.execute("DELETE FROM t WHERE k = 77")


# -- transactions


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
@pytest.mark.parametrize(
    "text",
    [
        "BEGIN ISOLATION LEVEL {}",
        "START TRANSACTION ISOLATION LEVEL {}, READ WRITE",
        "SET TRANSACTION ISOLATION LEVEL {}",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}",
        "SET default_transaction_isolation = '{}'",
    ],
)
def test_levels_of_isolation_that_there_are_not_are_refused(client, text, level):
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="READ COMMITTED"):
        client.execute(text.format(level))


def test_every_transaction_is_read_committed(client):
    for text in ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "BEGIN ISOLATION LEVEL READ UNCOMMITTED"):
        client.execute(text)
        assert client.execute("SHOW TRANSACTION ISOLATION LEVEL").fetchone() == ("read committed",)
        client.execute("ROLLBACK")


@pytest.mark.parametrize("begin", ["BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY"])
@pytest.mark.parametrize("change", ["INSERT INTO t (k) VALUES (9)", "CREATE TABLE x (a INT)", "COPY t (k) FROM STDIN"])
def test_a_transaction_that_only_reads_refuses_changes(client, begin, change):
    client.execute(begin)
    assert client.execute("SELECT count(*) FROM t").fetchone() == (3,)
    assert outcome(client, change) == "25006"
    client.execute("ROLLBACK")
    client.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    assert outcome(client, change) == "25006"
    client.execute("BEGIN READ WRITE; INSERT INTO t (k) VALUES (9); ROLLBACK")


def test_a_definition_that_a_rollback_does_not_undo_is_told(client):
    told = []
    client.add_notice_handler(lambda notice: told.append(notice.message_primary))
    client.execute("BEGIN")
    client.execute("CREATE TABLE kept (a INT)")
    client.execute("ROLLBACK")
    assert told == ["CREATE TABLE is not undone: definitions count at once"]
    client.execute("DROP TABLE kept")
    client.execute("BEGIN; ROLLBACK")
    assert len(told) == 1


@pytest.mark.parametrize(
    ("texts", "name", "timeout"),
    [
        ("BEGIN; SET LOCAL statement_timeout TO '5s'; SET application_name TO b; COMMIT", "b", "0"),
        ("BEGIN; SET statement_timeout TO '5s'; SET LOCAL statement_timeout TO '6s'; COMMIT", "a", "5s"),
        ("BEGIN; SET statement_timeout TO '5s'; SET application_name TO b; ROLLBACK", "a", "0"),
        ("BEGIN; SET application_name TO b; SAVEPOINT s; SET application_name TO c; ROLLBACK TO s; COMMIT", "b", "0"),
        (
            "BEGIN; SELECT set_config('statement_timeout', '5s', true); COMMIT; SET LOCAL statement_timeout TO 7",
            "a",
            "0",
        ),
    ],
)
def test_a_setting_holds_as_long_as_its_transaction(client, texts, name, timeout):
    client.execute("SET application_name TO a; RESET statement_timeout")
    for text in texts.split("; "):
        client.execute(text)
    assert client.execute("SHOW statement_timeout").fetchone() == (timeout,)
    assert client.info.parameter_status("application_name") == name


# -- HTTP


@pytest.fixture(scope="module")
def http():
    with served() as server:
        client = Client(server.port)
        client.sql("CREATE TABLE kinds (id INT, y BINARY, b BOOLEAN, f DOUBLE, a ARRAY<INT>)")
        yield client


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sql": "SELECT 1", "timeout": -5}, "timeout"),
        ({"sql": "SELECT 1", "timeout": float("nan")}, "timeout"),
        ({"sql": "SELECT 1", "seconds": -5}, "seconds"),
        ({"sql": "INSERT INTO kinds (id) VALUES (1)", "limit": -1}, "limit"),
        ({"sql": "BEGIN"}, "COMMIT"),
        ({"sql": "BEGIN; INSERT INTO kinds (id) VALUES (1)"}, "COMMIT"),
    ],
)
def test_a_query_that_means_nothing_is_refused(http, asked, said):
    status, answer = http("POST", "/v1/query", asked)
    assert (status, said in str(answer)) == (400, True), answer
    assert http.sql("SELECT count(*) FROM kinds") == [[0]]
    assert http.sql("BEGIN; INSERT INTO kinds (id) VALUES (1); ROLLBACK") is None


@pytest.mark.parametrize("given", ["id=x", "id.gt=1e9999", "b=perhaps", "f.lt=many", "a=%5B1%5D", "y=not-base64"])
def test_a_filter_that_no_value_can_meet_is_refused_without_rows_too(http, given):
    assert http("GET", f"/v1/views/kinds?{given}")[0] == 400


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json", "text/csv"])
def test_bytes_go_in_as_they_come_out(http, kind):
    body = "id,y\n7,+/8A\n" if kind == "text/csv" else '{"id": 7, "y": "+/8A"}'
    assert http("POST", "/v1/ingest/kinds", body, Content_Type=kind)[0] == 200
    for given in ("y=%2B/8A", "y=+/8A", "id=7"):
        assert http("GET", f"/v1/views/kinds?select=y&{given}")[1]["rows"] == [["+/8A"]]
    assert http.sql("SELECT hex(y) FROM kinds") == [["FBFF00"]]
    assert http.sql("DELETE FROM kinds") == 1
    assert http("POST", "/v1/ingest/kinds", '{"id": 7, "y": "no base64"}')[0] == 400


def test_random_requests_get_an_answer(http):
    rng = random.Random(19)
    for _ in range(60):
        column = rng.choice(("id", "y", "b", "f", "a", "nope"))
        by = rng.choice(("", ".gt", ".like", ".is", ".zz"))
        value = rng.choice(("1", "-1", "9" * 400, "1e100000000", "%00", "NaN", "null", "'", "%FF", "[" * 500))
        page = rng.choice(("", "&limit=99999999999", "&offset=-1", "&order=id.up", "&select=,,", "&format=xml"))
        path = f"/v1/views/kinds?{column}{by}={value}{page}"
        status, _, _ = within(SOON, lambda path=path: http.raw("GET", path))
        assert status in (200, 400, 404, 429)
    for value in ("1e100000000", "9" * 5000, "[" * 5000, "-1e-100000000", '"' + "9" * 5000 + '"'):
        for column in ("id", "y", "f", "a"):
            body = f'{{"{column}": {value}}}'
            assert within(SOON, lambda body=body: http.raw("POST", "/v1/ingest/kinds", body))[0] in (200, 400), body
    assert http("GET", "/healthz")[0] == 200


# -- COPY and definitions


HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
ROW = b"\0\2" + b"\0\0\0\x08" + b"\0\0\0\0\0\0\0\x08" + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (HEAD + ROW + b"\xff\xff", None),
        (HEAD + ROW, None),
        (b"8\ta\n", "22P04"),
        (HEAD[:-1], "22P04"),
        (HEAD[:-4] + b"\0\0\0\3abc" + ROW, None),  # an extension is passed over
        (HEAD[:-4] + b"\x7f\xff\xff\xff" + ROW, "22P04"),
        (HEAD + ROW[:-1], "22P04"),
        (HEAD + b"\0\1" + ROW[2:], "22P04"),
        (HEAD + ROW[:2] + b"\x7f\xff\xff\xff" + ROW[6:], "22P04"),
        (HEAD + ROW[:2] + b"\xff\xff\xff\xf0" + ROW[6:], "22P04"),
        (HEAD + ROW[:2] + b"\0\0\0\7" + ROW[7:], "22P03"),
        (HEAD + b"\xff\xff" + ROW, "22P04"),
    ],
)
def test_binary_that_lies_about_itself_is_refused(client, data, state):
    assert copied(client, "COPY t (k, v) FROM STDIN (FORMAT binary)", data) == state
    client.execute("DELETE FROM t WHERE k = 8")


@pytest.mark.parametrize("rows", [0, 3])
def test_copied_binary_is_taken_back(client, rows):
    query = f"SELECT k + 100 AS k, v, n, a, y FROM t ORDER BY k LIMIT {rows}"
    with client.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        data = b"".join(copy)
    assert copied(client, "COPY t FROM STDIN BINARY", data) is None
    taken = client.execute("DELETE FROM t WHERE k > 100 RETURNING v, n, a, y").fetchall()
    assert sorted(taken) == client.execute(f"SELECT v, n, a, y FROM t ORDER BY k LIMIT {rows}").fetchall()


@pytest.mark.parametrize(
    ("options", "data", "state"),
    [
        ("FORMAT csv, HEADER match", "k,nope\n8,a\n", "22P04"),
        ("FORMAT csv, HEADER match", "k,v\n8,a\n", None),
        ("FORMAT csv, ENCODING 'LATIN1'", "8,a\n", "0A000"),
        ("FORMAT csv, ENCODING 'UTF-8'", "8,a\n", None),
    ],
)
def test_options_of_copy_are_kept_or_refused(client, options, data, state):
    assert copied(client, f"COPY t (k, v) FROM STDIN WITH ({options})", data) == state
    assert client.execute("DELETE FROM t WHERE k = 8").rowcount == (state is None)


def test_a_schema_with_content_has_dependents(client):
    client.execute("CREATE SCHEMA s")
    client.execute("CREATE TABLE s.x (a INT)")
    assert outcome(client, "DROP SCHEMA s") == "2BP01"
    client.execute("DROP SCHEMA s CASCADE")


# -- cursors


@pytest.mark.parametrize("binary", [False, True])
def test_a_cursor_gives_its_rows_piece_by_piece(server, binary):
    with psycopg.connect(f"postgresql://ada@127.0.0.1:{server.port}/everview") as connection:
        with connection.cursor(name="some rows", binary=binary) as cursor:
            cursor.execute("SELECT k, v FROM t WHERE k <= %s ORDER BY k", (3,))
            assert (cursor.fetchone(), cursor.fetchmany(1)) == ((1, "a"), [(2, "b")])
            assert cursor.fetchall() == [(3, "c")]
            assert cursor.fetchone() is None
        with connection.cursor(name="all of them") as cursor:
            cursor.itersize = 2
            assert [row[0] for row in cursor.execute("SELECT k FROM t ORDER BY k")] == [1, 2, 3]


def test_cursors_are_moved_closed_and_end_with_their_transaction(client):
    assert outcome(client, "DECLARE c CURSOR FOR SELECT 1") == "25P01"
    client.execute("BEGIN")
    client.execute("DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT k FROM t ORDER BY k")
    assert client.execute("MOVE 1 IN c").statusmessage == "MOVE 1"
    assert client.execute("FETCH NEXT FROM c").fetchall() == [(2,)]
    client.execute("INSERT INTO t (k) VALUES (0)")
    assert client.execute("FETCH ALL c").fetchall() == [(3,)]
    assert client.execute("CLOSE c").statusmessage == "CLOSE CURSOR"
    assert outcome(client, "FETCH c") == "34000"
    client.execute("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT 1; COMMIT")
    client.execute(
        "BEGIN; DECLARE early CURSOR FOR SELECT 7; SAVEPOINT s; DECLARE c CURSOR FOR SELECT 1; ROLLBACK TO s"
    )
    assert client.execute("FETCH early").fetchall() == [(7,)]
    assert outcome(client, "FETCH c") == "34000"
    client.execute("ROLLBACK")
    for text, state in (("FETCH c", "34000"), ("CLOSE c", "34000"), ("FETCH BACKWARD 1 FROM c", "0A000")):
        assert outcome(client, text) == state


def test_a_cursor_with_hold_outlives_the_commit_of_its_transaction(client):
    client.execute("DECLARE alone CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k")
    client.execute("BEGIN; DECLARE held CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k; DECLARE c CURSOR FOR SELECT 1")
    client.execute("COMMIT")
    client.execute("BEGIN; DECLARE lost CURSOR WITH HOLD FOR SELECT 1; ROLLBACK")
    for name in ("alone", "held"):
        assert outcome(client, f"FETCH 2 FROM {name}") == [(1,), (2,)]
        client.execute("SELECT 1", prepare=True)
        assert outcome(client, f"FETCH 2 FROM {name}") == [(3,)]
    assert [outcome(client, f"FETCH 1 FROM {name}") for name in ("c", "lost")] == ["34000", "34000"]
    with client.cursor("ours", withhold=True) as cursor:  # as Django reads outside of transactions
        cursor.itersize = 1
        assert [k for (k,) in cursor.execute("SELECT k FROM t ORDER BY k")] == [1, 2, 3]
    client.execute("DISCARD ALL")
    assert outcome(client, "FETCH 1 FROM held") == "34000"


def test_a_prepared_statement_with_other_columns_is_refused(server, client):
    async def work():
        connection = await asyncpg.connect(f"postgresql://ada@127.0.0.1:{server.port}/everview")
        try:
            client.execute("CREATE TABLE changing (k INT)")
            client.execute("INSERT INTO changing VALUES (1)")
            statement = await connection.prepare("SELECT * FROM changing")
            assert [tuple(row) for row in await statement.fetch()] == [(1,)]
            client.execute("ALTER TABLE changing ADD COLUMN z INT")
            with pytest.raises(asyncpg.FeatureNotSupportedError, match="must not change result type"):
                await statement.fetch()
            assert [tuple(row) for row in await connection.fetch("SELECT * FROM changing")] == [(1, None)]
        finally:
            await connection.close()

    asyncio.run(work())
    client.execute("DROP TABLE changing")


def test_the_servers_own_table_is_not_shown(client, server):
    keyed = "SELECT relname FROM pg_catalog.pg_class WHERE relname LIKE 'everview%'"
    server.owner.submit(lambda db: db.sql(f"CREATE TABLE {KEYS} (k STRING)")).result()
    assert client.execute(keyed).fetchall() == []
    server.owner.submit(lambda db: db.sql(f"DROP TABLE {KEYS}")).result()
