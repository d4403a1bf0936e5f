"""The meaning of functions of numbers, one value at a time, by Python's integers, fractions and floats."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, rounded_decimal
from everview.types import BIGINT, DOUBLE, FLOAT, INTEGER, INTERVALS, SMALLINT, TINYINT, Decimal, Type

BITS: Final[dict[Type, int]] = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64}


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


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of values alone, as one that is also given the result type and the argument types."""
    return lambda type_, types, values: function(*values)


def _typed(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda type_, types, values: _arithmetic(type_, function, *values)


def _log_area(function: Callable[[float], float]) -> Callable[[float], float]:
    """An area function, which Python has no value for at the ends of its range."""

    def run(x: float) -> float:
        return math.copysign(math.inf, x) if abs(x) == 1.0 else function(x)

    return run


def _inverse(function: Callable[[float], float]) -> Callable[[float], float]:
    def run(x: float) -> float:
        divisor = function(x)
        return math.copysign(math.inf, divisor) if divisor == 0 else 1.0 / divisor

    return run


def _even(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


def _factorial(n: int) -> int | None:
    return math.prod(range(1, n + 1)) if 0 <= n <= 20 else None


def _ones(type_: Type, types: list[Type], values: list[Any]) -> int:
    return bin(int(values[0]) & (2**64 - 1)).count("1")


def _bit(type_: Type, types: list[Type], values: list[Any]) -> int:
    value, place = values
    if not 0 <= place < BITS[types[0]]:
        raise NoValue("no such bit")
    return value // 2**place % 2


def _conv(text: str, old: int, new: int) -> str | None:
    text = text.strip(" ")
    if text == "" or not 2 <= old <= 36 or not 2 <= abs(new) <= 36:
        return None
    digits = re.match("-?([0-9a-zA-Z]*)", text, re.ASCII)
    assert digits is not None
    kept = digits[1]
    while kept and any(int(letter, 36) >= old for letter in kept):
        kept = kept[:-1]
    size = int(kept, old) if kept else 0
    if size >= 2**64:
        raise NoValue("overflow")
    number = size if not text.startswith("-") else 2**64 - 1 if new > 0 and size >= 2**63 else (2**64 - size) % 2**64
    sign = "-" if new < 0 and number >= 2**63 else ""
    number = 2**64 - number if sign else number
    places = [number // abs(new) ** place % abs(new) for place in range(64)]
    letters = "".join(chr(48 + d) if d < 10 else chr(55 + d) for d in reversed(places))
    return sign + (letters.lstrip("0") or "0")


def _bucket(x: float, low: float, high: float, count: int) -> int | None:
    if x != x or not math.isfinite(low) or not math.isfinite(high) or low == high or not 0 < count < 2**63 - 1:
        return None
    if low > high:
        x, low, high = -x, -low, -high
    if x < low:
        return 0
    return count + 1 if x >= high else int(count * (x - low) / (high - low)) + 1


def _bitmap(places: list[int | None]) -> bytes:
    """Of 4,096 bytes, those with the bits at these places; the lowest bit of a byte is its first."""
    octets = bytearray(4096)
    for place in places:
        if place is None:
            continue
        if not 0 <= place < 32_768:
            raise NoValue("no place in a bitmap")
        octets[place // 8] |= 1 << place % 8
    return bytes(octets)


def _together(bitmaps: list[bytes | None], start: int, met: Callable[[int, int], int]) -> bytes:
    octets = [start] * 4096
    for bitmap in bitmaps:
        if bitmap is not None:
            octets = [met(a, b) for a, b in zip(octets, bitmap[:4096].ljust(4096, bytes(1)), strict=True)]
    return bytes(octets)


def _asserted(condition: bool | None, message: str) -> None:
    if condition is not True:
        raise NoValue(message)


def _raised(message: str) -> Any:
    raise NoValue(message)


NUMBERS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "add": _typed(lambda a, b: a + b),
    "subtract": _typed(lambda a, b: a - b),
    "multiply": _typed(lambda a, b: a * b),
    "divide": _divide,
    "integral_divide": _integral_divide,
    "modulo": _typed(_remainder),
    "pmod": _pmod,
    "negate": lambda type_, types, values: fit(type_, -_exact(values[0])) if type_ not in INTERVALS else -values[0],
    "positive": plain(lambda a: a),
    "abs": lambda type_, types, values: abs(values[0]) if type_ in INTERVALS else fit(type_, abs(_exact(values[0]))),
    "bit_and": plain(lambda a, b: a & b),
    "bit_or": plain(lambda a, b: a | b),
    "bit_xor": plain(lambda a, b: a ^ b),
    "bit_not": plain(lambda a: ~a),
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
    "asin": _float(math.asin),
    "acos": _float(math.acos),
    "sinh": _float(lambda x: math.copysign(math.inf, x) if abs(x) > 711 else math.sinh(x)),
    "cosh": _float(math.cosh),
    "tanh": _float(math.tanh),
    "asinh": _float(math.asinh),
    "acosh": _float(math.acosh),
    "atanh": _float(_log_area(math.atanh)),
    "cot": _float(_inverse(math.tan)),
    "sec": _float(_inverse(math.cos)),
    "csc": _float(_inverse(math.sin)),
    "expm1": _float(math.expm1),
    "rint": _float(_even),
    "hypot": _float(math.hypot),
    "factorial": plain(_factorial),
    "bin": plain(lambda n: bin(n % 2**64)[2:]),
    "conv": plain(_conv),
    "bit_count": _ones,
    "bit_get": _bit,
    "width_bucket": plain(_bucket),
    "bitmap_of": plain(_bitmap),
    "bitmap_or_of": plain(lambda maps: _together(maps, 0, lambda a, b: a | b)),
    "bitmap_and_of": plain(lambda maps: _together(maps, 255, lambda a, b: a & b)),
    "raise_error": plain(_raised),
    "assert_true": plain(_asserted),
    "bitmap_count": plain(lambda raw: sum(bin(byte).count("1") for byte in raw)),
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
}
