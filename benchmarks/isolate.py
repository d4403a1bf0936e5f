"""Every measure runs in a process of its own, so that imports, caches and memory are its own.

A script is called with its parameters as one JSON argument and answers with one line of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-bench" / "bin" / "python"


def measured(script: str, python: str | Path = sys.executable, /, **parameters: Any) -> dict[str, Any]:
    """What a script in this folder answers to these parameters."""
    command = [str(python), str(HERE / script), json.dumps(parameters)]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def answer(measure: Callable[..., dict[str, Any]]) -> None:
    """Called by a script: run its measure with the parameters given, and print what it found."""
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
