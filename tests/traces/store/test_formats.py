"""States of older formats open, are read as they are, and go on in the newest format."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everview.errors import ForeignState
from everview.traces.store import Policy, Store
from everview.traces.store.layout import FORMAT_VERSION, format_text
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import LAST, batch, check, contents, expected, live

EPOCH = 9  # of the stored state, which is the scenario's life up to there


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return shutil.copytree(Path(__file__).with_name("format_1"), tmp_path / "s")


def test_reading_changes_nothing(old: Path) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    check(old)
    with Store.attach(old) as state:
        assert contents(state) == expected(EPOCH)
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before


def test_an_old_state_goes_on(old: Path) -> None:
    live(old, UnsyncedFiles(), lambda _: None)
    check(old)
    with Store.attach(old) as state:
        assert contents(state) == expected(LAST)


def test_a_state_says_that_its_log_may_have_room_before_it_has(old: Path) -> None:
    (log,) = sorted(old.glob("log/*"))[-1:]
    assert (old / "FORMAT").read_bytes() == format_text(1)
    size = log.stat().st_size
    with Store.open(old, policy=Policy()) as store:
        assert (old / "FORMAT").read_bytes() == format_text(FORMAT_VERSION)
        assert log.stat().st_size == size
        store.commit(EPOCH + 1, [("edges", 0, batch(1, 1))])
        assert log.stat().st_size > size + 4096
        with Store.attach(old) as state:
            assert state.epoch == EPOCH + 1


def test_a_newer_format_is_refused(old: Path) -> None:
    (old / "FORMAT").write_bytes(format_text(FORMAT_VERSION + 1))
    with pytest.raises(ForeignState, match=f"reads up to format {FORMAT_VERSION}"):
        Store.open(old)
