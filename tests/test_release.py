"""The package as it is released: what is built holds what is imported, and works in an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import everview

ROOT = Path(__file__).parents[1]
# The package that an extra installs, as it is imported.
IMPORTED = {"confluent-kafka": "confluent_kafka", "ipython": "IPython", "prompt-toolkit": "prompt_toolkit"}
QUICKSTART = """
import everview as ev
db = ev.connect()
db.sql("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS total FROM t")
db.sql("INSERT INTO t VALUES (1), (2)")
print(ev.__file__, db.view("v").rows())
"""


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_brings_what_is_imported() -> None:
    extras: dict[str, list[str]] = project()["optional-dependencies"]  # type: ignore[assignment]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for extra in extras.keys() - {"dev", "build"}:
        for requirement in extras[extra]:
            name = re.split(r"[\[<>=]", requirement)[0]
            module = IMPORTED.get(name, name)
            assert re.search(rf"import {module}\b|from {module}[. ]|[\"']{module}[\"']", source), (extra, name)


def test_the_changelog_and_the_version_agree() -> None:
    assert project()["version"] == everview.__version__
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"everview/__init__.py", "everview/py.typed", "pyspark_everview/__init__.py"} <= {*names}
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "docs"))]
    with tarfile.open(sdist) as files:
        assert any(name.endswith("/src/everview/py.typed") for name in files.getnames())

    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    # What it depends on is that of these tests; a path in such a file is added as it is, without editable installs.
    (site / "dependencies.pth").write_text(f"{Path(os.__file__).parent}\n{_site_packages()}\n", encoding="utf-8")
    _take_compiled(Path(everview.__file__).parent / "kernels", site / "everview" / "kernels")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([python, "-c", QUICKSTART], cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [str(site / "everview" / "__init__.py"), "[(3,)]"]
    entry = 'from everview.__main__ import main; import sys; sys.argv = ["everview", "doctor"]; main()'
    doctor = subprocess.run([python, "-c", entry], cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
    assert doctor.returncode == 0, doctor.stderr


def _take_compiled(ours: Path, theirs: Path) -> None:
    """Take along the machine code of the same kernels, known by the times of their files: to compile takes a minute."""
    for module in theirs.glob("*.py"):
        shutil.copystat(ours / module.name, module)
    if (ours / "__pycache__").is_dir():
        shutil.copytree(ours / "__pycache__", theirs / "__pycache__")


def _site_packages() -> Path:
    import numpy

    return Path(numpy.__file__).parents[1]
