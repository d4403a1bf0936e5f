"""Signatures of functions of arrays and structs."""

from __future__ import annotations

from typing import Final

from everview.errors import TypeMismatch
from everview.scalars import coercion
from everview.scalars.coercion import coerced, implicit, is_integer, mismatch
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.scalars.kinds import DAY, INTERVALS, MICROS, VOID, YEAR_MONTH
from everview.scalars.signatures.maps import element_of_map, map_type
from everview.scalars.signatures.rules import (
    Arguments,
    Rule,
    Signatures,
    Typed,
    family,
    narrowed,
    signed,
    takes,
    widest,
)
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Field,
    MapType,
    Struct,
    Type,
)


def _array(name: str, arguments: Arguments) -> Typed:
    elements = widest(name, arguments) if arguments else ()
    return Typed(elements, Array(elements[0].type if elements else VOID), False)


def _contained(name: str, arguments: Arguments) -> Typed:
    array, value = arguments
    type_ = _element(name, array)
    met = coercion.tightest(type_, value.type)
    if met is None:
        raise mismatch(name, (array.type, value.type))
    return Typed((coerced(array, Array(met)), coerced(value, met)), BOOLEAN, True)


def _element(name: str, array: Expression) -> Type:
    if not isinstance(array.type, Array):
        raise mismatch(name, (array.type,), "it takes an array")
    return array.type.element


def _element_at(name: str, arguments: Arguments) -> Typed | Expression:
    array, index = arguments
    if isinstance(array.type, MapType):
        return element_of_map(name, arguments)
    return Typed((array, narrowed(index, name)), _element(name, array), True)


def _over_array(gives: Type | None = None, nullable: bool | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        if arguments[0].type == VOID:
            arguments = (coerced(arguments[0], Array(VOID)), *arguments[1:])
        _element(name, arguments[0])
        rest = (implicit(a, BOOLEAN, name) for a in arguments[1:])
        return Typed((arguments[0], *rest), gives or arguments[0].type, nullable)

    return rule


def _size(name: str, arguments: Arguments) -> Typed | Expression:
    (value,) = arguments
    if isinstance(value.type, MapType) and name == "size":
        return Call("map_size", arguments, INTEGER, value.nullable)
    return _over_array(INTEGER)(name, arguments)


def _flat(name: str, arguments: Arguments) -> Typed:
    inner = _element(name, arguments[0])
    if not isinstance(inner, Array):
        raise mismatch(name, (arguments[0].type,), "it takes an array of arrays")
    return Typed(arguments, inner, True)


def _member(name: str, arguments: Arguments) -> Typed | Expression:
    """``get_field(struct, 'name')``; of a map the value of a key."""
    value, field = arguments
    if isinstance(value.type, MapType) and value.type.key == STRING:
        return element_of_map(name, arguments)
    if not isinstance(value.type, Struct) or not isinstance(field, Literal):
        raise mismatch(name, (value.type,), "it takes a struct and the name of a field")
    member = next((f for f in value.type.fields if f.name.lower() == str(field.value).lower()), None)
    if member is None:
        names = ", ".join(f.name for f in value.type.fields)
        raise TypeMismatch(f"{value.type} has no field {field.value!r}", hint=f"its fields are {names}")
    return Typed((value, Literal(member.name, STRING)), member.type, value.nullable or member.nullable)


def _struct(name: str, arguments: Arguments) -> Typed:
    """``named_struct('name', value, …)``."""
    names, values = arguments[::2], arguments[1::2]
    if len(names) != len(values) or not all(isinstance(n, Literal) and n.type == STRING for n in names):
        raise mismatch(name, tuple(a.type for a in arguments), "it takes names, written down, and values in turn")
    fields = (Field(n.value, v.type, v.nullable) for n, v in zip(names, values, strict=True) if isinstance(n, Literal))
    return Typed(arguments, Struct(fields), False)


def _one(name: str, arguments: Arguments) -> Typed:
    return Typed(arguments, _element(name, arguments[0]), True)


def _with_element(place: int) -> Rule:
    """The rule of an array, an element of its type at this place, and positions."""

    def rule(name: str, arguments: Arguments) -> Typed:
        array, value = arguments[0], arguments[place]
        met = coercion.tightest(_element(name, array), value.type)
        if met is None:
            raise mismatch(name, (array.type, value.type))
        between = [implicit(a, INTEGER, name) for a in arguments[1:place]]
        nullable = any(a.nullable for a in (array, *between))
        return Typed((coerced(array, Array(met)), *between, coerced(value, met)), Array(met), nullable)

    return rule


def _removed(name: str, arguments: Arguments) -> Typed:
    typed = _contained(name, arguments)
    return Typed(typed.arguments, typed.arguments[0].type)


def _position(name: str, arguments: Arguments) -> Typed:
    return Typed(_contained(name, arguments).arguments, BIGINT)


def _repeated(name: str, arguments: Arguments) -> Typed:
    value, count = arguments[0], implicit(arguments[1], INTEGER, name)
    return Typed((value, count), Array(value.type), count.nullable)


def _sliced(name: str, arguments: Arguments) -> Typed:
    array, *bounds = arguments
    _element(name, array)
    return Typed((array, *(implicit(b, INTEGER, name) for b in bounds)), array.type)


def _sets(gives: Type | None = None) -> Rule:
    """The rule of two arrays of a common type."""

    def rule(name: str, arguments: Arguments) -> Typed:
        for array in arguments:
            _element(name, array)
        met = coercion.tightest(arguments[0].type, arguments[1].type)
        if met is None:
            raise mismatch(name, tuple(a.type for a in arguments))
        return Typed(tuple(coerced(a, met) for a in arguments), gives or met, True if gives else None)

    return rule


def _zipped(name: str, arguments: Arguments) -> Typed:
    """Fields named as the columns are, and else by their place from 0."""
    fields = [
        Field(a.name if isinstance(a, Column) else str(place), _element(name, a)) for place, a in enumerate(arguments)
    ]
    if len({field.name for field in fields}) < len(fields):
        fields = [Field(str(place), field.type) for place, field in enumerate(fields)]
    return Typed(arguments, Array(Struct(fields)))


def _sequence(name: str, arguments: Arguments) -> Typed:
    """Numbers with a step, or moments with an interval; without a step, by one or by one day towards the end."""
    start, stop, *step = arguments
    met = coercion.common(start.type, stop.type)
    if met is None or not (is_integer(met) or met in (DATE, TIMESTAMP, TIMESTAMP_NTZ)):
        raise mismatch(name, (start.type, stop.type), "it takes integers, dates or timestamps")
    if is_integer(met):
        bounds = widest(name, arguments)
        return Typed((*bounds[:2], bounds[2] if step else _towards(bounds, met, 1)), Array(bounds[0].type))
    start, stop = coerced(start, met), coerced(stop, met)
    by = step[0] if step else _towards((start, stop), DAY, MICROS["day"])
    if by.type not in ((YEAR_MONTH, DAY) if met == DATE else INTERVALS):
        raise mismatch(name, (met, by.type), "its step is an interval, of a date in days or months")
    return Typed((start, stop, by if by.type != DAY else coerced(by, DAY)), Array(met))


def _towards(bounds: Arguments, type_: Type, size: int) -> Expression:
    """One step, or minus one if the end comes before the start."""
    nullable = bounds[0].nullable or bounds[1].nullable
    down = Call("less", (bounds[1], bounds[0]), BOOLEAN, nullable)
    return Call("if", (down, Literal(-size, type_), Literal(size, type_)), type_, False)


def _index(name: str, arguments: Arguments) -> Typed:
    array, index = arguments
    return Typed((array, implicit(index, INTEGER, name)), _element(name, array), True)


def _counts(name: str, arguments: Arguments) -> Typed:
    (values,) = arguments
    if not isinstance(values.type, Array):
        raise mismatch(name, (values.type,), "it takes an array")
    return Typed(
        (Call("sort_array", (values,), values.type, values.nullable),),
        map_type(name, values.type.element, BIGINT),
        True,
    )


def _most_frequent(name: str, arguments: Arguments) -> Typed:
    """Elements, how many more are NULL, and how many of the most frequent are wanted."""
    item = Struct([Field("item", _element(name, arguments[0])), Field("count", BIGINT, False)])
    return Typed((arguments[0], *(implicit(a, BIGINT, name) for a in arguments[1:])), Array(item))


def _histogram(name: str, arguments: Arguments) -> Typed:
    values, bins = implicit(arguments[0], Array(DOUBLE), name), coerced(arguments[1], INTEGER)
    if not isinstance(bins, Literal) or bins.value is None or bins.value < 2:
        raise mismatch(name, tuple(a.type for a in arguments), "the number of bins is a literal from 2 on")
    return Typed((values, bins), Array(Struct([Field("x", DOUBLE), Field("y", DOUBLE)])), True)


COLLECTIONS: Final[Signatures] = family(
    # of aggregates that read all values of a group
    signed("skewness_of kurtosis_of", 1, 1, takes(Array(DOUBLE), gives=DOUBLE, nullable=True), note="last digit"),
    signed("product_of", 1, 1, takes(Array(DOUBLE), gives=DOUBLE, nullable=True), note="last digit"),
    signed("counts_of", 1, 1, _counts),
    signed("histogram_of", 2, 2, _histogram),
    signed("most_frequent_of", 3, 3, _most_frequent),
    signed("array_append array_prepend", 2, 2, _with_element(1), "array, element"),
    signed(
        *("array_insert", 3, 3, _with_element(2), "array, position, element"),
        "from 1, negative from the end; beyond, NULLs are put between; 0 raises",
    ),
    signed("array_compact", 1, 1, _over_array(), "array", "without NULLs"),
    signed("array_remove", 2, 2, _removed, "array, element", "without elements that equal it"),
    signed("array_position", 2, 2, _position, "array, element", "from 1, 0 if it is not there"),
    signed("array_repeat", 2, 2, _repeated, "any, times"),
    signed("slice", 3, 3, _sliced, "array, start, length", "from 1, negative from the end; 0 raises"),
    signed("get", 2, 2, _index, "array, index", "from 0; NULL beyond either end"),
    signed(
        "array_union array_intersect array_except", 2, 2, _sets(), "array, array", "different elements, as they come"
    ),
    signed("arrays_overlap", 2, 2, _sets(BOOLEAN), "array, array", "NULL where a NULL might be the same"),
    signed("arrays_zip", 1, None, _zipped, "arrays", "structs with fields named as the columns, or by place from 0"),
    signed("sequence", 2, 3, _sequence, "start, end [, step]", "integers, dates, timestamps; the end is one of them"),
    signed("array_sort", 1, 1, _over_array(), "array", "NULL last", "d"),
    signed("array", 0, None, _array, "any"),
    signed("array_contains", 2, 2, _contained, "array, value", "NULL when nothing equals and an element is NULL"),
    signed("size", 1, 1, _size, "array or map", "NULL for NULL", size="cardinality array_size"),
    signed(
        *("element_at try_element_at", 2, 2, _element_at, "array, index, or map, key"),
        "from 1, negative from the end; beyond raises, or is NULL with `try_`; 0 raises; NULL for a missing key",
    ),
    signed("sort_array", 1, 2, _over_array(), "array [, ascending]", "NULL first, last when descending", "d"),
    signed("array_distinct", 1, 1, _over_array(), "array", "", "d"),
    signed("array_min array_max", 1, 1, _one, "array", "", "d"),
    signed("flatten", 1, 1, _flat, "array of arrays", "NULL if one of them is", "d"),
    signed("array_join", 2, 3, takes(Array(STRING), STRING, gives=STRING), "array, separator [, for NULL]", "", "d"),
    signed("get_field", 2, 2, _member),  # of ``s.field``
    signed("named_struct", 2, None, _struct, "literal names and values in turn", "never NULL"),
)
