"""Cells of notebooks, run by IPython itself, and live widgets: what they send, and how a browser draws it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import everview as ev
from chromium import Tab, chromium
from everview.notebook import live


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    assert shell.extension_manager.load_extension("everview") is None
    yield shell
    shell.user_ns.clear()
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, text: str, line: str = "") -> object:
    return shell.run_cell_magic("everview", line, text)


def test_cells_of_sql_make_a_database_and_ask_it(notebook: InteractiveShell) -> None:
    cell(notebook, "CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1), (2);")
    answer = cell(notebook, "SELECT sum(n) AS total FROM t", "--into kept")
    assert notebook.user_ns["kept"] is answer
    assert "<td" in answer._repr_html_()
    assert notebook.run_line_magic("everview", "SELECT max(n) AS most FROM t").rows() == [(2,)]
    assert isinstance(notebook.user_ns["db"], ev.Database)


def test_other_languages_and_databases(notebook: InteractiveShell) -> None:
    notebook.user_ns["mine"] = mine = ev.connect()
    cell(
        notebook,
        ".decl e(x: number, y: number)\n.input e\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).",
        "mine --datalog",
    )
    mine.apply({"e": [((1, 2), 1), ((2, 3), 1)]})
    assert sorted(mine.view("p").rows()) == [(1, 2), (1, 3), (2, 3)]
    mine.sql("CREATE TABLE city (id BIGINT PRIMARY KEY, name STRING); INSERT INTO city VALUES (1, 'Rome')")
    assert cell(notebook, "{:find [?n] :where [[?c :city/name ?n]]}", "mine --edn") == [("Rome",)]
    assert cell(notebook, "SELECT x::BIGINT AS x FROM e WHERE x = 1", "mine --dialect duckdb").rows() == [(1,)]


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ("", "SELECT nn FROM nowhere", "nowhere"),
        ("other", "SELECT 1", "other is not defined, not a database"),
        ("number", "SELECT 1", "number is a int, not a database"),
        ("--dialogue x", "SELECT 1", "unrecognized arguments"),
        ("--datalog --edn", "p(1).", "not allowed with"),
        ("'", "SELECT 1", "No closing quotation"),
    ],
)
def test_a_mistake_is_a_sentence(notebook: InteractiveShell, line: str, text: str, said: str) -> None:
    notebook.user_ns["number"] = 7
    with pytest.raises(UsageError, match=said):
        cell(notebook, text, line)


# -- live widgets


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The messages that widgets send to a browser, of which there is none."""
    import comm
    from comm.base_comm import BaseComm

    messages: list[dict[str, Any]] = []

    class Recorded(BaseComm):
        def publish_msg(self, msg_type: str, data: Any = None, **rest: Any) -> None:
            messages.append({"type": msg_type, **(data or {})})

    monkeypatch.setattr(comm, "create_comm", Recorded)
    return messages


def until(holds: Callable[[], bool]) -> None:
    deadline = monotonic() + 30
    while not holds():
        assert monotonic() < deadline
        sleep(0.01)


def shop() -> ev.Database:
    db = ev.connect()
    db.sql("CREATE TABLE sale (id BIGINT PRIMARY KEY, city STRING, price DECIMAL(9,2), at TIMESTAMP)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT city, price, at, price > 5 AS dear FROM sale")
    db.sql("INSERT INTO sale VALUES (1, '<b>', 7.50, TIMESTAMP'2026-01-02 03:04'), (2, NULL, NULL, NULL)")
    return db


def test_a_live_view_shows_values_as_people_read_them(sent: list[dict[str, Any]]) -> None:
    db = shop()
    with live(db.view("v"), every=0) as shown:
        widget = shown.widget
        assert widget.columns == [
            {"name": "city", "number": False},
            {"name": "price", "number": True},
            {"name": "at", "number": False},
            {"name": "dear", "number": False},
        ]
        assert sorted(widget.rows, key=str) == [["<b>", "7.50", "2026-01-02 03:04:00", "true"], [None] * 4]
        assert widget.caption == "v: 2 rows, epoch 3"
        assert any("_esm" in message.get("state", {}) for message in sent)
        assert "http" not in widget._css + widget._esm.replace("http://www.w3.org/2000/svg", "")
        before = len(sent)
        db.sql("DELETE FROM sale WHERE id = 2")
        until(lambda: widget.caption == "v: 1 row, epoch 4")
        states = [message["state"] for message in sent[before:] if message.get("method") == "update"]
        assert [{*state} for state in states] == [{"caption", "rows", "version"}], "one message, of what has changed"
        db.sql("UPDATE sale SET id = 3")  # changes no row of the view
    assert sent[-1]["type"] == "comm_close"
    assert not shown.active
    db.sql("INSERT INTO sale VALUES (4, 'Rome', 1, NULL)")
    assert widget.caption == "v: 1 row, epoch 4"


def test_a_page_is_bounded_and_in_order(sent: list[dict[str, Any]]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (n BIGINT, s STRING); CREATE MATERIALIZED VIEW v AS SELECT n, s FROM t ORDER BY n DESC")
    db.apply({"t": [((n, "x"), 1 + n % 2) for n in range(100)]})
    with live(db.view("v"), rows=3) as own, live(db.view("v"), rows=2, by="n", every=0) as by:
        assert [row[0] for row in own.widget.rows] == ["99", "99", "98"]
        assert by.widget.caption == "v: 150 rows, the first 2 are shown, epoch 3"
        db.apply({"t": [((0, "x"), -1), ((1, "x"), -1)]})
        until(lambda: [row[0] for row in by.widget.rows] == ["1", "2"])
    with live(db, "SELECT n FROM t WHERE n < 50", rows=4) as query:
        assert (db.views(), [row[0] for row in query.widget.rows]) == (["v", "live_1"], ["1", "2", "3", "3"])
    assert db.views() == ["v"]


def test_many_ticks_are_few_messages_and_no_tick_fails(sent: list[dict[str, Any]], monkeypatch: Any) -> None:
    db = shop()
    with live(db.view("v"), every=0.2) as shown:
        before = len(sent)
        for number in range(10, 60):
            db.apply({"sale": [((number, "Oslo", "1.00", None), 1)]})
        until(lambda: shown.widget.caption.startswith("v: 52 rows"))
        assert len(sent) - before < 25
        monkeypatch.setattr(type(shown._page), "read", lambda page: 1 // 0)
        db.sql("DELETE FROM sale")
        until(lambda: shown.widget.problem == "ZeroDivisionError: integer division or modulo by zero")
        monkeypatch.undo()
        db.sql("INSERT INTO sale VALUES (1, 'Rome', 1, NULL)")
        until(lambda: shown.widget.problem == "" and shown.widget.caption.startswith("v: 1 row,"))
        db.drop("v")
        until(lambda: shown.widget.problem == "view v has ended")
        until(lambda: not shown.active)


def test_a_live_circuit_notes_what_came_and_what_is_held(sent: list[dict[str, Any]]) -> None:
    db = shop()
    with live(db) as shown:
        widget = shown.widget
        boxes = re.findall(r'data-box="(n\d+)"', widget.picture)
        assert {*widget.notes} == {*boxes}
        db.sql("INSERT INTO sale VALUES (4, 'Rome', 1, NULL)")
        until(lambda: widget.caption.endswith("epoch 4"))
        assert {"holds 3 · +1"} <= {text for text, busy in widget.notes.values() if busy}
        before = widget.picture
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT city, count(*) AS n FROM sale GROUP BY city")
        until(lambda: widget.picture != before)
        db.close()
        until(lambda: widget.problem == "the database is closed")


def test_a_large_circuit_is_a_table_of_what_did_most() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (n BIGINT)")
    db.sql(";".join(f"CREATE MATERIALIZED VIEW v{n} AS SELECT n + {n} AS n FROM t GROUP BY n" for n in range(16)))
    db.apply({"t": [((1,), 1)]})
    with live(db, rows=7) as shown:
        assert (shown.widget.picture, len(shown.widget.rows)) == ("", 7)
        assert [column["name"] for column in shown.widget.columns] == ["node", "operation", "holds", "rows", "new"]


# What anywidget gives to `render`: a model with the state of the widget, whose listeners are called when it changes.
MODEL = """
(async (esm, css, state) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const listeners = {};
  const model = {
    get: (name) => state[name],
    on: (name, listener) => { listeners[name] = listener; },
    off: (name) => { delete listeners[name]; },
  };
  window.update = (changed) => {
    Object.assign(state, changed);
    for (const name of Object.keys(changed)) listeners[`change:${name}`]?.();
  };
  const drawing = (await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })))).default;
  window.end = drawing.render({ model, el: document.body });
})(%s)
"""


def drawn(tab: Tab) -> list[list[str]]:
    """The cells of the table in a page, each with its classes if it has any."""
    return tab.evaluate("""[...document.querySelectorAll("tbody tr")].map(
      (row) => [...row.cells].map((cell) => cell.textContent + (cell.className && ` (${cell.className})`)))""")


def test_a_browser_draws_what_is_sent(sent: list[dict[str, Any]]) -> None:
    db = shop()
    with chromium() as browser, live(db.view("v"), by="price", every=0) as shown:
        tab = browser.tab("about:blank")
        opened = next(message["state"] for message in sent if "_esm" in message.get("state", {}))
        given = [opened.pop("_esm"), opened.pop("_css"), opened]
        tab.evaluate(MODEL % ", ".join(map(json.dumps, given)))
        tab.evaluate(f"update({json.dumps(shown.widget.get_state())})")
        assert drawn(tab) == [
            ["NULL (null)", "NULL (number null)", "NULL (null)", "NULL (null)"],
            ["<b>", "7.50 (number)", "2026-01-02 03:04:00", "true"],
        ]
        before = len(sent)
        db.sql("DELETE FROM sale WHERE id = 2; INSERT INTO sale VALUES (3, 'Rome', 9, NULL)")
        until(lambda: shown.widget.caption == "v: 2 rows, epoch 5")
        for message in sent[before:]:
            tab.evaluate(f"update({json.dumps(message['state'])})")
        assert [row[0] for row in drawn(tab)] == ["<b>", "Rome"]
        assert tab.evaluate('document.querySelector("tr.new td").textContent') == "Rome"
        assert tab.evaluate('document.querySelector(".caption").textContent') == "v: 2 rows, epoch 5"
        with live(db) as circuit:
            tab.evaluate(f"update({json.dumps(circuit.widget.get_state())})")
        assert "holds 2" in tab.evaluate(
            '[...document.querySelectorAll(".note")].map((note) => note.textContent).join()'
        )
        tab.evaluate("end(); update({ caption: 'unheard', version: 99 })")
        assert tab.evaluate('document.querySelector(".caption").textContent') != "unheard"
        assert not tab.complaints


def test_cells_that_are_live_and_what_cannot_be(notebook: InteractiveShell) -> None:
    cell(notebook, "CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1), (2);")
    with cell(notebook, "SELECT n FROM t WHERE n > 1;\n", "--live") as shown:
        assert shown.widget.rows == [["2"]]
        shown._ipython_display_()
    db = notebook.user_ns["db"]
    for given, options, said in [
        ((db.table("t"),), {}, "View"),
        ((db,), {"rows": 0}, "0 rows"),
        ((db,), {"every": float("nan")}, "seconds"),
        ((db, "SELECT nn FROM t"), {}, "nn"),
    ]:
        with pytest.raises(ev.EverviewError, match=said):
            live(*given, **options)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT n FROM t")
    with pytest.raises(ev.EverviewError, match="asked of a database"):
        live(db.view("v"), "SELECT 1")
    with pytest.raises(ev.EverviewError, match="mm"):
        live(db.view("v"), by="mm")
    assert not db._core.telling.listeners.has("v")
