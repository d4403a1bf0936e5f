"""HTTP over real sockets: queries, views, changes, rows that come in, who may, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
from contextlib import closing, suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.serve import Role, TokenFile
from serving import Client, Events, served


@pytest.fixture(scope="module")
def server():
    with served(limits={"body_bytes": 100_000, "rows": 2_000}) as running:
        client = Client(running.port)
        client.sql(
            "INSERT INTO t VALUES (1, 'a', TIMESTAMP '2024-05-06 07:08:09', 2.25), (2, 'b', NULL, NULL), "
            "(3, 'a', NULL, 0)"
        )
        yield running


@pytest.fixture
def client(server):
    return Client(server.port)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("k=1", [[1, "a", "2024-05-06T07:08:09Z", "2.25"]]),
        ("v=a&select=k&order=k.desc", [[3], [1]]),
        ("v=a&k=3&select=v,k", [["a", 3]]),
        ("k=1&k=2&select=k&order=k", [[1], [2]]),
        ("k.ge=2&select=k&order=k", [[2], [3]]),
        ("k.ne=1&k.ne=2&select=k", [[3]]),
        ("d.is=null&select=k", [[2]]),
        ("d.isnot=&d.lt=1.5&select=k", [[3]]),
        ("v.like=%25b%25&select=k", [[2]]),
        ("at.gt=2024-01-01&select=k", [[1]]),
        ("order=k&limit=1&offset=1&select=k", [[2]]),
        ("v=%27%20OR%201%3D1%20--&select=k", []),
        ("k=9223372036854775807", []),
    ],
)
def test_filters_and_pages(client, query, rows):
    status, answer = client("GET", f"/v1/views/t?{query}")
    assert (status, answer.get("rows")) == (200, rows), answer


def test_pages_follow_each_other(client):
    seen, path = [], "/v1/views/t?limit=2&select=k"
    while path is not None:
        _, headers, body = client.raw("GET", path)
        answer = json.loads(body)
        seen += answer["rows"]
        path = answer.get("next", "").partition("//")[2].partition("/")[2] or None
        assert ("link" in headers) == (path is not None)
        path = None if path is None else f"/{path}"
    assert sorted(seen) == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("query", "status", "kind"),
    [
        ("nope=1", 400, "UnknownName"),
        ("k=x", 400, "CastFailure"),
        ("limit=-1", 400, "EverviewError"),
        ("limit=9999999", 429, "LimitReached"),
        ("order=k%3BDROP", 400, "UnknownName"),
        ("format=exe", 400, "UnknownName"),
    ],
)
def test_wrong_filters_are_told(client, query, status, kind):
    got, answer = client("GET", f"/v1/views/t?{query}")
    assert (got, answer["error"]["kind"]) == (status, kind), answer


def test_formats(client):
    _, headers, body = client.raw("GET", "/v1/views/t?k=1", Accept="application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(body).read_all()
    assert table.column("d").to_pylist()[0].as_tuple().digits == (2, 2, 5)
    assert headers["x-everview-epoch"].isdecimal()
    assert client.raw("GET", "/v1/views/totals?format=csv&order=v")[2] == b'"v","n"\n"a",2\n"b",1\n'
    _, headers, body = client.raw(
        "POST", "/v1/query?format=csv", "SELECT array(1, 2) AS a", Content_Type="application/sql"
    )
    assert (headers["content-type"], body) == ("text/csv; charset=utf-8", b'"a"\n"[1,2]"\n')


def test_queries(client):
    assert client.sql("SELECT v FROM t WHERE k = :k", {"k": 2}) == [["b"]]
    assert client.sql("SELECT CAST('NaN' AS DOUBLE), X'00ff', DATE '2024-01-02', 1.50BD") == [
        ["NaN", "AP8=", "2024-01-02", "1.50"]
    ]
    assert client("GET", "/v1/query?sql=SELECT%201%20AS%20one")[1]["rows"] == [[1]]
    status, answer = client("POST", "/v1/query", {"sql": "SELECT k\nFROM tt"})
    assert (status, answer["error"]["position"]) == (400, {"line": 2, "column": 6})
    assert answer["error"]["hint"]
    assert client("GET", "/v1/query?sql=DELETE%20FROM%20t")[0] == 403
    assert client("POST", "/v1/query", {"sql": "SELECT * FROM read_csv('/etc/passwd')"})[0] == 403
    assert client.sql("BEGIN; INSERT INTO t (k, v) VALUES (100, 'x'); DELETE FROM t WHERE k = 100; COMMIT") is None
    unended = {"sql": "BEGIN; INSERT INTO t (k, v) VALUES (100, 'x')"}  # is rolled back with the request
    assert client("POST", "/v1/query", unended)[0] == 400
    assert client.sql("SELECT count(*) FROM t WHERE k = 100") == [[0]]
    assert client("POST", "/v1/query", {"sql": "SELECT explode(sequence(1, 5000))"})[0] == 429


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-ndjson", '{"k": 50, "v": "n"}\n\n{"k": 51, "v": null, "at": "2024-01-01T00:00:00Z"}\n'),
        ("application/json", '[{"k": 50, "v": "n"}, {"k": 51, "v": null, "at": "2024-01-01T00:00:00Z"}]'),
        ("text/csv", "k,v,at\n50,n,\n51,,2024-01-01\n"),
        ("text/csv; charset=utf-8", 'at,k,v\r\n,50,"n"\r\n2024-01-01,51,\r\n'),
    ],
)
def test_rows_come_in(client, kind, body):
    assert client("POST", "/v1/ingest/t", body, Content_Type=kind)[1]["rows"] == 2
    expected = [[50, "n", None, "1.50"], [51, None, "2024-01-01T00:00:00Z", "1.50"]]
    assert client("GET", "/v1/views/t?k.ge=50&order=k")[1]["rows"] == expected
    gone = client("POST", "/v1/ingest/t?mode=delete", '{"k": 50}\n{"k": 51}', Content_Type="application/x-ndjson")
    assert gone[1]["rows"] == 2


def test_rows_come_in_as_arrow_and_replace_others(client):
    def body(table):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    arrow = {"Content_Type": "application/vnd.apache.arrow.stream"}
    assert client("POST", "/v1/ingest/t", body(pa.table({"k": [60], "v": ["x"]})), **arrow)[1]["rows"] == 1
    assert client("POST", "/v1/ingest/t", body(pa.table({"k": [60], "v": ["y"]})), **arrow)[0] == 409
    upsert = client("POST", "/v1/ingest/t?mode=upsert", body(pa.table({"k": [60], "v": ["y"]})), **arrow)
    assert upsert[0] == 200
    assert client("GET", "/v1/views/t?k=60&select=v")[1]["rows"] == [["y"]]
    client.sql("DELETE FROM t WHERE k = 60")


def test_a_delivery_with_a_key_is_taken_once(client):
    first = client("POST", "/v1/ingest/t", '{"k": 70, "v": "z"}', Idempotency_Key="one")
    assert first[0] == 200
    again = client("POST", "/v1/ingest/t", '{"k": 70, "v": "z"}', Idempotency_Key="one")
    assert again == (200, {**first[1], "replayed": True})
    assert client("POST", "/v1/ingest/t", '{"k": 71, "v": "z"}', Idempotency_Key="one")[0] == 400
    failed = client("POST", "/v1/ingest/t", '{"k": 70, "v": "again"}', Idempotency_Key="two")
    assert failed[0] == 409  # and the key is free
    assert client("POST", "/v1/ingest/t", '{"k": 71, "v": "z"}', Idempotency_Key="two")[0] == 200
    assert client("POST", "/v1/ingest/everview_ingests", '{"key": "x"}')[0] == 400
    client.sql("DELETE FROM t WHERE k >= 70")


bodies = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "v", "at", "d", "x"]), inner),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)
KINDS = ["application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream", "text/html", ""]


@settings(max_examples=25, deadline=None)
@given(
    body=bodies,
    kind=st.sampled_from(KINDS),
    key=st.none() | st.text(st.characters(codec="latin-1", categories=["L", "N"]), min_size=1),
)
def test_hostile_bodies_are_refused_or_taken_whole(server, body, kind, key):
    client = Client(server.port)
    before = client("GET", "/healthz")[1]["epoch"]
    headers = {"Content_Type": kind} | ({} if key is None else {"Idempotency_Key": key})
    status, answer = client("POST", "/v1/ingest/t", body, **headers)
    assert status in (200, 400, 409), answer
    if status == 200:
        client.sql("DELETE FROM t WHERE k > 3 OR k < 1")
    else:
        assert set(answer["error"]) == {"kind", "message", "hint"}
        assert client("GET", "/healthz")[1]["epoch"] in (before, before + 1)  # the table of keys is made once
    assert client.sql("SELECT count(*) FROM t") == [[3]]


def test_limits_of_bodies(client, server):
    assert client("POST", "/v1/ingest/t", "x" * 200_000)[0] == 413
    assert Client(server.port)("POST", "/v1/query", "x", Content_Encoding="gzip")[0] == 400
    with socket.create_connection(("127.0.0.1", server.port)) as raw:  # one that does not say how long it is
        raw.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        part = b"2710\r\n" + b"y" * 10_000 + b"\r\n"
        with suppress(OSError):
            for _ in range(50):
                raw.sendall(part)
        assert b"413" in raw.recv(100)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8520"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Host": "localhost:8520", "Origin": "http://localhost:8520"}, 200),
    ],
)
def test_hosts_and_origins(client, headers, status):
    assert client("GET", "/v1/query?sql=SELECT%201", **headers)[0] == status


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PUT", "/v1/query", 405, "GET, HEAD, POST"),
        ("DELETE", "/v1/views/t", 405, "GET, HEAD"),
        ("GET", "/v1/ingest/t", 405, "POST"),
        ("DELETE", "/v1/nothing", 404, None),
        ("POST", "/v1/ingest/t?upsert=true", 400, None),  # a parameter that is not there is not passed over
        ("GET", "/v1/views?limit=1", 400, None),
        ("GET", "/v1/views/totals/changes?from=1", 400, None),
        ("GET", "/v1/query?sql=SELECT%201&params=[1]", 400, None),
    ],
)
def test_methods_and_parameters_that_are_not_there(client, method, path, status, allow):
    told, headers, _ = client.raw(method, path)
    assert (told, headers.get("allow")) == (status, allow)


def test_a_client_that_leaves_within_its_request_is_no_fault(client, server, caplog):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
            assert client("GET", "/healthz")[0] == 200  # so the server has begun with the request
    for _ in range(20):
        assert client("GET", "/healthz")[0] == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_changes_as_events(client, server):
    events = Events(server.port, "/v1/views/totals/changes")
    kind, start, data = events.next()
    assert (kind, sorted(data["rows"])) == ("snapshot", [["a", 2, 1], ["b", 1, 1]])
    assert [column["name"] for column in data["columns"]] == ["v", "n"]
    client.sql("INSERT INTO t (k, v) VALUES (80, 'b')")
    kind, epoch, data = events.next()
    assert (kind, sorted(data["rows"])) == ("change", [["b", 1, -1], ["b", 2, 1]])
    events.close()
    client.sql("DELETE FROM t WHERE k = 80")
    again = Events(server.port, "/v1/views/totals/changes", Last_Event_ID=str(start))
    assert [again.next()[1], again.next()[1]] == [epoch, epoch + 1]
    again.close()
    with closing(Events(server.port, "/v1/views/totals/changes?since=999999&snapshot=false")) as lost:
        assert lost.next()[0] == "end"
    assert client("GET", "/v1/views/nope/changes")[0] == 404
    assert client("GET", "/v1/views/totals/changes?since=x")[0] == 400


def test_curl_metrics_and_openapi(server):
    curl = shutil.which("curl")
    assert curl is not None
    url = f"http://127.0.0.1:{server.port}"
    Client(server.port).sql("SELECT 1")
    said = subprocess.run(
        [curl, "-sS", f"{url}/metrics"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert 'everview_table_rows{table="t"} ' in said
    assert 'everview_statements_total{thread="reader"}' in said
    described = json.loads(subprocess.run([curl, "-sS", f"{url}/openapi.json"], capture_output=True, check=True).stdout)
    from everview.serve.http.app import ROUTES

    told = {(path, method.upper()) for path, methods in described["paths"].items() for method in methods}
    assert told == {(path, method) for path, _, methods in ROUTES for method in methods}


def test_the_last_ticks_are_a_timeline(client):
    client.sql("INSERT INTO t VALUES (901, 'a', NULL, 0)")
    client.sql("DELETE FROM t WHERE k = 901")
    status, answer = client("GET", "/v1/progress?count=2")
    assert (status, len(answer["epochs"])) == (200, 2)
    last = answer["epochs"][-1]
    assert (last["epoch"], last["rows_in"], last["rows_out"]) == (answer["epoch"], {"t": 1}, {"totals": 2})
    assert (last["placement"], last["failure"]) == ("process", None)
    assert last["seconds"] > 0
    assert last["began"] > 1_700_000_000
    assert client("GET", "/v1/progress?count=-1")[0] == 400


def test_tokens_and_roles(tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    read, write = tokens.add("reader", Role.READ), tokens.add("writer", Role.WRITE)
    assert read.partition(".")[2] not in tokens.path.read_text()
    assert tokens.path.stat().st_mode & 0o077 == 0
    with served(anyone=None, tokens=tokens, origins=frozenset({"https://app.example"})) as server:
        assert Client(server.port)("GET", "/healthz")[0] == 200
        for wrong in (
            "",
            "Bearer",
            "Bearer x",
            "Bearer reader.",
            f"Basic {read}",
            f"Bearer reader.{write}",
            "Bearer \u00e9.x",
        ):
            status, headers, _ = Client(server.port).raw("GET", "/v1/views", Authorization=wrong)
            assert (status, headers["www-authenticate"]) == (401, "Bearer"), wrong
        reader, writer = (Client(server.port, Authorization=f"Bearer {token}") for token in (read, write))
        assert reader("GET", "/v1/views")[0] == 200
        assert reader("POST", "/v1/ingest/t", '{"k": 1}')[0] == 403
        assert reader("POST", "/v1/query", {"sql": "DELETE FROM t"})[0] == 403
        assert writer("POST", "/v1/ingest/t", '{"k": 1}')[0] == 200
        assert writer("POST", "/v1/query", {"sql": "DROP TABLE t"})[0] == 403
        status, headers, _ = reader.raw("GET", "/v1/views", Origin="https://app.example")
        assert (status, headers["access-control-allow-origin"]) == (200, "https://app.example")
        assert reader.raw("OPTIONS", "/v1/views", Origin="https://app.example")[0] == 204
        tokens.remove("reader")
        assert reader("GET", "/v1/views")[0] == 401
