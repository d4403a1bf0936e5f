"""Ladybug, which goes on with Kùzu, counting patterns in the same graph by its own worst-case optimal join.

Its best shot: all cores, everything in memory, and a hint for the plan that intersects at every variable; without the
hint it mixes such joins with hash joins, and takes longer for cliques. Time runs from Arrow tables of nodes and edges,
through its columns of neighbours, to the count.
"""

from __future__ import annotations

import time
from typing import Any

import ladybug
import numpy as np
import pyarrow as pa
from isolate import answer, give_up_after
from skewed import VARIABLES, atoms, stream


def query(pattern: Any) -> str:
    """Triangles: ``MATCH (a:V)-[ab:E]->(b:V), … HINT (((a JOIN ab) JOIN b) MULTI_JOIN ac MULTI_JOIN bc) JOIN c``."""
    names = VARIABLES[pattern]
    hint = f"({names[0]} JOIN {names[:2]}) JOIN {names[1]}"
    for at in range(2, len(names)):
        several = " ".join(f"MULTI_JOIN {before}{names[at]}" for before in names[:at])
        hint = f"(({hint}) {several}) JOIN {names[at]}"
    edges = ", ".join(f"({a}:V)-[{a}{b}:E]->({b}:V)" for a, b in atoms(pattern))
    return f"MATCH {edges} HINT {hint} RETURN count(*)"


def measure(pattern: Any, edges: int, limit: int) -> dict[str, Any]:
    given = stream(edges).start
    nodes = pa.table({"id": np.unique(given)})
    edge = pa.table([np.ascontiguousarray(column) for column in given.T], names=["src", "dst"])
    give_up_after(limit)
    connection = ladybug.Connection(ladybug.Database(":memory:"))
    assert "INTERSECT" in _plan(connection, pattern)
    began, worked = time.perf_counter(), time.process_time()
    connection.execute("COPY V FROM $nodes", {"nodes": nodes})
    connection.execute("COPY E FROM $edge", {"edge": edge})
    loaded = time.perf_counter()
    (count,) = connection.execute(query(pattern)).get_next()
    ended = time.perf_counter()
    return {
        "load": {"seconds": ended - began, "cpu": time.process_time() - worked, "query": ended - loaded},
        "counts": [count],
        "version": ladybug.__version__,
    }


def _plan(connection: Any, pattern: Any) -> str:
    connection.execute("CREATE NODE TABLE V(id INT64 PRIMARY KEY)")
    connection.execute("CREATE REL TABLE E(FROM V TO V)")
    return connection.execute(f"EXPLAIN {query(pattern)}").get_next()[0]


if __name__ == "__main__":
    answer(measure)
