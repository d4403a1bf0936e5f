"""The planted faults, each with the tests that must fail when it is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlantedFault:
    """A fault: in a module, a text that stands there once is replaced by another; `tests` are those that notice."""

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]


FAULTS = (
    PlantedFault(
        "a join of two changes passes one of them over",
        "everview.operators.join",
        "        return Step(np.concatenate(parts))",
        "        return Step(parts[0])",
        ("tests/operators/test_laws.py",),
    ),
    PlantedFault(
        "a join that reads another's trace sees both sides with their changes",
        "everview.circuit.reuse",
        "Moment.AFTER if read == first else Moment.BEFORE",
        "Moment.AFTER",
        ("tests/circuit/test_reuse.py",),
    ),
    PlantedFault(
        "a wider index stands for one by another key",
        "everview.circuit.reuse",
        "self.fields[: other.key] == other.fields[: other.key]",
        "{*other.fields[: other.key]} <= {*self.fields}",
        ("tests/circuit/test_reuse.py",),
    ),
    PlantedFault(
        "a fused projection takes words of the stream for those of the trace",
        "everview.runtimes.embedded.walk",
        "return Taken(before.columns[columns])",
        "return Taken(columns)",
        ("tests/operators/test_by_words.py", "tests/runtimes/embedded/test_hydrate.py"),
    ),
    PlantedFault(
        "a semijoin does not see the keys of its own tick",
        "everview.operators.semijoin",
        "keys_before.plus(delta_keys).weights(delta_left, key)",
        "keys_before.weights(delta_left, key)",
        ("tests/operators/test_laws.py",),
    ),
    PlantedFault(
        "distinct forgets what was there",
        "everview.operators.distinct",
        "return Step(crossings(delta, before.weights(delta, self.source.width)))",
        "return Step(crossings(delta, np.zeros(delta.shape[0], np.int64)))",
        ("tests/operators/test_laws.py",),
    ),
    PlantedFault(
        "old results of a group stay",
        "everview.operators.by_state",
        "return exchanged(old, new, operator.group_words)",
        "return exchanged(old[:0], new, operator.group_words)",
        ("tests/operators/aggregate",),
    ),
    PlantedFault(
        "min takes the last row of an order",
        "everview.operators.aggregate.ordered",
        'first = call.function in ("min", "first")',
        'first = call.function in ("max", "first")',
        ("tests/operators/aggregate",),
    ),
    PlantedFault(
        "a failed tick leaves what it appended",
        "everview.traces.trace",
        '        """Forget the open epoch."""\n        self._open = self._open[0] + 1, []',
        '        """Forget the open epoch."""\n        self._open = self._open[0] + 1, self._open[1]',
        ("tests/traces/test_trace.py", "tests/database/test_transactions.py"),
    ),
    PlantedFault(
        "a commit is not synced",
        "everview.traces.store.log",
        "        if not self._every or time.monotonic() - self._last_sync >= self._every:\n",
        "        if time.monotonic() - self._last_sync < 0:\n",
        ("tests/traces/store",),
    ),
    PlantedFault(
        "a torn record counts",
        "everview.traces.store.record",
        'END = b"END\\n"',
        'END = b""',
        ("tests/traces/store",),
    ),
    PlantedFault(
        "NOT of NULL is true",
        "everview.scalars.functions.logic",
        "def _not(",
        "def _not(out: Kind, a: Value) -> Value:\n    return pc.invert(pc.fill_null(a, False))\n\n\ndef _not_any_more(",
        ("tests/scalars/test_functions.py",),
    ),
    PlantedFault(
        "<= leaves out equal words",
        "everview.operators.where",
        '"less_equal": op.LESS | op.EQUAL',
        '"less_equal": op.LESS',
        ("tests/scalars/test_in_words.py", "tests/scalars/test_functions.py"),
    ),
    PlantedFault(
        "columns that a join's condition reads are pruned with their neighbour",
        "everview.optimize.columns",
        "places = _beside(a.places, len(a.plan.schema), b.places, width)",
        "places = _beside(a.places, len(a.plan.schema), a.places, width)",
        ("tests/optimize", "tests/frontends/sql/test_queries.py"),
    ),
    PlantedFault(
        "rows expire that a row to come may still find",
        "everview.operators.expired",
        "np.array([[*known_flag, FIRST, first - 1, 1]], np.int64)",
        "np.array([[*known_flag, FIRST, first + 60_000_000, 1]], np.int64)",
        ("tests/database/test_watermarks.py",),
    ),
    PlantedFault(
        "narrow slices lose the step between their words",
        "everview.traces.store.narrow",
        "wide *= np.uint64(step)",
        "wide *= np.uint64(1)",
        ("tests/traces/store/test_narrow.py",),
    ),
    PlantedFault(
        "a choice-domain keeps another row than the least",
        "everview.frontends.rules.choosing",
        'aggregate_call("min", (rows.column',
        'aggregate_call("max", (rows.column',
        ("tests/frontends/datalog/test_choice_and_limit.py",),
    ),
    PlantedFault(
        "rows are searched by columns that their order does not begin with",
        "everview.database.lookup",
        "return len(values) if {*schema.names[: len(values)]} == {*values} else 0",
        "return len(values)",
        ("tests/database/test_frames.py",),
    ),
)
