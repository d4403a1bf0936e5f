"""Definitions to draw from: tables, and views over them and over each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from everview.circuit.stream import Stream

Relations = Mapping[str, Stream]
Build = Callable[[Relations], Stream]

ACCOUNT = "id BIGINT, owner STRING, country STRING"
TRANSFER = "src BIGINT, dst BIGINT, amount BIGINT NOT NULL"


def large(amount: pa.Array) -> pa.Array:
    return pc.greater(amount, 2)


def by_country(of: Relations) -> Stream:
    return of["account"].aggregate(["country"], n="count", first=("min", "owner"))


def exposure(of: Relations) -> Stream:
    joined = of["transfer"].not_null("src").join(of["account"], ("src", "id"), select=["country", "amount"])
    return joined.aggregate(["country"], total=("sum", "amount"), most=("max", "amount"))


def big(of: Relations) -> Stream:
    return of["transfer"].filter(large, columns="amount")


def pairs(of: Relations) -> Stream:
    return of["transfer"].select("src", "dst").distinct()


def top(of: Relations) -> Stream:
    return of["account"].top(2, ["owner desc", "id"], by=["country"])


def without(of: Relations) -> Stream:
    return of["account"].antijoin(of["transfer"], ("id", "src"))


def known(of: Relations) -> Stream:
    return of["account"].left_join(of["transfer"], ("id", "dst"))


def reach(of: Relations) -> Stream:
    edge = of["transfer"].select("src", "dst")
    loop = edge.circuit.child("reach")
    inner = loop.enter(edge)
    path, again = loop.feedback(edge.schema)
    paths = (inner + path.join(inner, ("dst", "src"), select=["left.src", "right.dst"])).distinct()
    again(paths)
    return loop.leave(paths)


def over_exposure(of: Relations) -> Stream:
    return of["exposure"].filter(large, columns="total").select("country")


def over_both(of: Relations) -> Stream:
    return of["pairs"].join(of["account"], ("dst", "id"), select=["src", "owner"])


VIEWS: dict[str, Build] = {
    build.__name__: build
    for build in (by_country, exposure, big, pairs, top, without, known, reach, over_exposure, over_both)
}
NEEDS = {"over_exposure": ("exposure",), "over_both": ("pairs",)}
