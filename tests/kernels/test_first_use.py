"""Kernels on a machine that has none yet: people at a terminal are told what takes so long, and files are not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from everview.kernels.progress import ABOUT, CompilingProgress

# Two kernels, the one of them being compiled for the other one; patience is for people.
USE = """
from everview.kernels import progress
progress.PATIENCE = 0.0
from everview.kernels.weights import largest_weight
largest_weight.dispatcher
"""
SAID = "compiling kernels for this machine, once: 1 of about"


def used(cache: Path, errors: int) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm", "COLUMNS": "120"}
    return subprocess.run([sys.executable, "-c", USE], env=environment, stderr=errors, check=True, timeout=300)


def shown_on_a_terminal(cache: Path) -> str:
    reader, writer = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(reader, 1 << 16):
                shown.append(part)
        except OSError:  # the other end is closed
            return

    thread = Thread(target=read)
    thread.start()
    try:
        used(cache, writer)
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)
    return b"".join(shown).decode()


@pytest.mark.slow
def test_a_first_use_is_shown_on_a_terminal_and_later_ones_are_not(tmp_path: Path) -> None:
    assert SAID in shown_on_a_terminal(tmp_path)
    assert any(tmp_path.rglob("*.nbi"))
    assert shown_on_a_terminal(tmp_path) == ""


@pytest.mark.slow
def test_a_first_use_says_nothing_to_a_file(tmp_path: Path) -> None:
    assert used(tmp_path, subprocess.PIPE).stderr == b""


def test_the_number_of_kernels_is_a_guess_that_is_corrected() -> None:
    progress = CompilingProgress()
    for number in range(1, ABOUT + 12):
        progress.begin(f"k{number}")
        assert f": {number} of about {ABOUT if number <= ABOUT else number + -number % 10} (k{number})" in progress.text


class Loading(Thread):
    """A thread that is alive until it has been shown, or waited for without end; meanwhile it may compile."""

    def __init__(self, compiles: CompilingProgress | None) -> None:
        super().__init__()
        self.compiles, self.alive = compiles, True

    def join(self, timeout: float | None = None) -> None:
        if self.compiles is not None:
            self.compiles.begin("kernel")
        self.alive = timeout is not None

    def is_alive(self) -> bool:
        return self.alive


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("terminal", [True, False])
def test_only_compiling_is_shown_however_long_loading_takes(
    monkeypatch: pytest.MonkeyPatch, compiles: bool, terminal: bool
) -> None:
    progress, shown = CompilingProgress(), list[Thread]()
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setattr(progress, "_show", shown.append)
    progress.wait_for(Loading(progress if compiles else None))
    assert len(shown) == (compiles and terminal)
