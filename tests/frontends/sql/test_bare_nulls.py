"""Rows of NULLs without a type: written into tables, and where nothing but their number is read."""

from __future__ import annotations

import pytest

import everview as ev


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (NULL, NULL)",
        "INSERT INTO t SELECT NULL, NULL",
        "INSERT INTO t (b) VALUES (NULL)",
        "INSERT INTO t SELECT NULL, NULL FROM (SELECT 1)",
        "INSERT INTO t SELECT * FROM (SELECT NULL, NULL)",
    ],
)
def test_a_row_of_nulls_is_written(text: str) -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (a INT, b STRING)")
        assert db.sql(text) == 1
        assert db.table("t").rows() == [(None, None)]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("SELECT count(*) FROM (SELECT NULL UNION ALL SELECT NULL)", (2,)),
        ("SELECT count(*) FROM VALUES (NULL), (NULL) AS v(x)", (2,)),
        ("SELECT 1 FROM (SELECT NULL AS x)", (1,)),
        ("SELECT (SELECT count(*) FROM (SELECT NULL))", (1,)),
    ],
)
def test_rows_of_nulls_are_counted(text: str, row: tuple[object, ...]) -> None:
    with ev.connect() as db:
        assert list(db.sql(text)) == [row]
        db.sql(f"CREATE MATERIALIZED VIEW v AS {text}")
        assert db.view("v").rows() == [row]


@pytest.mark.parametrize("text", ["EXPLAIN SELECT SELECT n FROM ", "EXPLAIN SELECTn FROM  ", "EXPLAIN  ", "EXPLAIN '"])
def test_a_text_that_cannot_be_explained_is_refused(text: str) -> None:
    with ev.connect() as db, pytest.raises(ev.EverviewError):
        db.sql(text)


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("SELECT ?", [[]], []),
        ("SELECT ?", [[None]], [None]),
        ("SELECT ?", [[[]]], [[]]),
        ("SELECT ?", [{"a": []}], {"a": []}),
        ("SELECT collect_list(?)", [[]], [[]]),
        ("SELECT max(array())", [], []),
        ("SELECT count(DISTINCT array())", [], 1),
        ("SELECT first(named_struct('a', NULL))", [], {"a": None}),
    ],
)
def test_arrays_and_structs_without_a_type_are_of_text(text: str, given: list[object], value: object) -> None:
    with ev.connect() as db:
        assert list(db.sql(text, given)) == [(value,)]
