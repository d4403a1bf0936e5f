"""Cells of notebooks, run by IPython itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import everview as ev


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
