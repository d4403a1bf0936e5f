"""A command ends when it is asked to, at any moment, and says so in one line."""

from __future__ import annotations

import json
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from everview import stopping
from everview.stopping import Stop, hush, stoppable, until_stopped
from everview.traces.store import Store

FILE = """
state: state
spark: {master: "local[2]", memory: 1g}
sources:
  orders:
    {format: json, path: orders, schema: "id BIGINT NOT NULL, shop STRING, amount BIGINT", stream: true,
     key: id, changes: upsert}
views: CREATE MATERIALIZED VIEW by_shop AS SELECT shop, SUM(amount) AS total FROM orders GROUP BY shop
shards: 2
place: driver
"""


# -- threads


def ask(times: int = 1, number: int = signal.SIGTERM, after: float = 0.05) -> None:
    """Send this process a signal, a little later."""

    def send() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)
            threading.Event().wait(0.2)

    threading.Timer(after, send).start()


def test_work_that_is_done_and_work_that_fails() -> None:
    looked: list[int] = []
    with stoppable() as stop:
        stop.look = lambda: looked.append(1)
        assert until_stopped(lambda: threading.Event().wait(0.2), stop)
        assert not stop
        with pytest.raises(ZeroDivisionError):
            until_stopped(lambda: 1 / 0, stop)
    assert looked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_ends_when_it_is_asked_to(number: int) -> None:
    over = threading.Event()

    def work() -> None:
        over.wait(20)
        raise RuntimeError("interrupted, which is how it ends")

    with stoppable() as stop:
        stop.end = over.set
        ask(number=number)
        assert until_stopped(work, stop)
        assert (stop.asked, stop.signal) == (1, number)


def test_work_that_has_not_begun_what_could_end_is_asked_again() -> None:
    """The end is asked for while it starts; what there is to end comes later."""
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        begun.wait(0.5)
        stop.end = over.set
        over.wait(20)

    with stoppable() as stop:
        ask()
        assert until_stopped(work, stop)


@pytest.mark.parametrize("times", [1, 2])
def test_work_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    monkeypatch.setattr(stopping, "PATIENCE", 0.5 if times == 1 else 60.0)
    closed: list[int] = []
    with stoppable() as stop:
        stop.end, stop.close = (lambda: None), (lambda: closed.append(1))
        ask(times)
        start = monotonic()
        assert not until_stopped(lambda: threading.Event().wait(30), stop)
        assert monotonic() - start < 5
    assert closed


def test_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in stopping.SIGNALS]
    with stoppable() as stop:
        assert isinstance(stop, Stop)
        assert signal.getsignal(signal.SIGINT) == stop.note
    assert [signal.getsignal(number) for number in stopping.SIGNALS] == before


def test_nothing_is_logged_once_the_end_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    stop, root = Stop(), logging.getLogger()
    hush(stop)
    try:
        logging.error("before")
        stop.note(signal.SIGTERM)
        logging.error("a connection to Java is gone")
    finally:
        root.removeFilter(root.filters[-1])
    assert caplog.messages == ["before"]


# -- processes


def run(root: Path, number: int, ready: Callable[[bytes, float], bool]) -> tuple[int, str]:
    """`everview run --forever` on a terminal of its own, whose whole process group gets a signal; code and output."""
    (root / "orders").mkdir(exist_ok=True)
    (root / "p.yaml").write_text(FILE)
    (root / "orders" / "0.json").write_text(json.dumps({"id": 1, "shop": "A", "amount": 4}))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "everview", "run", "--forever", str(root / "p.yaml")]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    said, start, sent = b"", monotonic(), False
    try:
        while child.poll() is None and monotonic() - start < 120:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    said += os.read(ours, 1 << 16)
                except OSError:
                    break
            if not sent and ready(said, monotonic() - start):
                os.killpg(child.pid, number)
                sent = True
        return child.wait(20), said.decode(errors="replace")
    finally:
        if child.poll() is None:
            child.kill()
        os.close(ours)


def test_a_run_that_is_stopped_while_it_loads_its_modules(tmp_path: Path) -> None:
    code, said = run(tmp_path, signal.SIGINT, lambda said, since: since > 0.1)
    assert "Traceback" not in said
    assert code in (-signal.SIGINT, 0), said


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", ["while Java starts", "after an epoch"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped(tmp_path: Path, moment: str, number: int) -> None:
    def ready(said: bytes, since: float) -> bool:
        return b"driver" in said if moment == "after an epoch" else since > 2

    code, said = run(tmp_path, number, ready)
    assert code == 0, said
    assert "Exception" not in said
    assert "Traceback" not in said
    # Lines of the JVM, which is told to end while it starts, may come after ours.
    lines = [line.rstrip() for line in said.splitlines()]
    if moment == "after an epoch":
        assert any(line.endswith("stopped at epoch 1") for line in lines)
        with Store.open(tmp_path / "state") as store:  # nobody has it any more
            assert store.epoch == 1
            store.verify()
    else:
        assert any(line.endswith("stopped") for line in lines)
