"""The background runner: sources are followed without a call, failing ones are tried again, and it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import everview as ev
from everview.errors import BadRows, DefinitionError, ListenerError
from everview.sources import Files

SOON = {"every": 0.01, "longest": 0.02}


def until(what: Callable[[], Any]) -> None:
    pause = Event()
    for _ in range(6_000):
        if what():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come")


def arrive(path: Path, text: str) -> None:
    """Write a file that is there only when it is whole."""
    part = path.with_name(f"_{path.name}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def test_sources_are_followed_and_one_that_fails_stops_no_other(home: Path) -> None:
    db = ev.connect()
    db.attach("t", Files(home, "n BIGINT"))
    other = home.parent / "other"
    other.mkdir()
    with db.run(**SOON) as runner:
        db.attach("later", Files(other, "n BIGINT"))  # which is taken up, too
        arrive(home / "1.csv", "n\n1\n")
        until(lambda: db.table("t").rows() == [(1,)])
        arrive(home / "2.csv", "n\nx\n")
        until(lambda: "t" in runner.errors())
        assert isinstance(runner.errors()["t"], BadRows)
        arrive(other / "1.csv", "n\n7\n")
        until(lambda: db.table("later").rows() == [(7,)])
        before = runner.lag()["t"]
        until(lambda: runner.lag()["t"] > before)
        arrive(home / "2.csv", "n\n2\n")
        until(lambda: "t" not in runner.errors())
        assert sorted(db.table("t").rows()) == [(1,), (2,)]
        until(lambda: runner.lag()["t"] < 30)
        db.detach("later")
        until(lambda: set(runner.lag()) == {"t"})
        assert "running: 1 sources, 0 failing" in repr(runner)
        with pytest.raises(DefinitionError, match="running already"):
            db.run()
    assert not runner.running
    db.run(**SOON).stop()
    assert db.verify()


def test_a_listener_that_raises_is_told_and_the_tick_counts(home: Path) -> None:
    db = ev.connect()
    db.attach("t", Files(home, "n BIGINT"))
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT n FROM t")
    heard = Event()

    def listener(changes: Any, epoch: int) -> None:
        heard.set()
        raise ValueError("no")

    db.view("v").subscribe(listener)
    with db.run(every=10.0) as runner:
        until(lambda: "t" in runner.lag())
    arrive(home / "1.csv", "n\n1\n")
    with db.run(every=10.0) as runner:
        assert heard.wait(60)
        until(runner.errors)
        assert isinstance(runner.errors()["t"], ListenerError)
        assert db.table("t").rows() == [(1,)]


def test_closing_the_database_ends_it(home: Path) -> None:
    db = ev.connect()
    db.attach("t", Files(home, "n BIGINT"))
    runner = db.run(**SOON)
    with db._core.still:
        db.close()  # with a lock held that a poll may wait for
    assert runner.stop(60)
    assert not runner.running


@pytest.mark.parametrize(("wrong", "said"), [({"every": 0}, "every is 0"), ({"limit": 0}, "takes nothing in")])
def test_rhythms_that_cannot_be(wrong: dict[str, Any], said: str) -> None:
    db = ev.connect()
    with pytest.raises(DefinitionError, match=said):
        db.run(**wrong)
    db.run().stop()
