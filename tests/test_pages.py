"""Pages that are made from other files are current."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.mark.parametrize("name", ["catalyst", "clauses", "layers"])
def test_a_generated_page_is_current(name: str) -> None:
    script = _loaded(name)
    assert script.PAGE.read_text() == script.page(), f"run .venv/bin/python scripts/{name}.py --write"


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
