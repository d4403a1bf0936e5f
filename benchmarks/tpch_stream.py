"""The tables of TPC-H, its queries, and refresh ticks: orders that come with their lines, and others that go.

Made once by `tpchgen-cli`, with a fixed seed for what comes and goes, and kept in `benchmarks/data`. A tick inserts a
thousandth of the orders, which the load holds back, and deletes as many that it has; their lines come and go with
them.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from stream import DATA, SEED

NAMES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
KEYS = {"orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber")}  # of the tables that change
SHARE = 0.001  # of the orders, a tick

_texts = runpy.run_path(str(Path(__file__).parent.parent / "tests" / "frontends" / "sql" / "tpch.py"))
TABLES: str = _texts["TABLES"]
QUERIES: dict[int, str] = _texts["QUERIES"]


def stream(scale: float, ticks: int) -> Path:
    """The folder of the tables at a scale factor, and of so many ticks; made if it is not there."""
    home = DATA / f"tpch-{scale:g}x{ticks}"
    if not home.exists():
        unfinished = home.with_suffix(".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        _generate(scale, unfinished)
        _hold_back(unfinished, ticks)
        unfinished.rename(home)
    return home


def table(home: Path, name: str) -> pa.Table:
    """A table as it is loaded."""
    return _plain(pq.read_table(home / f"{name}.parquet"))


def tick(home: Path, number: int, sign: int = 1) -> dict[str, pa.Table]:
    """The changes of a tick: the rows with their weights; with the sign -1 they take it back."""
    return {name: _signed(pq.read_table(home / f"{name}-{number}.parquet"), sign) for name in KEYS}


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    weights = rows["_weight"].to_numpy() * sign
    return rows.set_column(rows.num_columns - 1, "_weight", pa.array(weights))


def digest(columns: list[list[Any]]) -> dict[str, Any]:
    """What two results must agree on: how many rows, the texts, and the sums of the numbers."""
    texts = sorted(str(v) for column in columns for v in column if not _is_number(v))
    numbers = [float(sum(v for v in column if _is_number(v))) for column in columns]
    return {"rows": len(columns[0]), "texts": "|".join(texts), "numbers": numbers}


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Averages and quotients have fewer digits in Spark's types than in doubles."""
    close = np.allclose(ours["numbers"], theirs["numbers"], rtol=1e-4)
    return ours["rows"] == theirs["rows"] and ours["texts"] == theirs["texts"] and bool(close)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__")


def _generate(scale: float, to: Path) -> None:
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run([program, "parquet", "--quiet", "-s", f"{scale:g}", "--output-dir", to], check=True)


def _hold_back(home: Path, ticks: int) -> None:
    random = np.random.default_rng([SEED, ticks])
    orders, lines = table(home, "orders"), table(home, "lineitem")
    keys, of_lines = orders["o_orderkey"].to_numpy(), lines["l_orderkey"].to_numpy()
    size = max(1, round(len(keys) * SHARE))
    shuffled = random.permutation(keys)
    come, go = shuffled[: size * ticks].reshape(ticks, size), shuffled[size * ticks : 2 * size * ticks]
    for number, (coming, going) in enumerate(zip(come, go.reshape(ticks, size), strict=True)):
        for name, rows, of in (("orders", orders, keys), ("lineitem", lines, of_lines)):
            pq.write_table(_weighted(rows, np.isin(of, going), np.isin(of, coming)), home / f"{name}-{number}.parquet")
    for name, rows, of in (("orders", orders, keys), ("lineitem", lines, of_lines)):
        pq.write_table(rows.filter(pa.array(~np.isin(of, come))), home / f"{name}.parquet")


def _weighted(rows: pa.Table, going: np.ndarray, coming: np.ndarray) -> pa.Table:
    parts = [rows.filter(pa.array(chosen)) for chosen in (going, coming)]
    weights = np.repeat([-1, 1], [part.num_rows for part in parts])
    return pa.concat_tables(parts).append_column("_weight", pa.array(weights))


def _plain(rows: pa.Table) -> pa.Table:
    """With text as all versions of Arrow know it."""
    fields = [pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type) for f in rows.schema]
    return rows.cast(pa.schema(fields))
