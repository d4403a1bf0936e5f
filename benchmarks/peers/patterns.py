"""The patterns of the multiway benchmark in SQL."""

from __future__ import annotations

from typing import Any

from skewed import atoms


def query(pattern: Any) -> str:
    """How often a pattern is in the table of edges.

    >>> print(query("triangles"))
    SELECT count(*) FROM edge AS ab, edge AS ac, edge AS bc
    WHERE ab.src = ac.src AND ab.dst = bc.src AND ac.dst = bc.dst
    """
    first: dict[str, str] = {}
    tables: list[str] = []
    equal: list[str] = []
    for atom in atoms(pattern):
        table = "".join(atom)
        tables.append(f"edge AS {table}")
        for column, name in zip(("src", "dst"), atom, strict=True):
            here = f"{table}.{column}"
            if name in first:
                equal.append(f"{first[name]} = {here}")
            first.setdefault(name, here)
    return f"SELECT count(*) FROM {', '.join(tables)}\nWHERE {' AND '.join(equal)}"
