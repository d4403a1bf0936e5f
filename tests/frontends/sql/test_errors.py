"""What is wrong is said with its place in the text, and with what to do."""

from __future__ import annotations

import pytest

from everview.errors import EverviewError, NullNotAllowed, SqlError, TypeMismatch, UnknownName, WrongArity
from everview.frontends.sql import Tables, bind
from everview.frontends.sql.other_names import INSTEAD
from everview.types import Schema
from frontends.sql.catalog import tables

# A text in which `^` stands before the place that the error points to, the error, and parts of what it says.
WRONG = [
    ("SELECT a ^FORM t", SqlError, ["syntax error", "did you mean FROM?"]),
    ("SELECT a,^, b FROM t", SqlError, ["missing beside the comma"]),
    ("SELECT ^(1", SqlError, ["is not closed"]),
    ("SELECT a FROM^ t WHERE", SqlError, []),
    ("SELECT FROM ^t", SqlError, ["SELECT of what?"]),
    ("SELECT ^onwer FROM t", UnknownName, ['"onwer" does not exist', "available: a, b"]),
    ("SELECT ^t.aa FROM t", UnknownName, ['"t.aa"', 'did you mean "a"?']),
    ("SELECT ^u.a FROM t", UnknownName, ['relation "u"']),
    ("SELECT 1 FROM ^tt", UnknownName, ['"tt"', 'did you mean "t"?']),
    ("SELECT ^upperr(c) FROM t", UnknownName, ["upper"]),
    ("SELECT a,\n  ^zz\nFROM t", UnknownName, ["line 2, column 3"]),
    ("SELECT ^a FROM t JOIN s ON t.a = s.a", SqlError, ["ambiguous", "t.a or s.a"]),
    ("SELECT 1 FROM t JOIN ^t ON true", SqlError, ['two relations are called "t"']),
    ("SELECT ^s.x FROM t LEFT ANTI JOIN s ON t.a = s.a", UnknownName, ["only asked for matches"]),
    ("SELECT ^a + true FROM t", TypeMismatch, ["INTEGER and BOOLEAN"]),
    ("SELECT 1 FROM t WHERE ^a", TypeMismatch, ["WHERE", "INTEGER", "BOOLEAN"]),
    ("SELECT 1 FROM t WHERE ^arr = 1", TypeMismatch, ["ARRAY<INTEGER> and INTEGER"]),
    ("SELECT substring(^c) FROM t", WrongArity, ["substring takes 2 to 3"]),
    ("SELECT a FROM t UNION SELECT ^arr FROM t", SqlError, ["INTEGER and ARRAY<INTEGER>"]),
    ("SELECT a FROM t UNION SELECT ^a, b FROM t", SqlError, ["1 and 2 columns"]),
    ("SELECT ^c FROM t GROUP BY a", SqlError, ["neither grouped nor aggregated", "any_value(c)"]),
    ("SELECT a FROM t WHERE ^sum(b) > 1", SqlError, ["the aggregate sum in WHERE"]),
    ("SELECT sum(^max(b)) FROM t", SqlError, ["the aggregate max in the aggregate sum"]),
    ("SELECT 1 FROM t WHERE ^row_number() OVER (ORDER BY a) = 1", SqlError, ["a window function in WHERE"]),
    ("SELECT ^row_number() OVER (PARTITION BY a) FROM t", SqlError, ["in which order?"]),
    ("SELECT ^rank() FROM t", SqlError, ["rank without a window"]),
    ("SELECT DISTINCT a FROM t ORDER BY ^b", SqlError, ["DISTINCT"]),
    ("SELECT a FROM t ORDER BY ^3", SqlError, ["ORDER BY 3"]),
    ("SELECT a FROM t LIMIT ^a", UnknownName, []),
    ("SELECT (SELECT ^a, b FROM t)", SqlError, ["2 columns where one is read"]),
    ("SELECT DATE ^'2026-02-30'", SqlError, ["no DATE"]),
    ("SELECT e + INTERVAL ^'x' DAY FROM t", SqlError, ["no interval"]),
    ("SELECT CAST(^a AS DATE) FROM t", TypeMismatch, ["INTEGER to DATE"]),
    ("SELECT ^st.z FROM t", UnknownName, ['field "z"']),
    ("INSERT INTO ^t VALUES (1)", SqlError, ["1 values for 7 columns"]),
    ("UPDATE t SET ^q = 1", UnknownName, ['"q"']),
    ("DELETE FROM ^v", SqlError, ["no table"]),
    ("CREATE TABLE ^z (a INT, A INT)", SqlError, ["two columns"]),
    ("CREATE TABLE ^z (a INT PRIMARY KEY, b INT PRIMARY KEY)", SqlError, ["two primary keys"]),
    ("WITH x AS (SELECT 1), y AS (SELECT 1) SELECT 1 FROM ^z", UnknownName, ['"z"']),
    # what cannot be maintained, or is not there, is refused with the reason
    ("SELECT ^rand() FROM t", SqlError, ["rand() is not supported", "same answer"]),
    ("SELECT a FROM ^t TABLESAMPLE (10 PERCENT)", SqlError, ["TABLESAMPLE is not supported", "choose rows by a value"]),
    ("SELECT a FROM t SORT BY ^nope", UnknownName, ["nope"]),
    ("SELECT upper(x => ^'a') FROM t", SqlError, ['the argument "x" by name']),
    ("SELECT a FROM t WHERE (^a, b) = 1", TypeMismatch, ["STRUCT<a: INTEGER"]),
    ("SELECT upper(^x -> x) FROM t", SqlError, ["a lambda in SELECT is not supported"]),
    ("SELECT a FROM ^db.t", UnknownName, ['schema "db" does not exist']),
    ("SELECT a FROM ^c.db.t", SqlError, ["the catalog in"]),
    ("SELECT CAST(^a AS INTERVAL HOUR TO MINUTE) FROM t", SqlError, ["in which unit"]),
    ("CREATE TABLE z (^a INT GENERATED ALWAYS AS IDENTITY)", SqlError, ["IDENTITY", "not supported"]),
    ("SELECT sum(x) OVER (ORDER BY ts, x RANGE ^1 PRECEDING) FROM s", SqlError, ["one sort key"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION SELECT count(*) FROM r) FROM r", SqlError, ["an aggregate"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t EXCEPT SELECT a FROM r) FROM r", SqlError, ["starts with nothing"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION SELECT s.a FROM s WHERE s.a NOT IN (SELECT a FROM r)) FROM r",
     SqlError, ["in a subquery"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM r) SELECT * FROM r", SqlError, ["starts with nothing"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION ALL SELECT DISTINCT a FROM r) FROM r",
     SqlError, ["through DISTINCT"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION ALL SELECT x.a FROM r x JOIN r y ON x.a = y.a) FROM r",
     SqlError, ["twice in a join, under UNION ALL", "write UNION for a set"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION ALL SELECT s.a FROM s WHERE s.a IN (SELECT a FROM r)) FROM r",
     SqlError, ["in a subquery, under UNION ALL"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION SELECT a FROM r UNION ALL SELECT a FROM r) FROM r",
     SqlError, ["through DISTINCT"]),
    ("WITH RECURSIVE ^r AS (SELECT a FROM t UNION ALL (SELECT a FROM r INTERSECT SELECT a FROM s)) FROM r",
     SqlError, ["through an INTERSECT"]),
    ("^SHOW GRANTS", SqlError, ["'SHOW GRANTS' is not supported"]),
    ("^GRANT ALL ON t TO u", SqlError, ["not supported"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "said"), WRONG)
def test_errors_point_at_the_place(text: str, kind: type[EverviewError], said: list[str]) -> None:
    at = text.find("^")
    text = text.replace("^", "", 1) if at >= 0 else text
    with pytest.raises(kind) as caught:
        bind(text, tables())
    message = str(caught.value)
    for part in said:
        assert part in message
    if at >= 0 and "line " in message:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        lines = message.split("\n")
        place = next(i for i, found in enumerate(lines) if found.strip().startswith("line "))
        if said:
            assert f"line {line}, column {column}:" in lines[place], message
        assert lines[place + 2].strip().startswith("^")


def test_a_value_for_every_column_that_needs_one() -> None:
    with pytest.raises(NullNotAllowed, match='"b" of t is NOT NULL'):
        bind("INSERT INTO t (a) VALUES (1)", tables())


def test_dialects_have_names() -> None:
    with pytest.raises(UnknownName, match="dialect"):
        bind("SELECT 1", tables(), dialect="klingon")


def test_a_long_line_is_shown_around_the_place() -> None:
    with pytest.raises(UnknownName) as caught:
        bind("SELECT " + "a, " * 100 + "zz" + ", a" * 100 + " FROM t", tables())
    shown = str(caught.value).split("\n")[2:4]
    assert len(shown[0]) < 120
    assert shown[0].index("zz") == shown[1].index("^^")


def test_a_name_of_another_database_has_one_here() -> None:
    known = {"o": Schema.parse("s STRING, x INT, y INT, t TIMESTAMP, d DATE, a ARRAY<INT>")}
    for name, instead in INSTEAD.items():
        bind(f"SELECT {instead} AS r FROM o", Tables(known))
        with pytest.raises(UnknownName, match=f'"{name}" does not exist'):
            bind(f"SELECT {name}(x) FROM o", Tables(known))
