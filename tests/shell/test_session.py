"""The shell as a session: inputs, answers, commands, subscriptions, files and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import everview as ev
from everview.shell import ShellSession
from everview.shell.inputs import cut
from everview.shell.names import completions
from everview.shell.session import Leave


class Shell:
    """A session whose output is text."""

    def __init__(self, *, objects: bool = False, width: int = 60) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.session = ShellSession(
            ev.connect(), Console(file=self.out, width=width), Console(file=self.err, width=width), objects=objects
        )

    def __call__(self, text: str, *, go_on: bool = False) -> str:
        self.out.truncate(self.out.seek(0))
        self.err.truncate(self.err.seek(0))
        self.session.run(text, go_on=go_on)
        return self.out.getvalue()


@pytest.mark.parametrize(
    ("text", "inputs", "rest"),
    [
        ("", [], ""),
        (" ;; ", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; -- the end", ["SELECT 1;"], ""),
        ("SELECT ';", [], "SELECT ';"),
        ("SELECT 'it\\'s; one'; x", ["SELECT 'it\\'s; one';"], " x"),
        ('SELECT `a;b` /* ; \n */, "c;";', ['SELECT `a;b` /* ; \n */, "c;";'], ""),
        ("/* open ;", [], "/* open ;"),
        ("\\d t\nSELECT\n1;\\timing", ["\\d t", "SELECT\n1;", "\\timing"], ""),
        ("SELECT a \\ b;", ["SELECT a \\ b;"], ""),
    ],
)
def test_text_is_cut_into_inputs(text: str, inputs: list[str], rest: str) -> None:
    assert cut(text) == (inputs, rest)


def test_answers_fit_the_terminal_and_are_read_by_people() -> None:
    shell = Shell()
    shell("CREATE TABLE t (n BIGINT, s STRING, b BINARY, a ARRAY<INT>, ok BOOLEAN, at TIMESTAMP)")
    long = "long " * 30
    assert "1 row changed" in shell(
        f"INSERT INTO t VALUES (7, '{long}', X'00ff', array(1, NULL), true, TIMESTAMP'2026-01-01 10:00:00');"
    )
    shown = shell("SELECT b, a, ok, at FROM t") + shell("SELECT n, NULL AS nothing, '' AS empty FROM t")
    for text in ("NULL", "X'00ff'", "[1, null]", "true", "2026-01-01", "1 row"):
        assert text in shown
    shown = shell("SELECT n, s FROM t; SELECT id FROM range(500)")
    assert max(map(len, shown.splitlines())) <= 60
    assert "500 rows, the first 200 are shown" in shown


def test_errors_are_those_of_the_library_and_end_a_script() -> None:
    shell = Shell()
    shell("CREATE TABLE t (n BIGINT); SELECT [m] FROM t; INSERT INTO t VALUES (1)")
    assert shell.err.getvalue().startswith("error: ")
    assert "hint: available: n" in shell.err.getvalue()
    assert len(shell.session.db.table("t")) == 0
    shell("SELECT m FROM t; INSERT INTO t VALUES (1)", go_on=True)
    assert len(shell.session.db.table("t")) == 1
    shell("\\nothing")
    assert "there is no command \\nothing" in shell.err.getvalue()


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell()
    shell("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c FROM t")
    listed = shell("\\d")
    assert " t " in listed
    assert " v " in listed
    assert "BIGINT" in shell("\\d t")
    assert "Scan t" in shell("\\explain v")
    assert "timing is on" in shell("\\timing")
    assert " ms" in shell("SELECT 1")
    assert "timing is off" in shell("\\timing")
    assert "\\watch" in shell("\\?")
    (tmp_path / "s.sql").write_text("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", encoding="utf-8")
    shell(f"\\i {tmp_path / 's.sql'}")
    assert len(shell.session.db.table("t")) == 2
    for wrong in ("\\i nowhere.sql", "\\explain", "\\watch", "\\d nowhere"):
        shell(wrong)
        assert shell.err.getvalue().startswith("error: "), wrong
    asked: list[float] = []

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        if len(asked) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("everview.shell.session.sleep", sleep)
    assert shell("\\watch 0.5 SELECT c FROM v").count("1 row") == 3
    assert asked == [0.5] * 3
    with pytest.raises(Leave):
        shell("\\q")


def test_subscriptions_show_changes_as_they_come() -> None:
    shell = Shell()
    shell("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT n FROM t")
    assert "v, epoch 2" in shell("SUBSCRIBE V;")
    shown = shell("INSERT INTO t VALUES (41);")
    assert "v, epoch 3" in shown
    assert "+1" in shown
    assert "-1" in shell("DELETE FROM t;")
    shell("SUBSCRIBE v")
    assert "subscribed to already" in shell.err.getvalue()
    shell("UNSUBSCRIBE v")
    assert "epoch" not in shell("INSERT INTO t VALUES (41);")
    shell("UNSUBSCRIBE v")
    assert "not subscribed to" in shell.err.getvalue()
    shell.session.close()


def test_json_for_other_programs() -> None:
    shell = Shell(objects=True, width=20)
    shell("CREATE TABLE t (n BIGINT, b BINARY, at TIMESTAMP); CREATE MATERIALIZED VIEW v AS SELECT n FROM t")
    assert json.loads(shell("INSERT INTO t VALUES (1, X'ff', TIMESTAMP'2026-01-01 10:00:00')")) == {"changed": 1}
    assert json.loads(shell("SELECT * FROM t")) == {"n": 1, "b": "ff", "at": "2026-01-01 10:00:00"}
    assert json.loads(shell("SUBSCRIBE v")) == {"view": "v", "epoch": 3, "weight": 1, "row": {"n": 1}}
    shell("SELECT m FROM t")
    assert json.loads(shell.err.getvalue())["error"] == "UnknownName"


def test_the_name_of_a_file_makes_a_table(tmp_path: Path) -> None:
    shell = Shell(width=200)
    (tmp_path / "my orders.csv").write_text("id,name\n1,Ada\n", encoding="utf-8")
    assert shell(f"'{tmp_path}/my orders.csv'") == "table my_orders (id BIGINT, name STRING), 1 rows\n"
    assert shell.session.db.table("my_orders").rows() == [(1, "Ada")]


def test_completion_knows_names_keywords_functions_and_commands() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE orders (customer STRING, `count` BIGINT); CREATE VIEW ordered AS SELECT * FROM orders")
    assert completions(db, "ord")[:2] == ["orders", "ordered"]
    assert completions(db, "ORDER B") == ["ORDER BY"]
    assert completions(db, "cust") == ["customer"]
    assert "upper(" in completions(db, "upp")
    assert completions(db, "\\t") == ["\\timing"]


def test_why_a_row_is_there_or_is_not() -> None:
    shell = Shell()
    shell("CREATE TABLE t (n BIGINT PRIMARY KEY, s STRING); INSERT INTO t VALUES (1, 'it''s (one)'), (2, NULL);")
    shell("CREATE VIEW small AS SELECT s FROM t WHERE n < 2;")
    assert "table t: (n=1, s=" in shell("WHY small ('it''s (one)');")
    assert "n < 2" in shell("why not `small` (NULL)")
    shell("WHY small ('nothing');")
    assert "why_not" in shell.err.getvalue()
    shell("WHY small (SELEC);")
    assert "error" in shell.err.getvalue()
    shell.session.objects = True
    assert "it's (one)" in json.dumps(json.loads(shell("WHY small ('it''s (one)')")), ensure_ascii=False)
