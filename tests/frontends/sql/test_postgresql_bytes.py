"""Texts that stand for bytes in PostgreSQL's dialect: by a cast, in VALUES and in SET."""

from __future__ import annotations

import pytest

import everview as ev
from everview.errors import EverviewError

TEXTS = {r"\xff00": b"\xff\x00", r"\xFF 01": b"\xff\x01", r"a\\b\001": b"a\\b\x01", "é": "é".encode(), "": b""}


@pytest.mark.parametrize("dialect", ["postgres", "postgresql"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_as_bytes_where_bytes_are_wanted(dialect, text):
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, y BINARY)")
    db.sql(f"INSERT INTO t VALUES (1, '{text}'), (2, NULL)", dialect=dialect)
    db.sql(f"INSERT INTO t (y, k) VALUES ('{text}', 3)", dialect=dialect)
    db.sql(f"UPDATE t SET y = '{text}' WHERE k = 2", dialect=dialect)
    assert [row[0] for row in db.sql("SELECT y FROM t")] == [TEXTS[text]] * 3
    assert [tuple(row) for row in db.sql(f"SELECT '{text}'::bytea", dialect=dialect)] == [(TEXTS[text],)]


@pytest.mark.parametrize("text", [r"\xf", r"\xgg", r"\9", r"\777"])
def test_a_text_that_stands_for_no_bytes_is_refused(text):
    with pytest.raises(EverviewError, match="is no BINARY"):
        ev.connect().sql(f"SELECT '{text}'::bytea", dialect="postgresql")


def test_in_other_dialects_a_text_is_its_own_bytes():
    assert [row[0] for row in ev.connect().sql(r"SELECT CAST(r'\xff' AS BINARY)")] == [rb"\xff"]
