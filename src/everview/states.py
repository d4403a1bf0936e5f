"""What state directories hold, from outside: relations, sizes, epochs, and whether every byte is as it was written.

All but `vacuumed` only read, and lock nobody out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everview.database import connect
from everview.errors import StoreError
from everview.traces.store import Store

Row = dict[str, Any]


def relations(path: Path) -> list[Row]:
    """The tables and kept views of a state at its last epoch, with their columns and how many rows each holds."""
    _require(path)
    with Store.attach(path) as state:
        meta = state.manifest.meta
        found: list[Row] = []
        for kind in ("tables", "views"):
            for name, said in _kept(meta.get(kind, {})).items():
                slices = [s.array for shard in range(meta["shards"]) for s in state.slices(said["trace"], shard)]
                rows = sum(int(array[:, -1].sum()) for array in slices)
                found.append({"name": name, "kind": kind[:-1], "rows": rows, "columns": said["schema"]})
    return found


def sizes(path: Path) -> list[Row]:
    """The bytes of each relation and of everything else: other traces, interned values, logs, segments on disk."""
    _require(path)
    with Store.attach(path) as state:
        meta = state.manifest.meta
        named = {
            said["trace"]: name for kind in ("views", "tables") for name, said in _kept(meta.get(kind, {})).items()
        }
        bytes_of: dict[str, int] = {}
        for (trace, _), entries in state.manifest.slices.items():
            what = named.get(trace, "other traces and interned values")
            bytes_of[what] = bytes_of.get(what, 0) + sum(entry.ref.nbytes for entry in entries)
    parts = [{"part": part, "bytes": count} for part, count in sorted(bytes_of.items(), key=lambda each: -each[1])]
    return [
        *parts,
        *({"part": f"{folder} on disk", "bytes": _on_disk(path / folder)} for folder in ("log", "segments")),
    ]


def epochs(path: Path) -> list[Row]:
    """The epochs that can be read, each with the time of its commit, if known."""
    _require(path)
    times = Store.times(path)
    return [
        {"epoch": epoch, "committed": times[epoch].isoformat(sep=" ") if epoch in times else None}
        for epoch in Store.history(path)
    ]


def checked(path: Path) -> Row:
    """Check every byte of a state; raises `CorruptState` at the first damage."""
    _require(path)
    with Store.attach(path) as state:
        verdict = state.verify()
        return {"epoch": state.epoch, "logs": verdict.logs, "segments": verdict.segments, "slices": verdict.slices}


def vacuumed(path: Path, keep: int) -> Row:
    """Let go of all epochs of a database but the last few, and of values that no row has any more."""
    _require(path)
    before = _on_disk(path)
    with connect(path) as db:
        db.vacuum(keep)
        epoch = db.epoch
    return {"epoch": epoch, "bytes_before": before, "bytes_after": _on_disk(path)}


def _kept(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in said.items() if each is not None}


def _require(path: Path) -> None:
    if not Store.exists(path):
        raise StoreError(
            f"{path} is no state directory", hint="give the directory of ev.connect(path) or of a pipeline"
        )


def _on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
