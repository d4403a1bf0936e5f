"""Rows as the frames of other libraries: Arrow, pandas and Polars, and whatever reads Arrow's C stream.

A class that can give its rows as an Arrow table is given all other forms here, so that they agree: a TIMESTAMP is a
moment with the zone UTC in each of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everview.errors import MissingRuntime

if TYPE_CHECKING:
    import pyarrow as pa


class AsFrames:
    """What has rows and gives them as frames; a subclass says how they become an Arrow table."""

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The rows of `to_arrow` as a pandas frame."""
        package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows of `to_arrow` as a Polars frame."""
        return package("polars").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows of `to_arrow` for other libraries: ``pl.DataFrame(view)``, ``pa.table(view)``, DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def package(name: str) -> Any:
    """An optional package; without it, an error says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingRuntime(f"{name} is not installed", hint=f"pip install {name}") from None
