"""Machine code of kernels on disk: loaded without what only a compiler needs, and valid while its sources are the same.

Numba keeps two forms of a kernel: machine code, which runs, and LLVM's bitcode, which other kernels are compiled with.
When it loads a kernel, it imports the whole compiler and reads both. Here the compiler is imported, and the bitcode
read, when something is compiled: in a process that finds its kernels in the cache, never.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.core import environment
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime.nrt import rtsys
from numba.extending import typeof_impl
from numba.np import numpy_support

PACKAGE = "everview.kernels"

_environments: Any = environment
_rebuild_environment = _environments._rebuild_env
_type_of_array: Any = typeof_impl.dispatch(np.ndarray)


@typeof_impl.register(np.ndarray)
def _typeof_array(array: Any, context: Any) -> Any:
    """The type of an array: Numba's answer, which asks whether the array is masked, and so imports what those are."""
    if type(array) is not np.ndarray or array.dtype.kind not in "biuf" or not array.dtype.isnative:
        return _type_of_array(array, context)
    layout = numpy_support.map_layout(array)
    return types.Array(numpy_support.from_dtype(array.dtype), array.ndim, layout, readonly=not array.flags.writeable)


class LoadedLibrary(JITCodeLibrary):
    """A library of Numba's that was loaded as machine code: its bitcode is read when it is linked to another."""

    _bitcode: bytes = b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        library = codegen.create_library(name)
        machine_code, library._bitcode = data
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        return library

    def _get_module_for_linking(self) -> Any:
        if self._bitcode:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
            self._engine._load_defined_symbols(self._shared_module)
            self._bitcode = b""
        return super()._get_module_for_linking()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; 0 if there is none. Which functions there are, the bitcode would tell."""
        if self._bitcode:
            return self._engine.get_function_address(name)
        return super().get_pointer_to_function(name)

    @property
    def _engine(self) -> Any:
        codegen: Any = self._codegen
        return codegen._engine


def load_plainly(compiled: Any, missed: Callable[[], None]) -> None:
    """Make a dispatcher of Numba's load cached machine code and nothing else, and call ``missed`` if there is none.

    Before it looks into the cache, Numba imports and registers everything that it can compile: the longest part of a
    program's start. Code from the cache does without; if there is none, the compiler imports what it needs.
    """
    cache = compiled._cache
    plain = hasattr(cache, "_load_overload") and hasattr(cache, "_guard_against_spurious_io_errors")
    whole = cache.load_overload

    def load_overload(signature: Any, context: Any) -> Any:
        if plain:
            rtsys.initialize(context)  # the functions that machine code calls: for memory, and to make arrays of it
            with cache._guard_against_spurious_io_errors(), _machine_code_alone(context.codegen()):
                loaded = cache._load_overload(signature, context)
        else:
            loaded = whole(signature, context)
        if loaded is None:
            missed()
        return loaded

    cache.load_overload = load_overload


@contextmanager
def _machine_code_alone(codegen: Any) -> Generator[None]:
    """Libraries made meanwhile are `LoadedLibrary`, which to everybody else is the class that Numba makes."""
    usual = codegen._library_class
    codegen._library_class = LoadedLibrary if usual is JITCodeLibrary else usual
    _environments._rebuild_env = _environment
    try:
        yield
    finally:
        codegen._library_class, _environments._rebuild_env = usual, _rebuild_environment


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """The environment of a function in machine code. Numba's own functions never look into their module's.

    So their modules, which are the compiler's, are not imported for it.
    """
    known = _environments.Environment._memo
    if name in known or module in sys.modules or not module.startswith("numba."):
        return _rebuild_environment(module, constants, name)
    made: Any = environment.Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    known[name] = made
    return made


def stamp(compiled: Any, module: str) -> None:
    """Make cached machine code valid only while all source files that it was compiled from are unchanged.

    Numba compares only the file of the function itself, but its machine code contains helpers of other modules.
    """
    file: Any = getattr(compiled._cache, "_cache_file", None)
    if module.startswith(PACKAGE) and hasattr(file, "_source_stamp"):
        file._source_stamp = tuple(sorted(map(_file_stamp, modules_of(module))))


@cache
def modules_of(module: str) -> frozenset[str]:
    """A module of kernels, and those that it imports, directly or not."""
    reached, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _imports(name)
    return frozenset(reached)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The modules of kernels that a module imports directly, read off its source."""
    text = _path(module).read_text(encoding="utf-8")
    names = [f"{PACKAGE}.{name}" for name in re.findall(rf"^from {PACKAGE}\.(\w+) import", text, re.MULTILINE)]
    for listed in re.findall(rf"^from {PACKAGE} import (\([^)]+\)|.+)$", text, re.MULTILINE):
        names += [f"{PACKAGE}.{name.split()[0]}" for name in listed.strip("()").split(",") if name.strip()]
    return tuple(names)


@cache
def _file_stamp(module: str) -> tuple[str, float, int]:
    status = _path(module).stat()
    return module, status.st_mtime, status.st_size


def _path(module: str) -> Path:
    return Path(str(sys.modules[module].__file__))
