"""``python -m everview.kernels`` compiles every kernel now, instead of each when it is first called.

``python -m everview.kernels common`` compiles those that most programs call, in a third of the time.
"""

from __future__ import annotations

import sys

from everview.kernels.common import COMMON
from everview.kernels.compiling import compile_kernels

if __name__ == "__main__":
    only = COMMON if sys.argv[1:] == ["common"] else None
    sys.stderr.write(f"{compile_kernels(only)} kernels are compiled\n")
