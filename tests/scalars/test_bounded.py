"""Arguments that name a size cost no more than what they may give: huge scales, counts, widths and exponents."""

from __future__ import annotations

import decimal

import pytest

import everview as ev
from everview.database.snapshots import core_of
from everview.errors import ArithmeticFailure, EverviewError
from everview.oracle.plans import evaluate
from everview.zset import ZSet

ROUNDED = {
    "round(n, -20000000)": 0,
    "round(i, -20000000)": 0,
    "round(d, -20000000)": 0.0,
    "round(d, 2000000000)": 1.5,
    "bround(d, -20000000)": 0.0,
    "floor(n, -20000000)": 0,
}
REFUSED = [
    "repeat(s, 2000000000)",
    "repeat(s, i * 1000000000)",
    "space(2000000000)",
    "lpad(s, 2000000000, 'xy')",
    "rpad(s, 2000000000, 'x')",
    "format_number(d, 2000000)",
    "printf('%2000000000d', i)",
    "printf('%.2000000000f', d)",
]


@pytest.fixture
def db():
    made = ev.connect()
    made.sql("CREATE TABLE t (i INT, n DECIMAL(10, 2), d DOUBLE, s STRING)")
    made.sql("INSERT INTO t VALUES (2, 1.25, 1.5, 'ab')")
    return made


@pytest.mark.parametrize("text", ROUNDED)
def test_a_scale_beyond_all_digits_leaves_nothing_to_round(db, text):
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS x FROM t")
    assert [tuple(row) for row in db.sql("SELECT x FROM v")] == [(ROUNDED[text],)]
    db.verify("v")


@pytest.mark.parametrize("text", [*REFUSED, "replace(repeat(s, 100000), 'a', repeat(s, 100000))",
                                  "regexp_replace(repeat(s, 100000), 'a', repeat('b', 100000))"])  # fmt: skip
def test_a_text_that_is_too_long_is_not_made(db, text):
    with pytest.raises(ArithmeticFailure):
        list(db.sql(f"SELECT length({text}) FROM t"))


@pytest.mark.parametrize("text", REFUSED)
def test_the_oracle_does_not_make_it_either(db, text):
    db.sql("DELETE FROM t")
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS x FROM t WHERE i > 0")
    plan = core_of(db).catalog.views["v"].plan
    with pytest.raises(ArithmeticFailure):
        evaluate(plan, {"t": ZSet.of([((2, decimal.Decimal("1.25"), 1.5, "ab"), 1)])})


@pytest.mark.parametrize("value", ["1e100000000", "-1e100000000", "1e-100000000", 1 << 5_000], ids=range(4))
def test_a_number_with_a_huge_exponent_is_refused_at_once(db, value):
    value = decimal.Decimal(value) if isinstance(value, str) else value
    with pytest.raises(EverviewError, match="38 digits"):
        db.sql("SELECT ?", [value])
    row = (value, 1, 1.0, "a")
    for place in (0, 1):
        with pytest.raises(EverviewError):
            db.apply({"t": [((*row[1 : place + 1], value, *row[place + 1 :]), 1)]})


def test_zero_has_no_digits_whatever_its_exponent(db):
    assert [tuple(row) for row in db.sql("SELECT ?", [decimal.Decimal("0e100000000")])] == [(0,)]
    db.sql("CREATE TABLE z (n DECIMAL(10, 2))")
    db.apply({"z": [((decimal.Decimal(f"0e{sign}100000000"),), 1) for sign in "+-"]})
    assert [tuple(row) for row in db.sql("SELECT n, count(*) FROM z GROUP BY n")] == [(0, 2)]
