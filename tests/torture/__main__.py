"""`make torture`, or `python -m torture` with `tests` on the path: all trials, one after the other.

Each trial runs in a process of its own, so that one which ends its interpreter is a fault of that trial, and no more.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from torture.outcome import Outcome

# A trial is a module with `run(seconds, seed) -> Outcome`; it gets its share of the time.
TRIALS = {
    "interrupts": 2,
    "forks": 1,
    "kills": 2,
    "disk_full": 1,
    "object_stores": 1,
    "hostile": 2,
    "wire": 1,
    "random_sql": 4,
    "random_frames": 2,
    "properties": 2,
    "sessions": 2,
}
LATE = 300  # seconds after its time in which a trial must come to its end


def main() -> int:
    options = _options()
    if options.into is not None:
        _run_here(options.parts, options.seconds, options.seed, Path(options.into))
        return 0
    parts = [part for part in options.parts.split(",") if part]
    there = [part for part in parts if importlib.util.find_spec(f"torture.{part}") is not None]
    print(f"{options.seconds:,.0f} seconds, seed {options.seed}", flush=True)
    shares = sum(TRIALS.get(part, 1) for part in there)
    outcomes: dict[str, Outcome] = {}
    for part in parts:
        if part not in there:
            print(f"{part:>12}: there is no such trial", flush=True)
            continue
        seconds = options.seconds * TRIALS.get(part, 1) / shares
        started = time.monotonic()
        outcomes[part] = _run_apart(part, seconds, options.seed)
        print(f"{part:>12}: {outcomes[part]} ({time.monotonic() - started:,.0f} s)", flush=True)
        for note in outcomes[part].notes[:1]:
            print(f"{'':>12}  {note}", flush=True)
    return _report(outcomes, options.seed, Path(options.report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description="Long trials; exit 1 if there is a fault.")
    parser.add_argument("--seconds", type=float, default=1800, help="for all trials together")
    parser.add_argument("--parts", default=",".join(TRIALS), help=f"some of {', '.join(TRIALS)}")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--report", default="torture.txt", help="the file for faults and notes")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_apart(part: str, seconds: float, seed: int) -> Outcome:
    """The outcome of a trial in a process of its own; that it ends badly, or not at all, is a fault."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "outcome.json"
        command = [sys.executable, "-m", "torture", "--into", str(into), "--parts", part]
        command += ["--seconds", str(seconds), "--seed", str(seed)]
        with (Path(folder) / "said.txt").open("w+") as said:
            try:
                code = subprocess.run(command, stdout=said, stderr=said, timeout=seconds + LATE, check=False).returncode
            except subprocess.TimeoutExpired:
                code = None
            if code == 0:
                found = json.loads(into.read_text())
                return Outcome(Counter(found["tried"]), found["faults"], found["notes"])
            said.seek(0)
            ended = "did not end" if code is None else f"ended with {code}"
            return Outcome(faults=[f"the trial {ended}; seed {seed}\n{said.read()[-4000:]}"])


def _run_here(part: str, seconds: float, seed: int, into: Path) -> None:
    # Shells that start a process in the background let it ignore Ctrl-C; the trials send some to themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcome = importlib.import_module(f"torture.{part}").run(seconds, seed)
    notes = getattr(outcome, "notes", [])
    into.write_text(json.dumps({"tried": dict(outcome.tried), "faults": outcome.faults, "notes": notes}))


def _report(outcomes: dict[str, Outcome], seed: int, path: Path) -> int:
    """Write every fault and note to a file; 1 if there is a fault."""
    lines = [f"seed {seed}"]
    for part, outcome in outcomes.items():
        lines += [f"\n# {part}: {outcome}", *(f"\nfault: {fault}" for fault in outcome.faults)]
        lines += ["", *(f"note: {note}" for note in outcome.notes)]
    path.write_text("\n".join(lines) + "\n")
    faults = sum(len(outcome.faults) for outcome in outcomes.values())
    print(f"{faults} faults" if faults != 1 else "1 fault", f"in all; {path} has the details")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
