"""Feeds: sources whose position the state keeps; new rows come as batch frames.

A feed is no stream of Spark's. It is asked what is new after the position that the state has, and the commit of the
epoch that reads it notes the new position: nothing is read twice and nothing is left out, whatever dies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

import pyspark.sql.functions as F

from everview.types import unknown_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

OP: Final = "_change_type"  # columns that a feed of changes has beside those of the row, under Iceberg's names
ORDINAL: Final = "_change_ordinal"
WEIGHT: Final = "_weight"
INSERT, DELETE = "INSERT", "DELETE"


class NewChanges(NamedTuple):
    """What is new in a feed, up to a position; ``more`` epochs will take in the rest of what is there now."""

    frame: DataFrame
    position: Any  # as JSON has it
    more: int = 0


class PositionedSource(Protocol):
    """A source whose position the state keeps."""

    pause: ClassVar[float]  # the fewest seconds between two looks

    def since(self, spark: SparkSession, last: Any) -> NewChanges | None:
        """What is new after a position, or all there is if there is none; None if nothing has happened."""
        ...

    def close(self) -> None:
        """Let go of what was opened to look."""
        ...


class LakeFeed:
    """The common part of feeds of tables: rows as changes; with a key, the last thing done to each key."""

    __slots__ = ()
    pause: ClassVar[float] = 1.0  # a look is a job of Spark
    corrupt: ClassVar[None] = None
    beside: ClassVar[tuple[str, ...]] = (OP, ORDINAL)  # columns that are not of the row
    columns: tuple[str, ...] | None  # those that are taken; all if None
    key: tuple[str, ...]

    def close(self) -> None:
        """Do nothing: looking at a table opens nothing that stays."""

    def _style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """How rows are changes: with a key, what was done to it last; without one, rows with weights."""
        if not self.key:
            return dict(said) | {"changes": "weights", "weight": WEIGHT}
        return dict(said) | {"op": OP, "order": ORDINAL}

    def _as_new(self, rows: DataFrame) -> DataFrame:
        """All rows as what they are at the beginning: new."""
        if not self.key:
            return rows.withColumn(WEIGHT, one())
        return rows.withColumns({OP: F.lit(INSERT), ORDINAL: F.lit(0)})

    def _taken(self, names: list[str]) -> list[str]:
        """The columns to take from a table: the ones asked for and the key's, or all."""
        for name in self.columns or ():
            if name not in names:
                raise unknown_name("column", name, names)
        return names if self.columns is None else [name for name in names if name in {*self.columns, *self.key}]


def operations(rows: DataFrame, names: list[str], new: Column, order: Column) -> DataFrame:
    """Rows as what was done to their keys: insert or delete, by an order in which deletes come before inserts."""
    op = F.when(new, INSERT).otherwise(DELETE)
    return rows.select(*map(named_column, names), op.alias(OP), (order + new.cast("int")).alias(ORDINAL))


def weight_of(new: Column) -> Column:
    """The weight of a row that came, or that went."""
    return F.when(new, one()).otherwise(-one())


def one() -> Column:
    """The weight of a row that is there once."""
    return F.lit(1).cast("bigint")


def named_column(name: str) -> Column:
    """A column by its name, whatever characters it has."""
    return F.col("`" + name.replace("`", "``") + "`")
