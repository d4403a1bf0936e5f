"""Rules in a pipeline: the same views as in a database, verified by the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.circuit.nodes import Child
from everview.errors import DatalogError, PipelineError
from everview.spark import Pipeline
from everview.spark.files import build, read
from frontends.datalog.literature import PROGRAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

BY_NAME = {program.name: program for program in PROGRAMS}
PAIR = "a BIGINT NOT NULL, b BIGINT NOT NULL"


def pairs(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str = "a BIGINT, b BIGINT") -> DataFrame:
    return spark.createDataFrame(rows, schema)


def held(p: Pipeline, view: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in p.view(view).collect()}


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_components_and_what_reads_them(spark: SparkSession, tmp_path: Path, place: str) -> None:
    program = BY_NAME["components"]
    edges = {(1, 2), (2, 3), (7, 8)}
    weights = "a BIGINT, b BIGINT, _weight BIGINT"
    with Pipeline(spark, tmp_path / "state", shards=4, place=place) as p:
        first = pairs(spark, [(*edge, 1) for edge in sorted(edges)], weights)
        p.source("edge", first, changes="weights", schema=PAIR)
        p.datalog(program.text)
        p.sql("CREATE MATERIALIZED VIEW sizes AS SELECT least, COUNT(*) AS n FROM label GROUP BY least")
        p.datalog("alone(x) :- sizes(x, n), n < 3.")
        p.refresh()
        for view, wanted in program.meaning({"edge": edges}).items():
            assert held(p, view) == wanted
        assert held(p, "alone") == {(7,)}
        p.refresh(edge=pairs(spark, [(2, 3, -1), (3, 7, 1)], weights))
        for view, wanted in program.meaning({"edge": edges - {(2, 3)} | {(3, 7)}}).items():
            assert held(p, view) == wanted
        assert p.verify().raise_if_different()


def test_relations_that_read_each_other_share_one_loop(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state", place="driver") as p:
        p.source("edge", pairs(spark, [(0, 1), (1, 2)]), schema=PAIR)
        p.datalog("odd(x, y) :- edge(x, y). odd(x, z) :- even(x, y), edge(y, z). even(x, z) :- odd(x, y), edge(y, z).")
        assert sum(isinstance(node, Child) for node in p.circuit) == 1
        p.refresh()
        assert held(p, "even") == {(0, 2)}


def test_what_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state")
    p.source("edge", pairs(spark, [(0, 1)]), schema=PAIR)
    with pytest.raises(PipelineError, match="node is declared, and comes from nowhere"):
        p.datalog(".decl node(x: number)\n.input node\np(x) :- node(x).")
    with pytest.raises(DatalogError, match="edge is declared as"):
        p.datalog(".decl edge(a: symbol, b: symbol)\n.input edge\np(x) :- edge(x, _).")
    with pytest.raises(PipelineError, match="edge is a source or a view already"):
        p.datalog("edge(1, 2).")
    with pytest.raises(DatalogError, match="nested too deeply"):
        p.datalog(f"q({'(' * 2000}1{')' * 2000}).")
    p.datalog("p(x) :- edge(x, _).")
    with pytest.raises(PipelineError, match="p is a source or a view already"):
        p.datalog("p(1).")


def test_a_file_of_rules_among_the_views(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges" / "1.csv").write_text("1,2\n2,3\n")
    (tmp_path / "path.dl").write_text("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
    (tmp_path / "p.yaml").write_text(
        f"""
state: state
sources:
  edge: {{format: csv, path: edges, schema: "{PAIR}"}}
views:
  - path.dl
  - CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM path
"""
    )
    with build(tmp_path / "p.yaml", read(tmp_path / "p.yaml"), spark) as p:
        p.refresh()
        assert held(p, "path") == {(1, 2), (2, 3), (1, 3)}
        assert held(p, "n") == {(3,)}
        assert p.verify()


def test_terms_choices_limits_and_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "terms.dl").write_text(".type L = [head: number, tail: L]\n.decl given(l: L)\n.input given\n")
    text = f"""
        .include "{tmp_path / "terms.dl"}"
        .decl rest(l: L)
        rest(l) :- given(l).
        rest(t) :- rest([_, t]).
        .decl head(l: L, n: number) choice-domain n
        head(l, n) :- rest(l), l = [n, _].
        .decl pair(a: number, b: number) choice-domain a, b
        pair(a, b) :- head(_, a), head(_, b).
        .decl up(n: number)
        up(n) :- head(_, n).
        up(n + 1) :- up(n).
        .limitsize up(n=4)
    """
    weights = "l STRING, _weight BIGINT"
    with Pipeline(spark, tmp_path / "state", shards=2, place="cluster") as p:
        first = spark.createDataFrame([("[1, [2, nil]]", 1), ("[1,nil]", 1)], weights)
        p.source("given", first, changes="weights", schema="l STRING NOT NULL")
        p.datalog(text)
        p.refresh()
        assert held(p, "rest") == {("[1, [2, nil]]",), ("[2, nil]",), ("[1, nil]",), ("nil",)}
        assert held(p, "head") == {("[1, [2, nil]]", 1), ("[2, nil]", 2)}
        assert held(p, "pair") == {(1, 1), (2, 2)}
        assert held(p, "up") == {(1,), (2,), (3,), (4,)}
        p.refresh(given=spark.createDataFrame([("[1, [2, nil]]", -1)], weights))
        assert held(p, "head") == {("[1, nil]", 1)}
        assert held(p, "pair") == {(1, 1)}
        assert held(p, "up") == {(1,), (2,), (3,), (4,)}
        assert p.verify().raise_if_different()
