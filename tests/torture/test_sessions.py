"""Random sessions, a little every day."""

from __future__ import annotations

import pytest

from torture.sessions.trial import reduced, session
from torture.sessions.ways import Way


@pytest.mark.parametrize("seed", [1, 2])
def test_all_ways_of_running_answer_alike(seed: int) -> None:
    steps, fault = session(seed, 25)
    assert fault is None, "\n".join(steps)


def test_a_way_that_answers_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Way.run

    def miscounting(way: Way, step: str) -> str | None:
        return run(way, step.replace(", 1)]", ", 2)]") if way.name == "shards" else step)

    monkeypatch.setattr(Way, "run", miscounting)
    steps, fault = reduced(1, *_found(1))
    assert fault.startswith(("outcomes differ", "differs in memory and shards"))
    assert len(steps) <= 3


def _found(seed: int) -> tuple[list[str], str]:
    steps, fault = session(seed)
    assert fault is not None
    return steps, fault
