"""The 22 queries of TPC-H as programs over DataFrames, as a nightly job would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Tables = Mapping[str, DataFrame]
    Program = Callable[[Tables], DataFrame]


def _price() -> object:
    from pyspark.sql import functions as F

    return F.col("l_extendedprice") * (1 - F.col("l_discount"))


def q1(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    price = _price()
    return (
        t["lineitem"]
        .filter(F.col("l_shipdate") <= F.lit("1998-09-02").cast("date"))
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            F.sum("l_quantity").alias("sum_qty"),
            F.sum("l_extendedprice").alias("sum_base_price"),
            F.sum(price).alias("sum_disc_price"),
            F.sum(price * (1 + F.col("l_tax"))).alias("sum_charge"),
            F.avg("l_quantity").alias("avg_qty"),
            F.avg("l_extendedprice").alias("avg_price"),
            F.avg("l_discount").alias("avg_disc"),
            F.count("*").alias("count_order"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def q2(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    european = (
        t["partsupp"]
        .join(t["supplier"], F.col("ps_suppkey") == F.col("s_suppkey"))
        .join(t["nation"], F.col("s_nationkey") == F.col("n_nationkey"))
        .join(t["region"].filter("r_name = 'EUROPE'"), F.col("n_regionkey") == F.col("r_regionkey"))
    )
    cheapest = european.groupBy(F.col("ps_partkey").alias("part")).agg(F.min("ps_supplycost").alias("least"))
    parts = t["part"].filter((F.col("p_size") == 15) & F.col("p_type").endswith("BRASS"))
    return (
        parts.join(european, F.col("p_partkey") == F.col("ps_partkey"))
        .join(cheapest, (F.col("p_partkey") == F.col("part")) & (F.col("ps_supplycost") == F.col("least")))
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .orderBy(F.desc("s_acctbal"), "n_name", "s_name", "p_partkey")
        .limit(100)
    )


def q3(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    return (
        t["customer"]
        .filter(F.col("c_mktsegment") == "BUILDING")
        .join(t["orders"], F.col("c_custkey") == F.col("o_custkey"))
        .filter("o_orderdate < DATE '1995-03-15'")
        .join(t["lineitem"].filter("l_shipdate > DATE '1995-03-15'"), F.col("l_orderkey") == F.col("o_orderkey"))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(F.sum(_price()).alias("revenue"))
        .orderBy(F.desc("revenue"), "o_orderdate", "l_orderkey")
        .limit(10)
    )


def q4(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    late = t["lineitem"].filter(F.col("l_commitdate") < F.col("l_receiptdate"))
    return (
        t["orders"]
        .filter(F.col("o_orderdate").between("1993-07-01", "1993-09-30"))
        .join(late, F.col("l_orderkey") == F.col("o_orderkey"), "left_semi")
        .groupBy("o_orderpriority")
        .count()
        .orderBy("o_orderpriority")
    )


def q5(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    same_nation = (F.col("l_suppkey") == F.col("s_suppkey")) & (F.col("c_nationkey") == F.col("s_nationkey"))
    return (
        t["customer"]
        .join(t["orders"], F.col("c_custkey") == F.col("o_custkey"))
        .filter("o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'")
        .join(t["lineitem"], F.col("l_orderkey") == F.col("o_orderkey"))
        .join(t["supplier"], same_nation)
        .join(t["nation"], F.col("s_nationkey") == F.col("n_nationkey"))
        .join(t["region"], F.col("n_regionkey") == F.col("r_regionkey"))
        .where(F.col("r_name") == "ASIA")
        .groupBy("n_name")
        .agg(F.sum(_price()).alias("revenue"))
        .orderBy(F.desc("revenue"))
    )


def q6(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    year = (F.year("l_shipdate") == 1994) & F.col("l_discount").between(0.05, 0.07) & (F.col("l_quantity") < 24)
    return t["lineitem"].where(year).agg(F.sum(F.col("l_extendedprice") * F.col("l_discount")).alias("revenue"))


def q7(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    n1 = t["nation"].select(F.col("n_nationkey").alias("k1"), F.col("n_name").alias("supp_nation"))
    n2 = t["nation"].select(F.col("n_nationkey").alias("k2"), F.col("n_name").alias("cust_nation"))
    pair = F.struct("supp_nation", "cust_nation")
    wanted = [F.struct(F.lit(a).alias("supp_nation"), F.lit(b).alias("cust_nation"))
              for a, b in (("FRANCE", "GERMANY"), ("GERMANY", "FRANCE"))]  # fmt: skip
    return (
        t["supplier"]
        .join(t["lineitem"], F.col("s_suppkey") == F.col("l_suppkey"))
        .join(t["orders"], F.col("o_orderkey") == F.col("l_orderkey"))
        .join(t["customer"], F.col("c_custkey") == F.col("o_custkey"))
        .join(n1, F.col("s_nationkey") == F.col("k1"))
        .join(n2, F.col("c_nationkey") == F.col("k2"))
        .where((pair == wanted[0]) | (pair == wanted[1]))
        .where(F.col("l_shipdate").between("1995-01-01", "1996-12-31"))
        .withColumns({"l_year": F.year("l_shipdate"), "volume": _price()})
        .groupBy("supp_nation", "cust_nation", "l_year")
        .agg(F.sum("volume").alias("revenue"))
        .orderBy("supp_nation", "cust_nation", "l_year")
    )


def q8(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    sellers = t["nation"].select(F.col("n_nationkey").alias("seller"), F.col("n_name").alias("nation"))
    america = t["nation"].join(t["region"].filter("r_name = 'AMERICA'"), F.col("n_regionkey") == F.col("r_regionkey"))
    return (
        t["part"]
        .filter("p_type = 'ECONOMY ANODIZED STEEL'")
        .join(t["lineitem"], F.col("p_partkey") == F.col("l_partkey"))
        .join(t["supplier"], F.col("s_suppkey") == F.col("l_suppkey"))
        .join(t["orders"], F.col("l_orderkey") == F.col("o_orderkey"))
        .join(t["customer"], F.col("o_custkey") == F.col("c_custkey"))
        .join(america, F.col("c_nationkey") == F.col("n_nationkey"))
        .join(sellers, F.col("s_nationkey") == F.col("seller"))
        .where(F.col("o_orderdate").between("1995-01-01", "1996-12-31"))
        .groupBy(F.year("o_orderdate").alias("o_year"))
        .agg((F.sum(F.when(F.col("nation") == "BRAZIL", _price()).otherwise(0)) / F.sum(_price())).alias("mkt_share"))
        .orderBy("o_year")
    )


def q9(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    supplied = (F.col("ps_suppkey") == F.col("l_suppkey")) & (F.col("ps_partkey") == F.col("l_partkey"))
    profit = _price() - F.col("ps_supplycost") * F.col("l_quantity")
    return (
        t["part"]
        .where(F.col("p_name").contains("green"))
        .join(t["lineitem"], F.col("p_partkey") == F.col("l_partkey"))
        .join(t["supplier"], F.col("s_suppkey") == F.col("l_suppkey"))
        .join(t["partsupp"], supplied)
        .join(t["orders"], F.col("o_orderkey") == F.col("l_orderkey"))
        .join(t["nation"], F.col("s_nationkey") == F.col("n_nationkey"))
        .groupBy(F.col("n_name").alias("nation"), F.year("o_orderdate").alias("o_year"))
        .agg(F.sum(profit).alias("sum_profit"))
        .orderBy("nation", F.desc("o_year"))
    )


def q10(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    keys = ("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
    return (
        t["customer"]
        .join(t["orders"], F.col("c_custkey") == F.col("o_custkey"))
        .join(t["lineitem"], F.col("l_orderkey") == F.col("o_orderkey"))
        .join(t["nation"], F.col("c_nationkey") == F.col("n_nationkey"))
        .filter("o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'")
        .groupBy(*keys)
        .agg(F.sum(_price()).alias("revenue"))
        .orderBy(F.desc("revenue"), "c_custkey")
        .limit(20)
    )


def q11(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    value = F.sum(F.col("ps_supplycost") * F.col("ps_availqty"))
    german = (
        t["partsupp"]
        .join(t["supplier"], F.col("ps_suppkey") == F.col("s_suppkey"))
        .join(t["nation"].filter("n_name = 'GERMANY'"), F.col("s_nationkey") == F.col("n_nationkey"))
    )
    total = german.agg((value * 0.0001).alias("least"))
    return (
        german.groupBy("ps_partkey")
        .agg(value.alias("value"))
        .crossJoin(total)
        .where(F.col("value") > F.col("least"))
        .drop("least")
        .sort(F.desc("value"))
    )


def q12(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    urgent = F.col("o_orderpriority").isin("1-URGENT", "2-HIGH")
    in_order = "l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND year(l_receiptdate) = 1994"
    return (
        t["orders"]
        .join(t["lineitem"], F.col("o_orderkey") == F.col("l_orderkey"))
        .where(F.col("l_shipmode").isin("MAIL", "SHIP"))
        .where(in_order)
        .groupBy("l_shipmode")
        .agg(F.count_if(urgent).alias("high"), F.sum(F.when(urgent, 0).otherwise(1)).alias("low"))
        .orderBy("l_shipmode")
    )


def q13(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    plain = ~F.col("o_comment").like("%special%requests%")
    return (
        t["customer"]
        .join(t["orders"], (F.col("c_custkey") == F.col("o_custkey")) & plain, "left")
        .groupBy("c_custkey")
        .agg(F.count("o_orderkey").alias("c_count"))
        .groupBy("c_count")
        .agg(F.count("*").alias("custdist"))
        .orderBy(F.desc("custdist"), F.desc("c_count"))
    )


def q14(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    promoted = F.sum(F.when(F.col("p_type").startswith("PROMO"), _price()).otherwise(0))
    return (
        t["lineitem"]
        .join(t["part"], F.col("l_partkey") == F.col("p_partkey"))
        .where("l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'")
        .agg((100 * promoted / F.sum(_price())).alias("promo_revenue"))
    )


def q15(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    revenue = (
        t["lineitem"]
        .where("l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'")
        .groupBy(F.col("l_suppkey").alias("supplier_no"))
        .agg(F.sum(_price()).alias("total_revenue"))
    )
    most = revenue.agg(F.max("total_revenue").alias("most"))
    return (
        t["supplier"]
        .join(revenue, F.col("s_suppkey") == F.col("supplier_no"))
        .join(most, F.col("total_revenue") == F.col("most"))
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .orderBy("s_suppkey")
    )


def q16(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    sizes = (49, 14, 23, 45, 19, 3, 36, 9)
    wanted = (F.col("p_brand") != "Brand#45") & ~F.col("p_type").like("MEDIUM POLISHED%") & F.col("p_size").isin(*sizes)
    complained = t["supplier"].where(F.col("s_comment").rlike("Customer.*Complaints"))
    return (
        t["partsupp"]
        .join(t["part"].where(wanted), F.col("p_partkey") == F.col("ps_partkey"))
        .join(complained, F.col("ps_suppkey") == F.col("s_suppkey"), "left_anti")
        .groupBy("p_brand", "p_type", "p_size")
        .agg(F.count_distinct("ps_suppkey").alias("supplier_cnt"))
        .orderBy(F.desc("supplier_cnt"), "p_brand", "p_type", "p_size")
    )


def q17(t: Tables) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    mean = F.avg("l_quantity").over(Window.partitionBy("l_partkey"))
    return (
        t["lineitem"]
        .withColumn("mean", mean)
        .join(t["part"].where("p_brand = 'Brand#23' AND p_container = 'MED BOX'"), F.expr("p_partkey = l_partkey"))
        .where(F.col("l_quantity") < 0.2 * F.col("mean"))
        .agg((F.sum("l_extendedprice") / 7.0).alias("avg_yearly"))
    )


def q18(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    large = t["lineitem"].groupBy("l_orderkey").agg(F.sum("l_quantity").alias("quantity")).where("quantity > 250")
    return (
        t["customer"]
        .join(t["orders"], F.col("c_custkey") == F.col("o_custkey"))
        .join(large, F.col("o_orderkey") == F.col("l_orderkey"))
        .select("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "quantity")
        .orderBy(F.desc("o_totalprice"), "o_orderdate", "o_orderkey")
        .limit(100)
    )


def q19(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    def case(brand: str, packs: str, least: int, size: int) -> object:
        boxes = [f"{packs} {kind}" for kind in ("CASE", "BOX", "PACK", "PKG", "BAG", "JAR")]
        of_part = (F.col("p_brand") == brand) & F.col("p_container").isin(boxes) & F.col("p_size").between(1, size)
        return of_part & F.col("l_quantity").between(least, least + 10)

    cases = case("Brand#12", "SM", 1, 5) | case("Brand#23", "MED", 10, 10) | case("Brand#34", "LG", 20, 15)
    by_air = F.col("l_shipmode").isin("AIR", "REG AIR") & (F.col("l_shipinstruct") == "DELIVER IN PERSON")
    joined = t["lineitem"].join(t["part"], (F.col("p_partkey") == F.col("l_partkey")) & cases & by_air)
    return joined.agg(F.sum(_price()).alias("revenue"))


def q20(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    shipped = (
        t["lineitem"]
        .where(F.year("l_shipdate") == 1994)
        .groupBy("l_partkey", "l_suppkey")
        .agg((0.5 * F.sum("l_quantity")).alias("half"))
    )
    forest = t["part"].where(F.col("p_name").startswith("forest"))
    plenty = (
        t["partsupp"]
        .join(forest, F.col("ps_partkey") == F.col("p_partkey"), "left_semi")
        .join(shipped, (F.col("ps_partkey") == F.col("l_partkey")) & (F.col("ps_suppkey") == F.col("l_suppkey")))
        .where(F.col("ps_availqty") > F.col("half"))
    )
    return (
        t["supplier"]
        .join(t["nation"].where("n_name = 'CANADA'"), F.col("s_nationkey") == F.col("n_nationkey"))
        .join(plenty, F.col("s_suppkey") == F.col("ps_suppkey"), "left_semi")
        .select("s_name", "s_address")
        .orderBy("s_name")
    )


def q21(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    late = t["lineitem"].where("l_receiptdate > l_commitdate").alias("l1")
    same, other = F.col("l1.l_orderkey") == F.col("l2.l_orderkey"), F.col("l1.l_suppkey") != F.col("l2.l_suppkey")
    others_late = t["lineitem"].where("l_receiptdate > l_commitdate").alias("l2")
    return (
        late.join(t["lineitem"].alias("l2"), same & other, "left_semi")
        .join(others_late, same & other, "left_anti")
        .join(t["supplier"], F.col("l1.l_suppkey") == F.col("s_suppkey"))
        .join(t["orders"].where("o_orderstatus = 'F'"), F.col("l1.l_orderkey") == F.col("o_orderkey"))
        .join(t["nation"].where("n_name = 'SAUDI ARABIA'"), F.col("s_nationkey") == F.col("n_nationkey"))
        .groupBy("s_name")
        .agg(F.count("*").alias("numwait"))
        .orderBy(F.desc("numwait"), "s_name")
        .limit(100)
    )


def q22(t: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    code = F.substring("c_phone", 1, 2)
    codes = ("13", "31", "23", "29", "30", "18", "17")
    known = t["customer"].withColumn("cntrycode", code).where(F.col("cntrycode").isin(*codes))
    mean = known.where("c_acctbal > 0.00").agg(F.avg("c_acctbal").alias("mean"))
    return (
        known.crossJoin(mean)
        .where(F.col("c_acctbal") > F.col("mean"))
        .join(t["orders"], F.col("c_custkey") == F.col("o_custkey"), "left_anti")
        .groupBy("cntrycode")
        .agg(F.count("*").alias("numcust"), F.sum("c_acctbal").alias("totacctbal"))
        .orderBy("cntrycode")
    )


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22)
}
