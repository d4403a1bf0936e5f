"""Parts of a plan that are equal become one part, which is then lowered once."""

from __future__ import annotations

from everview.plan import node
from everview.plan.node import Plan


def share_parts(plan: Plan) -> Plan:
    """The plan in which equal parts are the same object."""
    known: dict[Plan, Plan] = {}
    return node.rewritten(plan, lambda part: known.setdefault(part, part))
