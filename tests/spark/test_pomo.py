"""PomoLogic and PomoRA in a pipeline: the same views as in a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

EDGES = [[(1, 2), (2, 3), (3, 1), (4, 5)], [(5, 6), (6, 4)], [(6, 1)]]
LOGIC = """
path(a: A, b: B) :- edge(a: A, b: B).
path(a: A, b: C) :- path(a: A, b: B), edge(a: B, b: C).
reach(id: I, a: A, n: N) :- I := edge(a: A), N := count : path(a: A).
late(a: A, b: B)@next :- edge(a: A, b: B).
once(a: A) :- edge(a: A), !seen(a: A).
seen(a: A)@next :- edge(a: A).
first(a: A, n: N)@next :- first(a: A, n: N).
first(a: A, n: N)@next :- once(a: A), edge(a: A), N := count : edge().
apart(a: A, b: B) :- edge(a: A), edge(b: B), !path(a: A, b: B).
"""
ALGEBRA = """
closed := edge;
while change do
  closed := projection([:a, :b], natural_join(rename([b: :m], closed), rename([a: :m], edge)));
end
ends := group_by([:a], most, max(b), closed);
"""


def edges(spark: SparkSession, rows: list[tuple[int, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "a BIGINT, b BIGINT")


@pytest.mark.parametrize("place", ["driver", pytest.param("cluster", marks=pytest.mark.slow)])
def test_views_are_those_of_a_database(spark: SparkSession, tmp_path: Path, place: str) -> None:
    db = ev.connect()
    db.create_table("edge", "a BIGINT, b BIGINT")
    db.datalog(LOGIC, dialect="pomologic")
    db.datalog(ALGEBRA, dialect="pomora")
    with Pipeline(spark, tmp_path / "state", shards=2, place=place) as p:
        p.source("edge", edges(spark, EDGES[0]))
        p.datalog(LOGIC, dialect="pomologic")
        p.datalog(ALGEBRA, dialect="pomora")
        for at, rows in enumerate(EDGES):
            p.refresh() if at == 0 else p.refresh(edge=edges(spark, rows))
            db.apply({"edge": [(row, 1) for row in rows]})
            for view in db.views():
                assert sorted(tuple(row) for row in p.view(view).collect()) == sorted(db.view(view).rows()), view
        assert p.verify()
