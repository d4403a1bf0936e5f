"""DataFrames as definitions: views that stay what Spark collects, and what is said of those that cannot be read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from documented import run_page
from everview.errors import DataFrameError, EverviewError, PipelineError
from everview.spark import Pipeline
from spark.frames import by_pipeline, by_spark, interpreted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

TRANSFER = (
    "id BIGINT NOT NULL, src BIGINT, amount DECIMAL(10,2), at TIMESTAMP, tags ARRAY<STRING>, name STRING, x DOUBLE"
)
FIRST = [
    (1, 1, Decimal("10.50"), dt.datetime(2024, 1, 1, 10, 3), ["a", "b"], "ann", 1.5),
    (2, 1, Decimal("3.00"), dt.datetime(2024, 1, 1, 10, 8), [], "bob", -2.0),
    (3, 2, Decimal("7.25"), None, None, None, None),
    (4, None, None, dt.datetime(2024, 2, 1), ["c", None], "Dan", 0.0),
    (5, 3, Decimal("7.25"), dt.datetime(2024, 1, 3), ["a"], "eve", 2.5),
]
SECOND = [
    (2, 2, Decimal("99.00"), dt.datetime(2024, 1, 1, 10, 8), ["z"], "bob", 8.0),
    (6, 3, Decimal("1.00"), dt.datetime(2024, 5, 1), ["q", "a"], "fay", 7.0),
    (1, 9, Decimal("0.10"), dt.datetime(2024, 1, 1, 10, 4), None, "ann", None),
]
ACCOUNT = [(1, "FR"), (2, "DE"), (9, "FR"), (7, None)]
Frames = dict[str, "DataFrame"]


def opened(spark: SparkSession, path: Path, **options: Any) -> Pipeline:
    p = Pipeline(spark, path, shards=2, **{"place": "driver", **options})
    p.source("transfer", spark.createDataFrame(FIRST, TRANSFER), key="id", changes="upsert")
    accounts = spark.createDataFrame(ACCOUNT, "id BIGINT NOT NULL, country STRING")
    p.source("account", accounts, key="id", changes="upsert")
    return p


def joins(t: DataFrame, a: DataFrame, spark: SparkSession) -> Frames:
    from pyspark.sql import functions as F

    words = spark.createDataFrame([(1, "one"), (2, "two")], "k INT, w STRING")
    return {
        "exposure": t.join(a, t.src == a.id).groupBy("country").agg(F.sum("amount").alias("total")),
        "left": t.join(a, t.src == a.id, "left").select(t.id, "country", (F.col("amount") * 2).alias("d")),
        "full": t.join(a, (t.src == a.id) & (t.amount > 5), "full").select(t.id, a.id.alias("other")),
        "by_range": t.join(a, t.src < a.id, "right").select(t.id, a.id.alias("other")),
        "semi": t.join(a, t.src == a.id, "left_semi").drop("tags"),
        "anti": t.join(a, t.src == a.id, "left_anti").select("id"),
        "using": t.select("id", "name").join(a, "id", "outer"),
        "itself": t.alias("l").join(t.alias("r"), F.col("l.src") == F.col("r.src")).select("l.id", "r.name"),
        "crossed": t.select("id").crossJoin(a.select("country")),
        "constants": t.join(words, F.col("src") == F.col("k")).select("id", "w"),
        "numbers": spark.range(3).join(t, "id", "left").select("id", "name"),
        "both": t.select("id").union(a.select("id")),
        "by_name": t.select("id", "name").unionByName(a, allowMissingColumns=True),
        "shared": t.select("id").intersect(a.select("id")),
        "without": t.select("src").exceptAll(a.select("id")),
        "different": t.select("src").distinct(),
    }


def groups(t: DataFrame, a: DataFrame, spark: SparkSession) -> Frames:
    from pyspark.sql import Window as W
    from pyspark.sql import functions as F

    by_src = W.partitionBy("src")
    sums = [F.count("*").alias("n"), F.count("name").alias("named"), F.avg("amount").alias("mean")]
    more = [F.stddev("x").alias("sd"), F.count_distinct("name").alias("names"), F.max("at").alias("last")]
    kept = [F.expr("sum(amount) FILTER (WHERE id > 1)").alias("later"), F.corr("id", "x").alias("r")]
    return {
        "groups": t.groupBy("src").agg(*sums, *more, *kept).filter(F.col("n") > 0),
        "of_all": t.agg(F.sum("amount"), F.min("name"), F.percentile_approx("id", [0.5, 0.9])),
        "of_a_sum": t.groupBy((F.col("id") % 2).alias("odd")).agg((F.sum("id") + F.max("id") * 2).alias("s")),
        "rolled": t.rollup("src", "name").agg(F.sum("amount").alias("s"), F.grouping_id().alias("g")),
        "cube": t.cube("src", "name").agg(F.count("*").alias("n"), F.grouping("src").alias("g")),
        "pivoted": t.groupBy("src").pivot("name", ["ann", "bob"]).agg(F.sum("amount")),
        "pivoted_twice": t.groupBy("src").pivot("name", ["ann"]).agg(F.sum("x").alias("a"), F.max("id").alias("b")),
        "unpivoted": t.select("id", "src", (F.col("id") * 2).alias("z")).unpivot("id", ["src", "z"], "k", "v"),
        "sliding": t.groupBy(F.window("at", "10 minutes", "5 minutes")).agg(F.count("*").alias("n")),
        "ranked": t.select(
            "id", F.rank().over(by_src.orderBy("amount")).alias("r"), F.sum("id").over(by_src).alias("s")
        ),
        "moving": t.select("id", F.sum("amount").over(by_src.orderBy("id").rowsBetween(-1, 0)).alias("s")),
        "near": t.select("id", F.avg("x").over(W.orderBy("id").rangeBetween(-2, 0)).alias("m")),
        "largest": t.orderBy(F.desc("amount"), "id").limit(2).drop("tags"),
        "next": t.orderBy("id").select((F.col("id") * 2).alias("twice")).offset(1).limit(2),
    }


def aggregates_over_windows(t: DataFrame, a: DataFrame, spark: SparkSession) -> Frames:
    from pyspark.sql import Window as W
    from pyspark.sql import functions as F

    by_src, up_to_now = W.partitionBy("src"), W.partitionBy("src").orderBy("id")
    moving = W.orderBy("id").rowsBetween(-2, 1)
    lists = [F.sort_array(F.collect_list("name").over(up_to_now)), F.sort_array(F.collect_set("src").over(moving))]
    pairs = [F.corr("id", "x").over(moving), F.covar_pop("id", "x").over(by_src), F.covar_samp("id", "x").over(moving)]
    shares = [F.percentile("x", 0.25), F.percentile_approx("id", [0.5, 0.9]), F.percentile_approx("amount", 0.5)]
    keyed = [F.max_by("name", "id"), F.expr("max_by(id, x, 2)"), F.expr("min_by(name, id, 3)")]
    return {
        "lists": t.select("id", *lists),
        "pairs": t.select("id", *pairs),
        "shares": t.select("id", *(share.over(window) for share in shares for window in (by_src, moving))),
        "keyed": t.select("id", *(key.over(window) for key in keyed for window in (up_to_now, moving))),
        "shaped": t.select(
            "id", F.skewness("x").over(moving), F.kurtosis("x").over(by_src), F.mode("src").over(by_src)
        ),
        "counted": t.select("id", F.count_if(F.col("x") > 0).over(moving), F.bool_or(F.col("x") > 2).over(up_to_now)),
        "middles": t.select("id", F.median("amount").over(by_src)),
        "keyed_groups": t.groupBy("src").agg(F.expr("max_by(name, id, 2)"), F.expr("min_by(id, amount, 1)")),
    }


def values(t: DataFrame, a: DataFrame, spark: SparkSession) -> Frames:
    from pyspark.sql import functions as F

    amount, s = F.col("amount"), F.struct("src", "name").alias("s")
    size = F.when(amount > 5, "big").when(amount.isNull(), "none").otherwise("small")
    return {
        "filtered": t.filter("amount > 5 AND name IS NOT NULL").select(F.upper("name"), F.year("at"), F.hour("at")),
        "cases": t.select("id", size, F.col("src").isin(1, 2), F.coalesce("src", F.lit(0)), amount.cast("int")),
        "moments": t.select("id", F.date_add(F.to_date("at"), 3), F.col("at") + F.expr("INTERVAL 2 HOURS")),
        "tried": t.select("id", F.col("name").try_cast("int"), F.try_divide("id", F.col("src") - 1)),
        "filled": t.select("id", "src", "x").fillna(0).dropna(),
        "exploded": t.select("id", F.explode("tags").alias("tag")),
        "placed": t.select("id", F.posexplode_outer("tags").alias("place", "tag")),
        "mapped": t.select("id", F.transform("tags", lambda x: F.concat(x, F.lit("!"))), F.size("tags")),
        "sifted": t.select("id", F.filter("tags", lambda x, i: (i > 0) & x.isNotNull()), F.array_sort("tags")),
        "folded": t.select("id", F.aggregate("tags", F.lit(0), lambda n, x: n + F.coalesce(F.length(x), F.lit(1)))),
        "structs": t.select("id", s).select("id", "s.name", F.col("s").withField("z", F.col("id") + 1)),
        "texts": t.select("id", F.lpad("name", 5, "*"), F.col("name").like("%n"), F.regexp_replace("name", "a", "o")),
    }


def queries(t: DataFrame, a: DataFrame, spark: SparkSession) -> Frames:
    larger = "t.amount > (SELECT avg(amount) FROM {t})"
    counts = "x AS (SELECT src, count(*) AS n FROM {t} GROUP BY src), y AS (SELECT * FROM x WHERE n > 1)"
    lateral = "LATERAL (SELECT t.src + a.id AS z FROM {a} AS a WHERE a.id > t.id) AS q"
    texts = {
        "known": "SELECT t.id FROM {t} AS t WHERE EXISTS (SELECT 1 FROM {a} AS a WHERE a.id = t.src) AND " + larger,
        "unknown": "SELECT id FROM {t} WHERE src NOT IN (SELECT id FROM {a})",
        "named": f"WITH {counts} SELECT x.src, y.n FROM x LEFT JOIN y ON x.src = y.src",
        "beside": "SELECT t.id, q.z FROM {t} AS t, " + lateral,
        "one_of": "SELECT t.id, (SELECT max(a.country) FROM {a} AS a WHERE a.id = t.src) AS c FROM {t} AS t",
    }
    return {name: spark.sql(text, t=t, a=a) for name, text in texts.items()}


@pytest.mark.parametrize("make", [joins, groups, aggregates_over_windows, values, queries])
def test_views_are_what_spark_collects(spark: SparkSession, tmp_path: Path, make: Callable[..., Frames]) -> None:
    with opened(spark, tmp_path) as p:
        frames = make(p.frame("transfer"), p.frame("account"), spark)
        for name, frame in frames.items():
            p.define(name, frame)
        p.refresh()
        for rows in (SECOND, None):
            relations = {name: p.table(name) for name in ("transfer", "account")}
            assert by_pipeline(p, frames) == by_spark(frames, relations)
            if rows is not None:
                p.refresh(transfer=spark.createDataFrame(rows, TRANSFER))


def define(p: Pipeline) -> None:
    from pyspark.sql import functions as F

    t, a = p.frame("transfer"), p.frame("account")
    p.define("exposure", t.join(a, t.src == a.id).groupBy("country").agg(F.sum("amount").alias("total")))
    p.sql("CREATE MATERIALIZED VIEW known AS SELECT * FROM exposure WHERE country IS NOT NULL")

    @p.materialized_view
    def largest() -> DataFrame:
        return p.frame("known").orderBy(F.desc("total")).limit(1)


def test_views_of_views_outlive_the_process(spark: SparkSession, tmp_path: Path) -> None:
    with opened(spark, tmp_path, place="cluster") as p:
        define(p)
        p.refresh()
        assert p.verify().raise_if_different()
    with opened(spark, tmp_path) as p:
        define(p)
        assert not p.plan_change()
        p.refresh(transfer=spark.createDataFrame(SECOND, TRANSFER))
        assert p.verify("largest").raise_if_different()
        assert [tuple(row) for row in p.view("largest").collect()] == [("DE", Decimal("106.25"))]


def test_a_view_is_replaced_with_those_that_read_it(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    with opened(spark, tmp_path) as p:
        define(p)
        p.refresh()
        t, a = p.frame("transfer"), p.frame("account")
        doubled = t.join(a, t.src == a.id).groupBy("country").agg((F.sum("amount") * 0 + 7).cast("decimal(20,2)"))
        with pytest.raises(PipelineError, match="there is a view or source exposure already"):
            p.define("exposure", doubled)
        p.define("exposure", doubled.toDF("country", "total"), replace=True)
        assert [tuple(row) for row in p.view("largest").collect()] == [("DE", Decimal(7))]
        assert p.verify().raise_if_different()
        with pytest.raises(PipelineError, match="cannot have other columns: largest reads it"):
            p.define("exposure", t.join(a, t.src == a.id).select("country"), replace=True)


def test_rows_of_the_session_zone(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with opened(spark, tmp_path) as p:
            t = p.frame("transfer")
            local = t.select(
                "id", F.hour("at"), F.to_date("at"), F.date_trunc("month", "at"), F.col("at").cast("string")
            )
            p.define("local", local)
            p.refresh()
            assert by_pipeline(p, ["local"]) == by_spark({"local": local}, {"transfer": p.table("transfer")})
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


REFUSED: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "sample": (lambda t, F, spark: t.sample(0.1), r"the node Sample(.|\n)*filter by a hash"),
    "rand": (
        lambda t, F, spark: t.select(t.x + F.rand()),
        r"Rand is different(.|\n)*called from .*test_dataframes\.py:\d+",
    ),
    "sketch": (
        lambda t, F, spark: t.agg(F.hll_sketch_agg("id")),
        r"HllSketchAgg cannot(.|\n)*not Spark's(.|\n)*exact here",
    ),
    "path": (lambda t, F, spark: t.crossJoin(spark.table("elsewhere")), r"the node (.|\n)*p\.source"),
    "python": (
        lambda t, F, spark: t.mapInPandas(lambda rows: rows, t.schema),
        r"the node MapInPandas(.|\n)*F\.pandas_udf",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path, case: str) -> None:
    from pyspark.sql import functions as F

    make, said = REFUSED[case]
    spark.range(1).write.mode("overwrite").parquet(str(tmp_path / "elsewhere"))
    spark.read.parquet(str(tmp_path / "elsewhere")).createOrReplaceTempView("elsewhere")
    with opened(spark, tmp_path / "state") as p, pytest.raises(DataFrameError, match=said):
        p.define("v", make(p.frame("transfer"), F, spark))


def test_what_is_no_definition(spark: SparkSession, tmp_path: Path) -> None:
    with opened(spark, tmp_path) as p:
        t: Any = p.frame("transfer")
        with pytest.raises(Exception, match="stands for rows in definitions and has none"):
            t.collect()
        with pytest.raises(EverviewError, match='"transfers" does not exist'):
            p.frame("transfers")
        with pytest.raises(PipelineError, match="no DataFrame that can be read"):
            p.define("v", 7)  # pyright: ignore[reportArgumentType]
        spark.conf.set("spark.sql.ansi.enabled", "false")
        try:
            with pytest.raises(DataFrameError, match="without ANSI mode"):
                p.define("v", t.select("id"))
        finally:
            spark.conf.set("spark.sql.ansi.enabled", "true")


def test_the_guide(spark: SparkSession, tmp_path: Path) -> None:
    with interpreted(spark):
        run_page("how-to/dataframes.md", spark=spark, checkpoint=tmp_path / "state", out=tmp_path / "report")
