"""Parts of a plan that are equal become one part, which is then lowered once."""

from __future__ import annotations

from everview.plan import nodes
from everview.plan.nodes import Plan


def share_parts(plan: Plan) -> Plan:
    """The plan in which equal parts are the same object."""
    known: dict[Plan, Plan] = {}
    return nodes.rewritten(plan, lambda part: known.setdefault(part, part))
