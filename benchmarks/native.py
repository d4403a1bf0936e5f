"""Beside native engines: four workloads on differential-dataflow, on dbsp and on Everview, one thread each.

The peers are programs of our own, in Rust, in the folder `native`; `make bench-native` builds them and runs this.
Everybody reads the same files, and everybody's view must have had the same contents after the load and after every
tick. What counts is CPU time: of a run its median tick, and of several runs, taken in turns, the best. A ratio of times
is the better of the two peers to Everview, so more is better. That of memory is Everview's peak, above what the process
had before the workload, to the peak of the more frugal peer, so less is better.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from figures import AtLeast, AtMost, Findings, Target, number
from isolate import HERE, measured
from native_data import DRAWN, FULL, QUICK, Name, Sizes, files
from scale import QUICK as QUICKLY
from scale import Scale

PEERS = {"differential": "differential-dataflow", "dbsp": "dbsp"}
OURS = {
    "circuit": "circuit",
    "tables": "circuit, Arrow",
    "arrow": "`db.apply`, Arrow",
    "tuples": "`db.apply`, tuples",
}
ENGINES = PEERS | OURS
ROUNDS = 3
ONCE = {("triangles", "dbsp")}  # minutes and gigabytes
Run = dict[str, Any]

TICKS: dict[tuple[Name, str, int], Target] = {
    ("orders", "circuit", 10): AtLeast(2),
    ("orders", "tuples", 10): AtLeast(1),
    ("orders", "circuit", 1_000): AtLeast(1.5),
    ("orders", "arrow", 1_000): AtLeast(1),
    ("orders", "circuit", 100_000): AtLeast(2),
    ("reachability", "circuit", 10): AtLeast(1),
    ("closure", "circuit", 10): AtLeast(1),
    ("triangles", "circuit", 100): AtLeast(5),
    ("triangles", "circuit", 1_000): AtLeast(5),
}
MEMORY: dict[Name, Target] = {name: AtMost(1.3) for name in ("orders", "reachability", "closure")}


def findings(scale: Scale) -> Findings:
    found = Findings("Beside native engines")
    quick = scale is QUICKLY
    for name in DRAWN:
        runs = _runs(name, QUICK if quick else FULL, 1 if quick else ROUNDS)
        _agree(name, runs)
        _figures(found, name, runs)
        found.raw[name] = runs
    print(f"\n{table(found.raw)}", flush=True)
    return found


def require_programs() -> None:
    """End with what to do if the peers are not built."""
    missing = [str(program(peer)) for peer in PEERS if not program(peer).exists()]
    if missing:
        raise SystemExit(
            f"error: native is measured beside {', '.join(missing)}\n  hint: make bench-native builds them"
        )


def program(peer: str) -> Path:
    """The program of a peer, where cargo puts it."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or HERE / "native" / "target") / "release" / peer


def _runs(name: Name, sizes: Sizes, rounds: int) -> dict[str, list[Run]]:
    """The runs of every engine, in turns."""
    runs: dict[str, list[Run]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds):
        for engine in ENGINES:
            if turn and (name, engine) in ONCE:
                continue
            runs[engine].append(_ran(engine, name, sizes))
    return runs


def _ran(engine: str, name: Name, sizes: Sizes) -> Run:
    if engine in OURS:
        return measured("native_views.py", name=name, sizes=sizes.name, way=engine)
    ticks = [f"{size}x{count}" for size, count in sizes.plans[name].items()]
    command = [str(program(engine)), name, str(files(name, sizes)), *ticks]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _agree(name: Name, runs: dict[str, list[Run]]) -> None:
    """Everybody must have had the same contents all along, or the times mean nothing."""
    digests = {engine: {run["digest"] for run in each} for engine, each in runs.items()}
    assert len(set.union(*digests.values())) == 1, f"the contents of {name} differ: {digests}"


# -- what is said about it


def tick(runs: list[Run], size: str) -> float:
    """CPU seconds of a tick."""
    return min(run["ticks"][size]["cpu"] for run in runs)


def load(runs: list[Run]) -> float:
    """CPU seconds of the load."""
    return min(run["load"]["cpu"] for run in runs)


def peak(runs: list[Run]) -> float:
    """Bytes at the peak; of Everview, those above what an idle process has."""
    return min(run["peak"] - run.get("idle", 0) for run in runs)


def _figures(found: Findings, name: Name, runs: dict[str, list[Run]]) -> None:
    for size in runs["circuit"][0]["ticks"]:
        what = f"{name}, {int(size):,} changes"
        _compared(found, what, {engine: tick(each, size) * 1e6 for engine, each in runs.items()}, "µs", name, int(size))
    _compared(found, f"{name}, load", {engine: load(each) for engine, each in runs.items()}, "s", name, 0)
    _memory(found, name, {engine: peak(each) / 2**20 for engine, each in runs.items()})


def _compared(found: Findings, what: str, taken: dict[str, float], unit: str, name: Name, size: int) -> None:
    for engine, value in taken.items():
        found.add(f"{what}: {ENGINES[engine]}", value, unit)
    better = min(taken[peer] for peer in PEERS)
    for engine in OURS:
        ratio = better / taken[engine]
        found.add(f"{what}: better peer / {ENGINES[engine]}", ratio, "times", TICKS.get((name, engine, size)))


def _memory(found: Findings, name: Name, peaks: dict[str, float]) -> None:
    for engine, value in peaks.items():
        found.add(f"{name}, peak memory{' above idle' if engine in OURS else ''}: {ENGINES[engine]}", value, "MiB")
    ratio = peaks["circuit"] / min(peaks[peer] for peer in PEERS)
    found.add(f"{name}, peak memory: circuit / more frugal peer", ratio, "times", MEMORY.get(name))


def table(raw: dict[str, dict[str, list[Run]]]) -> str:
    """All engines side by side, as Markdown; the least of a line is bold.

    >>> run = {"load": {"cpu": 1.5}, "ticks": {"10": {"cpu": 2e-6}}, "peak": 2**20}
    >>> print(table({"orders": {engine: [run] for engine in ENGINES}}).splitlines()[2])
    | orders, 10 changes, µs | **2** | **2** | **2** | **2** | **2** | **2** |
    """
    lines = ["| by CPU time | " + " | ".join(ENGINES.values()) + " |", "|---|" + "---:|" * len(ENGINES)]
    for name, runs in raw.items():
        for size in runs["circuit"][0]["ticks"]:
            lines.append(
                _line(f"{name}, {int(size):,} changes, µs", [tick(runs[each], size) * 1e6 for each in ENGINES])
            )
        lines.append(_line(f"{name}, load, s", [load(runs[each]) for each in ENGINES]))
        lines.append(_line(f"{name}, peak, MiB", [peak(runs[each]) / 2**20 for each in ENGINES]))
    return "\n".join(lines)


def _line(what: str, values: list[float]) -> str:
    cells = [f"**{number(value)}**" if value == min(values) else number(value) for value in values]
    return f"| {what} | {' | '.join(cells)} |"
