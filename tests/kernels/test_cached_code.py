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

OTHERS = """
import sys
import numba
import numpy as np
from everview.kernels.weights import largest_weight

assert largest_weight(np.array([[1, -7]])) == 7
print("numba.np.arrayobj" in sys.modules, "numpy.ma" in sys.modules, end=" ")

@numba.njit(cache=True)
def filled(n):
    found = np.empty(n)
    found[:] = n
    return found, "it is " + str(n)

assert filled(3)[0].tolist() == [3, 3, 3] and filled(3)[1] == "it is 3"

@numba.njit
def total(array):
    return array.sum()

assert total(np.arange(4)) == 6 and total(np.array([True, False])) == 1 and total(np.float32([1.5])) == 1.5
for unknown in (np.ma.array([1, 2]), np.arange(3).astype(">i8"), np.array([object()])[::2]):
    try:
        print(numba.typeof(unknown), end=" ")
    except numba.core.errors.NumbaError as error:
        print(type(error).__name__, end=" ")
print(sum(filled.stats.cache_hits.values()))
"""

SOURCES = Path(everview.__file__).parents[1]


def test_loading_reads_no_bitcode(tmp_path: Path) -> None:
    shutil.copytree(SOURCES / "everview", tmp_path / "everview", ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "program.py"
    program.write_text(LOAD)
    assert _run(program, tmp_path).split()[0] == "False"  # compiled
    assert _run(program, tmp_path) == "True 0"


def test_functions_of_others_are_compiled_and_cached_as_ever(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(OTHERS)
    types = "NumbaTypeError NumbaValueError array(pyobject, 1d, C)"
    assert _run(program, SOURCES).endswith(f"{types} 0")
    assert _run(program, SOURCES) == f"False False {types} 1"


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
