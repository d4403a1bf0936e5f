"""The demo: its company, its views against plain Spark SQL, and the command from beginning to end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import everview as ev
from everview.cli import app
from everview.demo import bank
from everview.demo.company import FILES, KEYS, ROWS, Company
from everview.demo.recompute import bring_up_to_date, plain, recompute
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def played(directory: Path, steps: int = 12, seed: int = 1) -> Company:
    company = Company(directory, 2_000, seed)
    company.load()
    for _ in range(steps):
        company.step(100)
    return company


def changes_of(directory: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """The rows of every file of every source."""
    return {
        source: [pq.read_table(file).to_pylist() for file in sorted((directory / source).iterdir())] for source in FILES
    }


def test_the_same_seed_makes_the_same_company(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        played(tmp_path / name, seed=seed)
    assert changes_of(tmp_path / "a") == changes_of(tmp_path / "b")
    assert changes_of(tmp_path / "a") != changes_of(tmp_path / "c")


def test_a_step_touches_a_key_once(tmp_path: Path) -> None:
    played(tmp_path)
    for source, files in changes_of(tmp_path).items():
        assert len(files) > 1, source
        for rows in files:
            keys = [row[KEYS[source]] for row in rows]
            assert len(keys) == len(set(keys)), source


def test_the_files_hold_what_is_said_of_them(tmp_path: Path) -> None:
    played(tmp_path)
    for source, columns in FILES.items():
        for file in (tmp_path / source).iterdir():
            assert pq.read_schema(file).types == [field.type.arrow for field in Schema.parse(columns)], file


def current(directory: Path) -> dict[str, list[tuple[tuple[Any, ...], int]]]:
    """The tables that the changes amount to, in plain Python."""
    found: dict[str, list[tuple[tuple[Any, ...], int]]] = {}
    for source, files in changes_of(directory).items():
        last = {row[KEYS[source]]: row for rows in files for row in rows}
        names = Schema.parse(ROWS[source]).names
        alive = [row for row in last.values() if row.get("op") != "d"]
        found[source] = [(tuple(row[name] for name in names), 1) for row in alive]
    return found


def test_the_views_are_what_spark_sql_says(spark: SparkSession, tmp_path: Path) -> None:
    played(tmp_path / "changes")
    bring_up_to_date(spark, tmp_path / "changes", tmp_path / "tables")
    expected = recompute(spark, tmp_path / "tables").rows

    run = ev.Embedded(bank.circuit())
    run.tick(current(tmp_path / "changes"))
    for view in bank.VIEWS:
        assert Counter(tuple(map(plain, row)) for row in run.view(view).rows()) == expected[view]
        assert expected[view], f"{view} is not trivial"


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "everview", "demo", "--quick", "--keep", str(kept), "--json"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"^epoch +changes in +exposure +top_senders +invoices +tainted +rings +tick ms", ran.stderr, re.MULTILINE
    )
    assert "Verified: every view" in ran.stderr
    assert re.search(r"A step was [\d.,]+ times", ran.stderr)
    figures = json.loads(ran.stdout)
    assert figures["recompute_seconds"] > 0
    assert [epoch["epoch"] for epoch in figures["epochs"]] == [2, 3, 4, 5]
    assert (kept / "state").is_dir()


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    ran = CliRunner().invoke(app, ["demo", "--quick", "--keep", str(tmp_path)])
    assert ran.exit_code == 1
    assert "is not empty" in ran.output
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]


def test_no_java_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "everview", "demo", "--quick"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: Spark needs Java 17 or newer and finds none on the PATH: install")
    assert ran.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_version() -> None:
    ran = CliRunner().invoke(app, ["version"])
    assert ran.stdout == f"{ev.__version__}\n"
