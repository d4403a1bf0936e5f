"""``python -m everview.kernels`` compiles every kernel now, instead of each when it is first called."""

from __future__ import annotations

import sys

from everview.kernels.compiling import compile_kernels

if __name__ == "__main__":
    sys.stderr.write(f"{compile_kernels()} kernels are compiled\n")
