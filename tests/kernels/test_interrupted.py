"""What a signal handler raises while a kernel runs comes out as itself, however often CPython has wrapped it."""

from __future__ import annotations

import pytest

from everview.kernels.jit import CompiledKernel


@pytest.mark.parametrize("wrapped", [1, 2, 3])
def test_the_first_cause_is_raised(wrapped: int) -> None:
    kernel = CompiledKernel(lambda: None, "void()")
    first = KeyboardInterrupt("the signal")

    def interrupted() -> None:
        error: BaseException = first
        for _ in range(wrapped):
            outer = SystemError("returned a result with an exception set")
            outer.__cause__ = error
            error = outer
        raise error

    kernel._call = interrupted  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(KeyboardInterrupt) as raised:
        kernel()
    assert raised.value is first


def test_an_error_of_the_interpreter_stays() -> None:
    kernel = CompiledKernel(lambda: None, "void()")

    def broken() -> None:
        raise SystemError("something else")

    kernel._call = broken  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SystemError, match="something else"):
        kernel()
