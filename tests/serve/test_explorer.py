"""The explorer: folded circuits of any size, what its page asks for, and the page itself in a real Chromium."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pytest

import everview as ev
from chromium import PATIENCE, chromium
from everview.circuit.circuit import Circuit
from everview.database.catalog import Catalog
from everview.drawings.layout import laid_out
from everview.serve import Role, TokenFile
from everview.serve.explorer.folding import ALL, MOST, FoldedCircuit
from everview.serve.http.reasons import why_of
from serving import SCHEMA, Client, served

SHOTS = Path(__file__).parents[2] / "build" / "explorer"
BANK = """
CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING, country STRING);
CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2), note STRING);
CREATE MATERIALIZED VIEW exposure AS
  SELECT a.country, SUM(t.amount) AS total, COUNT(*) AS transfers
  FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country;
CREATE MATERIALIZED VIEW reached AS
  WITH RECURSIVE path(src, dst) AS (
    SELECT src, dst FROM transfer UNION SELECT p.src, t.dst FROM path p JOIN transfer t ON t.src = p.dst)
  SELECT * FROM path;
CREATE VIEW largest AS SELECT * FROM transfer ORDER BY amount DESC LIMIT 3;
"""
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
MILLION = 1_000_000


def bank():
    db = ev.connect()
    db.sql(BANK)
    with db.transaction() as tx:
        tx.insert("account", [(n, f"owner {n}", ["UK", "DE", "FR"][n % 3]) for n in range(30)])
        tx.insert("transfer", [(n, n % 30, (n + 1) % 7, f"{n}.50", HOSTILE) for n in range(40)])
    rows = pa.table({"k": pa.array(range(MILLION), pa.int64()), "v": pa.array([n % 977 for n in range(MILLION)])})
    db.create_table("million", rows)
    db.sql("CREATE MATERIALIZED VIEW many AS SELECT k, v FROM million")
    return db


@pytest.fixture(scope="module")
def server():
    with served(db=bank(), explorer=True) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def large_circuit(views=2_500):
    """A circuit of four nodes a view; some views read the table, and others the view before them."""
    circuit = Circuit()
    table = last = circuit.source("t", "x BIGINT NOT NULL, y BIGINT NOT NULL")
    for number in range(views):
        own = f"x{number}"
        last = (last if number % 5 else table).select("y", **{own: "x"}).select("y", x=own)
        last.sink(f"v{number}")
    return circuit


# -- folding


def test_ten_thousand_nodes_are_a_bounded_picture():
    folded = FoldedCircuit(large_circuit(), Catalog())
    assert len(folded.nodes) >= 10_000
    for opened, focus in (((), ""), ((), "v:v2400"), (tuple(f"v:v{n}" for n in range(2_000)), "")):
        drawing = folded.drawing(opened, focus)
        placed = laid_out(drawing.diagram)
        assert len(placed.boxes) <= ALL + MOST
        assert set(drawing.seen) == set(folded.nodes)  # every node is seen in some box
        assert set(drawing.seen.values()) <= {box.box.name for box in placed.boxes}
        assert not focus or focus in drawing.boxes
    large = FoldedCircuit(large_circuit(1), Catalog())
    assert [box.name for box in large.drawing(()).diagram.boxes] == ["t:t", "v:v0"]


# -- what the page asks for


def test_circuit_is_folded_by_view_and_recursion(server):
    client = Client(server.port)
    status, closed = client("GET", "/v1/explorer/circuit")
    assert status == 200
    kinds = {box["id"]: box["kind"] for box in closed["boxes"]}
    assert kinds == {
        "t:account": "table", "t:transfer": "table", "t:million": "table",
        "v:exposure": "view", "v:reached": "view", "v:many": "view",
    }  # fmt: skip
    assert closed["work"]["t:transfer"]["held"] == 40
    _, view = client("GET", "/v1/explorer/circuit?open=v:reached")
    loop = next(box for box in view["boxes"] if box["kind"] == "loop")
    _, inside = client("GET", f"/v1/explorer/circuit?open=v:reached&open={loop['id']}")
    assert len(closed["boxes"]) < len(view["boxes"]) < len(inside["boxes"])
    _, again = client("GET", f"/v1/explorer/circuit?open=v:reached&picture={view['picture']}")
    assert "boxes" not in again
    assert again["work"].keys() == view["work"].keys()
    _, node = client("GET", f"/v1/explorer/nodes/{loop['id']}")
    assert node["how"]
    assert client("GET", "/v1/explorer/nodes/n99999")[0] == 404
    assert client("GET", "/v1/explorer/circuit?open=nothing&focus=nothing")[0] == 200


def test_ticks_and_definitions(server):
    client = Client(server.port)
    _, before = client("GET", "/v1/explorer/pulse")
    client.sql("INSERT INTO transfer VALUES (900, 1, 2, 1.00, 'x')")
    _, after = client("GET", f"/v1/explorer/pulse?after={before['last']}")
    (tick,) = after["ticks"]
    assert (tick["in"], tick["rows_in"], tick["out"]["exposure"]) == ({"transfer": 1}, 1, 2)
    assert tick["placement"]
    assert tick["ms"] > 0
    assert tick["epoch"] == after["epoch"]
    client.sql("CREATE TABLE other (a BIGINT)")
    _, later = client("GET", f"/v1/explorer/pulse?after={after['last']}")
    assert later["definitions"] > after["definitions"]
    assert later["ticks"] == []
    client.sql("DROP TABLE other; DELETE FROM transfer WHERE id = 900")
    assert client("GET", "/v1/explorer/pulse?after=x")[0] == 400


def test_a_tick_is_told_once_its_rows_can_be_read():
    with served(explorer=True) as running:
        client = Client(running.port)

        def told_meanwhile(db):
            db.sql("INSERT INTO t VALUES (1, 'early', NULL, 1)")
            with pytest.raises(ev.EverviewError):
                db.sql("INSERT INTO t VALUES (1, 'twice', NULL, 1)")
            return client("GET", "/v1/explorer/pulse")[1]

        first = running._door.owner.submit(told_meanwhile).result()
        assert [tick for tick in first["ticks"] if tick["epoch"] > first["epoch"]] == []
        _, later = client("GET", f"/v1/explorer/pulse?after={first['last']}")
        assert [tick["out"] for tick in later["ticks"] if "failure" not in tick] == [{"totals": 1}]
        assert later["ticks"][0]["epoch"] == later["epoch"] > first["epoch"]


def test_search_sort_pages_and_counts(server):
    client = Client(server.port)
    _, page = client("GET", "/v1/views/account?search=OWNER%202&order=id.desc&limit=3&count=true")
    assert ([row[0] for row in page["rows"]], page["total"]) == ([29, 28, 27], 11)
    assert client("GET", "/v1/views/transfer?search=%25")[1]["rows"] == []  # a text, not a pattern
    _, body = client("POST", "/v1/query", {"sql": "SELECT * FROM account", "limit": 2})
    assert (len(body["rows"]), body["total"]) == (2, 30)
    counts = {each["name"]: each.get("rows") for each in client("GET", "/v1/views?count=true")[1]["relations"]}
    assert counts == {
        "account": 30, "transfer": 40, "million": MILLION, "exposure": 3, "reached": counts["reached"], "many": MILLION,
        "largest": None,
    }  # fmt: skip


def test_pages_of_a_million_rows_are_small(server):
    client = Client(server.port)
    for query in ("offset=999900", "order=v.desc,k", "search=97631&count=true"):
        _, _, body = client.raw("GET", f"/v1/views/many?limit=100&{query}")
        page = json.loads(body)
        assert 0 < len(page["rows"]) <= 100, query
        assert len(body) < 10_000, query
        assert page["total"] == (MILLION if "search" not in query else 20)


def test_plans_and_reasons(server):
    client = Client(server.port)
    _, plan = client("GET", "/v1/views/exposure/plan")
    assert "GROUP BY" in plan["text"]
    assert plan["optimized"].startswith("Project")
    assert client("GET", "/v1/views/account/plan")[1]["key"] == ["id"]
    assert client("GET", "/v1/views/nothing/plan")[0] == 404
    _, page = client("GET", "/v1/views/exposure?country=UK")
    row = dict(zip((column["name"] for column in page["columns"]), page["rows"][0], strict=True))
    status, why = client("POST", "/v1/views/exposure/why", {"row": row})
    assert status == 200
    assert why["because"]
    leaves, waiting = set(), [why]
    while waiting:
        node = waiting.pop()
        leaves |= {node["table"]} if node["table"] else set()
        waiting += node["because"]
    assert leaves == {"account", "transfer"}
    assert client("POST", "/v1/views/exposure/why", {"row": {**row, "transfers": 0}})[1]["error"]["kind"] == "NoSuchRow"
    for wrong in ({"row": [1]}, {"row": {"country": "UK"}}, {}):
        assert client("POST", "/v1/views/exposure/why", wrong)[0] == 400
    assert client("POST", "/v1/views/account/why", {"row": {}})[0] == 400  # a table's rows have no reasons
    assert client("POST", "/v1/views/nothing/why", {"row": {}})[0] == 404


def test_a_reason_holds_up_no_change(server, monkeypatch):
    owner, client = server._door.owner, Client(server.port)

    def meanwhile(*given):
        owner.submit(lambda _: None).result(20)
        return why_of(*given)

    monkeypatch.setattr("everview.serve.http.app.why_of", meanwhile)
    _, page = client("GET", "/v1/views/reached?limit=1")
    row = dict(zip((column["name"] for column in page["columns"]), page["rows"][0], strict=True))
    assert client("POST", "/v1/views/reached/why", {"row": row})[0] == 200


def test_only_the_page_itself_needs_no_token(tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.add("reader", Role.READ)
    with served(explorer=True, tokens=tokens, anyone=None) as running:
        stranger, reader = Client(running.port), Client(running.port, Authorization=f"Bearer {token}")
        status, headers, body = stranger.raw("GET", "/")
        assert status == 200
        assert b"<script" in body
        assert b"http" not in body
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert stranger.raw("GET", "/main.js", If_None_Match=stranger.raw("GET", "/main.js")[1]["etag"])[0] == 304
        for path in ("/v1/explorer/pulse", "/v1/explorer/circuit", "/v1/explorer/words", "/v1/views/t/plan"):
            assert (stranger.raw("GET", path)[0], reader.raw("GET", path)[0]) == (401, 200), path
        assert stranger.raw("GET", "/", Host="elsewhere.example")[0] == 403
        for path in ("/../pages.py", "/%2e%2e/pages.py", "/static/index.html", "//main.js"):
            assert reader.raw("GET", path)[0] == 404, path


# -- the page in a real browser


class Ticking:
    """Ticks that arrive while a page is looked at."""

    def __init__(self, client):
        self._client, self._over = client, threading.Event()
        self._thread = threading.Thread(target=self._tick)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _tick(self):
        for number in itertools.count(1_000):
            if self._over.wait(0.1):
                return
            self._client.sql(f"INSERT INTO transfer VALUES ({number}, {number % 30}, {number % 7}, 2.00, 'tick')")


def wrong_requests(tab):
    """What the browser's console says, besides that a statement with a mistake was refused."""
    return [said for said in tab.complaints if "/v1/query" not in said]


@pytest.mark.slow
def test_a_walk_through_the_page_while_ticks_arrive(server, browser):
    client = Client(server.port)
    with Ticking(client):
        tab = browser.tab(f"http://127.0.0.1:{server.port}/")
        tab.until("document.querySelectorAll('.box').length >= 6")
        tab.until("document.querySelector('[data-box=\"v:exposure\"].moves')")
        tab.screenshot(SHOTS / "circuit.png")
        tab.click('[data-box="v:reached"]')
        tab.until("document.querySelector('.box.loop')")
        tab.click(".box.loop")
        tab.until("document.querySelector('.box.loop.open')")
        tab.until("document.querySelector('.drawer .facts dd')")
        tab.screenshot(SHOTS / "circuit-open.png")
        tab.press("Escape")
        tab.press("f")
        tab.until("document.querySelectorAll('.box').length === 6")

        tab.evaluate("location.hash = '#/ticks'")
        tab.until("document.querySelectorAll('.tick').length > 3")
        tab.screenshot(SHOTS / "ticks.png")

        tab.click('[data-relation="exposure"]')
        tab.until("document.querySelectorAll('tr[data-place]').length === 3")
        tab.click("th button")
        tab.until(
            "document.querySelector('[aria-sort=ascending]') && document.querySelector('td').textContent === 'DE'"
        )
        tab.press("s")
        tab.write("uk")
        tab.until("document.querySelectorAll('tr[data-place]').length === 1")
        tab.click('[data-relation="reached"]')  # whose rows stay, while those of exposure change
        tab.until("document.querySelectorAll('tr[data-place]').length > 30")
        tab.press("j")
        tab.press("Enter")
        tab.until("document.querySelector('.tree .leaf')")
        tab.screenshot(SHOTS / "why.png")
        tab.click('[data-relation="exposure"]')
        tab.until("document.querySelectorAll('tr[data-place]').length === 3")
        tab.click(".tabs a:nth-child(2)")
        tab.until("document.querySelectorAll('.changes tbody tr').length > 1")
        tab.click(".tabs a:nth-child(3)")
        tab.until("document.querySelector('.beside b')")

        tab.click('[data-relation="transfer"]')
        tab.until("[...document.querySelectorAll('td')].some((cell) => cell.textContent.startsWith('<img'))")
        assert tab.evaluate("document.title") == "transfer · Everview"
        assert tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert wrong_requests(tab) == []


SEES = "[...document.querySelectorAll('td')].some((cell) => cell.textContent === {!r})"


def look_at_totals(browser, port):
    """The rows of a view, on a page that has shown the drawer of the view's box before."""
    tab = browser.tab(f"http://127.0.0.1:{port}/")
    tab.click('[data-box="v:totals"]')
    tab.until("document.querySelector('.drawer .facts dd')")
    tab.click('[data-relation="totals"]')
    tab.until(SEES.format("old"))
    return tab


def wait_for_pulses(tab, count):
    """Wait until a page has asked for the pulse so many times more."""

    def asked():
        return sum("/pulse" in url for url in list(tab.requests.values()))

    over = monotonic() + PATIENCE
    least = asked() + count
    while asked() < least:
        assert monotonic() < over, "the page asks no more"
        sleep(0.05)


@pytest.mark.slow
def test_rows_appear_when_a_tick_is_seen_before_its_rows(browser):
    with served(explorer=True) as running:
        client = Client(running.port)
        client.sql("INSERT INTO t VALUES (1, 'old', NULL, 1)")
        tab = look_at_totals(browser, running.port)

        def insert_and_go_on(db):
            db.sql("INSERT INTO t VALUES (2, 'new', NULL, 1)")
            wait_for_pulses(tab, 4)

        running._door.owner.submit(insert_and_go_on).result()
        tab.until(SEES.format("new"))
        assert wrong_requests(tab) == []


@pytest.mark.slow
def test_rows_of_a_follower_appear(browser, tmp_path):
    with ev.connect(tmp_path / "state") as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'old', NULL, 1)")
        with served(db=ev.connect(tmp_path / "state", read_only=True), explorer=True) as running:
            tab = look_at_totals(browser, running.port)
            db.sql("INSERT INTO t VALUES (2, 'new', NULL, 1)")
            tab.until(SEES.format("new"))
            assert wrong_requests(tab) == []


@pytest.mark.slow
def test_rows_appear_when_a_tick_changes_many_views(browser):
    with served(explorer=True) as running:
        client = Client(running.port)
        client.sql("INSERT INTO t VALUES (1, 'old', NULL, 1)")
        for number in range(15):  # each with more changed rows than totals, so a tick names them and not totals
            client.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT k + {number} AS k FROM t")
        tab = look_at_totals(browser, running.port)
        wait_for_pulses(tab, 2)
        client.sql("INSERT INTO t VALUES (2, 'new', NULL, 1), (3, 'new', NULL, 1), (4, 'new', NULL, 1)")
        tab.until(SEES.format("new"))
        assert wrong_requests(tab) == []


@pytest.mark.slow
def test_sql_completes_and_shows_where_a_mistake_is(server, browser):
    tab = browser.tab(f"http://127.0.0.1:{server.port}/#/sql", dark=True)
    tab.until("document.activeElement.matches('textarea')")
    tab.write("SELECT t.no")
    tab.evaluate("document.querySelector('textarea').value += ' FROM transfer t'")
    tab.evaluate("document.querySelector('textarea').setSelectionRange(11, 11)")
    tab.evaluate("document.querySelector('textarea').dispatchEvent(new Event('input'))")
    tab.until("document.querySelector('.offers li')?.textContent.startsWith('note')")
    tab.press("Tab")
    assert tab.evaluate("document.querySelector('textarea').value") == "SELECT t.note  FROM transfer t"
    tab.evaluate("document.querySelector('textarea').value = 'SELECT id,\\n  amont FROM transfer'")
    tab.press("Enter", control=True)
    tab.until("document.querySelector('.wrong')?.textContent === 'amont'")
    assert "Line 2, column 3" in tab.evaluate("document.querySelector('.problem').textContent")
    tab.screenshot(SHOTS / "sql-wrong.png")
    tab.evaluate("document.querySelector('textarea').value = 'SELECT * FROM many'")
    tab.press("Enter", control=True)
    tab.until("document.querySelectorAll('tbody tr').length === 500")
    assert "1,000,000 rows, the first 500" in tab.evaluate("document.querySelector('.foot').textContent")
    assert wrong_requests(tab) == []


@pytest.mark.slow
def test_a_large_circuit_and_a_large_view_do_not_stall_a_phone(server, browser, monkeypatch):
    folded = FoldedCircuit(large_circuit(), Catalog())
    monkeypatch.setattr("everview.serve.explorer.explorer.Explorer.folded", lambda self: folded)
    server._door.explorer._drawn.clear()  # pictures of the circuit that was there
    tab = browser.tab(f"http://127.0.0.1:{server.port}/#/circuit", 390, 780)
    tab.until("document.querySelectorAll('.box').length > 50")
    tab.click('[data-box="v:v0"]')
    tab.until("document.querySelector('.box.open')")
    assert tab.evaluate("document.querySelectorAll('*').length") < 5_000
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.screenshot(SHOTS / "phone-large.png")
    tab.evaluate("location.hash = '#/relation/many'")
    tab.until("document.querySelectorAll('tr[data-place]').length === 100")
    tab.until("document.querySelector('.foot .info').textContent === '1–100 of 1,000,000'")
    tab.press("n")
    tab.until("document.querySelector('.foot .info').textContent === '101–200 of 1,000,000'")
    assert tab.evaluate("document.querySelectorAll('*').length") < 1_500
    assert max(tab.received.values()) < 400_000
    assert wrong_requests(tab) == []
