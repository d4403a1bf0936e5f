"""Compile every kernel now, instead of each when it is first called: ``python -m everview.kernels``."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import everview.kernels
from everview.kernels.jit import CompiledKernel
from everview.kernels.progress import progress


def kernels() -> list[CompiledKernel]:
    """Every kernel of every module here, once."""
    found: dict[int, CompiledKernel] = {}
    for module in iter_modules(everview.kernels.__path__):
        if module.name != "__main__":
            members = vars(import_module(f"everview.kernels.{module.name}")).values()
            found |= {id(m): m for m in members if isinstance(m, CompiledKernel)}
    return list(found.values())


def main() -> None:
    every = kernels()
    progress.about = len(every)
    for kernel in every:
        _ = kernel.dispatcher
    sys.stderr.write(f"{len(every)} kernels are compiled\n")


if __name__ == "__main__":
    main()
