"""The meaning of scalar expressions: row by row, with Python's numbers, dates and text, sharing no code with kernels.

Values are as views show them: a `datetime` in UTC for TIMESTAMP, a list for ARRAY, a dict for STRUCT, a `timedelta` for
an interval, of months their number.

>>> from everview.plan.typing import call, literal
>>> value_of(call("add", literal(1), literal(2)), ())
3
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key, partial, reduce
from itertools import zip_longest
from typing import Any, Final

from everview.errors import ArithmeticFailure, CastFailure, EverviewError
from everview.oracle import scalar_arrays
from everview.oracle.scalar_casts import NoValue, cast_value
from everview.oracle.scalar_csv import CSV
from everview.oracle.scalar_foreign import FOREIGN, TYPED
from everview.oracle.scalar_hashes import chained, murmur3, xxh64
from everview.oracle.scalar_json import JSON
from everview.oracle.scalar_maps import MAPS, applied, made
from everview.oracle.scalar_moments import MOMENTS
from everview.oracle.scalar_numbers import NUMBERS, plain
from everview.oracle.scalar_order import compare
from everview.oracle.scalar_parts import PARTS
from everview.oracle.scalar_printing import PRINTING
from everview.oracle.scalar_quantile_sketches import QUANTILE_SKETCHES
from everview.oracle.scalar_rule_terms import RULE_TERMS
from everview.oracle.scalar_sketches import SKETCHES
from everview.oracle.scalar_texts import TEXTS
from everview.oracle.scalar_times import TIMES
from everview.oracle.scalar_urls import parse_url
from everview.oracle.scalar_variants import SEES_NULL, VARIANTS
from everview.oracle.scalar_zones import ZONES
from everview.oracle.values import inward
from everview.scalars.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    LambdaCall,
    LambdaVariable,
    Literal,
    Now,
    UserCall,
    rewritten,
)
from everview.scalars.functions.user import registered
from everview.types import ANY, DATE, DURATIONS, TIMESTAMP_NTZ, VARIANT, Array, MapType, Struct, Type, Variant


def value_of(expression: Expression, row: Sequence[Any], now: dt.datetime | None = None) -> Any:
    """The expression's value for one row; None is NULL."""
    match expression:
        case Column(index):
            return row[index]
        case Literal(value, type_):
            return _outward(value, type_)
        case Now():
            moment = now or dt.datetime.now(dt.UTC)
            return moment.astimezone(dt.UTC).date() if expression.type == DATE else moment
        case Cast(argument, type_, try_):
            return _cast(value_of(argument, row, now), argument.type, type_, try_, expression)
        case UserCall(name, arguments):
            return _user(name, [value_of(a, row, now) for a in arguments], expression)
        case Call(function, arguments) if function in _CHOOSING:
            return _CHOOSING[function]([lambda a=a: value_of(a, row, now) for a in arguments])
        case Call():
            return _call(expression, [value_of(a, row, now) for a in expression.arguments])
        case LambdaCall():
            return _applied(expression, row, now)
        case _:
            raise AssertionError(expression)


def _applied(expression: LambdaCall, row: Sequence[Any], now: dt.datetime | None) -> Any:
    """A function of arrays, element by element; values stand in place of variables."""
    given = [value_of(argument, row, now) for argument in expression.arguments]

    def body(number: int, *values: Any) -> Any:
        variables = expression.variables[number]
        taken = {v.number: Literal(value, v.type) for v, value in zip(variables, values, strict=False)}

        def bound(e: Expression) -> Expression:
            return taken.get(e.number, e) if isinstance(e, LambdaVariable) else e

        return value_of(rewritten(expression.bodies[number], bound), row, now)

    if given[0] is None or (expression.function == "zip_with" and given[1] is None):
        return None
    match expression.function:
        case "transform" | "transform_i":
            return [body(0, *both) for both in zip(given[0], range(len(given[0])), strict=True)]
        case "filter" | "filter_i":
            return [x for i, x in enumerate(given[0]) if body(0, x, i) is True]
        case "exists" | "forall":
            verdicts, ends = [body(0, x) for x in given[0]], expression.function == "exists"
            return ends if ends in verdicts else None if None in verdicts else not ends
        case "zip_with":
            return [body(0, a, b) for a, b in zip_longest(*given)]
        case "aggregate":
            state = reduce(partial(body, 0), given[0], given[1])
            return body(1, state) if len(expression.bodies) > 1 else state
        case _:
            return _applied_to_maps(expression, given, body)


def _applied_to_maps(expression: LambdaCall, given: list[Any], body: Callable[..., Any]) -> Any:
    try:
        return applied(expression.function, given, [a.type for a in expression.arguments], body)
    except NoValue as none:
        raise ArithmeticFailure(f"{none} in {expression}", hint="the tick was not applied") from None


def _outward(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [_outward(v, type_.element) for v in value]
    if isinstance(type_, Struct) and not isinstance(value, dict):
        return {f.name: _outward(v, f.type) for f, v in zip(type_.fields, value, strict=True)}
    if isinstance(type_, MapType) and not isinstance(value, dict):
        return made([(_outward(k, type_.key), _outward(v, type_.value)) for k, v in value])
    if type_ == VARIANT and isinstance(value, bytes):
        return Variant(value)
    return dt.timedelta(microseconds=value) if type_ in DURATIONS and isinstance(value, int) else value


def _cast(value: Any, type_: Type, to: Type, try_: bool, expression: Expression) -> Any:
    try:
        return _outward(cast_value(value, type_, to), to)
    except NoValue:
        if try_:
            return None
        raise CastFailure(f"{value!r} in {expression}", hint="use try_cast") from None


def _user(name: str, values: list[Any], expression: UserCall) -> Any:
    import pyarrow as pa

    function = registered(name).function
    if function.shape == "rows":
        return function.call(*values)
    arrays = [pa.array([v], a.type.arrow) for v, a in zip(values, expression.arguments, strict=True)]
    results = function.call(*arrays)
    return (results[0] if isinstance(results, tuple) else results)[0].as_py()


def _call(expression: Call, values: list[Any]) -> Any:
    name, attempt = expression.function, False
    if name not in FUNCTIONS and name.startswith("try_"):
        name, attempt = name[4:], True
    function = FUNCTIONS[name]
    if name not in _SEES_NULL and any(v is None for v in values):
        return None
    types = [a.type for a in expression.arguments]
    try:
        value = function(expression.type, types, values)
    except NoValue as none:
        if attempt:
            return None
        raise _failure(name)(f"{none} in {expression}: {values!r}", hint="use the try_ function") from None
    if expression.type == TIMESTAMP_NTZ and value is not None:
        return value.replace(tzinfo=None)
    return _outward(value, expression.type) if expression.type in DURATIONS else value


def _raised(type_: Type, types: list[Type], values: list[Any]) -> None:
    if len(values) == 1 or values[0] is not True:
        raise NoValue(str(values[-1]))


def _is_one_row(count: int) -> bool:
    if count > 1:
        raise NoValue("a subquery that is used as a value gave several rows")
    return True


def _failure(name: str) -> type[EverviewError]:
    return CastFailure if name in ("to_date", "to_timestamp", "unix_timestamp", "make_date") else ArithmeticFailure


# -- what chooses: arguments are given as functions, called only when they are needed

Later = list[Callable[[], Any]]


def _case(branches: Later) -> Any:
    for place in range(0, len(branches) - 1, 2):
        if branches[place]():
            return branches[place + 1]()
    return branches[-1]()


def _coalesce(branches: Later) -> Any:
    for branch in branches:
        value = branch()
        if value is not None:
            return value
    return None


def _decided(by: bool, branches: Later) -> Any:
    """AND is decided by the first False, OR by the first True; else both are unknown if a branch is."""
    unknown = False
    for branch in branches:
        value = branch()
        if value is by:
            return by
        unknown = unknown or value is None
    return None if unknown else not by


_CHOOSING: Final[Mapping[str, Callable[[Later], Any]]] = {
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "and": partial(_decided, False),
    "or": partial(_decided, True),
}


# -- comparison


def _comparing(test: Callable[[int], bool]) -> Callable[..., Any]:
    return lambda type_, types, values: test(_compared(types, values))


def _null_safe(type_: Type, types: list[Type], values: list[Any]) -> bool:
    return _compared(types, values) == 0


def _compared(types: list[Type], values: list[Any]) -> int:
    """The order of two values; those of type ANY by their kinds first."""
    change = inward(ANY) if ANY in types and None not in values else None
    return compare(*(values if change is None else map(change, values)))


def _in(type_: Type, types: list[Type], values: list[Any]) -> bool | None:
    value, *chosen = values
    if value is None:
        return None
    if any(c is not None and compare(value, c) == 0 for c in chosen):
        return True
    return None if None in [None if c is None else 0 for c in chosen] else False


def _extreme(largest: bool) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> Any:
        known = [v for v in values if v is not None]
        if not known:
            return None
        return (max if largest else min)(known, key=cmp_to_key(compare))

    return run


# -- arrays


def _contains(type_: Type, types: list[Type], values: list[Any]) -> bool | None:
    array, value = values
    if any(v is not None and compare(v, value) == 0 for v in array):
        return True
    return None if any(v is None for v in array) else False


def _element_at(type_: Type, types: list[Type], values: list[Any]) -> Any:
    array, index = values
    if index == 0 or abs(index) > len(array):
        raise NoValue("the index is outside the array")
    return array[index - 1] if index > 0 else array[index]


def _try_element_at(type_: Type, types: list[Type], values: list[Any]) -> Any:
    array, index = values
    if index == 0:
        raise NoValue("0 is no index")
    return None if abs(index) > len(array) else _element_at(type_, types, values)


def _distinct(type_: Type, types: list[Type], values: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for item in values[0]:
        if not any(compare(item, other) == 0 for other in distinct):
            distinct.append(item)
    return distinct


def _flattened(type_: Type, types: list[Type], values: list[Any]) -> list[Any] | None:
    return None if any(part is None for part in values[0]) else [item for part in values[0] for item in part]


def _sorted(type_: Type, types: list[Type], values: list[Any]) -> list[Any]:
    array, *up = values
    return sorted(array, key=cmp_to_key(compare), reverse=up == [False])


def _of_array(largest: bool) -> Callable[..., Any]:
    chosen = _extreme(largest)
    return lambda type_, types, values: chosen(type_, types, values[0])


FUNCTIONS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "is_one_row": plain(_is_one_row),
    "assert_true": _raised,
    "raise_error": _raised,
    **NUMBERS,
    "equal": _comparing(lambda c: c == 0),
    "not_equal": _comparing(lambda c: c != 0),
    "less": _comparing(lambda c: c < 0),
    "less_equal": _comparing(lambda c: c <= 0),
    "greater": _comparing(lambda c: c > 0),
    "greater_equal": _comparing(lambda c: c >= 0),
    "null_safe_equal": _null_safe,
    "in": _in,
    "greatest": _extreme(largest=True),
    "least": _extreme(largest=False),
    "not": plain(lambda a: not a),
    "is_null": plain(lambda a: a is None),
    "is_not_null": plain(lambda a: a is not None),
    "is_nan": plain(lambda a: a is not None and a != a),
    "nanvl": lambda type_, types, values: values[1] if values[0] is not None and values[0] != values[0] else values[0],
    "array": lambda type_, types, values: list(values),
    "array_contains": _contains,
    "size": plain(len),
    "element_at": _element_at,
    "try_element_at": _try_element_at,
    "sort_array": _sorted,
    "array_distinct": _distinct,
    "flatten": _flattened,
    "array_min": _of_array(largest=False),
    "array_max": _of_array(largest=True),
    "get_field": plain(lambda value, name: value[name]),
    "named_struct": lambda type_, types, values: dict(zip(values[::2], values[1::2], strict=True)),
    "xxhash64": chained(xxh64, 64),
    "hash": chained(murmur3, 32),
    **{name: plain(function) for name, function in {**TEXTS, **PARTS, **ZONES, **RULE_TERMS}.items()},
    **{name: plain(function) for name, function in FOREIGN.items()},
    **TYPED,
    "parse_url": plain(parse_url),
    **PRINTING,
    **scalar_arrays.ARRAYS,
    **MAPS,
    **VARIANTS,
    **SKETCHES,
    **QUANTILE_SKETCHES,
    **CSV,
    **JSON,
    **{name: plain(function) for name, function in {**MOMENTS, **TIMES}.items()},
}
_SEES_NULL: Final = frozenset(
    {
        *("null_safe_equal", "in", "greatest", "least", "is_null", "is_not_null", "is_nan", "nanvl", "array"),
        *("named_struct", "map", "assert_true", "raise_error"),
        *("concat_ws", "locate", "xxhash64", "hash", "elt", "mask", "format_string"),
        *scalar_arrays.SEES_NULL,
        *SEES_NULL,
    }
)
