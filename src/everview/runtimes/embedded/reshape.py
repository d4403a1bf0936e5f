"""Tables whose columns have changed: the rows that a state holds, as the new columns have them.

A column that is new is NULL in every row that is held, one that is gone is left out, and one that is wider has the
same values; entries of maps become maps. A row is what it was otherwise, and weighs the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.dictionary import Dictionary
from everview.errors import DefinitionError
from everview.traces.store import State
from everview.types import COMPOSITE, Array, Field, MapType, Schema, Struct, Type
from everview.types.widening import fits_in
from everview.zset.batch import Batch

WEIGHT = "_weight"
Refusal = tuple[str, str]  # why something cannot be done, and what to do instead


@dataclass(frozen=True, slots=True)
class Reshape:
    """A table that is stored with some columns, and is to have others; ``key`` is its new key."""

    name: str
    trace: str
    before: Schema
    after: Schema
    key: tuple[str, ...]

    def differences(self) -> list[str]:
        """The differences, column by column.

        >>> before, after = Schema.parse("id INTEGER NOT NULL, x STRING"), Schema.parse("id BIGINT NOT NULL, y DATE")
        >>> Reshape("t", "…", before, after, ("id",)).differences()
        ['column "y" is new, NULL in the rows held', 'column "x" is gone', 'column "id" was INTEGER NOT NULL']
        """
        old, new = _by_name(self.before), _by_name(self.after)
        told = [f'column "{name}" is new, NULL in the rows held' for name in new if name not in old]
        told += [f'column "{name}" is gone' for name in old if name not in new]
        told += [f'column "{name}" was {_spelled(old[name])}' for name in new if name in old and old[name] != new[name]]
        return told or ["it is stored in another way"]

    @property
    def keeps_key(self) -> bool:
        """Whether rows are told apart by the same words as before, and so are on the same shards."""
        old, new = _by_name(self.before), _by_name(self.after)
        first = self.before.names[: len(self.key)] == self.key
        return bool(self.key) and first and all(old.get(name) == new[name] for name in self.key)

    def refusals(self) -> Iterator[Refusal]:
        """Why the rows cannot become those of the new columns, as far as the columns alone tell."""
        old = _by_name(self.before)
        for field in self.after:
            was, column = old.get(field.name), f'source {self.name}: column "{field.name}"'
            if was is None and field.name in self.key:
                yield f"{column} is new and of the key, and the rows held have no value for it", _ANEW
            elif was is None and not field.nullable:
                yield (
                    f"{column} is new and NOT NULL, and the rows held have no value for it",
                    "let it be NULL: leave NOT NULL out of the source's schema",
                )
            elif was is not None and not _becomes(was, field):
                yield (
                    f"{column} is {field.type.sql}, and the rows held have {was.type.sql}, which is not narrower",
                    f"keep it as {was.type.sql}: cast it in the frame, or name it in the source's schema",
                )

    def rows(self, stored: State, dictionary: Dictionary) -> pa.Table:
        """The rows that a state holds, with the new columns and their weights."""
        held = self._held(stored, dictionary).to_arrow()
        columns = [self._column(field, held) for field in self.after]
        rows: Any = pa.Table.from_arrays([*columns, held.column(WEIGHT)], names=[*self.after.names, WEIGHT])
        self._check_key(rows)
        return rows

    def _held(self, stored: State, dictionary: Dictionary) -> Batch:
        shards: Sequence[int] = sorted(shard for name, shard in stored.manifest.slices if name == self.trace)
        slices = [part.array for shard in shards for part in stored.slices(self.trace, shard)]
        nothing = np.empty((0, self.before.width + 1), np.int64)
        return Batch.consolidated(self.before, np.concatenate([nothing, *slices]), dictionary)

    def _column(self, field: Field, held: pa.Table) -> Any:
        if field.name not in self.before.names:
            arrow: Any = field.type.arrow
            return pa.nulls(held.num_rows, arrow)
        column = held.column(field.name)
        if not field.nullable and column.null_count:
            raise DefinitionError(
                f'source {self.name}: column "{field.name}" is NOT NULL, and {column.null_count:,} rows held have NULL',
                hint="let it be NULL, or change these rows first",
            )
        if isinstance(field.type, MapType) and column.type != field.type.arrow:
            return _as_maps(column.combine_chunks(), field.type)
        return column if column.type == field.type.arrow else pc.cast(column, field.type.arrow)

    def _check_key(self, rows: pa.Table) -> None:
        if not self.key:
            return
        keys = rows.select(list(self.key)).group_by(list(self.key)).aggregate([]).num_rows
        heaviest: Any = pc.max(rows.column(WEIGHT)).as_py() if rows.num_rows else 1
        if keys < rows.num_rows or heaviest != 1:
            raise DefinitionError(
                f"source {self.name}: several of the rows held have the same {', '.join(self.key)}, its key now",
                hint=_ANEW,
            )


_ANEW = "keep the key as it was, or start anew in an empty directory"


def _becomes(was: Field, now: Field) -> bool:
    composite = isinstance(now.type, COMPOSITE)
    if isinstance(now.type, MapType) and _is_entries(was.type, now.type):
        return True
    return was.type == now.type or (not composite and fits_in(was.type, now.type))


def _is_entries(was: Type, now: MapType) -> bool:
    """Whether a type is ARRAY<STRUCT<key, value>>, the stored form of maps in older states."""
    inner = was.element if isinstance(was, Array) else None
    fields = inner.fields if isinstance(inner, Struct) else ()
    return [(f.name, f.type) for f in fields] == [("key", now.key), ("value", now.value)]


def _as_maps(entries: Any, type_: MapType) -> Any:
    """Lists of entries as maps."""
    lengths = pc.list_value_length(entries).fill_null(0).to_numpy(zero_copy_only=False)
    ends: Any = pa.array(np.cumsum([0, *lengths]).astype(np.int32))
    inner = entries.flatten()
    arrow: Any = type_.arrow
    key, value = pc.struct_field(inner, [0]), pc.struct_field(inner, [1])
    return pa.MapArray.from_arrays(ends, key, value, type=arrow, mask=entries.is_null())


def _by_name(schema: Schema) -> dict[str, Field]:
    return {field.name: field for field in schema}


def _spelled(field: Field) -> str:
    return field.type.sql if field.nullable else f"{field.type.sql} NOT NULL"
