"""The views of the payments company, as a circuit over whole tables, and the pipeline that keeps them.

- ``exposure``: what each country has sent, in euros (two joins and aggregates);
- ``top_senders``: the ten accounts that have sent most (top k);
- ``tainted``: the accounts that large transfers lead to from a sanctioned one (recursion).
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.circuit import Circuit, Stream
from everview.demo.company import FILES, KEYS, LARGE, ROWS
from everview.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEWS: Final = ("exposure", "top_senders", "tainted")
TOP: Final = 10


def circuit() -> Circuit:
    """The three views over the four tables."""
    found = Circuit()
    source = {name: found.source(name, columns) for name, columns in ROWS.items()}
    exposure(source["transfer"], source["account"], source["rate"])
    top_senders(source["transfer"], source["rate"])
    tainted(source["transfer"], source["sanction"])
    return found


def build(spark: SparkSession, directory: Path, state: Path, *, alerts: Path | None = None, **options: Any) -> Pipeline:
    """A pipeline over the change files of a directory, its state in another.

    ``alerts`` is where the changes of ``tainted`` go, for whoever has to act on them.
    """
    pipeline = Pipeline(spark, state, circuit=circuit(), **options)
    for name, columns in FILES.items():
        style = "cdc" if "op STRING" in columns else "upsert"
        pipeline.source(name, files(spark, directory, name), key=KEYS[name], changes=style, order="seq")
    if alerts is not None:
        pipeline.sink("tainted", path=alerts)
    return pipeline


def files(spark: SparkSession, directory: Path, name: str) -> DataFrame:
    """The change files of a source, as they come."""
    return spark.readStream.schema(FILES[name]).parquet((directory / name).absolute().as_uri())


def exposure(transfer: Stream, account: Stream, rate: Stream) -> None:
    by_home = _sent(transfer).join(account, ("src", "id"), select=["country", "currency", "total"])
    by_country = by_home.aggregate(["country", "currency"], total=("sum", "total"))
    _in_euros(by_country, rate).aggregate(["country"], eur=("sum", "eur")).sink("exposure", positive=True)


def top_senders(transfer: Stream, rate: Stream) -> None:
    by_account = _in_euros(_sent(transfer), rate).aggregate(["src"], eur=("sum", "eur"))
    by_account.top(TOP, "eur desc").sink("top_senders", positive=True)


def tainted(transfer: Stream, sanction: Stream) -> None:
    steps = transfer.filter(is_large, columns=["amount"]).select("src", "dst")
    loop = transfer.circuit.child("tainted")
    passed, listed = loop.enter(steps), loop.enter(sanction)
    found, again = loop.feedback(ROWS["sanction"])
    further = found.join(passed, ("account", "src"), select=["right.dst as account"])
    reached = (listed + further).distinct()
    again(reached)
    loop.leave(reached).sink("tainted", positive=True)


def euros(total: Any, to_eur: Any) -> Any:
    """A sum in its currency, in euros and cents; halves are rounded up, as SQL does."""
    product = pc.multiply(pc.cast(total, pa.decimal128(20, 2)), to_eur)
    return pc.cast(pc.round(product, 2, round_mode="half_towards_infinity"), pa.decimal128(18, 2))


def is_large(amount: Any) -> Any:
    return pc.greater_equal(amount, pa.scalar(Decimal(LARGE), pa.decimal128(14, 2)))


def _sent(transfer: Stream) -> Stream:
    return transfer.aggregate(["src", "currency"], total=("sum", "amount"))


def _in_euros(sums: Stream, rate: Stream) -> Stream:
    return sums.join(rate, "currency").extend(euros, "eur DECIMAL(18,2) NOT NULL", columns=["total", "to_eur"])
