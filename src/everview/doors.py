"""Doors: public functions that check the kinds of their arguments, so that a mistake is named where it was made.

A door's signature is its contract. Its annotations say what may come in, and anything else is a `WrongType` that
names the function, the parameter and what was given, before anything else happens. What no annotation can say (a name
that does not exist, a number out of range) is checked inside of the function.

>>> @door
... def repeat(text: str, times: int = 1) -> str:
...     return text * times
>>> repeat("ab", 2)
'abab'
>>> repeat("ab", times=True)
Traceback (most recent call last):
    ...
everview.errors.WrongType: repeat: times is True, not a whole number
  hint: it is called as repeat(text, times=1)
"""

from __future__ import annotations

import collections.abc
import errno
import inspect
import numbers
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, wraps
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, Literal, ParamSpec, TextIO, TypeVar, Union, get_args, get_origin

from everview.errors import EverviewError, WrongType, shown
from everview.later import Resolved

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_TEXTS: Final = (str, bytes, bytearray)
_NAMES: Final = {str}
_LISTS: Final = (collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable, list, tuple)


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one parameter; it remembers the classes of values that passed, and lets these in at once."""

    name: str
    place: int  # among the positional arguments; beyond all of them if it has to be named
    hint: Any
    known: set[type] = field(default_factory=set[type])
    by_name: bool = False  # whether it takes anything under names: what a change of tables is, at every tick

    def lets_in(self, value: Any) -> bool:
        if type(value) in self.known or (self.by_name and type(value) is dict and {*map(type, value)} == _NAMES):
            return True
        if not fits(value, self.hint):
            return False
        if not isinstance(value, collections.abc.Iterable) or self.hint is str:
            self.known.add(type(value))  # all of its values are let in, whatever they hold
        return True


def door(function: Callable[P, R], error: type[EverviewError] = WrongType) -> Callable[P, R]:
    """The function as a door: it first checks its arguments against its annotations."""
    checks: list[Check] = []
    starred: list[Check] = []  # of a parameter *names, which takes all further arguments
    by_count: dict[int, list[Check]] = {}  # the checks of calls with so many arguments, none of them named
    ready = False

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal ready
        given = len(args)
        if not kwargs and given in by_count:
            for check in by_count[given]:
                value = args[check.place]
                if type(value) not in check.known and not check.lets_in(value):
                    raise _refusal(error, function, check, value)
            return function(*args)  # pyright: ignore[reportCallIssue], Python itself says what is missing
        if not ready:  # only now every name of an annotation is known
            checks[:], starred[:] = _checks(function)
            ready = True
        if not starred:
            by_count[given] = [check for check in checks if check.place < given]
        for check in checks:
            if check.place < given:
                value = args[check.place]
            elif check.name in kwargs:
                value = kwargs[check.name]
            else:
                continue
            if type(value) not in check.known and not check.lets_in(value):
                raise _refusal(error, function, check, value)
        for check in starred:
            for value in args[check.place :]:
                if not check.lets_in(value):
                    raise _refusal(error, function, check, value)
        return function(*args, **kwargs)

    return checked


def inside(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a method of a class with `doors` as no door: only the library calls it, at every tick."""
    function.__inside__ = True  # pyright: ignore[reportFunctionMemberAccess]
    return function


def doors(error: type[EverviewError] = WrongType) -> Callable[[C], C]:
    """Make doors of all public methods and constructors of a class; they refuse by an error of this kind."""
    return lambda cls: _with_doors(cls, error)


def _with_doors(cls: C, error: type[EverviewError]) -> C:
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            if not hasattr(member, "__inside__") and _takes_more_than_self(member):
                setattr(cls, name, door(member, error))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(door(member.__func__, error)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return cls


def _takes_more_than_self(method: Callable[..., Any]) -> bool:
    code = method.__code__
    starred = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return bool(starred) or code.co_argcount + code.co_kwonlyargcount > 1


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation names; the items of lists, tuples and dicts, too.

    >>> fits(3, int | None), fits(True, int), fits("ab", list[str]), fits([], list[str]), fits([1], list[str])
    (True, False, False, True, False)
    """
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    if hasattr(hint, "__supertype__"):  # a NewType
        return fits(value, hint.__supertype__)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    kind = origin or hint
    if not isinstance(kind, type):
        return True
    if kind is collections.abc.Callable:
        return callable(value)
    if kind in (bool, int, float):
        return _is_number(value, kind)
    if kind in _LISTS and (isinstance(value, _TEXTS) or getattr(value, "ndim", 1) == 0):
        return False
    return _is_instance(value, kind) and _holds(value, kind, get_args(hint))


def _holds(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Whether the items of a collection fit its annotation; a value that iterates only once is not looked into."""
    if not parts:
        return True
    if isinstance(value, collections.abc.Mapping) and len(parts) == 2:
        return all(fits(key, parts[0]) and fits(held, parts[1]) for key, held in value.items())  # pyright: ignore[reportUnknownVariableType]
    if kind not in _LISTS or parts[0] is Any or not isinstance(value, collections.abc.Collection):
        return True
    if kind is tuple and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(fits, value, parts))  # pyright: ignore[reportUnknownArgumentType]
    check = _item_check(parts[0])
    return check.known.issuperset(map(type, value)) or all(map(check.lets_in, value))  # pyright: ignore[reportUnknownArgumentType]


@cache
def _item_check(hint: Any) -> Check:
    """The check of the items of collections with this annotation."""
    return Check("item", 0, hint)


def _is_number(value: Any, kind: type) -> bool:
    name = type(value).__name__
    if name in ("bool", "bool_"):  # NumPy's, too
        return kind is bool
    if name == "timedelta64":  # which NumPy takes for an integer
        return False
    return kind is not bool and isinstance(value, numbers.Integral if kind is int else numbers.Real)


def _is_instance(value: Any, kind: type) -> bool:
    if issubclass(kind, IO):  # an annotation that no file is an instance of
        return hasattr(value, "readline")
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return True
    return isinstance(value, kind)


def _checks(function: Callable[..., Any]) -> tuple[list[Check], list[Check]]:
    checks: list[Check] = []
    starred: list[Check] = []
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        hint = _hint(function, parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD or hint is Any:
            continue
        position = sys.maxsize if parameter.kind is parameter.KEYWORD_ONLY else place
        group = starred if parameter.kind is parameter.VAR_POSITIONAL else checks
        group.append(Check(parameter.name, position, hint, by_name=_is_by_name(hint)))
    return checks, starred


def _is_by_name(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(_is_by_name, get_args(hint)))
    return get_origin(hint) is collections.abc.Mapping and get_args(hint) == (str, Any)


def _hint(function: Callable[..., Any], annotation: Any) -> Any:
    """The type that an annotation means; `Any` if its names exist only for the type checker."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    try:
        names = getattr(function, "__globals__", {})
        return eval(annotation, names, Resolved(names))
    except NameError:
        return Any


def _refusal(error: type[EverviewError], function: Callable[..., Any], check: Check, value: Any) -> EverviewError:
    signature = inspect.signature(function)
    title = function.__qualname__.split(".")
    called = title[-2] if title[-1] == "__init__" else title[-1]
    if len(title) > 1 and title[-1] != "__init__" and "self" not in signature.parameters:
        called = ".".join(title[-2:])  # Schema.parse, which no object has
    said = f"{called}: {check.name} {_misfit(value, check.hint)}"
    return error(said, hint=f"it is called as {called}({_parameters(signature)})")


def _misfit(value: Any, hint: Any) -> str:
    """The part of a value that does not fit, in words: the whole, or one of its items."""
    for part in _parts(hint):
        kind, parts = get_origin(part) or part, get_args(part)
        if kind not in (*_LISTS, collections.abc.Mapping) or not parts or not fits(value, kind):
            continue
        if kind is collections.abc.Mapping:
            pairs = [(each, hint) for pair in value.items() for each, hint in zip(pair, parts, strict=True)]  # pyright: ignore[reportUnknownVariableType]
        else:
            pairs = [(each, parts[0]) for each in value]
        for each, wish in pairs:  # pyright: ignore[reportUnknownVariableType]
            if not fits(each, wish):
                return f"holds {shown(each)}, not {wanted(wish)}"
    return f"is {shown(value)}, not {wanted(hint)}"


def _parameters(signature: inspect.Signature) -> str:
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return str(inspect.Signature(plain))[1:-1]


_WORDS: Final[dict[Any, str]] = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    bytes: "bytes",
    TextIO: "an open file of text",
    collections.abc.Callable: "a function",
    collections.abc.Mapping: "a dict",
    None: "None",
    type(None): "None",
    **dict.fromkeys(_LISTS, "a list"),
    tuple: "a tuple",
}


@cache
def wanted(hint: Any) -> str:
    """An annotation in words.

    >>> wanted(str | None), wanted(int | float | list[str])
    ('text or None', 'a whole number, a number or a list')
    """
    words = list(dict.fromkeys(chain.from_iterable(map(_words, _parts(hint)))))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def path_of(given: str | Path, error: type[EverviewError]) -> Path:
    """A path that the file system accepts, whether there is a file or not."""
    try:
        Path(given).stat()
    except ValueError as wrong:
        why = "it is no valid text" if isinstance(wrong, UnicodeEncodeError) else "there is a NUL in its name"
        raise error(f"{shown(str(given))} can be no path: {why}", hint="give another path") from None
    except OSError as wrong:
        if wrong.errno == errno.ENAMETOOLONG:
            raise error(f"{shown(str(given))} can be no path: a name is too long", hint="give another path") from None
    return Path(given)


def _parts(hint: Any) -> Iterable[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return chain.from_iterable(map(_parts, get_args(hint)))
    return (hint,)


def _words(hint: Any) -> Iterable[str]:
    if get_origin(hint) is Literal:
        return map(repr, get_args(hint))
    kind = get_origin(hint) or hint
    return (_WORDS.get(kind) or f"a {getattr(kind, '__name__', kind)}",)
