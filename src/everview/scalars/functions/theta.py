"""Theta sketches: the least hashes of a set, from whose spread follows how many there are.

A sketch of 2^k hashes keeps all of up to so many; of more, those below the least one that it does not keep, its theta.
So it is a function of the set. Unions, intersections and differences are exact below the lesser theta, and estimates
are in proportion. A sketch that keeps all has the greatest theta, which no hash reaches.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from everview.scalars.functions.kernel import Kernel, Kind, Mask, Value, from_numbers, nulls, numbers
from everview.scalars.functions.lists import Lists
from everview.scalars.functions.sketch_words import (
    FOREIGN,
    Parts,
    Sketches,
    SketchKind,
    Writing,
    falls,
    header,
    per_row,
    refused,
    rounded,
    rows_with,
)

ALL: Final = np.uint64((1 << 64) - 1)  # the theta of a sketch that keeps all
NO_THETA: Final = FOREIGN.format("theta")


def _packed(out: Kind, hashes: Any, parents: Any, theta: Any, missing: Mask) -> Any:
    """Sketches of hashes in order, each with its row."""
    counts = np.bincount(parents, minlength=len(theta))
    writing = Writing.of(2 + counts, missing)
    writing.put(0, header(np.full(len(theta), SketchKind.THETA), 0))
    writing.put(1, theta)
    places = np.arange(len(hashes)) - (np.cumsum(counts) - counts)[parents]
    there = writing.kept[parents]
    writing.words[writing.begins[parents[there]] + 2 + places[there]] = hashes[there]
    return writing.column(out)


def _different(hashes: Any, parents: Any) -> tuple[Any, Any, Any]:
    """The different hashes of each row in order, their rows, and how often each is there."""
    order = np.lexsort((hashes, parents))
    hashes, parents = hashes[order], parents[order]
    first = np.ones(len(hashes), bool)
    first[1:] = (hashes[1:] != hashes[:-1]) | (parents[1:] != parents[:-1])
    times = np.diff(np.append(np.flatnonzero(first), len(hashes)))
    return hashes[first], parents[first], times


def _least(out: Kind, hashes: Any, parents: Any, theta: Any, lg: Any, missing: Mask) -> Any:
    """Sketches of the least hashes of each row, none of which reaches its theta."""
    hashes, parents, _ = _different(hashes, parents)
    counts, most = np.bincount(parents, minlength=len(theta)), 1 << lg
    begins = np.cumsum(counts) - counts
    full, theta = counts > most, theta.copy()
    theta[full] = hashes[begins[full] + most[full]]
    kept = hashes < theta[parents]
    return _packed(out, hashes[kept], parents[kept], theta, missing)


def _of(out: Kind, values: Value, lg: Value) -> Any:
    rows = len(values)
    lists, missing = Lists.of(values, rows), nulls(values)
    none = np.zeros(rows, bool) if missing is None else missing
    there = lists.elements.is_valid().to_numpy(zero_copy_only=False)
    hashes = np.minimum(numbers(lists.elements).astype(np.int64).view(np.uint64)[there], ALL - np.uint64(1))
    return _least(out, hashes, lists.parents[there], np.full(rows, ALL), per_row(lg, rows), none)


# -- what sketches hold


def _sound(sketches: Sketches) -> Mask:
    known = (sketches.kinds == SketchKind.THETA) & (sketches.parameters == 0) & (sketches.sizes >= 2)
    hashes, rows = sketches.items(2, known)
    wrong = falls(hashes, rows) | (hashes >= sketches.word(1, known)[rows])
    return known & ~rows_with(wrong, rows, len(known))


def _held(parts: Parts) -> tuple[Any, Any, Any, Mask]:
    """The hashes below the least theta of each row, the sketch of each, that theta, and where sketches are foreign."""
    sketches, there = parts.sketches, parts.there
    sound = _sound(sketches)
    theta = parts.extreme(np.minimum, np.where(sound, sketches.word(1, sound), ALL), ALL)
    hashes, of = sketches.items(2, sound & there)
    below = hashes < theta[parts.parents[of]]
    return hashes[below], of[below], theta, parts.any(there & ~sound)


def _empty(parts: Parts) -> Mask:
    """The sketches that are known to be of no values."""
    whole = (parts.sketches.sizes == 2) & (parts.sketches.kinds == SketchKind.THETA)
    return parts.there & whole & (parts.sketches.word(1, whole) == ALL)


def _joined(out: Kind, parts: Parts, lg: Value) -> Any:
    hashes, of, theta, foreign = _held(parts)
    made = _least(out, hashes, parts.parents[of], theta, per_row(lg, parts.rows), parts.missing)
    return refused(made, foreign, NO_THETA)


def _met(out: Kind, parts: Parts) -> Any:
    """What all sketches of a row have; of none, and where one is of no values, nothing."""
    hashes, of, theta, foreign = _held(parts)
    wanted = np.bincount(parts.parents[parts.there], minlength=parts.rows)
    hashes, rows, times = _different(hashes, parts.parents[of])
    kept = times == wanted[rows]
    theta = np.where(parts.any(_empty(parts)), ALL, theta)
    return refused(_packed(out, hashes[kept], rows[kept], theta, parts.missing), foreign, NO_THETA)


def _difference(out: Kind, a: Value, b: Value) -> Any:
    """What the first sketch has and the second has not."""
    parts = Parts.of_columns(a, b)
    hashes, of, theta, foreign = _held(parts)
    rows, of_first = parts.parents[of], of < parts.rows
    theta = np.where(_empty(parts)[: parts.rows], ALL, theta)
    order = np.lexsort((~of_first, hashes, rows))
    hashes, rows, of_first = hashes[order], rows[order], of_first[order]
    alone = of_first.copy()
    alone[:-1] &= (hashes[1:] != hashes[:-1]) | (rows[1:] != rows[:-1])
    return refused(_packed(out, hashes[alone], rows[alone], theta, parts.missing), foreign, NO_THETA)


def _union(out: Kind, a: Value, b: Value, lg: Value) -> Any:
    return _joined(out, Parts.of_columns(a, b), lg)


def _estimate(out: Kind, column: Value) -> Any:
    sketches, missing = Sketches.of(column), nulls(column)
    sound = _sound(sketches)
    theta = np.where(sound, sketches.word(1, sound), ALL)
    counts = np.where(sound, sketches.sizes - 2, 0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(theta == ALL, counts, counts * 2.0**64 / theta.astype(np.float64))
    return refused(from_numbers(rounded(found), out, missing), ~sketches.missing & ~sound, NO_THETA)


KERNELS: Final[dict[str, Kernel]] = {
    "theta_of": _of,
    "theta_union": _union,
    "theta_union_of": lambda out, sketches, lg: _joined(out, Parts.of_arrays(sketches), lg),
    "theta_intersection": lambda out, a, b: _met(out, Parts.of_columns(a, b)),
    "theta_intersection_of": lambda out, sketches: _met(out, Parts.of_arrays(sketches)),
    "theta_difference": _difference,
    "theta_sketch_estimate": _estimate,
}
