"""The incremental generic join: against exhaustive search, and where a delta formula level by level goes wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from everview.errors import SchemaError, WeightOverflow, WrongArity
from everview.multiway import IncrementalGenericJoin, IncrementalIndex, Pattern, PatternIndex, Variable, variables
from everview.theory.prefixes import Prefix
from everview.zset import IndexedZSet, ZSet
from theory.queries import And, State, Tick, answers, applied, joins, streams

A, B, C = ORDER = variables("a b c")
TRIANGLE = Pattern("R", A, B), Pattern("S", A, C), Pattern("T", B, C)
SELF = Pattern("E", A, B), Pattern("E", A, C), Pattern("E", B, C)


def join(patterns: Sequence[Pattern], order: Sequence[Variable] = ORDER) -> IncrementalGenericJoin:
    return IncrementalGenericJoin([PatternIndex(pattern, order) for pattern in patterns], len(order))


@given(joins(), streams())
def test_every_tick_gives_the_change_of_the_answers(
    query: tuple[list[Pattern], tuple[Variable, ...]], stream: list[Tick]
) -> None:
    patterns, order = query
    incremental = join(patterns, order)
    state: State = {}
    held = ZSet()
    for tick in stream:
        state = applied(state, tick)
        held += incremental.join(tick)
        assert held == answers(And(tuple(patterns)), order, state)


# -- one edge


EDGES = {"R": (1, 2), "S": (1, 3), "T": (2, 3)}


@pytest.mark.parametrize("closing", EDGES)
def test_one_edge_closes_and_opens_a_triangle_through_each_atom(closing: str) -> None:
    triangles = join(TRIANGLE)
    rest = {name: ZSet({edge: 1}) for name, edge in EDGES.items() if name != closing}
    edge = ZSet({EDGES[closing]: 1})
    assert triangles.join(rest) == ZSet()
    assert triangles.join({closing: edge}) == ZSet({(1, 2, 3): 1})
    assert triangles.join({closing: -edge}) == ZSet({(1, 2, 3): -1})
    assert triangles.join({closing: edge * 3}) == ZSet({(1, 2, 3): 3})


@pytest.mark.parametrize("edge", EDGES.values())
def test_one_edge_of_one_relation_in_three_atoms(edge: tuple[int, int]) -> None:
    triangles = join(SELF)
    assert triangles.join({"E": ZSet({e: 1 for e in EDGES.values() if e != edge})}) == ZSet()
    assert triangles.join({"E": ZSet({edge: 1})}) == ZSet({(1, 2, 3): 1})
    assert triangles.join({"E": ZSet({edge: -1})}) == ZSet({(1, 2, 3): -1})


@pytest.mark.parametrize("patterns", [TRIANGLE, SELF])
def test_three_new_edges_in_one_tick_are_one_triangle(patterns: tuple[Pattern, ...]) -> None:
    triangles = join(patterns)
    tick = {name: ZSet({edge: 1}) for name, edge in EDGES.items()} | {"E": ZSet(dict.fromkeys(EDGES.values(), 1))}
    assert triangles.join(tick) == ZSet({(1, 2, 3): 1})
    assert triangles.join({name: -rows for name, rows in tick.items()}) == ZSet({(1, 2, 3): -1})


def test_one_loop_is_in_all_three_atoms() -> None:
    triangles = join(SELF)
    assert triangles.join({"E": ZSet({(1, 1): 2})}) == ZSet({(1, 1, 1): 8})
    assert triangles.join({"E": ZSet({(1, 1): -3})}) == ZSet({(1, 1, 1): -9})


def test_a_worked_example_of_a_path_with_a_predicate_counts_its_one_binding_once() -> None:
    path = join([Pattern("A", A, B), Pattern("P", B), Pattern("B", B, C)])
    tick = {"A": ZSet({("a1", "b2"): 1}), "B": ZSet({("b2", "c3"): 1}), "P": ZSet({("b2",): 1})}
    assert path.join(tick) == ZSet({("a1", "b2", "c3"): 1})


def test_variables_that_are_no_prefix_of_the_order() -> None:
    path = join([Pattern("A", A, B), Pattern("B", B, C)])
    path.join({"A": ZSet({(1, 2): 1, (5, 2): 1, (6, 7): 1})})
    assert path.join({"B": ZSet({(2, 3): 1})}) == ZSet({(1, 2, 3): 1, (5, 2, 3): 1})


def test_a_prefix_whose_weights_sum_to_zero_is_there() -> None:
    triangles = join(SELF)
    edges = ZSet({(1, 2): 1, (1, 3): -1})
    assert triangles.join({"E": edges}) == ZSet()
    assert triangles.join({"E": ZSet({(2, 3): 1})}) == ZSet({(1, 2, 3): -1})


def test_a_constant_pattern_is_a_factor() -> None:
    guarded = join([Pattern("on", True), Pattern("R", A)], (A,))
    assert guarded.join({"R": ZSet({(1,): 1}), "on": ZSet({(1,): 1})}) == ZSet()  # 1 is not True
    assert guarded.join({"on": ZSet({(True,): 2})}) == ZSet({(1,): 2})
    assert guarded.join({"R": ZSet({(2,): 1}), "on": ZSet({(True,): -2})}) == ZSet({(1,): -2})


def test_a_join_without_variables_is_a_product_of_weights() -> None:
    product = join([Pattern("R", 1), Pattern("S", 2)], ())
    assert product.join({"R": ZSet({(1,): 3}), "S": ZSet({(2,): 2})}) == ZSet({(): 6})
    assert product.join({"R": ZSet({(1,): -1, (2,): 1})}) == ZSet({(): -2})


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({(i, j) for i in range(12) for j in range(i + 1, 12)}, 220),
        ({(i, 10 + j) for i in range(10) for j in range(10)}, 0),
        ({(0, i) for i in range(1, 60)}, 0),
        ({(0, i) for i in range(1, 60)} | {(i, i + 1) for i in range(1, 59)}, 58),
    ],
    ids=["complete", "bipartite", "star", "star and ring"],
)
def test_triangles_of_known_graphs(edges: set[tuple[int, int]], expected: int) -> None:
    assert len(join(SELF).join({"E": ZSet(dict.fromkeys(edges, 1))})) == expected


# -- what cannot be


def test_a_tick_that_fails_has_not_happened() -> None:
    pairs = join([Pattern("R", A), Pattern("S", B)], (A, B))
    pairs.join({"R": ZSet({(1,): 2**40})})
    with pytest.raises(WeightOverflow):
        pairs.join({"S": ZSet({(1,): 2**40})})
    assert pairs.join({"S": ZSet({(1,): 2})}) == ZSet({(1, 1): 2**41})


def test_rows_and_orders_that_do_not_fit_are_refused() -> None:
    with pytest.raises(WrongArity, match="tuples of 2"):
        join(SELF).join({"E": ZSet({(1, 2, 3): 1})})
    with pytest.raises(SchemaError, match="does not bind"):
        PatternIndex(Pattern("E", A, B), (A,))
    with pytest.raises(SchemaError, match="twice"):
        PatternIndex(Pattern("E", A, B), (A, B, A))
    with pytest.raises(SchemaError, match="level 2"):
        IncrementalGenericJoin([PatternIndex(Pattern("E", A, B), ORDER)], 3)
    with pytest.raises(SchemaError, match="no level 1"):
        IncrementalGenericJoin([PatternIndex(Pattern("E", A, B), ORDER)], 1)


# -- the delta formula applied at every level, instead of to whole atoms


class LevelByLevel:
    """The multi-join formula at each level: what an index that did not change at a level says there is lost."""

    def __init__(self, relations: Sequence[IncrementalIndex], levels: int) -> None:
        self.relations = relations
        self.levels = levels

    def _level_delta(self, prefix: Prefix, relations: Sequence[IncrementalIndex]) -> ZSet:
        if not relations:
            return ZSet()
        smallest = min(range(len(relations)), key=lambda n: relations[n].delta.count(prefix))
        running = relations[smallest].delta.propose(prefix)
        for j, relation in enumerate(relations):
            if j == smallest:
                continue
            delta = relation.delta.propose(prefix)
            term = delta
            for k in range(j):
                term = relations[k].accumulated.intersect(prefix, term)
            if smallest > j:
                term = relations[smallest].accumulated.intersect(prefix, term)
            running = running.equi_join(delta) + relation.accumulated.intersect(prefix, running) + term
        return running

    def join(self, deltas: Tick) -> ZSet:
        for relation in self.relations:
            relation.receive_delta(deltas)
        found: ZSet | IndexedZSet | None = None
        for level in range(self.levels):
            present = [relation for relation in self.relations if relation.participates_in_level(level)]

            def extend(prefix: Prefix, weight: int, present: list[IncrementalIndex] = present) -> ZSet:
                return self._level_delta(prefix, present) * weight

            found = extend((), 1) if found is None else found.extend_leaves(extend)
        for relation in self.relations:
            relation.commit()
        return found.flatten() if isinstance(found, IndexedZSet) else ZSet()


def level_by_level(patterns: Sequence[Pattern]) -> LevelByLevel:
    return LevelByLevel([PatternIndex(pattern, ORDER) for pattern in patterns], 3)


def test_level_by_level_an_edge_that_closes_a_triangle_is_lost() -> None:
    lossy, right = level_by_level(TRIANGLE), join(TRIANGLE)
    before = {"R": ZSet({(1, 2): 1}), "S": ZSet({(1, 3): 1})}
    lossy.join(before)
    right.join(before)
    last = {"T": ZSet({(2, 3): 1})}  # level a has no delta
    assert lossy.join(last) == ZSet()
    assert right.join(last) == ZSet({(1, 2, 3): 1})


@pytest.mark.parametrize("edge", EDGES.values())
def test_level_by_level_no_edge_of_one_relation_closes_a_triangle(edge: tuple[int, int]) -> None:
    lossy, right = level_by_level(SELF), join(SELF)
    before = {"E": ZSet({e: 1 for e in EDGES.values() if e != edge})}
    lossy.join(before)
    right.join(before)
    assert lossy.join({"E": ZSet({edge: 1})}) == ZSet()
    assert right.join({"E": ZSet({edge: 1})}) == ZSet({(1, 2, 3): 1})


def test_level_by_level_three_new_edges_at_a_known_node_count_three_times() -> None:
    wrong, right = level_by_level(SELF), join(SELF)
    before = {"E": ZSet({(1, 9): 1})}
    wrong.join(before)
    right.join(before)
    tick = {"E": ZSet(dict.fromkeys(EDGES.values(), 1))}  # node 1 is both old and new: three products at level a
    assert wrong.join(tick) == ZSet({(1, 2, 3): 3})
    assert right.join(tick) == ZSet({(1, 2, 3): 1})
