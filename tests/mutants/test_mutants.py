"""Planted faults can be planted: each changes a text that stands once in its module. `make mutants` plants them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mutants.faults import FAULTS, PlantedFault

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: PlantedFault) -> None:
    spec = importlib.util.find_spec(fault.module)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_text().count(fault.old) == 1
    for tests in fault.tests:
        assert (ROOT / tests).exists()
