"""SQL becomes the plan that it means, under the names and types that Spark gives its columns."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import everview.frontends.sql as sql
from everview.frontends.sql import bind
from everview.plan.node import Plan
from everview.plan.node import walk as parts
from everview.plan.nodes import Aggregate, Filter, Lateral, Project, Recursive, Scan, Top, Window
from everview.scalars.expressions import AggregateCall, Exists, Expression, InQuery, Literal, Outer, Scalar, walk
from everview.types import Schema
from frontends.sql.catalog import plan_of, tables
from frontends.sql.tpch import QUERIES, TABLES

# A query, and the columns it gives.
SCHEMAS = [
    ("SELECT a, t.b, `C` FROM t", "a INTEGER, b BIGINT NOT NULL, C STRING"),
    ("SELECT * FROM v", "k INTEGER, n BIGINT NOT NULL"),
    ("SELECT * EXCEPT (arr, st) FROM t", "a INTEGER, b BIGINT NOT NULL, c STRING, d DECIMAL(12,2), e DATE"),
    ("SELECT 1, 'x', 1.50, 2L, 1e3, 1.5D, NULL, true", "1 INTEGER NOT NULL, x STRING NOT NULL, "
     "1.50 DECIMAL(3,2) NOT NULL, CAST(2 AS BIGINT) BIGINT NOT NULL, 1e3 DOUBLE NOT NULL, "
     "CAST(1.5 AS DOUBLE) DOUBLE NOT NULL, NULL STRING, true BOOLEAN NOT NULL"),
    ("SELECT a + 1, a + b, a / 2, d * d, d / 3, d + a, -a FROM t", "(a + 1) INTEGER, (a + b) BIGINT, (a / 2) DOUBLE, "
     "(d * d) DECIMAL(25,4), (d / 3) DECIMAL(16,6), (d + a) DECIMAL(13,2), (- a) INTEGER"),
    ("SELECT e + INTERVAL 1 MONTH AS m, e - 3 AS s, e + INTERVAL '2' HOUR AS h FROM t", "m DATE, s DATE, h TIMESTAMP"),
    ("SELECT sum(a), sum(d), avg(d), avg(a), count(*), count(DISTINCT a, c) FROM t", "sum(a) BIGINT, "
     "sum(d) DECIMAL(22,2), avg(d) DECIMAL(16,6), avg(a) DOUBLE, count(1) BIGINT NOT NULL, "
     "count(DISTINCT a, c) BIGINT NOT NULL"),
    ("SELECT c, max(e) AS m FROM t GROUP BY c", "c STRING, m DATE"),
    ("SELECT a, row_number() OVER (PARTITION BY c ORDER BY a) AS n FROM t", "a INTEGER, n INTEGER NOT NULL"),
    ("SELECT t.a, s.x FROM t LEFT JOIN s ON t.a = s.a", "a INTEGER, x DOUBLE"),
    ("SELECT b FROM t RIGHT JOIN s USING (a)", "b BIGINT"),
    ("SELECT a, a FROM t", "a INTEGER, a_2 INTEGER"),
    ("SELECT CAST(a AS STRING), t.b::DOUBLE, TRY_CAST(c AS INT), CAST(d + 1 AS STRING), CAST(now() AS DATE) FROM t",
     "a STRING, b DOUBLE NOT NULL, c INTEGER, CAST((d + 1) AS STRING) STRING, CAST(now() AS DATE) DATE NOT NULL"),
    ("SELECT CAST(a AS STRING), CAST(b AS INT), a, b AS B FROM t",
     "CAST(a AS STRING) STRING, CAST(b AS INT) INTEGER NOT NULL, a INTEGER, B BIGINT NOT NULL"),
    ("SELECT st.*, a FROM t", "x INTEGER, y STRING, a INTEGER"),
    ("SELECT t.st.*, count(*) FROM t GROUP BY st", "x INTEGER, y STRING, count(1) BIGINT NOT NULL"),
    ("SELECT u.st.* EXCEPT (x), st.* FROM t AS u JOIN s AS st ON u.a = st.a",
     "y STRING, a INTEGER, x DOUBLE, ts TIMESTAMP"),
    ("SELECT named_struct('p', a, 'q', 1).*, max(e) AS m FROM t GROUP BY a", "p INTEGER, q INTEGER NOT NULL, m DATE"),
    ("SELECT window.*, count(*) FROM t GROUP BY window(e, '1 day')",
     "start TIMESTAMP, end TIMESTAMP, count(1) BIGINT NOT NULL"),
    ("SELECT st.x, t.st.y, arr[0] FROM t", "x INTEGER, y STRING, arr[0] INTEGER"),
    ("SELECT 1 AS n UNION SELECT 2.5 UNION ALL SELECT NULL", "n DECIMAL(11,1)"),
    ("SELECT * FROM VALUES (1, 'a'), (2.5, NULL) AS v(x, y)", "x DECIMAL(11,1) NOT NULL, y STRING"),
    ("SELECT halved(a) AS h FROM t", "h DOUBLE"),
    ("SELECT a + 1 AS p, p * 2 AS q FROM t", "p INTEGER, q INTEGER"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) FROM r", "n INTEGER NOT NULL"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT b FROM t JOIN r ON n = a) SELECT * FROM r", "n BIGINT NOT NULL"),
    ("SELECT current_date, now() AS n", "current_date() DATE NOT NULL, n TIMESTAMP NOT NULL"),
    ("SELECT explode(arr) AS z, a FROM t", "z INTEGER, a INTEGER"),
    ("SELECT a, y FROM t LATERAL VIEW OUTER explode(arr) q AS y", "a INTEGER, y INTEGER"),
    ('SELECT "Some Column" AS q FROM `Mixed Case`', "q STRING NOT NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns"), SCHEMAS)
def test_columns_have_the_names_and_types_of_spark(text: str, columns: str) -> None:
    schema = plan_of(text).schema
    found = ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in schema)
    assert found == columns


# A query, and its plan.
PLANS = {
    "SELECT a FROM t WHERE b > 1 AND (c = 'x' AND a < 2)": """
        Project a
          Filter b > 1L AND c = 'x' AND a < 2
            Scan t""",
    "SELECT c, sum(b) AS n FROM t GROUP BY c HAVING count(*) > 1 ORDER BY n DESC LIMIT 3": """
        Top 3 by n desc nulls last
          Project c, `sum(b)` AS n
            Filter `count(*)` > 1L
              Aggregate sum(b), count(*) by c
                Scan t""",
    "SELECT k FROM v": """
        Project k
          Project a AS k, b + 1L AS n
            Filter b > 0L
              Scan t""",
    "SELECT t.a FROM t LEFT SEMI JOIN s ON t.a = s.a": """
        Project a
          Join semi on a = a
            Scan t
            Scan s""",
    "SELECT a FROM t FULL JOIN s USING (a)": """
        Project coalesce(a, a) AS a
          Join full on a = a
            Scan t
            Scan s""",
    "SELECT a FROM t NATURAL JOIN s": """
        Project a
          Join inner on a = a
            Scan t
            Scan s""",
    "SELECT a FROM t INTERSECT ALL SELECT a FROM s EXCEPT SELECT 1": """
        Except
          Intersect all
            Project a
              Scan t
            Project a
              Scan s
          Values (1)""",
    "SELECT DISTINCT c FROM t LIMIT 2 OFFSET 1": """
        Top 2 after 1
          Distinct
            Project c
              Scan t""",
    "SELECT a, rank() OVER (ORDER BY b) AS r FROM t QUALIFY r < 3": """
        Project a, `rank() OVER (ORDER BY b ASC NULLS FIRST)` AS r
          Filter `rank() OVER (ORDER BY b ASC NULLS FIRST)` < 3
            Window rank() OVER (ORDER BY b ASC NULLS FIRST)
              Scan t""",
    "SELECT explode(array(a, 2)) AS z FROM t": """
        Project z
          Union
            Project a, b, c, d, e, arr, st, a AS z
              Scan t
            Project a, b, c, d, e, arr, st, 2 AS z
              Scan t""",
}


@pytest.mark.parametrize(("text", "plan"), PLANS.items())
def test_plans(text: str, plan: str) -> None:
    lines = plan.strip("\n").split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    assert str(plan_of(text)) == "\n".join(line[indent:] for line in lines)


@pytest.mark.parametrize("number", QUERIES)
def test_tpch_binds(number: int) -> None:
    *_, select = bind(TABLES + QUERIES[number], sql.Tables({}))
    assert isinstance(select, sql.Select)
    assert select.plan.schema.names[: len(select.names)] == select.names


def _all(plan: Plan, kind: Any) -> list[Any]:
    expressions = [e for part in parts(plan) for whole in part.expressions for e in walk(whole)]
    inner = [i for e in expressions if isinstance(e, (Exists, InQuery, Scalar)) for i in _all(e.plan, kind)]
    return [x for x in [*parts(plan), *expressions] if isinstance(x, kind)] + inner


def test_a_subquery_reads_the_row_around_it() -> None:
    plan = plan_of("SELECT b FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.a = t.a AND s.x > (SELECT max(b) FROM t u "
                   "WHERE u.a = s.a AND u.c = t.c))")  # fmt: skip
    assert {(o.name, o.index, o.depth) for o in _all(plan, Outer)} == {("a", 0, 1), ("c", 2, 2)}


def test_a_subquery_over_groups_reads_the_group() -> None:
    plan = plan_of("SELECT c, (SELECT max(x) FROM s WHERE s.a = t.a) AS m, count(*) AS n FROM t GROUP BY c, a")
    (outer,) = _all(plan, Outer)
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Aggregate)
    assert (outer.index, outer.depth) == (1, 1), "the second column of the groups, not the first of the table"


def test_lateral_reads_the_left() -> None:
    plan = plan_of("SELECT t.a, m FROM t LEFT JOIN LATERAL (SELECT max(x) AS m FROM s WHERE s.a = t.a) l ON m > t.b")
    (lateral,) = _all(plan, Lateral)
    assert lateral.kind == "left"
    assert isinstance(lateral.right, Filter), "the condition is inside, over the row of the left"
    assert {(o.name, o.depth) for o in _all(lateral.right, Outer)} == {("a", 1), ("b", 1)}


def test_a_lateral_that_reads_nothing_is_a_join() -> None:
    assert not _all(plan_of("SELECT 1 FROM t, LATERAL (SELECT * FROM s) l"), Lateral)


def test_not_in_and_any_and_all() -> None:
    plan = plan_of("SELECT 1 FROM t WHERE a NOT IN (SELECT a FROM s) AND NOT EXISTS (SELECT 1 FROM s) AND b <> ALL "
                   "(SELECT a FROM s) AND a = ANY (SELECT a FROM s)")  # fmt: skip
    assert [(type(e).__name__, e.negated) for e in _all(plan, (Exists, InQuery))] == [
        ("InQuery", True), ("Exists", True), ("InQuery", True), ("InQuery", False),
    ]  # fmt: skip
    assert len(_all(plan_of("SELECT a > ALL (SELECT a FROM s) FROM t"), Exists)) == 2, "true, false, or unknown"


def test_common_table_expressions_are_the_same_plan() -> None:
    plan = plan_of("WITH x AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT 1 FROM x p JOIN x q ON p.n = q.a")
    assert len(_all(plan, Aggregate)) == 1, "walking a plan meets what is shared once"


def test_mutual_recursion_is_one_fixed_point() -> None:
    plan = plan_of(
        "WITH RECURSIVE even(n) AS (SELECT 0 UNION SELECT n + 1 FROM odd WHERE n < 9), "
        "odd(n) AS (SELECT n + 1 FROM even WHERE n < 9) SELECT * FROM odd"
    )
    (fixed,) = _all(plan, Recursive)
    assert [name for name, _ in fixed.bindings] == ["even", "odd"]


def test_rollup_is_a_union_of_groupings() -> None:
    plan = plan_of("SELECT c, a, grouping(a) AS g, sum(b) AS n FROM t GROUP BY ROLLUP (c, a)")
    assert [len(p.groups) for p in _all(plan, Aggregate)] == [2, 1, 1]  # all rows: a constant, so nothing of nothing
    assert str(plan.schema) == "c STRING, a INTEGER, g TINYINT NOT NULL, n BIGINT NOT NULL"
    for spelling in ("GROUP BY c, a WITH ROLLUP", "GROUP BY GROUPING SETS ((c, a), (c), ())"):
        same = plan_of(f"SELECT c, a, grouping(a) AS g, sum(b) AS n FROM t {spelling}")
        assert [len(p.groups) for p in _all(same, Aggregate)] == [2, 1, 1]


AGGREGATES = {
    "count_if(a > 1)": "count(*) FILTER (WHERE a > 1)",
    "max_by(a, b)": "max_by(a, b)",
    "collect_set(a)": "collect_list(DISTINCT a)",
    "array_agg(a ORDER BY b DESC)": "collect_list(a ORDER BY b DESC NULLS LAST)",
    "listagg(c, ',') WITHIN GROUP (ORDER BY a)": "listagg(c, ',' ORDER BY a ASC NULLS FIRST)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY a DESC)": "percentile_cont(a, 0.25D ORDER BY a DESC NULLS LAST)",
    "median(a)": "percentile_cont(a, 0.5D)",
    "any_value(a)": "min(a)",
    "sum(a) FILTER (WHERE b > 1)": "sum(a) FILTER (WHERE b > 1L)",
    "count(a, c)": "count(*) FILTER (WHERE a IS NOT NULL AND c IS NOT NULL)",
    "count(b)": "count(*)",
}


@pytest.mark.parametrize(("written", "meant"), AGGREGATES.items())
def test_aggregates(written: str, meant: str) -> None:
    (call,) = _all(plan_of(f"SELECT {written} FROM t"), AggregateCall)
    assert str(call) == meant


def test_windows_by_name_and_their_frames() -> None:
    plan = plan_of("SELECT sum(x) OVER (w ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING), lag(a, 2, 0) OVER w, "
                   "max(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW), "
                   "first_value(a) IGNORE NULLS OVER w FROM s WINDOW w AS (PARTITION BY a ORDER BY ts)")  # fmt: skip
    (window,) = _all(plan, Window)
    rows, lag, days, first = window.calls
    assert rows.frame is not None
    assert (rows.frame.unit, rows.frame.start, rows.frame.end) == ("rows", -2, 1)
    assert [str(a) for a in lag.arguments] == ["a", "2", "0"]
    assert days.frame is not None
    assert days.frame.start.value == -86_400_000_000
    assert str(first.filter) == "a IS NOT NULL"
    assert len({call.partition for call in (rows, lag, first)}) == 1


def test_order_by_without_a_limit_is_for_showing() -> None:
    (select,) = bind("SELECT a FROM t ORDER BY b DESC, a", tables())
    assert isinstance(select, sql.Select)
    assert select.names == ("a",)
    assert [way for _, way in select.order] == ["desc nulls last", "asc nulls first"]
    assert len(select.plan.schema) == 2, "what it is sorted by stands after the columns"
    assert not _all(select.plan, Top)


def test_constants_are_folded_where_nothing_is_lost() -> None:
    plan = plan_of("VALUES (1, 2.5), (2.25, 3)")
    assert str(plan) == "Values (1BD, 2.5), (2.25, 3BD)"
    assert all(isinstance(e, Literal) for row in plan.rows for e in row)  # pyright: ignore


# -- statements


def test_create_table() -> None:
    (table,) = bind("CREATE TABLE IF NOT EXISTS z (id BIGINT PRIMARY KEY, n STRING NOT NULL DEFAULT 'x', "
                    "m DECIMAL(10,2), tags ARRAY<STRING>)", tables())  # fmt: skip
    assert isinstance(table, sql.CreateTable)
    assert str(table.schema) == "id BIGINT NOT NULL, n STRING NOT NULL, m DECIMAL(10,2), tags ARRAY<STRING>"
    assert (table.primary_key, table.if_not_exists) == (("id",), True)
    assert {name: str(value) for name, value in table.defaults.items()} == {"n": "'x'"}


def test_each_statement_sees_those_before_it() -> None:
    text = """
        CREATE TABLE z (id BIGINT PRIMARY KEY, n STRING NOT NULL DEFAULT 'x', m DECIMAL(10,2));
        INSERT INTO z (m, id) VALUES (2.5, 1);
        CREATE VIEW plain AS SELECT id AS k FROM z ORDER BY id;
        CREATE OR REPLACE MATERIALIZED VIEW kept (q) AS SELECT k FROM plain;
        UPDATE z SET m = m + 1 WHERE id = 1;
        DELETE FROM z WHERE id IN (SELECT q FROM kept);
        EXPLAIN SELECT * FROM kept;
        DROP VIEW IF EXISTS plain CASCADE;
        BEGIN; COMMIT; ROLLBACK"""
    _, insert, plain, kept, update, delete, explain, drop, begin, commit, rollback = bind(text, tables())
    assert isinstance(insert, sql.InsertRows)
    assert insert.plan.schema.names == ("id", "n", "m")
    assert isinstance(insert.plan, Project)
    assert [str(e) for e in insert.plan.expressions] == ["CAST(col2 AS BIGINT)", "'x'", "CAST(col1 AS DECIMAL(10,2))"]
    assert isinstance(plain, sql.CreateView)
    assert (plain.materialized, len(plain.order)) == (False, 1)
    assert isinstance(kept, sql.CreateView)
    assert (kept.materialized, kept.or_replace, kept.plan.schema.names) == (True, True, ("q",))
    assert {p.relation for p in parts(kept.plan) if isinstance(p, Scan)} == {"z"}, "a plain view is read in its place"
    assert isinstance(update, sql.UpdateRows)
    assert len(update.plan.schema) == 6, "each row as it is, and as it will be"
    assert isinstance(delete, sql.DeleteRows)
    assert delete.plan.schema.names == ("id", "n", "m")
    assert isinstance(explain, sql.Explain)
    assert {p.relation for p in parts(explain.statement.plan) if isinstance(p, Scan)} == {"kept"}  # pyright: ignore
    assert isinstance(drop, sql.Drop)
    assert (drop.kind, drop.names, drop.if_exists, drop.cascade) == ("view", ("plain",), True, True)
    assert [type(s) for s in (begin, commit, rollback)] == [sql.Begin, sql.Commit, sql.Rollback]


def test_merge() -> None:
    (merge,) = bind(
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND x > 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET b = s.a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, 1)",
        tables(),
    )
    assert isinstance(merge, sql.Merge)
    assert merge.removed.schema.types == merge.added.schema.types == merge.matches.schema.types


# -- other dialects


def _first(text: str, dialect: str) -> Expression:
    plan = plan_of(text, dialect)
    return next(p for p in parts(plan) if isinstance(p, Project)).expressions[0]


DIALECTS = [
    ("duckdb", "SELECT a // 2 FROM t", "CAST(a AS BIGINT) DIV 2L"),
    ("duckdb", "SELECT d / 3 FROM t", "CAST(d AS DOUBLE) / 3.0D"),
    ("duckdb", "SELECT e - DATE '2020-01-01' FROM t", "datediff(e, DATE '2020-01-01')"),
    ("duckdb", "SELECT date_diff('month', DATE '2020-01-01', e) FROM t",
     "year(e) * 12 + month(e) - (year(DATE '2020-01-01') * 12 + month(DATE '2020-01-01'))"),
    ("duckdb", "SELECT strpos(c, 'x') FROM t", "locate('x', c)"),
    ("duckdb", "SELECT arr[1] FROM t", "try_element_at(arr, 1)"),
    ("duckdb", "SELECT CAST(x AS INT) FROM s", "CAST(bround(x, 0) AS INTEGER)"),
    ("spark", "SELECT CAST(x AS INT) FROM s", "CAST(x AS INTEGER)"),
    ("spark", "SELECT ltrim('x', c) FROM t", "ltrim(c, 'x')"),
    ("spark", "SELECT a / b FROM t", "CAST(CAST(a AS BIGINT) AS DOUBLE) / CAST(b AS DOUBLE)"),
    ("postgres", "SELECT a / 2 FROM t", "CAST(a AS BIGINT) DIV 2L"),
    ("snowflake", "SELECT IFF(a > 1, 2, 3) FROM t", "if(a > 1, 2, 3)"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "meant"), DIALECTS)
def test_other_dialects(dialect: str, text: str, meant: str) -> None:
    assert str(_first(text, dialect)) == meant


def test_nulls_are_sorted_as_the_dialect_says() -> None:
    orders = {}
    for dialect in ("spark", "duckdb"):
        (top,) = _all(plan_of("SELECT a FROM t ORDER BY a LIMIT 1", dialect), Top)
        orders[dialect] = [way for _, way in top.order]
    assert orders == {"spark": ["asc nulls first"], "duckdb": ["asc nulls last"]}


def test_asof_joins_of_duckdb_and_snowflake() -> None:
    from everview.plan.nodes import Asof

    catalog = sql.Tables(
        {"p": tables().relations["s"], "q": tables().relations["s"]},
    )
    texts = {
        "duckdb": "SELECT p.a, q.x FROM p ASOF JOIN q ON p.a = q.a AND p.ts >= q.ts",
        "snowflake": "SELECT p.a, q.x FROM p ASOF JOIN q MATCH_CONDITION (p.ts >= q.ts) ON p.a = q.a",
    }
    found = {}
    for dialect, text in texts.items():
        (select,) = bind(text, catalog, dialect)
        (asof,) = _all(select.plan, Asof)  # pyright: ignore
        found[dialect] = (asof.keys, asof.at, asof.direction, asof.strict, asof.how)
    assert found["duckdb"] == (((0, 0),), (2, 2), "backward", False, "inner")
    assert found["snowflake"] == (((0, 0),), (2, 2), "backward", False, "left")


def test_pivot_is_filtered_aggregates() -> None:
    text = "SELECT * FROM (PIVOT (SELECT a, b, c FROM t) ON c IN ('x', 'y') USING sum(b) GROUP BY a)"
    plan = plan_of(text, "duckdb")
    assert plan.schema.names == ("a", "x", "y")
    assert [str(c.filter) for c in _all(plan, AggregateCall)] == ["c <=> 'x'", "c <=> 'y'"]
    spark = plan_of("SELECT * FROM (SELECT a, b, c FROM t) PIVOT (sum(b) FOR c IN ('x', 'y'))")
    assert spark.schema.names == ("a", "x", "y")


def test_a_chain_of_full_joins_holds_no_expression_of_all_before() -> None:
    """What USING merges is nested at most twice, so that making and keeping a chain grows with its length alone."""
    names = [f"t{at}" for at in range(30)]
    given = sql.Tables({name: Schema.parse(f"k INT, v{at} INT") for at, name in enumerate(names)})
    chain = " ".join(f"FULL JOIN {name} USING (k)" for name in names[1:])
    (select,) = bind(f"SELECT * FROM t0 {chain}", given, "spark")
    assert isinstance(select, sql.Select)
    assert max(sum(1 for _ in walk(e)) for part in parts(select.plan) for e in part.expressions) < 10


def test_whatever_is_bound_first() -> None:
    """How kinds of expressions are bound is known before the first query, in a process of its own."""
    code = "import everview as ev; assert ev.connect().sql('SELECT array(1, 2)[1]').rows() == [(2,)]"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=100)
