"""The longest property tests, with new examples for as long as there is time.

The tests have fifty examples of each, so that everybody's loop stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from time import monotonic

from hypothesis import HealthCheck, given, seed, settings

from frontends.edn.test_properties import check as check_facts
from frontends.edn.test_properties import queries, ticks
from oracle.aggregations import aggregated_cases
from oracle.test_aggregates import checked
from oracle.ways import check
from strategies import cases
from torture.outcome import Outcome

EXAMPLES = 50  # in a round, after which the time is looked at
PROPERTIES: dict[str, Callable[[], None]] = {
    "plans": given(case=cases(max_steps=12, max_ticks=10))(check),
    "aggregates": given(case=aggregated_cases(max_ticks=8))(checked),
    "facts": given(queries(), ticks)(check_facts),
}


def run(seconds: float, first: int, properties: dict[str, Callable[[], None]] = PROPERTIES) -> Outcome:
    """Round after round, each from a seed of its own; at least one."""
    outcome, end = Outcome(), monotonic() + seconds
    bounds = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    rounds = ((number, name, holds) for number in count(first) for name, holds in properties.items())
    for number, name, holds in rounds:
        try:
            seed(number)(bounds(holds))()
        except Exception as failure:  # noqa: BLE001  whatever it is, it is a fault
            notes = "\n".join(getattr(failure, "__notes__", ()))
            outcome.faults.append(f"{name}, seed {number}: {failure!r}\n{notes}")
        outcome.tried[f"rounds of {name}"] += 1
        if monotonic() >= end:
            return outcome
    raise AssertionError("numbers do not end")
