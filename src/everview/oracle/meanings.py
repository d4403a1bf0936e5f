"""The meaning of each query operator: a line in one table, from whole Z-sets of plain rows to one.

Nothing here shares code with the operators; their classes are read as data only. Operators over changes have no line:
each computes the change of another operator's result. An aggregate has none, since its meaning is a function of the
rows before they are weighed (see `streams`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from everview.operators.announce import Announce
from everview.operators.asof import Asof
from everview.operators.bags import Bags
from everview.operators.constant import Unit, Written
from everview.operators.distinct import Distinct
from everview.operators.due import Due
from everview.operators.exchange import Exchange
from everview.operators.explode import Explode
from everview.operators.functions import Function
from everview.operators.index import Index
from everview.operators.join import JoinStream
from everview.operators.linear import (
    Filter,
    FlatMap,
    Inspect,
    Map,
    Matching,
    Minus,
    Negate,
    NotNull,
    Plus,
    Project,
    Recode,
)
from everview.operators.multijoin import Multijoin
from everview.operators.operator import Operator
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.semijoin import Semijoin
from everview.operators.top import Top
from everview.operators.where import Where
from everview.operators.window import Window
from everview.oracle.asof import in_force
from everview.oracle.calls import called
from everview.oracle.relations import compared, first, joined, joined_all, matching, passing, projected, semijoined
from everview.oracle.rows import Row, Rows
from everview.oracle.windows import windowed

Inputs = tuple[Rows, ...]
Functions = Mapping[str, Function]
Meaning = Callable[[Any, Inputs, Functions], Rows]


def _called(operator: Map | Filter | FlatMap, inputs: Inputs, functions: Functions) -> Rows:
    return called(operator, functions[operator.function], inputs[0])


def _projected(operator: Project | Index | Pad, inputs: Inputs, functions: Functions) -> Rows:
    return projected(inputs[0], operator.fields, len(operator.source.schema))


def _same(operator: Operator, inputs: Inputs, functions: Functions) -> Rows:
    return inputs[0]


def _not_null(operator: NotNull, inputs: Inputs, functions: Functions) -> Rows:
    return Rows({row: w for row, w in inputs[0] if row[operator.field] is not None})


def _present(operator: Present, inputs: Inputs, functions: Functions) -> Rows:
    return Rows({row: w for row, w in inputs[0] if all(row[f] is not None for f in operator.fields)})


def _exploded(operator: Explode, inputs: Inputs, functions: Functions) -> Rows:
    return Rows.of((image, w) for row, w in inputs[0] for image in _images(operator, row))


def _images(explode: Explode, row: Row) -> Iterator[Row]:
    """The rows that an `Explode` makes of one row."""
    kept, elements = tuple(row[f] for f in explode.keep), row[explode.array]
    for place, element in enumerate(elements or ()):
        yield (*kept, element) if explode.place is None else (*kept, place, element)
    if explode.outer and not elements:
        yield (*kept, None) if explode.place is None else (*kept, None, None)


def _negated(operator: Negate, inputs: Inputs, functions: Functions) -> Rows:
    return Rows.of((row, -w) for row, w in inputs[0])


def _added(operator: Plus, inputs: Inputs, functions: Functions) -> Rows:
    return Rows.of(entry for rows in inputs for entry in rows)


def _subtracted(operator: Minus, inputs: Inputs, functions: Functions) -> Rows:
    left, right = inputs
    return Rows.of(entry for rows in (left, ((row, -w) for row, w in right)) for entry in rows)


def _distinct(operator: Distinct, inputs: Inputs, functions: Functions) -> Rows:
    return Rows({row: 1 for row, w in inputs[0] if w > 0})


def _due(operator: Due, inputs: Inputs, functions: Functions) -> Rows:
    rows, clock = inputs
    now = max((time for (time,), w in clock if w > 0), default=None)
    return Rows({row: w for row, w in rows if now is not None and row[0] <= now})


def _unit(operator: Unit, inputs: Inputs, functions: Functions) -> Rows:
    return Rows({(True,): 1})


def _written(operator: Written, inputs: Inputs, functions: Functions) -> Rows:
    return Rows.inside(operator.schema, [(row, weight) for _, weight in inputs[0] for row in operator.rows])


def _by(meaning: Callable[..., Rows]) -> Meaning:
    """The meaning that calls a function with the operator and each input as an argument."""
    return lambda operator, inputs, functions: meaning(operator, *inputs)


MEANINGS: dict[type[Operator], Meaning] = {
    Map: _called,
    Filter: _called,
    FlatMap: _called,
    Project: _projected,
    Index: _projected,
    Pad: _projected,
    Recode: _same,
    Inspect: _same,
    Exchange: _same,
    Announce: _same,
    Due: _due,
    NotNull: _not_null,
    Present: _present,
    Matching: _by(matching),
    Where: _by(passing),
    Explode: _exploded,
    Negate: _negated,
    Plus: _added,
    Minus: _subtracted,
    JoinStream: _by(joined),
    Multijoin: lambda join, inputs, functions: joined_all(join, inputs),
    Semijoin: _by(semijoined),
    Asof: _by(in_force),
    Bags: _by(compared),
    Distinct: _distinct,
    Top: _by(first),
    Window: lambda window, inputs, functions: windowed(window, inputs[0], functions),
    Unit: _unit,
    Written: _written,
}
