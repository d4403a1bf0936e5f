"""Aggregates that take a group's values as a list: arrays, texts, and a user's own function.

All groups are one Arrow list array, whose elements are the values of every group in order, so that no Python runs
for a row. A user's function gets one such array an argument and gives one value a group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes import decode, encode
from everview.codes.buffers import LARGEST, NO_OCTETS, Column, list_array
from everview.errors import WeightOverflow
from everview.kernels.places import totals
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.ordered import Ordered
from everview.operators.operator import Context
from everview.types import Array, Field, Schema
from everview.types.words import Matrix

TOO_LARGE = "more than 2 GiB of values"


def collected(call: Call, source: Schema, result: Field, ordered: Ordered, context: Context) -> Matrix:
    """The words of a call's results, one row a group."""
    lists = _lists(call, source, ordered, context)
    schema = Schema([result])
    match call.function:
        case "array":
            (results,) = lists
        case "string":
            results = _joined(call, lists[0])
        case _:
            table = pa.Table.from_arrays(lists, names=[source.names[field] for field in call.fields])
            (results,) = context.functions[call.user].columns(table, schema, context.check)
    return encode(schema, pa.Table.from_arrays([results], schema=schema.arrow), context.dictionary)


def _lists(call: Call, source: Schema, ordered: Ordered, context: Context) -> list[Column]:
    """A list a group, for every argument."""
    rows, starts = ordered.all_of(call)
    weights = np.ascontiguousarray(rows[:, -1])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(totals(weights, starts))])
    if offsets[-1] > LARGEST:
        raise _too_long(call, f"{offsets[-1]:,} values")
    places = np.repeat(np.arange(weights.size), weights)
    lists: list[Column] = []
    for number in call.fields:
        field = source.fields[number]
        column: Column = decode(Schema([field]), rows[:, ordered.lay.words[number]], context.dictionary).column(0)
        if column.num_chunks > 1:
            raise _too_long(call, TOO_LARGE)
        values = column.combine_chunks()
        if places.size > weights.size:
            values = _within_limits(call, pc.take, values, pa.array(places))
        lists.append(list_array(Array(field.type), offsets, values, NO_OCTETS))
    return lists


def _joined(call: Call, texts: Column) -> Column:
    """The texts of each group as one; of none, NULL."""
    texts_joined = _within_limits(call, pc.binary_join, texts, call.separator)
    lengths: Column = pc.list_value_length(texts)
    return pc.if_else(pc.greater(lengths, pa.scalar(0)), texts_joined, pa.scalar(None, pa.string()))


def _within_limits(call: Call, compute: Callable[..., Any], *arguments: Any) -> Column:
    """The result of Arrow; an error of ours if it is too large for a column."""
    try:
        return compute(*arguments)
    except pa.ArrowException as error:
        raise _too_long(call, TOO_LARGE) from error


def _too_long(call: Call, problem: str) -> WeightOverflow:
    name = call.user or call.function
    return WeightOverflow(f"{name} of a group would take {problem}", hint="group by more columns, or filter the rows")
