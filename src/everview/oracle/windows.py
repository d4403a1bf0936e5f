"""The meaning of window functions: the results for the rows of a partition, given in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.operators.aggregate.call import ADDED_UP
from everview.operators.aggregate.registry import plan_name
from everview.operators.index import Direction
from everview.operators.window import Over, Window
from everview.oracle.calls_of_plans import called, constant
from everview.oracle.rows import Entry, Row, Rows
from everview.oracle.values import in_order
from everview.scalars.expressions import AggregateCall, Column, Expression, Frame, Literal, WindowCall
from everview.types import BOOLEAN, INTEGER, Schema


def windowed(window: Window, rows: Rows) -> Rows:
    """Every row of a stream beside the results of the calls, partition by partition."""
    schema, key = window.source.schema, window.source.key
    directions = dict(window.order)
    order = [
        (place, schema.fields[place].type, directions.get(place, Direction.ASC)) for place in range(key, len(schema))
    ]
    results_of_rows: list[Entry] = []
    for entries in rows.by(range(key)).values():
        ordered = [row for row, w in in_order([e for e in entries if e[1] > 0], order) for _ in range(w)]
        peers = [row[key : key + window.peers] for row in ordered]
        results = [_results(call, schema, peers, ordered) for call in window.calls]
        results_of_rows += [((*row, *(result[place] for result in results)), 1) for place, row in enumerate(ordered)]
    return Rows.of(results_of_rows)


def _results(over: Over, schema: Schema, peers: Sequence[Row], rows: Sequence[Row]) -> list[Any]:
    columns: list[Expression] = [Column(field, "", schema.fields[field].type) for field in over.fields]
    match over.function:
        case "lag" | "lead" | "nth_value":
            arguments = [columns[0], Literal(over.number, INTEGER), *columns[1:]]
        case "ntile":
            arguments = [Literal(over.number, INTEGER)]
        case "first_value" | "last_value":
            arguments = [columns[0], Literal(over.skips, BOOLEAN)]
        case _:
            arguments = columns
    named = plan_name(over.function) if over.function in ADDED_UP else over.function
    frame = Frame("rows" if over.unit == "rows" else "range", over.start, over.end)
    call = WindowCall(named, tuple(arguments), (), (), frame, over.result.type, True)
    given = [tuple(row[a.index] if isinstance(a, Column) else constant(a) for a in arguments) for row in rows]
    return framed(call, peers, given, [True] * len(rows))


def framed(call: WindowCall, keys: Sequence[Row], arguments: Sequence[Row], kept: Sequence[bool]) -> list[Any]:
    """The results of a window function for all rows of a partition, in order.

    ``keys`` are the sort keys of the rows: rows with equal keys are peers. ``kept`` says which a filter keeps.
    """
    return [_at(call, place, keys, arguments, kept) for place in range(len(keys))]


def _at(call: WindowCall, place: int, keys: Sequence[Row], arguments: Sequence[Row], kept: Sequence[bool]) -> Any:
    n, first = len(keys), keys.index(keys[place])
    last = max(i for i in range(n) if keys[i] == keys[place])
    match call.function:
        case "row_number":
            return place + 1
        case "rank":
            return first + 1
        case "dense_rank":
            return len({i: None for i in range(place + 1) if i == 0 or keys[i] != keys[i - 1]})
        case "percent_rank":
            return first / (n - 1) if n > 1 else 0.0
        case "cume_dist":
            return (last + 1) / n
        case "ntile":
            return _tile(place, n, constant(call.arguments[0]))
        case "lag" | "lead":
            return _shifted(call, place, arguments)
        case _:
            return _over(call, place, first, last, keys, arguments, kept)


def _tile(place: int, n: int, tiles: int) -> int:
    """The bucket of a row: rows are dealt to buckets in order, the first buckets one larger."""
    size, larger = divmod(n, tiles)
    edge = larger * (size + 1)
    return place // (size + 1) + 1 if place < edge else larger + (place - edge) // size + 1


def _shifted(call: WindowCall, number: int, arguments: Sequence[Row]) -> Any:
    by = constant(call.arguments[1]) if len(call.arguments) > 1 else 1
    place = number - by if call.function == "lag" else number + by
    if 0 <= place < len(arguments):
        return arguments[place][0]
    return arguments[number][2] if len(call.arguments) > 2 else None


def _over(
    call: WindowCall,
    place: int,
    first: int,
    last: int,
    keys: Sequence[Row],
    arguments: Sequence[Row],
    kept: Sequence[bool],
) -> Any:
    """The result of a function over the rows in the frame."""
    start, stop = _frame(call, place, first, last, len(keys))
    rows = [arguments[i] for i in range(start, stop) if kept[i]]
    match call.function:
        case "first_value" | "first" | "any_value":
            return _nth(call, rows, 0, 1)
        case "last_value" | "last":
            return _nth(call, rows, -1, 1)
        case "nth_value":
            return _nth(call, rows, constant(call.arguments[1]) - 1, 2)
        case _:
            made = AggregateCall(call.function, call.arguments, False, None, (), call.type, call.nullable)
            return called(made, [(row, 1) for row in rows])


def _nth(call: WindowCall, rows: list[Row], place: int, flag: int) -> Any:
    if len(call.arguments) > flag and constant(call.arguments[flag]):
        rows = [row for row in rows if row[0] is not None]
    return rows[place][0] if -1 <= place < len(rows) and rows else None


def _frame(call: WindowCall, place: int, first: int, last: int, n: int) -> tuple[int, int]:
    """The frame of a row: the first place, and the one after the last."""
    if call.frame is None:
        return (0, last + 1) if call.order else (0, n)
    unit, start, end = call.frame.unit, call.frame.start, call.frame.end
    if unit == "rows":
        low, high = 0 if start is None else place + start, n if end is None else place + end + 1
    else:
        assert start in (None, 0) and end in (None, 0), "a range by distance"
        low, high = 0 if start is None else first, n if end is None else last + 1
    return max(0, low), max(0, min(n, high))
