"""Sketches in views: right after every insert and delete, joined again from views of parts, and refused as in Spark."""

from __future__ import annotations

import random
from typing import Any

import pytest

import everview as ev
from everview.errors import EverviewError
from everview.frontends.sql.sketches import OF_SKETCHES
from everview.scalars.signatures import INTERNAL

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, k INT, x BIGINT, d DOUBLE, f FLOAT, s STRING, b BINARY, a ARRAY<INT>)"
VIEWS = """
CREATE MATERIALIZED VIEW parts AS SELECT k, x % 3 AS part,
  hll_sketch_agg(x, 4) AS h, hll_sketch_agg(s) AS hs, hll_sketch_agg(b, 5) FILTER (WHERE x > 2) AS hb,
  theta_sketch_agg(x, 4) AS th, theta_sketch_agg(d) AS td, theta_sketch_agg(f, 4) AS tf, theta_sketch_agg(a) AS ta,
  kll_sketch_agg_bigint(x, 8) AS q, kll_sketch_agg_double(d, 8) AS qd, kll_sketch_agg_float(f) AS qf
  FROM t GROUP BY k, x % 3;
CREATE MATERIALIZED VIEW joined AS SELECT k, hll_union_agg(h) AS h, hll_union_agg(hs, true) AS hs,
  theta_union_agg(th, 4) AS th, theta_intersection_agg(td) AS td, kll_merge_agg_bigint(q) AS q,
  kll_merge_agg_double(qd, 20) AS qd, kll_merge_agg_float(qf) AS qf FROM parts GROUP BY k;
CREATE MATERIALIZED VIEW whole AS SELECT k, hll_sketch_agg(x, 4) AS h, hll_sketch_agg(s) AS hs,
  theta_sketch_agg(x, 4) AS th FROM t GROUP BY k;
CREATE MATERIALIZED VIEW told AS SELECT k, hll_sketch_estimate(h) AS h,
  hll_sketch_estimate(hll_union(h, hs, true)) AS u,
  theta_sketch_estimate(th) AS th, theta_sketch_estimate(theta_difference(th, td)) AS less,
  theta_sketch_estimate(theta_union(th, td, 5)) AS more, theta_sketch_estimate(theta_intersection(th, td)) AS met,
  kll_sketch_get_n_bigint(q) AS n, kll_sketch_get_quantile_bigint(q, 0.5) AS mid,
  kll_sketch_get_quantile_double(qd, array(0.0D, 1.0D)) AS ends, kll_sketch_get_rank_float(qf, CAST(1 AS FLOAT)) AS r,
  kll_sketch_to_string_bigint(kll_sketch_merge_bigint(q, q)) AS text FROM joined;
CREATE MATERIALIZED VIEW every AS SELECT hll_sketch_agg(x) AS h, theta_sketch_agg(s) AS th,
  kll_sketch_agg_bigint(x) AS q, theta_intersection_agg(theta) AS none,
  approx_top_k(s) AS top, approx_top_k(x, 2) FILTER (WHERE x < 4) AS low,
  hll_sketch_estimate(hll_sketch_agg(s)) AS texts
  FROM (SELECT x, s, CAST(NULL AS BINARY) AS theta FROM t);
CREATE MATERIALIZED VIEW running AS SELECT id, hll_sketch_agg(x) OVER (PARTITION BY k ORDER BY id) AS h FROM t;
"""


def row(id: int, rng: random.Random) -> tuple[Any, ...]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    x = rng.choice([rng.randrange(6), rng.getrandbits(62)])
    d, s = rng.choice([0.0, -0.0, float("nan"), x / 8]), rng.choice(["", "a", str(x)])
    return (
        id,
        rng.randrange(2),
        maybe(x),
        maybe(d),
        maybe(rng.choice([0.5, 1.0, 2.0])),
        maybe(s),
        maybe(s.encode()),
        maybe([1, None][: x % 3]),
    )


@pytest.mark.parametrize("seed", range(2))
def test_sketches_are_right_after_every_change(seed: int) -> None:
    rng, db = random.Random(seed), ev.connect()
    db.sql(TABLE + ";" + VIEWS)
    held: dict[int, tuple[Any, ...]] = {}
    for tick in range(5):
        gone = [held.pop(id) for id in rng.sample(sorted(held), 2 * len(held) // 3)]
        new = {id: row(id, rng) for id in range(100 * tick, 100 * tick + (60 if tick < 3 else 5))}
        held |= new
        db.apply({"t": [*((r, -1) for r in gone), *((r, +1) for r in new.values())]})
        db.verify().raise_if_different()
        for name in ("h", "hs", "th"):
            joined, whole = (db.sql(f"SELECT k, {name} FROM {view} ORDER BY k").rows() for view in ("joined", "whole"))
            assert joined == whole, name
    db.apply({"t": [(r, -1) for r in held.values()]})
    (nothing,) = db.sql(
        "SELECT hll_sketch_estimate(h), theta_sketch_estimate(th), kll_sketch_get_n_bigint(q), "
        "kll_sketch_get_quantile_bigint(q, 0.5), theta_sketch_estimate(none), texts FROM every"
    ).rows()
    assert nothing == (0, 0, 0, None, 0, 0)


def test_what_does_not_count() -> None:
    """Text and arrays of no length and NaN count as NULL does, as in Spark, also where the number is exact."""
    db = ev.connect()
    db.sql("CREATE TABLE t (s STRING, d DOUBLE, a ARRAY<INT>)")
    db.sql("INSERT INTO t VALUES ('', 0.0D, array()), ('a', -0.0D, array(1)), (NULL, double('NaN'), array(NULL))")
    for of in (
        "(SELECT hll_sketch_agg(s) h, theta_sketch_agg(d) d, theta_sketch_agg(a) a, kll_sketch_agg_double(d) q FROM t)",
    ):
        told = (
            "SELECT hll_sketch_estimate({}), theta_sketch_estimate({}), theta_sketch_estimate({}), "
            "kll_sketch_get_n_double({}), kll_sketch_get_quantile_double({}, 1.0) FROM {}"
        )
        kept = db.sql(told.format("h", "d", "a", "q", "q", of)).rows()
        made = ("hll_sketch_agg(s)", "theta_sketch_agg(d)", "theta_sketch_agg(a)", *["kll_sketch_agg_double(d)"] * 2)
        assert kept == db.sql(told.format(*made, "t")).rows() == [(1, 2, 2, 2, 0.0)]


# Where Spark refuses a call, so do we.
MISTAKES = {
    "hll_sketch_agg(d)": "not defined on DOUBLE(.|\n)*cast it",
    "hll_sketch_agg(x, 3)": "lgConfigK of hll_sketch_agg is 3(.|\n)*from 4 to 21",
    "hll_sketch_agg(x, x)": "lgConfigK of hll_sketch_agg is no literal",
    "hll_sketch_estimate(hll_sketch_agg(x, 22))": "lgConfigK of hll_sketch_agg is 22",
    "hll_sketch_agg(x, 4, 5)": "takes 1 to 2 arguments",
    "hll_union_agg(b, x > 1)": "allowDifferentLgConfigK of hll_union_agg is no literal",
    "hll_union_agg(s)": "it takes a sketch, which is BINARY",
    "theta_sketch_agg(x, 27)": "lgNomEntries of theta_sketch_agg is 27(.|\n)*from 4 to 26",
    "theta_union_agg(b, NULL)": "lgNomEntries of theta_union_agg is",
    "kll_sketch_agg_bigint(d)": "it takes BIGINT",
    "kll_sketch_agg_float(d)": "it takes FLOAT",
    "kll_sketch_agg_double(x)": "it takes DOUBLE",
    "kll_sketch_agg_double(d, 7)": "k of kll_sketch_agg_double is 7(.|\n)*from 8 to 65535",
    "kll_merge_agg_double(b, 65536)": "k of kll_merge_agg_double is 65536",
    "hll_union(hll_sketch_agg(x, 4), hll_sketch_agg(x, 5))": "different lgConfigK, 4 and 5(.|\n)*allowDifferent",
    "hll_union_agg(b)": "no HLL sketch of Everview's format(.|\n)*DataSketches",
    "theta_intersection_agg(b)": "no theta sketch",
    "kll_sketch_get_quantile_double(kll_sketch_agg_double(d), 1.5)": "a rank is a number from 0 to 1",
    "kll_sketch_get_n_bigint(kll_merge_agg_double(b))": "KLL .DOUBLE. sketch",
    "approx_top_k(b)": "it takes numbers, text",
    "approx_top_k(x, 0)": "the k of approx_top_k is 0",
    "approx_top_k(x, 5, 3)": "maxItemsTracked of approx_top_k is 3(.|\n)*from 5 to 1000000",
    "hll_sketch_estimate(max(s))": "it takes a sketch",
}


@pytest.mark.parametrize("written", MISTAKES)
def test_mistakes(written: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (x BIGINT, d DOUBLE, s STRING, b BINARY)")
    db.sql("INSERT INTO t VALUES (1, 1.5D, 'a', X'0201070C')")
    with pytest.raises(EverviewError, match=MISTAKES[written]):
        db.sql(f"SELECT {written} AS n FROM t")


def test_the_most_frequent_values_are_spark_s() -> None:
    with pytest.raises(EverviewError, match="approx_top_k is not supported"):
        ev.connect().sql("SELECT approx_top_k(x, 2) AS n FROM (VALUES (1)) AS t(x)", dialect="duckdb")


def test_all_functions_of_sketches_are_of_spark() -> None:
    assert not OF_SKETCHES & INTERNAL
