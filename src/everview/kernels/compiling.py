"""Compile kernels now, every one or some, instead of each when it is first called.

One process for each core takes kernel after kernel. Those that others are made of come first, so that the others find
them on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import nullcontext
from importlib import import_module
from multiprocessing import get_context
from pkgutil import iter_modules

from rich.console import Console

import everview.kernels
from everview.kernels.cached_code import modules_of
from everview.kernels.jit import CompiledKernel
from everview.kernels.progress import is_watched, progress


def kernels() -> dict[str, CompiledKernel]:
    """Every kernel of every module here, by the name of its module and its own."""
    found: dict[str, CompiledKernel] = {}
    for module in iter_modules(everview.kernels.__path__):
        if module.name != "__main__":
            members = vars(import_module(f"everview.kernels.{module.name}")).values()
            found |= {name_of(m): m for m in members if isinstance(m, CompiledKernel)}
    return found


def name_of(kernel: CompiledKernel) -> str:
    """Its module and its own name: `everview.kernels.weights:largest_weight`."""
    return f"{kernel.__wrapped__.__module__}:{kernel.__name__}"


def _begin() -> None:
    """Show no progress in this process: the process that shares out the work does."""
    progress.is_shown = False


def _compile(name: str) -> str:
    """Compile one kernel, in a process that has nothing else to do."""
    module, _, kernel = name.partition(":")
    _ = vars(import_module(module))[kernel].dispatcher
    return kernel


def _compile_all(names: list[str]) -> None:
    progress.about = len(names)
    status = Console(stderr=True).status(progress.text) if is_watched() else nullcontext()
    with get_context("spawn").Pool(os.cpu_count(), _begin) as pool, status as shown:
        for name in pool.imap_unordered(_compile, names):
            progress.begin(name)
            if shown is not None:
                shown.update(progress.text)


def compile_kernels(only: Collection[str] | None = None) -> int:
    """Compile what is not compiled yet, of all kernels or of some, and tell how many of these there are."""
    every = {name: kernel for name, kernel in kernels().items() if only is None or name in only}
    missing = [name for name, kernel in every.items() if not kernel.is_at_hand]
    missing.sort(key=lambda name: len(modules_of(name.partition(":")[0])))
    if missing:
        _compile_all(missing)
    return len(every)
