"""What is given to the theory by mistake is refused with a hint, whichever of its names it is given to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import everview as ev
from everview.errors import EverviewError
from everview.multiway import (
    AndIndex,
    Atom,
    IncrementalGenericJoin,
    Leapfrog,
    Moments,
    NotIndex,
    OrIndex,
    Pattern,
    PatternIndex,
    Scan,
    SortedKeys,
    common_keys,
    join,
    variables,
)
from everview.theory.algebra import Frontier, Time, alt
from everview.zset import ReferenceTrace, TimedZSet, ZSet

a, b = variables("a b")
GRAPH = ZSet({(1, 2): 1})
MISTAKES = [None, 5, 1.5, b"x", object(), [None], [()], [("a",)]]


def edges() -> Any:
    return ev.Circuit().source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")


def edge_join() -> IncrementalGenericJoin:
    return IncrementalGenericJoin([PatternIndex(Pattern("edge", a, b), (a, b))], levels=2)


def search() -> Leapfrog:
    return Leapfrog([Scan(Pattern("edge", a, b), GRAPH)], (a, b))


DOORS: dict[str, Callable[[Any], object]] = {
    "a timed Z-set": TimedZSet,
    "a triple": lambda x: TimedZSet.of([x]),
    "a time of a triple": lambda x: TimedZSet.of([("e", "later" if x == 5 else x, 1)]),
    "what an operator gives": lambda x: TimedZSet.of([("e", 0, 1)]).lift(lambda _: x),
    "a trace": ReferenceTrace,
    "an entry of a trace": lambda x: ReferenceTrace.of([x]),
    "a key and its value": lambda x: ReferenceTrace().insert_indexed(TimedZSet.of([(x, 0, 1)])),
    "what is appended": lambda x: ReferenceTrace().append(x, at=0),
    "an iteration": lambda x: Time(0, -1 if x == 5 else x),
    "another time": Time(0).join,
    "another moment": alt(Time(0)).meet,
    "the moments of a frontier": lambda x: Frontier.of([Time(0), x]),
    "atoms": join,
    "terms": lambda x: join([Atom(edges(), x)]),
    "names of variables": variables,
    "a pattern": lambda x: PatternIndex(x, (a, b)),
    "an order of variables": lambda x: PatternIndex(Pattern("edge", a, b), x),
    "relations of a join": lambda x: IncrementalGenericJoin(x, levels=2),
    "changes": lambda x: edge_join().join(x),
    "a change": lambda x: edge_join().join({"edge": x}),
    "parts of and": AndIndex,
    "parts of or": OrIndex,
    "what is negated": NotIndex,
    "an atom's number": lambda x: list(search().probe(x, (1, 2))),
    "iterators": lambda x: list(common_keys(x)),
    "a circuit": Moments,
    "a stream": lambda x: Moments(edges().circuit).differentiate(x),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda given: type(given).__name__)
def test_a_mistake_is_refused_with_a_hint(door: str, mistake: Any) -> None:
    with pytest.raises(EverviewError) as refused:
        DOORS[door](mistake)
    assert refused.value.hint


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(EverviewError, match="level 2"):
        IncrementalGenericJoin([PatternIndex(Pattern("edge", a, b), (a, b))], levels=2**100)
    with pytest.raises(EverviewError, match="there is no atom 1"):
        list(search().probe(1, (1, 2)))
    with pytest.raises(EverviewError, match="no iterators"):
        list(common_keys([]))
    with pytest.raises(EverviewError, match="no epoch"):
        Time.of(())
    assert list(common_keys([SortedKeys([1, 2]), SortedKeys([2, 3])])) == [2]
