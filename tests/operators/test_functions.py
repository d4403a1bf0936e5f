"""What users' functions may get wrong: every mistake is told as theirs, and the tick has not happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, Stream
from everview.errors import FunctionError
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet


def raises(*arguments: Any) -> Any:
    raise ValueError("not today")


def raises_late(a: int) -> Iterator[int]:
    yield a
    raise ValueError("not today")


Build = Callable[[Stream], Stream]
RAISED = "raised ValueError: not today"

WRONG: dict[str, tuple[Build, str]] = {
    "a map that raises": (lambda t: t.map(raises, "x BIGINT"), RAISED),
    "a filter that raises": (lambda t: t.filter(raises), RAISED),
    "a map by row that raises": (lambda t: t.map(raises, "x BIGINT", by_row=True), RAISED),
    "a flat map that raises": (lambda t: t.flat_map(raises, "x BIGINT"), RAISED),
    "a generator that raises": (lambda t: t.flat_map(raises_late, "x BIGINT"), RAISED),
    "an inspector that raises": (lambda t: t.inspect(raises), RAISED),
    "nothing for a column": (lambda t: t.map(lambda a: None, "x BIGINT"), "returned NoneType, not a column"),
    "nothing to walk through": (lambda t: t.flat_map(lambda a: None, "x BIGINT"), "not iterable"),
    "too many columns": (lambda t: t.map(lambda a: (a, a), "x BIGINT"), "returned 2 columns, not 1"),
    "too few columns": (lambda t: t.map(lambda a: a, "x BIGINT, y BIGINT"), "returned 1 column, not 2"),
    "too few values": (lambda t: t.map(lambda a: a[:1], "x BIGINT"), "returned 1 values for 2 rows"),
    "too many values of a row": (lambda t: t.map(lambda a: (a, a), "x BIGINT", by_row=True), r"not 1 values"),
    "a fraction for an integer": (lambda t: t.map(lambda a: 1.5, "x BIGINT", by_row=True), "1.5 is not a whole"),
    "a fraction in a flat map": (lambda t: t.flat_map(lambda a: [1.5], "x BIGINT"), "1.5 is not a whole"),
    "text for an integer": (lambda t: t.map(lambda a: "1", "x BIGINT", by_row=True), "wrong type"),
    "an integer for a verdict": (lambda t: t.filter(lambda a: 1, by_row=True), "wrong type"),
    "a scalar for a column": (lambda t: t.map(lambda a: 7, "x BIGINT"), "returned int, not a column"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_function_that_goes_wrong(name: str) -> None:
    build, message = WRONG[name]
    circuit = Circuit()
    t = circuit.source("t", "a BIGINT")
    t.sink("all")
    build(t).sink("v")
    run = Embedded(circuit)
    with pytest.raises(FunctionError, match=message) as error:
        run.tick({"t": [((1,), 1), ((2,), 1)]})
    assert error.value.hint
    assert (run.epoch, len(run.view("all"))) == (0, 0)


RIGHT: dict[str, tuple[Build, dict[Any, int]]] = {
    "an array": (lambda t: t.map(lambda a: pc.add(a, 1), "x BIGINT"), {(2,): 1, (3,): 1}),
    "a chunked array": (lambda t: t.map(lambda a: pa.chunked_array([a]), "x BIGINT"), {(1,): 1, (2,): 1}),
    "a scalar of Arrow": (lambda t: t.map(lambda a: pa.scalar(7), "x BIGINT"), {(7,): 2}),
    "a list": (lambda t: t.map(lambda a: [5, None], "x BIGINT"), {(5,): 1, (None,): 1}),
    "a NumPy array": (lambda t: t.map(lambda a: a.to_numpy() * 2, "x BIGINT"), {(2,): 1, (4,): 1}),
    "narrower integers": (lambda t: t.map(lambda a: a.cast(pa.int8()), "x BIGINT"), {(1,): 1, (2,): 1}),
    "several columns": (lambda t: t.map(lambda a: (a, a), "x BIGINT, y BIGINT"), {(1, 1): 1, (2, 2): 1}),
    "a value": (lambda t: t.map(str, "x STRING", by_row=True), {("1",): 1, ("2",): 1}),
    "a whole float": (lambda t: t.map(float, "x BIGINT", by_row=True), {(1,): 1, (2,): 1}),
    "a generator": (lambda t: t.flat_map(lambda a: (i for i in range(a)), "x BIGINT"), {(0,): 2, (1,): 1}),
    "a verdict that is NULL": (lambda t: t.filter(lambda a: None if a == 1 else True, by_row=True), {(2,): 1}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_function_may_return(name: str) -> None:
    build, expected = RIGHT[name]
    circuit = Circuit()
    build(circuit.source("t", "a BIGINT")).sink("v")
    assert Embedded(circuit).tick({"t": [((1,), 1), ((2,), 1)]})["v"].to_zset() == ZSet(expected)
