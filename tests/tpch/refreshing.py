"""The tables of TPC-H, and ticks that change them: orders come and go with their lines, other rows are exchanged.

Some orders are held back when the tables are loaded; those come later. An update gives rows of a table the values of
others, so what a query asks for becomes true of other rows.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

compute: Any = pc
KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
Tables = dict[str, pa.Table]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Change:
    """What a tick takes out of a table, and what it puts in."""

    gone: pa.Table
    come: pa.Table

    @property
    def weighted(self) -> pa.Table:
        weights = np.repeat([-1, 1], [self.gone.num_rows, self.come.num_rows])
        return pa.concat_tables([self.gone, self.come]).append_column("_weight", pa.array(weights))


Tick = Mapping[str, Change]


def generated(scale: float, to: Path) -> Tables:
    """The tables at a scale factor; the same rows in every run."""
    command = [str(Path(sysconfig.get_path("scripts")) / "tpchgen-cli"), "parquet", "--quiet", "-s", str(scale)]
    subprocess.run([*command, "--output-dir", str(to)], check=True)
    return {name: _plain(pq.read_table(to / f"{name}.parquet")) for name in KEYS}


def with_answers(tables: Tables) -> Tables:
    """The tables of a small scale, in which some rows have what the queries ask for, so that none has no answer."""
    nations = dict(
        zip(tables["nation"]["n_name"].to_pylist(), tables["nation"]["n_nationkey"].to_pylist(), strict=True)
    )
    asked = [nations[name] for name in ("FRANCE", "GERMANY", "CANADA", "SAUDI ARABIA", "BRAZIL")]
    part, supplier = tables["part"], tables["supplier"]
    for place, (column, value) in enumerate(
        (
            ("p_name", "forest green"),
            ("p_type", "ECONOMY ANODIZED STEEL"),
            ("p_brand", "Brand#23"),
            ("p_brand", "Brand#12"),
        )
    ):
        part = _set(part, column, range(place, part.num_rows, 10), [value])
    part = _set(part, "p_container", range(2, part.num_rows, 10), ["MED BOX"])
    part = _set(_set(part, "p_container", range(3, part.num_rows, 10), ["SM CASE"]), "p_size", range(3, 400, 10), [3])
    return tables | {"part": part, "supplier": _set(supplier, "s_nationkey", range(2 * len(asked)), asked)}


def _set(table: pa.Table, column: str, places: Iterable[int], values: list[Any]) -> pa.Table:
    """The table with values, in turn, in some places of a column."""
    whole = table[column].to_pylist()
    for number, place in enumerate(places):
        whole[place] = values[number % len(values)]
    field = table.schema.field(column)
    return table.set_column(table.schema.get_field_index(column), field, pa.array(whole, field.type))


def _plain(table: pa.Table) -> pa.Table:
    """With text as Arrow can take it from everywhere in a column."""
    texts = [pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type) for f in table.schema]
    return table.cast(pa.schema(texts))


class Refreshing:
    """Tables under change."""

    def __init__(self, tables: Tables, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tables = dict(tables)
        keys = tables["orders"]["o_orderkey"].to_numpy()
        self._held_back = self._of_orders(self._chosen(keys, keys.size // 10))
        self._remove(self._held_back)

    def ticks(self, shares: Iterable[float]) -> Iterator[Tick]:
        """Each inserts and deletes a share of the orders, and exchanges rows of another table.

        Then one that changes nothing, and one after which there are no orders.
        """
        others = ("customer", "part", "supplier", "partsupp")
        for number, share in enumerate(shares):
            tick = self._refresh(share) | self._exchanged(others[number % len(others)])
            yield self._done(tick)
        yield {"orders": Change(self.tables["orders"].slice(0, 9), self.tables["orders"].slice(0, 9))}
        nothing = {name: self.tables[name].slice(0, 0) for name in ("orders", "lineitem")}
        yield self._done({name: Change(self.tables[name], nothing[name]) for name in nothing})

    def _refresh(self, share: float) -> dict[str, Change]:
        size = int(self.tables["orders"].num_rows * share)
        come = self._held_back["orders"]["o_orderkey"].to_numpy()
        comes = _with_keys(self._held_back, self._chosen(come, size))
        goes = self._of_orders(self._chosen(self.tables["orders"]["o_orderkey"].to_numpy(), size))
        self._held_back = {
            name: pa.concat_tables([_without(self._held_back[name], comes[name], KEYS[name]), goes[name]])
            for name in goes
        }
        return {name: Change(goes[name], comes[name]) for name in goes}

    def _exchanged(self, name: str) -> dict[str, Change]:
        """Some rows of a table get the other columns of others."""
        table = self.tables[name]
        places = self._chosen(np.arange(table.num_rows), 20)
        old, new = table.take(places), table.take(np.roll(places, 1))
        for column in KEYS[name]:
            new = new.set_column(table.schema.get_field_index(column), table.schema.field(column), old[column])
        return {name: Change(old, new)}

    def _done(self, tick: Tick) -> Tick:
        for name, change in tick.items():
            left = _without(self.tables[name], change.gone, KEYS[name])
            self.tables[name] = pa.concat_tables([left, change.come])
        return tick

    def _of_orders(self, keys: Places) -> Tables:
        return _with_keys(self.tables, keys)

    def _remove(self, gone: Tables) -> None:
        for name, rows in gone.items():
            self.tables[name] = _without(self.tables[name], rows, KEYS[name])

    def _chosen(self, among: Places, size: int) -> Places:
        return self.random.choice(among, min(size, among.size), replace=False)


def _with_keys(tables: Tables, keys: Places) -> Tables:
    """The orders with these keys, and their lines."""
    wanted = pa.array(keys)
    return {
        name: tables[name].filter(compute.is_in(tables[name][KEYS[name][0]], wanted)) for name in ("orders", "lineitem")
    }


def _without(table: pa.Table, gone: pa.Table, key: tuple[str, ...]) -> pa.Table:
    taken = set(zip(*(gone[column].to_pylist() for column in key), strict=True))
    kept = [row not in taken for row in zip(*(table[column].to_pylist() for column in key), strict=True)]
    return table.filter(pa.array(kept, pa.bool_()))
