"""Queries that random SQL has found wrong, with Spark's answers; `torture.random_sql` makes more of their kind."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import everview as ev

T1, T2 = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 1, 30)
DAY = dt.date(2020, 2, 1)

CASES = [
    # A constant that is compared with a constant, beside columns.
    ("SELECT i FROM t WHERE array(1) IN (a, array(1, 2, NULL))", [(1,), (3,)]),
    ("SELECT i, array(2) IN (array(1), a) AS c FROM t", [(1, False), (2, True), (3, False)]),
    ("SELECT i, NULL IN (NULL, i) AS c FROM t", [(1, None), (2, None), (3, None)]),
    # A filter whose condition is true, above one that is not.
    ("SELECT (SELECT max(1) FROM t r JOIN LATERAL explode(r.a) AS e(v) WHERE 1.25 IN (p, p)) AS c FROM t", [(1,)] * 3),
    # Structs without names, and with some.
    ("SELECT struct(i, i + 1, i AS k, 'a') AS c FROM t WHERE i = 1", [({"i": 1, "col2": 2, "k": 1, "col4": "a"},)]),
    # Moments plus intervals are functions without a name in SQL; over groups they are typed again.
    (f"SELECT min(TIMESTAMP '{T1}') + INTERVAL '90' MINUTE AS c FROM t", [(T2,)]),
    (f"SELECT i, max(TIMESTAMP '{T1}') + INTERVAL '90' MINUTE AS c FROM t GROUP BY i", [(1, T2), (2, T2), (3, T2)]),
    ("SELECT min(DATE '2020-01-01') + INTERVAL '1' MONTH AS c FROM t", [(DAY,)]),
    ("SELECT min(DATE '2020-01-31') + INTERVAL '1' DAY AS c FROM t", [(DAY,)]),
    # An array of nothing, of which no type is known, over a window.
    ("SELECT i, lag(array()) OVER (ORDER BY i) AS c FROM t", [(1, None), (2, []), (3, [])]),
    # What is asked of a sketch at once is exact.
    ("SELECT hll_sketch_estimate(hll_sketch_agg(CAST(p AS STRING))) AS n, "
     "theta_sketch_estimate(theta_sketch_agg(i, 12)) AS m, kll_sketch_get_n_bigint(kll_sketch_agg_bigint(i)) AS c, "
     "kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(i), 0.5) AS q FROM t", [(1, 3, 3, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), CASES, ids=[query for query, _ in CASES])
def test_it_is_as_spark_has_it(query: str, expected: list[tuple[Any, ...]]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (i INT, p DECIMAL(8,2), a ARRAY<INT>)")
    db.sql(f"CREATE MATERIALIZED VIEW before AS {query}")
    db.apply({"t": [((1, "1.25", [1]), 1), ((2, None, [2]), 1), ((4, "0.00", None), 1)]})
    db.apply({"t": [((3, "1.25", [1]), 1), ((4, "0.00", None), -1)]})
    db.sql(f"CREATE MATERIALIZED VIEW after AS {query}")
    assert sorted(db.view("before").rows()) == sorted(db.view("after").rows()) == expected
    assert db.verify()
