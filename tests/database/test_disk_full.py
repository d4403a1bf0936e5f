"""A bounded form of the trial `torture.disk_full`: a small life, on disks that refuse at some of its operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.disk_full import MODES, Disk, Life, lived, operations

LIFE = Life.of(1, 4)


@pytest.mark.parametrize("mode", MODES)
def test_a_disk_that_refuses_leaves_a_database_as_it_was(tmp_path: Path, mode: str) -> None:
    total, refused = operations(LIFE), 0
    for at in range(1 + MODES.index(mode), total + 1, 6):
        disk = Disk(at, mode)
        assert lived(LIFE, tmp_path / str(at), disk) == [], f"operation {at}"
        refused += bool(disk.refused)
    assert refused > 5
