"""Helpers, which are compiled as part of kernels, can be called from Python, too."""

from __future__ import annotations

from everview.kernels.jit import i64, inline, kernel


@inline
def doubled(number: int) -> int:
    return 2 * number


@kernel(i64, i64)
def doubled_and_one(number: int) -> int:
    return doubled(number) + 1


def test_a_helper_is_called_by_python_and_by_kernels() -> None:
    assert (doubled(3), doubled_and_one(3), doubled(4)) == (6, 7, 8)
