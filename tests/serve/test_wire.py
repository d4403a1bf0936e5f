"""PostgreSQL's protocol from below: hostile messages, who may, TLS, slow readers, and what no statement reaches."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import threading
import time
from contextlib import closing

import psycopg
import pytest

from everview.serve import Role, TokenFile
from everview.serve.sockets import TlsFiles
from serving import served_to_postgres
from wire_fuzz import attack, message

SQL = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING);
CREATE MATERIALIZED VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v;
"""


@pytest.fixture(scope="module")
def server():
    with served_to_postgres(sql=SQL, body_bytes=1_000_000, subscriber_changes=4) as running:
        yield running


def connected(server, **more):
    return psycopg.connect(
        host="127.0.0.1", port=server.port, dbname="everview", autocommit=True, **{"user": "ada", **more}
    )


def settled(server, connections):
    """Whether only so many connections are left, after a while."""
    for _ in range(3000):
        if server.connections <= connections:
            return True
        time.sleep(0.01)
    return False


def test_hostile_messages_harm_nobody(server):
    with connected(server) as other:
        other.execute("INSERT INTO t VALUES (1, 'x')")
        assert settled(server, 1)
        files = len(os.listdir("/proc/self/fd"))
        threads = threading.active_count()
        for seed in range(150):
            attack(server.port, random.Random(seed))
            if seed % 50 == 0:
                assert other.execute("SELECT v FROM t WHERE k = 1").fetchall() == [("x",)]
        assert settled(server, 1), server.connections
        assert len(os.listdir("/proc/self/fd")) <= files + 2
        assert threading.active_count() <= threads + 4  # readers start when they are needed
        assert (len(server.owner.hub), server.owner.waiting) == (0, 0)
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)
        other.execute("DELETE FROM t")


def test_a_slow_subscriber_is_cut_off_with_the_reason(server):
    start = b"\0\3\0\0user\0ada\0\0"
    with socket.create_connection(("127.0.0.1", server.port)) as slow, connected(server) as client:
        slow.sendall((len(start) + 4).to_bytes(4) + start + message(b"Q", b"SUBSCRIBE v\0"))
        for number in range(40):
            client.execute(f"INSERT INTO t SELECT {number}, repeat('{number:08}', 50000)")
        slow.settimeout(60)
        said = b""
        while b"fell behind" not in said:
            part = slow.recv(1 << 20)
            assert part, said[-300:]
            said = said[-1000:] + part
        assert b"53400" in said
        client.execute("DELETE FROM t")


def test_subscribers_that_leave_are_forgotten(server):
    for _ in range(3):
        with connected(server) as gone:
            assert list(gone.execute("SELECT 1"))
            changes = gone.cursor().stream("SUBSCRIBE v")
            gone.pgconn.finish()
            with pytest.raises(psycopg.Error):
                next(changes)
    assert settled(server, 0)
    assert len(server.owner.hub) == 0


@pytest.mark.parametrize(
    "text",
    [
        "COPY t TO '/tmp/x.csv'",
        "COPY t FROM '/etc/passwd'",
        "COPY t FROM PROGRAM 'id'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM csv.`/etc/passwd`",
        "CREATE TABLE x USING csv OPTIONS (path '/etc/passwd')",
        "CREATE TABLE x USING parquet LOCATION '/tmp'",
        "ATTACH '/tmp/x' AS y",
        "LOAD '/tmp/x.so'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "CREATE FUNCTION f() RETURNS INT LANGUAGE python AS 'import os'",
        "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE plpython3u AS $$ import os $$",
        "CREATE EXTENSION file_fdw",
        "DO $$ BEGIN END $$",
        "SELECT java_method('java.lang.Runtime', 'getRuntime')",
        "SELECT reflect('java.lang.System', 'exit', 1)",
        "INSERT INTO t SELECT * FROM read_parquet('/tmp/x')",
        "ADD JAR '/tmp/x.jar'",
        '.include "/etc/passwd"',
        "EXPORT DATABASE '/tmp/x'",
        "SET everview.dialect TO spark; SELECT * FROM text.`/etc/passwd`",
    ],
)
def test_no_statement_reaches_a_file_or_python(server, text):
    with connected(server) as client, pytest.raises(psycopg.Error) as caught:
        client.execute(text)
    assert caught.value.diag.sqlstate not in ("XX000", None), caught.value
    assert "root:" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


def test_passwords_roles_and_tls(tmp_path, certificate):
    tokens = TokenFile(tmp_path / "tokens.json")
    known = {role.name.lower(): tokens.add(role.name.lower(), role) for role in Role}
    with served_to_postgres(sql=SQL, anyone=None, tokens=tokens, tls=TlsFiles(*certificate).context()) as server:
        verified = {"sslmode": "verify-full", "sslrootcert": str(certificate[0])}
        for name, allowed in (("read", 0), ("write", 1), ("admin", 2)):
            texts = ("INSERT INTO t VALUES (1, 'x')", "CREATE TABLE made (k INT)")
            with connected(server, user=name, password=known[name], **verified) as client:
                assert client.pgconn.ssl_in_use
                assert list(client.execute("SELECT count(*) FROM t"))
                for number, text in enumerate(texts):
                    if number < allowed:
                        client.execute(text)
                        continue
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        client.execute(text)
                if name == "read":
                    with (
                        pytest.raises(psycopg.errors.InsufficientPrivilege),
                        client.cursor().copy("COPY t FROM STDIN") as copy,
                    ):
                        copy.write(b"1\tx\n")
                if allowed == 1:
                    client.execute("DELETE FROM t")
        for user, password in (("read", "read.wrong"), ("nobody", "x"), ("read", known["admin"])):
            with pytest.raises(psycopg.OperationalError, match=r"password authentication failed"):
                connected(server, user=user, password=password, sslmode="require")
        tokens.remove("read")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connected(server, user="read", password=known["read"])


def test_bytes_before_encryption_are_refused(certificate):
    with (
        served_to_postgres(tls=TlsFiles(*certificate).context()) as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as one,
    ):
        one.sendall((8).to_bytes(4) + (80877103).to_bytes(4) + b"\0\0\0\x0c")
        assert b"unencrypted data" in one.recv(1000)


def test_a_stop_lets_a_statement_end_and_tells_clients():
    with served_to_postgres(sql=SQL) as server:
        client = connected(server)
        idle = connected(server)
        client.execute("INSERT INTO t VALUES (1, 'x')")
    for each in (client, idle):
        with pytest.raises(psycopg.errors.AdminShutdown, match="stopping"):
            each.execute("SELECT 1")
        each.close()
