"""Machine code on the disk counts only if all that it was made of is as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from everview.kernels import cached_code, jit

PROGRAM = """
import sys
from everview.kernels.linear import negated
from everview.kernels.progress import progress
import numpy as np

begun = []
progress.begin = begun.append
negated(np.array([[1, 2]]))
print(begun)
"""


def test_a_module_is_made_of_what_it_imports() -> None:
    import everview.kernels.fixpoint  # noqa: F401

    made_of = cached_code.modules_of("everview.kernels.fixpoint")
    assert {"everview.kernels.machine", "everview.kernels.words", "everview.kernels.rows"} <= made_of
    assert "everview.kernels.leapfrog" not in made_of


def test_a_changed_helper_is_compiled_anew(tmp_path: Path) -> None:
    package = Path(jit.__file__).parents[1]
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / "everview", ignore=ignore)

    def compiled() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        environment.pop("NUMBA_CACHE_DIR", None)
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert compiled() == "['negated']"
    assert compiled() == "[]"
    with (tmp_path / "everview" / "kernels" / "rows.py").open("a") as helpers:
        helpers.write("\n")
    assert compiled() == "['negated']"
