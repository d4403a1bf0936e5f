"""Random sessions for a time: all ways of running must have the same rows, tell listeners the same, and verify."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Sequence
from typing import Any

import everview as ev
from torture.outcome import Outcome
from torture.sessions.steps import Scene, drawn_step
from torture.sessions.values import Column
from torture.sessions.ways import Contents, Way, opened, relation

LENGTH = 40  # steps of a session
REDUCING = 60  # seconds for making a session short


class WrongError(Exception):
    """A way that answers otherwise than another, or than a computation from scratch."""


def run(seconds: float, seed: int) -> Outcome:
    """Sessions until the time is over."""
    outcome = Outcome()
    until = time.monotonic() + seconds
    number = seed * 100_000
    while time.monotonic() < until:
        number += 1
        outcome.tried["sessions"] += 1
        steps, fault = session(number)
        outcome.tried["steps"] += len(steps)
        if fault is not None:
            steps, fault = reduced(number, steps, fault)
            outcome.faults.append(f"seed {number}: {fault}\n" + "\n".join(steps))
    return outcome


def session(seed: int, length: int = LENGTH) -> tuple[list[str], str | None]:
    """The steps of a session, up to the first that meets a fault, and the fault."""
    chance, steps = random.Random(seed), list[str]()
    with opened(random.Random(seed)) as ways:
        contents = ways[0].contents()
        for number in range(length):
            steps.append(drawn_step(_scene(chance, ways[0].db, number)))
            try:
                contents = _judged(ways, steps[-1], contents)
            except Exception as error:  # noqa: BLE001 - whatever is no error for users is a fault
                return steps, _told(error)
    return steps, None


def reduced(seed: int, steps: list[str], fault: str) -> tuple[list[str], str]:
    """Fewer steps that meet a fault of the same kind, and that fault."""
    until = time.monotonic() + REDUCING
    kind, size = fault[:25], len(steps) // 2
    while size:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size :]
            met = _replayed(seed, fewer)
            if met is not None and met.startswith(kind):
                steps, fault = fewer, met
            else:
                at += size
        size //= 2
    return steps, fault


def _replayed(seed: int, steps: Sequence[str]) -> str | None:
    """The fault that steps meet."""
    with opened(random.Random(seed)) as ways:
        contents = ways[0].contents()
        for step in steps:
            try:
                contents = _judged(ways, step, contents)
            except Exception as error:  # noqa: BLE001
                return _told(error)
    return None


def _told(error: Exception) -> str:
    if isinstance(error, WrongError):
        return str(error)
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error, limit=-6))


def _judged(ways: Sequence[Way], step: str, before: Contents) -> Contents:
    """Run a step in all ways, compare them, and give the contents that all of them have."""
    outcomes = {way.name: way.run(step) for way in ways}
    if len({mistake is None for mistake in outcomes.values()}) > 1:
        raise WrongError(f"outcomes differ: {outcomes}")
    first = ways[0].contents()
    for way in ways[1:]:
        _same(first, way.contents(), f"differs in {ways[0].name} and {way.name}")
    if outcomes[ways[0].name] is not None:
        _same(before, first, "differs before and after a step that failed")
    for way in ways:
        heard = way.heard()
        _same({name: first[f"view {name}"] for name in heard}, heard, f"differs from what listeners heard, {way.name}")
        way.listen()
    checked = ways[0].db.verify()
    if not checked:
        raise WrongError(f"verify: {checked}")
    return first


def _same(one: Contents, other: Contents, how: str) -> None:
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            raise WrongError(f"{how}: {name}: {one.get(name)} and {other.get(name)}")


def _scene(chance: random.Random, db: ev.Database, number: int) -> Scene:
    tables = {name: db.table(name) for name in db.tables() if "(" not in name}
    return Scene(
        chance,
        {name: _columns(table.schema) for name, table in tables.items()},
        {name: _columns(relation(db, name).schema) for name in db.views() if name not in tables},
        {name: table.key for name, table in tables.items()},
        {name: table.rows() for name, table in tables.items()},
        number,
    )


def _columns(schema: Any) -> list[Column]:
    return [Column(one.name, str(one.type).removesuffix(" NOT NULL"), one.nullable) for one in schema.fields]
