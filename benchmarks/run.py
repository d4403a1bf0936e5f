"""Run the benchmarks, print the table, and write it with raw numbers and pictures to `benchmarks/results`.

python benchmarks/run.py                      everything, in full
python benchmarks/run.py --quick              everything at a small scale, in under two minutes
python benchmarks/run.py --only tails memory  some scenarios; what is kept of the others stays
make bench-native                             the scenario `native`, which needs programs in Rust, and only if asked for
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import native
import plots
from figures import Figure, Findings, Target, number
from isolate import PEERS
from scale import FULL, QUICK
from stream import DATA

SCENARIOS = (
    "join_group_by",
    "scaling",
    "tails",
    "memory",
    "startup",
    "durable",
    "recursion",
    "datalog",
    "multiway",
    "tpch",
    "applied",
    "views",
    "why",
    "clock",
    "nexmark",
    "expiry",
    "pull",
    "spark_pipeline",
    "first_load",
    "pipeline_life",
    "many_texts",
    "nightly",
)
ON_REQUEST = ("native", "serve")  # beside programs that not every machine can build, or a server of PostgreSQL
PEERED = ("join_group_by", "recursion", "multiway", "tpch")  # measured beside other systems
RESULTS = Path(__file__).parent / "results"
CORES = os.cpu_count() or 1
BUSY = 1.5  # times the cores; the benchmarks alone stay below that
ENGINES = ("everview", "numpy", "numba", "pyarrow")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small scale, written beside the data")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS + ON_REQUEST, default=SCENARIOS, metavar="SCENARIO")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, for other programs")
    chosen = parser.parse_args()
    require_peers(chosen.only)
    if "native" in chosen.only:
        native.require_programs()
    to = DATA / "quick" if chosen.quick else RESULTS
    to.mkdir(parents=True, exist_ok=True)
    everything = tuple(chosen.only) == SCENARIOS
    found = {name: each for name, each in kept(to).items() if name in ON_REQUEST or not everything}
    for name in chosen.only:
        began, before = time.perf_counter(), os.getloadavg()[0]
        findings: Findings = importlib.import_module(name).findings(QUICK if chosen.quick else FULL)
        found[name] = asdict(findings) | {"machine": machine(), "load": [before, os.getloadavg()[0]]}
        told = sys.stderr if chosen.json else sys.stdout
        print(f"\n{section(found[name])}\n\n({time.perf_counter() - began:.0f} s)", file=told, flush=True)
    ordered = {name: found[name] for name in SCENARIOS + ON_REQUEST if name in found}
    write(ordered, to, quick=chosen.quick)
    if chosen.json:
        print(json.dumps(ordered))


def require_peers(chosen: Sequence[str], python: Path = PEERS) -> None:
    """End with what to do, before anything is measured, if a scenario needs peers that are not installed."""
    needing = [name for name in chosen if name in PEERED]
    if needing and not python.exists():
        others = " ".join(name for name in SCENARIOS if name not in PEERED)
        raise SystemExit(
            f"error: {', '.join(needing)}: these are measured beside peers, and there is no {python}\n"
            f"  hint: make bench installs them; or leave them out: --only {others}"
        )


def kept(to: Path) -> dict[str, Any]:
    path = to / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(found: dict[str, Any], to: Path, *, quick: bool) -> None:
    (to / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (to / "results.md").write_text(page(found, quick=quick))
    # JSON turns every key into text, and the pictures are to be the same from a kept run.
    plots.draw({name: each["raw"] for name, each in json.loads(json.dumps(found)).items()}, to)


def page(found: dict[str, Any], *, quick: bool) -> str:
    """The results as Markdown."""
    first = next(iter(found.values()))["machine"]
    scale = "A quick run: too small for the targets to mean much." if quick else "Targets are those of a full run."
    lines = ["# Benchmark results", "", f"{scale} {'; '.join(f'{k} {v}' for k, v in first.items())}."]
    return "\n".join([*lines, *(f"\n{section(each)}" for each in found.values())]) + "\n"


def section(findings: dict[str, Any]) -> str:
    head = [f"## {findings['title']}", "", "| figure | value | target | |", "|---|---:|---:|---|"]
    before, after = findings["load"]
    doubt = findings["timed"] and max(before, after) > BUSY * CORES
    busy = f"Load of the machine, of which this is at most a share: {before:.1f} before, {after:.1f} after."
    return "\n".join([*head, *(line(_figure(each), doubt) for each in findings["figures"]), "", busy])


def line(figure: Figure, doubt: bool) -> str:
    verdict = {True: "met", False: "**missed**", None: ""}[figure.met]
    if verdict and doubt:
        verdict += ", busy machine"
    return f"| {figure.what} | {number(figure.value)} {figure.unit} | {figure.target or ''} | {verdict} |"


def _figure(each: dict[str, Any]) -> Figure:
    target = each["target"] and Target(**each["target"])
    return Figure(each["what"], each["value"], each["unit"], target)


def machine() -> dict[str, str]:
    """What the figures depend on."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [each.split(":")[1].strip() for each in info.read_text().splitlines() if "model name" in each]
        processor = names[0] if names else processor
    found = {"CPU": f"{processor}, {CORES} cores", "Python": platform.python_version()}
    return found | {name: version(name) for name in ENGINES}


if __name__ == "__main__":
    main()
