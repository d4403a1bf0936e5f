"""Inductive rules: what is derived in a tick holds in the next, whatever happens between the two."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DatalogError, DefinitionError, EverviewError
from everview.frontends.pomologic.parse import parse
from frontends.pomo_streams import Fed, change
from frontends.pomologic.naive import Clock

CHECKBOX = """
checkbox(id: Id, state: S)@next     :- checkbox(id: Id, state: S), !clicks(id: Id).
checkbox(id: Id, state: true)@next  :- checkbox(id: Id, state: false), clicks(id: Id).
checkbox(id: Id, state: false)@next :- checkbox(id: Id, state: true), clicks(id: Id).
checkbox(id: Id, state: false)      :- box(id: Id), !known(id: Id).
known(id: Id)@next                  :- box(id: Id).
"""


def boxes(**how: Any) -> ev.Database:
    db = ev.connect(**how)
    db.create_table("box", "id STRING NOT NULL", key="id")
    db.create_table("clicks", "id STRING NOT NULL")
    db.datalog(CHECKBOX, dialect="pomologic")
    return db


def states(db: ev.Database) -> dict[str, bool]:
    rows = db.view("checkbox").rows()
    assert len({id_ for id_, _ in rows}) == len(rows), "a box is in one state"
    return dict(rows)


def click(db: ev.Database, *ids: str) -> None:
    """Two ticks: the clicks are there in the first, and gone in the second."""
    db.apply({"clicks": [((id_,), 1) for id_ in ids]})
    db.apply({"clicks": [((id_,), -1) for id_ in ids]})


@pytest.mark.parametrize("shards", [1, 3])
def test_a_checkbox_is_toggled_by_clicks(shards: int) -> None:
    db = boxes(shards=shards)
    db.apply({"box": [(("a",), 1), (("b",), 1)]})
    assert states(db) == {"a": False, "b": False}
    db.apply({"clicks": [(("a",), 1)]})
    assert states(db) == {"a": False, "b": False}, "the click is seen in the next tick"
    db.apply({"clicks": [(("a",), -1)]})
    assert states(db) == {"a": True, "b": False}
    for _ in range(3):
        assert not any(map(len, db.apply({}).values())), "time goes on, and nothing changes"
    click(db, "a", "b")
    assert states(db) == {"a": False, "b": True}
    assert db.verify()


def test_a_click_that_stays_toggles_in_every_tick() -> None:
    db = boxes()
    db.apply({"box": [(("a",), 1)], "clicks": [(("a",), 1)]})
    found = []
    for _ in range(4):
        db.apply({})
        found.append(states(db)["a"])
    assert found == [True, False, True, False]


def test_only_a_tick_moves_time() -> None:
    db = boxes()
    db.apply({"box": [(("a",), 1)], "clicks": [(("a",), 1)]})
    with db.transaction():
        pass
    db.create_table("other", "x BIGINT")
    db.datalog("fine(id: I) :- box(id: I).", dialect="pomologic")
    assert states(db) == {"a": False}
    db.apply({"other": [((1,), 1)]})
    assert states(db) == {"a": True}


def test_a_failed_tick_moves_nothing() -> None:
    db = boxes()
    db.apply({"box": [(("a",), 1)], "clicks": [(("a",), 1)]})
    for changes in ({"box": [(("a",), 1)]}, {"clicks": [(("nobody",), -1)]}):
        with pytest.raises(EverviewError):
            db.apply(changes)
    with pytest.raises(EverviewError), db.transaction() as tx:
        tx.insert("box", [("a",)])
    assert states(db) == {"a": False}
    db.apply({})
    assert states(db) == {"a": True}
    assert db.verify()


def test_a_tick_that_fails_in_an_operator_moves_nothing() -> None:
    db = boxes()
    db.sql("CREATE TABLE divisor (x BIGINT NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW d AS SELECT 1 DIV x AS y FROM divisor")
    db.apply({"box": [(("a",), 1)], "clicks": [(("a",), 1)]})
    with pytest.raises(EverviewError):
        db.apply({"divisor": [((0,), 1)]})
    assert states(db) == {"a": False}
    db.apply({"divisor": [((1,), 1)]})
    assert states(db) == {"a": True}
    assert db.verify()


@pytest.mark.parametrize("durability", ["tick", "periodic", "none"])
def test_state_is_there_again(tmp_path: Path, durability: str) -> None:
    with boxes(path=tmp_path / "state", durability=durability) as db:
        db.apply({"box": [(("a",), 1), (("b",), 1)]})
        click(db, "a")
        db.apply({"clicks": [(("b",), 1)]})
        assert states(db) == {"a": True, "b": False}
    with ev.connect(tmp_path / "state", durability=durability) as db:
        assert states(db) == {"a": True, "b": False}
        assert db.tables() == ["box", "clicks"]
        db.apply({"clicks": [(("b",), -1)]})
        assert states(db) == {"a": True, "b": True}
        db.vacuum()
        db.apply({})
    with ev.connect(tmp_path / "state", durability=durability) as db:
        click(db, "a")
        assert states(db) == {"a": False, "b": True}
        assert db.verify()


def test_what_is_carried_survives_other_rules() -> None:
    db = boxes()
    db.apply({"box": [(("a",), 1), (("b",), 1)]})
    click(db, "a")
    reset = db.datalog(
        "checkbox(id: I, state: false)@next :- clicks(id: I), reset(id: I). reset(id: 'z').", dialect="pomologic"
    )
    assert states(db) == {"a": True, "b": False}
    click(db, "b")
    assert states(db) == {"a": True, "b": True}
    reset.remove()
    db.sql("CREATE MATERIALIZED VIEW on_now AS SELECT id FROM checkbox WHERE state")
    assert sorted(db.view("on_now").rows()) == [("a",), ("b",)]
    click(db, "a")
    assert db.view("on_now").rows() == [("b",)]
    assert db.verify()


def test_rows_are_as_wide_as_any_rule_makes_them() -> None:
    db = ev.connect()
    db.create_table("given", "x BIGINT, y INT NOT NULL")
    db.create_table("event", "x BIGINT NOT NULL, y BIGINT NOT NULL")
    db.datalog(
        """seen(x: X, y: Y) :- given(x: X, y: Y).
           seen(x: X, y: Y)@next :- event(x: X, y: Y).
           seen(x: 7, y: 8)@next :- given(y: 3).""",
        dialect="pomologic",
    )
    db.apply({"given": [((None, 3), 1)], "event": [((1, 2), 1)]})
    db.apply({"event": [((1, 2), -1)]})
    assert set(db.view("seen").rows()) == {(None, 3), (1, 2), (7, 8)}
    db.apply({"given": [((None, 3), -1)]})
    assert db.view("seen").rows() == [(7, 8)]
    db.apply({})
    assert db.view("seen").rows() == []


def test_listeners_hear_of_the_next_tick() -> None:
    db = boxes()
    heard: list[Any] = []
    db.apply({"box": [(("a",), 1)]})
    db.view("checkbox").subscribe(lambda changes, epoch: heard.append(sorted(changes)))
    click(db, "a")
    assert heard == [[(("a", False), -1), (("a", True), 1)]]


def test_what_moves_by_itself_is_not_changed_by_hand() -> None:
    db = boxes()
    with pytest.raises(DefinitionError, match="moves on by itself"):
        db.apply({"checkbox@before": [(("a", True), 1)]})
    with pytest.raises(DefinitionError, match="a part of checkbox"):
        db.drop("checkbox@next")
    db.drop("checkbox")
    assert db.views() == ["known", "known@next"]
    assert "checkbox@before" not in db._core.catalog.tables
    db.drop("known")
    assert db.views() == []
    assert db.rules() == []
    db.datalog(CHECKBOX, dialect="pomologic")
    assert states(db) == {}


def test_carried_rows_keep_their_types() -> None:
    db = ev.connect()
    db.create_table("n", "x BIGINT NOT NULL")
    db.create_table("d", "x DECIMAL(30,2) NOT NULL")
    db.datalog("r(x: X)@next :- n(x: X).", dialect="pomologic")
    with pytest.raises(DatalogError, match="r carries rows"):
        db.datalog("r(x: X)@next :- d(x: X).", dialect="pomologic")
    db.apply({"n": [((1,), 1)]})
    db.apply({})
    assert db.view("r").rows() == [(1,)]


PROGRAMS = [
    """on(x: X)@next :- on(x: X), !event(x: X). on(x: X)@next :- event(x: X), !on(x: X).
       many(n: N) :- N := count : on().""",
    """fresh(x: X, l: L) :- node(x: X, label: L), !seen(x: X). seen(x: X)@next :- node(x: X).
       seen(x: X)@next :- seen(x: X), !edge(a: X). recent(x: X, id: C)@next :- C := fresh(x: X), node(x: X).""",
    """reached(x: X)@next :- event(x: X). reached(x: X)@next :- reached(x: X), !edge(a: X, b: X).
       reached(x: B) :- reached(x: A), edge(a: A, b: B).""",
]
ACTIONS = ["reopen", "fail", "define", "nothing"]


@pytest.mark.parametrize("text", PROGRAMS)
@settings(max_examples=8)
@given(script=st.lists(st.tuples(st.sampled_from(ACTIONS), st.lists(change, max_size=5)), max_size=8))
def test_whatever_happens_between_ticks(text: str, script: list[tuple[str, list[Any]]]) -> None:
    program = parse(text)
    with TemporaryDirectory() as root:
        fed, clock = Fed.new(f"{root}/state"), Clock(program)
        fed.database.datalog(text, dialect="pomologic")
        wanted = clock.tick(fed.facts)
        for number, (action, changes) in enumerate(script):
            if action == "reopen":
                fed.database.close()
                fed.database = ev.connect(f"{root}/state")
            elif action == "fail":
                with pytest.raises(EverviewError):
                    fed.database.apply({"event": [((9,), -1)], "edge": [((9, 9), 1)]})
            elif action == "define":
                fed.database.datalog(f"more{number}(x: X) :- {program.heads[0]}(), event(x: X).", dialect="pomologic")
            assert {head: fed.view(head) for head in program.heads} == {head: wanted[head] for head in program.heads}
            fed.apply(changes)
            wanted = clock.tick(fed.facts)
        assert {head: fed.view(head) for head in program.heads} == {head: wanted[head] for head in program.heads}
        assert fed.database.verify()
        fed.database.close()


def test_attributes_are_carried_by_name() -> None:
    db = ev.connect()
    db.create_table("t", "x BIGINT NOT NULL, y STRING NOT NULL")
    db.datalog("r(a: X, b: Y)@next :- t(x: X, y: Y). r(b: Y, a: X)@next :- r(b: Y, a: X).", dialect="pomologic")
    db.datalog("r(b: 'z', a: 0) :- t().", dialect="pomologic")
    db.apply({"t": [((1, "p"), 1)]})
    db.apply({"t": [((1, "p"), -1)]})
    db.remove_rules("r(a: X, b: Y)@next :- t(x: X, y: Y).", dialect="pomologic")
    db.datalog("q(b: B) :- r(a: 1, b: B).", dialect="pomologic")
    db.apply({})
    assert db.view("q").rows() == [("p",)]
    assert db.verify()


def test_removing_the_rules_forgets_what_was_carried() -> None:
    db = boxes()
    db.apply({"box": [(("a",), 1)]})
    click(db, "a")
    (given,) = db.rules()
    given.remove()
    assert db.views() == []
    assert list(db._core.catalog.tables) == ["box", "clicks"]
    db.datalog(CHECKBOX, dialect="pomologic")
    assert states(db) == {"a": False}
