"""The cost of a change follows the change, not the data: one tick, over ever larger states."""

from __future__ import annotations

from figures import AtMost, Findings
from isolate import measured
from scale import Scale

PER_TICK = 1_000


def findings(scale: Scale) -> Findings:
    found = Findings("State size")
    sizes = (scale.few_orders, scale.orders, scale.many_orders)
    runs = {count: [] for count in sizes}
    for _ in range(scale.rounds):
        for count in sizes:
            stream = {"count": count, "per_tick": PER_TICK, "ticks": scale.scaling_ticks}
            runs[count].append(measured("join_group_by.py", **stream))
    median = {count: min(run["median"] for run in runs[count]) for count in sizes}
    for count in sizes:
        found.add(f"median tick of {PER_TICK:,} changes, {count:,} orders", median[count] * 1e6, "µs")
    small, _, large = sizes
    ratio = median[large] / median[small]
    found.add(f"{large // small:,} times the orders: the tick takes", ratio, "times as long", AtMost(4))
    found.raw = {"median": median, "runs": runs}
    return found
