"""Failures of expressions: which row failed, what its operands were, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import ArithmeticFailure, CastFailure, EverviewError
from everview.scalars.expressions import Call, Expression, LambdaCall
from everview.scalars.functions.kernel import Checked, Value, is_scalar
from everview.scalars.signatures.sketches import SKETCHES
from everview.scalars.text import sql, value_text
from everview.types import Type


def settled(result: Any, attempt: bool, failure: Callable[[int], EverviewError]) -> Value:
    """The values of a result that may have failed: NULL in failed rows of an attempt, else the first row's error."""
    if not isinstance(result, Checked):
        return result
    if not result.failed.any():
        return result.value
    if not attempt:
        raise _because(failure(int(np.argmax(result.failed))), result.reason)
    return pc.if_else(pa.array(result.failed), pa.scalar(None, result.value.type), result.value)


def _because(error: EverviewError, reason: str) -> EverviewError:
    return type(error)(error.message.replace("{reason}", reason, 1), hint=error.hint)


def lambda_failure(expression: LambdaCall, values: list[Value], row: int) -> EverviewError:
    shown = ", ".join(value_text(_plain(v[row]), a.type) for v, a in zip(values, expression.arguments, strict=True))
    return ArithmeticFailure(f"{{reason}} in {sql(expression)}: {shown}", hint="the tick was not applied")


def cast_failure(expression: Expression, array: Value, row: int, type_: Type) -> EverviewError:
    shown = value_text(_plain(array[row]), type_)
    message = f"{shown} is not {_article(expression.type)}: {{reason}} in {sql(expression)}"
    return CastFailure(message, hint="try_cast gives NULL there")


def _article(type_: Type) -> str:
    return f"an {type_}" if type_.sql[0] in "AEIOU" else f"a {type_}"


_OF_SKETCHES: Final = (
    "sketches are of a format of Everview's own: make them here from the values, by hll_sketch_agg, theta_sketch_agg "
    "and kll_sketch_agg_…; those of DataSketches, which Spark makes, cannot be read"
)
_MARKS: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "integral_divide": "DIV", "modulo": "%"}
_ATTEMPTS: Final = {*_MARKS} - {"integral_divide"} | {"element_at"}


def call_failure(expression: Call, values: list[Value], row: int) -> EverviewError:
    name = expression.function
    if name == "is_one_row":
        return ArithmeticFailure("{reason}", hint="limit it to one, or take an aggregate such as max of them")
    if name == "raise_error":  # the message is its only argument
        return ArithmeticFailure("{reason}", hint="correct the row, or guard it with CASE")
    if name in SKETCHES:
        return ArithmeticFailure(f"{{reason}} in {sql(expression)}", hint=_OF_SKETCHES)
    shown = [
        value_text(_plain(v if is_scalar(v) else v[row]), a.type)
        for v, a in zip(values, expression.arguments, strict=True)
    ]
    operands = f" {_MARKS[name]} ".join(shown) if name in _MARKS else f"{name}({', '.join(shown)})"
    hint = f"try_{name} gives NULL there" if name in _ATTEMPTS else "correct the row, or guard it with CASE"
    kind = CastFailure if name in ("to_date", "to_timestamp", "unix_timestamp", "make_date") else ArithmeticFailure
    return kind(f"{{reason}} in {sql(expression)}: {operands}", hint=hint)


def _plain(value: Value) -> Any:
    return value.as_py()
