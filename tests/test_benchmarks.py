"""The benchmarks measure what they say: processes that keep byte code, and ticks of a process that has had some."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the benchmarks, whose data go to a folder of the test's own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    monkeypatch.setattr(__import__("stream"), "DATA", tmp_path)
    yield __import__
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(BENCHMARKS) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_measured_processes_keep_byte_code(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    script = tmp_path / "script.py"
    script.write_text("import json, sys; print(json.dumps({'kept': not sys.dont_write_bytecode}))")
    assert load("isolate").measured(str(script)) == {"kept": True}
    assert load("startup")._started("import sys; print(sys.dont_write_bytecode)")[1] == "False\n"


def test_the_first_ticks_are_not_timed_and_count_all_the_same(load: Callable[[str], ModuleType]) -> None:
    measure, stream = load("join_group_by").measure, load("stream")
    found = measure(count=200, per_tick=10, warm=3, ticks=4)
    assert found["digest"] == stream.expected(200, 10, 7)
    assert all(json.loads(json.dumps(found))[what] > 0 for what in ("seconds", "median", "cpu", "first", "first_cpu"))
