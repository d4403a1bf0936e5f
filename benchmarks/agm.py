"""The AGM bound: how many results a join can have at most, given the sizes of its relations.

It is the least ``Π |Rᵢ|^xᵢ`` over the fractional edge covers x: weights at least 0 that come to at least 1 at every
variable. In logarithms that is a linear program, whose optimum is at a corner; joins here are small, so all corners
are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np


def agm(atoms: Sequence[Sequence[str]], sizes: Sequence[int]) -> float:
    """The bound for these relations over these variables.

    >>> round(agm(["ab", "bc", "ac"], [100, 100, 100]))
    1000
    >>> round(agm(["ab", "bc", "ac"], [1, 100, 100]))
    100
    >>> round(agm(["ab", "bc"], [7, 100]))
    700
    """
    if 0 in sizes:
        return 0.0
    covers = np.array([[name in atom for atom in atoms] for name in sorted({*"".join(map("".join, atoms))})], float)
    least = np.vstack([covers, np.eye(len(atoms))])  # of each row times x
    bounds = np.concatenate([np.ones(len(covers)), np.zeros(len(atoms))])
    logs = np.log(np.array(sizes, float))
    best = float("inf")
    for tight in combinations(range(len(least)), len(atoms)):
        rows = least[list(tight)]
        if abs(np.linalg.det(rows)) < 1e-9:
            continue
        corner = np.linalg.solve(rows, bounds[list(tight)])
        if (least @ corner >= bounds - 1e-9).all():
            best = min(best, float(logs @ corner))
    return float(np.exp(best))
