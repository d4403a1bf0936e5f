"""Every view of every conformance file, after every tick, against DuckDB or the recorded answer."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.files import Delta, File, Sql, Tick, read
from conformance.replay import Replay, SparkReplay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = sorted((Path(__file__).parent / "cases").glob("*.test"))
EVERYTHING = bool(os.environ.get("EVERVIEW_CONFORMANCE"))  # `make conformance` sets it
SEEDS = range(8 if EVERYTHING else 2)
SAMPLE = ("aggregates", "aggregates_over_windows", "subqueries")
TOGETHER = ("frames", "moments", "shapes", "windows_over_arrays")  # their names are all different
ON_SPARK = [path for path in CASES if path.stem != "refusals" and (EVERYTHING or path.stem in SAMPLE)]


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
@pytest.mark.parametrize("seed", SEEDS)
def test_views_are_right_after_every_tick(path: Path, seed: int) -> None:
    Replay(read(path), random.Random(f"{path.stem} {seed}")).run()


@pytest.mark.spark
def test_several_at_once_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The views of several files in one pipeline, looked at after the last of two epochs, which the driver runs."""
    files = [read(path) for path in CASES if path.stem in TOGETHER]
    first, rest = [], []
    for file in files:
        ends = next(place for place, block in enumerate(file.blocks) if isinstance(block, Tick))
        first += [block for block in file.blocks[:ends] if isinstance(block, Delta)]
        rest += [block for block in file.blocks[ends:] if isinstance(block, Delta)]
    defined = [block for file in files for block in file.blocks if isinstance(block, Sql)]
    together = File("several", [*defined, *first, Tick(), *rest, Tick()])
    SparkReplay(together, random.Random(0), spark, tmp_path / "state", unchecked=1, place="driver").run()


@pytest.mark.spark
@pytest.mark.parametrize("path", ON_SPARK, ids=[path.stem for path in ON_SPARK])
def test_the_same_on_spark(path: Path, spark: SparkSession, tmp_path: Path) -> None:
    SparkReplay(read(path), random.Random(path.stem), spark, tmp_path / "state").run()
