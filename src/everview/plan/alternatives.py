"""Conditions on the current time as alternatives, each a list of what must be true together.

A comparison with the current time holds from one moment to another; conditions are made of comparisons by AND, OR, NOT,
CASE and the like. `alternatives` opens those up, until what reads the time is comparisons alone:

    NOT (a AND b)                    is   NOT a, or NOT b
    CASE WHEN a THEN b ELSE c END    is   a and b, or c where a is not true

A condition may be unknown, so that it is "not true" is more than that it is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from everview.plan.conditions import conjunction
from everview.plan.spans import NEGATED, opposite, reads_now, spans_of
from everview.plan.typing import call
from everview.scalars.expressions import FALSE, TRUE, Call, Expression, Literal

Alternatives = list[tuple[Expression, ...]]  # one of these, and all of its parts
MOST = 64


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth that is asked of a condition: true or false, or also unknown."""

    true: bool = True
    or_unknown: bool = False

    @property
    def contrary(self) -> Truth:
        return Truth(not self.true, self.or_unknown)


IS_TRUE, NOT_TRUE = Truth(), Truth(true=False, or_unknown=True)


class _Closed(Exception):
    """Raised by a condition that reads the time in another way, or has too many alternatives."""


def alternatives(condition: Expression) -> Alternatives | None:
    """When a condition is true; None if the time is read in another way than by comparisons."""
    try:
        return _when(condition, IS_TRUE)
    except _Closed:
        return None


def _when(condition: Expression, asked: Truth) -> Alternatives:
    if not reads_now(condition):
        return _timeless(condition, asked)
    if not isinstance(condition, Call):
        raise _Closed
    parts = condition.arguments
    match condition.function:
        case "and":
            return _all(parts, asked) if asked.true else _any(parts, asked)
        case "or":
            return _any(parts, asked) if asked.true else _all(parts, asked)
        case "not":
            return _when(parts[0], asked.contrary)
        case "if":
            return _cases(((parts[0], parts[1]),), parts[2], asked)
        case "case":
            return _cases(*_branches(condition), asked)
        case "in":
            equalities = [call("equal", parts[0], part) for part in parts[1:]]
            return _any(equalities, asked) if asked.true else _all(equalities, asked)
        case "coalesce" if len(parts) == 2 and parts[1] in (TRUE, FALSE):
            return _when(parts[0], Truth(asked.true, (parts[1] == TRUE) == asked.true))
        case "equal" | "null_safe_equal" if parts[1] in (TRUE, FALSE):
            return _when(parts[0], _asked_of_truth(condition, asked))
        case _:
            return _compared(condition, asked)


def _branches(case: Call) -> tuple[tuple[tuple[Expression, Expression], ...], Expression]:
    """The conditions of CASE with their values, and the value of ELSE."""
    parts = case.arguments
    otherwise = parts[-1] if len(parts) % 2 else Literal(None, case.type)
    return tuple(zip(parts[0 : len(parts) // 2 * 2 : 2], parts[1::2], strict=True)), otherwise


def _asked_of_truth(condition: Call, asked: Truth) -> Truth:
    """What is asked of a condition that is compared with TRUE or FALSE."""
    inner = asked if condition.arguments[1] == TRUE else asked.contrary
    return Truth(inner.true, not asked.true) if condition.function == "null_safe_equal" else inner


def _any(parts: Sequence[Expression], asked: Truth) -> Alternatives:
    return _checked([one for part in parts for one in _when(part, asked)])


def _all(parts: Sequence[Expression], asked: Truth) -> Alternatives:
    return _together([_when(part, asked) for part in parts])


def _together(several: Sequence[Alternatives]) -> Alternatives:
    size = 1
    for one in several:
        size *= len(one)
    if size > MOST:
        raise _Closed
    return [tuple(dict.fromkeys(part for parts in chosen for part in parts)) for chosen in product(*several)]


def _checked(several: Alternatives) -> Alternatives:
    if len(several) > MOST:
        raise _Closed
    return several


def _cases(pairs: Sequence[tuple[Expression, Expression]], otherwise: Expression, asked: Truth) -> Alternatives:
    """CASE: the value of the first true condition is asked for."""
    taken: Alternatives = []
    before: list[Alternatives] = []
    for test, value in pairs:
        taken += _together([*before, _when(test, IS_TRUE), _when(value, asked)])
        before.append(_when(test, NOT_TRUE))
    return _checked(taken + _together([*before, _when(otherwise, asked)]))


def _timeless(condition: Expression, asked: Truth) -> Alternatives:
    if isinstance(condition, Literal):
        holds = asked.or_unknown if condition.value is None else condition.value == asked.true
        return [()] if holds else []
    wanted = condition if asked.true else call("not", condition)
    if asked.or_unknown and condition.nullable:
        contrary = call("not", condition) if asked.true else condition
        wanted = call("not", call("coalesce", contrary, FALSE))
    return [(wanted,)]


def _compared(condition: Call, asked: Truth) -> Alternatives:
    """A comparison of the current time with a moment; where the moment is NULL, the comparison is unknown."""
    spans = spans_of(condition)
    if spans is None:
        raise _Closed
    compared: Alternatives = [(condition,)] if asked.true else _false(condition)
    bounds = [bound for span in spans[:1] for bound in (span.since, span.until) if bound is not None and bound.nullable]
    return [*compared, *((call("is_null", bound),) for bound in bounds[:1])] if asked.or_unknown else compared


def _false(condition: Call) -> Alternatives:
    if condition.function == "equal":
        return [(call(how, *condition.arguments),) for how in ("less", "greater")]
    contrary = opposite(condition)
    if contrary is None or condition.function not in NEGATED:
        raise _Closed
    return [(contrary,)]


def joined(several: Alternatives) -> Expression:
    """Alternatives as one condition."""
    every = [conjunction(parts) or TRUE for parts in several]
    return FALSE if not every else every[0] if len(every) == 1 else call("or", *every)
