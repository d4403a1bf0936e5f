"""Comparisons, in which NaN equals itself and is greater than every number, and -0.0 is 0.0; text by UTF-8 bytes."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import (
    Kernel,
    Kind,
    Value,
    each_row,
    is_float,
    is_scalar,
    length,
    nan_free,
    whole,
)


def _compared(name: str) -> Kernel:
    plain = getattr(pc, name)

    def run(out: Kind, a: Value, b: Value) -> Any:
        if pa.types.is_null(a.type):
            return pa.nulls(length((a, b)), out)
        if pa.types.is_nested(a.type):
            return each_row(out, lambda x, y: None if x is None or y is None else _nested(name, x, y), a, b)
        if is_float(a.type) and not (nan_free(a) and nan_free(b)):
            return _WITH_NAN[name](a, b)
        return plain(a, b)

    return run


def _equal(a: Value, b: Value) -> Value:
    return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))


def _less(a: Value, b: Value) -> Value:
    return pc.or_(pc.less(a, b), pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b)))


_WITH_NAN: Final = {
    "equal": _equal,
    "not_equal": lambda a, b: pc.invert(_equal(a, b)),
    "less": _less,
    "greater": lambda a, b: _less(b, a),
    "less_equal": lambda a, b: pc.invert(_less(b, a)),
    "greater_equal": lambda a, b: pc.invert(_less(a, b)),
}


def order_key(value: Any) -> Any:
    """The sort key of a value inside arrays and structs: NULL first, NaN last, text by bytes."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(order_key(v) for v in value.values()))
    if isinstance(value, (list, tuple)):
        return (1, tuple(order_key(v) for v in value))
    if isinstance(value, float):
        return (1, value != value, 0.0 if value != value else value + 0.0)
    return (1, value.encode()) if isinstance(value, str) else (1, value)


def _nested(name: str, a: Any, b: Any) -> bool:
    x, y = order_key(a), order_key(b)
    return {
        "equal": x == y,
        "not_equal": x != y,
        "less": x < y,
        "less_equal": x <= y,
        "greater": x > y,
        "greater_equal": x >= y,
    }[name]


_EQUAL: Final = _compared("equal")


def _null_safe(out: Kind, a: Value, b: Value) -> Any:
    rows = length((a, b))
    same = whole(_EQUAL(out, a, b), rows).fill_null(False)
    return pc.or_(same, pc.and_(_is_null(a, rows), _is_null(b, rows)))


def _is_null(a: Value, rows: int) -> Value:
    return pa.repeat(pa.scalar(not a.is_valid), rows) if is_scalar(a) else pc.is_null(a)


def _in(out: Kind, value: Value, *chosen: Value) -> Any:
    """Whether a value is one of several; NULL if none equals it and one is NULL."""
    if all(map(is_scalar, chosen)) and not pa.types.is_nested(value.type) and not pa.types.is_null(value.type):
        return _in_constants(out, value, chosen)
    rows = length((value, *chosen))
    value = whole(value, rows)  # two constants would compare as one row, beside columns of many
    equal = _EQUAL(out, value, chosen[0])
    for one in chosen[1:]:
        equal = pc.or_kleene(equal, _EQUAL(out, value, one))
    return equal


def _in_constants(out: Kind, value: Value, chosen: tuple[Value, ...]) -> Any:
    if is_float(value.type):
        value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 becomes 0.0
        chosen = tuple(pc.add(c, pa.scalar(0.0, value.type)) for c in chosen)
    known = [c.as_py() for c in chosen if c.is_valid]
    if pa.types.is_timestamp(value.type):
        known_values = pa.array([c.value for c in chosen if c.is_valid], pa.int64()).cast(value.type)
    else:
        known_values = pa.array(known, value.type)
    equal = pc.is_in(value, value_set=known_values)
    some_null = len(known) < len(chosen)
    unknown = pc.is_null(value) if not some_null else pc.or_(pc.is_null(value), pc.invert(equal))
    return pc.if_else(unknown, pa.scalar(None, out), equal)


# Arrow has no kernel for these, or one that loses NaN.
_BY_COMPARISON: Final = (is_float, pa.types.is_boolean, pa.types.is_nested, pa.types.is_timestamp, pa.types.is_duration)


def _extreme(pick: Kernel, first_wins: str) -> Kernel:
    """The kernel of `greatest` or `least`, which ignore NULL."""
    compare = _compared(first_wins)

    def run(out: Kind, *arguments: Value) -> Any:
        if pa.types.is_null(out):
            return pa.nulls(length(arguments), out)
        if not any(test(out) for test in _BY_COMPARISON):
            return pick(*arguments, skip_nulls=True)
        rows = length(arguments)
        best = whole(arguments[0], rows)
        for other in (whole(a, rows) for a in arguments[1:]):
            better = compare(pa.bool_(), best, other).fill_null(True)
            both = pc.if_else(better, best, other)
            best = pc.coalesce(pc.if_else(pc.is_null(other), best, both), other)
        return best

    return run


KERNELS: Final[dict[str, Kernel]] = {
    **{name: _compared(name) for name in _WITH_NAN},
    "null_safe_equal": _null_safe,
    "in": _in,
    "greatest": _extreme(pc.max_element_wise, "greater_equal"),
    "least": _extreme(pc.min_element_wise, "less_equal"),
}
