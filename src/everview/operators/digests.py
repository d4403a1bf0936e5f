"""Digests of the code of users' functions, by which a state tells that a function of the same name computes otherwise.

A digest covers the bytecode of a function, its constants, defaults and closure, as far as those are plain values, and
in the same way the functions that it calls by name in its own module. It does not cover docstrings, places in files,
other modules, or objects. An object that calls functions of others has those in a property ``digested``, which counts.
Bytecode is that of one version of Python, which the digest names: digests of two versions say nothing about each other.

`captured` tells more of a function whose globals and objects go with it wherever it is sent, as Spark's do.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, Protocol, cast, runtime_checkable

import numpy as np

PLAIN: Final = (int, float, complex, str, bytes, bool, type(None), type(...))
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


@runtime_checkable
class CallsOthers(Protocol):
    """An object whose digest is also that of the functions it calls."""

    @property
    def digested(self) -> Iterable[Any]: ...


def digest_of(call: Callable[..., Any]) -> str:
    """The digest of a function's code, after the version of Python; of what has no code, the same for all."""
    text = "\n".join(_said(call, set()))
    return f"{VERSION} {hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def is_changed(before: str, now: str) -> bool:
    """Whether two digests say that the code is another.

    >>> is_changed(digest_of(lambda a: a + 1), digest_of(lambda b: b + 1))
    False
    >>> is_changed(digest_of(lambda a: a + 1), digest_of(lambda a: a + 2))
    True
    >>> is_changed("3.9 00", "3.14 11")
    False
    """
    return before != now and before.partition(" ")[0] == now.partition(" ")[0]


def _said(value: Any, seen: set[int]) -> Iterator[str]:
    """What there is to tell of a value, and of functions in it; of an object, nothing."""
    if isinstance(value, PLAIN):
        yield repr(value)
    elif isinstance(value, tuple | list):
        yield f"{len(value)} of"
        for each in value:
            yield from _said(each, seen)
    elif isinstance(value, frozenset | set):
        yield " ".join(sorted(repr(each) for each in value if isinstance(each, PLAIN)))
    elif isinstance(value, MethodType):
        yield from _said(value.__func__, seen)
    elif isinstance(value, partial):
        yield from _said((value.func, value.args, sorted(value.keywords.items())), seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, CodeType):
        yield from _of_code(value, seen)
    elif isinstance(type(value).__dict__.get("__call__"), FunctionType):
        yield from _said(type(value).__call__, seen)
        for each in value.digested if isinstance(value, CallsOthers) else ():
            yield from _said(each, seen)


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    yield from _of_code(code, seen, function.__doc__)
    yield from _said((function.__defaults__ or (), sorted((function.__kwdefaults__ or {}).items())), seen)
    for cell in function.__closure__ or ():
        try:
            yield from _said(cell.cell_contents, seen)
        except ValueError:
            yield "not yet set"
    for name in sorted(_names(code)):
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__module__ == function.__module__:
            yield name
            yield from _of_function(called, seen)


def _of_code(code: CodeType, seen: set[int], told: str | None = None) -> Iterator[str]:
    """The instructions of a function and what they name; ``told`` is its docstring, which is among the constants."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    constants = code.co_consts
    if told is not None and constants and constants[0] == told:
        constants = (None, *constants[1:])
    yield from _said(constants, seen)


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


# -- what a function takes with it

OPAQUE: Final = "an object of"  # before the type of an object of which nothing more can be told
_DEEPEST: Final = 8  # objects within objects


def captured(call: Callable[..., Any]) -> tuple[Any, ...]:
    """What a function refers to besides its code: globals and closures, with objects as their attributes.

    The values are plain, or functions, so that `digest_of` tells them; of what is `OPAQUE`, there is only the type.

    >>> rates = {"FR": 1.2}
    >>> captured(lambda country: rates[country])
    (('rates', ((('FR', 1.2),),)),)
    """
    return tuple(_captured(call, set(), 0))


def _captured(call: Any, seen: set[int], depth: int) -> Iterator[Any]:
    while isinstance(call, MethodType):
        yield _told(call.__self__, seen, depth)
        call = call.__func__
    if not isinstance(call, FunctionType):
        yield _told(call, seen, depth)
        return
    if id(call) in seen:
        return
    seen.add(id(call))
    inside = dict(zip(call.__code__.co_freevars, call.__closure__ or (), strict=True))
    for name in sorted({*inside, *_names(call.__code__)}):
        if name in inside:
            cell = inside[name]
            value = cell.cell_contents if _is_set(cell) else None
        elif name in call.__globals__:
            value = call.__globals__[name]
        else:
            continue
        if isinstance(value, FunctionType):
            if value.__module__ == call.__module__:
                yield (name, *_captured(value, seen, depth))
        elif not isinstance(value, ModuleType):
            yield name, _told(value, seen, depth)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _told(value: Any, seen: set[int], depth: int) -> Any:
    """A value as plain ones and functions; its type alone where there is no more to tell."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, ModuleType):
        return value.__name__
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if depth > _DEEPEST or id(value) in seen:
        return f"{OPAQUE} {name}" if id(value) not in seen else name
    inner = depth + 1
    match value:
        case Mapping():
            return (_of_mapping(cast("Mapping[Any, Any]", value), seen, inner),)
        case list() | tuple():
            return tuple(_told(each, seen, inner) for each in cast("list[Any]", value))
        case set() | frozenset():
            return tuple(sorted((_told(each, seen, inner) for each in cast("set[Any]", value)), key=repr))
        case np.ndarray():
            kind = str(value.dtype)
            return (kind, value.shape, value.tobytes() if kind != "object" else _told(value.tolist(), seen, inner))
        case re.Pattern():
            return (value.pattern, value.flags)
        case FunctionType() | MethodType():
            return (value, *_captured(value, seen, inner))
        case type():
            return _of_class(cast("type[Any]", value), seen, inner)
        case _:
            return _of_object(value, name, seen, inner)


def _of_mapping(value: Mapping[Any, Any], seen: set[int], depth: int) -> Any:
    pairs = [(_told(key, seen, depth), _told(held, seen, depth)) for key, held in value.items()]
    return tuple(sorted(pairs, key=repr))


def _of_class(kind: type, seen: set[int], depth: int) -> Any:
    """A class that goes with a function is told by its methods; one of a package, by its name."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__:
        return name
    seen.add(id(kind))
    methods = sorted((n, m) for n, m in vars(kind).items() if isinstance(m, FunctionType))
    return (name, *((n, m, *_captured(m, seen, depth)) for n, m in methods))


def _of_object(value: Any, name: str, seen: set[int], depth: int) -> Any:
    parts = getattr(value, "__dict__", None)
    if not isinstance(parts, dict):
        return f"{OPAQUE} {name}"
    seen.add(id(value))
    return (_of_class(type(value), seen, depth), _told(cast("dict[str, Any]", parts), seen, depth))
