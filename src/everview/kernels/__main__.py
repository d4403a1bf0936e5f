"""Compile every kernel now, instead of each when it is first called: ``python -m everview.kernels``."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import everview.kernels
from everview.kernels.jit import CompiledKernel


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
    for i, kernel in enumerate(every, start=1):
        if sys.stderr.isatty():
            sys.stderr.write(f"\rcompiling kernels: {i} of {len(every)} ({kernel.__name__})".ljust(78))
        _ = kernel.dispatcher
    end = "\r" if sys.stderr.isatty() else ""
    sys.stderr.write(f"{end}{len(every)} kernels are compiled".ljust(78) + "\n")


if __name__ == "__main__":
    main()
