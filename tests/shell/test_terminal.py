"""The shell on a terminal: typed through a pseudo-terminal, as somebody would."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import everview as ev

PROMPT = "everview>"
MORE = "...>"
# The terminal becomes that of the process, so that Ctrl-C is a signal.
IN_TERMINAL = """
import os, sys
os.login_tty(0)
os.execv(sys.executable, [sys.executable, "-m", "everview", *sys.argv[1:]])
"""


class Typed:
    """A shell behind a pseudo-terminal."""

    def __init__(self, *words: str, history: Path, terminal: str) -> None:
        ours, theirs = pty.openpty()
        env = {
            **os.environ,
            "TERM": terminal,
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "COLUMNS": "80",
            "EVERVIEW_HISTORY": str(history),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, "shell", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env
        )
        os.close(theirs)
        self.terminal = ours

    def until(self, end: str) -> str:
        """All that is shown until a text comes, without colours; a space may be shown as a step of the cursor."""
        shown = ""
        while end.replace(" ", "") not in shown.replace(" ", ""):
            ready, _, _ = select.select([self.terminal], [], [], 120)
            assert ready, f"{end!r} did not come after {shown!r}"
            try:
                data = os.read(self.terminal, 65536)
            except OSError:
                data = b""
            if not data:
                assert end == "", f"{end!r} did not come after {shown!r}"
                break
            shown += re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", "", data.decode(errors="replace")).replace("\r", "")
        return shown

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def ask(self, text: str, end: str = PROMPT) -> str:
        self.type(f"{text}\n")
        return self.until(end)

    def interrupt(self) -> None:
        """Press Ctrl-C, a moment after a prompt: the signal must find somebody who waits for a line."""
        time.sleep(0.5)
        self.type("\x03")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.terminal)


@pytest.mark.slow
def test_a_conversation_in_plain_lines(tmp_path: Path) -> None:
    history = tmp_path / "history"
    shell = Typed(str(tmp_path / "bank.ev"), history=history, terminal="dumb")
    try:
        assert "bank.ev" in shell.until(PROMPT)
        shell.ask("CREATE TABLE person (id BIGINT PRIMARY KEY,", MORE)
        shell.ask("name STRING);")
        assert "2 rows changed" in shell.ask("INSERT INTO person VALUES (1, 'Ada'), (2, NULL);")
        assert "Ada" in shell.ask("SELECT * FROM per\t;")  # completed to person
        assert 'did you mean "name"?' in shell.ask("SELECT nme FROM person;")
        shell.ask("SELECT 'left open", MORE)
        shell.interrupt()  # gives up the input
        shell.until(PROMPT)
        assert "1 row" in shell.ask("SELECT 1;")
        assert "1 row" in shell.ask("\\watch 60 SELECT 41 + 1 AS answer", "1 row")
        shell.interrupt()  # ends what runs
        shell.until(PROMPT)
        assert "NULL" in shell.ask("SELECT * FROM person WHERE id = 2;")
        shell.type("\x04")
        shell.until("")
        assert shell.process.wait(60) == 0
    finally:
        shell.close()
    remembered = history.read_text(encoding="utf-8")
    assert "CREATE TABLE person (id BIGINT PRIMARY KEY, name STRING);" in remembered
    assert "left open" not in remembered


@pytest.mark.slow
def test_a_conversation_in_colours(tmp_path: Path) -> None:
    history = tmp_path / "history"
    shell = Typed(str(tmp_path / "bank.ev"), history=history, terminal="xterm")
    try:
        assert "bank.ev" in shell.until(PROMPT)
        shell.ask("CREATE TABLE person (id BIGINT PRIMARY KEY,", MORE)
        shell.ask("name STRING);")
        shell.ask("INSERT INTO person VALUES (1, 'Ada'), (2, NULL);", "2 rows changed")
        shell.ask("SELECT concat(name, '!') AS said FROM per\t;", "Ada!")  # completed to person
        shell.ask("SELECT 'left open", MORE)
        shell.interrupt()  # gives up the input
        shell.ask("SELECT 40 + 2 AS n;", "42")
        shell.type("\x1b[A")  # the statement before, by the key upwards
        shell.ask("", "42")
        shell.ask("\\q", "")
        assert shell.process.wait(60) == 0
    finally:
        shell.close()
    remembered = (tmp_path / "history_statements").read_text(encoding="utf-8")
    assert "+CREATE TABLE person (id BIGINT PRIMARY KEY,\n+name STRING);" in remembered
    assert "left open" not in remembered


@pytest.mark.slow
@pytest.mark.parametrize("terminal", ["dumb", "xterm"])
def test_changes_of_another_process_come_while_a_line_is_typed(tmp_path: Path, terminal: str) -> None:
    with ev.connect(tmp_path / "bank.ev") as db:
        db.sql("CREATE TABLE person (name STRING); CREATE MATERIALIZED VIEW v AS SELECT name FROM person")
        words = str(tmp_path / "bank.ev"), "--read-only"
        shell = Typed(*words, history=tmp_path / "history", terminal=terminal)
        try:
            shell.until(PROMPT)
            shell.ask("SUBSCRIBE v;")
            shell.type("SELECT 40 + ")
            db.sql("INSERT INTO person VALUES ('Ada')")
            shown = ""
            while not re.search(r"Ada.*SELECT40\+", shown.replace(" ", ""), re.DOTALL):  # what was typed stands below
                shown += shell.until(f"{PROMPT} SELECT 40 +")  # as it does below the rows that were there before
            shell.ask("2 AS n;", "42")
            shell.ask("\\q", "")
            assert shell.process.wait(60) == 0
        finally:
            shell.close()
