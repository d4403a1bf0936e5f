"""Window functions over every kind of frame, with duplicates and NULL in what they read and are ordered by."""

from __future__ import annotations

import pytest

from everview.errors import SchemaError
from everview.plan.node import Plan
from everview.plan.nodes import Scan, Window
from everview.plan.typing import call, literal
from everview.scalars.expressions import ExcludingFrame, Frame, Literal, Order, WindowCall
from everview.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Type
from lowering.drawn import TABLES, Tick
from scalars.agreeing import check_runs, circuit_of, meanings

T = Scan("t", TABLES["t"])
A, B, C = T.columns
YES = Literal(True, BOOLEAN)
FRAMES = (
    None,
    Frame("rows", None, 0),
    Frame("rows", -1, 0),
    Frame("rows", -1, 1),
    Frame("rows", 1, 2),
    Frame("rows", None, None),
    Frame("range", None, 0),
    Frame("range", 0, None),
)
ORDERS: tuple[Order, ...] = ((), ((B, "desc"),), ((C, "asc nulls last"), (B, "asc")))
CHANGES: list[Tick] = [
    {"t": [((1, 2, "p"), 1), ((1, None, "p"), 2), ((3, 5, None), 1)]},
    {},
    {"t": [((1, 2, "p"), -1), ((4, 1, "é"), 1)]},
    {"t": [((1, at % 3, "pqé"[at % 3]), 1 + at % 2) for at in range(7)]},
    {"t": [((1, None, "p"), -1), ((2, 3, None), 1), ((1, 0, "p"), -1)]},
]


def over(name: str, arguments: tuple, of: Type, order: Order, frame: Frame | None = None, kept=None) -> WindowCall:
    return WindowCall(name, arguments, (A,), order, frame, of, True, kept)


def check(*calls: WindowCall) -> None:
    plan: Plan = Window(T, calls, tuple(f"w{at}" for at in range(len(calls))))
    expected = meanings(plan, CHANGES)
    for shards in (1, 3):
        check_runs(plan, CHANGES, expected, shards)


@pytest.mark.parametrize("order", ORDERS)
def test_ranks_and_neighbours(order: Order) -> None:
    check(
        over("row_number", (), INTEGER, order),
        over("rank", (), INTEGER, order),
        over("dense_rank", (), INTEGER, order),
        over("ntile", (literal(2),), INTEGER, order),
        over("percent_rank", (), DOUBLE, order),
        over("cume_dist", (), DOUBLE, order),
        over("lag", (B,), INTEGER, order),
        over("lead", (A, literal(2)), BIGINT, order),
        over("lag", (B, literal(1), literal(7)), INTEGER, order),
    )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("order", ORDERS[1:])
def test_functions_of_a_frame(order: Order, frame: Frame | None) -> None:
    check(
        over("sum", (B,), BIGINT, order, frame),
        over("count", (), BIGINT, order, frame),
        over("count", (B,), BIGINT, order, frame),
        over("avg", (B,), DOUBLE, order, frame),
        over("min", (C,), STRING, order, frame),
        over("max", (B,), INTEGER, order, frame),
        over("min", (A,), BIGINT, order, frame),
        over("first_value", (C,), STRING, order, frame),
        over("first_value", (B, YES), INTEGER, order, frame),
        over("last_value", (B, YES), INTEGER, order, frame),
        over("nth_value", (B, literal(2)), INTEGER, order, frame),
        over("sum", (B,), BIGINT, order, frame, call("greater", B, literal(1))),
        over("var_pop", (B,), DOUBLE, order, frame),
    )


def test_several_windows_at_once() -> None:
    check(
        over("row_number", (), INTEGER, ((B, "asc"),)),
        WindowCall("sum", (B,), (C,), ((B, "desc"),), None, BIGINT, True),
        over("lag", (B,), INTEGER, ((B, "asc"),)),
    )


DISTANCES = (
    Frame("range", -1, 0),
    Frame("range", None, -1),
    Frame("range", -2, 1),
    Frame("range", 1, None),
    Frame("groups", -1, 1),
    Frame("groups", 1, 2),
    ExcludingFrame("rows", -2, 1, "current row"),
    ExcludingFrame("groups", -1, 0, "group"),
    ExcludingFrame("range", -1, 1, "ties"),
)


@pytest.mark.parametrize("frame", DISTANCES)
@pytest.mark.parametrize("way", ["asc", "desc", "asc nulls last"])
def test_frames_by_distance_of_groups_and_without_rows(way: str, frame: Frame) -> None:
    order: Order = ((B, way),)
    present = call("is_not_null", C)
    check(
        over("sum", (B,), BIGINT, order, frame),
        over("count", (), BIGINT, order, frame),
        over("max", (C,), STRING, order, frame),
        over("first_value", (C,), STRING, order, frame, present),
        over("last_value", (C,), STRING, order, frame),
        over("nth_value", (C, literal(2)), STRING, order, frame, present),
        over("lag", (C, literal(1)), STRING, order, None, present),
        over("lead", (C, literal(2), literal("none")), STRING, order, None, present),
    )


def test_a_filter_of_values_that_are_chosen_is_refused() -> None:
    with pytest.raises(SchemaError, match="with a filter"):
        circuit_of(
            Window(
                T, (over("first_value", (B,), INTEGER, ((B, "asc"),), None, call("greater", B, literal(1))),), ("w",)
            )
        )
