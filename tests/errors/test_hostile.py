"""A portion of the trial of hostile calls that is the same every day; `torture.hostile.run` goes on at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview as ev
from torture.hostile import Trial, all_rows, calls, forgotten, one_argument, rows_in, several, texts
from torture.outcome import Outcome
from torture.values import values

# Calls whose arguments can only be wrong: of what only the library makes, or of what is not there.
NEVER_RIGHT = {
    "ev.aggregate", "ev.ZSet.get_by_prefix", "ev.Embedded.attach", "ev.Store.attach", "ev.Store.open",
    "ev.Store.history", "ev.Store.times", "ev.Store.rewind", "circuit.connect", "circuit.leave", "circuit.enter",
    "stream.join_trace", "db.late",
    "embedded.table", "sources.Memory.resume", "sources.Memory.settle", "sources.Iterator.resume",
    "sources.Iterator.settle", "sources.Files", "sources.Lines", "sources.SQLite", "col.in_", "col.not_in",
    "col.__add__", "col.__and__",
}  # fmt: skip


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    made = Trial(Outcome(), tmp_path)
    yield made
    made.check("all")
    made.renew()
    assert not made.outcome.faults, "\n\n".join(made.outcome.faults)


def test_every_public_function_is_tried() -> None:
    assert forgotten() == []


@pytest.mark.filterwarnings("ignore::everview.errors.HistoryWarning")
def test_calls_work_as_long_as_nothing_is_replaced(trial: Trial) -> None:
    for name, call in calls().items():
        if name in NEVER_RIGHT:
            continue
        world = trial.at_hand()
        args, named = call.arguments(world, {})
        try:
            call.of(world)(*args, **named)
        except ev.EverviewError as error:
            raise AssertionError(f"{name} is refused") from error
        trial.go_on()


def test_one_argument_replaced(trial: Trial) -> None:
    kinds = list(values())
    one_argument(trial, calls(), lambda place: random.Random(place).sample(kinds, 3))


def test_several_arguments_replaced(trial: Trial) -> None:
    rng = random.Random(1)
    for _ in range(150):
        several(trial, rng)


def test_rows(trial: Trial) -> None:
    rows_in(trial, random.Random(1).sample(all_rows(), 500))


def test_texts(trial: Trial) -> None:
    texts(trial, 250, random.Random(1))
