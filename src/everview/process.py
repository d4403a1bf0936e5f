"""Which process this is: a forked child has copies of what its parent opened, and must not use them.

Two processes that go on from one open state would both append to the same files. So whatever is open knows how many
forks there had been when it was made, and compares.

>>> made = forks()
>>> require_same(made, "the database")
"""

from __future__ import annotations

import os

from everview.errors import ForkedProcess

_forks = [0]  # between the first process and this one


def _forked() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_forked)


def forks() -> int:
    """How many forks lie between the first process and this one."""
    return _forks[0]


def require_same(made: int, what: str) -> None:
    """Refuse what was made before a fork, by the number of `forks` then."""
    if made != _forks[0]:
        raise ForkedProcess(
            f"{what} was opened by another process, of which this one is a fork",
            hint="connect after the fork, in the process that uses it; or start processes by spawn",
        )
