"""EDN queries in a pipeline: sources are attributes, and the views those of a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EdnError, PipelineError
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

PAIR = "a BIGINT NOT NULL, b BIGINT NOT NULL"
NEAR = "[[(near ?a ?b) [?a :to ?b]] [(near ?a ?c) (near ?a ?b) [?b :to ?c]]]"


def held(p: Pipeline, view: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in p.view(view).collect()}


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_rings_reach_and_sums(spark: SparkSession, tmp_path: Path, place: str) -> None:
    weights = "a BIGINT, b BIGINT, _weight BIGINT"
    people = "id BIGINT, name STRING, age BIGINT"
    with Pipeline(spark, tmp_path / "state", shards=4, place=place) as p:
        edges = spark.createDataFrame([(1, 2, 1), (2, 3, 1), (3, 1, 1), (3, 4, 1)], weights)
        p.source("to", edges, changes="weights", schema=PAIR)
        rows = spark.createDataFrame([(1, "Ada", 36), (2, "Bob", None), (4, "Dee", 7)], people)
        p.source("person", rows, key="id", changes="upsert")
        p.edn("{:find [?a ?b ?c] :where [[?a :to ?b] [?b :to ?c] [?c :to ?a]]}", "ring")
        p.edn(
            "[:find ?n ?m :in $ % :where (near ?a ?b) [?a :person/name ?n] [?b :person/name ?m]]", "near", args=[NEAR]
        )
        p.edn("[:find (sum ?a) (count ?e) :in $ [?n ...] :where [?e :person/age ?a] [?e :person/name ?n]]", "ages",
              args=[["Ada", "Bob", "Dee"]])  # fmt: skip
        p.edn("[:find ?n :where [?e :person/name ?n] (not [?e :to _])]", "last")
        p.refresh()
        assert held(p, "ring") == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}
        assert held(p, "near") == {(a, b) for a in ("Ada", "Bob") for b in ("Ada", "Bob", "Dee")}
        assert held(p, "ages") == {(43, 2)}
        assert held(p, "last") == {("Dee",)}
        p.refresh(
            to=spark.createDataFrame([(2, 3, -1), (4, 4, 1)], weights),
            person=spark.createDataFrame([(2, "Bob", 17)], people),
        )
        assert held(p, "ring") == {(4, 4, 4)}
        assert held(p, "near") == {("Ada", "Bob"), ("Dee", "Dee")}
        assert held(p, "ages") == {(60, 3)}
        assert held(p, "last") == {("Bob",)}
        assert p.verify().raise_if_different()


def test_what_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state")
    p.source("to", spark.createDataFrame([(0, 1)], "a BIGINT, b BIGINT"), schema=PAIR)
    with pytest.raises(EdnError, match='1:18: attribute ":from" does not exist'):
        p.edn("[:find ?a :where [?a :from _]]", "starts")
    p.edn("[:find ?a :where [?a :to _]]", "starts")
    with pytest.raises(PipelineError, match="there is a view or source starts already"):
        p.edn("[:find ?a :where [?a :to _]]", "starts")


def test_pull_and_plain_symbols(spark: SparkSession, tmp_path: Path) -> None:
    people = "id BIGINT, name STRING, boss BIGINT"
    with Pipeline(spark, tmp_path / "state", shards=2, place="cluster") as p:
        rows = spark.createDataFrame([(1, "Ada", None), (2, "Bob", 1), (3, "Cy", 1)], people)
        p.source("person", rows, key="id", changes="upsert")
        pattern = "[:person/name {:person/_boss [:db/id]} {:person/boss [:person/name]}]"
        p.edn(f"[:find ?e (pull ?e {pattern}) :where [?e :person/name]]", "tree")
        p.edn("[:find n :where [e :person/name n] (not [e :person/boss _])]", "top", dialect="symbols")
        p.refresh()
        found = {row[0]: row[1].asDict(recursive=True) for row in p.view("tree").collect()}
        assert found[1] == {
            ":person/name": "Ada",
            ":person/_boss": [{":db/id": 2}, {":db/id": 3}],
            ":person/boss": None,
        }
        assert found[2][":person/boss"] == {":person/name": "Ada"}
        assert held(p, "top") == {("Ada",)}
        p.refresh(person=spark.createDataFrame([(3, "Cy", 2)], people))
        found = {row[0]: row[1].asDict(recursive=True) for row in p.view("tree").collect()}
        assert found[1][":person/_boss"] == [{":db/id": 2}]
        assert found[3][":person/boss"] == {":person/name": "Bob"}
        assert p.verify().raise_if_different()
