"""The meaning of functions of maps, one dict at a time; a key that is an array or a struct is a tuple there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cmp_to_key
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue
from everview.oracle.scalar_order import compare
from everview.oracle.values import frozen_key, thawed_key
from everview.types import MapType, Type

Pairs = list[tuple[Any, Any]]


def made(pairs: Pairs) -> dict[Any, Any]:
    """The map of entries; raises `NoValue` if a key is NULL or comes twice."""
    keys: list[Any] = []
    for key, _ in pairs:
        if key is None:
            raise NoValue("a key is NULL")
        if any(compare(key, other) == 0 for other in keys):
            raise NoValue("a key comes twice")
        keys.append(key)
    return {frozen_key(key): value for key, value in pairs}


def entries(value: Mapping[Any, Any], type_: Type) -> Pairs:
    """The entries of a map, with keys as other values are."""
    assert isinstance(type_, MapType)
    return [(thawed_key(type_.key, key), item) for key, item in value.items()]


def value_of_key(value: Mapping[Any, Any], type_: Type, key: Any) -> tuple[bool, Any]:
    """Whether a map has a key, and its value."""
    items = [item for own, item in entries(value, type_) if compare(own, key) == 0]
    return bool(items), items[0] if items else None


def _from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        raise NoValue("not as many values as keys")
    return made(list(zip(keys, values, strict=True)))


def _from_entries(listed: list[Any]) -> dict[Any, Any] | None:
    if None in listed:
        return None
    return made([(key, value) for key, value in (tuple(one.values()) for one in listed)])


def _of_text(text: str, pairs: str, between: str) -> dict[Any, Any]:
    parts = [re.split(between, part, maxsplit=1) for part in re.split(pairs, text)]
    return made([(part[0], part[1] if len(part) > 1 else None) for part in parts])


def _of(function: Callable[..., Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    return lambda type_, types, values: function(*values)


def _entries(type_: Type, types: list[Type], values: list[Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in entries(values[0], types[0])]


def _concat(type_: Type, types: list[Type], values: list[Any]) -> dict[Any, Any]:
    pairs = zip(values, types, strict=True)
    return made([entry for value, kind in pairs for entry in entries(value, kind)])


def _sorted(type_: Type, types: list[Type], values: list[Any]) -> dict[Any, Any]:
    pairs = sorted(entries(values[0], types[0]), key=lambda entry: cmp_to_key(compare)(entry[0]))
    return made(pairs)


MAPS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "map": _of(lambda *given: made(list(zip(given[::2], given[1::2], strict=True)))),
    "map_from_arrays": _of(_from_arrays),
    "map_from_entries": _of(_from_entries),
    "map_concat": _concat,
    "str_to_map": _of(_of_text),
    "map_keys": lambda type_, types, values: [key for key, _ in entries(values[0], types[0])],
    "map_values": lambda type_, types, values: list(values[0].values()),
    "map_entries": _entries,
    "map_value": lambda type_, types, values: value_of_key(values[0], types[0], values[1])[1],
    "map_contains_key": lambda type_, types, values: value_of_key(values[0], types[0], values[1])[0],
    "map_size": _of(len),
    "map_sorted": _sorted,
}


def applied(function: str, given: list[Any], types: list[Type], body: Callable[..., Any]) -> Any:
    """A function of maps or arrays that takes a function."""
    if any(value is None for value in given):
        return None
    if function == "array_sort":
        return _sorted_by(given[0], body)
    held = [entries(value, type_) for value, type_ in zip(given, types, strict=True)]
    match function:
        case "map_filter":
            return made([(k, v) for k, v in held[0] if body(0, k, v) is True])
        case "transform_values":
            return made([(k, body(0, k, v)) for k, v in held[0]])
        case "transform_keys":
            return made([(body(0, k, v), v) for k, v in held[0]])
        case _:
            assert function == "map_zip_with", function
            keys = [k for k, _ in held[0]]
            keys += [k for k, _ in held[1] if not any(compare(k, own) == 0 for own in keys)]
            return made([(k, body(0, k, *_values_of(k, given, types))) for k in keys])


def _values_of(key: Any, maps: list[Any], types: list[Type]) -> list[Any]:
    """What each of some maps holds under a key; None if it has no such key."""
    return [value_of_key(each, type_, key)[1] for each, type_ in zip(maps, types, strict=True)]


def _sorted_by(items: list[Any], body: Callable[..., Any]) -> list[Any]:
    def compared(a: Any, b: Any) -> int:
        verdict = body(0, a, b)
        if verdict is None:
            raise NoValue("the comparison is NULL")
        return verdict

    return sorted(items, key=cmp_to_key(compared))
