"""Generators under change: a view holds what the oracle and a plain reading of the arrays say, after every tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everview.circuit.circuit import Circuit
from everview.errors import EverviewError
from everview.frontends.sql import Tables, bind_query
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.oracle.plans import evaluate
from everview.runtimes.embedded import Embedded
from everview.types import Schema
from everview.zset import ZSet

SCHEMA = Schema.parse("k INT, a ARRAY<INT>, s ARRAY<STRUCT<x: INT, y: STRING>>")
Read = Callable[[int, Any, Any], list[tuple[Any, ...]]]


def fields(struct: Any) -> tuple[Any, ...]:
    return (None, None) if struct is None else tuple(struct)


def plain(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, e) for e in a or ()]


def outer(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, e) for e in a or (None,)]


def placed(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, at, e) for at, e in enumerate(a or ())]


def placed_outer(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return placed(k, a, s) or [(k, None, None)]


def numbered(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, e, at) for at, e in enumerate(a or (), 1)]


def inlined(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, *fields(e)) for e in s or ()]


def inlined_outer(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return inlined(k, a, s) or [(k, None, None)]


def stacked(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, "one", k), (k, "two", k * 2)]


def above(k: int, a: Any, s: Any) -> list[tuple[Any, ...]]:
    return [(k, e) for e in a or () if e is not None and e > 1] or [(k, None)]


VIEWS: dict[str, Read] = {
    "SELECT explode(a), explode_outer(a) AS f, k FROM t": lambda k, a, s: [(e, f, k) for e in a or () for f in a],
    "SELECT k, e FROM t LATERAL VIEW explode(a) x AS e": plain,
    "SELECT k, e FROM t LATERAL VIEW OUTER explode(a) x AS e": outer,
    "SELECT k, e FROM t LATERAL VIEW explode_outer(a) x AS e": outer,
    "SELECT k, p, e FROM t LATERAL VIEW posexplode(a) x AS p, e": placed,
    "SELECT k, p, e FROM t LATERAL VIEW OUTER posexplode(a) x AS p, e": placed_outer,
    "SELECT k, x.* FROM t LATERAL VIEW posexplode_outer(a) x": placed_outer,
    "SELECT k, u, v FROM t LATERAL VIEW inline(s) x AS u, v": inlined,
    "SELECT k, x, y FROM t LATERAL VIEW OUTER inline(s) z": inlined_outer,
    "SELECT k, n, v FROM t LATERAL VIEW stack(2, 'one', k, 'two', k * 2) x AS n, v": stacked,
    "SELECT k, e FROM t, LATERAL explode(a) AS x(e)": plain,
    "SELECT k, e FROM t CROSS JOIN LATERAL explode_outer(t.a) AS x(e)": outer,
    "SELECT k, x.* FROM t, LATERAL posexplode(a) AS x(p, e)": placed,
    "SELECT k, x.* FROM t JOIN LATERAL posexplode_outer(a) AS x": placed_outer,
    "SELECT k, x.* FROM t, LATERAL UNNEST(a) WITH ORDINALITY AS x(e, n)": numbered,
    "SELECT k, e, n FROM t LEFT JOIN LATERAL UNNEST(a) WITH ORDINALITY AS x(e, n) ON TRUE": lambda k, a, s: (
        numbered(k, a, s) or [(k, None, None)]
    ),
    "SELECT k, col, ordinality FROM t, LATERAL UNNEST(array(k, 2)) WITH ORDINALITY": lambda k, a, s: [
        (k, k, 1),
        (k, 2, 2),
    ],
    "SELECT k, z.* FROM t, LATERAL inline(s) AS z(u, v)": inlined,
    "SELECT k, z.* FROM t, LATERAL inline_outer(s) AS z": inlined_outer,
    "SELECT k, e FROM t LEFT JOIN LATERAL explode(a) AS x(e) ON TRUE": outer,
    "SELECT k, e FROM t LEFT JOIN LATERAL explode(a) AS x(e) ON e > 1": above,
    "SELECT k, p, e FROM t LEFT JOIN LATERAL posexplode(a) AS x(p, e) ON TRUE": placed_outer,
    "SELECT k, e FROM t, LATERAL (SELECT explode(a) AS e)": plain,
    "SELECT k, explode(a) FROM t": plain,
    "SELECT k, explode_outer(a) AS e FROM t": outer,
    "SELECT k, posexplode(a) FROM t": placed,
    "SELECT k, posexplode_outer(a) AS (p, e) FROM t": placed_outer,
    "SELECT k, inline(s) AS (u, v) FROM t": inlined,
    "SELECT k, inline_outer(s) FROM t": inlined_outer,
    "SELECT k, stack(2, 'one', k, 'two', k * 2) AS (n, v) FROM t": stacked,
    "SELECT k, (SELECT count(*) FROM explode(a)) AS n FROM t": lambda k, a, s: [(k, len(a or ()))],
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM explode(a) AS x(e) WHERE e > 1)": lambda k, a, s: [
        (k,) for _ in range(any(e is not None and e > 1 for e in a or ()))
    ],
    "SELECT k, e, f FROM t LATERAL VIEW explode(a) x AS e LATERAL VIEW OUTER explode(a) y AS f": lambda k, a, s: [
        (k, e, f) for e in a or () for f in a
    ],
}


def shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as a view shows it, with structs by the names of their fields."""
    structs = row[2] and [None if s is None else dict(zip("xy", s, strict=True)) for s in row[2]]
    return (*row[:2], structs)


def drawn(chance: random.Random) -> tuple[Any, ...]:
    """A row of few values, so that many are there twice."""
    numbers = [chance.choice([None, 1, 2, 3]) for _ in range(chance.randrange(3))]
    structs = [chance.choice([None, (1, "p"), (2, None)]) for _ in range(chance.randrange(3))]
    return chance.randrange(2), chance.choice([None, tuple(numbers)]), chance.choice([None, tuple(structs)])


def ticks(chance: random.Random, count: int = 6) -> Iterator[ZSet]:
    """Rows that come and go, some several at a time."""
    for _ in range(count):
        yield ZSet.of([(drawn(chance), chance.choice([-1, 1, 1, 2])) for _ in range(6)])


def test_views_hold_what_arrays_say() -> None:
    catalog = Tables({"t": SCHEMA})
    plans = {text: bind_query(text, catalog).plan for text in VIEWS}
    circuit = Circuit()
    streams = {"t": circuit.source("t", SCHEMA)}
    for text, plan in plans.items():
        lower(optimize(plan), streams, circuit).sink(text)
    run, held = Embedded(circuit), ZSet()
    debts = dict.fromkeys((drawn(random.Random(seed)) for seed in range(200)), 3)
    run.tick({"t": list(debts.items())})  # of every row enough that none is ever owed
    held = ZSet.of(debts.items())
    for number, change in enumerate(ticks(random.Random(3))):
        run.tick({"t": list(change)})
        held = held + change
        for text, read in VIEWS.items():
            wanted = Counter[tuple[Any, ...]]()
            for row, weight in held:
                for image in read(*row):
                    wanted[image] += weight
            wanted = {row: weight for row, weight in wanted.items() if weight}
            assert dict(run.view(text).contents()) == wanted, f"tick {number}: {text}"
            if number % 3 == 2:
                found = evaluate(plans[text], {"t": [(shown(row), weight) for row, weight in held]})
                assert dict(found) == wanted, f"the oracle, tick {number}: {text}"


REFUSED = [
    ("SELECT explode(k) FROM t", "has no elements"),
    ("SELECT inline(a) FROM t", "array of structs"),
    ("SELECT k, posexplode(a) AS e FROM t", "1 names for 2 columns"),
    ("SELECT k FROM t LATERAL VIEW explode(a) x AS e, f", "2 names for 1 columns"),
    ("SELECT explode(collect_list(k)) FROM t", "the aggregate collect_list in explode"),
    ("SELECT explode(a) + 1 FROM t", "inside of an expression"),
    ("SELECT stack(2, 1, 'a', 'b', 'c') FROM t", "in one column"),
    ("SELECT stack(k, 1) FROM t", "a number of rows"),
    ("SELECT k FROM t LATERAL VIEW upper(a) x AS e", "LATERAL VIEW"),
    ("SELECT k FROM t, LATERAL upper(k) AS x(e)", "table function"),
    ("SELECT e FROM t FULL JOIN LATERAL explode(a) AS x(e) ON TRUE", "full join of elements"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_a_generator_cannot_do(text: str, said: str) -> None:
    with pytest.raises(EverviewError, match=said):
        bind_query(text, Tables({"t": SCHEMA}))


def test_generators_that_go_side_by_side_are_refused() -> None:
    with pytest.raises(EverviewError, match="a second generator"):
        bind_query("SELECT unnest(a), unnest(a) FROM t", Tables({"t": SCHEMA}), "duckdb")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, u.z FROM t, LATERAL UNNEST(a) AS u(z)",
        "SELECT k, z FROM t CROSS JOIN UNNEST(a) AS u(z)",
        "SELECT k, z FROM t JOIN LATERAL UNNEST(a) AS u(z) ON TRUE",
    ],
)
def test_unnest_of_other_dialects_is_lateral(text: str) -> None:
    plan = bind_query(text, Tables({"t": SCHEMA}), "postgres").plan
    rows = ZSet.of([((1, (2, None), None), 2), ((2, (), None), 1), ((3, None, None), 1)])
    assert dict(evaluate(plan, {"t": rows})) == {(1, 2): 2, (1, None): 2}
