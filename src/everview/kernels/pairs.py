"""Pairs (row, weight) of Python's own whole numbers, read where the interpreter keeps them, in one call.

Converting values one by one is a fifth of what a small tick from tuples takes. Here a kernel goes through the list
itself, by functions of the interpreter's C interface that neither run code nor make objects. It keeps the GIL, so that
nobody changes the list meanwhile; and it takes only tuples and whole numbers of exactly these types. Anything else ends
the call, and the caller goes another way, which also words the errors.

One fact is used that the interface does not promise: the second word of an object is the address of its type. `READS`
says whether it is so here; if not, the kernel must not be called.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]

from everview.kernels.admit import admitted
from everview.kernels.jit import CompiledKernel, i64, inline, rows_out, words
from everview.kernels.rows import as_pointer

F = TypeVar("F", bound=Callable[..., Any])


def _reads() -> bool:
    """Whether objects are those of CPython with a GIL, on a machine of 64 bits, and begin as they are taken to."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    known = (1, int), (-(2**70), int), ((1, 2), tuple), (True, bool), ([], list)
    return all(ctypes.c_size_t.from_address(id(value) + 8).value == id(kind) for value, kind in known)


READS: Final = _reads()
TUPLE, INT = id(tuple), id(int)
UNREAD: Final = -(1 << 62)  # in place of a number of rows

# Functions of the C interface; they give borrowed references.
_list_size: Any = types.ExternalFunction("PyList_Size", i64(i64))
_list_item: Any = types.ExternalFunction("PyList_GetItem", i64(i64, i64))
_tuple_size: Any = types.ExternalFunction("PyTuple_Size", i64(i64))
_tuple_item: Any = types.ExternalFunction("PyTuple_GetItem", i64(i64, i64))
_as_word: Any = types.ExternalFunction("PyLong_AsLongLongAndOverflow", i64(i64, i64))


class KernelWithGil(CompiledKernel):
    """A kernel during which no other thread runs Python's code, since it looks at Python's objects."""

    @cached_property
    def _prepared(self) -> Any:
        prepared = CompiledKernel._prepared.func(self)
        prepared.targetoptions["nogil"] = False
        return prepared


def with_gil(result: Any, *parameters: Any) -> Callable[[F], F]:
    """Compile a function as `kernel` does, for calls that keep the GIL."""
    return lambda function: cast(F, KernelWithGil(function, result, parameters))


@inline
def _type_of(thing):
    return carray(as_pointer(thing), 2)[1]


@inline
def _is_tuple(thing, kind, size):
    return _type_of(thing) == kind and _tuple_size(thing) == size


@inline
def _read(out, pairs, pair, whole):
    n, width, beyond = out.shape[0], out.shape[1] - 1, np.zeros(1, np.int64)
    if _list_size(pairs) != n:
        return False
    for i in range(n):
        both = _list_item(pairs, i)
        if not _is_tuple(both, pair, 2):
            return False
        row = _tuple_item(both, 0)
        if not _is_tuple(row, pair, width):
            return False
        for c in range(width + 1):
            value = _tuple_item(row, c) if c < width else _tuple_item(both, 1)
            if _type_of(value) != whole:
                return False
            out[i, c] = _as_word(value, beyond.ctypes.data)
            if beyond[0] != 0:  # it does not fit in 64 bits
                return False
    return True


@with_gil(types.boolean, rows_out, i64, i64, i64)
def read_pairs(out, pairs, pair, whole):
    """Put the rows and weights of a list, whose address this is, into a matrix; False if anything in it is unknown.

    ``pair`` and ``whole`` are the addresses of the types `tuple` and `int`.
    """
    return _read(out, pairs, pair, whole)


@with_gil(i64, rows_out, i64, i64, i64, words, i64, i64, i64, i64)
def admit_pairs(out, pairs, pair, whole, columns, address, lines, key, rule):
    """`admit` of what `read_pairs` reads; `UNREAD` if anything in the list is unknown."""
    delta = np.empty(out.shape, np.int64)
    if not _read(delta, pairs, pair, whole):
        return UNREAD
    return admitted(out, delta, columns, address, lines, key, rule)
