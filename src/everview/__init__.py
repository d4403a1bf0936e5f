"""Everview: incremental views for Python and Spark.

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everview.circuit import Circuit, incrementalize
    from everview.circuit.bounds import LoopBounds
    from everview.database import Database, connect
    from everview.errors import EverviewError
    from everview.frontends.fluent import agg, and_, col, not_, or_
    from everview.frontends.frame import Window, functions
    from everview.frontends.sql.decorators import aggregate, function
    from everview.operators.functions import Function
    from everview.relational import Delta, Kernel
    from everview.runtimes.embedded import Embedded
    from everview.traces.store import Policy, Store
    from everview.types import Schema
    from everview.zset import IndexedZSet, ZSet
    from everview.zset.batch import Batch

__version__ = "0.1.0"

_HOMES = {
    "Batch": "everview.zset.batch",
    "Circuit": "everview.circuit",
    "Database": "everview.database",
    "Delta": "everview.relational",
    "Embedded": "everview.runtimes.embedded",
    "EverviewError": "everview.errors",
    "Function": "everview.operators.functions",
    "IndexedZSet": "everview.zset",
    "Kernel": "everview.relational",
    "LoopBounds": "everview.circuit.bounds",
    "Policy": "everview.traces.store",
    "Schema": "everview.types",
    "Store": "everview.traces.store",
    "Window": "everview.frontends.frame",
    "ZSet": "everview.zset",
    "agg": "everview.frontends.fluent",
    "aggregate": "everview.frontends.sql.decorators",
    "and_": "everview.frontends.fluent",
    "col": "everview.frontends.fluent",
    "connect": "everview.database",
    "function": "everview.frontends.sql.decorators",
    "functions": "everview.frontends.frame",
    "incrementalize": "everview.circuit",
    "load_ipython_extension": "everview.notebook",
    "not_": "everview.frontends.fluent",
    "or_": "everview.frontends.fluent",
}

__all__ = [
    "Batch",
    "Circuit",
    "Database",
    "Delta",
    "Embedded",
    "EverviewError",
    "Function",
    "IndexedZSet",
    "Kernel",
    "LoopBounds",
    "Policy",
    "Schema",
    "Store",
    "Window",
    "ZSet",
    "agg",
    "aggregate",
    "and_",
    "col",
    "connect",
    "function",
    "functions",
    "incrementalize",
    "not_",
    "or_",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'everview' has no attribute {name!r}")
    with _uncollected():
        return getattr(import_module(_HOMES[name]), name)


@contextmanager
def _uncollected() -> Generator[None]:
    """Imports without garbage collections: modules make many objects, and next to no garbage.

    Afterwards all objects count as old, or the next collection of young ones would look through everything imported.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # what a program has frozen stays so
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
