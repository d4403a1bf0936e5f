"""A user's own aggregate: Arrow lists in, one value a group out; or a plain function of one group."""

from __future__ import annotations

import statistics
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, incrementalize
from everview.errors import FunctionError
from everview.operators.functions import Function
from everview.runtimes.embedded import Embedded

ROWS = [(("a", 1, 4.0), 2), (("a", 3, None), 1), (("b", 5, 1.0), 1), (("b", 2, 2.0), -1)]


def run_of(call: Any, **options: Any) -> Embedded:
    circuit = Circuit()
    rows = circuit.source("t", "g STRING NOT NULL, x BIGINT NOT NULL, y DOUBLE")
    rows.aggregate(["g"], n="count", found=call).sink("found")
    return Embedded(incrementalize(circuit), **options)


def found_by(call: Any, rows: Any = ROWS, **options: Any) -> dict[str, Any]:
    run = run_of(call, **options)
    run.tick({"t": rows})
    return {g: found for g, _, found in run.view("found").rows()}


def weighted_mean(xs: pa.ListArray, ys: pa.ListArray) -> pa.Array:
    """``Σ x·y / Σ y`` of every group at once."""
    owners = pc.list_parent_indices(xs)
    columns = {"owner": owners, "xy": pc.multiply(xs.flatten(), ys.flatten()), "y": ys.flatten()}
    sums = pa.table(columns).group_by("owner").aggregate([("xy", "sum"), ("y", "sum")]).sort_by("owner")
    assert len(sums) == len(xs), "here no group is empty"
    return pc.divide(sums["xy_sum"], sums["y_sum"])


def test_a_vectorised_function_gets_a_list_a_group_and_argument() -> None:
    seen: list[Any] = []

    def spy(xs: pa.ListArray, ys: pa.ListArray) -> pa.Array:
        seen.append((xs.type, ys.type, xs.to_pylist(), ys.to_pylist()))
        return pc.list_value_length(xs)

    call = (spy, ["x", "y"], {"type": "INTEGER NOT NULL", "order": ["y desc"]})
    assert found_by(call, [*ROWS, (("b", 2, 2.0), 1)]) == {"a": 3, "b": 1}
    ((xs, ys, lists, others),) = seen
    assert (xs, ys) == (pa.list_(pa.int64()), pa.list_(pa.float64()))
    assert sorted(zip(lists, others, strict=True)) == [([1, 1, 3], [4.0, 4.0, None]), ([5], [1.0])]


def test_a_function_of_several_columns() -> None:
    assert found_by((weighted_mean, ["x", "y"], {"type": "DOUBLE", "nulls": "skip"}), ROWS[:3]) == {"a": 1.0, "b": 5.0}


@pytest.mark.parametrize("shards", [1, 3])
def test_a_plain_function_of_one_group(shards: int) -> None:
    call = (statistics.fmean, "x", {"type": "DOUBLE", "by_group": True})
    assert found_by(call, ROWS[:3], shards=shards) == {"a": 5 / 3, "b": 5.0}


def test_values_come_in_order_so_a_result_does_not_depend_on_arrival() -> None:
    call = (lambda xs: ",".join(map(str, xs)), "x", {"type": "STRING", "by_group": True, "distinct": True})
    forth = found_by(call, [(("a", x, None), 2) for x in (3, 1, 2)])
    back = found_by(call, [(("a", x, None), 1) for x in (2, 1, 3)])
    assert forth == back == {"a": "1,2,3"}


def test_a_function_is_not_asked_about_groups_that_are_not_there() -> None:
    call = (max, "x", {"type": "BIGINT", "by_group": True})
    run = run_of(call)
    run.tick({"t": [(("a", 1, None), 1), (("b", 1, None), -1)]})
    assert run.view("found").rows() == [("a", 1, 1)]
    run.tick({"t": [(("a", 1, None), -1)]})
    assert run.view("found").rows() == []


def test_a_function_is_known_by_its_name() -> None:
    def built(name: str) -> str:
        circuit = Circuit()
        rows = circuit.source("t", "x BIGINT")
        rows.aggregate(found=(Function(name, len, "rows"), "x", {"type": "BIGINT"})).sink("found")
        return circuit.fingerprint(len(circuit) - 1)

    assert built("size") == built("size") != built("length")


def test_a_function_that_is_not_pure_is_found_out() -> None:
    ticket = count()
    call = (lambda xs: next(ticket), "x", {"type": "BIGINT", "by_group": True})
    with pytest.raises(FunctionError, match="is not pure"):
        found_by(call, check_functions=True)


WRONG: list[tuple[Any, str]] = [
    (lambda xs: pa.array([1, 2, 3]), "returned 3 values for 2 rows"),
    (lambda xs: 1 / 0, "raised ZeroDivisionError"),
    (lambda xs: (xs, xs), "returned 2 columns, not 1"),
]


@pytest.mark.parametrize(("function", "words"), WRONG)
def test_a_function_that_fails_fails_the_tick(function: Any, words: str) -> None:
    run = run_of((function, "x", {"type": "BIGINT"}))
    with pytest.raises(FunctionError, match=words):
        run.tick({"t": ROWS[:3]})
    assert run.view("found").rows() == []
