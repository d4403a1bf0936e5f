"""Frames as a front end: the stored text of a frame to its plan."""

from __future__ import annotations

import json

from everview.frontends.frame.binding import FrameBinding
from everview.frontends.frame.steps import FrameStep, from_text, to_text
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.node import unique
from everview.plan.nodes import Project, scans
from everview.scalars.expressions import columns_of


def text_of(name: str, step: FrameStep) -> str:
    """The text by which a view of a frame is stored: its name, and its steps."""
    return f"{json.dumps(name, ensure_ascii=False)}\n{to_text(step)}"


def named_plans(text: str, catalog: Readable, only: str | None = None) -> tuple[NamedPlan, ...]:
    """The one view of a stored frame."""
    name, _, steps = text.partition("\n")
    last = from_text(steps)
    frame = FrameBinding(catalog).frame(last)
    by_columns = all(max(columns_of(key), default=0) < frame.width for key, _ in frame.order)
    shown = frame if by_columns else frame.settled()
    names = unique(shown.fields.names)
    plan = shown.plan if shown.plan.schema.names == names else Project(shown.plan, shown.plan.columns, names)
    named = [catalog.find(step.said["name"]) for step in last.walk() if step.kind == "relation"]
    reads = tuple(dict.fromkeys((*scans(plan), *named)))  # a plain view is named, and its relations are scanned
    better = optimize(plan, None, {relation: catalog.key(relation) for relation in reads})
    return (NamedPlan(json.loads(name), plan, better, reads, shown.order),)
