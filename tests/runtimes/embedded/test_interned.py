"""The dictionary in the store: divided among the shards when much comes at once, and found again however it lies."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from everview.circuit import Circuit
from everview.runtimes.embedded import Embedded, interned
from everview.runtimes.spark.worker import Replica
from everview.traces.store import Store
from everview.types import BINARY, STRING


def texts() -> Circuit:
    circuit = Circuit()
    circuit.source("t", "s STRING, b BINARY").sink("all")
    return circuit


def shards_with_entries(path: Path) -> list[int]:
    with Store.attach(path) as state:
        return sorted(shard for name, shard in state.manifest.slices if name == interned.NAMES[0])


def test_many_at_once_are_divided(tmp_path: Path) -> None:
    rows = [((f"text {i}", f"{i}".encode()), 1) for i in range(interned.SPREAD)]
    with Embedded(texts(), tmp_path / "s", shards=3) as run:
        run.tick({"t": [(("few", b"few"), 1)]})
        assert shards_with_entries(tmp_path / "s") == [0]
        run.tick({"t": rows})
        assert shards_with_entries(tmp_path / "s") == [0, 1, 2]
        expected = run.view("all").contents().to_zset()
    with Embedded(texts(), tmp_path / "s", shards=3) as run:
        assert run.view("all").contents().to_zset() == expected
    found = Replica(str(tmp_path / "s")).at(2).dictionary()
    found.intern(STRING, pa.array([text for (text, _), _ in rows]))
    found.intern(BINARY, pa.array([octets for (_, octets), _ in rows]))
    assert len(found) == 2 * (len(rows) + 1)
    assert not len(found.export())  # each was found in the store


@pytest.mark.parametrize("spread", [1, 3, 10_000])
def test_a_long_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    """Ticks, tidying, vacuums that forget, and reopening, with entries divided early or never."""
    monkeypatch.setattr(interned, "SPREAD", spread)
    monkeypatch.setattr("everview.runtimes.embedded.durable.TIDY_BYTES", 300)
    draw = random.Random(spread)
    held: dict[tuple[str, bytes], int] = {}
    run = Embedded(texts(), tmp_path / "s", shards=3)
    for number in range(60):
        rows = [(f"text {draw.randrange(40)}", b"x" * draw.randrange(3)) for _ in range(draw.randrange(8))]
        changes = [(row, -held[row] if draw.random() < 0.6 and held.get(row) else 1) for row in dict.fromkeys(rows)]
        run.tick({"t": changes})
        for row, weight in changes:
            held[row] = held.get(row, 0) + weight
        if number % 13 == 5:
            run.vacuum()
        if number % 7 == 3:
            run.close()
            run = Embedded(texts(), tmp_path / "s", shards=3)
        assert dict(run.view("all").contents().to_zset()) == {row: w for row, w in held.items() if w}
    assert run.durable is not None
    run.durable.store.verify()
    run.close()


def test_slices_of_small_ticks_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many, the store is told what has been merged, however few bytes they are."""
    monkeypatch.setattr("everview.runtimes.embedded.durable.TIDY_SLICES", 100)
    with Embedded(texts(), tmp_path / "s") as run:
        assert run.durable is not None
        most = 0
        for number in range(300):
            run.tick({"t": [((f"text {number}", b""), 1)]})
            most = max(most, sum(1 for _ in run.durable.store.manifest.entries()))
        assert most < 200
        run.durable.store.verify()
        expected = run.view("all").contents().to_zset()
    with Embedded(texts(), tmp_path / "s") as run:
        assert run.view("all").contents().to_zset() == expected
