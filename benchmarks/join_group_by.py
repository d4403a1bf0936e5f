"""Join and group by: changes a second beside Pathway's, and a small tick beside a recomputation by DuckDB.

Ours runs in one thread. Each side's best round counts; rates by CPU time are less shaken by whatever else the
machine does. Our median tick is held against DuckDB's fastest query; by CPU time, our mean tick against that
query's time spread evenly over its threads.

Every stream begins with ticks that are not timed, on all sides: in a process's first ticks kernels are loaded from the
cache, and new code and memory are touched. Our first tick after the load is reported by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from exposure import contents, loaded, ticked, ticks_of
from figures import AtLeast, Findings
from isolate import PEERS, answer, measured
from scale import Scale
from stream import expected

SMALL_TICK = 10


def measure(count: int, per_tick: int, warm: int, ticks: int) -> dict[str, Any]:
    run = loaded(count)
    deltas = ticks_of(count, per_tick, warm + ticks)
    first = ticked(run, deltas[:warm])
    found = ticked(run, deltas[warm:])
    return {
        "first": float(first.seconds[0]),
        "first_cpu": float(first.cpu[0]),
        "seconds": float(found.seconds.sum()),
        "median": float(np.median(found.seconds)),
        "cpu": float(found.cpu.sum()),
        "updates": found.updates,
        "digest": contents(run),
    }


def findings(scale: Scale) -> Findings:
    found = Findings("Join and group by")
    for per_tick, warm, ticks in scale.streams:
        _beside_pathway(found, scale, per_tick=per_tick, warm=warm, ticks=ticks)
    for count in (scale.orders, scale.many_orders):
        _beside_duckdb(found, scale, count)
    return found


def _beside_pathway(found: Findings, scale: Scale, *, per_tick: int, warm: int, ticks: int) -> None:
    stream = {"count": scale.orders, "per_tick": per_tick, "warm": warm, "ticks": ticks}
    ours, theirs = [], []
    for _ in range(scale.rounds):
        ours.append(measured("join_group_by.py", **stream))
        theirs += [measured("peers/pathway_join.py", PEERS, threads=n, **stream) for n in scale.threads]
    _agree(ours + theirs, count=scale.orders, per_tick=per_tick, ticks=warm + ticks)
    our, their = (min(runs, key=lambda run: run["seconds"]) for runs in (ours, theirs))
    total = per_tick * ticks
    rate, peer = total / our["seconds"], total / their["seconds"]
    name = f"{per_tick:,} changes a tick, {scale.orders:,} orders"
    found.add(f"{name}: Everview", rate, "changes/s", AtLeast(1e6) if per_tick == 1_000 else None)
    found.add(f"{name}: Pathway", peer, "changes/s")
    found.add(f"{name}: Everview / Pathway", rate / peer, "times", AtLeast(20))
    thrifty = [total / min(run["cpu"] for run in runs) for runs in (ours, theirs)]
    found.add(f"{name}: Everview, by CPU time", thrifty[0], "changes/s")
    found.add(f"{name}: Everview / Pathway, by CPU time", thrifty[0] / thrifty[1], "times")
    found.add(f"{name}: Everview's first tick after the load", min(run["first"] for run in ours) * 1e3, "ms")
    found.raw[f"pathway-{per_tick}"] = {"everview": ours, "pathway": theirs, "changes": total} | stream


def _beside_duckdb(found: Findings, scale: Scale, count: int) -> None:
    _, warm, ticks = scale.streams[0]
    ours, theirs = [], []
    for _ in range(scale.rounds):
        ours.append(measured("join_group_by.py", count=count, per_tick=SMALL_TICK, warm=warm, ticks=ticks))
        recompute = {"count": count, "per_tick": SMALL_TICK, "ticks": scale.recompute_ticks}
        theirs.append(measured("peers/duckdb_join.py", PEERS, **recompute))
        _agree(theirs, **recompute)
    tick = min(run["median"] for run in ours)
    query = min(run["seconds"] for run in theirs)
    name = f"{count:,} orders"
    found.add(f"{name}: Everview, a tick of {SMALL_TICK} changes", tick * 1e6, "µs")
    found.add(f"{name}: DuckDB, the query alone", query * 1e6, "µs")
    found.add(f"{name}: DuckDB / Everview", query / tick, "times", AtLeast(50 if count <= 1_000_000 else 300))
    spread = min(run["cpu"] / run["threads"] for run in theirs)
    mean = min(run["cpu"] / ticks for run in ours)
    found.add(f"{name}: DuckDB / Everview, by CPU time", spread / mean, "times")
    found.raw[f"duckdb-{count}"] = {"everview": ours, "duckdb": theirs}


def _agree(runs: list[dict[str, Any]], *, count: int, per_tick: int, ticks: int) -> None:
    """Everyone must have arrived at the same view, or the times mean nothing."""
    wanted = expected(count, per_tick, ticks)
    assert all(run["digest"] == wanted for run in runs), f"the views differ after {ticks} ticks of {per_tick} changes"


if __name__ == "__main__":
    answer(measure)
