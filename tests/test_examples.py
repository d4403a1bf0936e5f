"""Every example runs to its end, and without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))


def _case(example: Path) -> object:
    marks = (
        [pytest.mark.spark]
        if "import pyspark" in example.read_text() or "everview.spark" in example.read_text()
        else []
    )
    return pytest.param(example, id=example.stem, marks=marks)


@pytest.mark.parametrize("example", [_case(example) for example in EXAMPLES])
def test_example(example: Path, tmp_path: Path) -> None:
    """It runs in an empty directory, so what it leaves behind stays out of the tree."""
    command = [sys.executable, "-W", "error", str(example)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
