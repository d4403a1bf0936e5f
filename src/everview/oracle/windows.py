"""The meaning of window functions: the results for the rows of a partition, given in order."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from everview.operators.aggregate.call import ADDED_UP
from everview.operators.aggregate.registry import plan_name
from everview.operators.functions import Function
from everview.operators.index import Direction
from everview.operators.window import AggregateOver, FramedOver, Over, Window
from everview.oracle.aggregates import result
from everview.oracle.calls_of_plans import called, constant
from everview.oracle.rows import Entry, Row, Rows
from everview.oracle.values import in_order
from everview.scalars.expressions import (
    AggregateCall,
    AggregateWindowCall,
    Column,
    ExcludingFrame,
    Expression,
    Frame,
    Literal,
    WindowCall,
)
from everview.scalars.kinds import INTERVALS, YEAR_MONTH
from everview.types import BOOLEAN, INTEGER, TIME, Schema

Functions = Mapping[str, Function]
EPOCH = dt.date(1970, 1, 1).toordinal()


def windowed(window: Window, rows: Rows, functions: Functions) -> Rows:
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
        results = [_results(call, schema, peers, ordered, functions) for call in window.calls]
        results_of_rows += [((*row, *(result[place] for result in results)), 1) for place, row in enumerate(ordered)]
    return Rows.of(results_of_rows)


def _results(over: Over, schema: Schema, peers: Sequence[Row], rows: Sequence[Row], functions: Functions) -> list[Any]:
    """The results of one call for the rows of a partition."""
    frames = [_frame_by_fields(over, place, peers, rows) for place in range(len(rows))]
    if isinstance(over, AggregateOver):
        return [result(over.call, schema, [(rows[i], 1) for i in frame], functions) for frame in frames]
    call = _call_of(over, schema)
    given = [tuple(row[a.index] if isinstance(a, Column) else constant(a) for a in call.arguments) for row in rows]
    passes_null = over.skips and over.function in ("lag", "lead", "nth_value")
    kept = [not passes_null or row[over.fields[0]] is not None for row in rows]
    return framed(call, peers, given, kept, frames)


def _call_of(over: Over, schema: Schema) -> WindowCall:
    """The call of a plan that a circuit's window function computes."""
    columns: list[Expression] = [Column(field, "", schema.fields[field].type) for field in over.fields]
    match over.function:
        case "lag" | "lead" | "nth_value" | "session start" | "session last":
            arguments = [columns[0], Literal(over.number, INTEGER), *columns[1:]]
        case "ntile":
            arguments = [Literal(over.number, INTEGER)]
        case "first_value" | "last_value":
            arguments = [columns[0], Literal(over.skips, BOOLEAN)]
        case _:
            arguments = columns
    named = plan_name(over.function) if over.function in ADDED_UP else over.function
    frame = Frame("rows" if over.unit == "rows" else "range", over.start, over.end)
    return WindowCall(named, tuple(arguments), (), (), frame, over.result.type, True)


def _frame_by_fields(over: Over, place: int, peers: Sequence[Row], rows: Sequence[Row]) -> list[int]:
    """The rows in the frame of a row, whose reach other fields may tell."""
    if not isinstance(over, FramedOver):
        return _frame(over.unit, over.start, over.end, place, peers)
    if over.key < 0:
        frame = _frame(over.unit, over.start, over.end, place, peers)
    else:
        same = [i for i in range(len(rows)) if peers[i] == peers[place]]
        frame = [i for i, other in enumerate(rows) if _reaches(over, rows[place], other, i, same)]
    return _without(frame, over.exclude, place, peers)


def _reaches(over: FramedOver, row: Row, other: Row, place: int, same: Sequence[int]) -> bool:
    """Whether a row is neither before the frame nor behind it."""
    if row[over.key] is None:
        return (over.start is None or place >= same[0]) and (over.end is None or place <= same[-1])
    if other[over.key] is None:  # at one end: it is reached where the frame is unbounded on that side
        return (over.start is None and place < same[0]) or (over.end is None and place > same[-1])
    at = _sortable(other[over.key], over.descending)

    def edge(field: int, distance: int | None, last: bool) -> bool:
        if distance is None:
            return True
        if field < 0:
            return place <= same[-1] if last else place >= same[0]
        if row[field] is None:  # beyond all values
            return (distance > 0) == last
        bound = _sortable(row[field], over.descending)
        return at <= bound if last else at >= bound

    return edge(over.low, over.start, False) and edge(over.high, over.end, True)


def _sortable(value: Any, descending: bool) -> tuple[Any, ...]:
    """A number or a moment as it is compared: NaN is above all numbers."""
    if isinstance(value, float) and value != value:
        return (-1 if descending else 1, 0)
    value = _micros(value) if isinstance(value, dt.date) else value
    return (0, -value if descending else value)


def _micros(value: dt.date) -> int:
    """Microseconds since 1970, as a timestamp is in rows."""
    clock = value.time() if isinstance(value, dt.datetime) else dt.time()
    seconds = (value.toordinal() - EPOCH) * 86_400 + clock.hour * 3_600 + clock.minute * 60 + clock.second
    return seconds * 1_000_000 + clock.microsecond


def framed(
    call: WindowCall,
    keys: Sequence[Row],
    arguments: Sequence[Row],
    kept: Sequence[bool],
    frames: Sequence[Sequence[int]] | None = None,
) -> list[Any]:
    """The results of a window function for all rows of a partition, in order.

    ``keys`` are the sort keys of the rows: rows with equal keys are peers. ``kept`` says which a filter keeps.
    """
    if frames is None:
        frames = [_frame_of_call(call, place, keys) for place in range(len(keys))]
    return [_at(call, place, keys, arguments, kept, frames[place]) for place in range(len(keys))]


def _at(
    call: WindowCall,
    place: int,
    keys: Sequence[Row],
    arguments: Sequence[Row],
    kept: Sequence[bool],
    frame: Sequence[int],
) -> Any:
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
            return _shifted(call, place, arguments, kept)
        case "session start" | "session last":
            return _edge_of_session(call, place, arguments)
        case _:
            return _over(call, [arguments[i] for i in frame if kept[i]])


def _tile(place: int, n: int, tiles: int) -> int:
    """The bucket of a row: rows are dealt to buckets in order, the first buckets one larger."""
    size, larger = divmod(n, tiles)
    edge = larger * (size + 1)
    return place // (size + 1) + 1 if place < edge else larger + (place - edge) // size + 1


def _shifted(call: WindowCall, number: int, arguments: Sequence[Row], kept: Sequence[bool]) -> Any:
    by = constant(call.arguments[1]) if len(call.arguments) > 1 else 1
    by = -by if call.function == "lag" else by
    if by == 0:
        return arguments[number][0]
    rows = [i for i in range(len(arguments)) if kept[i] and (i > number if by > 0 else i < number)]
    if abs(by) <= len(rows):
        return arguments[rows[by - 1] if by > 0 else rows[by]][0]
    return arguments[number][2] if len(call.arguments) > 2 else None


def _edge_of_session(call: WindowCall, place: int, arguments: Sequence[Row]) -> Any:
    """The first or last moment that is reached from a row by steps to the next row, none longer than the gap."""
    gap, step = constant(call.arguments[1]), -1 if call.function == "session start" else 1
    while 0 <= place + step < len(arguments) and _apart(arguments[place][0], arguments[place + step][0]) <= gap:
        place += step
    return arguments[place][0]


def _apart(one: Any, other: Any) -> int:
    """Microseconds between two moments."""
    return abs(_since_1970(one) - _since_1970(other))


def _since_1970(moment: Any) -> int:
    return _micros(moment) if isinstance(moment, dt.date) else moment


def _over(call: WindowCall, rows: list[Row]) -> Any:
    """The result of a function over the rows in the frame, which hold its arguments and then its own order's keys."""
    match call.function:
        case "first" | "last" if isinstance(call, AggregateWindowCall):
            made = AggregateCall(call.function, call.arguments, False, None, call.inner, call.type, call.nullable)
            return called(made, [(row, 1) for row in rows])
        case "first_value" | "first" | "any_value":
            return _nth(call, rows, 0, 1)
        case "last_value" | "last":
            return _nth(call, rows, -1, 1)
        case "nth_value":
            return _nth(call, rows, constant(call.arguments[1]) - 1, 2)
        case _:
            distinct, inner = (call.distinct, call.inner) if isinstance(call, AggregateWindowCall) else (False, ())
            made = AggregateCall(call.function, call.arguments, distinct, None, inner, call.type, call.nullable)
            return called(made, [(row, 1) for row in rows])


def _nth(call: WindowCall, rows: list[Row], place: int, flag: int) -> Any:
    if len(call.arguments) > flag and constant(call.arguments[flag]):
        rows = [row for row in rows if row[0] is not None]
    return rows[place][0] if -1 <= place < len(rows) and rows else None


def _frame_of_call(call: WindowCall, place: int, keys: Sequence[Row]) -> list[int]:
    """The rows in the frame of a row."""
    if call.frame is None:
        return _frame("range", None, 0 if call.order else None, place, keys)
    unit, start, end = call.frame.unit, call.frame.start, call.frame.end
    if unit == "range" and not (start in (None, 0) and end in (None, 0)):
        by, way = call.order[0]
        near: Sequence[Row] = keys
        if by.type == TIME or by.type in INTERVALS:  # which are numbers, of what distances are numbers of, too
            start, end = (edge.value if isinstance(edge, Literal) else edge for edge in (start, end))
            near = [(_since_midnight(key) if isinstance(key, dt.time) else key,) for (key,) in keys]
        frame = _range(start, end, place, near, descending=way.lower().startswith("desc"))
    else:
        frame = _frame(unit, start, end, place, keys)
    return _without(frame, call.frame.exclude if isinstance(call.frame, ExcludingFrame) else "", place, keys)


def _frame(unit: str, start: Any, end: Any, place: int, keys: Sequence[Row]) -> list[int]:
    """The rows in a frame of rows, of groups of peers, or of a range between the current row and the ends."""
    n = len(keys)
    if unit == "rows":
        numbers = list(range(n))
    else:
        numbers = list(accumulate((i > 0 and keys[i] != keys[i - 1] for i in range(n)), initial=0))[1:]
    number = numbers[place]
    return [
        i
        for i in range(n)
        if (start is None or numbers[i] >= number + start) and (end is None or numbers[i] <= number + end)
    ]


def _range(start: Any, end: Any, place: int, keys: Sequence[Row], *, descending: bool) -> list[int]:
    """The rows in a frame of a range by distance: those whose keys are near enough; NULL is near NULL alone."""
    (key,) = keys[place]
    if key is None:
        return _frame("range", None if start is None else 0, None if end is None else 0, place, keys)
    rows: list[int] = []
    for i, (other,) in enumerate(keys):
        if other is None:
            inside = (start is None and i < place) or (end is None and i > place)
        else:
            at = _sortable(other, descending)
            low = start is None or at >= _sortable(_away(key, start, descending), descending)
            inside = low and (end is None or at <= _sortable(_away(key, end, descending), descending))
        rows += [i] if inside else []
    return rows


def _since_midnight(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def _away(key: Any, distance: Any, descending: bool) -> Any:
    """The value so far from a key."""
    amount = distance.value if isinstance(distance, Literal) else distance
    amount = -amount if descending else amount
    if isinstance(distance, Literal) and distance.type == YEAR_MONTH:
        if not isinstance(key, dt.date):
            key = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=key)
        month = key.year * 12 + key.month - 1 + amount
        year, month = divmod(month, 12)
        return key.replace(year=year, month=month + 1, day=min(key.day, monthrange(year, month + 1)[1]))
    if isinstance(distance, Literal) and distance.type in INTERVALS:
        return (_micros(key) if isinstance(key, dt.date) else key) + amount
    if isinstance(key, dt.date):
        return key + dt.timedelta(days=amount)
    return key + (float(amount) if isinstance(key, float) else amount)


def _without(frame: list[int], exclude: str, place: int, keys: Sequence[Row]) -> list[int]:
    """The frame without the rows that EXCLUDE names."""
    if exclude == "current row":
        return [i for i in frame if i != place]
    if not exclude:
        return frame
    return [i for i in frame if keys[i] != keys[place] or (exclude == "ties" and i == place)]
