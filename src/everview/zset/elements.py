"""When two elements of a Z-set are the same, and which comes first.

Python says ``True == 1 == 1.0`` and ``nan != nan``; a relation must not. Here a value is its type and its
content: ``True``, ``1`` and ``1.0`` are three elements, NaN equals itself, ``-0.0`` is ``0.0``; and so inside
tuples, lists and dicts (which count as values: do not change them). The order is by type (``None``, booleans,
integers, floats, …, then containers), within a type the natural one, NaN last.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from everview.errors import WrongType
from everview.types import Id, Symbol, Variant

NAN = "NaN"  # in place of a value that does not equal itself


def identity(element: Any) -> Hashable:
    """A key that is equal for two elements exactly when they are the same element.

    >>> len({identity(x) for x in (1, 1.0, True, (1,), (True,), [1])})
    6
    >>> identity((float("nan"), -0.0)) == identity((float("nan"), 0.0))
    True
    """
    kind = type(element)
    if element is None or kind is str or kind is int:
        return element  # no key of another kind equals these: the others are tuples that begin with a type
    if isinstance(element, np.generic):
        return identity(element.item())
    try:
        return _inside(element)
    except RecursionError:
        raise WrongType("an element of a Z-set is nested too deeply", hint="use flat tuples") from None


def _inside(element: Any) -> Hashable:
    kind = type(element)
    if isinstance(element, tuple):
        return (tuple, *map(identity, element))
    if kind is list:
        return (list, *map(identity, element))
    if isinstance(element, Mapping):
        return (dict, frozenset((identity(key), identity(value)) for key, value in element.items()))
    if isinstance(element, frozenset):
        return (frozenset, frozenset(map(identity, element)))
    try:
        key = (kind, NAN if element != element else element)
        hash(key)
    except Exception:  # noqa: BLE001, arrays and frames, a signalling NaN: each has its own
        raise WrongType(
            f"a {kind.__name__} cannot be an element of a Z-set", hint="elements are immutable: use a tuple"
        ) from None
    return key


_PRECEDENCE: dict[type, int] = {
    kind: place
    for place, kind in enumerate(
        (
            type(None),
            bool,
            int,
            float,
            decimal.Decimal,
            str,
            Symbol,
            Id,
            Variant,
            bytes,
            dt.date,
            dt.datetime,
            dt.time,
            dt.timedelta,
            uuid.UUID,
            tuple,
            list,
            dict,
            frozenset,
        )
    )
}
_LAST = len(_PRECEDENCE)


def position(element: Any) -> tuple[Any, ...]:
    """A key that sorts any elements: by type, then by value, and what has no order of its own by its text.

    >>> sorted([(2, "b"), "z", (2, "a"), 1.5, None, True, 7], key=position)
    [None, True, 7, 1.5, 'z', (2, 'a'), (2, 'b')]
    """
    if isinstance(element, np.generic):
        return position(element.item())
    kind = tuple if isinstance(element, tuple) else type(element)
    place = _PRECEDENCE.get(kind, _LAST)
    if kind is tuple or kind is list:
        return (place, *map(position, element))
    if isinstance(element, Mapping):
        pairs = sorted((position(key), position(value)) for key, value in element.items())
        return (_PRECEDENCE[dict], *pairs)
    if kind is frozenset:
        return (place, *sorted(map(position, element)))
    if element is None:
        return (place,)
    if place == _LAST:
        return (place, kind.__qualname__, repr(element))
    if isinstance(element, dt.datetime | dt.time):
        return (place, element.utcoffset() is not None, element)  # a naive and an aware time do not compare
    if element != element:
        return (place, True, 0)
    return (place, False, element)
