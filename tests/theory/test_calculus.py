"""Moments alt and neu: what is computed between differentiating and integrating, against brute force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit, Stream, incrementalize
from everview.errors import CircuitError, SchemaError
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.theory.algebra import AltNeu, Time, alt, neu
from everview.theory.calculus import Collection, Moments
from everview.zset import ZSet

Changes = list[tuple[tuple[int, int], int]]
EDGE = "src BIGINT NOT NULL, dst BIGINT NOT NULL"
PAIR = "k BIGINT NOT NULL, v BIGINT NOT NULL"


def ticks_of(nodes: int, max_ticks: int = 5, max_size: int = 12) -> st.SearchStrategy[list[Changes]]:
    """Inserts, deletes of what may not be there, duplicates, pairs that cancel, empty ticks."""
    row = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    changes = st.lists(st.tuples(row, st.sampled_from([1, 1, 1, 2, -1, -2])), max_size=max_size)
    return st.lists(changes, min_size=1, max_size=max_ticks)


def rows_kept(run: Embedded) -> int:
    """Of all traces, at rest."""
    for trace, _, _ in run.state:
        trace.past.compact()
    return sum(len(trace.past) for trace, _, _ in run.state)


# -- alone, the two undo each other


@given(ticks_of(3))
def test_integrating_a_derivative_gives_the_collection_back(ticks: list[Changes]) -> None:
    circuit = Circuit()
    x = circuit.source("x", PAIR)
    moments = Moments(circuit)
    moments.differentiate(x).integrate().sink("integrated", keep=False)
    moments.enter(x).leave().sink("left", keep=False)
    moments.enter(x).delay().leave().sink("left late", keep=False)
    run = Embedded(circuit)
    for tick in ticks:
        out = run.tick({"x": tick})
        assert [batch.to_zset() for batch in out.values()] == [ZSet.of(tick)] * 3
    assert not list(run.state)


# -- a join at every moment, of all kinds of collections

KINDS: dict[str, Callable[[Moments, Stream], Collection]] = {
    "alt": lambda moments, x: moments.enter(x),
    "neu": lambda moments, x: moments.enter(x).delay(),
    "derivative": lambda moments, x: moments.differentiate(x),
    "alt and neu": lambda moments, x: moments.enter(x) + moments.enter(x).delay(),
    "alt and its derivative": lambda moments, x: moments.enter(x).concat(moments.differentiate(x)),
    "minus a derivative": lambda moments, x: -moments.differentiate(x),
}
AT = {  # the changes at the two moments of a tick, as multiples of the tick's
    "alt": (1, 0),
    "neu": (0, 1),
    "derivative": (1, -1),
    "alt and neu": (1, 1),
    "alt and its derivative": (2, -1),
    "minus a derivative": (-1, 1),
}


def times(z: ZSet, n: int) -> ZSet:
    return ZSet.of([(row, n * w) for row, w in z])


def joined(x: ZSet, y: ZSet) -> ZSet:
    return ZSet.of([((k, v, u), w * z) for (k, v), w in x for (j, u), z in y if k == j])


PAIRS = list(product(KINDS, KINDS))


@cache
def joins_of_all_kinds() -> Circuit:
    circuit = Circuit()
    moments = Moments(circuit)
    x, y = circuit.source("x", PAIR), circuit.source("y", PAIR)
    for one, two in PAIRS:
        result = KINDS[one](moments, x).join_map(KINDS[two](moments, y), on="k")
        for moment, stream in ("alt", result.alt), ("neu", result.neu):
            if stream is not None:
                stream.sink(f"{one} × {two} at {moment}", keep=False)
    return circuit


@pytest.mark.parametrize("shards", [1, 3])
@given(ticks_of(2, 4, 4), ticks_of(2, 4, 4))
@settings(max_examples=20)
def test_a_join_is_right_at_every_moment(shards: int, xs: list[Changes], ys: list[Changes]) -> None:
    run = Embedded(joins_of_all_kinds(), shards=shards)
    held = dict.fromkeys(KINDS, (ZSet(), ZSet()))
    for tick in range(max(len(xs), len(ys))):
        dx, dy = (given[tick] if tick < len(given) else [] for given in (xs, ys))
        out = run.tick({"x": dx, "y": dy})
        for at, moment in enumerate(("alt", "neu")):
            before = held
            held = {
                kind: (x + times(ZSet.of(dx), AT[kind][at]), y + times(ZSet.of(dy), AT[kind][at]))
                for kind, (x, y) in held.items()
            }
            for one, two in PAIRS:
                name = f"{one} × {two} at {moment}"
                found = out[name].to_zset() if name in out else ZSet()
                want = joined(held[one][0], held[two][1]) - joined(before[one][0], before[two][1])
                assert found == want, f"{name}, tick {tick}"


def test_moments_survive_the_pass_to_changes() -> None:
    once = incrementalize(joins_of_all_kinds())
    assert str(incrementalize(once)) == str(once)


# -- triangles: a delta query for each edge


def concurrent(edge: Stream) -> Stream:
    """Every rule sees the edges as they are at alt, those of its own tick included."""
    moments = Moments(edge.circuit)
    return _triangles(moments, edge, *[moments.enter(edge)] * 4)


def nudged(edge: Stream) -> Stream:
    """A rule sees the new edges of the atoms before it, and not those of the atoms after it."""
    moments = Moments(edge.circuit)
    edges_alt = moments.enter(edge)
    edges_neu = edges_alt.delay()
    return _triangles(moments, edge, edges_neu, edges_neu, edges_alt, edges_alt)


def _triangles(
    moments: Moments, edge: Stream, ac: Collection, bc: Collection, ab: Collection, ac_last: Collection
) -> Stream:
    d_edges = moments.differentiate(edge)
    d_ab = (
        d_edges.rename({"src": "a", "dst": "b"})
        .join_map(ac, on=("a", "src"), select=["a", "b", "right.dst as c"])
        .semijoin(bc, on=[("b", "src"), ("c", "dst")])
    )
    d_ac = (
        d_edges.rename({"src": "a", "dst": "c"})
        .join_map(ab, on=("a", "src"), select=["a", "right.dst as b", "c"])
        .semijoin(bc, on=[("b", "src"), ("c", "dst")])
    )
    d_bc = (
        d_edges.rename({"src": "b", "dst": "c"})
        .join_map(ab, on=("b", "dst"), select=["right.src as a", "b", "c"])
        .semijoin(ac_last, on=[("a", "src"), ("c", "dst")])
    )
    return d_ab.concat(d_ac).concat(d_bc).integrate()


def run_of(query: Callable[[Stream], Stream], shards: int = 1) -> Embedded:
    circuit = Circuit()
    query(circuit.source("edge", EDGE)).sink("triangle", keep=False)
    return Embedded(circuit, shards=shards)


def triangles_of(edges: ZSet) -> ZSet:
    """By definition, weights multiplied."""
    return ZSet.of(
        [
            ((a, b, c), u * v * w)
            for (a, b), u in edges
            for (a2, c), v in edges
            if a2 == a
            for (b2, c2), w in edges
            if (b2, c2) == (b, c)
        ]
    )


THREE = [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]


def test_concurrent_rules_count_three_edges_of_one_tick_three_times() -> None:
    assert run_of(concurrent).tick({"edge": THREE})["triangle"].to_zset() == ZSet.of([((1, 2, 3), 3)])
    assert run_of(nudged).tick({"edge": THREE})["triangle"].to_zset() == ZSet.of([((1, 2, 3), 1)])


@pytest.mark.parametrize("edges", list(product(range(3), repeat=3)))
def test_three_edges_in_any_ticks_make_one_triangle(edges: tuple[int, ...]) -> None:
    """Whichever edge comes in which tick; without two in one tick, rules without a nudge are right, too."""
    ticks = [[change for change, at in zip(THREE, edges, strict=True) if at == tick] for tick in range(3)]
    for query in [nudged] + [concurrent] * (len(set(edges)) == 3):
        run = run_of(query)
        found = [run.tick({"edge": tick})["triangle"].to_zset() for tick in ticks]
        assert sum(found, ZSet()) == ZSet.of([((1, 2, 3), 1)])
        assert found[max(edges)] == ZSet.of([((1, 2, 3), 1)])


@pytest.mark.parametrize("shards", [1, 3])
@given(ticks_of(4, 5, 14))
def test_nudged_triangles(shards: int, ticks: list[Changes]) -> None:
    """Each tick's change, and the only state is the edges in three orders."""
    run, edges = run_of(nudged, shards), ZSet()
    for tick in ticks:
        before, edges = triangles_of(edges), edges + ZSet.of(tick)
        assert run.tick({"edge": tick})["triangle"].to_zset() == triangles_of(edges) - before
        assert len(run.state.traces) == 3
        assert rows_kept(run) == 3 * len(edges)


def test_a_plain_plan_keeps_the_square_of_a_degree() -> None:
    """What the calculus is for: the paths of a hub are many, and are not kept."""
    hub = [((0, leaf), 1) for leaf in range(1, 41)]
    assert _kept_after(nudged, hub) == 3 * len(hub)

    def plain(edge: Stream) -> Stream:
        wedges = edge.join(edge, "src", select=["src as a", "left.dst as b", "right.dst as c"])
        return wedges.join(edge, [("b", "src"), ("c", "dst")])

    assert _kept_after(plain, hub) >= len(hub) ** 2


def _kept_after(query: Callable[[Stream], Stream], edges: Changes) -> int:
    run = run_of(query)
    run.tick({"edge": edges})
    return rows_kept(run)


# -- a derivative leaves nothing behind


@given(ticks_of(3))
def test_the_trace_of_a_derivative_is_empty_between_ticks(ticks: list[Changes]) -> None:
    circuit = Circuit()
    blips = Moments(circuit).differentiate(circuit.source("x", PAIR))
    assert blips.alt is not None
    assert blips.neu is not None
    blips.alt.plus(blips.neu).trace()
    run = Embedded(circuit)
    for tick in ticks:
        run.tick({"x": tick})
        assert rows_kept(run) == 0


def test_a_derivative_is_joined_without_a_trace_of_it() -> None:
    circuit = Circuit()
    moments = Moments(circuit)
    x, y = circuit.source("x", PAIR), circuit.source("y", PAIR)
    moments.differentiate(x).join_map(moments.differentiate(y), on="k").integrate().sink("both", keep=False)
    moments.differentiate(x).join_map(moments.enter(y), on="k").integrate().sink("one", keep=False)
    moments.enter(y).join_map(moments.differentiate(x), on="k").integrate().sink("other", keep=False)
    run = Embedded(circuit)
    run.tick({"x": [((1, n), 1) for n in range(10)], "y": [((1, 7), 1)]})
    assert len(run.state.traces) == rows_kept(run) == 1


# -- as of now


def test_an_order_is_billed_as_of_its_tick() -> None:
    circuit = Circuit()
    moments = Moments(circuit)
    order = circuit.source("order", "item STRING NOT NULL")
    price = circuit.source("price", "item STRING NOT NULL, cents BIGINT NOT NULL")
    moments.differentiate(order).join_map(moments.enter(price), on="item").integrate().sink("bill")
    run = Embedded(circuit)

    def tick(**changes: list[tuple[tuple[str | int, ...], int]]) -> list[tuple[tuple[str | int, ...], int]]:
        return list(run.tick(changes)["bill"].to_zset())

    assert tick(order=[(("latte",), 1)]) == []  # there was no price
    # An order and a price of one tick meet.
    assert tick(order=[(("bacon",), 1)], price=[(("bacon", 300), 1)]) == [(("bacon", 300), 1)]
    assert tick(price=[(("bacon", 300), -1), (("bacon", 400), 1)]) == []
    assert tick(order=[(("bacon",), 1)]) == [(("bacon", 400), 1)]
    # Taking an order back takes back a row at today's price, which may never have been billed.
    assert tick(price=[(("bacon", 400), -1), (("bacon", 500), 1)]) == []
    assert tick(order=[(("bacon",), -1)]) == [(("bacon", 500), -1)]
    left = ZSet.of([(("bacon", 300), 1), (("bacon", 400), 1), (("bacon", 500), -1)])
    assert run.view("bill").contents().to_zset() == left


def test_linear_steps_act_at_both_moments() -> None:
    circuit = Circuit()
    moments = Moments(circuit)
    x = moments.enter(circuit.source("x", PAIR))
    kept = (
        (x + x.delay()).filter(lambda v: pc.greater(v, 1), columns="v").map(pc.negate, "n BIGINT NOT NULL", columns="v")
    )
    for name, stream in {"alt": kept.alt, "neu": kept.neu}.items():
        assert stream is not None
        stream.sink(name, keep=False)
    out = Embedded(circuit).tick({"x": [((0, 1), 1), ((0, 2), 3)]})
    assert [batch.to_zset() for batch in out.values()] == [ZSet.of([((-2,), 3)])] * 2


# -- what is refused


def test_moments_are_refused_inside_a_child() -> None:
    circuit = Circuit()
    child = circuit.child("loop")
    inner = child.enter(circuit.source("x", PAIR))
    with pytest.raises(CircuitError, match="totally ordered time"):
        Moments(child)
    with pytest.raises(CircuitError, match="not of the circuit"):
        Moments(circuit).enter(inner)
    with pytest.raises(CircuitError, match="not of the circuit"):
        Moments(circuit).differentiate(inner)


def test_what_would_always_be_empty_is_refused() -> None:
    circuit = Circuit()
    moments = Moments(circuit)
    x = circuit.source("x", PAIR)
    with pytest.raises(CircuitError, match="nothing at neu"):
        moments.differentiate(x).delay()
    with pytest.raises(CircuitError, match="are at neu"):
        moments.enter(x).delay().integrate()
    with pytest.raises(CircuitError, match="nothing after its tick"):
        moments.differentiate(x).leave()


def test_collections_that_do_not_fit() -> None:
    one, two = Circuit(), Circuit()
    x, y = (Moments(c).enter(c.source("x", PAIR)) for c in (one, two))
    with pytest.raises(CircuitError, match="different circuits"):
        x.join_map(y, on="k")
    with pytest.raises(CircuitError, match="different circuits"):
        x.concat(y)
    with pytest.raises(SchemaError, match="does not add"):
        x.concat(x.select("k"))


def test_the_oracle_takes_no_derivative_for_a_query() -> None:
    circuit = Circuit()
    d = Moments(circuit).differentiate(circuit.source("x", PAIR))
    d.join_map(d, on="k").integrate().sink("pairs")
    with pytest.raises(CircuitError, match="JoinChanges"):
        evaluate(circuit, {"x": ZSet()})


# -- partially ordered time: the cut is by a total order that extends it

Timed = Sequence[tuple[Time, int]]  # the changes of a collection of one row
Matches = dict[Time, int]


def summed(changes: Sequence[tuple[Time, int]]) -> Matches:
    found: Matches = {}
    for time, weight in changes:
        found[time] = found.get(time, 0) + weight
    return {time: weight for time, weight in found.items() if weight}


def by_definition(xs: Timed, ys: Timed) -> Matches:
    return summed([(s.join(t), w * v) for s, w in xs for t, v in ys])


def by_processing_order(xs: Timed, ys: Timed) -> Matches:
    """A change meets those of the other side that are before it in the order of processing; one of one side first."""
    forth = [(s.join(t), w * v) for s, w in xs for t, v in ys if t.coordinates < s.coordinates]
    back = [(s.join(t), w * v) for s, w in xs for t, v in ys if s.coordinates <= t.coordinates]
    return summed(forth + back)


def by_moments(xs: Timed, ys: Timed) -> Matches:
    """``integrate(dx ⋈ y_neu + x_alt ⋈ dy)``, by the moments' own order."""

    def derivative(changes: Timed) -> list[tuple[AltNeu[Time], int]]:
        return [(at(t), sign * w) for t, w in changes for at, sign in ((alt, 1), (neu, -1))]

    met = [(s.join(neu(t)), w * v) for s, w in derivative(xs) for t, v in ys]
    met += [(alt(s).join(t), w * v) for s, w in xs for t, v in derivative(ys)]
    return summed([(moment.time, w) for moment, w in met if not moment.neu])


@st.composite
def timed(draw: st.DrawFn, depth: int) -> Timed:
    coordinates = st.tuples(*[st.integers(0, 3)] * (depth + 1))
    drawn = draw(st.lists(st.tuples(coordinates, st.sampled_from([1, -1, 2])), max_size=5))
    return [(Time(*at), w) for at, w in drawn]


@given(timed(0), timed(0))
def test_of_ordered_times_every_pair_meets_once(xs: Timed, ys: Timed) -> None:
    assert by_moments(xs, ys) == by_processing_order(xs, ys) == by_definition(xs, ys)


@given(timed(1), timed(1))
def test_in_processing_order_every_pair_meets_once(xs: Timed, ys: Timed) -> None:
    assert by_processing_order(xs, ys) == by_definition(xs, ys)


def test_moments_lose_what_two_incomparable_times_make() -> None:
    xs, ys = [(Time(0, 13), 1)], [(Time(11, 0), 1)]
    assert by_definition(xs, ys) == by_processing_order(xs, ys) == {Time(11, 13): 1}
    assert by_moments(xs, ys) == {}


# -- and so it is in the joins of a child


def walked(child: Circuit, walks: Stream, steps: int) -> Stream:
    """(k, n) for every n up to a number of steps, each in iteration n."""
    at, again = child.feedback(walks.schema)
    onward = at.filter(lambda n: pc.less(n, steps), columns="v").extend(
        lambda n: pc.add(n, 1), "n BIGINT NOT NULL", columns="v"
    )
    every = walks + onward.select("k", v="n")
    again(every)
    return every


def arriving(walk: Stream, iteration: int) -> Stream:
    return walk.filter(lambda n: pc.equal(n, iteration), columns="v").select("k")


def meetings(late: int, *blip: int) -> tuple[Embedded, list[ZSet]]:
    """x arrives in some iteration; y comes, and with a blip goes, in others. What they make, as it is made."""
    circuit = Circuit()
    child = circuit.child("loop")
    x, y = (child.enter(circuit.source(name, PAIR)) for name in ("x", "y"))
    seen: list[ZSet] = []
    left = arriving(walked(child, x, 13), late)
    right = arriving(walked(child, y, 13), blip[0] if blip else 0)
    if blip:
        right = right - arriving(walked(child, y, 13), blip[1])
    child.leave(left.join(right, "k").inspect(seen.append)).sink("met")
    return Embedded(circuit), seen


def test_early_and_late_meet_once_in_a_child() -> None:
    """⟨0,13⟩ × ⟨11,0⟩."""
    run, seen = meetings(13)
    run.tick({"x": [((1, 0), 1)]})
    for _ in range(10):
        run.tick({})
    assert not any(map(len, seen))
    out = run.tick({"y": [((1, 0), 1)]})
    assert [z for z in seen if len(z)] == [ZSet.of([((1,), 1)])]
    assert out["met"].to_zset() == ZSet.of([((1,), 1)])


def test_what_came_and_went_between_does_not_surface() -> None:
    """y is there from epoch 3 to epoch 7; x comes to iteration 13 of epoch 11."""
    run, seen = meetings(13)
    for epoch in range(12):
        weight = {3: 1, 7: -1}.get(epoch)
        changes = {"y": [((1, 0), weight)]} if weight else {"x": [((1, 0), 1)]} if epoch == 11 else {}
        assert not len(run.tick(changes)["met"].to_zset())
    assert not any(map(len, seen))


def test_what_comes_and_goes_before_a_match_is_due_does_not_surface() -> None:
    """y comes in iteration 2 and goes in iteration 5 of epoch 11; x is there from iteration 13 on."""
    run, seen = meetings(13, 2, 5)
    run.tick({"x": [((1, 0), 1)]})
    assert not len(run.tick({"y": [((1, 0), 1)]})["met"].to_zset())
    assert not any(map(len, seen))


def test_what_comes_and_goes_after_it_is_due_is_undone() -> None:
    """x is there from iteration 3 on: they meet in iteration 3 and part in iteration 5."""
    run, seen = meetings(3, 2, 5)
    run.tick({"x": [((1, 0), 1)]})
    assert not len(run.tick({"y": [((1, 0), 1)]})["met"].to_zset())
    assert [z for z in seen if len(z)] == [ZSet.of([((1,), 1)]), ZSet.of([((1,), -1)])]
