"""The limits of a server: how much one request, one session or one subscriber may take."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field, fields

from everview.errors import EverviewError
from everview.serve.memory import memory_to_take


def keep_within(memory_bytes: int) -> None:
    """Let this process take no more memory than that: who asks for more gets an error, and the process goes on."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """What a server allows; beyond it a request is refused with `LimitReached`, and a subscriber is cut off."""

    rows: int = 1_000_000  # of an answer
    body_bytes: int = 64 << 20  # of a request
    statement_seconds: float = 30.0  # of one statement, waiting for its turn not counted
    connections: int = 20_000  # at once, of every kind
    waiting: int = 10_000  # statements that wait for their turn
    stalled_seconds: float = 600.0  # after which a client that takes nothing of what it is sent is given up
    readers: int = 4  # threads that answer queries
    subscriber_changes: int = 1_000  # that wait for one subscriber
    subscriber_rows: int = 100_000  # in the changes that wait for one subscriber
    kept_changes: int = 10_000  # of a view, for subscribers that come back
    kept_rows: int = 1_000_000  # in those
    keys: int = 100_000  # idempotency keys that are remembered
    memory_bytes: int = field(default_factory=memory_to_take)  # of the server's process; see `keep_within`

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise EverviewError(f"the limit {limit.name} is {value!r}", hint="give a positive number")
