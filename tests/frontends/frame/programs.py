"""Bodies of jobs over TPC-H's tables, written for PySpark: one for each corner of the DataFrame API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Frames = Mapping[str, Any]


def joined_by_conditions_and_names(t: Frames) -> Any:
    c, o = t["customer"], t["orders"]
    both = c.join(o, (c.c_custkey == o.o_custkey) & (o.o_totalprice > 1000), "left")
    named = t["nation"].withColumnRenamed("n_nationkey", "c_nationkey")
    return both.join(named, ["c_nationkey"]).select(c.c_custkey, "n_name", o["o_orderkey"]).drop(c.c_custkey)


def joined_with_itself(t: Frames) -> Any:
    from pyspark.sql import functions as F

    a, b = t["nation"].alias("a"), t["nation"].alias("b")
    near = (F.col("a.n_regionkey") == F.col("b.n_regionkey")) & (F.col("a.n_nationkey") < F.col("b.n_nationkey"))
    return a.join(b, near).select(F.col("a.n_name").alias("one"), "b.n_name")


def full_join_by_name(t: Frames) -> Any:
    from pyspark.sql import functions as F

    few = t["nation"].where("n_nationkey < 5").select(F.col("n_nationkey").alias("k"), "n_name")
    more = t["nation"].where(F.col("n_nationkey") > 2).select(F.col("n_nationkey").alias("k"), "n_regionkey")
    return few.join(more, "k", "outer").orderBy("k")


def grouping_sets(t: Frames) -> Any:
    from pyspark.sql import functions as F

    sums = [F.sum("o_totalprice").alias("total"), F.grouping_id().alias("level")]
    rolled = t["orders"].rollup("o_orderstatus", F.year("o_orderdate").alias("year")).agg(*sums)
    cubed = t["orders"].cube("o_orderpriority", "o_orderstatus").agg(F.count("*").alias("n"))
    return rolled.select("o_orderstatus", "total").union(cubed.select("o_orderstatus", F.col("n").cast("decimal(9,2)")))


def pivoted(t: Frames) -> Any:
    from pyspark.sql import functions as F

    years = t["orders"].withColumn("year", F.year("o_orderdate"))
    sums = (F.count("o_orderkey").alias("n"), F.max("o_totalprice").alias("most"))
    return years.groupBy("o_orderpriority").pivot("year").agg(*sums)


def short_aggregates(t: Frames) -> Any:
    return t["lineitem"].groupBy("l_returnflag", t["lineitem"].l_linestatus).agg({"l_quantity": "sum", "*": "count"})


def windows(t: Frames) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    mine = Window.partitionBy("o_custkey").orderBy(F.desc("o_totalprice"), "o_orderkey")
    last = mine.rowsBetween(-2, Window.currentRow)
    return (
        t["orders"]
        .select(
            "o_orderkey",
            F.row_number().over(mine).alias("place"),
            F.lag("o_totalprice", 1).over(mine).alias("before"),
            F.sum("o_totalprice").over(last).alias("of three"),
            (F.col("o_totalprice") / F.sum("o_totalprice").over(Window.partitionBy("o_custkey"))).alias("share"),
        )
        .where("place <= 3")
    )


def cases_and_texts(t: Frames) -> Any:
    from pyspark.sql import functions as F

    size = F.when(F.col("p_size") < 10, "small").when(F.col("p_size").between(10, 30), "middle").otherwise("large")
    return t["part"].select(
        "p_partkey",
        size.alias("size"),
        F.upper(F.substring("p_name", 1, 4)).alias("start"),
        F.regexp_replace("p_type", "[AEIOU]", "*").alias("masked"),
        F.concat_ws("-", "p_brand", F.lpad("p_size", 4, "0")).alias("code"),
        F.split("p_name", " ")[0].alias("first"),
        F.col("p_mfgr").rlike("#[12]$").alias("one or two"),
        (F.length("p_comment") % 3 == 0) | ~F.col("p_name").contains("o"),
    )


def dates(t: Frames) -> Any:
    from pyspark.sql import functions as F

    return t["orders"].select(
        "o_orderkey",
        F.date_format("o_orderdate", "yyyy-MM").alias("month"),
        F.trunc("o_orderdate", "quarter").alias("quarter"),
        F.datediff(F.lit("1998-12-01").cast("date"), "o_orderdate").alias("days"),
        F.add_months("o_orderdate", 2).alias("later"),
        F.dayofweek("o_orderdate"),
    )


def arrays_and_structs(t: Frames) -> Any:
    from pyspark.sql import functions as F

    words = t["region"].select("r_regionkey", F.sort_array(F.split("r_comment", " ")).alias("words"))
    long = words.withColumn("long", F.filter("words", lambda w: F.length(w) > 4))
    return long.select(
        "r_regionkey",
        F.transform("long", lambda w, i: F.concat(w, i.cast("string"))).alias("numbered"),
        F.aggregate("long", F.lit(0), lambda n, w: n + F.length(w)).alias("letters"),
        F.struct(F.size("words").alias("n"), "r_regionkey").alias("s"),
    ).select("*", F.col("s.n").alias("count"), F.col("s").getField("r_regionkey").alias("again"))


def exploded(t: Frames) -> Any:
    from pyspark.sql import functions as F

    words = t["nation"].select("n_name", F.posexplode(F.split("n_comment", " ")).alias("place", "word"))
    return words.groupBy("word").agg(F.count_distinct("n_name").alias("nations"), F.min("place").alias("first"))


def sets_of_rows(t: Frames) -> Any:
    all_ = t["customer"].select("c_nationkey", "c_mktsegment")
    some = all_.where("c_mktsegment IN ('BUILDING', 'MACHINERY')")
    rest = all_.exceptAll(some.limit(0)).subtract(some)
    return rest.unionByName(some.intersect(all_).select("c_mktsegment", "c_nationkey")).distinct()


def missing_columns(t: Frames) -> Any:
    names = t["nation"].select("n_nationkey", "n_name")
    return names.unionByName(t["region"].selectExpr("r_name AS n_name", "r_regionkey"), allowMissingColumns=True)


def missing_values(t: Frames) -> Any:
    from pyspark.sql import functions as F

    c, o = t["customer"], t["orders"]
    padded = c.join(o, c.c_custkey == o.o_custkey, "left").select("c_custkey", "o_orderkey", "o_clerk", "o_totalprice")
    filled = padded.fillna({"o_clerk": "nobody"}).na.fill(0).replace({0: -1}, subset=["o_orderkey"])
    tested = filled.withColumns({"none": F.col("o_totalprice") == 0})
    return tested.dropna(subset=["o_clerk"]).toDF("a", "b", "c", "d", "e")


BODIES: Mapping[str, Callable[[Frames], Any]] = {
    body.__name__: body
    for body in (
        *(joined_by_conditions_and_names, joined_with_itself, full_join_by_name, grouping_sets, pivoted),
        *(short_aggregates, windows, cases_and_texts, dates, arrays_and_structs, exploded, sets_of_rows),
        *(missing_columns, missing_values),
    )
}
