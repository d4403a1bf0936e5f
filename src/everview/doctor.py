"""The doctor: what Everview needs and finds on this machine, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import everview
from everview.errors import EverviewError

NEEDED: Final = ("numpy", "numba", "pyarrow", "sqlglot", "lark", "pydantic", "rich", "typer", "pyyaml")
# Packages that only some functions need: the extra that brings each, and what it is for.
OPTIONAL: Final = {
    "pyspark": ("everview[spark]", "pipelines on Spark"),
    "pandas": ("pandas", "to_pandas, and pipelines on Spark"),
    "polars": ("polars", "to_polars"),
    "confluent-kafka": ("everview[kafka]", "transactions of Kafka"),
    "psycopg": ("everview[postgres]", "PostgreSQL sources"),
    "boto3": ("everview[s3]", "states on S3"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of the doctor: whether a thing is there, whether it is needed, and how to get it."""

    what: str
    ok: bool
    found: str
    needed: bool = False
    get: str | None = None

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


def findings() -> list[Finding]:
    """All that is looked for, in order."""
    return [*_interpreter(), *_packages(), _java(), _kernels(), _writable()]


def healthy(findings: list[Finding]) -> bool:
    """Whether nothing is missing that everything needs."""
    return all(finding.ok or not finding.needed for finding in findings)


def _interpreter() -> Iterator[Finding]:
    yield Finding("everview", True, everview.__version__)
    new = sys.version_info >= (3, 11)
    yield Finding("Python", new, platform.python_version(), True, None if new else "install Python 3.11 or newer")
    yield Finding("cores", True, str(os.cpu_count() or 1))


def _packages() -> Iterator[Finding]:
    for name in NEEDED:
        version = _version(name)
        yield Finding(name, version is not None, version or "missing", True, None if version else f"pip install {name}")
    for name, (extra, purpose) in OPTIONAL.items():
        version = _version(name)
        get = None if version else f"pip install '{extra}', for {purpose}"
        yield Finding(name, version is not None, version or "missing", False, get)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> Finding:
    from everview.spark.session import require_java

    return _tried("Java", require_java, "found", "for pipelines on Spark")


def _tried(what: str, look: Callable[[], None], found: str, purpose: str) -> Finding:
    try:
        look()
    except EverviewError as error:
        return Finding(what, False, "missing", False, f"{error.message} It is {purpose}.")
    return Finding(what, True, found)


def _kernels() -> Finding:
    """Whether machine code is kept: else every process compiles what it uses, for up to a minute."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(everview.__file__).parent / "kernels" / "__pycache__")
    kept = len([*folder.rglob("*.nbc")]) if folder.is_dir() else 0
    if kept:
        return Finding("compiled kernels", True, f"{kept} kept in {folder}")
    get = "python -m everview.kernels compiles all of them now; else each when it is first used"
    return Finding("compiled kernels", False, "none yet", False, get)


def _writable() -> Finding:
    folder = Path.cwd()
    well = os.access(folder, os.W_OK)
    return Finding(
        "this directory", well, str(folder), False, None if well else "states cannot be kept here: cd elsewhere"
    )
