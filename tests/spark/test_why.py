"""Why a view of a pipeline has a row: the base rows of an explanation alone, in an empty database, give the row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev
from everview.errors import NoSuchRow, PipelineError, TooMuchToExplain, UnknownName
from everview.spark import Pipeline
from everview.why import Why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

TABLES = """
CREATE TABLE customer (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT);
CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);
"""
PLAIN = "CREATE VIEW paid AS SELECT name, o.id, amount FROM orders o JOIN customer c ON c.id = o.customer"
SQL = f"""
{PLAIN};
CREATE MATERIALIZED VIEW totals AS SELECT name, count(*) AS n, max(amount) AS largest FROM paid GROUP BY name;
CREATE MATERIALIZED VIEW lefts AS SELECT o.id, name FROM orders o LEFT JOIN customer c ON c.id = o.customer;
CREATE MATERIALIZED VIEW best AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2;
CREATE MATERIALIZED VIEW over AS SELECT name FROM totals WHERE n > 1;
CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r(a, b) AS (
  SELECT a, b FROM edge UNION SELECT r.a, e.b FROM r JOIN edge e ON r.b = e.a) SELECT a, b FROM r
"""
RULES = "path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).  root(x) :- edge(x, _), !edge(_, x)."
EDN = "[:find ?a ?amount :where [?o :orders/customer ?a] [?o :orders/amount ?amount] [(> ?amount 10)]]"
FRAME = "CREATE MATERIALIZED VIEW busy AS SELECT customer, count(*) AS count FROM orders GROUP BY customer"
ORDER = "id BIGINT, customer BIGINT, amount BIGINT"
EDGES = [(1, 2), (2, 3), (3, 1), (3, 4), (7, 8)]


@pytest.fixture(scope="module")
def empty() -> Any:
    """A database with the same views; a DataFrame's view is written in SQL there."""
    db = ev.connect()
    db.sql(TABLES + SQL + ";" + FRAME)
    db.datalog(RULES)
    db.edn(EDN, name="large")
    return db


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A pipeline that was opened again, so that the driver has in memory what it maps of the state."""
    state = tmp_path_factory.mktemp("why") / "state"
    with Pipeline(spark, state, shards=3, place="driver") as p:
        define(p, spark)
        p.refresh()
        p.refresh(orders=spark.createDataFrame([(5, 9, 30), (1, 1, 25)], ORDER))
    with Pipeline(spark, state) as p:
        define(p, spark)
        yield p


def define(p: Pipeline, spark: SparkSession) -> None:
    customers = spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id BIGINT, name STRING")
    orders = spark.createDataFrame([(1, 1, 20), (2, 1, 50), (3, 2, 5), (4, 2, 70)], ORDER)
    p.source("customer", customers, key="id", changes="upsert")
    p.source("orders", orders, key="id", changes="upsert")
    p.source("edge", spark.createDataFrame(EDGES, "a BIGINT, b BIGINT"), schema="a BIGINT NOT NULL, b BIGINT NOT NULL")
    p.sql(SQL)
    p.datalog(RULES)
    p.edn(EDN, name="large")
    p.define("busy", p.frame("orders").groupBy("customer").count())


def gives(db: Any, name: str, row: tuple[Any, ...], why: Why) -> bool:
    """Whether the base rows of an explanation alone give the row."""
    with db.transaction() as tx:
        for table, rows in why.base_rows().items():
            tx.insert(table, rows)
    try:
        return row in [tuple(each) for each in db.sql(f'SELECT * FROM "{name}"', dialect="postgres")]
    finally:
        for table in ("customer", "orders", "edge"):
            db.sql(f"DELETE FROM {table}")


def test_base_rows_alone_give_the_row(shop: Pipeline, empty: Any) -> None:
    run = shop._state.engine().run
    assert {"totals", "path", "root", "large", "busy", "reach"} <= run.views.keys()
    for name in run.views:
        rows = [row for row, _ in run.view(name).contents()]
        assert rows, name
        for row in rows[:3]:
            why = shop.why(name, row)
            assert why.complete, f"{name} {row}\n{why}"
            assert gives(empty, name, row, why), f"{name} {row}\n{why}"


def test_what_a_pipeline_says(shop: Pipeline) -> None:
    assert shop.why("paid", {"name": "Ada", "id": 1, "amount": 25}).base_rows() == {
        "orders": [(1, 1, 25)],
        "customer": [(1, "Ada")],
    }  # a view that is not kept; the row of before the upsert is gone
    assert str(shop.why_not("paid", ("Ada", 1, 20))) == (
        "not in view paid: (name='Ada', id=1, amount=20)\n"
        "└─ Scan orders — orders has no row with id = 1 and amount = 20\n"
        "   └─ near: orders: (id=1, customer=1, amount=25)"
    )
    assert sorted(shop.why("path", (1, 4)).base_rows()["edge"]) == [(1, 2), (2, 3), (3, 4)]
    few = shop.why("totals", ("Ada", 2, 50), rows=1)
    assert not few.complete
    assert few.base_rows()["orders"] == [(2, 1, 50)]


def test_what_cannot_be_explained_is_named(shop: Pipeline, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoSuchRow, match=r"view totals has no row \('Cy', 1, 1\)\n  hint: p\.why_not\('totals'"):
        shop.why("totals", ("Cy", 1, 1))
    with pytest.raises(NoSuchRow, match="view root has the row"):
        shop.why_not("root", (7,))
    with pytest.raises(UnknownName, match='did you mean "totals"'):
        shop.why("total", (1,))
    with pytest.raises(TooMuchToExplain, match="within 1e-09 seconds"):
        shop.why("path", (1, 4), seconds=1e-9)
    with Pipeline(spark, tmp_path / "state", place="driver") as p:
        edge = p.source("edge", spark.createDataFrame(EDGES, "a BIGINT, b BIGINT"), keep=False)
        edge.select("a").sink("starts")
        p.sql("CREATE MATERIALIZED VIEW ends AS SELECT b FROM edge")
        p.refresh()
        with pytest.raises(PipelineError, match="was built of streams"):
            p.why("starts", (1,))
        with pytest.raises(PipelineError, match="the contents of edge are not kept"):
            p.why("ends", (2,))
