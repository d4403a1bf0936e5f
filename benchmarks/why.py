"""Why a row is there: the time that `db.why` takes for rows of a recursive view, a join and an aggregate.

A forest of chains is closed transitively: a row of the view joins two nodes of a chain, and is explained by the edges
between them. Nothing is kept for explanations, so what they cost is found when they are asked for.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale

import everview as ev

NODES = 45  # of a chain, which has 990 rows in its closure
ASKED = 50  # rows


def rows_of(chains: int) -> dict[str, Any]:
    """Rows of the views, and milliseconds of CPU: the first answer, the median of others, and the largest of them."""
    db = ev.connect()
    db.sql("CREATE TABLE edge (src BIGINT NOT NULL, dst BIGINT NOT NULL)")
    db.datalog("reach(x, y) :- edge(x, y). reach(x, z) :- reach(x, y), edge(y, z).")
    db.sql("CREATE MATERIALIZED VIEW fan AS SELECT x, count(*) AS n FROM reach GROUP BY x")
    first = np.arange(chains * NODES).reshape(chains, NODES)
    edges = {"src": first[:, :-1].ravel(), "dst": first[:, 1:].ravel()}
    db.apply({"edge": pa.table(edges)})
    draw = np.random.default_rng(7)
    seconds: list[float] = []
    for chain in draw.integers(0, chains, ASKED).tolist():
        source = chain * NODES + int(draw.integers(0, 5))
        target = source + int(draw.integers(15, 35))
        began = time.process_time()
        told = db.why("reach", (source, target))
        seconds.append(time.process_time() - began)
        assert len(told.base_rows()["edge"]) == target - source
    began = time.process_time()
    counted = db.why("fan", (0, NODES - 1))
    group = time.process_time() - began
    assert counted.base_rows()
    return {
        "rows": len(db.view("reach")),
        "first": 1e3 * seconds[0],
        "median": 1e3 * statistics.median(seconds[1:]),
        "most": 1e3 * max(seconds[1:]),
        "group": 1e3 * group,
    }


def findings(scale: Scale) -> Findings:
    found = Findings("Why a row is there")
    told = measured("why.py", chains=max(20, scale.orders // 1_000))
    about = f"a row of a recursive view of {told['rows']:,} rows"
    found.add(f"{about}, the first one that is explained", told["first"], "ms")
    found.add(f"{about}, median of {ASKED - 1}", told["median"], "ms", AtMost(50))
    found.add(f"{about}, the longest", told["most"], "ms")
    found.add(f"a group of {NODES - 1} rows over that view", told["group"], "ms")
    found.raw = {"why": told}
    return found


if __name__ == "__main__":
    answer(rows_of)
