"""A pipeline on local Spark: change files in, three views, their changes out, and going on after a restart.

A shop's customers come as operations of a database (Debezium's envelope), its orders as rows by key. The views: what
each country has ordered, the two largest orders, and every order beside the one it replaces, followed to its first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from everview.spark import Pipeline, session
from everview.spark.progress import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUSTOMER = "STRUCT<id: BIGINT, country: STRING>"
CUSTOMERS = f"before {CUSTOMER}, after {CUSTOMER}, op STRING, ts_ms BIGINT"
ORDERS = "id BIGINT, customer BIGINT, amount DECIMAL(12,2), replaces BIGINT, at TIMESTAMP"


def main() -> None:
    spark = session("local[2]")
    spark.sparkContext.setLogLevel("ERROR")
    for name in ("customers", "orders"):
        Path(name).mkdir()
    arrive("customers", event(1, "c", after="Peru"), event(2, "c", after="Chile"))
    arrive("orders", order(1, 1, "10.00"), order(2, 2, "25.00"), order(3, 1, "7.50", replaces=1))
    with shop(spark) as pipeline:
        run(pipeline)
        pipeline.view("by country").orderBy("country").show()
    # A new process would do the same: the state says how far it has come.
    arrive("customers", event(2, "u", before="Chile", after="Bolivia"))
    arrive("orders", order(1, 1, "12.00"), order(4, 2, "30.00", replaces=3))
    with shop(spark) as pipeline:
        run(pipeline)
        pipeline.view("by country").orderBy("country").show()
        pipeline.changes("by country").orderBy("country", "total").show()
        pipeline.view("first order").orderBy("id").show()
        Console().print(table(pipeline.progress))
        print(pipeline.verify())
    spark.stop()


def shop(spark: SparkSession) -> Pipeline:
    p = Pipeline(spark, checkpoint="state", shards=4)
    customers = p.source("customers", files(spark, "customers", CUSTOMERS), key="id", changes="cdc")
    orders = p.source("orders", files(spark, "orders", ORDERS), key="id", changes="upsert", order="at")
    sold = orders.join(customers, on=("customer", "id"))
    sold.aggregate(["country"], total=("sum", "amount"), orders="count").sink("by country")
    orders.top(2, ["amount desc"]).sink("largest")
    # id → the first order of its chain: an order that replaces none, or the first of the one it replaces.
    loop = p.circuit.child("chain")
    inside = loop.enter(orders.select("id", "replaces"))
    first, again = loop.feedback("id BIGINT, first BIGINT")
    alone = inside.antijoin(inside.not_null("replaces"), "id").select("id", first="id")
    later = inside.join(first, on=("replaces", "id"), select=["left.id", "right.first"])
    again(found := (alone + later).distinct())
    loop.leave(found).sink("first order")
    p.sink("by country", path="out")
    return p


def run(pipeline: Pipeline) -> None:
    pipeline.start(trigger={"availableNow": True}).awaitTermination()


def files(spark: SparkSession, name: str, schema: str) -> Any:
    return spark.readStream.schema(schema).json(str(Path(name).absolute()))


def arrive(name: str, *rows: dict[str, Any]) -> None:
    """One more file, as a whole: written beside the directory, then moved into it."""
    number = len(list(Path(name).iterdir()))
    Path("arriving").write_text("\n".join(map(json.dumps, rows)))
    os.rename("arriving", Path(name) / f"{number}.json")


def event(id_: int, op: str, before: str | None = None, after: str | None = None) -> dict[str, Any]:
    sides = {"before": before, "after": after}
    return {side: country and {"id": id_, "country": country} for side, country in sides.items()} | {
        "op": op,
        "ts_ms": 1,
    }


def order(id_: int, customer: int, amount: str, replaces: int | None = None) -> dict[str, Any]:
    return {"id": id_, "customer": customer, "amount": amount, "replaces": replaces, "at": "2026-11-15T12:00:00Z"}


if __name__ == "__main__":
    main()
