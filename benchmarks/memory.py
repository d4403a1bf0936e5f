"""What a stored row takes, beside its words and its weight.

A process that does nothing but fill one trace, tick by tick, and then replace a fifth of its rows. At rest:
after the last merge under way is done; both what the trace says of itself and what the process grew by. The
peak is the process's.
"""

from __future__ import annotations

import gc
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale
from stream import CUSTOMERS

from everview.kernels.sort import arrange
from everview.traces.trace import Trace

WORDS = 3
PER_TICK = 10_000
CHURN = 5  # a fifth of the rows are replaced after the load


def measure(rows: int) -> dict[str, Any]:
    ticks = rows // PER_TICK
    _filled(Trace(WORDS + 1), range(1))  # touch the code first
    trace = Trace(WORDS + 1)
    gc.collect()
    before = _resident()
    _forget_peak()
    most = _filled(trace, range(ticks))
    most = max(most, _replaced(trace, range(ticks // CHURN), ticks))
    working = _resident() - before
    trace.past.settle()
    gc.collect()
    return {
        "rows": rows,
        "ideal": 8 * (WORDS + 1),
        "nbytes": trace.past.nbytes / rows,
        "nbytes_most": most,
        "resident": (_resident() - before) / rows,
        "working": working / rows,
        "peak": (_peak() - before) / rows,
    }


def _filled(trace: Trace, ticks: range) -> float:
    """Append a batch a tick; the most bytes that a living row took on the way."""
    most = 0.0
    for tick in ticks:
        trace.push(_batch(tick, 1))
        trace.close()
        most = max(most, trace.past.nbytes / (PER_TICK * (tick + 1)))
    return most


def _replaced(trace: Trace, ticks: range, count: int) -> float:
    """Take an early batch away and append a new one, a tick; the most bytes a living row took on the way."""
    most = 0.0
    for tick in ticks:
        trace.push(_batch(tick, -1))
        trace.push(_batch(count + tick, 1))
        trace.close()
        most = max(most, trace.past.nbytes / (PER_TICK * count))
    return most


def _batch(seed: int, weight: int) -> np.ndarray:
    """The same rows for the same seed, so that nobody has to remember them for their deletion."""
    random = np.random.default_rng(seed)
    delta = np.empty((PER_TICK, WORDS + 1), np.int64)
    delta[:, 0] = random.integers(0, CUSTOMERS, PER_TICK)
    delta[:, 1:WORDS] = random.integers(0, 1 << 62, (PER_TICK, WORDS - 1))
    delta[:, WORDS] = weight
    return arrange(delta, np.arange(WORDS))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _forget_peak() -> None:
    """Imports and the parent process have peaks of their own."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def findings(scale: Scale) -> Findings:
    found = Findings("Memory", timed=False)
    run = measured("memory.py", rows=scale.trace_rows)
    ideal = run["ideal"]
    name = f"{run['rows']:,} rows of {WORDS} words and a weight"
    found.add(f"{name}: by themselves", ideal, "bytes a row")
    found.add(f"{name}: as the process grew, merges under way", run["working"], "bytes a row")
    found.add(f"{name}: as the trace counts them, at rest", run["nbytes"], "bytes a row")
    found.add(f"{name}: as the process grew, at rest", run["resident"], "bytes a row")
    at_rest = max(run["nbytes"], run["resident"])
    found.add("at rest / by themselves", at_rest / ideal, "times", AtMost(1.5))
    found.add("peak while filling / by themselves", run["peak"] / ideal, "times", AtMost(2.5))
    found.raw = run
    return found


if __name__ == "__main__":
    answer(measure)
