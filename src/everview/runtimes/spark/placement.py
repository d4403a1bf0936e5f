"""Where a tick runs: small changes in the driver's process, large ones as tasks on the cluster.

Both work on the same store and give the same answer, so only time decides. A place costs something per use and
something per row; both are measured as ticks go by, starting from what was measured on two cores. A decision says
its reason, and can be forced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Where = Literal["driver", "cluster"]
Place = Literal["auto", "driver", "cluster"]
MEMORY = 0.3  # the share of the newest measurement in what is believed
MANY = 20_000  # rows: from here on, a measurement says something about the cost of a row
MOST = 4_000_000  # rows that the driver takes at once, whatever they cost
DRIVER_ROW, CLUSTER_ROW = 2.0e-6, 1.2e-6  # seconds, as believed at first
TRIED = 200_000  # rows that are fetched to see whether there are more


@dataclass
class Cost:
    """Seconds for a number of rows, as a straight line."""

    fixed: float
    row: float
    warm: bool = False  # the first measurement is about loading code,
    warm_for_many: bool = False  # and so is the first of many rows: they take other code

    def of(self, rows: int) -> float:
        return self.fixed + rows * self.row

    def learn(self, rows: int, seconds: float) -> None:
        """Adjust to a measurement: one of many rows corrects the cost of a row, one of few the cost of a use."""
        many = rows >= MANY
        if not self.warm or (many and not self.warm_for_many):
            self.warm, self.warm_for_many = True, many or self.warm_for_many
        elif many:
            self.row += MEMORY * (max(seconds - self.fixed, 0.0) / rows - self.row)
        else:
            self.fixed += MEMORY * (max(seconds - rows * self.row, 0.0) - self.fixed)


@dataclass(frozen=True, slots=True)
class Decision:
    """The place of a tick or an iteration, and the reason."""

    where: Where
    reason: str


@dataclass
class Placement:
    """Decides, and learns from what the decisions cost."""

    place: Place = "auto"
    driver: Cost = field(default_factory=lambda: Cost(0.01, DRIVER_ROW))
    cluster: Cost = field(default_factory=lambda: Cost(0.6, CLUSTER_ROW))
    round: Cost = field(default_factory=lambda: Cost(0.25, 0.4e-6))  # one stage of one iteration on the cluster
    here: Cost = field(default_factory=lambda: Cost(0.0005, 0.4e-6))  # and on the driver

    def tick(self, rows: int) -> Decision:
        """Decide for a tick whose size is known."""
        return self._decide(rows, self.driver, self.cluster)

    def fetched(self, rows: int) -> Decision:
        """Decide for a tick whose rows are on the driver already: they stay there."""
        on_driver, on_cluster = self.driver.of(rows), self.cluster.of(rows)
        costs = f"about {_time(on_driver)} on the driver, {_time(on_cluster)} on the cluster"
        return Decision("driver", f"{rows:,} rows: {costs}")

    def unfetched(self) -> Decision:
        """Decide for a tick that has more rows than the driver would fetch."""
        if self.place != "auto":
            return Decision("cluster", f"{self.place} was asked for")
        return Decision("cluster", f"more than about {self.limit:,} rows, from where the cluster is faster")

    def iteration(self, rows: int) -> Decision:
        """Decide for one stage of a recursion at one time."""
        return self._decide(rows, self.here, self.round)

    def learn_driver(self, rows: int, fetching: float, ticking: float) -> None:
        """Adjust to a tick on the driver; fetched rows cost something each, and a job to begin with.

        Until the cluster has been measured, its rows are believed to become dearer or cheaper as the driver's do: the
        causes, views that are much work or a busy machine, are the same for both.
        """
        self.driver.learn(rows, ticking + (fetching if rows >= MANY else 0.0))
        if not self.cluster.warm_for_many:
            self.cluster.row = CLUSTER_ROW * self.driver.row / DRIVER_ROW

    @property
    def limit(self) -> int:
        """The most rows that the driver would fetch: if there are more, the cluster is to read them."""
        if self.place != "auto":
            return TRIED if self.place == "driver" else 0
        gain = self.driver.row - self.cluster.row
        even = (self.cluster.fixed - self.driver.fixed) / gain if gain > 0 else TRIED
        return min(TRIED, max(0, int(even)))

    def _decide(self, rows: int, driver: Cost, cluster: Cost) -> Decision:
        if self.place != "auto":
            return Decision(self.place, f"{self.place} was asked for")
        on_driver, on_cluster = driver.of(rows), cluster.of(rows)
        if rows > MOST:
            return Decision("cluster", f"{rows:,} rows are more than the driver takes at once")
        where: Where = "driver" if on_driver <= on_cluster else "cluster"
        return Decision(
            where, f"{rows:,} rows: about {_time(on_driver)} on the driver, {_time(on_cluster)} on the cluster"
        )

    def table(self) -> str:
        """The estimated costs of each place, for `explain`."""
        lines = [("tick on the driver", self.driver), ("tick on the cluster", self.cluster)]
        lines += [("iteration on the driver", self.here), ("iteration on the cluster", self.round)]
        return "\n".join(f"  {name}: {_time(cost.fixed)} + {cost.row * 1e6:.2f} µs a row" for name, cost in lines)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
