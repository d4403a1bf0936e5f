"""Digests of the code of users' functions, by which a state tells that a function of the same name computes otherwise.

A digest covers the bytecode of a function, its constants, defaults and closure, as far as those are plain values, and
in the same way the functions that it calls by name in its own module. It does not cover docstrings, places in files,
other modules, or objects. Bytecode is that of one version of Python, which the digest names: digests of two versions
say nothing about each other.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

PLAIN: Final = (int, float, complex, str, bytes, bool, type(None), type(...))
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


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
