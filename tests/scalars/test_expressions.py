"""Expressions as data: their types, their text, what they evaluate and on which rows."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from everview.errors import ArithmeticFailure, BadPattern, FunctionError, TypeMismatch, UnknownName, WrongArity
from everview.plan.typing import call, cast, interval, literal
from everview.scalars.evaluate import Evaluate, fold, moment
from everview.scalars.expressions import (
    NULL,
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    Now,
    UserCall,
    WindowCall,
    columns_of,
    moved,
    rewritten,
    walk,
)
from everview.scalars.functions.user import register
from everview.scalars.kinds import DAY, DAY_TIME, VOID, YEAR_MONTH
from everview.scalars.text import sql
from everview.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Array, Decimal
from scalars.written import expression

D = decimal.Decimal
x, y = Column(0, "x", INTEGER), Column(1, "y", INTEGER)
text = Column(2, "t", STRING)


def run(found: Expression, *columns: list[object]) -> list[object]:
    types = [INTEGER, INTEGER, STRING]
    return Evaluate((found,))(*(pa.array(c, t.arrow) for c, t in zip(columns, types, strict=False)))[0].to_pylist()


# -- types

TYPES = [
    ("i + l", "BIGINT"),
    ("i + f", "DOUBLE"),
    ("f + f", "FLOAT"),
    ("i / i", "DOUBLE"),
    ("i + 1.5", "DECIMAL(12,1)"),
    ("l * 1.5", "DECIMAL(23,1)"),
    ("m + m", "DECIMAL(13,2)"),
    ("m * m", "DECIMAL(25,4)"),
    ("m / m", "DECIMAL(27,15)"),
    ("w * w", "DECIMAL(38,6)"),
    ("w / w", "DECIMAL(38,6)"),
    ("w + w", "DECIMAL(38,9)"),
    ("div(m, 3)", "BIGINT"),
    ("cast('5', 'string') + 1", "BIGINT"),
    ("coalesce(i, m)", "DECIMAL(12,2)"),
    ("coalesce(i, s)", "BIGINT"),
    ("dt + 1", "DATE"),
    ("dt + interval(1, 'day')", "DATE"),
    ("dt + interval(1, 'hour')", "TIMESTAMP"),
    ("ts - interval(1, 'month')", "TIMESTAMP"),
    ("round(m, 1)", "DECIMAL(12,1)"),
    ("ceil(m)", "DECIMAL(11,0)"),
    ("ceil(d)", "BIGINT"),
    ("array(i, l)", "ARRAY<BIGINT>"),
    ("nullif(i, m)", "INTEGER"),
]


@pytest.mark.parametrize(("written", "of"), TYPES)
def test_a_call_has_the_type_of_spark(written: str, of: str) -> None:
    assert expression(written).type.sql == of


def test_intervals_have_the_type_of_their_unit() -> None:
    assert [interval(1, u).type for u in ("year", "week", "hours")] == [YEAR_MONTH, DAY, DAY_TIME]


def test_a_bare_null_takes_the_type_of_the_others() -> None:
    assert call("coalesce", NULL, x).type == INTEGER
    assert call("add", NULL, literal(1)).type == INTEGER
    assert call("case", call("is_null", x), NULL, text).type == STRING
    assert NULL.type == VOID


def test_nullable_is_told_from_the_arguments() -> None:
    sure = Column(0, "x", INTEGER, nullable=False)
    assert not call("add", sure, literal(1)).nullable
    assert call("add", sure, y).nullable
    assert not call("coalesce", y, sure).nullable
    assert call("try_divide", sure, sure).nullable
    assert not call("null_safe_equal", x, y).nullable
    assert call("case", call("equal", sure, literal(1)), sure).nullable


def test_mistakes_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownName, match='did you mean "upper"'):
        call("uppr", text)
    with pytest.raises(WrongArity, match="upper takes 1 arguments, and was given 2"):
        call("upper", text, text)
    with pytest.raises(TypeMismatch, match="equal is not defined on INTEGER and BOOLEAN"):
        call("equal", x, literal(True))
    with pytest.raises(TypeMismatch, match="the scale of round is not a literal"):
        call("round", x, y)


# -- data


def test_equal_expressions_are_one_and_pickle() -> None:
    one, two = call("add", x, literal(1)), call("add", x, literal(1))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert pickle.loads(pickle.dumps(Evaluate((one,))))(pa.array([1], pa.int32()))[0].to_pylist() == [2]


def test_the_name_of_an_evaluation_is_the_same_in_every_process() -> None:
    code = (
        "from everview.plan.typing import call, literal; from everview.scalars.evaluate import Evaluate;"
        "print(Evaluate((call('concat', literal('a'), literal(1)),)).name)"
    )
    names = {subprocess.check_output([sys.executable, "-c", code], text=True).strip() for _ in range(2)}
    assert names == {Evaluate((call("concat", literal("a"), literal(1)),)).name}


def test_children_are_walked_and_rewritten() -> None:
    found = call("add", x, call("multiply", y, literal(2)))
    assert columns_of(found) == {0, 1}
    assert [type(e).__name__ for e in walk(found)] == ["Call", "Column", "Call", "Column", "Literal"]
    assert columns_of(moved(found, lambda at: at + 5)) == {5, 6}
    assert rewritten(found, lambda e: e) is found
    aggregate = AggregateCall("sum", (x,), False, call("is_null", y), ((x, "desc"),), BIGINT, True)
    assert aggregate.with_children(aggregate.children) == aggregate
    window = WindowCall("rank", (), (x,), ((y, "asc"),), None, BIGINT, False)
    assert window.with_children(window.children) == window


# -- text

WRITTEN = [
    (call("multiply", call("add", x, literal(1)), y), "(x + 1) * y"),
    (call("subtract", x, call("subtract", y, literal(1))), "x - (y - 1)"),
    (call("not", call("or", call("is_null", x), call("in", x, literal(1)))), "NOT (x IS NULL OR x IN (1))"),
    (call("case", call("equal", x, literal(1)), literal("it's")), "CASE WHEN x = 1 THEN 'it\\'s' END"),
    (call("like", text, literal("a%")), "t LIKE 'a%'"),
    (cast(x, Decimal(12, 2)), "CAST(x AS DECIMAL(12,2))"),
    (literal(dt.date(2024, 1, 31)), "DATE '2024-01-31'"),
    (literal(D("1.50")), "1.50"),
    (literal(2**40), "1099511627776L"),
    (interval(90, "minute"), "INTERVAL 90 MINUTE"),
    (
        AggregateCall("sum", (x,), True, call("is_null", y), (), BIGINT, True),
        "sum(DISTINCT x) FILTER (WHERE y IS NULL)",
    ),
    (WindowCall("rank", (), (x,), ((y, "desc"),), None, BIGINT, False), "rank() OVER (PARTITION BY x ORDER BY y DESC)"),
]


@pytest.mark.parametrize(("found", "written"), WRITTEN, ids=str)
def test_expressions_are_written_as_sql(found: Expression, written: str) -> None:
    assert sql(found) == written


# -- evaluation


def test_a_branch_is_evaluated_only_on_its_rows() -> None:
    quotient = call("divide", literal(1), x)
    zero = call("equal", x, literal(0))
    assert run(call("case", zero, literal(0.0), quotient), [0, 4, None]) == [0.0, 0.25, None]
    assert run(call("if", zero, literal(None), quotient), [0, 2]) == [None, 0.5]
    large = call("greater", quotient, literal(0.3))
    assert run(call("and", call("not_equal", x, literal(0)), large), [0, 2, None, 8]) == [False, True, None, False]
    assert run(call("or", zero, large), [0, 2, None, 8]) == [True, True, None, False]
    assert run(call("coalesce", y, call("integral_divide", literal(6), x)), [0, 3], [1, None]) == [1, 2]
    with pytest.raises(ArithmeticFailure):
        run(call("coalesce", y, call("integral_divide", literal(6), x)), [0, 3], [None, None])


def test_branches_within_branches_see_their_own_rows() -> None:
    inner = call("case", call("equal", y, literal(0)), literal(-1), call("integral_divide", literal(10), y))
    outer = call(
        "case", call("equal", x, literal(0)), literal(0), call("add", inner, call("integral_divide", literal(6), x))
    )
    assert run(outer, [0, 1, 2, 3], [0, 0, 5, 2]) == [0, 5, 5, 7]


def test_null_is_not_false_in_and_and_or() -> None:
    a, b = Column(0, "a", BOOLEAN), Column(1, "b", BOOLEAN)
    values = [True, False, None]
    left = pa.array([p for p in values for _ in values])
    right = pa.array([q for _ in values for q in values])
    both, either = Evaluate((call("and", a, b), call("or", a, b)))(left, right)
    assert both.to_pylist() == [True, False, None, False, False, False, None, False, None]
    assert either.to_pylist() == [True, True, True, True, False, None, True, None, None]


def test_a_failure_names_the_expression_and_the_first_operands() -> None:
    with pytest.raises(ArithmeticFailure, match=r"outside the range of INTEGER in x \+ y: 2147483647 \+ 1") as failure:
        run(call("add", x, y), [None, 2147483647, 2147483647], [5, 1, 2])
    assert failure.value.hint == "try_add gives NULL there"


def test_literals_stand_for_all_rows_and_for_none() -> None:
    assert run(literal("a"), [1, 2]) == ["a", "a"]
    assert run(call("add", literal(1), literal(2)), []) == []
    assert Evaluate((literal(5),))()[0].as_py() == 5


def test_the_same_part_is_evaluated_once() -> None:
    calls: list[int] = []

    def counted(column: pa.Array) -> pa.Array:
        calls.append(len(column))
        return column

    register("counted", counted, INTEGER)
    once = UserCall("counted", (x,), INTEGER)
    assert run(call("add", once, once), [1, 2]) == [2, 4]
    assert calls == [2]


def test_a_users_function_is_called_by_name() -> None:
    register("twice", lambda v: None if v is None else 2 * v, BIGINT, "rows")
    assert run(UserCall("twice", (x,), BIGINT), [1, None]) == [2, None]
    register("broken", lambda column: 1 / 0, BIGINT)
    with pytest.raises(FunctionError, match="function broken raised ZeroDivisionError"):
        run(UserCall("broken", (x,), BIGINT), [1])
    with pytest.raises(UnknownName):
        Evaluate((UserCall("nowhere", (), BIGINT),))


def test_now_is_one_moment() -> None:
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    with moment(at):
        now, today = Evaluate((Now(), Now("date")))(pa.array([1, 2]))
    assert now.to_pylist() == [at, at]
    assert today.to_pylist() == [at.date(), at.date()]
    assert Now().type == TIMESTAMP
    assert Now("date").type == DATE


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(a)\\1", "a++", "[a&&b]", "(?>a)", "(", "[a[b]]", "\\h", "\\C", "(?U)a+"]
)
def test_a_pattern_that_java_reads_differently_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        run(call("rlike", text, literal(pattern)), [1], [1], ["a"])


@pytest.mark.parametrize("pattern", ["yyyy-ww", "B", "'open", "[yyyy"])
def test_a_pattern_of_dates_that_is_not_known_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        Evaluate((call("date_format", literal(dt.datetime(2024, 1, 1)), literal(pattern)),))()


# -- constants


def test_constants_are_folded_and_failing_ones_left() -> None:
    assert fold(call("add", x, call("multiply", literal(2), literal(3)))) == call("add", x, literal(6))
    assert fold(cast(literal("2024-01-31"), DATE)) == literal(dt.date(2024, 1, 31))
    assert fold(cast(literal("2024-01-31"), TIMESTAMP)) == literal(dt.datetime(2024, 1, 31))
    failing = call("integral_divide", literal(1), literal(0))
    assert fold(failing) == failing
    assert fold(call("array", literal(1), literal(None))) == Literal((1, None), Array(INTEGER))
    assert fold(Now()) == Now()
    assert isinstance(fold(call("add", x, literal(1))), Call)
    assert fold(call("subtract", literal(dt.date(2024, 1, 2)), literal(dt.date(2024, 1, 1)))) == interval(1, "day")
    assert fold(call("divide", literal(1), literal(4))) == Literal(0.25, DOUBLE)
