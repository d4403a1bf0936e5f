"""Compile kernels now, every one or some, instead of each when it is first called.

One process for each core takes module after module, because the kernels of a module are made of the same helpers, which
each process compiles for itself. Modules that others are made of come first, so that the others find their kernels on
the disk.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import nullcontext
from importlib import import_module
from itertools import groupby
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


def _compile(names: list[str]) -> list[str]:
    """Compile the kernels of one module, in a process that has nothing else to do."""
    members = vars(import_module(_module_of(names[0])))
    kernels = [name.partition(":")[2] for name in names]
    for kernel in kernels:
        _ = members[kernel].dispatcher
    return kernels


def _module_of(name: str) -> str:
    return name.partition(":")[0]


def _compile_all(names: list[str]) -> None:
    work = [list(together) for _, together in groupby(names, _module_of)]
    progress.about = len(names)
    status = Console(stderr=True).status(progress.text) if is_watched() else nullcontext()
    with get_context("spawn").Pool(os.cpu_count(), _begin) as pool, status as shown:
        for kernels in pool.imap_unordered(_compile, work):
            for kernel in kernels:
                progress.begin(kernel)
            if shown is not None:
                shown.update(progress.text)


def compile_kernels(only: Collection[str] | None = None) -> int:
    """Compile what is not compiled yet, of all kernels or of some, and tell how many of these there are."""
    every = {name: kernel for name, kernel in kernels().items() if only is None or name in only}
    missing = [name for name, kernel in every.items() if not kernel.is_at_hand]
    missing.sort(key=lambda name: (len(modules_of(_module_of(name))), _module_of(name)))
    if missing:
        _compile_all(missing)
    return len(every)
