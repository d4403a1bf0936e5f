"""Steps of Python's beside strands on threads: the same changes and errors as in turn, and nothing of what ended."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import everview as ev
from everview.errors import FunctionError

COUNT = 6_000


def database(threads: int, odd: Callable[[pa.Array], pa.Array]) -> ev.Database:
    db = ev.connect(threads=threads)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, s STRING)")
    db.create_view("odd", lambda of: of["t"].filter(odd, columns="v").aggregate([], n="count", total=("sum", "v")))
    for name, query in {
        "liked": "SELECT v % 10 AS d, sum(v) AS v FROM t WHERE s LIKE '%1%' GROUP BY v % 10",
        "chosen": "SELECT k % 7 AS d, sum(CASE WHEN s LIKE '%2' THEN v ELSE 0 END) AS v FROM t GROUP BY k % 7",
        "most": "SELECT v % 3 AS d, max(s) AS s, count(*) AS n FROM t GROUP BY v % 3",
        "upper": "SELECT upper(s) AS s, k FROM t WHERE v < 50",
    }.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return db


def changes(first: int, weight: int = 1) -> dict[str, pa.Table]:
    keys = list(range(first, first + COUNT))
    columns = {"k": keys, "v": [key % 97 for key in keys], "s": [f"text {key % 113}" for key in keys]}
    return {"t": pa.table(columns | {"_weight": [weight] * COUNT})}


def is_odd(v: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(v, 1), 1)


def test_threads_give_the_same() -> None:
    one, two = database(1, is_odd), database(2, is_odd)
    for change in (changes(0), changes(COUNT), changes(0, -1)):
        outputs = [{name: sorted(out) for name, out in db.apply(change).items()} for db in (one, two)]
        assert outputs[0] == outputs[1]
    two.verify()
    compiled = two._core.run.state.compiled
    assert compiled is not None
    ((_, strands, _),) = compiled._ahead._strands.values()
    assert len(strands.callers) == 3, "two filters and a choice, but not the function that makes texts"


def test_errors_are_those_in_turn() -> None:
    def refuse(v: pa.Array) -> pa.Array:
        if len(v) == COUNT:
            raise ValueError(f"too many: {len(v)}")
        return is_odd(v)

    said = list[str]()
    for threads in (1, 2):
        db = database(threads, refuse)
        with pytest.raises(FunctionError) as raised:
            db.apply(changes(0))
        said.append(str(raised.value))
        assert [db.view(name).rows() for name in ("liked", "chosen", "most")] == [[], [], []]
        db.apply({"t": changes(0)["t"].slice(0, 5_000)})
        db.verify()
    assert said[0] == said[1]


def test_an_exception_of_a_handler_ends_the_tick() -> None:
    ended = [True]

    def interrupted(v: pa.Array) -> pa.Array:
        if len(v) == COUNT and ended.pop():
            raise KeyboardInterrupt
        return is_odd(v)

    db = database(2, interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.apply(changes(0))
    assert len(db.table("t")) == 0
    ended.append(False)
    db.apply(changes(0))
    db.verify()
