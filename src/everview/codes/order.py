"""The total order of all values, in plain Python: what the codes and the canonical bytes are held to.

First by type, as `PRECEDENCE` says (a host may fix another), then within the type: false before true, numbers
by size with NaN last and ``-0.0 = 0.0``, text by its UTF-8 bytes, IDs and atoms by their bytes, arrays
element by element and a shorter one before its continuations. NULL is first.

>>> sorted([Symbol("a"), "b", 2.5, 10, True, None], key=atom_key)
[None, True, 10, 2.5, 'b', Symbol('a')]
>>> sorted(["b", 2.5, 10], key=lambda v: atom_key(v, ("STRING", "FLOAT")))
['b', 2.5, 10]
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from everview.errors import SchemaError, WrongType
from everview.types import KINDS, Id, Symbol, Variant, atom_of_class

PRECEDENCE: Final[tuple[str, ...]] = tuple(name for name in KINDS if name not in ("NULL", "STRUCT"))

Key = tuple[Any, ...]


def atom_key(value: Any, precedence: Sequence[str] = PRECEDENCE) -> Key:
    """A key that sorts values as the total order does; types that `precedence` leaves out come last."""
    if value is None:
        return (-1,)
    ranks = _ranks(tuple(precedence))
    if isinstance(value, (list, tuple)):
        return ranks["ARRAY"], tuple(atom_key(v, precedence) for v in value)
    if isinstance(value, Mapping):
        pairs = ((atom_key(k, precedence), atom_key(v, precedence)) for k, v in value.items())
        return ranks["MAP"], tuple(sorted(pairs))
    atom = atom_of_class(type(value))
    if atom is not None:
        return ranks["ATOM"], atom.type.kind, atom.to_bytes(value)
    for python, name, key in _SCALAR_KEYS:
        if isinstance(value, python):
            return ranks[name], key(value)
    raise WrongType(f"{value!r} has no place in the order of values", hint="register its class with register_atom")


@cache
def _ranks(precedence: tuple[str, ...]) -> Mapping[str, int]:
    wrong = [name for name in precedence if name not in PRECEDENCE]
    if wrong or len(set(precedence)) < len(precedence):
        hint = f"name each of these at most once: {', '.join(PRECEDENCE)}"
        raise SchemaError(f"{', '.join(precedence)} is no order of types", hint=hint)
    rest = (name for name in PRECEDENCE if name not in precedence)
    return {name: rank for rank, name in enumerate((*precedence, *rest))}


def _instant(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo else value.replace(tzinfo=dt.UTC)


# A bool is an int and a datetime is a date, to Python: the narrower comes first.
_SCALAR_KEYS: Final[tuple[tuple[type | tuple[type, ...], str, Callable[[Any], Any]], ...]] = (
    (bool, "BOOLEAN", bool),
    (int, "INTEGER", int),
    (float, "FLOAT", lambda v: (v != v, 0.0 if v != v else v)),
    (dt.datetime, "TIMESTAMP", _instant),
    (dt.date, "DATE", dt.date.toordinal),
    (dt.time, "TIME", lambda v: v),
    (dt.timedelta, "DURATION", lambda v: v),
    (decimal.Decimal, "DECIMAL", lambda v: v),
    (str, "STRING", str.encode),
    ((bytes, bytearray, memoryview), "BINARY", bytes),
    (Symbol, "SYMBOL", lambda v: v.name.encode()),
    (Id, "ID", lambda v: v.raw),
    (Variant, "VARIANT", lambda v: v.raw),
)
