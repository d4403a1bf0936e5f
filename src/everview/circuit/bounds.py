"""How far a loop may go in one tick before it is taken for one that never ends: rounds, rows and memory.

A loop that makes new values may have no fixed point, and no number of rounds tells it from one that is merely long. So
every loop is bounded, and what is bounded is what would harm: the rounds it takes, the rows its traces gain, and the
bytes these are. A tick that goes beyond a bound fails with `EndlessLoop`, and nothing of it has happened.

>>> LoopBounds(rounds=500).of(None, grows=True)
500
>>> LoopBounds(rounds=500).of(None, grows=False), LoopBounds(rounds=500).of(30, grows=True)
(5000, 30)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

from everview.errors import EverviewError

ROUNDS: Final = 10_000
ROWS: Final = 100_000_000
SHARE: Final = 4  # of the machine's memory, the part that the traces of one loop may gain in one tick
LONGER: Final = 10  # times as many rounds has a loop that makes no new values: it ends, but a chain may be long
VARIABLE: Final = "EVERVIEW_LOOP_"  # and the name of a bound, in capitals


@dataclass(frozen=True, slots=True)
class LoopBounds:
    """Limits on a loop in one tick: ``rounds``, ``rows`` gained by its traces, and ``memory`` of the traces in bytes.

    Without ``memory`` it is a quarter of what the machine, or the container, has.
    """

    rounds: int = ROUNDS
    rows: int = ROWS
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "rows", "memory"):
            given = getattr(self, name)
            if given is None and name == "memory":
                continue
            if not isinstance(given, int) or isinstance(given, bool) or given < 1:
                raise EverviewError(
                    f"the {name} of a loop cannot be bounded by {given!r}", hint=f"give a number: LoopBounds({name}=…)"
                )

    def of(self, limit: int | None, *, grows: bool) -> int:
        """The most rounds of a loop: its own ``limit``; without one, ``rounds`` if it ``grows``, and more if not."""
        if limit is not None:
            return limit
        return self.rounds if grows else LONGER * self.rounds

    @property
    def bytes(self) -> int:
        return _machine() // SHARE if self.memory is None else self.memory

    @classmethod
    def given(cls, environment: Mapping[str, str] | None = None) -> LoopBounds:
        """The bounds that the environment sets: ``EVERVIEW_LOOP_ROUNDS``, ``…_ROWS``, ``…_MEMORY``.

        >>> LoopBounds.given({"EVERVIEW_LOOP_ROWS": "1000000"})
        LoopBounds(rounds=10000, rows=1000000, memory=None)
        """
        variables = os.environ if environment is None else environment
        said = {f.name: variables[name] for f in fields(cls) if (name := f"{VARIABLE}{f.name.upper()}") in variables}
        return cls(**{name: _number(name, text) for name, text in said.items()})


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        variable = f"{VARIABLE}{name.upper()}"
        raise EverviewError(f"{variable} is {text!r}, and no number", hint=f"set it as {variable}=10000") from None


@cache
def _machine() -> int:
    """The bytes of memory that this process may have at most."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            said = Path(file).read_text().strip()
        except OSError:
            continue
        if said.isdigit():
            return min(physical, int(said))
    return physical
