"""DataFrames of Spark as plans: Catalyst's analysed plan, as JSON, read against a catalog.

`frame_plan` takes the text of ``queryExecution.analyzed.toJSON`` and gives a plan over the relations whose frames it
reads. Nothing here needs Spark: what JSON leaves out is given beside the text, as answers to `questions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.errors import DataFrameError, EverviewError
from everview.frontends.catalyst import expressions, joins, lambdas, literals, plans, user_functions
from everview.frontends.catalyst.plan_reader import MARK, MOST_CONSTANTS, PLANS, PlanReader
from everview.frontends.catalyst.questions import FrameQuestion, questions
from everview.frontends.catalyst.reading import HANDLERS, CatalystReading
from everview.frontends.catalyst.tree import CatalystNode, Path, parsed
from everview.plan.catalog import Readable
from everview.plan.node import Plan, unique
from everview.plan.nodes import Project
from everview.scalars.session_zone import session_zone

__all__ = [
    "HANDLERS",
    "MARK",
    "MOST_CONSTANTS",
    "PLANS",
    "CatalystNode",
    "FrameQuestion",
    "Path",
    "ReadFrame",
    "UnreadFrame",
    "frame_plan",
    "parsed",
    "questions",
]
READERS = (expressions, joins, lambdas, literals, plans, user_functions)  # modules that say how classes are read


@dataclass(frozen=True)
class ReadFrame:
    """What a DataFrame means: its plan, and whether Spark may answer with other rows that are as good."""

    plan: Plan
    arbitrary: bool


class UnreadFrame(DataFrameError):
    """A DataFrame that cannot be read, and the path to the node that is why."""

    def __init__(self, message: str, *, hint: str | None = None, path: Path = ()) -> None:
        super().__init__(message, hint=hint)
        self.path = path


def frame_plan(
    tree: CatalystNode, catalog: Readable, answers: Mapping[str, Any] | None = None, zone: str = "UTC"
) -> ReadFrame:
    """Read a DataFrame's analysed plan; ``answers`` are those to its `questions`, ``zone`` is the session's."""
    reading = CatalystReading(catalog, answers or {})
    try:
        with session_zone(zone):
            rows = PlanReader(reading).rows(tree)
    except RecursionError:
        hint = "define a part of it as a view of its own, and read that by p.frame"
        raise DataFrameError("the DataFrame is nested too deeply", hint=hint) from None
    except EverviewError as error:
        if reading.failed is None:
            raise
        raise UnreadFrame(f"{error.message}", hint=error.hint, path=reading.failed.path) from error
    plan = rows.plan
    names = unique(plan.schema.names)
    return ReadFrame(plan if names == plan.schema.names else Project(plan, plan.columns, names), reading.arbitrary)
