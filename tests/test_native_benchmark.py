"""The benchmark beside native engines: its input is the same every time, and Everview's part of it is right."""

from __future__ import annotations

import doctest
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
NAMES = ("orders", "reachability", "closure", "triangles")
WAYS = ("circuit", "tables", "arrow", "tuples")
Rows = list[tuple[int, ...]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the benchmarks, whose data go to a folder of the test's own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)

    def load_module(name: str) -> ModuleType:
        module = __import__(name)
        for other in ("native_data", "skewed", "stream"):
            monkeypatch.setattr(sys.modules[other], "DATA", tmp_path)
        return module

    yield load_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_files_every_time(name: str, load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    data = load("native_data")
    first = _bytes(data.files(name, data.TINY))
    (tmp_path / "native-tiny").rename(tmp_path / "before")
    assert _bytes(data.files(name, data.TINY)) == first
    assert set(first) == {
        *(f"{relation}.i64" for relation in data.workload(name, data.TINY).relations),
        *(f"ticks-{size}.i64" for size in data.TINY.plans[name]),
    }


@pytest.mark.parametrize("name", NAMES)
def test_ticks_delete_what_is_there_and_insert_what_is_not(name: str, load: Callable[[str], ModuleType]) -> None:
    data = load("native_data")
    drawn = data.workload(name, data.TINY)
    contents = Counter(map(tuple, drawn.relations[drawn.changing].tolist()))
    count = len(contents)
    for size, changes in drawn.changes.items():
        assert len(changes) == size * data.TINY.plans[name][size]
        for tick in np.split(changes, data.TINY.plans[name][size]):
            for *row, weight in tick.tolist():
                contents[tuple(row)] += weight
            assert set(contents.values()) <= {0, 1}
            assert contents.total() == count


@pytest.mark.parametrize(("name", "way"), list(product(NAMES, WAYS)))
def test_everview_goes_through_the_contents_that_computing_anew_has(
    name: str, way: str, load: Callable[[str], ModuleType]
) -> None:
    views, data = load("native_views"), load("native_data")
    driven = views.driven(name, data.TINY, way)
    trail = _recomputed(data, name)
    assert (driven["digest"], driven["rows"]) == (trail.digest, trail.rows)
    assert set(driven["ticks"]) == {str(size) for size in data.TINY.plans[name]}


def test_the_digest_tells_contents_apart(load: Callable[[str], ModuleType]) -> None:
    data = load("native_data")
    for module in (data, load("native")):
        assert doctest.testmod(module).failed == 0
    some = [([1, 2], [1, 1]), ([2, 1], [1, 1]), ([1, 2], [1, -1]), ([1, 3], [1, 1]), ([1], [1]), ([1], [2]), ([], [])]
    digests = [data.digest_of([np.array(rows), np.arange(len(rows))], np.array(weights)) for rows, weights in some]
    assert len(set(digests)) == len(some)


def test_without_the_programs_it_says_what_to_do(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "nothing"))
    with pytest.raises(
        SystemExit, match=r"(?s)^error: native is measured beside .*hint: make bench-native builds them"
    ):
        load("native").require_programs()


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- computed anew after every tick


def _recomputed(data: Any, name: str) -> Any:
    drawn, trail, shown = data.workload(name, data.TINY), data.Trail(), Counter[tuple[int, ...]]()
    relations = {each: [tuple(row) for row in rows.tolist()] for each, rows in drawn.relations.items()}
    ticks = [tick for size, changes in drawn.changes.items() for tick in np.split(changes, data.TINY.plans[name][size])]
    for tick in [np.empty((0, 1), np.int64), *ticks]:
        for *row, weight in tick.tolist():
            (relations[drawn.changing].append if weight > 0 else relations[drawn.changing].remove)(tuple(row))
        now = Counter(ANEW[name](**relations))
        change = now.copy()
        change.subtract(shown)
        rows = [row for row, weight in change.items() if weight]
        columns = list(np.array(rows, np.int64).reshape(len(rows), len(next(iter(now)))).T)
        trail.add(columns, np.array([change[row] for row in rows], np.int64))
        shown = now
    return trail


def _totals(customers: Rows, orders: Rows) -> Rows:
    nations = dict(customers)
    by_nation: dict[int, list[int]] = {}
    for _, customer, amount in orders:
        by_nation.setdefault(nations[customer], []).append(amount)
    return [(nation, sum(amounts), len(amounts)) for nation, amounts in by_nation.items()]


def _reached(roots: Rows, edges: Rows) -> Rows:
    found = set(roots)
    while more := {(b,) for a, b in edges if (a,) in found} - found:
        found |= more
    return list(found)


def _paths(edges: Rows) -> Rows:
    found = set(edges)
    while more := {(a, d) for (a, b), (c, d) in product(found, edges) if b == c} - found:
        found |= more
    return list(found)


def _triangles(edges: Rows) -> Rows:
    known = set(edges)
    return [(sum(b == c and (a, d) in known for (a, b), (c, d) in product(edges, edges)),)]


ANEW: dict[str, Callable[..., Rows]] = {
    "orders": _totals,
    "reachability": _reached,
    "closure": _paths,
    "triangles": _triangles,
}
