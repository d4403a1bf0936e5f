"""Optimize several plans together: a loop that some of them share is optimized once, and stays shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.optimize.passes import optimize
from everview.plan.node import Plan
from everview.plan.nodes import Recursive


def optimize_together(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """Each plan, optimized; recursive plans with equal bindings have equal bindings afterwards."""
    better: dict[str, Plan] = {}
    loops: dict[tuple[tuple[str, Plan], ...], Recursive] = {}
    for name, plan in plans.items():
        loop = loops.get(plan.bindings) if isinstance(plan, Recursive) else None
        if isinstance(plan, Recursive) and loop is not None:
            better[name] = replace(loop, body=plan.body)
            continue
        better[name] = made = optimize(plan)
        if isinstance(plan, Recursive) and isinstance(made, Recursive):
            loops[plan.bindings] = made
    return better
