"""The package as it is released: extras, changelog, and the first hour of somebody who installs the wheel."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import everview

ROOT = Path(__file__).parents[1]
# The package that an extra installs, as it is imported.
IMPORTED = {
    "hdfs-native": "hdfs_native",
    "confluent-kafka": "confluent_kafka",
    "ipython": "IPython",
    "prompt-toolkit": "prompt_toolkit",
}
FOR_PYSPARK = {"connect"}  # extras with what PySpark asks for, and we do not import


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_brings_what_is_imported() -> None:
    extras: dict[str, list[str]] = project()["optional-dependencies"]  # type: ignore[assignment]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for extra in extras.keys() - {"dev", "build"} - FOR_PYSPARK:
        for requirement in extras[extra]:
            name = re.split(r"[\[<>=]", requirement)[0]
            module = IMPORTED.get(name, name)
            assert re.search(rf"import {module}\b|from {module}[. ]|[\"']{module}[\"']", source), (extra, name)


def test_the_changelog_and_the_version_agree() -> None:
    assert project()["version"] == everview.__version__
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_first_hour_from_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("first_hour")
    hour = script.run(tmp_path, without=(script.site,))  # the site has tests of its own
    assert len(hour.took) == len(script.STEPS) - 1
    page = script.PAGE.read_text(encoding="utf-8")
    assert all(f"| {step} | " in page for step in script.STEPS), "run .venv/bin/python scripts/first_hour.py --write"
