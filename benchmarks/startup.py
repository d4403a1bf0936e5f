"""How long until something happens: the import, and a process from start to first tick, with warm caches.

The fastest of several starts counts.
"""

from __future__ import annotations

import subprocess
import sys
import time

from figures import AtMost, Findings
from scale import Scale

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FIRST_TICK = """
from everview.circuit import Circuit, incrementalize
from everview.runtimes.embedded import Embedded
circuit = Circuit()
orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
run = Embedded(incrementalize(circuit))
assert list(run.tick({"orders": [(("Ada", 5), 1)]})["totals"]) == [(("Ada", 5), 1)]
"""


def findings(scale: Scale) -> Findings:
    found = Findings("Start")
    _started(FIRST_TICK)  # fills the kernel caches
    package = [float(_started(IMPORT.format("everview"))[1]) for _ in range(scale.starts)]
    runtime = [float(_started(IMPORT.format("everview.runtimes.embedded"))[1]) for _ in range(scale.starts)]
    first = [_started(FIRST_TICK)[0] for _ in range(scale.starts)]
    python = [_started("")[0] for _ in range(scale.starts)]
    found.add("import everview", min(package), "s", AtMost(0.5))
    found.add("import everview.runtimes.embedded", min(runtime), "s", AtMost(0.5))
    found.add("process start to first tick", min(first), "s", AtMost(1))
    found.add("of that, Python itself", min(python), "s")
    found.raw = {"package": package, "runtime": runtime, "first": first, "python": python}
    return found


def _started(code: str) -> tuple[float, str]:
    """How long a new process runs, and what it prints."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - began, done.stdout
