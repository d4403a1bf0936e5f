"""The tables that the tests of the SQL front end read."""

from __future__ import annotations

from everview.frontends.sql import CatalogFunction, Tables, bind_query
from everview.plan.node import Plan
from everview.types import DOUBLE, INTEGER, Schema

T = "a INT, b BIGINT NOT NULL, c STRING, d DECIMAL(12,2), e DATE, arr ARRAY<INT>, st STRUCT<x: INT, y: STRING>"
S = "a INT, x DOUBLE, ts TIMESTAMP"


def tables() -> Tables:
    """Two tables, a plain view over one of them, and a function."""
    known = Tables(
        {
            "t": Schema.parse(T),
            "s": Schema.parse(S),
            "Mixed Case": Schema.parse("`Some Column` INT, `some column` INT"),
        },
        [CatalogFunction("halved", (INTEGER,), DOUBLE)],
    )
    known.relations["v"] = bind_query("SELECT a AS k, b + 1 AS n FROM t WHERE b > 0", known).plan
    return known


def plan_of(text: str, dialect: str = "spark") -> Plan:
    return bind_query(text, tables(), dialect).plan
