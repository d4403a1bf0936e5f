"""Machine code from the cache is loaded alone, and serves compilers when one asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import everview

LOAD = """
import llvmlite.binding as llvm
import numpy as np

read = []
parse = llvm.parse_bitcode
llvm.parse_bitcode = lambda code, *more: read.append(len(code)) or parse(code, *more)

from everview.kernels.cached_code import LoadedLibrary
from everview.kernels.weights import largest_weight

before = len(read)  # what Numba itself reads when it is imported
assert largest_weight(np.array([[1, -7], [2, 3]])) == 7
(code,) = largest_weight.dispatcher.overloads.values()
print(isinstance(code.library, LoadedLibrary), len(read) - before)
"""

LINK = """
import numpy as np
from everview.kernels.jit import i64, kernel, rows
from everview.kernels.weights import largest_weight

@kernel(i64, rows)
def doubled(m):
    return 2 * largest_weight(m)

assert largest_weight(np.array([[1, -7]])) == 7
assert doubled(np.array([[1, -7], [2, 3]])) == 14
assert largest_weight.address != 0
print("linked")
"""


SOURCES = Path(everview.__file__).parents[1]


def test_loading_reads_no_bitcode(tmp_path: Path) -> None:
    shutil.copytree(SOURCES / "everview", tmp_path / "everview", ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "program.py"
    program.write_text(LOAD)
    assert _run(program, tmp_path).split()[0] == "False"  # compiled
    assert _run(program, tmp_path) == "True 0"


def test_a_loaded_kernel_is_compiled_into_another(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LINK)
    assert _run(program, SOURCES) == "linked"


def _run(program: Path, sources: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
