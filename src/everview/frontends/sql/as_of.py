"""``VERSION AS OF 7`` and ``TIMESTAMP AS OF '2030-01-01'`` behind a relation in FROM: its rows as they were."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope
from everview.plan.node import Plan
from everview.plan.typing import cast
from everview.scalars.evaluate import Evaluate, moment
from everview.scalars.expressions import Expression, columns_of
from everview.types import BIGINT, TIMESTAMP


def as_of(version: exp.Version, name: str, context: QueryContext) -> Plan:
    """``VERSION AS OF 7`` and ``TIMESTAMP AS OF '2030-01-01'``: a relation as it was."""
    if version.args.get("kind") != "AS OF" or version.expression is None:
        raise context.unsupported(version.sql("spark")[:60], version, "write VERSION AS OF 7")
    given = expression(version.expression, Site(context, Scope(), "AS OF"))
    if columns_of(given):
        raise context.error("AS OF is followed by a constant", version, "write VERSION AS OF 7")
    if version.name.upper() == "TIMESTAMP":
        moment_given = _constant(cast(given, TIMESTAMP))
        if moment_given is None:
            raise context.error("no such moment", version, "write TIMESTAMP AS OF '2030-01-01 12:00:00'")
        return context.catalog.as_of(name, moment_given)
    value = _constant(cast(given, BIGINT))
    if value is None or value < 0:
        raise context.error("no such version", version, "versions are epochs: 0, 1, 2, …")
    return context.catalog.as_of(name, value)


def _constant(value: Expression) -> Any:
    with moment(dt.datetime.now(dt.UTC)):
        (answer,) = Evaluate((value,))()
    constant = answer.as_py() if isinstance(answer, pa.Scalar) else answer[0].as_py()
    return constant.replace(tzinfo=dt.UTC) if isinstance(constant, dt.datetime) else constant
