"""How every kernel is compiled: eagerly, without the GIL, cached on disk, with read-only array arguments.

Explicit signatures matter: an array mapped from a file is read-only and one fresh from NumPy is not, and
inferred signatures would compile each kernel once per combination. A read-only parameter accepts both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import typeof_impl

F = TypeVar("F", bound=Callable[..., Any])


def _readonly(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


i64 = types.int64
u64 = types.uint64
f64 = types.float64
boolean = types.boolean
void = types.void

# Parameters that a kernel only reads.
rows = _readonly(types.int64, 2)  # a batch or delta matrix, weight last
words = _readonly(types.int64, 1)  # one column of words, offsets or positions
doubles = _readonly(types.float64, 1)
octets = _readonly(types.uint8, 1)  # raw bytes
offsets32 = _readonly(types.int32, 1)

# Parameters that a kernel writes, and results.
rows_out = types.int64[:, ::1]
words_out = types.int64[::1]
doubles_out = types.float64[::1]
octets_out = types.uint8[::1]
offsets32_out = types.int32[::1]


def pair(*members: Any) -> Any:
    """The type of a returned tuple.

    >>> print(pair(i64, words_out))
    Tuple(int64, array(int64, 1d, C))
    """
    return types.Tuple(members)


class Kernel:
    """A function compiled for one signature when it is first called: machine code is loaded only if it is used."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._signature = signature
        self._call: Callable[..., Any] = self._first

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def _first(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """The compiled function."""
        if self._call == self._first:
            compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(self.__wrapped__)
            self._call = compiled  # before compiling: a kernel may call itself
            compiled.compile(self._signature)
            compiled.disable_compile()
        return self._call

    def __reduce__(self) -> str:
        return self.__name__


@typeof_impl.register(Kernel)
def _typeof_kernel(found: Kernel, context: Any) -> Any:
    """A kernel that another kernel calls."""
    return types.Dispatcher(found.dispatcher)


def kernel(result: Any, *parameters: Any) -> Callable[[F], F]:
    """Compile a function to machine code for exactly these types: ``@kernel(i64, rows, i64)``."""

    def compiled(function: F) -> F:
        return cast(F, Kernel(function, result(*parameters)))

    return compiled


def inline(function: F) -> F:
    """A helper that only kernels call; compiled into each of them."""
    compiled: Any = numba.njit(function, nogil=True, inline="never", error_model="numpy")
    return cast(F, compiled)
