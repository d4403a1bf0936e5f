"""Views hold what Spark answers, after changes in any order, and what it answers to no rows once all are gone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from everview.circuit import Circuit
from everview.errors import EverviewError
from everview.frontends.sql import CreateView, Tables, bind
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.oracle.plans import evaluate
from everview.plan.node import Plan
from everview.runtimes.embedded import Embedded
from everview.types import Schema
from everview.zset import ZSet
from frontends.sql.spark_answers import ANSWERS, ROWS, TABLES, queries, sorted_rows

RECORDED: dict[str, Any] = json.loads(ANSWERS.read_text())
ANSWERED = [text for text in queries() if "error" not in RECORDED[text]["full"]]
SCHEMAS = {name: Schema.parse(columns) for name, columns in TABLES.items()}
REFUSED = [text for text in queries() if "error" in RECORDED[text]["full"]]


def changes(chance: random.Random) -> Iterator[dict[str, list[tuple[Any, int]]]]:
    """Ticks that leave the rows: some come twice and go once, others come changed and go."""
    coming: dict[str, list[tuple[Any, int]]] = {}
    going: dict[str, list[tuple[Any, int]]] = {}
    for table, rows in ROWS.items():
        others = [(*row[:-1], None) for row in chance.sample(rows, 3)] + chance.sample(rows, 2)
        coming[table] = [(row, 1) for row in chance.sample([*rows, *others], len(rows) + 5)]
        going[table] = [(row, -1) for row in others]
    half = {table: rows[: len(rows) // 2] for table, rows in coming.items()}
    rest = {table: rows[len(rows) // 2 :] for table, rows in coming.items()}
    yield half
    yield rest
    yield going


@pytest.fixture(scope="module")
def held() -> dict[str, dict[str, Any]]:
    """What the views held, all in one circuit: before all rows, with them, and after them; and what the oracle says."""
    plans, circuit = {text: _plan(text) for text in ANSWERED}, Circuit()
    streams = {name: circuit.source(name, schema) for name, schema in SCHEMAS.items()}
    for text, plan in plans.items():
        lower(optimize(plan), streams, circuit).sink(text)
    run, rows = Embedded(circuit), {name: ZSet() for name in TABLES}
    run.tick({})
    found = {text: {"before": _held(run.view(text).rows(), plan)} for text, plan in plans.items()}
    for tick in changes(random.Random(12)):
        run.tick(tick)
        rows = {name: rows[name] + ZSet.of(entries) for name, entries in tick.items()}
    for text, plan in plans.items():
        found[text]["full"] = _held(run.view(text).rows(), plan)
        oracle = (row for row, weight in evaluate(plan, rows) for _ in range(weight))
        found[text]["oracle"] = _held(oracle, plan)
    run.tick({table: [(row, -1) for row in rows] for table, rows in ROWS.items()})
    for text, plan in plans.items():
        found[text]["empty"] = _held(run.view(text).rows(), plan)
    return found


def _plan(text: str) -> Plan:
    (view,) = bind(f"CREATE MATERIALIZED VIEW v AS {text}", Tables(SCHEMAS))
    assert isinstance(view, CreateView)
    return view.plan


def _held(rows: Any, plan: Plan) -> Any:
    return {"types": [_spelled(f.type.sql) for f in plan.schema.fields], "rows": sorted_rows(rows)}


def _spelled(of: str) -> str:
    return of.lower().replace("integer", "int")


def _wanted(answer: Any) -> Any:
    """A column without a type is one of text here."""
    return answer | {"types": [of.replace("void", "string") for of in answer["types"]]}


@pytest.mark.parametrize("text", ANSWERED)
def test_a_view_is_what_spark_answers(text: str, held: dict[str, dict[str, Any]]) -> None:
    full, empty = _wanted(RECORDED[text]["full"]), _wanted(RECORDED[text]["empty"])
    assert held[text] == {"before": empty, "full": full, "oracle": full, "empty": empty}


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses_is_refused(text: str) -> None:
    with pytest.raises(EverviewError):
        _plan(text)
