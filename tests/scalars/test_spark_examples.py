"""Spark's list of built-in functions, replayed without Spark: what is supported stays so, the rest says why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import everview as ev
from everview.errors import EverviewError, UnknownName
from everview.frontends.sql.functions import CHANCE
from everview.frontends.sql.generators import GENERATORS
from everview.frontends.sql.spark_names import OF_SPARK
from everview.frontends.sql.written import NAMES, RANKS
from everview.scalars.signatures import INTERNAL

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import spark_functions as listed

LEAST = 0.9  # share of functions with an answer of Spark's


def test_functions_of_spark() -> None:
    database = ev.connect()
    counted = [function for function in listed.functions() if not function.is_aside]
    missing = [f.name for f in counted if not listed.is_supported(f, listed.replay(f, database))]
    share = 1 - len(missing) / len(counted)
    assert share >= LEAST, f"{share:.1%}; missing: {' '.join(missing)}"
    unexplained = {*missing} - {*OF_SPARK, *CHANCE, *RANKS, *NAMES, *GENERATORS}
    assert not unexplained, unexplained


@pytest.mark.parametrize("name", ["count_min_sketch", "to_avro"])
def test_a_function_of_spark_is_named_as_such(name: str) -> None:
    with pytest.raises(EverviewError, match=f"Spark's {name} is not supported yet"):
        ev.connect().sql(f"SELECT {name}('x')")


SKETCHED = (
    "SELECT {0}(s) FROM t",
    "SELECT k, {0}(s, s) FROM t GROUP BY k",
    "SELECT k, {0}(s) FILTER (WHERE k > 1) FROM t GROUP BY k",
    "SELECT k FROM t GROUP BY k HAVING {0}(s) IS NOT NULL",
    "SELECT {0}(s, 12) OVER (PARTITION BY k) FROM t",
    "CREATE VIEW v AS SELECT k, {0}(s) AS x FROM t GROUP BY k",
    "CREATE VIEW v AS SELECT k, hex({0}(s, s)) AS x FROM t WHERE {0}(s) > X'00'",
)


@pytest.mark.parametrize("name", [f.name for f in listed.functions() if listed.SKETCHES.fullmatch(f.name)])
def test_a_sketch_that_is_not_there_is_refused(name: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, s BINARY)")
    for text in SKETCHED:
        with pytest.raises(UnknownName, match=f"Spark's {name} is not supported") as refused:
            db.sql(text.format(name))
        assert "of sketches there are HLL, theta and KLL" in (refused.value.hint or ""), text


def test_over_follows_an_aggregate() -> None:
    with pytest.raises(EverviewError, match="OVER follows an aggregate or a window function"):
        ev.connect().sql("SELECT upper('a') OVER ()")
    with pytest.raises(UnknownName, match='function "uper" does not exist'):
        ev.connect().sql("SELECT uper('a') OVER ()")


def test_what_is_lacking_is_spark_s_and_not_ours() -> None:
    names = {function.name for function in listed.functions()}
    assert {*OF_SPARK} <= names
    from everview.plan.typing import is_function

    assert not [name for name in OF_SPARK if is_function(name) or name in NAMES]


@pytest.mark.parametrize("name", sorted(INTERNAL))
def test_what_only_rules_and_syntax_call_is_no_function_of_sql(name: str) -> None:
    with pytest.raises(UnknownName, match=f'function "{name}" does not exist'):
        ev.connect().sql(f"SELECT {name}('a', 'b')")
