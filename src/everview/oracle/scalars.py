"""The meaning of scalar expressions: row by row, with Python's numbers, dates and text, sharing no code with kernels.

Values are as views show them: a `datetime` in UTC for TIMESTAMP, a list for ARRAY, a dict for STRUCT. An interval is a
number of months or of microseconds.

>>> from everview.plan.typing import call, literal
>>> value_of(call("add", literal(1), literal(2)), ())
3
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, Final

from everview.errors import ArithmeticFailure, CastFailure, EverviewError
from everview.oracle.scalar_casts import NoValue, cast_value, rounded_decimal
from everview.oracle.scalar_hashes import chained, murmur3, xxh64
from everview.oracle.scalar_moments import MOMENTS
from everview.oracle.scalar_texts import TEXTS
from everview.oracle.values import inward
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal, Now, UserCall
from everview.scalars.functions.user import registered
from everview.types import ANY, BIGINT, DATE, DOUBLE, FLOAT, INTEGER, SMALLINT, TINYINT, Array, Decimal, Struct, Type

BITS: Final[dict[Type, int]] = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64}


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
        case _:
            raise AssertionError(expression)


def _outward(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [_outward(v, type_.element) for v in value]
    if isinstance(type_, Struct) and not isinstance(value, dict):
        return {f.name: _outward(v, f.type) for f, v in zip(type_.fields, value, strict=True)}
    return value


def _cast(value: Any, type_: Type, to: Type, try_: bool, expression: Expression) -> Any:
    try:
        return cast_value(value, type_, to)
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
    return value


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


def _and(branches: Later) -> Any:
    unknown = False
    for branch in branches:
        value = branch()
        if value is False:
            return False
        unknown = unknown or value is None
    return None if unknown else True


def _or(branches: Later) -> Any:
    unknown = False
    for branch in branches:
        value = branch()
        if value is True:
            return True
        unknown = unknown or value is None
    return None if unknown else False


_CHOOSING: Final[Mapping[str, Callable[[Later], Any]]] = {
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "and": _and,
    "or": _or,
}


# -- numbers


def fit(type_: Type, exact: Any) -> Any:
    """An exact number as a value of a type; raises `NoValue` beyond its range."""
    if type_ in BITS:
        if not -(1 << (BITS[type_] - 1)) <= exact < 1 << (BITS[type_] - 1):
            raise NoValue("overflow")
        return int(exact)
    if isinstance(type_, Decimal):
        return rounded_decimal(exact, type_)
    return exact


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, decimal.Decimal) else value


def _arithmetic(type_: Type, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if type_ in (FLOAT, DOUBLE):
        return _single(type_, function(a, b))
    return fit(type_, function(_exact(a), _exact(b)))


def _single(type_: Type, value: float) -> float:
    if type_ != FLOAT:
        return value
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.float32(value))


def _divide(type_: Type, types: list[Type], values: list[Any]) -> Any:
    a, b = values
    if b == 0:
        raise NoValue("division by zero")
    return a / b if type_ in (FLOAT, DOUBLE) and math.isfinite(b) else _divide_exactly(type_, a, b)


def _divide_exactly(type_: Type, a: Any, b: Any) -> Any:
    if type_ in (FLOAT, DOUBLE):
        return a / b
    return fit(type_, _exact(a) / _exact(b))


def _integral_divide(type_: Type, types: list[Type], values: list[Any]) -> Any:
    a, b = map(_exact, values)
    if b == 0:
        raise NoValue("division by zero")
    return fit(type_, math.trunc(Fraction(a) / Fraction(b)))


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise NoValue("division by zero")
    if isinstance(a, float) or isinstance(b, float):
        return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)
    return a - b * math.trunc(Fraction(a) / Fraction(b))


def _pmod(type_: Type, types: list[Type], values: list[Any]) -> Any:
    a, b = values if type_ in (FLOAT, DOUBLE) else map(_exact, values)
    rest = _remainder(a, b)
    return fit(type_, _remainder(_single(type_, rest + b), b) if rest < 0 else rest)


def _wrapped(type_: Type, value: int) -> int:
    bits = BITS[type_]
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _shift(how: str) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> int:
        value, by = values[0], values[1] % BITS[type_]
        if how == "left":
            return _wrapped(type_, value << by)
        return value >> by if how == "right" else _wrapped(type_, (value & ((1 << BITS[type_]) - 1)) >> by)

    return run


def _float(function: Callable[..., float]) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return run


def _log(function: Callable[[float], float], above: float = 0.0) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> float | None:
        if values[0] <= above:
            return None
        return function(values[0])

    return run


def _log_of(type_: Type, types: list[Type], values: list[Any]) -> float | None:
    base, value = values
    if base <= 0 or value <= 0:
        return None
    top, bottom = math.log(value), math.log(base)
    if bottom == 0:
        return math.nan if top == 0 or top != top else math.copysign(math.inf, top)
    return top / bottom if math.isfinite(top) or math.isfinite(bottom) else math.nan


def _pow(a: float, b: float) -> float:
    if b != b or (math.isinf(b) and abs(a) == 1):
        return math.nan
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        odd = math.copysign(1, a) < 0 and b % 2 == 1
        return (-math.inf if odd else math.inf) if a == 0 else math.nan


def _sign(a: float) -> float:
    return a if a != a else float((a > 0) - (a < 0))


def _whole(function: Callable[[Any], int]) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> Any:
        value, *scale = values
        if isinstance(value, decimal.Decimal):
            unit = Fraction(10) ** (scale[0] if scale else 0)
            return fit(type_, Fraction(function(Fraction(value) * unit)) / unit)
        if isinstance(value, float):
            if value != value:
                return 0
            if math.isinf(value):
                raise NoValue("overflow")
            return 2**63 - 1 if value == 2.0**63 else fit(type_, function(value))
        return value

    return run


def _round(how: str) -> Callable[..., Any]:
    def run(type_: Type, types: list[Type], values: list[Any]) -> Any:
        value, scale = values
        if isinstance(value, float):
            return _round_float(value, scale, how, types[0])
        if isinstance(value, int) and scale >= 0:
            return value
        with decimal.localcontext(decimal.Context(prec=200)):
            number = decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-scale), how)
        return fit(type_, Fraction(number))

    return run


def _round_float(value: float, scale: int, how: str, type_: Type) -> float:
    if not math.isfinite(value):
        return value
    if type_ == FLOAT:
        import numpy as np

        text = str(np.float32(value))
    else:
        text = repr(value)
    with decimal.localcontext(decimal.Context(prec=800)):
        return _single(type_, float(decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale), how)))


# -- comparison


def compare(a: Any, b: Any) -> int:
    """The order of two values as -1, 0 or 1; NULL comes first inside arrays and structs, NaN last."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, dict):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        for x, y in zip(a, b, strict=False):
            order = compare(x, y)
            if order:
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    if isinstance(a, float) and (a != a or b != b):
        return (a != a) - (b != b)
    return (a > b) - (a < b)


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


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda type_, types, values: function(*values)


def _typed(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda type_, types, values: _arithmetic(type_, function, *values)


FUNCTIONS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "add": _typed(lambda a, b: a + b),
    "subtract": _typed(lambda a, b: a - b),
    "multiply": _typed(lambda a, b: a * b),
    "divide": _divide,
    "integral_divide": _integral_divide,
    "modulo": _typed(_remainder),
    "pmod": _pmod,
    "negate": lambda type_, types, values: fit(type_, -_exact(values[0])),
    "positive": _plain(lambda a: a),
    "abs": lambda type_, types, values: fit(type_, abs(_exact(values[0]))),
    "bit_and": _plain(lambda a, b: a & b),
    "bit_or": _plain(lambda a, b: a | b),
    "bit_xor": _plain(lambda a, b: a ^ b),
    "bit_not": _plain(lambda a: ~a),
    "is_one_row": _plain(_is_one_row),
    "shiftleft": _shift("left"),
    "shiftright": _shift("right"),
    "shiftrightunsigned": _shift("unsigned"),
    "sqrt": _float(math.sqrt),
    "cbrt": _float(math.cbrt),
    "exp": _float(math.exp),
    "sin": _float(math.sin),
    "cos": _float(math.cos),
    "tan": _float(math.tan),
    "atan": _float(math.atan),
    "atan2": _float(lambda y, x: math.atan2(y + 0.0, x + 0.0)),
    "radians": _float(lambda x: x * (math.pi / 180.0)),
    "degrees": _float(lambda x: x * (180.0 / math.pi)),
    "pow": _float(_pow),
    "sign": _float(_sign),
    "ln": _log(math.log),
    "log10": _log(math.log10),
    "log2": _log(math.log2),
    "log1p": _log(math.log1p, -1.0),
    "log": _log_of,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _round(decimal.ROUND_HALF_UP),
    "bround": _round(decimal.ROUND_HALF_EVEN),
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
    "not": _plain(lambda a: not a),
    "is_null": _plain(lambda a: a is None),
    "is_not_null": _plain(lambda a: a is not None),
    "is_nan": _plain(lambda a: a is not None and a != a),
    "nanvl": lambda type_, types, values: values[1] if values[0] is not None and values[0] != values[0] else values[0],
    "array": lambda type_, types, values: list(values),
    "array_contains": _contains,
    "size": _plain(len),
    "element_at": _element_at,
    "try_element_at": _try_element_at,
    "sort_array": _sorted,
    "array_distinct": _distinct,
    "flatten": _flattened,
    "array_min": _of_array(largest=False),
    "array_max": _of_array(largest=True),
    "get_field": _plain(lambda value, name: value[name]),
    "named_struct": lambda type_, types, values: dict(zip(values[::2], values[1::2], strict=True)),
    "xxhash64": chained(xxh64, 64),
    "hash": chained(murmur3, 32),
    **{name: _plain(function) for name, function in TEXTS.items()},
    **{name: _plain(function) for name, function in MOMENTS.items()},
}
_SEES_NULL: Final = frozenset(
    {
        *("null_safe_equal", "in", "greatest", "least", "is_null", "is_not_null", "is_nan", "nanvl", "array"),
        "named_struct",
        *("concat_ws", "locate", "xxhash64", "hash"),
    }
)
