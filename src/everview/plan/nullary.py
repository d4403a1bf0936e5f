"""Relations without columns, as plans have them: one holds or does not, and its one row, if it is there, says so."""

from __future__ import annotations

from typing import Final

from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Project
from everview.scalars.expressions import TRUE
from everview.types import BOOLEAN, Field, Schema

NULLARY: Final = Schema([Field("holds", BOOLEAN, nullable=False)])
ONE_ROW: Final = (True,)  # the one row


def any_of(plan: Plan) -> Plan:
    """Whether a plan has rows, as a relation without columns."""
    return Distinct(Project(plan, (TRUE,), NULLARY.names))
