"""`everview shell`, `state`, `doctor` and `--version` as other programs call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import everview as ev
from everview.cli import app
from everview.doctor import Finding, healthy


def everview_(*words: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=typed)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with ev.connect(tmp_path / "s", shards=2) as db:
        db.sql("CREATE TABLE t (n BIGINT, s STRING); CREATE MATERIALIZED VIEW v AS SELECT s FROM t")
        db.sql("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    return tmp_path / "s"


def test_scripts_end_at_their_first_error(state: Path, tmp_path: Path) -> None:
    ran = everview_("shell", state, "--json", typed="SELECT count(*) AS n FROM t; SELECT 1 AS one")
    assert (ran.exit_code, [*map(json.loads, ran.stdout.splitlines())]) == (0, [{"n": 3}, {"one": 1}])
    failed = everview_("shell", state, "-c", "DELETE FROM t WHERE n = 2; SELECT m FROM t; DELETE FROM t")
    assert failed.exit_code == 1
    assert "error: column" in failed.stderr
    (tmp_path / "q.sql").write_text("SELECT n FROM t; \\q\n SELECT nothing", encoding="utf-8")
    ended = everview_("shell", state, "-f", tmp_path / "q.sql")
    assert (ended.exit_code, "2 rows" in ended.stdout) == (0, True)
    assert everview_("shell", state, "-f", tmp_path / "nothing.sql").exit_code == 1
    (tmp_path / "windows.sql").write_bytes(b"\xef\xbb\xbfSELECT 1 AS one,\r\n 2 AS two;\r\n")
    assert json.loads(everview_("shell", "--json", "-f", tmp_path / "windows.sql").stdout) == {"one": 1, "two": 2}
    assert "runs a script" in everview_("shell", tmp_path / "windows.sql").stderr
    assert everview_("shell", "--nothing").exit_code == 2


def test_a_shell_beside_a_writer(state: Path) -> None:
    with ev.connect(state):
        assert everview_("shell", state, "-c", "SELECT 1").exit_code == 1
        read = everview_("shell", state, "--read-only", "--json", "-c", "SELECT count(*) AS n FROM t; DELETE FROM t")
    assert (read.exit_code, json.loads(read.stdout)) == (1, {"n": 3})
    assert "read only" in read.stderr


def test_states_tell_what_they_hold(state: Path) -> None:
    rows = json.loads(everview_("state", "ls", state, "--json").stdout)
    assert rows == [
        {"name": "t", "kind": "table", "rows": 3, "columns": "n BIGINT, s STRING"},
        {"name": "v", "kind": "view", "rows": 3, "columns": "s STRING"},
    ]
    assert [row["epoch"] for row in json.loads(everview_("state", "history", state, "--json").stdout)] == [0, 1, 2, 3]
    parts = {row["part"]: row["bytes"] for row in json.loads(everview_("state", "size", state, "--json").stdout)}
    assert parts["t"] > 0
    assert parts["log on disk"] > 0
    assert json.loads(everview_("state", "check", state, "--json").stdout)["epoch"] == 3
    assert json.loads(everview_("state", "vacuum", state, "--keep", "2", "--json").stdout)["epoch"] == 3
    assert len(json.loads(everview_("state", "history", state, "--json").stdout)) == 2
    for command in ("ls", "history", "size", "check"):
        shown = everview_("state", command, state)
        assert (shown.exit_code, "┃" in shown.stdout) == (0, True)


def test_damage_and_strange_directories_end_with_one(state: Path, tmp_path: Path) -> None:
    log = max((state / "log").iterdir())
    data = bytearray(log.read_bytes())
    data[len(data) // 3] ^= 0xFF
    log.write_bytes(data)
    for words in (("check", state), ("ls", tmp_path)):
        ended = everview_("state", *words)
        assert (ended.exit_code, ended.stderr.startswith("error: ")) == (1, True)


def test_the_version_and_the_doctor() -> None:
    assert everview_("--version").stdout == f"{ev.__version__}\n"
    assert json.loads(everview_("version", "--json").stdout) == {"version": ev.__version__}
    found = json.loads(everview_("doctor", "--json").stdout)
    assert {"Python", "pyarrow", "Java", "compiled kernels"} <= {finding["what"] for finding in found}
    assert "ok" in everview_("doctor").stdout
    assert healthy([Finding("a", False, "missing", needed=False)])
    assert not healthy([Finding("a", False, "missing", needed=True)])
