"""The trial of the longest properties: it runs every property until its time is over, and tells what fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torture.properties import run


def test_a_property_that_does_not_hold_is_a_fault_with_its_example() -> None:
    seen: list[int] = []

    @given(st.integers(0, 9))
    def holds(number: int) -> None:
        seen.append(number)

    @given(st.integers(0, 9))
    def small(number: int) -> None:
        assert number < 5

    outcome = run(0.0, 1, {"holding": holds})
    assert (seen != [], outcome.faults) == (True, [])
    (fault,) = run(0.0, 7, {"small": small}).faults
    assert fault.startswith("small, seed 7: AssertionError")
    assert "number=5" in fault
