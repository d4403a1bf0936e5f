"""Every operator that is there: it has all that passes, runtimes and the oracle ask for, whoever wrote it."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module

import pytest

import everview.operators
from everview.circuit.incrementalize import RULES, incremental, rule_of
from everview.operators.aggregate import Aggregate, Weigh
from everview.operators.by_state import OverChanges, OverWhole
from everview.operators.operator import Operator
from everview.operators.pointwise import Pointwise
from everview.operators.semijoin import SemijoinIncremental
from everview.oracle.meanings import MEANINGS


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


@pytest.mark.parametrize("kind", [kind for kind in OPERATORS if issubclass(kind, OverWhole)])
def test_what_depends_on_state_comes_in_pairs(kind: type[Operator]) -> None:
    (both,) = (base for base in kind.__bases__ if base is not OverWhole)
    assert any(issubclass(other, OverChanges) and both in other.__bases__ for other in OPERATORS)
