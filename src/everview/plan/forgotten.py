"""Expiring rows: those of a table that are older, by its watermark, than its TTL.

They are a relation like any other, kept up to date at the cost of what changes; the next tick takes them out of the
table, and with that out of every view. So answers forget, but they are always those of the rows that the table holds.
"""

from __future__ import annotations

from everview.plan.node import Plan
from everview.plan.nodes import During, Filter, Project, Scan
from everview.plan.timed import Watermark, watermark_of
from everview.plan.typing import call, literal
from everview.scalars.expressions import Expression
from everview.scalars.kinds import DAY_TIME, MICROS
from everview.types import DATE, INTEGER, Field, Schema


def forgotten(table: str, schema: Schema, watermark: Watermark) -> Plan:
    """The rows of a table that are older than its TTL allows."""
    assert watermark.ttl is not None, "the table has a TTL"
    time = schema[watermark.column]
    clock = Scan(watermark_of(table), Schema([Field(time.name, time.type, nullable=False)]))
    until = Project(clock, (earlier(clock.columns[0], watermark.ttl),), ("kept from",))
    rows: Plan = Scan(table, schema)
    place = schema.index(watermark.column)
    if time.nullable:
        rows = Filter(rows, call("is_not_null", rows.columns[place]))
    return During(rows, until, just_after(rows.columns[place]))


def earlier(moment: Expression, micros: int) -> Expression:
    """A moment or a day, less so much."""
    if moment.type == DATE:
        return call("date_sub", moment, literal(micros // MICROS["day"], INTEGER))
    return call("subtract", moment, literal(micros, DAY_TIME))


def just_after(moment: Expression) -> Expression:
    """The first moment or day after one."""
    if moment.type == DATE:
        return call("date_add", moment, literal(1, INTEGER))
    return call("add", moment, literal(1, DAY_TIME))
