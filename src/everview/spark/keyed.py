"""Changes of a view by a key of its rows: which keys are new, which have another row now, and which are gone.

A view is a bag of rows, and its changes are rows with weights. Where one column or several identify a row, an old row
and a new row with the same key are one update. That is what a keyed topic and `MERGE` into a table take.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.errors import SinkError
from everview.types import unknown_name
from everview.zset.batch import Batch

OP: Final = "_everview_op"  # the column that says what to do with a row
INSERT, UPDATE, DELETE = "insert", "update", "delete"


def by_key(view: str, changes: Batch, key: tuple[str, ...]) -> pa.Table:
    """The changes as one row for each key, with `OP`; a deleted row is as it was.

    Raises if a key has two rows, which shows only if both are in the changes.
    """
    for name in key:
        if name not in changes.schema:
            error = unknown_name("column", name, changes.schema.names)
            raise SinkError(f'view "{view}": the key of its sink: {error.message}', hint=error.hint)
    new = changes.weights > 0
    numbers = _numbered(changes, key)
    _require_single(view, changes, key, numbers, new)
    put, gone = numbers[new], numbers[~new]
    replaced = np.isin(numbers, gone) & new
    dropped = ~new & ~np.isin(numbers, put)
    op = np.where(replaced, UPDATE, np.where(new, INSERT, DELETE))
    kept = new | dropped
    rows = changes.to_arrow().drop_columns("_weight").append_column(OP, pa.array(op.tolist(), pa.string()))
    return rows.filter(pa.array(kept))


def _numbered(changes: Batch, key: tuple[str, ...]) -> NDArray[np.intp]:
    """A number for each row, the same where the key is the same: words are equal where values are, NULL included."""
    schema = changes.schema
    words = np.concatenate([changes.rows[:, schema.words(schema.index(name))] for name in key], axis=1)
    return np.unique(words, axis=0, return_inverse=True)[1].reshape(-1)


def _require_single(
    view: str, changes: Batch, key: tuple[str, ...], numbers: NDArray[np.intp], new: NDArray[np.bool_]
) -> None:
    for side in (new, ~new):
        doubled = np.bincount(numbers[side], np.abs(changes.weights[side])) > 1
        if doubled.any():
            place = int(np.flatnonzero(side & doubled[numbers.clip(max=len(doubled) - 1)])[0])
            row = changes.to_arrow().slice(place, 1).select(list(key)).to_pylist()[0]
            shown = ", ".join(f"{name} = {value!r}" for name, value in row.items())
            raise SinkError(
                f'view "{view}" has several rows with {shown}, the key of its sink',
                hint='name all columns that identify a row: key=[…]; or deliver mode="changes"',
            )
