"""A process killed before any one of its file operations loses nothing that it acknowledged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everview.traces.store import Store
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import LAST, check, contents, expected, live


def count_operations(path: Path) -> int:
    operations: list[str] = []
    live(path, UnsyncedFiles(lambda operation, _: operations.append(operation)), lambda _: None)
    return len(operations)


def run_until_killed(path: Path, at: int) -> list[int]:
    """The epochs that a child acknowledged before it died ahead of operation number `at`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _live_and_die(path, at, writer)
    os.close(writer)
    with os.fdopen(reader) as acknowledgements:
        acknowledged = [int(line) for line in acknowledgements]
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child was to be killed"
    return acknowledged


def _live_and_die(path: Path, at: int, writer: int) -> None:
    operations = 0

    def before(operation: str, path: Path) -> None:
        nonlocal operations
        operations += 1
        if operations == at:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        live(path, UnsyncedFiles(before), lambda epoch: os.write(writer, b"%d\n" % epoch) and None)
    finally:
        os._exit(1)


def recovered(path: Path) -> list[int]:
    """Go on where the crash left off; the first epoch is what was found."""
    epochs: list[int] = []
    live(path, UnsyncedFiles(), epochs.append)
    return epochs


@pytest.mark.slow
def test_killed_before_any_operation(tmp_path: Path) -> None:
    """In a process that has little memory: forking this one takes longer than what the child does."""
    program = f"from pathlib import Path; import {__name__} as tests; tests.kill_before_each(Path({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def kill_before_each(scratch: Path) -> None:
    """Kill a life ahead of each of its operations, and look at what is left."""
    total = count_operations(scratch / "whole")
    assert total > 150, total
    for at in range(1, total + 1):
        path = scratch / str(at)
        acknowledged = run_until_killed(path, at)
        last = acknowledged[-1] if acknowledged else 0
        if Store.exists(path):
            with Store.attach(path) as state:
                assert state.epoch in (last, last + 1), f"operation {at}"
                assert contents(state) == expected(state.epoch), f"operation {at}"
        else:
            assert not acknowledged, f"operation {at}"
        found, *_ = recovered(path)
        assert found in (last, last + 1), f"operation {at}"
        check(path)
        assert Store.history(path)[-1] == LAST, f"operation {at}"
        shutil.rmtree(path)
