"""Compiling all kernels ahead of their first use."""

import pytest

from everview.kernels import compiling
from everview.kernels.common import COMMON
from everview.kernels.jit import CompiledKernel
from everview.kernels.progress import progress


def test_what_is_compiled_already_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledKernel, "is_at_hand", True)
    monkeypatch.setattr(compiling, "_compile_all", lambda names: pytest.fail(f"compiled again: {names}"))
    assert compiling.compile_kernels() == len(compiling.kernels()) > 100


def test_common_kernels_are_some_of_all() -> None:
    assert compiling.kernels().keys() > COMMON


def test_other_processes_compile_what_is_missing_and_this_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "everview.kernels.weights:largest_weight"
    monkeypatch.setattr(progress, "begin", (begun := list[str]()).append)
    monkeypatch.setattr(CompiledKernel, "is_at_hand", property(lambda self: compiling.name_of(self) != missing))
    compiling.compile_kernels()
    assert begun == ["largest_weight"]


def test_kernels_come_before_those_that_are_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledKernel, "is_at_hand", False)
    order = list[str]()
    monkeypatch.setattr(compiling, "_compile_all", order.extend)
    compiling.compile_kernels()
    assert sorted(order) == sorted(compiling.kernels())
    assert order.index("everview.kernels.weights:largest_weight") < order.index("everview.kernels.machine:run")
