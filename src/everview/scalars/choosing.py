"""Functions that choose rows: CASE, IF, COALESCE, AND and OR evaluate a branch that may fail only on the rows that
reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadPattern
from everview.scalars.casts import safe
from everview.scalars.expressions import Call, Cast, Expression, LambdaCall, Literal, UserCall
from everview.scalars.functions import FAILING
from everview.scalars.functions.kernel import Value, assembled, is_scalar, truth
from everview.scalars.functions.patterns import like_regex
from everview.types import Type

Run = Callable[["ChosenRows"], Value]


class ChosenRows:
    """The rows on which expressions are evaluated, all or chosen ones; a column is filtered when it is first read."""

    __slots__ = ("_chosen", "_columns", "count", "memo")

    def __init__(self, columns: Sequence[Value], count: int | None, chosen: Value | None = None) -> None:
        self._columns = list(columns)
        self._chosen = chosen
        self.count = count  # None: no columns, everything is a scalar
        self.memo: dict[int, Value] = {}

    def column(self, index: int) -> Value:
        column = self._columns[index]
        if self._chosen is not None and len(column) != self.count:
            column = self._columns[index] = column.take(self._chosen)
        return column

    def choose(self, mask: Any) -> ChosenRows:
        chosen_rows = np.flatnonzero(mask)
        if len(chosen_rows) == self.count:
            return self
        # Columns that were chosen already are of this length; the others are chosen from the beginning.
        chosen = pa.array(chosen_rows)
        base = [self.column(i) for i in range(len(self._columns))] if self._chosen is not None else self._columns
        return ChosenRows(base, len(chosen_rows), chosen)

    def whole(self, value: Value) -> Value:
        return value if self.count is None or not is_scalar(value) else pa.repeat(value, self.count)


def fallible(expression: Expression) -> bool:
    """Whether evaluating an expression may raise."""
    match expression:
        case Cast(argument, type_, try_):
            return (not try_ and not safe(argument.type, type_)) or fallible(argument)
        case Call("like", (value, *pattern)) if _is_pattern(pattern):
            return fallible(value)
        case Call("from_json" | "from_csv", (_, _, _)):
            return True  # by the mode FAILFAST
        case Call(function, arguments):
            return function in FAILING or any(map(fallible, arguments))
        case UserCall():
            return True
        case LambdaCall():
            return any(map(fallible, expression.children))
        case _:
            return False


def _is_pattern(pattern: Sequence[Expression]) -> bool:
    """Whether the arguments are a literal LIKE pattern, and its escape if given, that cannot fail."""
    values = [part.value if isinstance(part, Literal) else None for part in pattern]
    if not all(isinstance(value, str) for value in values):
        return False
    try:
        like_regex(*([*values, "\\"][:2]))
    except BadPattern:
        return False
    return True


def _case(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
    out = type_.arrow
    if any(map(fallible, arguments[1:])):
        return lambda rows: _choose(rows, runs, out) if rows.count is not None else _choose_one(rows, runs)
    return lambda rows: _choose_all(rows, runs) if rows.count is not None else _choose_one(rows, runs)


def _choose_one(rows: ChosenRows, runs: list[Run]) -> Value:
    """CASE without columns, where conditions are scalars."""
    for condition, value in zip(runs[:-1:2], runs[1::2], strict=True):
        if condition(rows).as_py():
            return value(rows)
    return runs[-1](rows)


def _choose_all(rows: ChosenRows, runs: list[Run]) -> Value:
    chosen = runs[-1](rows)
    for condition, value in zip(runs[-3::-2], runs[-2::-2], strict=True):
        test = condition(rows)
        if is_scalar(test):
            chosen = value(rows) if test.as_py() else chosen
            continue
        chosen = pc.if_else(test.fill_null(False) if test.null_count else test, value(rows), chosen)
    return chosen


def _choose(rows: ChosenRows, runs: list[Run], out: pa.DataType) -> Value:
    places, parts = [], []
    where = np.arange(rows.count or 0)
    for condition, value in zip(runs[:-1:2], runs[1::2], strict=True):
        mask = truth(rows.whole(condition(rows)))
        if mask.any():
            chosen = rows.choose(mask)
            parts.append(chosen.whole(value(chosen)))
            places.append(where[mask])
            rows, where = rows.choose(~mask), where[~mask]
        if not len(where):
            break
    if len(where) or not parts:
        parts.append(rows.whole(runs[-1](rows)))
        places.append(where)
    return parts[0] if len(parts) == 1 else assembled(parts, places, out)


def _coalesce(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
    out = type_.arrow
    lazy = any(map(fallible, arguments[1:]))

    def run(rows: ChosenRows) -> Value:
        if rows.count is None:
            return next((v for r in runs if (v := r(rows)).is_valid), pa.scalar(None, out))
        if not lazy:
            return pc.coalesce(*(rows.whole(r(rows)) for r in runs))
        values = rows.whole(runs[0](rows))
        for other in runs[1:]:
            if not values.null_count:
                break
            mask = values.is_null().to_numpy(zero_copy_only=False)
            chosen = rows.choose(mask)
            filled, places = chosen.whole(other(chosen)), [np.flatnonzero(~mask), np.flatnonzero(mask)]
            values = assembled([values.filter(pa.array(~mask)), filled], places, out)
        return values

    return run


def _joined(function: Callable[[Value, Value], Value], ends: bool) -> Callable[..., Run]:
    """The compiler of AND, which stops at false, or of OR, which stops at true; NULL stops neither."""

    def made(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
        lazy = [False, *map(fallible, arguments[1:])]

        def run(rows: ChosenRows) -> Value:
            verdict = runs[0](rows)
            for other, careful in zip(runs[1:], lazy[1:], strict=True):
                if is_scalar(verdict):
                    if verdict.as_py() is ends:
                        return verdict
                    verdict = function(verdict, other(rows))
                elif not careful:
                    verdict = function(verdict, other(rows))
                else:
                    verdict = _where_open(rows, verdict, other)
            return verdict

        return run

    def _where_open(rows: ChosenRows, verdict: Value, other: Run) -> Value:
        opened = truth(pc.not_equal(verdict, pa.scalar(ends)).fill_null(True))
        if not opened.any():
            return verdict
        chosen = rows.choose(opened)
        if chosen is rows:
            return function(verdict, other(rows))
        mask = pa.array(opened)
        met = function(verdict.filter(mask), chosen.whole(other(chosen)))
        return pc.replace_with_mask(verdict, mask, met)

    return made


CHOOSING: Final[dict[str, Callable[..., Run]]] = {
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "and": _joined(pc.and_kleene, ends=False),
    "or": _joined(pc.or_kleene, ends=True),
}
