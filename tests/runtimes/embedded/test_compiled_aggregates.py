"""Aggregates that are routines of the compiled tick, and the order of texts: by instructions and by steps alike."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.circuit import Circuit, incrementalize
from everview.errors import WeightOverflow
from everview.kernels import levels
from everview.runtimes import state
from everview.runtimes.embedded import Embedded

SCHEMA = "g INTEGER NOT NULL, x BIGINT, y DOUBLE, w DECIMAL(30,4), m DECIMAL(9,2) NOT NULL, z STRING, f DOUBLE NOT NULL"
DOMAINS: list[list[Any]] = [
    [0, 1],
    [0, 1, -3, 2**53 + 1, -(2**62), None],
    [0.0, 0.1, 1e300, -2.5, 5e-324, math.nan, -math.inf, None],
    [Decimal("1.5000"), Decimal("-98765432109876543210.1234"), None],
    [Decimal("1.50"), Decimal("-2.25")],
    ["", "a", "ab", "ä", "\U0001f600", "\uffff", "text " * 300, None],
    [1.5, -7.25, 1e-160],
]
LINEAR = {
    "vx": ("variance", "x"),
    "px": ("variance pop", "x"),
    "sy": ("stddev", "y"),
    "py": ("stddev pop", "y"),
    "vw": ("variance", "w"),
    "sm": ("stddev", "m"),
    "dv": ("variance distinct", "x"),
    "cv": ("covariance", ["f", "y"]),
    "cp": ("covariance pop", ["f", "f"]),
    "ba": ("bit_and", "x"),
    "bo": ("bit_or", "x"),
    "bx": ("bit_xor", "x"),
    "am": ("avg double", "m"),
    "ts": ("try sum", "x"),
    "ta": ("try avg", "w"),
    "n": "count",
    "s": ("sum", "m"),
}
ENDS = {"least": ("min", "z"), "greatest": ("max", "z"), "n": "count", "most": ("max", "m"), "v": ("variance", "m")}

rows = st.tuples(st.tuples(*map(st.sampled_from, DOMAINS)), st.sampled_from([1, 1, 2, -1]))
lives = st.lists(st.lists(rows, max_size=8), min_size=1, max_size=4)


def _linear(circuit: Circuit) -> None:
    circuit.source("t", SCHEMA).aggregate(["g"], **LINEAR).sink("found")


def _ends(circuit: Circuit) -> None:
    circuit.source("t", SCHEMA).aggregate(["g"], **ENDS).sink("found")


def _tops(circuit: Circuit) -> None:
    source = circuit.source("t", SCHEMA)
    source.top(3, ["z desc nulls first", "x"], by=["g"]).sink("found")
    source.top(2, ["m desc", "z"], skip=1).sink("few")


def _run(build: Callable[[Circuit], None]) -> Embedded:
    circuit = Circuit()
    build(circuit)
    run = Embedded(incrementalize(circuit))
    for trace, _, _ in run.state:
        trace.past.ledger[levels.LIMIT] = 9
    return run


@pytest.mark.parametrize("build", [_linear, _ends, _tops])
@settings(max_examples=25)
@given(ticks=lives)
def test_instructions_do_what_steps_do(build: Callable[[Circuit], None], ticks: list[Any]) -> None:
    with patch.object(state, "is_compilable", lambda _: False):
        by_steps = _run(build)
        assert by_steps.state.compiled is None
    compiled = _run(build)
    for tick in ticks:
        wanted, found = by_steps.tick({"t": tick}), compiled.tick({"t": tick})
        for name, change in wanted.items():
            assert change.rows.tolist() == found[name].rows.tolist()
    machine = compiled.state.compiled
    assert machine is not None
    assert not [how for node in range(len(compiled.program.circuit)) if "Python" in (how := machine.how(node))]


def test_texts_are_compared_after_the_dictionary_has_grown_and_shrunk() -> None:
    db = ev.connect()
    db.sql(
        """CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT NOT NULL, name STRING);
        CREATE MATERIALIZED VIEW ends AS
            SELECT g, min(name) AS least, max(upper(name)) AS greatest, stddev(id) AS d FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW few AS SELECT * FROM t ORDER BY name DESC LIMIT 4"""
    )
    for trace, _, _ in db._core.run.state:
        trace.past.ledger[levels.LIMIT] = 9
    rng, held = random.Random(5), dict[int, tuple[int, int, str]]()
    for tick in range(60):
        changes = list[tuple[tuple[int, int, str], int]]()
        for key in rng.sample(range(30), 3):
            if key in held:
                changes.append((held.pop(key), -1))
            held[key] = (key, key % 3, rng.choice("äbczß") * rng.randrange(1, 40) + str(tick))
            changes.append((held[key], 1))
        db.apply({"t": changes})
        if tick % 20 == 7:
            db.vacuum()
            assert db.verify()
    assert db.verify()
    names = sorted((row[2] for row in held.values()), key=str.encode, reverse=True)
    assert sorted(db.view("few").to_arrow()["name"].to_pylist(), key=str.encode, reverse=True) == names[:4]
    in_python = [line for view in ("ends", "few") for line in db.explain(view).splitlines() if "in Python" in line]
    assert in_python
    assert all("upper" in line for line in in_python)


def test_sums_of_intervals_are_compiled_and_bounded() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, d INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(d) AS d, avg(d) AS a, sum(m) AS m, avg(m) AS b FROM t")
    db.apply({"t": [((1, dt.timedelta(seconds=3), 7), 1), ((2, dt.timedelta(seconds=4), None), 1)]})
    assert db.verify()
    lines = [line for line in db.explain("v").splitlines() if " Weigh(" in line or " AggregateIncremental(" in line]
    assert len(lines) == 2
    assert all("compiled, call 1" in line for line in lines)
    with pytest.raises(WeightOverflow, match="sum"):
        db.apply({"t": [((3, None, 2**31 - 1), 1)]})
    db.apply({"t": [((3, None, 2**31 - 8), 1)]})
    assert db.verify()
