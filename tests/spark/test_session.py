"""A session that suits, one that is there already, and one sentence where there can be none."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from everview.errors import EverviewError, MissingRuntime
from everview.spark.session import require_java, require_pyspark, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fake_java(directory: Path, says: str) -> Path:
    directory.mkdir(parents=True)
    java = directory / "java"
    java.write_text(f"#!/bin/sh\n{says}\n")
    java.chmod(0o755)
    return directory


VERSIONS = [
    ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", None),
    ("echo 'openjdk version \"21-ea\" 2023-09-19' >&2", None),
    ("echo 'java version \"1.8.0_392\"' >&2", "finds Java 8"),
    ("echo 'openjdk version \"11.0.2\"' >&2", "finds Java 11"),
    ("echo 'The operation could not be completed.' >&2; exit 1", "cannot start"),
]


@pytest.mark.parametrize("where", ["PATH", "JAVA_HOME"])
@pytest.mark.parametrize(("says", "refusal"), VERSIONS)
def test_java_old_and_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, says: str, refusal: str | None
) -> None:
    bin_ = fake_java(tmp_path / "java" / "bin", says)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(where, str(bin_ if where == "PATH" else bin_.parent))
    if refusal is None:
        require_java()
        return
    with pytest.raises(MissingRuntime, match=f"^Spark needs Java 17 or newer and {refusal}.*: install a JRE") as caught:
        require_java()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("where", "message"), [("PATH", "none on the PATH"), ("JAVA_HOME", "none in JAVA_HOME")])
def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, message: str) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(where, str(tmp_path))
    with pytest.raises(MissingRuntime, match=message):
        require_java()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingRuntime, match=r"pip install 'everview\[spark\]'") as caught:
        session()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("version", "fine"), [("4.0.1", False), ("3.5.3", False), ("4.1.0", True), ("10.0", True)])
def test_pyspark_old_and_new(monkeypatch: pytest.MonkeyPatch, version: str, fine: bool) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    if fine:
        require_pyspark()
        return
    with pytest.raises(MissingRuntime, match=f"finds {version}"):
        require_pyspark()


def test_a_running_session_is_returned_as_it_is(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll)
    assert session().sparkContext is spark.sparkContext
    assert session("local[2]", memory="1g", **{"spark.sql.session.timeZone": "UTC"}) is not None
    assert dict(spark.conf.getAll) == before


@pytest.mark.parametrize(
    ("master", "config", "message"),
    [
        ("local[7]", {}, r"spark.master = local\[2\], not local\[7\]"),
        ("local[*]", {"spark.sql.shuffle.partitions": 9}, "spark.sql.shuffle.partitions = 2, not 9"),
        ("local[*]", {"spark.not.there": True}, "spark.not.there = None, not true"),
    ],
)
def test_a_running_session_is_never_reconfigured(
    spark: SparkSession, master: str, config: dict[str, object], message: str
) -> None:
    before = dict(spark.conf.getAll)
    with pytest.raises(EverviewError, match=message):
        session(master, **config)
    assert dict(spark.conf.getAll) == before


@pytest.mark.spark
def test_a_new_session() -> None:
    program = """
        from pyspark.sql import functions as f
        from everview.spark.session import session

        spark = session("local[1]", memory="512m", **{"spark.sql.ansi.enabled": False})
        names = ("driver.host", "driver.memory", "sql.session.timeZone", "sql.shuffle.partitions", "ui.enabled",
                 "sql.ansi.enabled")
        print([spark.conf.get(f"spark.{name}") for name in names])
        import sys
        same = f.udf(lambda n: __import__("sys").executable, "string")
        assert spark.range(1).select(same("id")).first()[0] == sys.executable
        spark.stop()
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == str(["127.0.0.1", "512m", "UTC", "1", "false", "false"])
