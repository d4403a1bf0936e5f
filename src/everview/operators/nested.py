"""Operators inside a recursive scope, where time has an iteration (or several) besides the epoch.

A stream's change at ⟨epoch, i⟩ is its change in both directions at once: the collection at a time is the sum of all
changes at times before it in every coordinate. Entries of traces end in their iterations; the epoch is structural:
closed epochs are the past, and the open one lies over it.

- Linear operators act on each time alone, as `Operator.step_at` does by default.
- A join of a change now with an entry of another time belongs to the join of the two times; what belongs later
  is *held* until then.
- What depends on the state of groups puts out ``Σ_S (−1)^|S| (f(after ↾ t−S) − f(before ↾ t−S))`` over the subsets S
  of coordinates stepped back by one: the change of f in every direction. A group that changes now may have to
  change again where an earlier epoch had entries for it: it is *woken* at the join of now with their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from everview.kernels.sort import arrange
from everview.kernels.timed import split_now
from everview.operators.operator import TimedStep
from everview.traces.view import TraceView
from everview.types.words import Matrix, Words


def split_held(timed: Matrix, now: Words) -> TimedStep:
    """Split results by the time in their last columns: results of ``now`` are put out, all others are held."""
    out, held = split_now(timed, now)
    return TimedStep(out, held=held if held.shape[0] else None)


def wake(afters: Sequence[TraceView], groups: Matrix, key: int, now: Words) -> Matrix | None:
    """The groups with the times at which to look at them again."""
    later = np.concatenate([view.later_times(groups, key, now) for view in afters])
    return arrange(later, np.arange(later.shape[1] - 1)) if later.shape[0] else None


def corners(now: Words) -> Iterator[tuple[int, Words]]:
    """``now`` with every subset of its coordinates stepped back, and the sign of each; those below zero are empty."""
    for steps in product((0, 1), repeat=now.size):
        bound = now - np.array(steps, np.int64)
        if (bound >= 0).all():
            yield (-1) ** sum(steps), bound
