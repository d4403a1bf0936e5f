"""`make mutants`, or `python -m mutants` with `tests` on the path: plant every fault, and see that its tests notice."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from mutants.faults import FAULTS, PlantedFault


def main() -> int:
    """Plant every fault in turn; 1 if one went unnoticed."""
    unnoticed = [fault for fault in FAULTS if not _noticed(fault)]
    print(f"{len(FAULTS) - len(unnoticed)} of {len(FAULTS)} planted faults were noticed")
    return 1 if unnoticed else 0


def _noticed(fault: PlantedFault) -> bool:
    """Run the fault's tests with it; noticed means that one of them fails, not that none can be run."""
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "mutants.plant", "-m", "not spark", *fault.tests]
    environment = {**os.environ, "EVERVIEW_FAULT": fault.name, "HYPOTHESIS_PROFILE": "mutants"}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1:]
    noticed = done.returncode == 1 and " failed" in "".join(last)
    print(f"{'noticed' if noticed else 'UNNOTICED':>9} ({time.monotonic() - started:.0f} s)  {fault.name}", flush=True)
    if not noticed and done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return noticed


if __name__ == "__main__":
    sys.exit(main())
