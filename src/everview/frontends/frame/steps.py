"""The steps of a frame: one for each method called, with the steps that it reads; stored as a line of JSON.

A step says what it does in texts of SQL expressions, so nothing but data is stored. A column of a certain frame stands
in them as ```transfer#3`.`src` ``: the mark of the step, and the name. Marks are numbers of a process; in a stored text
they are the places of steps, so that the same definition is always the same text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from everview.errors import QueryError
from everview.frontends.sql.parse import identifiers_replaced

VERSION: Final = 1  # of the stored form
EXPRESSIONS: Final = ("items", "test", "keys", "calls", "column", "values", "by")  # what steps say in SQL
_numbers = count(1)


@dataclass(frozen=True, eq=False)
class FrameStep:
    """A step: its kind, the steps read for rows, the steps named by columns, and the arguments of its method."""

    kind: str
    inputs: tuple[FrameStep, ...] = ()
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    named: tuple[FrameStep, ...] = ()
    label: str = ""
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def mark(self) -> str:
        """The name under which expressions refer to the columns of this step."""
        return f"{self.label}#{self.number}"

    def walk(self) -> list[FrameStep]:
        """This step and all steps below it, each after its own inputs."""
        done: dict[FrameStep, None] = {}
        waiting: list[tuple[FrameStep, bool]] = [(self, False)]
        while waiting:
            step, ready = waiting.pop()
            if ready:
                done.setdefault(step)
            elif step not in done:
                waiting.append((step, True))
                waiting += [(one, False) for one in reversed((*step.inputs, *step.named)) if one not in done]
        return list(done)


def to_text(step: FrameStep) -> str:
    """A step and all steps below it, as a line of JSON.

    >>> to_text(FrameStep("filter", (FrameStep("relation", said={"name": "t"}, label="t"),), {"test": "a > 1"}))
    '{"steps":[["relation",[],{"name":"t"},"t"],["filter",[0],{"test":"a > 1"},""]],"version":1}'
    """
    steps = step.walk()
    places = {one: place for place, one in enumerate(steps)}
    marks = {one.mark: f"{one.label}#{place}" for one, place in places.items()}
    lines = [[one.kind, [places[i] for i in one.inputs], _marked(one.said, marks), one.label] for one in steps]
    return json.dumps({"version": VERSION, "steps": lines}, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def from_text(text: str) -> FrameStep:
    """The last step of a stored text."""
    stored = json.loads(text)
    if stored.get("version") != VERSION or not stored.get("steps"):
        raise QueryError("the frame was stored in another form", hint="open it with the version that has stored it")
    steps: list[FrameStep] = []
    for place, (kind, inputs, said, label) in enumerate(stored["steps"]):
        # All steps before may be named; those that are not cost nothing.
        known = tuple(steps[i] for i in inputs)
        steps.append(FrameStep(kind, known, said, tuple(steps), label, place))
    return steps[-1]


def _marked(said: Mapping[str, Any], marks: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a step, with other marks in their expressions."""
    return {key: _remarked(value, marks) if key in EXPRESSIONS else value for key, value in said.items()}


def _remarked(said: Any, marks: Mapping[str, str]) -> Any:
    if isinstance(said, str):
        return identifiers_replaced(said, marks) if "#" in said else said
    return [_remarked(one, marks) for one in said]
