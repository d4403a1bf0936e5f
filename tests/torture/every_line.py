"""An exception at every line of an act, once each: no sample, but a list that is gone through to its end.

A trial of `torture.interrupts` counts how often its act comes through every line of Everview. `places` lists them, a
line that changes what outlives a call up to `OFTEN` times and when it is come to last, and `interrupt_at` raises at
one. Lines that only compute are the same in every act, so they are tried in the first that comes through them.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from torture.interrupts import SOURCE, STATEFUL, Interrupt, Trial, gives_back, kinds, traced
from torture.outcome import Outcome

OFTEN = 2  # how many of the times that a line is come to are tried, besides the last
RENEW = 150  # after so many tries a state directory is tidied up, for that it stays small


@dataclass(frozen=True)
class Place:
    """A line of a file, the n-th time that it is come to."""

    file: str
    line: int
    time: int

    @property
    def stateful(self) -> bool:
        """Whether the file changes what outlives a call."""
        return self.file.startswith(tuple(f"{SOURCE}/{part}" for part in STATEFUL))

    def __str__(self) -> str:
        return f"{self.file.removeprefix(f'{SOURCE}/')}:{self.line}, time {self.time}"


class Passed:
    """How often each line of Everview is come to in this thread: something for `sys.settrace`."""

    def __init__(self) -> None:
        self.lines: Counter[tuple[str, int]] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._local if frame.f_code.co_filename.startswith(f"{SOURCE}/") else None

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and not gives_back(frame):
            self.lines[frame.f_code.co_filename, frame.f_lineno] += 1
        return self._local


class RaiseAt:
    """Raises an error at one place; code that has not its line runs as fast as ever."""

    def __init__(self, place: Place, error: type[BaseException] = Interrupt) -> None:
        self.place, self.error, self.raised = place, error, False
        self._left = place.time
        self._has: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if self.raised or code.co_filename != self.place.file:
            return None
        if code not in self._has:
            self._has[code] = any(line == self.place.line for *_, line in code.co_lines())
        return self._local if self._has[code] else None

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno == self.place.line and not self.raised and not gives_back(frame):
            self._left -= 1
            if not self._left:
                self.raised = True
                raise self.error(str(self.place))
        return self._local


def places(trial: Trial, often: int = OFTEN) -> list[Place]:
    """Every line that the act of a trial comes through, the first few times and the last."""
    passed = Passed()
    trial.once(partial(traced, passed))
    found: list[Place] = []
    for (file, line), count in sorted(passed.lines.items()):
        times = {*range(1, min(often, count) + 1), count}
        found += [Place(file, line, time) for time in sorted(times)]
    return found


def interrupt_at(trial: Trial, place: Place) -> str | None:
    """Cut the act of a trial short at one place; what is wrong then, if anything is."""
    return trial.interrupt_by(partial(traced, RaiseAt(place)), str(place))


def faults_at(trial: Trial, among: Iterable[Place]) -> Iterator[str | None]:
    """What is wrong after each of some places, if anything is; what is asked after a fault is of no worth."""
    for count, place in enumerate(among, 1):
        yield interrupt_at(trial, place)
        if trial.path is not None and count % RENEW == 0:
            trial.db.vacuum()


@dataclass
class Enumeration:
    """All places of all acts, as far as there is time: which were tried, and how many there are."""

    outcome: Outcome
    often: int = OFTEN
    there: int = 0
    tried: int = 0
    whole: int = 0  # acts of which nothing was left out
    computing: set[tuple[str, Place]] = field(default_factory=set[tuple[str, Place]])

    def run(self, seconds: float, rng: random.Random, say: Callable[[str], None] = lambda said: None) -> None:
        """Go through the acts; each has its part of the time, and what it leaves is for the others."""
        until, todo = time.monotonic() + seconds, kinds()
        for number, (scenario, durability) in enumerate(todo):
            share = max(0.0, until - time.monotonic()) / (len(todo) - number)
            before = time.monotonic(), self.tried, len(self.outcome.faults)
            self._try_act(partial(Trial.of, scenario, durability), durability, share, rng)
            took, tried = time.monotonic() - before[0], self.tried - before[1]
            say(f"{scenario.name}, {durability}: {tried:,} tried in {took:.0f} s, {self.outcome.faults[before[2] :]}")
        acts = f"{self.whole} of {len(todo)} acts in full"
        self.outcome.tried["lines enumerated"] += self.tried
        self.outcome.notes.insert(0, f"{self.tried:,} of {self.there:,} lines of acts were interrupted, {acts}")

    def _try_act(self, made: Callable[[Path], Trial], where: str, seconds: float, rng: random.Random) -> None:
        until = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as home:
            todo = self._new(places(trial := made(Path(home)), self.often), where)
            self.there += len(todo)
            rng.shuffle(todo)
            left = iter(todo)
            before, number = self.tried, 0
            while time.monotonic() < until or seconds == float("inf"):
                wrong = self._until_wrong(trial, left, until)
                if wrong is None:
                    break
                self.outcome.faults.append(wrong)
                number += 1
                trial = made(Path(home) / str(number))  # the one with a fault shows more of them
            else:
                trial.close()
            self.whole += self.tried - before == len(todo)

    def _new(self, found: list[Place], where: str) -> list[Place]:
        todo: list[Place] = []
        for place in found:
            once = where, Place(place.file, place.line, 1)
            if place.stateful:
                todo.append(place)
            elif once not in self.computing:
                self.computing.add(once)
                todo.append(place)
        return todo

    def _until_wrong(self, trial: Trial, left: Iterator[Place], until: float) -> str | None:
        for fault in faults_at(trial, left):
            self.tried += 1
            if fault is not None:
                return fault
            if time.monotonic() >= until:
                break
        trial.close()
        return None


def run(seconds: float, seed: int) -> Outcome:
    """Interrupt every line of every act, in an order that the seed says, or as many as there is time for."""
    outcome = Outcome()
    Enumeration(outcome).run(seconds, random.Random(seed), partial(print, flush=True))
    return outcome
