"""The same program over PySpark's DataFrames and over frames of a database, with the rows of both compared."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pyarrow as pa

import everview as ev
from everview import Window, functions

Frames = Mapping[str, Any]
Program = Callable[[Frames], Any]


@contextmanager
def without_spark() -> Iterator[None]:
    """Let programs that import functions and windows of PySpark find those of frames."""
    module: Any = ModuleType("pyspark.sql")
    module.functions, module.Window = functions, Window
    before = sys.modules.get("pyspark.sql")
    sys.modules["pyspark.sql"] = module
    try:
        yield
    finally:
        sys.modules.pop("pyspark.sql")
        if before is not None:
            sys.modules["pyspark.sql"] = before


def database_of(tables: Mapping[str, pa.Table]) -> ev.Database:
    """A database that holds some tables."""
    db = ev.connect()
    for name, rows in tables.items():
        db.create_table(name, rows)
    return db


def counted(rows: list[Any]) -> Counter[str]:
    """Rows as texts, with how often each is there; floating point numbers to nine digits."""
    return Counter(repr(tuple(map(_plain, row))) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    if hasattr(value, "asDict"):  # a struct of Spark
        value = value.asDict()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
