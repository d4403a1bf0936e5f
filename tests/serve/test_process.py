"""The server as a process of its own: killed under load it loses nothing that it has acknowledged; it stops cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager

import psycopg
import pytest
from typer.testing import CliRunner

import everview as ev
from everview.cli import app
from everview.serve.memory import memory_to_take
from serving import Client, Events, server_process

# A client that sends rows, each with a key, and again until the server says that it has them.
SENDER = """
import sys, time, urllib.request
port, name, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    body = ('{"who": "%s", "n": %d}' % (name, number)).encode()
    while True:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/ingest/sent", body)
        request.add_header("Idempotency-Key", f"{name}-{number}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 200
            break
        except urllib.error.HTTPError as error:
            raise SystemExit(error.read().decode())
        except OSError:
            time.sleep(0.05)
    print(number, flush=True)
"""


# The same by PostgreSQL's protocol: a row that was taken although nobody could say so is refused when it comes again.
WIRED = """
import sys, time, psycopg
port, name, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection, number = None, 0
while number < count:
    try:
        if connection is None or connection.closed:
            connection = psycopg.connect(f"host=127.0.0.1 port={port} user={name}", autocommit=True, connect_timeout=60)
        if number % 2:
            with connection.transaction():
                connection.execute("INSERT INTO wired VALUES (%s, %s)", (number, name), prepare=True)
                connection.execute("INSERT INTO wired VALUES (%s, %s)", (-number, name), prepare=True)
        else:
            connection.execute("INSERT INTO wired VALUES (%s, %s)", (number, name), prepare=True)
    except psycopg.errors.UniqueViolation:
        pass
    except psycopg.OperationalError:
        time.sleep(0.05)
        continue
    print(number, flush=True)
    number += 1
"""


@contextmanager
def server(*words):
    """A process of ``everview serve``, and the port at which it answers by HTTP."""
    with server_process(*words) as (process, port, _):
        yield process, port


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_server_that_is_killed_under_load_loses_nothing_acknowledged(tmp_path):
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE sent (who STRING, n BIGINT)")
        db.sql("CREATE MATERIALIZED VIEW counts AS SELECT who, count(*) AS n, sum(n) AS s FROM sent GROUP BY who")
        db.sql("CREATE TABLE wired (n BIGINT, who STRING, PRIMARY KEY (n, who))")
        db.sql("CREATE MATERIALIZED VIEW sums AS SELECT who, count(*) AS n, sum(n) AS s FROM wired GROUP BY who")
    port, wire, count = free_port(), free_port(), 30
    clients = [(SENDER, port, "ada"), (SENDER, port, "bob"), (WIRED, wire, "eve"), (WIRED, wire, "max")]
    senders = [
        subprocess.Popen([sys.executable, "-c", code, str(at), name, str(count)], stdout=subprocess.PIPE, text=True)
        for code, at, name in clients
    ]
    words = tmp_path / "state", "--port", port, "--pg-port", wire
    try:
        for kill_after in (5, 12):  # acknowledged rows of the first
            with server(*words) as (process, _):
                for sender in (senders[0], senders[2]):
                    while int(sender.stdout.readline()) < kill_after:
                        pass
                process.send_signal(signal.SIGKILL)
                assert process.wait(60) == -signal.SIGKILL
        with server(*words) as (process, _):
            assert [sender.wait(600) for sender in senders] == [0] * len(senders)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        for sender in senders:
            sender.kill()
            sender.communicate(timeout=60)
    with ev.connect(tmp_path / "state", read_only=True) as db:
        assert sorted(db.table("sent").rows()) == [(who, n) for who in ("ada", "bob") for n in range(count)]
        assert sorted(db.view("counts").rows()) == [(who, count, sum(range(count))) for who in ("ada", "bob")]
        numbers = sorted([*range(count), *(-n for n in range(1, count, 2))])
        assert sorted(db.table("wired").rows()) == sorted((n, who) for who in ("eve", "max") for n in numbers)
        assert sorted(db.view("sums").rows()) == [(who, len(numbers), sum(numbers)) for who in ("eve", "max")]


def test_the_explorer_opens_by_itself(tmp_path):
    (tmp_path / "made.sql").write_text("CREATE TABLE t (k BIGINT)")
    browser = f"{sys.executable} -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read(80))' %s"
    command = [sys.executable, "-m", "everview", "ui", str(tmp_path / "made.sql")]
    environment = os.environ | {"BROWSER": browser, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        said = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert "at http://127.0.0.1:" in said[0], said
    assert "<!doctype html>" in said[2].lower(), said


def test_a_stop_lets_requests_end_and_tells_subscribers(tmp_path):
    (tmp_path / "made.sql").write_text("CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t;")
    with server(tmp_path / "made.sql", "--port", 0, "--log", "json") as (process, port):
        client = Client(port)
        assert client("POST", "/v1/ingest/t", '{"k": 1}')[0] == 200
        with closing(Events(port, "/v1/views/v/changes")) as events:
            assert events.next()[2]["rows"] == [[1, 1]]
            process.send_signal(signal.SIGTERM)
            kind, _, data = events.next()
        assert (kind, data["reason"]) == ("end", "the server has stopped")
        assert process.wait(60) == 0


def test_a_reader_follows_a_writer(tmp_path):
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        with (
            server(tmp_path / "state", "--port", 0, "--read-only") as (_, port),
            closing(Events(port, "/v1/views/v/changes")) as events,
        ):
            assert events.next()[2]["rows"] == []
            db.sql("INSERT INTO t VALUES (1)")
            assert events.next()[2] == {"epoch": db.epoch, "rows": [[1, 1]]}
            assert Client(port)("POST", "/v1/ingest/t", '{"k": 2}')[0] == 403


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["serve", "{dir}", "--host", "0.0.0.0"], "everview token add"),
        (["serve", "{dir}", "--anyone", "king"], "one of read, write, admin"),
        (["serve", "{dir}", "--log", "xml"], "text or json"),
        (["serve", "{dir}/no.sql", "--read-only"], "made without read_only"),
        (["token", "add", "{dir}", "a b"], "letters, digits"),
        (["token", "add", "{dir}", "ada", "--role", "king"], "one of read"),
        (["token", "rm", "{dir}", "nobody"], "there are none"),
    ],
)
def test_mistakes_of_the_command(tmp_path, words, hint):
    done = CliRunner().invoke(app, [word.format(dir=tmp_path) for word in words])
    assert done.exit_code == 1, done.output
    assert hint in " ".join(done.output.split())


def test_tokens_by_the_command(tmp_path):
    run = CliRunner().invoke
    made = run(app, ["token", "add", str(tmp_path), "ada", "--role", "write"]).output
    assert made.startswith("ada.")
    assert json.loads(run(app, ["token", "ls", str(tmp_path), "--json"]).output) == [{"name": "ada", "role": "write"}]
    assert run(app, ["token", "rm", str(tmp_path), "ada"]).exit_code == 0
    assert run(app, ["token", "ls", str(tmp_path)]).output.strip() == ""


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ({"proc/meminfo": "MemTotal: 16 kB\nMemAvailable:        8 kB\n"}, 6 << 10),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 3 << 10),
        (
            {
                "proc/self/cgroup": "0::/a\n",
                "sys/fs/cgroup/memory.max": "4096\n",
                "sys/fs/cgroup/a/memory.max": "max\n",
            },
            3072,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9999999\n"}, 6 << 10),
        ({"proc/self/cgroup": "5:cpu,memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096"}, 3 << 10),
        ({"proc/self/cgroup": "5:cpu:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096"}, 6 << 10),
    ],
)
def test_memory_is_that_of_the_machine_or_the_container(tmp_path, files, taken):
    for name, text in {"proc/meminfo": "MemAvailable: 8 kB\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_to_take(tmp_path) == taken


def test_a_statement_that_needs_too_much_memory_is_refused(tmp_path):
    script = tmp_path / "large.sql"
    script.write_text("CREATE TABLE t (x BIGINT); INSERT INTO t SELECT id FROM range(30000);")
    with server_process(script, "--port", 0, "--memory", 1.5) as (process, port, pg_port):
        client, crossed = Client(port), "SELECT max(a.x * b.x) FROM t a CROSS JOIN t b"
        status, answer = client("POST", "/v1/query", {"sql": crossed})
        assert (status, answer["error"]["kind"]) == (429, "LimitReached"), answer
        assert "--memory" in answer["error"]["hint"]
        with psycopg.connect(f"host=127.0.0.1 port={pg_port} user=ada", autocommit=True) as connection:
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more memory"):
                connection.execute(crossed)
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (30_000,)
        assert client.sql("INSERT INTO t VALUES (1)") == 1
        assert process.poll() is None
