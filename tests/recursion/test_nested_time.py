"""Operators at nested times, against recomputation at every ⟨epoch, iteration, …⟩.

The collection at a time is the sum of the changes at all times before it in every coordinate; an operator is right if
its output's collection is the operator of its inputs' collections, at every time of the grid.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.circuit.nodes import Apply, Read
from everview.circuit.stepping import Owed, Ran
from everview.codes.dictionary import Dictionary
from everview.kernels.timed import stamped
from everview.operators.arrange import Arrange
from everview.operators.operator import Context, Moment, TimedView
from everview.runtimes.pending import Pending
from everview.traces.trace import Trace
from everview.zset import ZSet

Times = dict[tuple[int, ...], ZSet]  # the change at each time, epoch first


class Nested:
    """One operator with the indexes and traces of its inputs, stepped through a grid of times."""

    def __init__(self, circuit: Circuit, depth: int) -> None:
        """Takes a circuit of sources, linear operators and one operator that reads traces."""
        self.circuit, self.depth = circuit, depth
        self.context = Context(Dictionary(), circuit.functions)
        self.traces = {
            at: Trace(node.output.width + depth + 1, self.context.order(node.output, depth))
            for at, node in enumerate(circuit)
            if isinstance(node, Apply) and isinstance(node.operator, Arrange)
        }
        self.last = max(at for at, node in enumerate(circuit) if isinstance(node, Apply))

    def run(self, inputs: dict[str, Times], grid: list[tuple[int, ...]]) -> Times:
        """The operator's changes at every time of the grid, which is in lexicographic order."""
        out: Times = {}
        pending, epoch = Pending(1), 0
        for time in grid:
            if time[0] != epoch:
                self._close(pending)
                pending, epoch = Pending(1), time[0]
            out[time] = self._step(
                time[1:], {name: changes.get(time, ZSet()) for name, changes in inputs.items()}, pending
            )
        return out

    def _step(self, at: tuple[int, ...], inputs: dict[str, ZSet], pending: Pending) -> ZSet:
        cells = {
            node: _matrix(inputs[name], self.circuit.layout(node).width) for name, node in self.circuit.sources.items()
        }
        now, ran = np.array(at, np.int64), Ran(cells)
        due: Owed = pending.due((), at, 0, tuple(range(len(self.circuit))))
        for node in self.circuit.order():
            found = self.circuit[node]
            if isinstance(found, Apply):
                deltas = [cells[i] for i in found.inputs if i is not None]
                reads = [self._reading(r, cells, now) for r in found.reads]
                step = found.operator.step_at(now, deltas, due.woken.get(node), reads, self.context)
                held = due.held.get(node)
                cells[node] = step.out if held is None else np.concatenate([step.out, held])
                if step.append is not None:
                    ran.appends[node] = step.append
                if step.held is not None:
                    ran.held[node] = step.held
                if step.wake is not None:
                    ran.wakes[node] = step.wake
        for node, batch in ran.appends.items():
            self.traces[node].push(batch)
        pending.note((), 0, ran, self.depth)
        return ZSet.of([(tuple(row[:-1]), row[-1]) for row in cells[self.last].tolist()])

    def _reading(self, read: Read, cells: dict[int, np.ndarray], now: np.ndarray) -> TimedView:
        trace = self.traces[read.node]
        seen = trace.after if read.moment is Moment.BEFORE else trace.after.plus(stamped(cells[read.node], now))
        return TimedView(trace.before, seen)

    def _close(self, pending: Pending) -> None:
        for trace in self.traces.values():
            trace.close()


def _matrix(rows: ZSet, width: int) -> np.ndarray:
    return np.array([[*row, w] for row, w in rows], np.int64).reshape(-1, width + 1)


def collection(changes: Times, time: tuple[int, ...]) -> ZSet:
    below = [z for t, z in changes.items() if all(a <= b for a, b in zip(t, time, strict=True))]
    return sum(below, ZSet())


# -- the operators, as circuits and as functions of whole collections

PAIR = "k BIGINT NOT NULL, v BIGINT NOT NULL"


def _distinct() -> Circuit:
    circuit = Circuit()
    circuit.source("x", PAIR).distinct()
    return incrementalize(circuit)


def _join() -> Circuit:
    circuit = Circuit()
    circuit.source("x", PAIR).join(circuit.source("y", PAIR), "k")
    return incrementalize(circuit)


def _three_terms() -> Circuit:
    """The join from its parts, with traces read by hand."""
    circuit = Circuit()
    x, y = circuit.source("x", PAIR).index("k"), circuit.source("y", PAIR).index("k")
    forwards = x.join_trace(y.trace().delay(), "k")
    backwards = y.join_trace(x.trace(), "k", select=["left.k", "right.v as u", "left.v as v"])
    forwards.plus(backwards.select("k", v="u", v_right="v"))
    return circuit


def _self_join() -> Circuit:
    circuit = Circuit()
    x = circuit.source("x", PAIR)
    x.join(x, ("v", "k"))
    return incrementalize(circuit)


def _least() -> Circuit:
    circuit = Circuit()
    circuit.source("x", PAIR).aggregate(["k"], least=("min", "v"), greatest=("max", "v"))
    return incrementalize(circuit)


def _sum() -> Circuit:
    circuit = Circuit()
    circuit.source("x", PAIR).aggregate(["k"], total=("sum", "v"), n="count")
    return incrementalize(circuit)


def _grouped(x: ZSet) -> dict[int, ZSet]:
    groups: dict[int, ZSet] = {}
    for (k, v), w in x:
        groups[k] = groups.get(k, ZSet()) + ZSet.of([(v, w)])
    return {k: vs for k, vs in groups.items() if sum(w for _, w in vs) > 0}


def _least_of(x: ZSet) -> ZSet:
    found = {k: [v for v, w in vs if w > 0] for k, vs in _grouped(x).items()}
    return ZSet.of([((k, min(vs), max(vs)), 1) for k, vs in found.items()])


def _sum_of(x: ZSet) -> ZSet:
    return ZSet.of([((k, sum(v * w for v, w in vs), sum(w for _, w in vs)), 1) for k, vs in _grouped(x).items()])


def _join_of(x: ZSet, y: ZSet) -> ZSet:
    return ZSet.of([((k, v, u), w * z) for (k, v), w in x for (j, u), z in y if k == j])


def _self_join_of(x: ZSet) -> ZSet:
    return ZSet.of([((k, v, u), w * z) for (k, v), w in x for (j, u), z in x if v == j])


CASES = {
    "distinct": (_distinct, lambda x: x.distinct(), ("x",)),
    "join": (_join, _join_of, ("x", "y")),
    "join by hand": (_three_terms, _join_of, ("x", "y")),
    "self join": (_self_join, _self_join_of, ("x",)),
    "min and max": (_least, _least_of, ("x",)),
    "sum and count": (_sum, _sum_of, ("x",)),
}


@st.composite
def grids(draw: st.DrawFn, names: tuple[str, ...], depth: int) -> tuple[dict[str, Times], list[tuple[int, ...]]]:
    """Changes at every time of a small grid, with cancelling and negative weights, and many empty times."""
    sizes = [draw(st.integers(1, 3)) for _ in range(depth + 1)]
    grid = list(product(*(range(n) for n in sizes)))
    row = st.tuples(st.integers(0, 1), st.integers(0, 1))
    change = st.one_of(st.just([]), st.lists(st.tuples(row, st.sampled_from([1, 1, -1, 2, -2])), max_size=3))
    return {name: {t: ZSet.of(draw(change)) for t in grid} for name in names}, grid


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_every_time_of_the_grid(case: str, depth: int, data: st.DataObject) -> None:
    build, meaning, names = CASES[case]
    inputs, grid = data.draw(grids(names, depth))
    out = Nested(build(), depth).run(inputs, grid)
    for time in grid:
        want = meaning(*(collection(inputs[name], time) for name in names))
        assert collection(out, time) == want, (time, out)


ELEMENTS = [-1, 0, 1]


def test_distinct_exhaustively() -> None:
    """One element, two epochs, three iterations, every combination of weights from −1 to 1."""
    grid = list(product(range(2), range(3)))
    for weights in product(ELEMENTS, repeat=len(grid)):
        changes = {t: ZSet.of([((0, 0), w)]) for t, w in zip(grid, weights, strict=True)}
        out = Nested(_distinct(), 1).run({"x": changes}, grid)
        for time in grid:
            assert collection(out, time) == collection(changes, time).distinct(), weights


def test_the_printed_example() -> None:
    """Elements 0 to 5 of the distinct trace example, with element 4 left out and element 5 looked at again."""

    def rows(*found: tuple[int, int]) -> ZSet:
        return ZSet.of([((e, 0), w) for e, w in found])

    changes = {
        (0, 0): rows((0, 1), (2, 1), (3, -1)),
        (0, 1): rows((5, 1)),
        (1, 0): rows((5, 1)),
        (1, 1): rows((0, 1), (1, 1), (2, -1), (3, 1), (4, -1)),
    }
    out = Nested(_distinct(), 1).run({"x": changes}, sorted(changes))
    assert out == {
        (0, 0): rows((0, 1), (2, 1)),
        (0, 1): rows((5, 1)),
        (1, 0): rows((5, 1)),
        (1, 1): rows((1, 1), (2, -1), (5, -1)),
    }


def test_a_match_with_a_later_iteration_is_held() -> None:
    """⟨0,13⟩ × ⟨11,0⟩ meet exactly once, at ⟨11,13⟩."""
    left = {(0, 13): ZSet.of([((1, 5), 1)])}
    right = {(11, 0): ZSet.of([((1, 7), 1)])}
    grid = [(0, 0), (0, 13), (11, 0), (11, 13)]
    out = Nested(_join(), 1).run({"x": left, "y": right}, grid)
    assert {t: z for t, z in out.items() if len(z)} == {(11, 13): ZSet.of([((1, 5, 7), 1)])}
