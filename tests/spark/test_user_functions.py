"""Functions of the user in DataFrames: views call them as Spark does, on the driver and in tasks."""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.errors import DataFrameError, FunctionError
from everview.scalars.functions import user
from everview.spark import Pipeline
from everview.spark.user_functions import SparkFunction
from everview.types import STRING
from spark.frames import by_pipeline, by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# PySpark says so of every plain function with hints of types; it is one, then.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Cannot infer the eval type from type hints")]

COLUMNS = (
    "id BIGINT NOT NULL, n INT, x DOUBLE, d DECIMAL(10,2), s STRING, b BOOLEAN, day DATE, at TIMESTAMP, "
    "tags ARRAY<STRING>, m MAP<STRING, INT>, p STRUCT<a: INT, b: STRING>, raw BINARY"
)
DAY, AT = dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 10, 3, 0, 5)
FIRST = [
    (1, 1, 1.5, Decimal("10.50"), "ann", True, DAY, AT, ["a", None], {"k": 1}, (1, "x"), b"ab"),
    (2, None, None, None, None, None, None, None, None, None, None, None),
    (3, 300, -2.0, Decimal("-0.05"), "bob", False, DAY, AT, [], {}, (None, None), b""),
    (4, 1, 0.25, Decimal("1.00"), "eve", True, DAY, AT, ["z"], {"k": None}, (3, "y"), b"c"),
]
SECOND = [(2, 7, 7.0, Decimal("2.00"), "cy", True, DAY, AT, ["q"], {"j": 5}, (2, "z"), b"d"), (5, *FIRST[0][1:])]


def opened(spark: SparkSession, path: Path, **options: Any) -> Pipeline:
    p = Pipeline(spark, path, shards=2, **{"place": "driver", **options})
    p.source("t", spark.createDataFrame(FIRST, COLUMNS), key="id", changes="upsert")
    return p


def scalars(t: DataFrame) -> dict[str, DataFrame]:
    """Functions of rows, by pickles and by Arrow, and of pandas and Arrow columns."""
    from pyspark.sql import functions as F

    Pair = namedtuple("Pair", "a b")
    views: dict[str, DataFrame] = {}
    for arrow in (False, True):

        def udf(type_: str, call: Callable[..., Any], arrow: bool = arrow) -> Callable[..., Any]:
            return F.udf(call, type_, useArrow=arrow)

        views[f"rows{arrow}"] = t.select(
            "id",
            udf("string", lambda *row: repr([*row]))("n", "x", "d", "s", "b", "day", "at", "tags", "m", "raw").alias(
                "r"
            ),
            udf("string", lambda p: None if p is None else f"{p.a} {p[1]}")("p").alias("p"),
            udf("int", lambda n, arrow=arrow: None if n is None else n * (5 if arrow else 10**9))("n").alias("wide"),
            udf("double", lambda x: x)("x").alias("x"),
            udf("decimal(6,1)", lambda d: d)("d").alias("d"),
            udf("date", lambda d: None if d is None else d + dt.timedelta(days=1))("day").alias("day"),
            udf("timestamp", lambda d: None if d is None else d + dt.timedelta(hours=1))("at").alias("at"),
            udf("array<string>", lambda s: None if s is None else [s, None])("s").alias("s"),
            udf("map<string,int>", lambda m: m)("m").alias("m").cast("string"),
            udf("struct<a: int, b: string>", lambda n, s: Pair(a=n, b=s))("n", "s").alias("both"),
            udf("binary", lambda raw: raw)("raw").alias("raw"),
            udf("boolean", lambda x: None if x is None else x > 0)("x").alias("up"),
            udf("int", lambda: 7)().alias("seven"),
            udf("int", lambda a, b=0: (a or 0) - (b or 0))("n", b=F.col("id").cast("int")).alias("named"),
        )
    views["mistaken"] = t.select(
        "id",
        F.udf(lambda n: n, "double", useArrow=False)("n").alias("whole"),
        F.udf(lambda x: x, "int", useArrow=False)("x").alias("not_whole"),
        F.udf(lambda x, b, n: x if n else b, "string", useArrow=False)("x", "b", "n").alias("text"),
        F.udf(lambda n: n, "boolean", useArrow=False)("n").alias("no_truth"),
        F.udf(lambda n: None if n is None else n * 2**30, "smallint", useArrow=False)("n").alias("cut_off"),
        F.udf(lambda x: x, "int", useArrow=True)("id").alias("narrow"),
    )

    @F.pandas_udf("double")
    def twice(x: pd.Series) -> pd.Series:
        return x * 2

    @F.pandas_udf("a long, day date")
    def parts(n: pd.Series, day: pd.Series) -> pd.DataFrame:
        return pd.DataFrame({"day": day, "a": n + 1})

    @F.pandas_udf("string")
    def each(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        for s, n in batches:
            yield s.str.upper() + n.astype("Int64").astype(str)

    @F.pandas_udf("timestamp")
    def later(at: pd.Series) -> pd.Series:
        return at + pd.Timedelta(hours=1)

    @F.pandas_udf("string")
    def of_struct(p: pd.DataFrame) -> pd.Series:
        return p["b"]

    @F.arrow_udf("long")
    def length(s: pa.Array) -> pa.Array:
        return pc.utf8_length(s)

    @F.arrow_udf("string")
    def batched(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for tags in batches:
            yield pc.binary_join(pc.list_slice(tags, 0, 1), "-")

    views["pandas"] = t.select(
        "id", twice("x"), twice("n"), parts("n", "day"), each("s", "n"), later("at"), of_struct("p")
    )
    views["arrow"] = t.select(
        "id", length("s").alias("l"), batched("tags").alias("b"), length(F.lit("four")).alias("f")
    )
    views["nested"] = t.filter(length("s") > 2).select("id", twice(twice("x")).alias("four")).where("four > 0")
    t.sparkSession.udf.register("shout", lambda s: None if s is None else s.upper() + "!")
    known = t.sparkSession.sparkContext.broadcast({"ann": "A", "bob": "B"})
    looked_up = F.udf(lambda s: known.value.get(s, "?"), "string")
    views["by_name"] = t.select("id", F.expr("shout(s) AS loud"), looked_up("s").alias("known"))
    return views


def aggregates(t: DataFrame) -> dict[str, DataFrame]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    @F.pandas_udf("double")
    def spread(x: pd.Series) -> float:
        return float(x.max() - x.min()) + x.isna().sum() / 10

    @F.pandas_udf("double")
    def weighted(x: pd.Series, n: pd.Series) -> float:
        return float((x * n).sum())

    @F.arrow_udf("long")
    def nothing(s: pa.Array) -> int:
        return s.null_count

    by_n = Window.partitionBy("n")
    return {
        "over_all": t.select("id", spread("x").over(by_n).alias("s"), weighted("x", "n").over(by_n).alias("w")),
        "over_some": t.select("id", spread("x").over(Window.orderBy("id").rowsBetween(-1, 1)).alias("s")),
        "spreads": t.groupBy("n").agg(spread("x").alias("s"), weighted("x", "n").alias("w")),
        "arrow": t.groupBy("b").agg(nothing("s").alias("n")),
        "of_all": t.agg(spread("x").alias("s")),
    }


@pytest.mark.parametrize(("make", "place"), [(scalars, "driver"), (aggregates, "driver"), (scalars, "cluster")])
def test_views_are_what_spark_collects(
    spark: SparkSession, tmp_path: Path, make: Callable[[Any], dict[str, DataFrame]], place: str
) -> None:
    with opened(spark, tmp_path, place=place) as p:
        frames = make(p.frame("t"))
        for name, frame in frames.items():
            p.define(name, frame)
        for rows in (FIRST, SECOND):
            p.refresh(t=spark.createDataFrame(rows, COLUMNS))
            told, computed = by_pipeline(p, frames), by_spark(frames, {"t": p.table("t")})
            for name in frames:
                assert told[name] == computed[name], name
        if make is aggregates:
            assert p.verify().raise_if_different()


def test_a_changed_body_is_a_changed_definition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F

    def again(rates: dict[str, float]) -> Pipeline:
        """The pipeline of another process, in which the function is known by its name alone."""
        monkeypatch.setattr(user, "_USERS", {})

        @F.udf("double")
        def net(x: float | None) -> float | None:
            return None if x is None else x * rates["net"]

        p = opened(spark, tmp_path)
        t = p.frame("t")
        p.define("nets", t.select("id", net("x").alias("net")))
        p.define("same", t.groupBy("b").count())
        return p

    with again({"net": 2.0}) as p:
        p.refresh()
        assert p.view("nets").agg({"net": "sum"}).first() == (-0.5,)
    with again({"net": 2.0}) as p:
        assert not p.plan_change()
    with again({"net": 3.0}) as p:
        planned = p.plan_change()
        assert planned.views["same"] == "kept"
        assert planned.views["nets"] != "kept"
        assert planned.rows_read == 4
        assert p.view("nets").agg({"net": "sum"}).first() == (-0.75,)
        assert p.verify("nets").raise_if_different()


def test_an_error_in_a_function_leaves_all_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    @F.udf("double")
    def inverse(x: float | None) -> float | None:
        return None if x is None else 1 / x

    with opened(spark, tmp_path) as p:
        p.define("v", p.frame("t").select("id", inverse("x").alias("i")))
        p.refresh()
        zero = [(9, None, 0.0, *FIRST[1][3:])]
        with pytest.raises(FunctionError, match="function inverse raised ZeroDivisionError"):
            p.refresh(t=spark.createDataFrame(zero, COLUMNS))
        assert (p.epoch, p.view("v").count()) == (1, 4)


def refused(t: DataFrame) -> dict[str, tuple[Callable[[], DataFrame], str]]:
    from pyspark.sql import functions as F

    @F.udtf(returnType="w string")
    class Words:
        def eval(self, s: str) -> Iterator[tuple[str]]:
            yield (s,)

    drawn = F.udf(lambda x: x, "double").asNondeterministic()
    t.sparkSession.udtf.register("words", Words)
    return {
        "chance": (lambda: t.select(drawn("x")), r"declared non-deterministic(.|\n)*store the value"),
        "table": (lambda: t.lateralJoin(Words(F.col("s").outer())), r"PythonUDTF(.|\n)*F\.inline"),
        "groups": (
            lambda: t.groupBy("n").applyInPandas(lambda rows: rows, t.schema),
            r"the node FlatMapGroupsInPandas(.|\n)*grouped aggregate",
        ),
        "variant": (lambda: t.select(F.udf(str)(F.parse_json("s"))), r"VARIANT, which functions"),
    }


def test_what_is_refused_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with opened(spark, tmp_path) as p:
        for name, (make, said) in refused(p.frame("t")).items():
            with pytest.raises(DataFrameError, match=said):
                p.define(name, make())


def test_a_row_has_one_value_whichever_rows_are_beside_it() -> None:
    """A Series of whole numbers is one of floats if there is a NULL; rows with NULLs are not put beside others."""
    told = SparkFunction(200, STRING, ("", ""), "UTC", True, "told", lambda n, b: n.astype(str) + b.astype(str))
    n, b = pa.array([1, None, 3, None]), pa.array([True, None, None, False])
    alone = [told(n.slice(place, 1), b.slice(place, 1))[0].as_py() for place in range(4)]
    assert told(n, b).to_pylist() == alone
