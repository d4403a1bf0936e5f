"""DataFrames of Spark Connect: frames that stand for relations, and the same DataFrame over other rows.

A Connect session's DataFrame is a message, a tree of relations; other rows take the place of a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from everview.frontends.catalyst import MARK

if TYPE_CHECKING:
    import pyspark.sql.types as st
    from pyspark.sql import DataFrame, SparkSession

_ALIAS = "subquery_alias"
# Files that a frame reads: their format, the reader's options, and what has the names of columns in lower case.
Read: TypeAlias = tuple[str, Mapping[str, str], Callable[[], Container[str]]]


def standing_rows(spark: SparkSession, name: str, fields: st.StructType, refuse: Callable[[str], Any]) -> DataFrame:
    """A DataFrame with some columns, of which an action calls ``refuse`` with a name."""
    return spark.range(1).mapInArrow(partial(_refused, refuse, name), fields)


def _refused(refuse: Callable[[str], Any], name: str, _: Iterator[Any]) -> Iterator[Any]:
    refuse(name)
    yield from ()


def substituted_message(frame: Any, relation: Callable[[str], Any]) -> DataFrame:
    """The DataFrame with real rows in place of standing frames, for Spark to compute."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import LogicalPlan

    class Message(LogicalPlan):
        """A plan that is a message already."""

        def __init__(self, message: Any) -> None:
            super().__init__(None)
            self._message, self._root_plan_id = message, message.common.plan_id

        def plan(self, session: Any) -> Any:
            return self._message

    session = frame.sparkSession
    message = frame._plan.plan(session.client)
    for standing, name in _standing(message):
        standing.input.CopyFrom(relation(name)._plan.plan(session.client))
    made: Any = DataFrame(Message(message), session)
    return made


def read_by_message(frame: Any) -> Iterator[Read]:
    """The formats of a frame's files, the options of their readers, and a text that names their columns."""
    for read in _reads(frame._plan.plan(frame.sparkSession.client)):
        options = {str(name).lower(): str(value) for name, value in read.options.items()}
        written = str(read.schema)
        yield str(read.format), options, lambda written=written: (written or " ".join(frame.columns)).lower()


def _reads(message: Any) -> Iterator[Any]:
    """The sources of files that are read in a message."""
    if message.DESCRIPTOR.name == "Read" and message.HasField("data_source"):
        if message.data_source.paths or "path" in message.data_source.options:
            yield message.data_source
        return
    for part in _parts(message):
        yield from _reads(part)


def _standing(message: Any) -> Iterator[tuple[Any, str]]:
    """The aliases in a message that stand for relations, with the relations' names."""
    if message.DESCRIPTOR.name == "Relation" and message.HasField(_ALIAS):
        alias = str(message.subquery_alias.alias)
        if alias.startswith(MARK):
            yield message.subquery_alias, alias.removeprefix(MARK)
            return
    for part in _parts(message):
        yield from _standing(part)


def _parts(message: Any) -> Iterator[Any]:
    """The messages that a message consists of."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            yield from value.values() if field.message_type.fields_by_name["value"].message_type is not None else ()
        else:
            yield from value if not hasattr(value, "DESCRIPTOR") else (value,)
