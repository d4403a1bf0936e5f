"""Random queries over few relations, streams of changes to them, and their meaning by exhaustive search.

Every relation is a dictionary from typed rows to weights, and a query is tried on every binding of its variables to
values of the domain. Nothing of a join is in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st

from everview.multiway import Pattern, Variable, variables
from everview.zset import ZSet

Draw = Callable[[st.SearchStrategy[Any]], Any]
Typed = tuple[tuple[str, Any], ...]
State = dict[tuple[str, Typed], int]
Tick = dict[str, ZSet]

ARITIES = {"P": 1, "R": 2, "S": 2, "T": 3}
VALUES: tuple[Any, ...] = (1, True, "x")  # Python takes the first two for equal
WORDS: tuple[Any, ...] = (-(2**63), 0, 5)
VARIABLES = variables("a b c d")
WEIGHTS = (1, -1, 2, 3, -2)


@dataclass(frozen=True)
class And:
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Not:
    part: Any


Query = Pattern | And | Or | Not


def typed(row: Iterable[Any]) -> Typed:
    return tuple((type(value).__name__, value) for value in row)


def applied(state: State, tick: Tick) -> State:
    after = dict(state)
    for name, rows in tick.items():
        for row, weight in rows:
            after[name, typed(row)] = after.get((name, typed(row)), 0) + weight
    return after


def weight(query: Query, binding: Mapping[Variable, Any], state: State) -> int:
    """The weight of one binding."""
    match query:
        case Pattern():
            row = (binding[t] if isinstance(t, Variable) else t for t in query.terms)
            return state.get((query.relation, typed(row)), 0)
        case And(parts):
            total = 1
            for part in parts:
                total *= weight(part, binding, state)
            return total
        case Or(parts):
            return int(sum(weight(part, binding, state) for part in parts) > 0)
        case Not(part):
            return int(weight(part, binding, state) <= 0)


def answers(query: Query, order: Sequence[Variable], state: State, values: Sequence[Any] = VALUES) -> ZSet:
    """Every binding of nonzero weight."""
    bindings = product(values, repeat=len(order))
    return ZSet.of((b, weight(query, dict(zip(order, b, strict=True)), state)) for b in bindings)


# -- strategies


@st.composite
def patterns(draw: Draw, values: Sequence[Any] = VALUES) -> Pattern:
    """Any pattern: variables at any place, repeated, and constants."""
    name = draw(st.sampled_from(sorted(ARITIES)))
    term = st.sampled_from((*VARIABLES * 3, *values))
    return Pattern(name, *(draw(term) for _ in range(ARITIES[name])))


@st.composite
def joins(draw: Draw, values: Sequence[Any] = VALUES) -> tuple[list[Pattern], tuple[Variable, ...]]:
    """Patterns and an order of all their variables."""
    found = draw(st.lists(patterns(values), min_size=1, max_size=4).filter(lambda ps: any(p.variables for p in ps)))
    names = sorted({v for p in found for v in p.variables}, key=lambda v: v.name)
    return found, tuple(draw(st.permutations(names)))


@st.composite
def exactly(draw: Draw, of: tuple[Variable, ...]) -> Pattern:
    """A pattern with just these variables."""
    name = draw(st.sampled_from([n for n, arity in sorted(ARITIES.items()) if arity >= len(of)]))
    more = [draw(st.sampled_from((*of, *VALUES))) for _ in range(ARITIES[name] - len(of))]
    return Pattern(name, *draw(st.permutations([*of, *more])))


@st.composite
def positive(draw: Draw, of: tuple[Variable, ...], depth: int = 2) -> Query:
    """A query with just these variables, all of them bound by a pattern."""
    kind = draw(st.sampled_from(("pattern", "and", "or"))) if depth else "pattern"
    if kind == "pattern":
        return draw(exactly(of))
    if kind == "or":
        return Or(tuple(draw(positive(of, depth - 1)) for _ in range(draw(st.integers(1, 3)))))
    some = tuple(draw(st.sets(st.sampled_from(of)))) if of else ()
    parts = [draw(positive(of, depth - 1)), draw(positive(some, depth - 1))]
    if draw(st.booleans()):
        parts.append(Not(draw(positive(some, depth - 1))))
    return And(tuple(draw(st.permutations(parts))))


@st.composite
def composed(draw: Draw) -> tuple[list[Query], tuple[Variable, ...]]:
    """Queries to join, some composed of others, and an order of their variables."""
    of = VARIABLES[: draw(st.integers(1, 3))]
    parts: list[Query] = [draw(positive(of))]
    for _ in range(draw(st.integers(0, 2))):
        part = draw(positive(tuple(draw(st.sets(st.sampled_from(of), min_size=1))), 1))
        parts.append(Not(part) if draw(st.booleans()) else part)
    return draw(st.permutations(parts)), tuple(draw(st.permutations(of)))


@st.composite
def ticks(draw: Draw, values: Sequence[Any] = VALUES) -> Tick:
    """Changes of some relations: inserts, deletes of what is and is not there, several of one row."""
    tick: Tick = {}
    for name, arity in sorted(ARITIES.items()):
        entries = list(product(product(values, repeat=arity), WEIGHTS))
        least = draw(st.sampled_from((0, 0, 3, 9)))  # nothing, some, or most of all rows
        tick[name] = ZSet.of(draw(st.lists(st.sampled_from(entries), min_size=least, max_size=least + 3)))
    return tick


def streams(values: Sequence[Any] = VALUES) -> st.SearchStrategy[list[Tick]]:
    return st.lists(ticks(values), min_size=1, max_size=3)
