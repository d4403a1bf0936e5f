"""The timeline of what is served: when each of the last epochs ran, for how long, where, and what came in and out.

An epoch is a tick of the database; or, where a Spark pipeline's state is served, an epoch of the pipeline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from everview.observe import TickReport

KEPT: Final = 1_000  # epochs
PROCESS: Final = "process"  # where the ticks of a database run


@dataclass(frozen=True, slots=True)
class EpochSeen:
    """One epoch: number, beginning, duration, rows in and out by name, and placement."""

    epoch: int
    began: float  # seconds since 1970
    seconds: float
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    placement: str = PROCESS
    reason: str = ""  # for the placement
    steps: Mapping[str, float] = field(default_factory=dict[str, float])  # seconds of each, if it had several
    failure: str | None = None

    @classmethod
    def of_tick(cls, report: TickReport) -> Self:
        """The epoch of a tick."""
        rows_in, rows_out = dict(report.rows_in), dict(report.rows_out)
        return cls(report.epoch, report.began / 1e9, report.seconds, rows_in, rows_out, failure=report.failure)

    @classmethod
    def of_pipeline(cls, said: Mapping[str, Any]) -> Self:
        """The epoch that a pipeline has noted; see `everview.runtimes.spark.epoch_notes`."""
        times = dict(said.get("times") or {})
        seconds = float(times.pop("total", 0.0))
        return cls(
            epoch=int(said["epoch"]),
            began=float(said.get("ended", 0.0)) - seconds,
            seconds=seconds,
            rows_in=dict(said.get("rows_in") or {}),
            rows_out=dict(said.get("rows_out") or {}),
            placement=str(said.get("placement", "")),
            reason=str(said.get("reason", "")),
            steps=times,
        )

    def as_json(self) -> dict[str, Any]:
        """The parts by name."""
        return asdict(self)


EpochsOf = Callable[[int], list[EpochSeen]]  # the last so many epochs, oldest first


class TicksSeen:
    """The last ticks of a database, as an observer of them."""

    def __init__(self) -> None:
        self._seen: deque[EpochSeen] = deque(maxlen=KEPT)

    def __call__(self, report: TickReport) -> None:
        self._seen.append(EpochSeen.of_tick(report))

    def epochs(self, count: int) -> list[EpochSeen]:
        """The last ticks, oldest first."""
        return list(self._seen)[-count:] if count > 0 else []
