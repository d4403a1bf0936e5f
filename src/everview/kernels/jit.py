"""Kernels: Python functions that Numba compiles to machine code, once for a machine, and that run without the GIL.

A kernel is declared with the types of its result and of its parameters, and is compiled, or loaded from the cache on
disk, when it is first called. Types are declared, not inferred, because arrays mapped from files are read-only and
arrays of NumPy are not: Numba would compile a kernel anew for every combination. A parameter that is declared read-only
takes both.

Signal handlers, such as that of Ctrl-C, run in the main thread and may raise at any moment. In the middle of compiling
that could end the process or leave code half loaded. So kernels are compiled and loaded in a thread of their own, for
which the caller waits. An exception that a handler raises during the wait, or while a kernel runs, reaches the caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, partial
from threading import RLock, Thread, current_thread, get_ident, main_thread
from typing import Any, ClassVar, TypeVar, cast

import numba
from numba import types
from numba.extending import typeof_impl

from everview.kernels.cached_code import load_plainly, stamp
from everview.kernels.progress import progress

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


class CompiledKernel:
    """A kernel: a function that is compiled for one signature, or loaded from the cache, when it is first called."""

    def __init__(self, function: Callable[..., Any], result: Any, parameters: tuple[Any, ...] = ()) -> None:
        self.__wrapped__ = function
        self.__name__, self.__module__ = function.__name__, function.__module__  # by which pickling refers to it
        self.__doc__ = function.__doc__
        self._types = result, parameters
        self._loading: Any = None  # the dispatcher while the kernel is being compiled: a recursive body refers to it
        self._call: Callable[..., Any] = self._first
        # The entry of the machine code, once it is loaded; the kernel itself until then. It is for calls of every tick:
        # no argument is checked, so the caller must pass the declared types and contiguous arrays, and must pass a
        # `SystemError` through `cause_of`.
        self.direct: Callable[..., Any] = self

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._call(*arguments)
        except SystemError as error:
            raise cause_of(error) from None

    def _first(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's compiled function, which other kernels are compiled with; compiled or loaded now, if it was not."""
        if self._call == self._first:
            _undisturbed(self._load)
        return self._call if self._loading is None else self._loading

    @property
    def address(self) -> int:
        """The address of the machine code in this process, for compiled code that calls the kernel by its address."""
        (compiled,) = self.dispatcher.overloads.values()
        return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)

    @property
    def is_at_hand(self) -> bool:
        """Whether machine code is loaded or in the cache; if not, the first call has to compile."""
        if self._call != self._first:
            return True
        file: Any = getattr(self._prepared._cache, "_cache_file", None)
        return not hasattr(file, "_load_index") or bool(file._load_index())

    @cached_property
    def _prepared(self) -> Any:
        """Numba's dispatcher for the function, before any machine code is compiled or loaded."""
        compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(self.__wrapped__)
        load_plainly(compiled, partial(progress.begin, self.__name__))
        stamp(compiled, self.__wrapped__.__module__)
        return compiled

    def _load(self) -> None:
        if self._call != self._first or self._loading is not None:
            return
        compiled = self._prepared
        self._loading = compiled
        try:
            result, parameters = self._types
            compiled.compile(result(*parameters))
            compiled.disable_compile()
            self.direct = compiled.overloads[parameters].entry_point
            self._call = compiled  # only when it is whole: should compiling fail, the next call begins anew
        finally:
            self._loading = None

    def __reduce__(self) -> str:
        return self.__name__


def cause_of(error: SystemError) -> BaseException:
    """The exception that a signal handler raised while a kernel ran; the error itself if there was none.

    CPython raises `SystemError` in its place, because a call has returned a result although an exception is set; twice
    nested, if the kernel was raising an exception of its own.
    """
    cause: BaseException = error
    while isinstance(cause, SystemError) and cause.__cause__ is not None:
        cause = cause.__cause__
    return cause


def made_of(kernel: Callable[..., Any]) -> CompiledKernel:
    """The `CompiledKernel` of a function declared with `kernel`, which the type checker takes for a plain function."""
    assert isinstance(kernel, CompiledKernel), "made by `kernel`"
    return kernel


class _Loader:
    """Runs the loading of kernels, in one thread at a time, and remembers which thread that is."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.thread: int | None = None
        # A child of a fork that happened meanwhile would wait for ever, for a thread that it does not have.
        os.register_at_fork(
            before=self.lock.acquire, after_in_parent=self.lock.release, after_in_child=self.lock.release
        )

    def __call__(self, load: Callable[[], None], raised: list[BaseException]) -> None:
        with self.lock:
            self.thread = get_ident()
            try:
                load()
            except BaseException as error:  # noqa: BLE001, it is raised where it is waited for
                raised.append(error)
            finally:
                self.thread = None


_loader = _Loader()


def _undisturbed(load: Callable[[], None]) -> None:
    """Load a kernel where no signal handler runs, in another thread than the main one; raise its exception here."""
    if _loader.thread == get_ident():  # a kernel is being loaded, and this is one that it calls
        load()
        return
    raised: list[BaseException] = []
    if current_thread() is main_thread():
        thread = Thread(target=_loader, args=(load, raised), name="everview kernels")
        thread.start()
        progress.wait_for(thread)
    else:
        _loader(load, raised)
    if raised:
        raise raised[0]


class KernelHelper:
    """A function that only kernels call: it is compiled as part of each of them, and never by itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    @cached_property
    def dispatcher(self) -> Any:
        """The function that kernels are compiled with, without the code by which Python or C would call it."""
        without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(nogil=True, inline="never", error_model="numpy", **without)(self.__wrapped__)

    @cached_property
    def _callable(self) -> Any:
        return numba.njit(nogil=True, error_model="numpy")(self.__wrapped__)

    def __call__(self, *arguments: Any) -> Any:
        return self._callable(*arguments)


class PastedHelper(KernelHelper):
    """A helper whose body Numba copies into its callers before it compiles them, so that no call is left."""

    targetoptions: ClassVar = {"inline": "always"}  # tells Numba to do so

    @property
    def py_func(self) -> Callable[..., Any]:
        return self.__wrapped__


@typeof_impl.register(CompiledKernel)
@typeof_impl.register(KernelHelper)
def _typeof_kernel(found: CompiledKernel | KernelHelper, context: Any) -> Any:
    """The type that Numba gives to a kernel or helper inside another kernel: a function that it can call."""
    return types.Dispatcher(found.dispatcher)


def kernel(result: Any, *parameters: Any) -> Callable[[F], F]:
    """Compile a function to machine code for exactly these types: ``@kernel(i64, rows, i64)``."""

    def compiled(function: F) -> F:
        return cast(F, CompiledKernel(function, result, parameters))

    return compiled


def inline(function: F) -> F:
    """Declare a helper that only kernels call."""
    return cast(F, KernelHelper(function))


def pasted(function: F) -> F:
    """Declare a helper for innermost loops, where a call, since it counts references to arrays, is too slow.

    Its arrays should be `everview.kernels.rows.unowned`, whose references are not counted.
    """
    return cast(F, PastedHelper(function))
