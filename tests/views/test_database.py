"""Shapes of a database's views: one call a transaction, none for what fails, and what becomes of them when views do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview import Database, connect
from everview.errors import DuplicateKey, ListenerError, NegativeWeight
from everview.views import Related, Shape
from views.given import in_order

SHAPES: dict[str, Callable[[Database], Shape]] = {
    "rows": lambda db: db.view("both").live(),
    "ordered": lambda db: db.view("both").ordered("n desc", limit=3),
    "tree": lambda db: db.view("both").tree(Related("same", "again", on="id", by="n")),
    "scalar": lambda db: db.view("count").scalar(),
}
each_shape = pytest.mark.parametrize("made", SHAPES.values(), ids=SHAPES)


def database() -> Database:
    db = connect()
    db.sql(
        "CREATE TABLE a (id BIGINT PRIMARY KEY, n BIGINT NOT NULL); CREATE TABLE b (id BIGINT PRIMARY KEY, n BIGINT)"
    )
    for name in ("both", "again"):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT id, n FROM a UNION ALL SELECT id, n FROM b")
    db.sql("CREATE MATERIALIZED VIEW count AS SELECT count(*) AS n FROM both")
    return db


@each_shape
def test_one_call_a_transaction(made: Callable[[Database], Shape]) -> None:
    db = database()
    shape, told = made(db), list[int]()
    shape.subscribe(lambda changes, epoch: told.append(epoch))
    with db.transaction() as tx:
        tx.insert("a", [(1, 1)])
        with db.transaction() as inner:
            inner.insert("b", [(1, 1), (2, 2)])
        with pytest.raises(KeyError), db.transaction() as inner:  # noqa: PT012
            inner.insert("b", [(9, 9)])
            raise KeyError
    assert told == [db.epoch]
    db.sql("BEGIN; INSERT INTO a VALUES (5, 5); INSERT INTO b VALUES (5, 5); COMMIT")
    assert told == [db.epoch - 1, db.epoch]


@each_shape
def test_what_fails_is_told_to_nobody(made: Callable[[Database], Shape]) -> None:
    db = database()
    db.apply({"a": [((1, 1), 1)]})
    shape, told = made(db), list[int]()
    before = sorted(shape.contents(), key=repr)
    shape.subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(KeyError), db.transaction() as tx:  # noqa: PT012
        tx.insert("a", [(2, 2)])
        raise KeyError
    with pytest.raises(DuplicateKey):
        db.apply({"b": [((1, 1), 1)], "a": [((1, 2), 1)]})
    with pytest.raises(NegativeWeight):
        db.apply({"a": [((7, 7), -1)]})
    db.sql("BEGIN; INSERT INTO a VALUES (5, 5); ROLLBACK")
    assert told == []
    assert sorted(shape.contents(), key=repr) == before


@each_shape
def test_a_listener_that_raises(made: Callable[[Database], Shape]) -> None:
    db = database()
    shape, told = made(db), list[int]()

    def fails(changes: Any, epoch: int) -> None:
        raise ValueError("no")

    shape.subscribe(fails)
    shape.subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(ListenerError, match="ValueError: no"):
        db.apply({"a": [((1, 1), 1)]})
    assert told == [db.epoch]
    assert len(db.table("a")) == 1


@each_shape
def test_a_dropped_view(made: Callable[[Database], Shape]) -> None:
    db = database()
    db.apply({"a": [((1, 1), 1)]})
    shape, ended = made(db), list[str]()
    before = sorted(shape.contents(), key=repr)
    shape.subscribe(lambda changes, epoch: None, ended=lambda: ended.append("end"))
    db.drop("both", cascade=True)
    assert shape.closed
    assert ended == ["end"]
    assert sorted(shape.contents(), key=repr) == before
    shape.subscribe(lambda changes, epoch: None, ended=lambda: ended.append("at once"))
    assert ended == ["end", "at once"]


@each_shape
def test_a_replaced_view(made: Callable[[Database], Shape]) -> None:
    db = database()
    db.apply({"a": [((1, 1), 1)], "b": [((2, 2), 1)]})
    shape, told = made(db), list[int]()
    shape.subscribe(lambda changes, epoch: told.append(epoch))
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW both AS SELECT id, n FROM a UNION ALL SELECT id, n FROM b WHERE n > 5")
    assert told == [db.epoch]
    assert not shape.closed
    assert sorted(shape.contents(), key=repr) == sorted(made(db).contents(), key=repr)


def test_the_order_of_the_view_itself() -> None:
    db = database()
    db.sql("CREATE MATERIALIZED VIEW best AS SELECT id, n FROM b ORDER BY n DESC, id LIMIT 2")
    best = db.view("best").ordered()
    db.apply({"b": [((1, 5), 1), ((2, 7), 1), ((3, 7), 1), ((4, None), 1)]})
    assert best.rows() == db.view("best").rows() == [(2, 7), (3, 7)]


rows = st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 3)))


@settings(max_examples=20)
@given(st.lists(st.lists(rows, max_size=4), max_size=6))
def test_limits_in_sql_and_in_the_list_agree(stream: list[list[Any]]) -> None:
    """The first rows that the circuit finds are those that a list of all rows shows."""
    db = database()
    db.sql("CREATE MATERIALIZED VIEW all_b AS SELECT id, n FROM b")
    db.sql("CREATE MATERIALIZED VIEW best AS SELECT id, n FROM b ORDER BY n DESC, id LIMIT 3 OFFSET 1")
    best, whole = db.view("best").ordered(), db.view("all_b").ordered("n desc", limit=3, offset=1)
    told: list[Any] = []
    best.subscribe(lambda changes, epoch: told.append(sorted(changes, key=repr)))
    whole.subscribe(lambda changes, epoch: told.append(sorted(changes, key=repr)))
    for upserts in stream:
        with db.transaction() as tx:
            tx.delete("b", [key for key, n in upserts if n == 3])
            tx.upsert("b", [row for row in upserts if row[1] != 3])
        assert best.rows() == whole.rows() == in_order(db.table("b").rows(), [(1, "desc")])[1:4]
        assert len(told) % 2 == 0
        assert told[-1:] == told[-2:-1]
    assert db.verify()
