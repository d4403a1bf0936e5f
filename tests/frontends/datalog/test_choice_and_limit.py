"""Relations that keep one row for each key, and recursions that stop at a size: against rounds of plain Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DatalogError

Edge = tuple[int, int]
Edges = set[Edge]

TREE = """
    .decl edge(v: number, u: number)
    .input edge
    .decl tree(v: number, u: number) choice-domain u
    tree(0, 0) :- edge(_, _).
    tree(v, u) :- tree(_, v), edge(v, u).
    .decl first(v: number, u: number) choice-domain v
    first(v, u) :- edge(v, u).
"""
MUTUAL = """
    .decl edge(v: number, u: number)
    .input edge
    .decl pair(v: number, u: number) choice-domain (v)
    .decl seen(u: number)
    seen(0) :- edge(_, _).
    pair(v, u) :- seen(v), edge(v, u) ; seen(v), edge(u, v).
    seen(u) :- pair(v, u), seen(v).
"""
MATCHING = """
    .decl edge(v: number, u: number)
    .input edge
    .decl pair(v: number, u: number, by: number) choice-domain v, (u, by)
    pair(v, u, 0) :- edge(v, u).
    .decl walk(v: number, u: number) choice-domain v, u
    .decl from(v: number) choice-domain v
    from(0) :- edge(_, _).
    walk(v, u) :- from(v), edge(v, u) ; from(v), edge(u, v).
    from(u) :- walk(_, u).
"""
LIMITED = """
    .decl edge(v: number, u: number)
    .input edge
    .decl path(v: number, u: number)
    .decl ends(u: number)
    path(v, u) :- edge(v, u).
    path(v, u) :- path(v, w), ends(w), edge(w, u).
    ends(u) :- path(_, u).
    .limitsize path(n=6)
"""


def tree(edges: Edges) -> dict[str, Edges]:
    kept: dict[int, Edge] = {0: (0, 0)} if edges else {}
    while True:
        reached = sorted((v, u) for v, u in edges if v in kept and u not in kept)
        if not reached:
            first = {v: min(e for e in edges if e[0] == v) for v, _ in edges}
            return {"tree": set(kept.values()), "first": set(first.values())}
        for v, u in reversed(reached):  # the least is written last
            kept[u] = (v, u)


def mutual(edges: Edges) -> dict[str, Edges]:
    seen, pairs = set[int]([0] if edges else []), dict[int, int]()
    while True:
        both = {*edges, *((u, v) for v, u in edges)}
        new = {v: min(u for w, u in both if w == v) for v, _ in both if v in seen and v not in pairs}
        more = {u for v, u in pairs.items() if v in seen} - seen
        if not new and not more:
            return {"pair": set(pairs.items()), "seen": {(v,) for v in seen}}  # type: ignore[arg-type]
        pairs |= new
        seen |= more


def matching(edges: Edges) -> dict[str, Edges]:
    pairs = _fitting(edges, set())
    walk, starts = set[Edge](), set[int]()
    while True:
        derived = {*edges, *((u, v) for v, u in edges)}
        new = _least(_fit({(v, u) for v, u in derived if v in starts}, walk))
        more = {u for _, u in walk} | ({0} if edges else set()) - starts
        if not new and more <= starts:
            found = {"pair": {(v, u, 0) for v, u in pairs}, "walk": walk, "from": {(v,) for v in starts}}
            return found  # type: ignore[return-value]
        walk |= new
        starts |= more


def _fitting(edges: Edges, kept: Edges) -> Edges:
    """The edges that share no end on one side with an edge before them."""
    for edge in sorted(edges):
        kept |= _fit({edge}, kept)
    return kept


def _fit(edges: Edges, kept: Edges) -> Edges:
    return {(v, u) for v, u in edges if all(v != w and u != x for w, x in kept)}


def _least(edges: Edges) -> Edges:
    return {(v, u) for v, u in edges if all((v, u) <= (w, x) for w, x in edges if v == w or u == x)}


def stopped(edges: Edges) -> dict[str, Edges]:
    paths, ends = set[Edge](), set[int]()
    for round_ in range(1000):
        if round_ and len(paths) >= 6:
            break
        new = edges | {(v, u) for v, w in paths if w in ends for x, u in edges if x == w} | paths
        more = ends | {u for _, u in paths}
        if (new, more) == (paths, ends):
            break
        paths, ends = new, more
    return {"path": paths, "ends": {(u,) for u in ends}}  # type: ignore[arg-type]


edges = st.tuples(st.integers(0, 5), st.integers(0, 5))


@pytest.mark.parametrize(("text", "meant"), [(TREE, tree), (MUTUAL, mutual), (MATCHING, matching), (LIMITED, stopped)])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(ticks=st.lists(st.sets(edges, max_size=5), min_size=2, max_size=5))
def test_after_every_tick_what_plain_rounds_give(
    text: str, meant: Callable[[Edges], dict[str, Edges]], ticks: list[Edges]
) -> None:
    db = ev.connect()
    db.datalog(text)
    held: Edges = set()
    for tick in ticks:  # each edge comes if it is not there, and goes if it is
        db.apply({"edge": [(edge, -1 if edge in held else 1) for edge in tick]})
        held ^= tick
        for name, rows in meant(held).items():
            assert set(db.view(name).rows()) == rows, name
    assert db.verify()


def test_a_limit_ends_what_would_never_end() -> None:
    db = ev.connect()
    db.datalog(".decl n(x: number) .decl s(x: number) .input s n(x) :- s(x). n(x + 1) :- n(x). .limitsize n(n=5)")
    db.apply({"s": [((0,), 1), ((10,), 1)]})
    assert sorted(db.view("n").rows()) == [(0,), (1,), (2,), (10,), (11,), (12,)]
    db.apply({"s": [((0,), -1)]})
    assert sorted(db.view("n").rows()) == [(10,), (11,), (12,), (13,), (14,)]
    assert db.verify()


def test_a_limit_of_nothing_leaves_what_needs_no_recursion() -> None:
    db = ev.connect()
    db.datalog(".decl n(x: number) n(1). n(x + 1) :- n(x). .limitsize n(n=0)")
    assert db.view("n").rows() == [(1,)]


def test_a_domain_that_holds_another_says_nothing_more() -> None:
    db = ev.connect()
    db.datalog(".decl e(a: number, b: number, c: number) .input e .decl p(a: number, b: number, c: number)"
               " choice-domain a, (b, a) p(a, b, c) :- e(a, b, c).")  # fmt: skip
    db.apply({"e": [((1, 2, 3), 1), ((1, 2, 1), 1), ((2, 9, 9), 1)]})
    assert sorted(db.view("p").rows()) == [(1, 2, 1), (2, 9, 9)]


def test_a_matching_takes_the_next_row_that_fits() -> None:
    db = ev.connect(shards=3)
    db.datalog(".decl wish(who: symbol, seat: symbol) .input wish"
               " .decl sits(who: symbol, seat: symbol) choice-domain who, seat sits(w, s) :- wish(w, s).")  # fmt: skip
    wishes = [("ann", "1"), ("ann", "2"), ("bob", "1"), ("bob", "2"), ("cid", "2"), ("cid", "3")]
    db.apply({"wish": [(wish, 1) for wish in wishes]})
    assert sorted(db.view("sits").rows()) == [("ann", "1"), ("bob", "2"), ("cid", "3")]
    db.apply({"wish": [(("ann", "1"), -1)]})
    assert sorted(db.view("sits").rows()) == [("ann", "2"), ("bob", "1"), ("cid", "3")]
    assert db.verify()


def test_a_matching_in_a_recursion_with_a_limit() -> None:
    db = ev.connect()
    db.datalog(".decl s(a: number, b: number) .input s .decl p(a: number, b: number) choice-domain a, b"
               " p(a, b) :- s(a, b). p(a + 1, b + 2) :- p(a, b). .limitsize p(n=4)")  # fmt: skip
    db.apply({"s": [((1, 0), 1), ((1, 5), 1), ((4, 1), 1), ((4, 6), 1)]})
    assert sorted(db.view("p").rows()) == [(1, 0), (2, 2), (4, 1), (5, 3)]
    db.apply({"s": [((1, 0), -1)]})
    assert sorted(db.view("p").rows()) == [(1, 5), (2, 7), (4, 1), (5, 3)]
    assert db.verify()


def test_a_choice_of_one_row_without_other_columns() -> None:
    db = ev.connect()
    db.datalog(".decl e(a: symbol) .input e .decl p(a: symbol) choice-domain a p(a) :- e(a).")
    db.apply({"e": [(("x",), 1), (("y",), 1)]})
    assert sorted(db.view("p").rows()) == [("x",), ("y",)]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (".decl p(a: number) choice-domain z p(1).", "choice-domain names z", "columns are a"),
        (".decl p(a: number, b: number) choice-domain a .input p p(1, 2).", "p is .input", "let another relation"),
        (".decl p(a: number, b: number) choice-domain a", "no rules here", "in the text of the rules"),
        (".decl p(a: number, b: number) eqrel choice-domain a p(1, 2).", "p is eqrel", "let another relation"),
        ("p(1). .limitsize p(n=3)", "p is not declared here", ".decl p"),
        (".decl p(a: number) p(1). .limitsize p", "has no number", "n=10"),
        (
            ".decl p(a: number, b: number) choice-domain a .decl q(a: number, b: number)"
            " p(1, 2). p(a, 1) :- q(a, _). q(a, min(0)) :- p(a, _).",
            "aggregated in a recursion with a choice-domain",
            "result of the recursion",
        ),
        (
            ".decl p(a: number, b: number) choice-domain a, b .decl q(a: number, b: number)"
            " p(1, 2). p(a, 1) :- q(a, _). q(a, min(0)) :- p(a, _).",
            "aggregated in a recursion with a choice-domain",
            "result of the recursion",
        ),
    ],
)  # fmt: skip
def test_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(DatalogError) as refused:
        ev.connect().datalog(text)
    assert message in str(refused.value)
    assert hint in (refused.value.hint or "")
