"""Structured arrays of NumPy whose fields are words already: whole numbers of 64 bits, for columns of these.

Such an array is a matrix of words but for the order of its columns. All others become Arrow tables first.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, amount BIGINT NOT NULL")
>>> fields = [("amount", "i8"), ("id", "i8"), ("_weight", "i8")]
>>> array_rows(schema, np.array([(5, 1, 1), (7, 2, -1)], fields)).tolist()
[[1, 5, 1], [2, 7, -1]]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from everview.codes.encode import WEIGHT
from everview.codes.packing import is_whole
from everview.types import Schema
from everview.types.words import Matrix, Words

WORD = np.dtype(np.int64)


def array_rows(schema: Schema, array: np.ndarray[Any, Any]) -> Matrix | None:
    """The delta matrix of a structured array, a copy; None if a column or a field is not of whole numbers."""
    places = _places(schema, array.dtype)
    if places is None or array.ndim != 1 or not array.size:
        return None
    words = np.ascontiguousarray(array).view(WORD).reshape(array.size, -1)
    if places.size > len(schema.fields):
        return np.take(words, places, axis=1)
    out = np.ones((array.size, places.size + 1), WORD)
    np.take(words, places, axis=1, out=out[:, :-1])
    return out


@cache
def _places(schema: Schema, fields: np.dtype[Any]) -> Words | None:
    """For each column the place of its field, and that of the weight, if there is one, last; None if there are others.

    A field that is missing, or too many, is a mistake that others tell.
    """
    offsets = {name: offset for name, (kind, offset, *_) in (fields.fields or {}).items() if kind == WORD}
    columns = [*schema.names, WEIGHT] if WEIGHT in offsets else [*schema.names]
    packed = fields.itemsize == WORD.itemsize * len(columns) and offsets.keys() == {*columns}
    if not packed or any(offset % WORD.itemsize for offset in offsets.values()):
        return None
    if not is_whole(schema) or WEIGHT in schema.names:
        return None
    return np.array([offsets[name] for name in columns], np.int64) // WORD.itemsize
