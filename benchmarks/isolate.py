"""Every measure runs in a process of its own, so that imports, caches and memory are its own.

A script is called with its parameters as one JSON argument and answers with one line of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-bench" / "bin" / "python"


def measured(script: str, python: str | Path = sys.executable, /, **parameters: Any) -> dict[str, Any]:
    """What a script in this folder answers to these parameters."""
    if not Path(python).exists():
        raise SystemExit(f"error: {script} needs {python}\n  hint: make bench installs the peers")
    command = [str(python), str(HERE / script), json.dumps(parameters)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """The environment of a process that is measured.

    It finds the Everview of this checkout, also where another one is installed, and keeps byte code. Some machines tell
    Python to keep none; then every process compiles all modules that it imports.
    """
    path = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""}


def answer(measure: Callable[..., dict[str, Any]]) -> None:
    """Called by a script: run its measure with the parameters given, and print what it found."""
    print(json.dumps(measure(**json.loads(sys.argv[1]))))


def give_up_after(seconds: int) -> None:
    """Called by a script that may take too long: it then answers that it gave up."""

    def give_up() -> None:
        print(json.dumps({"gave_up": seconds}), flush=True)
        os._exit(0)

    alarm = threading.Timer(seconds, give_up)
    alarm.daemon = True
    alarm.start()
