"""Run the tests that matter for what has changed, in under a minute: the loop for daily work.

Always: a core of tests that notice most faults of the engine (`CORE`). Besides: the tests and doctests of packages
whose files differ from the main branch. Of a table of cases the first one runs, and properties are tried on few
examples.
``scripts/fast.py PACKAGE …`` takes the packages as given, for example ``scripts/fast.py traces frontends/sql``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 3  # packages whose own tests still fit into a minute

# Together about half a minute on two cores, from the ground floor up to what users see.
CORE = (
    "tests/codes",
    "tests/zset",
    "tests/circuit",
    "tests/operators/test_laws.py",
    "tests/operators/test_seam.py",
    "tests/operators/aggregate/test_exactness.py",
    "tests/traces/test_trace.py",
    "tests/traces/store/test_store.py",
    "tests/scalars/test_functions.py",
    "tests/optimize",
    "tests/frontends/sql/test_queries.py",
    "tests/frontends/datalog/test_meaning.py",
    "tests/database/test_transactions.py",
    "tests/database/test_sql.py",
    "tests/conformance",
    "tests/views",
    "tests/errors/test_mistakes.py",
)


def main(packages: list[str]) -> int:
    """Run what is chosen; the exit code is pytest's."""
    chosen = packages or changed_packages()
    own = chosen if packages or len(chosen) <= MOST else []
    if chosen and not own:
        print(f"{len(chosen)} packages have changed: only the core runs. `make test` runs everything.")
    paths = [*CORE, *(path for package in own for path in tests_of(package))]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-m",
        "not slow and not spark and not cluster and not connect and not lake",
    ]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "fast"}
    return subprocess.run([*command, *dict.fromkeys(paths)], cwd=ROOT, env=environment, check=False).returncode


def changed_packages() -> list[str]:
    """The packages of `src/everview` with a file that differs from the main branch, or is not committed."""
    base = _git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    changed = [*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")]
    folders = (Path(name).parent for name in changed)
    inside = (folder.relative_to("src/everview") for folder in folders if folder.is_relative_to("src/everview"))
    return sorted({folder.as_posix() for folder in inside if folder != Path()})


def tests_of(package: str) -> list[str]:
    """The folder of tests that mirrors a package, and the package itself for its doctests."""
    return [path for path in (f"tests/{package}", f"src/everview/{package}") if (ROOT / path).exists()]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
