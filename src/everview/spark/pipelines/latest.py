"""The latest rows of changes: the query behind a flow of change data into a table with a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PLACE: Final = "_everview_place"  # of a change among those of its key, the last one first


def latest_rows(
    source: str,
    keys: Sequence[str | Column],
    sequence_by: str | Column,
    deletes: str | Column | None,
    columns: Sequence[str | Column] | None,
    without: Sequence[str | Column] | None,
) -> Callable[[], DataFrame]:
    """A query of a dataset of changes: of each key the row of the last change, unless that was a deletion."""

    def query() -> DataFrame:
        from pyspark.sql import SparkSession, Window
        from pyspark.sql import functions as f

        changes = SparkSession.active().read.table(source)
        last_first = Window.partitionBy(*map(_column, keys)).orderBy(_expression(sequence_by).desc())
        ranked = changes.withColumn(_PLACE, f.row_number().over(last_first)).filter(f.col(_PLACE) == 1)
        if deletes is not None:
            ranked = ranked.filter(~f.coalesce(_expression(deletes), f.lit(False)))
        if columns:
            return ranked.select(*map(_column, columns))
        return ranked.drop(_PLACE, *map(_column, without or ()))

    return query


def _column(name: str | Column) -> Column:
    from pyspark.sql import functions as f

    return f.col(name) if isinstance(name, str) else name


def _expression(written: str | Column) -> Column:
    from pyspark.sql import functions as f

    return f.expr(written) if isinstance(written, str) else written
