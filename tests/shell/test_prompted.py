"""Lines with colours: completion, history and what a broken disk does to them."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from everview.shell.prompted import Prompted


def prompted(typed: PipeInput, history: Path | None) -> Prompted:
    return Prompted(lambda word: [f"{word}on"] if word == "pers" else [], history, input=typed, output=DummyOutput())


def test_the_word_before_the_cursor_is_completed() -> None:
    with create_pipe_input() as typed:
        typed.send_text("SELECT max(pers\t) FROM t\n")
        assert prompted(typed, None).read("> ") == "SELECT max(person) FROM t"


def test_what_is_remembered_comes_back_whole_and_lines_do_not(tmp_path: Path) -> None:
    with create_pipe_input() as typed:
        reader = prompted(typed, tmp_path / "history")
        typed.send_text("half of\n")
        assert reader.read("> ") == "half of"
        reader.remember("half of\nall of it;")
        typed.send_text("\x1b[A\n")
        assert reader.read("> ") == "half of\nall of it;"
    with create_pipe_input() as typed:
        typed.send_text("\x1b[A\n")
        assert prompted(typed, tmp_path / "history").read("> ") == "half of\nall of it;"


def test_a_history_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with create_pipe_input() as typed:
        reader = prompted(typed, tmp_path / "file" / "history")
        reader.remember("SELECT 1;")
        typed.send_text("\x1b[A\n")
        assert reader.read("> ") == "SELECT 1;"
