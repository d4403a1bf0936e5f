"""Every aggregate of the registry is computed, has a meaning, and can be written in the languages that name it."""

from __future__ import annotations

import pytest

from everview.frontends.fluent import agg
from everview.lowering import ranges
from everview.lowering.aggregates import CALLS
from everview.operators.aggregate.added import FINISHED
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.ordered import IN_ORDER
from everview.operators.aggregate.registry import (
    AGGREGATES,
    COMPUTED,
    AggregateFunction,
    ComputedAggregate,
    aggregates_of,
    computed_under,
)
from everview.oracle.aggregates import result
from everview.types import BOOLEAN, DOUBLE, INTEGER, STRING, Field, Schema, Type

VALUES: dict[Type, object] = {DOUBLE: 1.5, BOOLEAN: True, STRING: "text", INTEGER: 6}


@pytest.mark.parametrize("line", [line for line in COMPUTED if line.law != "user"], ids=lambda line: line.name)
def test_the_oracle_knows_the_meaning(line: ComputedAggregate) -> None:
    of = BOOLEAN if "trues" in line.sums else STRING if line.name == "string" else DOUBLE
    of = INTEGER if "bits" in line.sums else of
    fields = (0, 1) if line.pair else (0,)
    entries = [((VALUES[of],) * 2, 1), ((VALUES[of],) * 2, 1)]
    assert result(Call(line.name, fields), Schema([Field("x", of), Field("y", of)]), entries) is not None


def test_operators_compute_it() -> None:
    assert set(FINISHED) == set(computed_under("linear"))
    assert set(IN_ORDER) == set(computed_under("ordered"))


@pytest.mark.parametrize("line", AGGREGATES, ids=lambda line: line.name)
def test_plans_are_lowered(line: AggregateFunction) -> None:
    only_written = line.form in ("grouping", "count different", "derived")  # SQL writes others for these
    assert (line.name in CALLS) != only_written
    assert bool(line.computed) == (line.form not in ("grouping", "derived"))
    assert {line.duckdb} <= {"", *CALLS}


def test_windows_compute_what_the_registry_says() -> None:
    assert set(ranges.AGGREGATES.values()) <= set(ranges.KNOWN)


def test_fluent_queries_have_a_function_of_each() -> None:
    assert set(agg.__all__) == {"Agg", *aggregates_of("fluent")}


@pytest.mark.parametrize("language", ["sql", "edn", "datalog", "pomologic", "fluent"])
def test_a_name_means_one_aggregate(language: str) -> None:
    names = [name for line in AGGREGATES for name in str(getattr(line, language)).split()]
    assert len(names) == len(set(names))
