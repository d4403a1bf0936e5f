"""Bytes as SQL writes them, and aggregates of bitmaps."""

from __future__ import annotations

import pytest

import everview as ev
from everview.errors import EverviewError


@pytest.mark.parametrize("written", ["X'F0'", "x'f0'", "X 'F0'", 'X"F0"'])
def test_digits_that_look_like_a_name_are_bytes(written: str) -> None:
    assert ev.connect().sql(f"SELECT {written} AS b").rows() == [(b"\xf0",)]


def test_bitmaps_follow_their_rows() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, x BIGINT)")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT k, bitmap_construct_agg(bitmap_bit_position(x)) AS b FROM t GROUP BY k"
    )
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT bitmap_count(bitmap_or_agg(b)) AS n, bitmap_and_agg(b) AS a FROM v")
    db.sql("INSERT INTO t VALUES (1, 1, 1), (2, 1, 4), (3, 2, 4), (4, 2, 32768)")
    assert sorted((k, b[:2], b[-1], len(b)) for k, b in db.view("v").rows()) == [
        (1, b"\x09\x00", 0, 4096),
        (2, b"\x08\x00", 128, 4096),
    ]
    assert [(n, a[:1], a[-1]) for n, a in db.view("w").rows()] == [(3, b"\x08", 0)]
    db.sql("DELETE FROM t WHERE id = 2")
    assert [(n, a[:1]) for n, a in db.view("w").rows()] == [(3, b"\x00")]
    db.verify()


def test_an_assertion_refuses_the_tick() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, assert_true(n > 0, 'n is positive') AS ok FROM t")
    db.sql("INSERT INTO t VALUES (1, 5)")
    with pytest.raises(EverviewError, match="n is positive"):
        db.sql("INSERT INTO t VALUES (2, -5)")
    assert db.sql("SELECT id FROM t").rows() == [(1,)]
    db.verify()
