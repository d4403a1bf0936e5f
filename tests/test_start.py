"""A start imports what a first tick needs, and no more: the rest comes when it is first used."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import pytest

import everview
import everview.multiway
import everview.zset

FIRST_TICK = """
import everview
db = everview.connect()
db.sql("CREATE TABLE customer (id BIGINT PRIMARY KEY, region STRING NOT NULL)")
db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)")
db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, sum(amount) AS total FROM orders AS o "
       "JOIN customer AS c ON o.customer = c.id GROUP BY region")
db.apply({"customer": [((1, "north"), 1)], "orders": [((7, 1, 5), 1)]})
assert db.view("totals").rows() == [("north", 5)]
"""
SHOWN = "import json, sys; print(json.dumps(sorted(sys.modules)))"

# Other libraries, and parts of this one that have little to do with tables, SQL and ticks.
OTHERS = ("pandas", "polars", "duckdb", "pyspark", "asyncio", "lark", "rich", "typer")
PARTS = (
    "everview.cli",
    "everview.demo",
    "everview.frontends.datalog",
    "everview.frontends.edn",
    "everview.frontends.fluent",
    "everview.frontends.pomologic",
    "everview.frontends.pomora",
    "everview.frontends.rules",
    "everview.oracle",
    "everview.runtimes.pull",
    "everview.runtimes.spark",
    "everview.sources",
    "everview.spark",
    "everview.verify",
)


def imported(code: str) -> set[str]:
    """The modules that a new process has imported in the end."""
    return set(json.loads(_printed(code + SHOWN)))


@pytest.fixture(scope="module")
def modules() -> set[str]:
    imported(FIRST_TICK)  # fills the kernel caches
    return imported(FIRST_TICK)


def test_importing_the_package_imports_nothing_else() -> None:
    ours = imported("import everview\n") - imported("")
    assert {name for name in ours if name.startswith("everview")} == {"everview"}
    assert len(ours) < 40


@pytest.mark.parametrize("module", [everview, everview.multiway, everview.zset])
def test_dir_shows_the_names_that_are_meant_for_users(module: ModuleType) -> None:
    assert [name for name in dir(module) if not name.startswith("_")] == sorted(module.__all__)
    assert all(hasattr(module, name) for name in dir(module))


@pytest.mark.parametrize("name", [*OTHERS, *PARTS])
def test_a_first_tick_does_without(modules: set[str], name: str) -> None:
    assert not [module for module in modules if module == name or module.startswith(f"{name}.")]


def test_a_start_stays_small(modules: set[str]) -> None:
    assert len([name for name in modules if name.startswith("everview")]) < 402
    assert len(modules) < 1000


def test_machine_code_is_loaded_without_the_compiler(modules: set[str]) -> None:
    """What Numba needs only in order to compile takes longer to import than all of the kernels to load."""
    assert not {"numba.typed.typeddict", "numba.np.linalg", "numba.np.polynomial.polynomial_core"} & modules
    assert not {"numba.np.arrayobj", "numba.cpython.hashing", "numpy.ma"} & modules


def test_what_was_imported_is_old() -> None:
    """Else the first collection of young objects looks through all of it: a tenth of a second."""
    counted = "import gc, everview; everview.connect; print(gc.isenabled(), len(gc.get_objects(0)) < 10_000)"
    assert _printed(counted) == "True True"


def test_what_a_program_has_frozen_stays_frozen() -> None:
    frozen = "import gc, everview; gc.freeze(); everview.connect; print(gc.isenabled(), gc.get_freeze_count() > 0)"
    assert _printed(frozen) == "True True"


def test_collections_that_a_program_has_turned_off_stay_so() -> None:
    assert _printed("import gc, everview; gc.disable(); everview.connect; print(gc.isenabled())") == "False"


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()
