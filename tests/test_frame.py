"""The frame that the other tests stand in: the Spark session, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_the_session_runs_on_this_machine_alone(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.range(1_000).selectExpr("sum(id)").collect()[0][0] == 499_500


def test_workers_run_this_interpreter_and_import_everview(spark: SparkSession) -> None:
    def look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        import everview

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "everview": [everview.__file__]})

    import everview

    seen = spark.range(2, numPartitions=2).mapInArrow(look_around, "python string, everview string").collect()
    assert {tuple(row) for row in seen} == {(sys.executable, everview.__file__)}


SKIPPED_TESTS = """
import pytest

@pytest.mark.skip(reason="on a whim")
def test_skipped(): ...

@pytest.mark.xfail(reason="known", strict=True)
def test_expected_to_fail(): assert False
"""

SKIPPED_MODULE = """
import pytest

pytest.skip("as a whole", allow_module_level=True)
"""


@pytest.mark.slow
def test_a_skip_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "standalone.py").write_text((Path(__file__).parent / "standalone.py").read_text())
    (tmp_path / "test_tests.py").write_text(SKIPPED_TESTS)
    (tmp_path / "test_module.py").write_text(SKIPPED_MODULE)

    outside = _run_pytest(tmp_path)
    assert "2 skipped, 1 xfailed" in outside.stdout
    assert outside.returncode == 0

    refused = _run_pytest(tmp_path, CI="true")
    assert "no test may be skipped in CI; this one was: Skipped: on a whim" in refused.stdout
    assert "no test may be skipped in CI; this one was: Skipped: as a whole" in refused.stdout
    assert "1 xfailed, 2 errors" in refused.stdout


def _run_pytest(directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With a worker process, since reports reach the main one by another way."""
    command = [sys.executable, "-m", "pytest", "-n", "1", "--continue-on-collection-errors"]
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | variables
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
