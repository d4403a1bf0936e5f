"""Programs of PomoLogic over random changes, against their plain meaning after every tick."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import everview as ev
from everview.frontends.pomologic.parse import parse
from frontends.pomo_streams import Fed, ticks
from frontends.pomologic.naive import Clock


@ev.aggregate("BIGINT", name="pomo_spread", by_group=True)
def spread(xs: list[int]) -> int:
    return max(xs) - min(xs)


@ev.aggregate("BIGINT", name="pomo_dot", by_group=True)
def dot(xs: list[int], ys: list[int]) -> int:
    return sum(x * y for x, y in zip(xs, ys, strict=True))


@ev.aggregate("BIGINT", name="pomo_only", by_group=True)
def only(xs: list[int]) -> int | None:
    return xs[0] if len(xs) == 1 else None


AGGREGATES = {
    "pomo_only": lambda rows: rows[0][0] if len(rows) == 1 else None,
    "pomo_spread": lambda rows: max(x for (x,) in rows) - min(x for (x,) in rows) if rows else None,
    "pomo_dot": lambda rows: sum(x * y for x, y in rows) if rows else None,
}

PROGRAMS = {
    "projection": "out(a: A) :- edge(a: A).",
    "closure": "path(a: A, b: B) :- edge(a: A, b: B). path(a: A, b: C) :- path(a: A, b: B), edge(a: B, b: C).",
    "negation": "lone(x: X) :- node(x: X), !edge(a: X), !edge(b: X).",
    "negated closure": """path(a: A, b: B) :- edge(a: A, b: B). path(a: A, b: C) :- path(a: A, b: B), edge(a: B, b: C).
        apart(a: A, b: B) :- node(x: A), node(x: B), A != B, !path(a: A, b: B).""",
    "constants": 'red(x: X, tag: "r", n: 1) :- node(x: X, label: "red"), edge(a: X, b: X), X >= 1, 3 > X.',
    "counts": "degree(x: X, n: N) :- node(x: X), N := count : edge(a: X).",
    "of all": "size(n: N, s: S) :- N := count : edge(), S := sum B : edge(b: B).",
    "ends": "ends(x: X, l: L, h: H) :- node(x: X), L := min B : edge(a: X, b: B), H := max B : edge(a: X, b: B).",
    "constrained count": "hub(x: X) :- node(x: X), c := count : edge(a: X), c >= 2.",
    "unified count": "fits(x: X) :- node(x: X), X := count : edge(a: X).",
    "count of a count": """degree(x: X, n: N) :- node(x: X), N := count : edge(a: X).
        shared(n: N, k: K) :- degree(n: N), K := count : degree(n: N).
        chained(x: X, n: N, k: K) :- node(x: X), K := count : edge(a: N), N := count : edge(a: X).""",
    "same local twice": """both(x: X, n: N, m: M) :- node(x: X),
        N := sum Y : edge(a: X, b: Y), M := sum Y : edge(a: Y, b: X).""",
    "user aggregates": """spread(x: X, s: S, d: D) :- node(x: X),
        S := pomo_spread B : edge(a: X, b: B), D := pomo_dot A B : edge(a: A, b: B).""",
    "aggregates without a result": """only(x: X, y: Y) :- node(x: X), Y := pomo_only B : edge(a: X, b: B).
        one(y: Y) :- Y := pomo_only B : edge(a: A, b: B).""",
    "content ids": """named(id: C, x: X) :- C := node(x: X).
        again(id: C, x: X, label: L) :- named(id: C, x: X), C := node(x: X, label: L).
        counted(id: C, n: N) :- C := node(x: X), N := count : named(x: X, id: C).""",
    "a tick late": "late(x: X)@next :- event(x: X).",
    "kept": "kept(x: X)@next :- event(x: X). kept(x: X)@next :- kept(x: X), !edge(a: X).",
    "toggled": """on(x: X)@next :- on(x: X), !event(x: X). on(x: X)@next :- event(x: X), !on(x: X).
        lit(x: X, label: L) :- on(x: X), node(x: X, label: L). many(n: N) :- N := count : on().""",
    "first seen": """fresh(x: X) :- node(x: X), !seen(x: X).
        seen(x: X)@next :- node(x: X). seen(x: X)@next :- seen(x: X).""",
    "two steps late": "one(x: X)@next :- event(x: X). two(x: X, y: Y)@next :- one(x: X), event(x: Y).",
    "aggregate through time": """total(n: N)@next :- event(), N := sum X : event(x: X).
        kept(n: N, m: M)@next :- event(), M := count : total(), N := max X : total(n: X).
        kept(n: N, m: M)@next :- node(x: N), event(x: N), M := count : kept(m: N).""",
    "reached over time": """reached(x: X)@next :- event(x: X). reached(x: X)@next :- reached(x: X).
        reached(x: B) :- reached(x: A), edge(a: A, b: B).""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
@settings(max_examples=10)
@given(ticks=ticks)
def test_views_hold_what_rules_say(text: str, ticks: list[list[tuple[str, tuple[int, ...], int]]]) -> None:
    program = parse(text)
    fed, clock = Fed.new(), Clock(program, AGGREGATES)
    fed.database.datalog(text, dialect="pomologic")
    wanted = clock.tick(fed.facts)
    for changes in ticks:
        for head in program.heads:
            assert fed.view(head) == wanted[head]
        fed.apply(changes)
        wanted = clock.tick(fed.facts)
    for head in program.heads:
        assert fed.view(head) == wanted[head]
    assert fed.database.verify()
