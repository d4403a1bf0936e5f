"""Random SQL, a little every day: fixed seeds against DuckDB and Spark; and the parts of the trial itself."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from torture.random_sql.clauses import Item, Select, Table
from torture.random_sql.comparing import bag, same
from torture.random_sql.engines import Spark
from torture.random_sql.expressions import Scope
from torture.random_sql.features import FEATURES
from torture.random_sql.judge import Judge, with_known_membership
from torture.random_sql.queries import Queries
from torture.random_sql.reduce import Case, reduced
from torture.random_sql.tables import TableShape, contents, stream, tables
from torture.random_sql.trees import BIT_AND, BIT_OR, BOOL, INT, NOT, Among, Call, Constant, Form, Name
from torture.random_sql.trial import Batch, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = (500, 501)
SPARK_SEED = 300

I = Name(INT, "r1", "i")  # noqa: E741
ONE = Constant(INT, "1", "1")
AND = Form("{0} & {1}", "{0} & {1}", BIT_AND, (BIT_AND, BIT_AND + 1))
OR = Form("{0} | {1}", "{0} | {1}", BIT_OR, (BIT_OR, BIT_OR + 1))
NEGATION = Form("NOT {0}", "NOT {0}", NOT, (NOT,))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_views_of_random_queries_are_what_duckdb_computes(seed: int) -> None:
    _agree(Trial(), seed, range(4))


@pytest.mark.slow
def test_views_of_random_queries_are_what_spark_computes(spark: SparkSession) -> None:
    _agree(Trial(Spark(spark)), SPARK_SEED, range(1))


def _agree(trial: Trial, seed: int, batches: range) -> None:
    for number in batches:
        found = [Judge(trial.spark, 5).finding(kind, case) for kind, case in trial.batch(seed, number, trial.spark)]
        assert not any(found), "\n".join(str(each) for each in found if each is not None)
    compared = trial.tried["queries compared with DuckDB"] + trial.tried["queries compared with Spark"]
    assert compared >= 5 * len(batches), f"hardly anything was compared: {trial.outcome()}"


def test_a_seed_is_a_batch() -> None:
    one, two = (Batch.drawn(7, 3, FEATURES) for _ in range(2))
    assert [q.text("spark") for q in one.queries] == [q.text("spark") for q in two.queries]
    assert (repr(one.ticks), one.made_after) == (repr(two.ticks), two.made_after)


def test_streams_delete_only_what_is_there() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        shapes = tables(chance)
        ticks = stream(shapes, chance, 5)
        for end in range(1, 6):
            held = contents(shapes, ticks[:end])
            assert all(len(rows) >= 0 for rows in held.values())


@pytest.mark.parametrize(
    ("expr", "for_spark", "for_duckdb"),
    [
        (Call(INT, OR, (ONE, Call(INT, AND, (I, ONE)))), "1 | r1.i & 1", "(1 | (r1.i & 1))"),
        (Call(INT, AND, (ONE, Call(INT, OR, (I, ONE)))), "1 & (r1.i | 1)", "(1 & (r1.i | 1))"),
        (Call(INT, OR, (ONE, Call(INT, OR, (I, ONE)))), "1 | (r1.i | 1)", "(1 | (r1.i | 1))"),
        (Call(BOOL, NEGATION, (Call(BOOL, NEGATION, (I,)),)), "NOT NOT r1.i", "(NOT (NOT r1.i))"),
    ],
)
def test_spark_has_the_parentheses_it_needs_and_duckdb_all(expr: Call, for_spark: str, for_duckdb: str) -> None:
    assert (expr.text("spark"), expr.text("duckdb")) == (for_spark, for_duckdb)


CASTS = Form("CAST(CAST({0} AS INT) AS STRING)", "CAST(CAST({0} AS INT) AS VARCHAR)")


@pytest.mark.slow
@pytest.mark.parametrize("negated", [False, True])
def test_membership_that_is_unknown_is_no_fault(spark: SparkSession, negated: bool) -> None:
    """Spark says FALSE where SQL says unknown, also inside of other expressions: the SQL reference has it."""
    shape = TableShape("t0", ("i",))
    ticks = ({"t0": [((1,), 1), ((None,), 1)]}, {"t0": [((2,), 1)]})
    inner = Select((Item(Name(INT, "r2", "i"), "c0"),), Table("t0", "r2"))
    among = Among(BOOL, Call(INT, OR, (I, ONE)), inner, negated)
    query = Select((Item(Call("STR", CASTS, (among,)), "c0"),), Table("t0", "r1"))
    case = Case((shape,), ticks, 1, query)
    judge = Judge(Spark(spark), 5)
    assert not same(judge.ours(case)[-1], judge._beside_spark(case)[-1]), "they differ"
    assert judge.finding("rows", case) is None
    assert "coalesce" in with_known_membership(query).text("spark")


def test_a_failing_case_is_made_small() -> None:
    """Whatever the query, a part that is to blame is all that is left of it, over one table without rows."""
    shape = TableShape("t0", ("i",))
    blamed = Call(INT, AND, (I, ONE))
    for seed in range(20):
        chance = random.Random(seed)
        ticks = tuple(stream((shape,), chance, 3))
        large = Queries(chance, (shape,)).expressions.expr(INT, Scope((I,)), 3)
        query = Select((Item(Call(INT, OR, (large, blamed)), "c0"), Item(ONE, "c1")), Table("t0", "r1"))
        small = reduced(Case((shape,), ticks, 2, query), lambda case: "r1.i & 1" in case.query.text("spark"), 5)
        assert small.query.text("spark") == "SELECT r1.i & 1 AS c0 FROM t0 AS r1"
        assert not any(rows for tick in small.ticks for rows in tick.values())


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([(1,), (1,)], [(1,)], False),
        ([(0.1 + 0.2,)], [(0.3,)], True),
        ([(float("nan"),)], [(float("nan"),)], True),
        ([(True,)], [(1,)], False),
        ([([1, None],)], [([1, None],)], True),
        ([("1",)], [(1,)], False),
    ],
)
def test_bags_are_compared_by_value(left: list[tuple[object]], right: list[tuple[object]], equal: bool) -> None:
    assert same(bag(left), bag(right)) is equal
