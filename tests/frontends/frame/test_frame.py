"""Frames of a database: types as they are built, mistakes where they are made, views that outlast the process."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everview as ev
from everview import Window
from everview import functions as F
from everview.errors import EverviewError, QueryError, UnknownName
from everview.frontends.frame.steps import from_text, to_text


@pytest.fixture(scope="module")
def db() -> ev.Database:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, s STRING, x DOUBLE, xs ARRAY<INT>, p STRUCT<a: INT>)")
    db.sql("CREATE TABLE u (id BIGINT PRIMARY KEY, name STRING)")
    db.sql(
        "INSERT INTO t VALUES (1, 1, 'a', 0.5, array(3, 1), named_struct('a', 7)), "
        "(2, 1, 'b', double('NaN'), array(), NULL), (3, 2, NULL, NULL, NULL, NULL)"
    )
    db.sql("INSERT INTO u VALUES (1, 'one'), (2, 'two')")
    return db


MISTAKES: list[tuple[Callable[[Any, Any], Any], str, str]] = [
    (lambda t, u: t.select("idd"), 'column "idd" does not exist', 'did you mean "id"?'),
    (lambda t, u: t.naem, 'column "naem" does not exist', ""),
    (lambda t, u: t.join(u, t.id == u.id).select("id"), 'column "id" is ambiguous', "write t.id or u.id"),
    (lambda t, u: t.join(t, t.id == t.k), "both sides of a join", 'df.alias("a")'),
    (lambda t, u: t.select(u.name), 'column "name" of another frame is not there', "select it where it comes from"),
    (lambda t, u: t.filter(F.col("xs") + 1 > 2), "add is not defined on ARRAY<INTEGER> and INTEGER", ""),
    (lambda t, u: t.filter("k"), "BOOLEAN", ""),
    (lambda t, u: t.select("k", F.sum("id")), 'column "k" is neither grouped nor aggregated', "add k to GROUP BY"),
    (lambda t, u: t.selectExpr("id, k"), "several expressions where one is expected", "an argument of its own"),
    (lambda t, u: t.selectExpr("id FROM u"), "an expression goes on as a query", "an argument of its own"),
    (lambda t, u: t.join(u, "k"), 'column "k" does not exist', "available: id, name"),
    (lambda t, u: t.join(u, "id", "sideways"), '"sideways" is no kind of join', "left_semi"),
    (lambda t, u: t.union(u), "a set operation of 6 and 2 columns", ""),
    (lambda t, u: t.unionByName(u), "is on one side only", "allowMissingColumns=True"),
    (lambda t, u: t.where(t.id > 1 and t.k > 1), "a column is neither true nor false", "write & for and"),
    (lambda t, u: F.uper("s"), "there is no function uper", 'did you mean "upper"?'),
    (lambda t, u: F.rand(), "there is no function rand", "store the value in a table"),
    (lambda t, u: F.round("x", digits=2), "no parameter is called digits", "round(col, scale)"),
    (lambda t, u: t.withColumn("n", 1), "n is 1, no column", "F.lit"),
    (lambda t, u: t.limit(-1), "limit of -1", ""),
    (lambda t, u: t.fillna([]), "fills no column", ""),
    (lambda t, u: t.toDF("a"), "1 names for 6 columns", "they are id"),
    (lambda t, u: t.drop(*t.columns), "a frame without columns", ""),
    (lambda t, u: t.groupBy("k").agg(), "agg of nothing", ""),
    (lambda t, u: F.col("s").over("k"), "no window", "Window.partitionBy"),
    (lambda t, u: F.lit(object()), "is no value of a column", ""),
    (lambda t, u: t[99], "no column 99", "0 to 5"),
    (lambda t, u: t[None], "None is no column", 'frame["name"]'),
    (lambda t, u: t.filter(3), "3 is no condition", "F.col"),
    (lambda t, u: t.withColumns([1]), "withColumns: colsMap is [1], not", ""),
    (lambda t, u: t.withColumnsRenamed("x"), "colsMap is 'x', not a dict", ""),
    (lambda t, u: t.selectExpr(3), "selectExpr: expr is 3, not", ""),
    (lambda t, u: t.dropDuplicates([3]), "dropDuplicates: subset holds 3, not text", ""),
    (lambda t, u: t.dropna(subset=3), "dropna: subset is 3, not", ""),
    (lambda t, u: t.na.drop(subset=3), "drop: subset is 3, not", ""),
    (lambda t, u: t.transform([1]), "transform: func is [1], not a function", ""),
    (lambda t, u: t.groupBy("k").min(3), "min: cols is 3, not text", ""),
    (lambda t, u: t.unpivot(3, "k", "a", "b"), "unpivot: ids is 3, not", ""),
]


@pytest.mark.parametrize(("mistake", "message", "hint"), MISTAKES, ids=[message for _, message, _ in MISTAKES])
def test_a_mistake_is_named_where_it_is_made(db: ev.Database, mistake: Any, message: str, hint: str) -> None:
    with pytest.raises(EverviewError) as raised:
        mistake(db.frame("t"), db.frame("u"))
    assert message in str(raised.value)
    assert hint in (raised.value.hint or "")


def test_lists_and_numbers_may_be_of_other_kinds(db: ev.Database) -> None:
    frame = db.frame("t").select("id", "k")
    assert frame.orderBy("k", "id", ascending=[0, 1]).collect() == frame.orderBy(F.desc("k"), "id").collect()
    assert frame.orderBy("id", ascending=0).limit(np.int64(1)).count() == 1
    for names in (np.array(["k"]), ("k",), {"k"}):
        assert frame.dropDuplicates(names).count() == frame.select("k").distinct().count()
        assert frame.dropna(subset=names).count() == frame.filter("k IS NOT NULL").count()
        assert frame.selectExpr(names).columns == ["k"]


def test_columns_have_types_as_they_are_built(db: ev.Database) -> None:
    half, first = (F.col("k") / 2).alias("h"), F.col("xs")[0]
    made = db.frame("t").select("id", half, F.col("p.a"), first, F.max("s").over(Window.partitionBy("k")).alias("m"))
    types = [("id", "bigint"), ("h", "double"), ("a", "int"), ("xs[0]", "int"), ("m", "string")]
    assert made.dtypes == types
    assert repr(db.frame("u")) == "DataFrame[id: bigint, name: string]"
    assert str(db.frame("u").schema) == "id BIGINT NOT NULL, name STRING"


def test_rows_come_in_order_and_under_their_names(db: ev.Database, capsys: pytest.CaptureFixture[str]) -> None:
    t = db.frame("t")
    by_name = t.orderBy(F.desc("s")).select((t.id * 10).alias("ten"), "k")
    assert [row.ten for row in by_name.collect()] == [20, 10, 30]
    assert by_name.limit(1).first() == (20, 1)
    assert by_name.where("k = 2").first().asDict() == {"ten": 30, "k": 2}  # type: ignore[union-attr]
    assert t.orderBy("k", "id", ascending=[False, False]).first()["id"] == 3  # type: ignore[index]
    assert (t.count(), t.where("id > 9").isEmpty(), len(t.take(2))) == (3, True, 2)
    by_name.show()
    assert capsys.readouterr().out.split() == ["ten", "k", "20", "1", "10", "1", "30", "2"]
    assert ">20</td>" in by_name._repr_html_()
    assert by_name.to_arrow().column_names == ["ten", "k"]
    assert by_name.toPandas()["ten"].tolist() == [20, 10, 30]


def test_bits_and_numbers_that_are_none(db: ev.Database) -> None:
    t = db.frame("t")
    bits = (F.lit(12).bitwiseAND(10), F.lit(12).bitwiseOR(10), F.lit(12).bitwiseXOR(10))
    assert list(t.select(*(made.alias(f"c{n}") for n, made in enumerate(bits))).first() or ()) == [8, 14, 6]
    assert [row.id for row in t.where(t.x.isNaN()).collect()] == [2]


def test_a_schema_is_printed_as_a_tree(db: ev.Database, capsys: pytest.CaptureFixture[str]) -> None:
    db.frame("u").printSchema()
    assert capsys.readouterr().out == "root\n |-- id: bigint (nullable = false)\n |-- name: string (nullable = true)\n"


def test_literals_are_what_they_were_in_python(db: ev.Database) -> None:
    values = [
        *(None, True, 3, -(2**40), 1.5, float("inf"), Decimal("-1.20"), "it's \\ `#1`\n", b"\x00\xff"),
        *(dt.date(2026, 1, 2), dt.time(1, 2, 3), dt.timedelta(seconds=-1.5), [1, 2]),
        dt.datetime(2026, 1, 2, 3, 4, 5, 6),
    ]
    (row,) = db.frame("u").limit(1).select(*(F.lit(v).alias(f"c{n}") for n, v in enumerate(values))).collect()
    assert list(row) == values


def test_frames_that_come_from_one_are_told_apart_by_their_aliases(db: ev.Database) -> None:
    t = db.frame("t")
    fewer = t.where("id < 3")
    assert t.join(fewer, t.id == fewer.k).count() == 2  # each side by its own frame
    a, b = t.alias("a"), db.frame("t").alias("b")
    pairs = a.join(b, F.col("a.id") < F.col("b.id")).select("a.id", "b.*")
    assert pairs.count() == 3
    one, other = db.frame("t"), db.frame("t")
    assert one.join(other, one.id == other.k).select(one.id, other.id).count() == 3


def test_a_view_of_a_frame_follows_and_is_there_again(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "s") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, s STRING); INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b')")
        t = db.frame("t")
        sums = t.groupBy("k").agg(F.count("*").alias("n"), F.max(F.lit("`t#0`")).alias("m")).where(F.col("n") > 1)
        view = db.define("sums", sums)
        ranked = t.select("*", F.row_number().over(Window.partitionBy("k").orderBy("s")).alias("place"))
        ranked.join(sums, "k").orderBy(F.desc("place")).materialize("ranked")
        assert view.rows() == [(1, 2, "`t#0`")]
        assert "table t: (id=2" in str(db.why("sums", view.rows()[0]))
        with pytest.raises(EverviewError):
            db.define("sums", sums)
    with ev.connect(tmp_path / "s") as db:
        out = db.apply({"t": [((3, 1, "c"), 1)]})
        assert sorted(out["sums"]) == [((1, 2, "`t#0`"), -1), ((1, 3, "`t#0`"), 1)]
        assert [row[-3] for row in db.view("ranked").rows()] == [3, 2, 1]
        assert db.verify()
        db.define("sums", db.frame("t").groupBy("k").count().withColumn("m", F.lit("x")), replace=True)
        assert db.view("sums").rows() == [(1, 3, "x")]
        db.define("more", db.frame("ranked").select("k"))
        with pytest.raises(EverviewError, match="more reads it"):
            db.drop("ranked")


def test_a_stored_frame_is_the_same_text_whenever_it_was_made(db: ev.Database) -> None:
    def made() -> str:
        t = db.frame("t")
        return to_text(t.where(t.k > 1).join(db.frame("u"), "id").select(t.id, F.lit("`t#1`")).last)

    text = made()
    assert made() == text == to_text(from_text(text))
    with pytest.raises(QueryError, match="another form"):
        from_text('{"version": 9, "steps": []}')


def test_a_frame_sees_the_definitions_of_the_moment(db: ev.Database) -> None:
    db.sql("CREATE TABLE w (a INT)")
    frame = db.frame("w").select("*")
    db.sql("INSERT INTO w VALUES (1)")
    assert frame.collect() == [(1,)]
    db.sql("ALTER TABLE w ADD COLUMN b INT")
    assert frame.columns == ["a", "b"]
    db.sql("DROP TABLE w")
    with pytest.raises(UnknownName):
        frame.collect()
