"""Orders of demands: sort keys of rows, and rows of which the input has a part of the order.

A node whose input gives rows in the order of the first demanded columns sorts only the runs in which these are equal.

>>> from everview.types import Schema
>>> key = sort_key(Schema.parse("a BIGINT, b STRING"), (Sort(0, descends=True, nulls_first=False), Sort(1)))
>>> sorted([(1, "x"), (None, "y"), (2, "b"), (2, "a")], key=key)
[(2, 'a'), (2, 'b'), (1, 'x'), (None, 'y')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, takewhile
from typing import Any

from everview.orders import SortKey, row_key
from everview.runtimes.pull.demand import Among, Demand, Row, Sort
from everview.types import Schema


def sort_key(schema: Schema, order: Iterable[Sort]) -> SortKey:
    """The function from a row to a value that compares as the order does."""
    return row_key(schema, [(sort.column, sort.direction) for sort in order])


def place_key(schema: Schema, order: Iterable[Sort]) -> Callable[[Row], Any]:
    """`sort_key` of the ordered values alone, as `Demand.after` holds them."""
    sorts = tuple(order)
    fields = Schema(replace(schema.fields[s.column], name=f"c{place}") for place, s in enumerate(sorts))
    return sort_key(fields, (s.at(place) for place, s in enumerate(sorts)))


def coming_after(schema: Schema, order: Iterable[Sort], after: Row) -> Callable[[Row], bool]:
    """The test whether a row comes after a place; the place may hold NULLs that an outer join has padded."""
    sorts = tuple(order)
    padded = Schema(replace(f, nullable=True) for f in schema.fields)
    key, start = sort_key(padded, sorts), place_key(padded, sorts)(after)
    return lambda row: key(row) > start


# -- orders that come from below in part


def in_runs(rows: Iterable[Row], prefix: SortKey, full: SortKey) -> Iterator[Row]:
    """Sort rows by ``full``; they come sorted by ``prefix``, its beginning, so only equal runs are sorted."""
    run: list[Row] = []
    last: Any = None
    for row in rows:
        key = prefix(row)
        if run and key != last:
            yield from sorted(run, key=full) if len(run) > 1 else run
            run = []
        last = key
        run.append(row)
    yield from sorted(run, key=full) if len(run) > 1 else run


def through(
    demand: Demand, schema: Schema, place: Callable[[int], int | None], ask: Callable[[Demand], Iterable[Row]]
) -> Iterator[Row]:
    """The rows of a demand in order: the input sorts by the columns known there, and the rest is sorted here.

    ``place`` gives a column's place in the input, None if it is computed. ``ask`` gives rows of ``schema`` in the order
    of the input; its demand has nothing but ``order``, ``after``, ``limit`` and keys of the ordered columns.
    """
    order = demand.order
    known = list(takewhile(lambda s: place(s.column) is not None, order))
    count, whole = len(known), len(known) == len(order)
    below = tuple(s.at(_there(place(s.column))) for s in known)
    asked = Demand(order=below, near=demand.guess, keep=demand.keep)
    if whole:
        yield from ask(replace(asked, after=demand.after, limit=demand.limit))
        return
    full = sort_key(schema, order)
    if demand.after is None:
        yield from in_runs(ask(asked), sort_key(schema, known), full)
        return
    rows = ask(asked) if not count else _from(asked, demand.after[:count], ask)
    ordered = in_runs(rows, sort_key(schema, known), full)
    yield from filter(coming_after(schema, order, demand.after), ordered)


def _from(asked: Demand, start: Row, ask: Callable[[Demand], Iterable[Row]]) -> Iterator[Row]:
    """The rows from ``start`` on: first the rows at ``start``, then the rows after it."""
    same = Among(tuple(s.column for s in asked.order), frozenset({start}))
    demands = (ask(replace(d, near=d.near)) for d in (asked.and_among(same), replace(asked, after=start)))
    return chain.from_iterable(demands)


def _there(place: int | None) -> int:
    assert place is not None
    return place
