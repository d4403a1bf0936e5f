"""As-of joins drawn at random, with ticks in which their rows meet."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

from hypothesis import strategies as st

from everview.operators.asof import Toward
from oracle.cases import Case, Tick

Row = tuple[Any, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]

START = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)

# A type of times, and its times by number.
TIMES: dict[str, Callable[[int], Any]] = {
    "BIGINT NOT NULL": lambda i: i - 3,
    "BIGINT": lambda i: i - 3,
    "INTEGER": lambda i: i,
    "TIMESTAMP NOT NULL": lambda i: START + dt.timedelta(microseconds=i),
    "TIMESTAMP": lambda i: START - dt.timedelta(microseconds=i),
    "DATE": lambda i: dt.date(1969, 12, 27) + dt.timedelta(days=i),
    "DECIMAL(9,2)": lambda i: Number(i - 2) / 100,
}
WEIGHTS = [1, 1, 1, 2, -1, -1, -2]
TEXTS = [None, "", "a", "ab", "ä", "\U0001f600", "\uffff"]


def rows_of(chance: random.Random, of: str, rest: Callable[[random.Random], Row]) -> list[Row]:
    """Some rows (key, time, rest): few keys and times, so that they meet."""
    nulls = [] if "NOT NULL" in of else [None]

    def when() -> Any:
        return chance.choice([*map(TIMES[of], range(10)), *nulls])

    return [(chance.choice(["x", "y", None]), when(), *rest(chance)) for _ in range(chance.randint(3, 25))]


def ticks(seed: int, count: int, size: int, left: str, right: str) -> list[Tick]:
    """So many changes in so many ticks, some of them empty; rows come back, cancel, and go without having come."""
    chance = random.Random(seed)
    pool = [("l", row) for row in rows_of(chance, left, lambda c: (c.randint(0, 2),))]
    pool += [("r", row) for row in rows_of(chance, right, lambda c: (c.choice(TEXTS), c.choice([None, Number(1)])))]
    found: list[Tick] = [{} for _ in range(count)]
    for _ in range(size):
        name, row = chance.choice(pool)
        chance.choice(found).setdefault(name, []).append((row, chance.choice(WEIGHTS)))
    return found


@st.composite
def cases(draw: Draw) -> Case:
    """An as-of join of any kind, and its life."""
    of = draw(st.sampled_from([*TIMES]))
    other = draw(st.sampled_from([t for t in TIMES if t.split()[0] == of.split()[0]]))
    options = {
        "direction": draw(st.sampled_from([t.value for t in Toward])),
        "tolerance": draw(st.sampled_from([None, None, 0, 1, 3])),
        "strict": draw(st.booleans()),
        "how": draw(st.sampled_from(["inner", "left"])),
    }
    if options["tolerance"] is not None and of.startswith("DECIMAL"):
        options["tolerance"] = 0
    on = draw(st.sampled_from([[["k", "k"]], []]))
    picks = [[0, "k"], [0, "t"], [0, "n"], [1, "t"], [1, "v"], [1, "w"], [1, "k"]]
    sources = {
        "l": f"k STRING, t {of}, n BIGINT NOT NULL",
        "r": f"k STRING, t {other}, v STRING, w DECIMAL(24,3)",
    }
    drawn = st.tuples(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 60))
    life = draw(drawn.map(lambda d: ticks(*d, of, other)))
    return Case(sources, [["asof_join", 0, 1, on, ["t", "t"], options, picks]], life)
