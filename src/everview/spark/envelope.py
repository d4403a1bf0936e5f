"""Debezium's envelope: events with a row before and a row after, as changes of a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.spark.shaping import (
    DELETES,
    INSERTS,
    UPDATES,
    Bad,
    RowColumns,
    Shape,
    column_of,
    either,
    shape,
    sortable,
    unknown_operation,
)
from everview.spark.spec import Columns, SourceSpec, columns_of, event_columns, inside, order_field
from everview.types import NULL_WORD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def shape_of_events(frame: DataFrame, spec: SourceSpec) -> Shape:
    """What makes changes of a frame of events: an event makes none (a tombstone), one, or two."""
    columns = columns_of(spec.name, frame.schema)
    beside = event_columns(columns, spec.envelope)
    sides = {side: _nullable(inside(beside[side].dataType)) for side in ("before", "after")}

    def event(name: str) -> Column:
        return column_of("payload").getField(name) if spec.envelope == "payload" else column_of(name)

    order, ordered = _event_order(spec, beside, sides, event)
    events = _keyed_events(spec, event) if spec.keyed else _weighed_events(event)
    rows = [
        F.when(when, _change(spec, sides, event, side, weight, deleted, problem))
        for when, side, weight, deleted, problem in events
    ]
    tombstone = event("op").isNull() & event("before").isNull() & event("after").isNull()
    if spec.corrupt is not None:
        tombstone = tombstone & column_of(spec.corrupt).isNull()
    parts = [
        F.struct(*map(column_of, columns)).alias("_original"),
        order.alias("_order"),
        F.explode(F.filter(F.array(*rows), lambda change: change.isNotNull())).alias("_change"),
    ]
    change = F.col("_change")
    corrupt = None if spec.corrupt is None else F.col("_original").getField(spec.corrupt)
    row = RowColumns(spec, sides["after"], lambda name: F.col("_change.row").getField(name), corrupt)
    problem = (change.getField("problem").isNotNull(), change.getField("problem"))
    place: tuple[Column, Sequence[Bad]] = (F.coalesce(F.col("_order"), F.lit(NULL_WORD)), ())
    if ordered:
        why = F.lit(f'NULL in "{spec.order}", by which changes are ordered')
        place = (F.col("_order"), ((F.col("_order").isNull(), why),))
    deleted = change.getField("deleted") if spec.keyed else None
    raw = F.to_json(F.col("_original"))
    changes = shape(row, deleted, change.getField("weight"), (problem,), place, raw, streaming=frame.isStreaming)
    return lambda events: changes(events.filter(~tombstone).select(*parts))


def _nullable(columns: Columns) -> Columns:
    """The columns with NULL allowed: what is NOT NULL in a row after may be missing in the row before."""
    return {name: st.StructField(name, f.dataType) for name, f in columns.items()}


Event = tuple["Column", str, int, bool, "Column"]  # when, which side, weight, deleted by key, what is wrong


def _keyed_events(spec: SourceSpec, event: Callable[[str], Column]) -> list[Event]:
    op, before, after = F.lower(F.trim(event("op"))), event("before"), event("after")
    put, delete = op.isin(*INSERTS, *UPDATES), op.isin(*DELETES)
    was = [before.getField(name) for name in spec.key]
    moved = reduce(either, (~a.eqNullSafe(after.getField(name)) for a, name in zip(was, spec.key, strict=True)))
    told = reduce(lambda a, b: a & b, (a.isNotNull() for a in was))
    fine = F.lit(None).cast("string")
    no_after = F.when(after.isNull(), "an operation without the row after it")
    no_key = F.when(before.isNull() | ~told, "a delete without the values of its key")
    return [
        (put & before.isNotNull() & after.isNotNull() & told & moved, "before", -1, True, fine),
        (put, "after", 1, False, no_after),
        (delete, "before", -1, True, no_key),
        (_meaningless(op), "after", 1, False, _no_operation(event("op"))),
    ]


def _weighed_events(event: Callable[[str], Column]) -> list[Event]:
    op, before, after = F.lower(F.trim(event("op"))), event("before"), event("after")
    insert, update, delete = op.isin(*INSERTS), op.isin(*UPDATES), op.isin(*DELETES)
    no_after = F.when(after.isNull(), "an operation without the row after it")
    no_before = F.when(before.isNull(), "an operation without the row before it, in a source without a key")
    return [
        (update | delete, "before", -1, False, no_before),
        (insert | update, "after", 1, False, no_after),
        (_meaningless(op), "after", 1, False, _no_operation(event("op"))),
    ]


def _meaningless(op: Column) -> Column:
    return op.isNull() | ~op.isin(*INSERTS, *UPDATES, *DELETES)


def _no_operation(op: Column) -> Column:
    truncated = F.lit("a table was truncated, which says nothing of the rows it had")
    return F.when(F.lower(op) == "t", truncated).otherwise(unknown_operation(op))


def _change(
    spec: SourceSpec,
    sides: dict[str, Columns],
    event: Callable[[str], Column],
    side: str,
    weight: int,
    deleted: bool,
    problem: Column,
) -> Column:
    """One change of an event: the row before or after, with the columns of the schema in the types of the row after."""
    parts = [
        (event(side).getField(name) if name in sides[side] else F.lit(None))
        .cast(sides["after"][name].dataType)
        .alias(name)
        for name in spec.schema.names
    ]
    return F.struct(
        F.struct(*parts).alias("row"),
        F.lit(weight).alias("weight"),
        F.lit(deleted).alias("deleted"),
        problem.alias("problem"),
    )


def _event_order(
    spec: SourceSpec, beside: Columns, columns: dict[str, Columns], event: Callable[[str], Column]
) -> tuple[Column, bool]:
    """The order of an event and whether a user chose it; else it is the time of the event, if there is one."""
    if not spec.keyed:
        return F.lit(0), False
    if spec.order is None:
        known = isinstance(beside["ts_ms"].dataType, st.LongType) if "ts_ms" in beside else False
        return (event("ts_ms") if known else F.lit(0)).cast("bigint"), False
    type_ = order_field(spec, beside, columns["after"]).dataType
    head, _, rest = spec.order.partition(".")
    if spec.order in beside:
        return sortable(event(spec.order), type_), True
    if rest and head in beside:
        return sortable(event(head).getField(rest), type_), True
    sides = [
        event(side).getField(spec.order).cast(type_) for side in ("after", "before") if spec.order in columns[side]
    ]
    return sortable(F.coalesce(*sides), type_), True
