"""PomoRA as a front end: a text to the plans of the relations that it assigns to."""

from __future__ import annotations

from everview.frontends.pomora.algebra import about
from everview.frontends.pomora.compile import compile_program
from everview.frontends.pomora.parse import parse
from everview.frontends.rules.faults import require_text
from everview.optimize.together import optimize_together
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.nodes import scans


def named_plans(text: str, catalog: Readable, only: str | None = None) -> tuple[NamedPlan, ...]:
    """The named plans of a program's relations, each after its inputs; with ``only``, of one and its inputs."""
    block = parse(require_text(text))
    plans = compile_program(block if only is None else about(only, block), catalog)
    better = optimize_together(plans)
    return tuple(NamedPlan(name, plan, better[name], scans(plan), is_set=True) for name, plan in plans.items())
