"""A pipeline in a file: run, fed with more changes, run again, verified; all of it as on the command line.

The file is `10_pipeline.yaml` beside this one; `everview run 10_pipeline.yaml` is what `command` does here. The example
needs Spark: see `everview.spark`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from everview.cli import app

FILE = "10_pipeline.yaml"


def main() -> None:
    shutil.copy(Path(__file__).parent / FILE, FILE)  # its paths are relative to where it is
    for name in ("customers", "orders"):
        Path(name).mkdir()
    arrive("customers", customer(1, "Peru"), customer(2, "Chile"))
    arrive("orders", order(1, 1, "10.00"), order(2, 2, "25.00"), order(3, 1, "7.50"))
    command("run", FILE)
    arrive("customers", customer(2, "Bolivia", "u"))
    arrive("orders", order(1, 1, "12.00"), order(4, 2, "30.00"))
    command("run", FILE)
    command("verify", FILE)
    print(sorted(found.as_posix() for found in Path("out").rglob("*.parquet")))


def command(*words: str) -> None:
    print("$ everview", *words, flush=True)
    app(words, standalone_mode=False)


def arrive(name: str, *rows: dict[str, Any]) -> None:
    """One more file, as a whole: written beside the directory, then moved into it."""
    number = len(list(Path(name).iterdir()))
    Path("arriving").write_text("\n".join(map(json.dumps, rows)))
    os.rename("arriving", Path(name) / f"{number}.json")


def customer(id_: int, country: str, op: str = "c") -> dict[str, Any]:
    return {"id": id_, "country": country, "op": op}


def order(id_: int, customer: int, amount: str) -> dict[str, Any]:
    return {"id": id_, "customer": customer, "amount": amount, "at": "2026-11-15T12:00:00Z"}


if __name__ == "__main__":
    main()
