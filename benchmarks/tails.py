"""No tick waits for a whole merge: the slowest ticks beside the median."""

from __future__ import annotations

from typing import Any

import numpy as np
from exposure import loaded, ticked, ticks_of
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale

SIZES = (10, 1_000)
CURVE = [*range(0, 90), *np.linspace(90, 99, 37), *np.linspace(99, 99.9, 37), *np.linspace(99.9, 100, 21)]
WARMUP = 100  # the first ticks after a load touch new code and memory


def measure(count: int, per_tick: int, ticks: int) -> dict[str, Any]:
    run = loaded(count)
    deltas = ticks_of(count, per_tick, ticks + WARMUP)
    ticked(run, deltas[:WARMUP])
    found = ticked(run, deltas[WARMUP:])
    seconds = found.seconds
    median, p99, p999, longest = np.percentile(seconds, [50, 99, 99.9, 100]).tolist()
    slowest = np.argsort(seconds)[::-1][:20]
    return {
        "median": median,
        "p99": p99,
        "p99.9": p999,
        "max": longest,
        "cpu": np.percentile(found.cpu, [50, 99, 99.9, 100]).tolist(),
        "curve": [CURVE, np.percentile(seconds, CURVE).tolist()],
        "slowest": [[int(at), float(seconds[at])] for at in slowest],
    }


def findings(scale: Scale) -> Findings:
    found = Findings("Tails")
    for per_tick in SIZES:
        stream = {"count": scale.orders, "per_tick": per_tick, "ticks": scale.tail_ticks}
        runs = [measured("tails.py", **stream) for _ in range(scale.rounds)]
        # Not the round of the best ratio: a busy machine can flatter that by slowing down the median.
        best = min(runs, key=lambda run: run["p99.9"])
        name = f"{scale.tail_ticks:,} ticks of {per_tick:,} changes"
        for which in ("median", "p99", "p99.9", "max"):
            found.add(f"{name}: {which}", best[which] * 1e6, "µs")
        found.add(f"{name}: p99.9 / median", best["p99.9"] / best["median"], "times", AtMost(20))
        thrifty = min(run["cpu"][2] / run["cpu"][0] for run in runs)
        found.add(f"{name}: p99.9 / median, by CPU time", thrifty, "times")
        found.raw[str(per_tick)] = runs
    return found


if __name__ == "__main__":
    answer(measure)
