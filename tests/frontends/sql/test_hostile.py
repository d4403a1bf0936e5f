"""Whatever the text, there is an answer or a clear error, and neither takes long to say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import EverviewError
from everview.frontends.sql import Statement, bind
from frontends.sql.catalog import tables

DEEP = 3000
LONGEST_MESSAGE = 3000

ANSWERED = {
    "ten thousand ORs": "SELECT a FROM t WHERE " + " OR ".join(f"a = {i}" for i in range(10_000)),
    "ANDs and ORs": "SELECT a FROM t WHERE "
    + " ".join(f"a = {i} {'OR' if i % 2 else 'AND'}" for i in range(2000))
    + " b = 1",
    "a hundred sums": "SELECT " + " + ".join(["a"] * 100) + " FROM t",
    "a long concatenation": "SELECT " + " || ".join(["c"] * 1000) + " FROM t",
    "many unions": " UNION ALL ".join(["SELECT 1"] * 1000),
    "many different unions": " UNION ".join(["SELECT 1"] * 1000),
    "fifty joins": "SELECT 1 FROM t t0 " + " ".join(f"JOIN t t{i} ON t{i}.a = t0.a" for i in range(1, 50)),
    "a chain of common table expressions": "WITH c0 AS (SELECT a FROM t), "
    + ", ".join(f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, 100))
    + " SELECT * FROM c99",
    "a megabyte of text": "SELECT '" + "x" * 1_000_000 + "' AS x",
    "a NUL in a text": "SELECT 'a\x00b' AS x FROM t WHERE c = '\x00'",
    "quotes": "SELECT 'it\\'s', \"x'y\", '--', '/*' FROM t",
    "strange names": "CREATE TABLE `we ird``;--` (`se lect` INT, `\n` STRING); "
    "SELECT `se lect`, `\n` FROM `we ird``;--`",
    "names of any language": "SELECT 'ß' AS `ñ`, '\U0001f600' AS `表`",
    "a thousand columns": "SELECT " + ", ".join(f"a AS c{i}" for i in range(1000)) + " FROM t",
    "a long list": "SELECT 1 FROM t WHERE a IN (" + ", ".join(map(str, range(5000))) + ")",
    "many rows": "VALUES " + ", ".join(f"({i}, 'x')" for i in range(2000)),
    "only semicolons": ";" * 1000,
    "nothing": "  -- nothing",
    "the least BIGINT": "SELECT -9223372036854775808, 99999999999999999999999999999999999999",
}
REFUSED = {
    "deep brackets": "SELECT " + "(" * DEEP + "1" + ")" * DEEP,
    "deep negations": "SELECT " + "NOT " * DEEP + "true",
    "deep signs": "SELECT " + "- " * DEEP + "1",
    "deep casts": "SELECT a" + "::INT" * DEEP + " FROM t",
    "deep fields": "SELECT a" + ".x" * DEEP + " FROM t",
    "deep elements": "SELECT arr" + "[0]" * DEEP + " FROM t",
    "deep cases": "SELECT " + "CASE WHEN true THEN " * DEEP + "1" + " END" * DEEP,
    "deep functions": "SELECT " + "abs(" * DEEP + "1" + ")" * DEEP,
    "deep subqueries": "SELECT * FROM " + "(SELECT * FROM " * DEEP + "t" + ")" * DEEP,
    "deep conditions": "SELECT 1 WHERE " + "EXISTS (SELECT 1 WHERE " * DEEP + "true" + ")" * DEEP,
    "ten thousand sums": "SELECT " + " + ".join(["a"] * 10_000) + " FROM t",
    "many differences": " EXCEPT ".join(["SELECT 1"] * DEEP),
    "many joins": "SELECT 1 FROM t t0 " + " ".join(f"JOIN t t{i} ON t{i}.a = t0.a" for i in range(1, 1000)),
    "a megabyte of a name": "SELECT `" + "x" * 1_000_000 + "` FROM t",
    "a megabyte of digits": "SELECT " + "9" * 1_000_000,
    "many digits after the point": "SELECT 1." + "9" * 10_000,
    "too large for DOUBLE": "SELECT 1e999",
    "half a character": "SELECT '\ud800'",
    "a name of NUL": "SELECT `\x00` FROM t",
    "no name": "SELECT `` FROM t",
    "an open quote": "SELECT 'abc",
    "an open comment": "SELECT 1 /* abc",
    "noise": "\x01\x02 \x03",
    "too many groupings": "SELECT 1 FROM t GROUP BY CUBE (a, b, c, d, e, a + 1, a + 2, a + 3, a + 4, a + 5)",
    "a huge limit": "SELECT a FROM t LIMIT 99999999999999999999999",
    "a long interval": "SELECT e + INTERVAL '99999999999' YEAR FROM t",
    "a parameter": "SELECT ?",
    "a name in itself": "WITH r AS (SELECT * FROM r) SELECT * FROM r",
}


@pytest.mark.parametrize("what", ANSWERED)
def test_answered(what: str) -> None:
    assert all(isinstance(s, Statement) for s in bind(ANSWERED[what], tables()))


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    with pytest.raises(EverviewError) as caught:
        bind(REFUSED[what], tables())
    assert len(str(caught.value)) < LONGEST_MESSAGE


def test_nothing_but_text_is_sql() -> None:
    with pytest.raises(EverviewError, match="SQL is text"):
        bind(b"SELECT 1", tables())  # pyright: ignore[reportArgumentType]


WORDS = """
SELECT FROM WHERE GROUP BY ORDER HAVING JOIN LEFT ON USING UNION ALL AS WITH RECURSIVE ( ) , . * + - / = < > a b c t s
1 'x' NULL NOT AND OR IN EXISTS CASE WHEN THEN ELSE END CAST INTERVAL DAY OVER PARTITION sum count ( ) LIMIT ; DISTINCT
CREATE TABLE VIEW INSERT INTO VALUES UPDATE SET DELETE BETWEEN LIKE IS
"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=25))
@settings(max_examples=150, deadline=None)
def test_any_words_end_in_statements_or_an_error(words: list[str]) -> None:
    _answered_or_refused(" ".join(words))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_ends_in_statements_or_an_error(text: str) -> None:
    for whole in (text, f"SELECT {text} FROM t", f"SELECT '{text}'", f"SELECT `{text}` FROM t"):
        _answered_or_refused(whole)


def _answered_or_refused(text: str) -> None:
    with suppress(EverviewError):
        assert all(isinstance(s, Statement) for s in bind(text, tables()))
