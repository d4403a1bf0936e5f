"""Keywords that name entities, queries over two databases, and variables without a question mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import everview as ev
from everview.errors import EdnError

CARS = """[{:db/ident :car/color :db/valueType :db.type/ref :db/cardinality :db.cardinality/one}
           {:db/ident :red} {:db/ident :blue :hex "00f"}
           {:db/id "b" :car/name "Beetle" :car/color :red} {:db/id "m" :car/name "Mini" :car/color :blue}]"""


@pytest.fixture
def db() -> ev.Database:
    db = ev.connect()
    db.transact(CARS)
    return db


def test_a_keyword_names_an_entity_wherever_one_stands(db: ev.Database) -> None:
    red = db.edn("[:find [?n ...] :where [?c :car/color :red] [?c :car/name ?n]]", "red")
    assert red.answer() == ["Beetle"]
    assert db.edn("[:find ?h . :where [:blue :hex ?h]]") == "00f"
    assert sorted(db.edn("[:find [?a ...] :where [:blue ?a]]")) == [":db/ident", ":hex"]
    assert db.edn('[:find ?i . :where [?c :car/name "Mini"] [?c :car/color ?k] [?k :db/ident ?i]]') == ":blue"
    assert db.edn("[:find ?n . :in $ ?k :where [?c :car/color ?k] [?c :car/name ?n]]", args=[":blue"]) == "Mini"
    db.transact('[[:db/add :red :hex "f00"] {:car/name "Jeep" :car/color :red} {:db/ident :red :hex "e00"}]')
    assert sorted(red.answer()) == ["Beetle", "Jeep"]
    assert sorted(db.edn("[:find [?h ...] :where [:red :hex ?h]]")) == ["e00", "f00"]
    db.transact("[[:db/retractEntity :red]]")
    assert red.answer() == []
    assert db.verify()


def test_idents_stay(tmp_path: Any) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.transact(CARS)
    with ev.connect(tmp_path / "state") as again:
        again.transact('[[:db/add :red :hex "f00"]]')
        assert again.edn("[:find ?h . :where [?e :db/ident :red] [?e :hex ?h]]") == "f00"


def test_two_databases_are_asked_together(db: ev.Database) -> None:
    other = ev.connect()
    other.transact(
        '[{:db/id 70 :called "Mini" :price 12.5 :on #inst "2026-01-02"} {:db/id 71 :called "Fiat" :price 3.0}]'
    )
    query = "[:find ?c ?p :in $ $shop :where [?c :car/name ?n] [$shop ?s :called ?n] [$shop ?s :price ?p]]"
    number = db.edn('[:find ?c . :where [?c :car/name "Mini"]]')
    assert db.edn(query, args=[other]) == db.edn(query, args=[db, other]) == [(number, 12.5)]
    missing = "[:find ?n :in $ $shop :where [$shop _ :called ?n] (not [$ _ :car/name ?n])]"
    assert db.edn(missing.replace("[$ _", "[_"), args=[other]) == [("Fiat",)]
    other.transact("[[:db/retract 70 :price 12.5]]")
    assert db.edn(query, args=[other]) == []


def test_a_database_by_another_name(db: ev.Database) -> None:
    view = db.edn("[:find ?n :in $ $same :where [?c :car/color :red] [$same ?c :car/name ?n]]", "v", args=[db])
    assert view.rows() == [("Beetle",)]
    db.transact('[{:car/name "Jeep" :car/color :red}]')
    assert len(view.rows()) == 2


def test_variables_without_a_question_mark(db: ev.Database, tmp_path: Any) -> None:
    asked = '[:find n (count c) :keys name number :in $ % k :where [c :car/color k] (called c n) [(!= n "x")]]'
    rules = "[[(called ?c ?n) [?c :car/name ?n]]]"
    assert db.edn(asked, args=[rules, ":red"], dialect="symbols") == [{"name": "Beetle", "number": 1}]
    with ev.connect(tmp_path / "state") as kept:
        kept.transact(CARS)
        kept.edn(
            "{:find [(pull c [:car/name])] :where [[c :car/color _] (not [c :car/color :red])]}", "v", dialect="symbols"
        )
    with ev.connect(tmp_path / "state") as again:
        assert again.view("v").rows() == [({":car/name": ["Mini"]},)]
        again.transact('[{:car/name "Jeep" :car/color :blue}]')
        assert len(again.view("v").rows()) == 2


Attempt = Callable[[ev.Database, ev.Database], Any]
REFUSED: dict[str, Attempt] = {
    "no entity has :db/ident": lambda db, _: db.transact('[[:db/add :green :hex "0f0"]]'),
    '"x" is no ident': lambda db, _: db.transact('[[:db/add 5 :db/ident "x"]]'),
    ":db/x is no ident": lambda db, _: db.transact("[{:db/ident :db/x}]"),
    "an attribute without a name": lambda db, _: db.transact("[{:db/valueType :db.type/long}]"),
    "is of entity": lambda db, _: db.transact("[{:db/id 99 :db/ident :red}]"),
    "no entity has the ident :a": lambda _, other: other.edn("[:find ?x :where [:a :called ?x]]"),
    "reads one database, and was given two": lambda db, other: db.edn(
        "[:find ?x :in $ $o :where [$o ?x :called]]", "v", args=[other]
    ),
    '$o: attribute ":cald" does not exist': lambda db, other: db.edn(
        "[:find ?x :in $ $o :where [$o ?x :cald]]", args=[other]
    ),
    "facts are read by their attributes": lambda db, other: db.edn(
        "[:find ?x :in $ $o :where [$o ?x ?a]]", args=[other]
    ),
    "given for what is no source": lambda db, other: db.edn("[:find ?x :in $ ?o :where [?x :hex ?o]]", args=[other]),
    'dialect of EDN "sql" does not exist': lambda db, _: db.edn("[:find ?x :where [?x :hex]]", dialect="sql"),
    "e is no variable": lambda db, _: db.edn("[:find e :where [e :hex]]"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(db: ev.Database, message: str) -> None:
    other = ev.connect()
    other.transact('[{:called "Mini"}]')
    with pytest.raises(EdnError) as refused:
        REFUSED[message](db, other)
    assert message in str(refused.value)
    assert refused.value.hint
