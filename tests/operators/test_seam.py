"""Every operator that is there: it has all that passes, runtimes and the oracle ask for, whoever wrote it."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import everview.operators
from everview.circuit import Circuit
from everview.circuit.incrementalize import RULES, by_state, constant, incremental, linear, rule_of
from everview.operators.aggregate import Aggregate, Weigh
from everview.operators.arrange import Consolidate
from everview.operators.billed import Billed
from everview.operators.by_state import ByState, OverChanges, OverWhole
from everview.operators.constant import Repeated, Unit, Written
from everview.operators.due import DueIncremental
from everview.operators.expired import Expired
from everview.operators.join import JoinChanges, JoinTrace
from everview.operators.linear import FlatMap
from everview.operators.multijoin import Deal
from everview.operators.operator import Context, Layout, Operator, Port, UnaryOperator, key_partition
from everview.operators.pad import Pad
from everview.operators.pointwise import Pointwise
from everview.operators.semijoin import SemijoinIncremental
from everview.oracle import evaluate
from everview.oracle.meanings import MEANINGS
from everview.oracle.rows import Rows
from everview.runtimes.embedded import Embedded
from everview.traces.view import TraceView
from everview.types.words import Matrix
from everview.zset import ZSet


def below(kind: type[Operator]) -> Iterator[type[Operator]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from below(inner)


def operators() -> list[type[Operator]]:
    """The classes that circuits are made of."""
    for module in pkgutil.walk_packages(everview.operators.__path__, "everview.operators."):
        import_module(module.name)
    ours = {kind for kind in below(Operator) if kind.__module__.startswith("everview.")}
    return sorted((kind for kind in ours if not inspect.isabstract(kind)), key=lambda kind: kind.__name__)


OPERATORS = operators()


def test_they_are_found() -> None:
    assert len(OPERATORS) > 40
    assert set(RULES) <= set(OPERATORS)
    assert set(MEANINGS) <= set(OPERATORS)


@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_is_frozen_data_that_says_what_it_is(kind: type[Operator]) -> None:
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert kind.__doc__, "it has a docstring"
    assert not kind.__doc__.startswith(f"{kind.__name__}("), "of its own"


@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_has_a_law(kind: type[Operator]) -> None:
    """A line in the table; what reads traces is incremental, and has none."""
    assert rule_of(kind).__doc__
    assert (kind in RULES) == (kind.reads is Operator.reads)


@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_of_a_query_has_a_meaning(kind: type[Operator]) -> None:
    """An aggregate means something of the rows before they are weighed, and is known to the oracle by itself."""
    assert (kind in MEANINGS) == (rule_of(kind) is not incremental and kind not in (Weigh, Aggregate))


@pytest.mark.parametrize("kind", OPERATORS)
def test_what_reads_traces_runs_at_nested_time_or_says_why_not(kind: type[Operator]) -> None:
    if kind.reads is not Operator.reads and kind not in (Pointwise, SemijoinIncremental):  # never put into a child
        assert kind.step_at is not Operator.step_at or kind.root_only is not None


# These make values of their own, or nothing that expires is known to need them: what they read is kept.
KEPT = {
    Billed, Consolidate, Deal, DueIncremental, Expired, FlatMap, JoinChanges, JoinTrace, Pad, Pointwise, Repeated, Unit,
    Written,
}  # fmt: skip
IN_CHANGES = [kind for kind in OPERATORS if rule_of(kind) in (linear, constant, incremental)]


@pytest.mark.parametrize("kind", IN_CHANGES)
def test_an_operator_says_where_its_values_come_from_or_nothing_behind_it_expires(kind: type[Operator]) -> None:
    assert (kind.origins is Operator.origins) == (kind in KEPT)


@pytest.mark.parametrize("kind", [kind for kind in OPERATORS if kind.reads is not Operator.reads])
def test_an_operator_says_which_rows_of_its_traces_are_read_again_or_all_are_kept(kind: type[Operator]) -> None:
    assert (kind.lookups is Operator.lookups) == (kind in KEPT)


@pytest.mark.parametrize("kind", [kind for kind in OPERATORS if issubclass(kind, OverWhole)])
def test_what_depends_on_state_comes_in_pairs(kind: type[Operator]) -> None:
    (both,) = (base for base in kind.__bases__ if base is not OverWhole)
    assert any(issubclass(other, OverChanges) and both in other.__bases__ for other in OPERATORS)


# -- one that nobody else knows

EDGE = "a BIGINT NOT NULL, b BIGINT NOT NULL"


@dataclass(frozen=True)
class _Doubled(ByState, UnaryOperator):
    """Rows that are there, twice each: as large an interface as an operator needs that depends on state."""

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, key_partition(len(self.source.schema))),)

    @property
    def output(self) -> Layout:
        return Layout(self.source.schema)  # no batch: old and new rows one after the other

    @property
    def group_words(self) -> int:
        return self.source.width

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        present = [groups[view.weights(groups, self.group_words) > 0] for (view,) in states]
        return [np.column_stack([rows[:, :-1], np.full(len(rows), 2)]) for rows in present]


@dataclass(frozen=True)
class Doubled(OverWhole, _Doubled):
    """Of every tick's whole input."""

    def incremental(self) -> Operator:
        return DoubledIncremental(self.source)


@dataclass(frozen=True)
class DoubledIncremental(OverChanges, _Doubled):
    """Its change."""


def closure_doubled() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    loop = circuit.child("closure")
    inner = loop.enter(edge)
    path, again = loop.feedback(EDGE)
    longer = (inner + path.join(inner, ("b", "a"), select=["left.a", "right.b"])).index("a", "b")
    paths = loop.add(Doubled(longer.layout), [longer])
    again(paths)
    left = loop.leave(paths).index("a", "b")
    circuit.add(Doubled(left.layout), [left]).sink("path")
    return circuit


@pytest.mark.parametrize("shards", [1, 3])
def test_a_new_operator_runs_at_the_root_and_in_loops_on_any_number_of_shards(
    shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a line in the table, and one that says what it means."""

    def meaning(operator: Doubled, inputs: tuple[Rows, ...], functions: Any) -> Rows:
        return Rows({row: 2 for row, w in inputs[0] if w > 0})

    monkeypatch.setitem(RULES, Doubled, by_state)
    monkeypatch.setitem(MEANINGS, Doubled, meaning)
    query, held = closure_doubled(), ZSet()
    run = Embedded(query, shards=shards)
    for change in ({(1, 2): 1, (2, 3): 1, (5, 6): -1}, {(3, 1): 1, (5, 6): 2}, {(2, 3): -1}, {(3, 1): -1, (2, 1): 1}):
        held += ZSet(change)
        run.tick({"edge": ZSet(change)})
        assert run.view("path").contents().to_zset() == evaluate(query, {"edge": held})["path"]
