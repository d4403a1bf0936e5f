"""Operators inside a recursive scope, where time has an iteration (or several) besides the epoch.

A stream's change at ⟨epoch, i⟩ is its change in both directions at once: the collection at a time is the sum of all
changes at times before it in every coordinate. Entries of traces end in their iterations; the epoch is structural:
closed epochs are the past, and the open one lies over it.

- Linear operators act on each time alone.
- A join of a change now with an entry of another time belongs to the join of the two times; what belongs later
  is *held* until then.
- What depends on the state of groups puts out ``Σ_S (−1)^|S| (f(after ↾ t−S) − f(before ↾ t−S))`` over the subsets S
  of coordinates stepped back by one: the change of f in every direction. A group that changes now may have to
  change again where an earlier epoch had entries for it: it is *woken* at the join of now with their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from everview.kernels.linear import negated
from everview.kernels.sort import arrange
from everview.kernels.timed import split_now, stamped
from everview.operators.aggregate import AggregateIncremental
from everview.operators.arrange import Arrange
from everview.operators.bags import BagsIncremental
from everview.operators.by_state import ByState, touched
from everview.operators.distinct import DistinctIncremental
from everview.operators.join import LEFT, RIGHT, JoinIncremental, JoinTrace
from everview.operators.multijoin import Deal, MultijoinIncremental
from everview.operators.operator import Context, Matrix, Operator, Words, nothing
from everview.operators.top import TopIncremental
from everview.operators.window import WindowIncremental
from everview.traces.view import View
from everview.traces.wide import Wide


@dataclass(frozen=True, slots=True)
class TimedStep:
    """What a step at a nested time gives: output now, entries for the trace, what belongs to later times."""

    out: Matrix
    append: Matrix | None = None  # with times
    held: Matrix | None = None  # output rows with their times
    wake: Matrix | None = None  # groups with the times at which to look at them again


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace as a step at a nested time sees it."""

    past: View  # closed epochs
    seen: View  # and what the open epoch has appended before this time, or with it, as the edge says


def step_at(
    operator: Operator,
    now: Words,
    deltas: Sequence[Matrix],
    woken: Matrix | None,
    reads: Sequence[Reading],
    wide: Sequence[Wide],
    context: Context,
) -> TimedStep:
    """One operator at one nested time; one that reads the traces of all shards is given what it may see of them."""
    match operator:
        case Arrange():
            return TimedStep(deltas[0], append=stamped(deltas[0], now))
        case JoinIncremental():
            return _join(operator, now, deltas, reads)
        case JoinTrace():
            return _split(operator.probe_at(deltas[0], reads[0].seen, LEFT, now), now)
        case MultijoinIncremental():
            return _split(operator.change_at(deltas, wide, now), now)
        case Deal():
            return TimedStep(operator.step(deltas, wide, context).out)
        case DistinctIncremental():
            return _distinct(operator, now, deltas[0], woken, reads[0])
        case AggregateIncremental() | TopIncremental():
            return _by_state(operator, now, deltas, woken, reads, context)
        case BagsIncremental() | WindowIncremental():
            return _by_state(operator, now, deltas, woken, reads, context)
        case _:
            assert not reads, f"{type(operator).__name__} does not run inside a recursive scope"
            return TimedStep(operator.step(deltas, (), context).out)


def _join(join: JoinIncremental, now: Words, deltas: Sequence[Matrix], reads: Sequence[Reading]) -> TimedStep:
    delta_left, delta_right = deltas
    left_after, right_before = (read.seen for read in reads)
    parts = [
        join.probe_at(delta_left, right_before, LEFT, now),
        join.probe_at(delta_right, left_after, RIGHT, now),
    ]
    return _split(np.concatenate(parts), now)


def _split(timed: Matrix, now: Words) -> TimedStep:
    out, held = split_now(timed, now)
    return TimedStep(out, held=held if held.shape[0] else None)


def _by_state(
    operator: ByState,
    now: Words,
    deltas: Sequence[Matrix],
    woken: Matrix | None,
    reads: Sequence[Reading],
    context: Context,
) -> TimedStep:
    key = operator.group_words
    groups = _groups(deltas, woken, key)
    pasts = [read.past for read in reads]
    afters = [read.seen.plus(stamped(d, now)) for read, d in zip(reads, deltas, strict=True)]
    bounds = list(_corners(now))
    states = [[v.upto(bound) for v in views] for _, bound in bounds for views in (afters, pasts)]
    found = operator.evaluate(groups, states, context)
    signs = [sign * way for sign, _ in bounds for way in (1, -1)]
    parts = [rows if sign > 0 else negated(rows) for rows, sign in zip(found, signs, strict=True)]
    out = np.concatenate(parts) if parts else nothing(operator.output.width)
    return TimedStep(arrange(out, np.arange(out.shape[1] - 1)), wake=_wake(afters, groups, key, now))


def _distinct(
    operator: DistinctIncremental, now: Words, delta: Matrix, woken: Matrix | None, read: Reading
) -> TimedStep:
    """As `_by_state`, with all states in one pass: presence is all that it asks of them."""
    key = operator.group_words
    groups, after = _groups((delta,), woken, key), read.seen.plus(stamped(delta, now))
    out = operator.change_at(groups, read.past, after, now)
    return TimedStep(out, wake=_wake((after,), groups, key, now))


def _groups(deltas: Sequence[Matrix], woken: Matrix | None, key: int) -> Matrix:
    """The groups to look at; several earlier times may have woken some, each in order."""
    return touched(deltas if woken is None else (*deltas, arrange(woken, np.arange(key))), key)


def _wake(afters: Sequence[View], groups: Matrix, key: int, now: Words) -> Matrix | None:
    """The groups with the times at which to look at them again."""
    later = np.concatenate([view.later_times(groups, key, now) for view in afters])
    return arrange(later, np.arange(later.shape[1] - 1)) if later.shape[0] else None


def _corners(now: Words) -> Iterator[tuple[int, Words]]:
    """``now`` with every subset of its coordinates stepped back, and the sign of each; those below zero are empty."""
    for steps in product((0, 1), repeat=now.size):
        bound = now - np.array(steps, np.int64)
        if (bound >= 0).all():
            yield (-1) ** sum(steps), bound
