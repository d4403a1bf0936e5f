"""Catalyst's plans as JSON, as Spark wrote them, read without Spark."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from everview.frontends.catalyst import UnreadFrame, frame_plan, parsed, questions
from everview.frontends.sql import bind_query
from everview.oracle.plans import evaluate
from everview.plan.catalog import Tables
from everview.types import Schema

PLANS = {
    name: json.dumps(plan) for name, plan in json.loads((Path(__file__).parent / "plans.json").read_text()).items()
}
SCHEMAS = {
    "transfer": Schema.parse("id BIGINT NOT NULL, src BIGINT, amount DECIMAL(10,2)"),
    "account": Schema.parse("id BIGINT NOT NULL, country STRING"),
}
ROWS = {
    "transfer": [((1, 1, Decimal(5)), 1), ((2, 1, Decimal(7)), 2), ((3, 2, None), 1), ((4, None, Decimal(5)), 1)],
    "account": [((1, "FR"), 1), ((2, "DE"), 1), ((9, None), 1)],
}
SAME = {
    "exposure": "SELECT country, sum(amount) FROM transfer t JOIN account a ON t.src = a.id GROUP BY country",
    "largest": "SELECT id FROM (SELECT id, amount FROM transfer ORDER BY amount DESC, id LIMIT 2)",
    "ranked": "SELECT id, rank() OVER (PARTITION BY src ORDER BY amount) FROM transfer",
    "unknown": "SELECT id FROM transfer WHERE src NOT IN (SELECT id FROM account)",
}


@pytest.mark.parametrize("name", SAME)
def test_a_dataframe_means_what_its_query_does(name: str) -> None:
    catalog = Tables(SCHEMAS)
    read = frame_plan(parsed(PLANS[name]), catalog)
    assert read.arbitrary == (name == "largest")
    assert evaluate(read.plan, ROWS) == evaluate(bind_query(SAME[name], catalog).plan, ROWS)


@pytest.mark.parametrize(
    ("name", "said", "path"),
    [("sampled", "the node Sample cannot", ()), ("chance", "Rand is different", (("projectList", 0), 0))],
)
def test_what_cannot_be_read_is_found(name: str, said: str, path: tuple[object, ...]) -> None:
    with pytest.raises(UnreadFrame, match=said) as caught:
        frame_plan(parsed(PLANS[name]), Tables(SCHEMAS))
    assert caught.value.path == path


def test_the_rows_of_relations_are_not_asked_for() -> None:
    assert [list(questions(parsed(text), tries=False)) for text in PLANS.values()] == [[]] * len(PLANS)


def test_a_relation_with_other_columns_is_noticed() -> None:
    with pytest.raises(UnreadFrame, match="transfer has other columns by now"):
        frame_plan(parsed(PLANS["largest"]), Tables({"transfer": Schema.parse("id BIGINT NOT NULL")}))
