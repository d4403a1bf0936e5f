"""How aggregates are written, what they give, and what is refused with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from everview.circuit import Circuit, Stream, incrementalize
from everview.errors import EverviewError
from everview.runtimes.embedded import Embedded

SCHEMA = "g STRING, x BIGINT NOT NULL, y DOUBLE, z STRING, b BOOLEAN NOT NULL, d DECIMAL(9,2) NOT NULL, t DATE"


def source() -> Stream:
    return Circuit().source("t", SCHEMA)


# what is written, and the type it gives
TYPES: list[tuple[Any, str]] = [
    ("count", "BIGINT NOT NULL"),
    (("count", "y"), "BIGINT NOT NULL"),
    (("count distinct", "y"), "BIGINT NOT NULL"),
    (("count distinct", ["x", "y"]), "BIGINT NOT NULL"),
    (("sum", "x"), "BIGINT NOT NULL"),
    (("sum distinct", "d"), "DECIMAL(19,2) NOT NULL"),
    (("avg", "y"), "DOUBLE"),
    (("min", "z"), "STRING"),
    (("max", "d"), "DECIMAL(9,2) NOT NULL"),
    (("variance", "x"), "DOUBLE"),
    (("stddev pop", "d"), "DOUBLE"),
    (("bool_and", "b"), "BOOLEAN NOT NULL"),
    (("median", "y"), "DOUBLE"),
    (("percentile", "d", 1), "DOUBLE NOT NULL"),
    (("percentile discrete", "x", 0.5), "DOUBLE NOT NULL"),
    (("percentile discrete", "t", 0.5), "DATE"),
    (("quantile", "d", 0.5), "DECIMAL(9,2) NOT NULL"),
    (("mode", "z"), "STRING"),
    (("avg double", "d"), "DOUBLE NOT NULL"),
    (("array", "z"), "ARRAY<STRING> NOT NULL"),
    (("array", "d"), "ARRAY<DECIMAL(9,2)> NOT NULL"),
    (("string", "z"), "STRING"),
    (("first", "t", {"order": ["x"]}), "DATE"),
    ((len, "x", {"type": "INTEGER NOT NULL", "by_group": True}), "INTEGER NOT NULL"),
]


@pytest.mark.parametrize(("call", "type_"), TYPES, ids=str)
def test_what_an_aggregate_gives(call: Any, type_: str) -> None:
    assert str(source().aggregate(["g"], found=call).schema.fields[1]) == f"found {type_}"


# what is written, and words of the error
ERRORS: list[tuple[Any, list[str]]] = [
    ("sum", ["sum of what?", '("sum", "column")']),
    (("medain", "x"), ['aggregate "medain" does not exist', 'did you mean "median"?', "count distinct", "string"]),
    (("first distinct", "x"), ["does not exist", "first"]),
    (("sum", "nowhere"), ['column "nowhere" does not exist']),
    (("sum", "z"), ["sum of z STRING", "takes numbers"]),
    (("variance", "t"), ["variance of t DATE", "takes numbers"]),
    (("median", "z"), ["takes numbers"]),
    (("string", "x"), ["takes STRING"]),
    (("bool_or", "x"), ["takes BOOLEAN"]),
    (("sum", ["x", "y"]), ["sum of x, y", "one column"]),
    (("sum", "x", 3), ["sum cannot take 3"]),
    (("percentile", "x"), ["one number from 0 to 1"]),
    (("percentile", "x", 50), ["one number from 0 to 1", "[50]"]),
    (("percentile", "x", 0.5, {"order": ["y"]}), ["in the order of another column"]),
    (("mode", "x", {"order": ["y"]}), ["the mode of x in the order of another column"]),
    (("array distinct", "x", {"order": ["y"]}), ["in the order of another column"]),
    (("array", "x", {"separator": ","}), ["array has no option 'separator'", "order, nulls"]),
    (("array", "x", {"nulls": "last"}), ['"keep"']),
    (("array", "x", {"order": ["y sideways"]}), ["cannot read the order"]),
    (("first", "x"), ["first in which order?"]),
    ((len, "x"), ["a function of which type?"]),
    ((len, "x", {"type": "WHOLE"}), ['type "WHOLE" does not exist']),
]


@pytest.mark.parametrize(("call", "words"), ERRORS, ids=str)
def test_what_is_refused(call: Any, words: list[str]) -> None:
    with pytest.raises(EverviewError) as error:
        source().aggregate(["g"], found=call)
    assert error.value.hint
    for word in words:
        assert word in str(error.value)


def test_calls_share_their_state() -> None:
    """One index for all that read the same order, and one sum for all that need it."""
    circuit = Circuit()
    rows = circuit.source("t", SCHEMA)
    rows.aggregate(
        ["g"],
        least=("min", "x"),
        most=("max", "x"),
        middle=("median", "x"),
        xs=("array", "x"),
        total=("sum", "x"),
        mean=("avg", "x"),
        spread=("variance", "x"),
        deviation=("stddev", "x"),
    ).sink("found")
    made = incrementalize(circuit)
    kinds = [line.split()[1].split("(")[0] for line in str(made).splitlines()]
    assert kinds.count("Arrange") == 2
    assert kinds.count("Weigh") == 1


JOINED = ("string", "x", {"separator": "," * 10**6})
TOO_LONG = [
    pytest.param(("array", "x"), "a", 3 * 10**9, "would take 3,000,000,000 values", id="values"),
    pytest.param(("array", "x"), "a" * 10**6, 3_000, "more than 2 GiB", id="bytes", marks=pytest.mark.slow),
    pytest.param(JOINED, "a", 3_000, "string of a group would take more than 2 GiB", id="text"),
]


@pytest.mark.parametrize(("call", "value", "weight", "words"), TOO_LONG)
def test_a_list_that_is_too_long_is_refused_before_it_is_made(call: Any, value: Any, weight: int, words: str) -> None:
    circuit = Circuit()
    circuit.source("t", "x STRING NOT NULL").aggregate(found=call).sink("found")
    run = Embedded(incrementalize(circuit))
    with pytest.raises(EverviewError, match=words):
        run.tick({"t": [((value,), weight)]})
    assert run.view("found").rows() == []
    run.tick({"t": [(("b",), 1)]})
    assert run.view("found").rows() in [[(["b"],)], [("b",)]]
