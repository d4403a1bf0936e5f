"""DataFrames of Spark Connect: frames that stand for relations, and the same DataFrame over other rows.

A Connect session's DataFrame is a message, a tree of relations; other rows take the place of a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from everview.frontends.catalyst import MARK

if TYPE_CHECKING:
    import pyspark.sql.types as st
    from pyspark.sql import DataFrame, SparkSession

_ALIAS = "subquery_alias"


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


def _standing(message: Any) -> Iterator[tuple[Any, str]]:
    """The aliases in a message that stand for relations, with the relations' names."""
    if message.DESCRIPTOR.name == "Relation" and message.HasField(_ALIAS):
        alias = str(message.subquery_alias.alias)
        if alias.startswith(MARK):
            yield message.subquery_alias, alias.removeprefix(MARK)
            return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            inner = value.values() if field.message_type.fields_by_name["value"].message_type is not None else ()
        else:
            inner = value if not hasattr(value, "DESCRIPTOR") else (value,)
        for part in inner:
            yield from _standing(part)
