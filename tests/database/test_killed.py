"""A bounded form of the trial `torture.kills`: one database, whose process is killed twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.kills import kill_database


@pytest.mark.slow
def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    before = 0
    for lifetime in (0.4, 0.7):
        found, faults = kill_database(tmp_path / "db", 1, lifetime)
        assert faults == []
        assert found >= before
        before = found
    assert before > 0
