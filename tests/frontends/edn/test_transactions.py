"""Transactions of facts: sets, cardinalities, temporary names, unique values, rows of tables; all of it or nothing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import DefinitionError, EdnError, EverviewError, TransactionError

ALL = "[:find ?e ?a ?v :where [?e ?a ?v]]"
PEOPLE = """
[{:db/ident :name :db/valueType :db.type/string :db/cardinality :db.cardinality/one}
 {:db/ident :email :db/valueType :db.type/string :db/cardinality :db.cardinality/one :db/unique :db.unique/identity}
 {:db/ident :friend :db/valueType :db.type/ref}
 {:db/ident :boss :db/valueType :db.type/ref :db/cardinality :db.cardinality/one}]
"""


@pytest.fixture
def db() -> Any:
    return ev.connect()


@pytest.fixture
def people(db: Any) -> Any:
    db.transact(PEOPLE)
    return db


@pytest.fixture
def tracks(db: Any) -> Any:
    db.sql("""
        CREATE TABLE track (id BIGINT PRIMARY KEY, name STRING NOT NULL, rating BIGINT);
        CREATE TABLE likes (who STRING, what BIGINT, PRIMARY KEY (who, what));
        CREATE TABLE capital (country STRING PRIMARY KEY, city STRING NOT NULL);
        CREATE TABLE bag (a BIGINT, b BIGINT);
        CREATE MATERIALIZED VIEW pairs AS SELECT a, b FROM bag;
        INSERT INTO track VALUES (1, 'Sinnerman', 5), (2, 'So What', NULL);
    """)
    return db


def facts(db: Any) -> list[Any]:
    return sorted(db.edn(ALL), key=repr)


# -- facts are a set


def test_adding_twice_and_retracting_what_is_not_there_changes_nothing(db: Any) -> None:
    db.transact("[[:db/add 1 :to 2] [:db/add 1 :to 2]]")
    epoch = db.epoch
    assert db.transact("[[:db/add 1 :to 2] [:db/retract 1 :to 3] [:db/retract 9 :to 9]]").changes == {}
    assert (facts(db), db.epoch) == ([(1, ":to", 2)], epoch)


def test_the_parts_count_in_order(db: Any) -> None:
    db.transact("[[:db/add 1 :to 2] [:db/retract 1 :to 2] [:db/add 1 :to 3]]")
    assert facts(db) == [(1, ":to", 3)]
    db.transact("[[:db/retract 1 :to 3] [:db/add 1 :to 3] [:db/retract 1 :to]]")
    assert facts(db) == []


def test_one_transaction_is_one_tick(db: Any) -> None:
    view = db.edn("[:find ?a ?b :where [?a :to ?b]]", name="edges")
    told: list[Any] = []
    view.subscribe(lambda changes, _: told.append(sorted(changes)))
    done = db.transact('[[:db/add 1 :to 2] [:db/add 2 :to 3] [:db/add 1 :name "Ada"]]')
    assert sorted(done.changes["edges"]) == [((1, 2), 1), ((2, 3), 1)]
    db.transact("[[:db/retract 1 :to 2] [:db/add 2 :to 4]]")
    assert told == [[((1, 2), 1), ((2, 3), 1)], [((1, 2), -1), ((2, 4), 1)]]


def test_python_data_and_maps(db: Any) -> None:
    db.transact([[":db/add", 1, ":to", 2], {":db/id": 1, ":name": "Ada", ":tag": [":a", "b"]}])
    assert facts(db) == [(1, ":name", "Ada"), (1, ":tag", ":a"), (1, ":tag", "b"), (1, ":to", 2)]
    db.transact([[":db/retract", 1, ":tag", "b"]])
    assert (1, ":tag", "b") not in facts(db)


def test_edn_takes_transactions_too(db: Any) -> None:
    assert db.edn('[{:db/id "x" :name "Ada"}]').tempids == {"x": 1}
    assert db.edn("[]").tempids == {}
    assert facts(db) == [(1, ":name", "Ada")]


def test_values_of_every_type(db: Any) -> None:
    db.transact("""[{:db/id 1 :flag true :count 3 :rate 1.5 :price 2.50M :text "x" :kind :a/b
                     :at #inst "2026-01-01T00:00:00Z" :day #ev/date "2026-01-02" :raw #ev/bytes "00ff"}]""")
    row = db.edn("""[:find [?f ?c ?r ?p ?t ?k ?at ?d ?raw] :where [1 :flag ?f] [1 :count ?c] [1 :rate ?r] [1 :price ?p]
                    [1 :text ?t] [1 :kind ?k] [1 :at ?at] [1 :day ?d] [1 :raw ?raw]]""")
    moment = dt.datetime(2026, 1, 1)
    assert row == (True, 3, 1.5, Decimal("2.50"), "x", ":a/b", moment, dt.date(2026, 1, 2), b"\x00\xff")
    assert len(facts(db)) == 9
    db.edn(ALL, name="all")
    assert db.verify()


# -- types of attributes


def test_the_first_value_says_the_type(db: Any) -> None:
    db.transact("[[:db/add 1 :age 36]]")
    with pytest.raises(EdnError, match='1:2: the values of :age are BIGINT, and "x" is none'):
        db.transact('[[:db/add 2 :age "x"]]')
    with pytest.raises(EdnError, match="the values of :age are BIGINT"):
        db.transact("[[:db/add 2 :age 1.5]]")
    db.transact("[[:db/add 2 :rate 1.5] [:db/add 3 :rate 2]]")
    assert facts(db) == [(1, ":age", 36), (2, ":rate", 1.5), (3, ":rate", 2.0)]


def test_a_failed_transaction_leaves_no_attribute(db: Any) -> None:
    with pytest.raises(EdnError):
        db.transact('[[:db/add 1 :age 36] [:db/add 2 :age "x"]]')
    assert (db.tables(), db.views()) == ([], [])
    db.transact('[[:db/add 2 :age "x"]]')
    assert facts(db) == [(2, ":age", "x")]


def test_a_query_before_any_fact(db: Any) -> None:
    ring = db.edn("{:find [?a ?b ?c] :where [[?a :to ?b] [?b :to ?c] [?c :to ?a]]}", name="ring")
    db.transact("[[:db/add 1 :to 2] [:db/add 2 :to 3] [:db/add 3 :to 1]]")
    assert sorted(ring.rows()) == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    with pytest.raises(EdnError, match="the values of :to are BIGINT"):
        db.transact('[[:db/add 1 :to "x"]]')


def test_a_query_before_any_fact_says_the_type_if_it_can(db: Any) -> None:
    view = db.edn("[:find ?n ?a :where [?e :name ?n] [?e :age ?a] [(< ?a 18)]]", name="young")
    told: list[Any] = []
    view.subscribe(lambda changes, _: told.extend(changes))
    assert [str(of) for of in view.schema.types] == ["ANY", "BIGINT"]
    db.transact('[{:db/id 1 :name "Ada" :age 7}]')
    assert [str(of) for of in view.schema.types] == ["STRING", "BIGINT"]
    assert view.rows() == [("Ada", 7)]
    assert told == [(("Ada", 7), 1)]
    assert db.verify()


def test_an_attribute_of_unknown_type_is_read(db: Any) -> None:
    db.edn("[:find ?n :where [?e :name ?n]]", name="names")
    with pytest.raises(DefinitionError, match="names reads it"):
        db.drop(":name")
    db.edn("[:find ?e :where [?e :name]]", name="names", replace=True)
    db.transact('[[:db/add 1 :name "Ada"]]')
    assert db.view("names").rows() == [(1,)]
    with pytest.raises(DefinitionError, match='there is a view "names" already'):
        db.edn("[:find ?e :where [?e :age]]", name="names")
    assert ":age" not in db.tables()


def test_views_over_views_of_unknown_types(db: Any) -> None:
    db.edn("[:find ?n :where [?e :name ?n]]", name="names")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT * FROM names")
    db.transact('[[:db/add 1 :name "Ada"]]')
    assert db.view("n").rows() == [("Ada",)]


def test_views_range_over_attributes_that_come_later(db: Any) -> None:
    db.transact("[[:db/add 1 :to 2]]")
    view = db.edn("[:find ?a (count ?e) :where [?e ?a _]]", name="attributes")
    everything = db.edn(ALL, name="all")
    db.transact('[[:db/add 1 :name "Ada"] [:db/add 2 :name "Bob"]]')
    assert sorted(view.rows()) == [(":name", 2), (":to", 1)]
    assert sorted(everything.rows(), key=repr) == facts(db)
    db.transact("[[:db/retract 1 :name] [:db/retract 1 :to 2]]")
    assert everything.rows() == [(2, ":name", "Bob")]
    assert db.verify()


# -- cardinality


def test_cardinality_one_replaces(people: Any) -> None:
    people.edn("[:find ?n :where [_ :name ?n]]", name="names")
    people.transact('[[:db/add 1 :name "Ada"]]')
    done = people.transact('[[:db/add 1 :name "Eve"] [:db/add 1 :name "Ida"]]')
    assert sorted(done.changes["names"]) == [(("Ada",), -1), (("Ida",), 1)]
    people.transact('[[:db/retract 1 :name "Ada"]]')
    assert people.view("names").rows() == [("Ida",)]
    people.transact('[[:db/retract 1 :name "Ida"]]')
    assert people.view("names").rows() == []


def test_a_cardinality_changes_only_before_the_first_fact(db: Any) -> None:
    db.transact("[{:db/ident :x :db/cardinality :db.cardinality/one}]")
    db.transact("[{:db/ident :x :db/cardinality :db.cardinality/many}]")
    db.transact("[[:db/add 1 :x 1] [:db/add 1 :x 2]]")
    assert len(facts(db)) == 2
    with pytest.raises(EdnError, match=":x has facts, and its cardinality does not change"):
        db.transact("[{:db/ident :x :db/cardinality :db.cardinality/one}]")


def test_cas(people: Any) -> None:
    people.transact('[[:db/cas 1 :name nil "Ada"]]')
    people.transact('[[:db/cas 1 :name "Ada" "Eve"]]')
    with pytest.raises(TransactionError, match='1:2: :db/cas: :name is "Eve", not "Ada"'):
        people.transact('[[:db/cas 1 :name "Ada" "Ida"]]')
    with pytest.raises(EdnError, match="has many"):
        people.transact("[[:db/cas 1 :friend 1 2]]")
    assert facts(people) == [(1, ":name", "Eve")]


# -- entities


def test_temporary_names(people: Any) -> None:
    done = people.transact("""[{:db/id "ada" :name "Ada" :friend ["bob" -7]} {:db/id "bob" :name "Bob"}
                               [:db/add -7 :name "Cy"]]""")
    assert done.tempids == {"ada": 1, "bob": 2, -7: 3}
    assert sorted(people.edn("[:find ?a ?b :where [?a :friend ?b]]")) == [(1, 2), (1, 3)]
    assert people.transact('[{:name "Dee"}]').tempids == {}
    assert (4, ":name", "Dee") in facts(people)


def test_numbers_are_not_given_twice(people: Any) -> None:
    people.transact('[[:db/add 7 :name "Ada"] [:db/retractEntity 7]]')
    people.transact('[[:db/add 7 :name "Ada"]]')
    people.transact("[[:db/retractEntity 7]]")
    assert people.transact('[{:db/id "x" :name "Bob"}]').tempids == {"x": 8}
    people.transact('[[:db/add 1000000000000 :name "far"] {:name "next"}]')
    assert (1000000000001, ":name", "next") in facts(people)
    people.apply({":name": [((1000000000002, "by hand"), 1)]})
    assert people.transact('[{:db/id "x" :name "Cy"}]').tempids == {"x": 1000000000003}


def test_maps_in_maps_are_entities(db: Any) -> None:
    db.transact('[{:db/id 1 :name "Ada" :address {:street "High" :number 7}}]')
    assert db.edn("[:find ?s ?n :where [1 :address ?a] [?a :street ?s] [?a :number ?n]]") == [("High", 7)]


def test_unique_values_find_their_entities(people: Any) -> None:
    people.transact('[{:db/id 1 :email "a@b" :name "Ada"}]')
    assert people.transact('[{:db/id "x" :email "a@b" :name "Eve"}]').tempids == {"x": 1}
    people.transact('[{:email "a@b" :friend {:email "c@d"}} {:email "c@d" :name "Cy"}]')
    people.transact('[[:db/add [:email "c@d"] :boss [:email "a@b"]]]')
    assert people.edn('[:find ?n . :where [?e :boss [:email "a@b"]] [?e :name ?n]]') == "Cy"
    assert people.edn('[:find ?n . :where [[:email "a@b"] :name ?n]]') == "Eve"
    with pytest.raises(EdnError, match=':email "a@b" is of entity 1, and unique'):
        people.transact('[[:db/add 9 :email "a@b"]]')
    people.transact('[[:db/retract 1 :email "a@b"] [:db/add 9 :email "a@b"]]')
    with pytest.raises(EdnError, match='no entity has :email "z"'):
        people.transact('[[:db/add [:email "z"] :name "Z"]]')
    with pytest.raises(EdnError, match=":name is not unique"):
        people.transact('[[:db/add [:name "Eve"] :name "Z"]]')


def test_an_entity_goes_with_what_refers_to_it(people: Any) -> None:
    people.transact('[{:db/id 1 :name "Ada" :friend [2 3]} {:db/id 2 :name "Bob" :friend 1} {:db/id 3 :boss 1}]')
    people.transact("[[:db/retractEntity 1]]")
    assert facts(people) == [(2, ":name", "Bob")]


# -- rows of tables


def test_attributes_of_tables(tracks: Any) -> None:
    tracks.transact(
        '[[:db/add 1 :track/name "Feeling Good"] [:db/add 2 :track/rating 4] [:db/retract 1 :track/rating 5]]'
    )
    assert sorted(tracks.table("track").rows()) == [(1, "Feeling Good", None), (2, "So What", 4)]
    tracks.transact("[[:db/retract 2 :track/rating 9] [:db/retract 3 :track/rating]]")
    assert (2, "So What", 4) in tracks.table("track").rows()
    tracks.transact('[{:track/id 3 :track/name "Naima"} {:db/id 4 :track/name "Lush Life" :track/rating 3}]')
    assert sorted(tracks.table("track").rows())[2:] == [(3, "Naima", None), (4, "Lush Life", 3)]
    tracks.transact(
        "[[:db/retractEntity [:track/id 3]] [:db/add [:track/id 4] :track/rating 1] [:db/cas 2 :track/rating 4 5]]"
    )
    assert sorted(tracks.table("track").rows()) == [(1, "Feeling Good", None), (2, "So What", 5), (4, "Lush Life", 1)]
    assert tracks.edn('[:find ?r . :where [[:track/name "Lush Life"] :track/rating ?r]]') == 1


def test_attributes_that_are_tables_of_two_columns(tracks: Any) -> None:
    tracks.transact(
        '[[:db/add "ada" :likes 1] [:db/add "ada" :likes 2] [:db/add "ada" :likes 2] [:db/add "UK" :capital "York"]]'
    )
    tracks.transact('[[:db/retract "ada" :likes 1] [:db/add "UK" :capital "London"]]')
    assert tracks.table("likes").rows() == [("ada", 2)]
    assert tracks.table("capital").rows() == [("UK", "London")]


MISTAKES = [
    ("{}", "is no transaction"),
    ("[1]", "is no transaction"),
    ("[[:db/frob 1 :to 2]]", "1:2: :db/frob is nothing that a transaction does"),
    ("[[:db/add 1 :to]]", "1:2: :db/add with 2 terms"),
    ("[[1 :to 2]]", "1:3: 1 does not say what is to be done"),
    ("[[:db/add 1 :to nil]]", "1:17: nil is no value"),
    ("[[:db/add nil :to 1]]", "1:11: nil is no entity"),
    ("[[:db/add 1.5 :to 1]]", "1:2: 1.5 is no entity"),
    ("[[:db/add 1 :to [1 2]]]", "1:2: [1 2] is no value of a new attribute :to"),
    ("[{:db/id 1}]", "1:2: a map of facts has no fact"),
    ("[[:db/retract 1 :nowhere 2]]", '1:2: attribute ":nowhere" does not exist'),
    ("[[:db/add 1 :db/x 2]]", "1:2: :db/x is no name for an attribute"),
    ("[[:db/add 1 :track/nmae 2]]", '1:2: attribute ":track/nmae" does not exist'),
    ("[[:db/add 1 :track/name 2]]", "1:2: the values of :track/name are STRING, and 2 is none"),
    ('[[:db/add "x" :track/name "y"]]', "1:2: the keys of track are BIGINT"),
    ("[[:db/add 9 :track/rating 2]]", "there is no row of track with id 9, and a new one needs name"),
    ("[[:db/retract 1 :track/name]]", "1:2: :track/name is NOT NULL"),
    ("[[:db/add 1 :track/id 2]]", "1:2: :track/id is the key, and does not change"),
    ('[{:track/name "x"}]', "a row of track has a key, which the map does not say"),
    ("[[:db/add 1 :bag 2]]", "1:2: :bag: table bag is no set of facts"),
    ("[[:db/add 1 :pairs 2]]", "1:2: :pairs is a view"),
    ("[{:db/ident :x :db/valueType :db.type/frob}]", "there is no type :db.type/frob"),
    ("[{:db/ident :x :db/cardinality :db.cardinality/few}]", "there is no cardinality"),
    ("[{:db/ident :x :db/index true}]", ":db/index says nothing of an attribute here"),
    ("[{:db/ident :track/name :db/cardinality :db.cardinality/one}]", ":track/name is an attribute of a table already"),
    ('[{:db/ident :x :db/valueType :db.type/long} [:db/add 1 :x "a"]]', "the values of :x are BIGINT"),
    ("[{:db/ident :x :db/valueType :db.type/ref} [:db/add 1 :x \"nobody\"]]", 'nothing is said of the entity "nobody"'),
    ("[{:db/ident :x :db/valueType :db.type/long} {:db/id 1 :x {:y 1}}]", ":x holds values, and a map is an entity"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_leave_no_trace(tracks: Any, text: str, message: str) -> None:
    before = tracks.tables(), tracks.table("track").rows(), tracks.views()
    with pytest.raises(EverviewError) as error:
        tracks.transact(text)
    assert message in error.value.message
    assert error.value.hint
    assert (tracks.tables(), tracks.table("track").rows(), tracks.views()) == before


# -- around them


def test_inside_a_transaction(db: Any) -> None:
    db.transact("[[:db/add 1 :to 2]]")
    with db.transaction():
        db.transact("[[:db/add 2 :to 3]]")
        db.transact("[[:db/retract 1 :to]]")
    assert facts(db) == [(2, ":to", 3)]
    with pytest.raises(TransactionError), db.transaction():
        db.transact("[[:db/add 2 :new 3]]")
    with pytest.raises(EdnError), db.transaction():
        db.transact("[[:db/add 5 :to 3]]") and db.transact("[[:db/frob]]")
    assert facts(db) == [(2, ":to", 3)]


def test_facts_are_tables(db: Any) -> None:
    db.transact('[{:db/id 1 :name "Ada" :music/likes 7}]')
    assert db.sql("SELECT n.v, l.v FROM `:name` n JOIN `:music/likes` l ON l.e = n.e") == [("Ada", 7)]
    db.apply({":name": [((2, "Bob"), 1)]})
    assert (2, ":name", "Bob") in facts(db)


def test_all_of_it_is_durable(tmp_path: Path) -> None:
    where = str(tmp_path / "state")
    with ev.connect(where) as db:
        db.transact(PEOPLE)
        db.transact('[{:db/id "x" :email "a@b" :name "Ada" :friend {:name "Bob"}}]')
        db.edn("[:find ?n ?x :in $ [[?n ?x]] :where [_ :name ?n]]", name="given", args=[[("Ada", 1.5), ("Eve", 2)]])
        db.edn("[:find ?x :where [_ :unheard ?x]]", name="open")
        rules = "[[(near ?a ?b) [?a :friend ?b]] [(near ?a ?c) (near ?a ?b) [?b :friend ?c]]]"
        db.edn("[:find ?a ?b :in $ % :where (near ?a ?b)]", name="near", args=[rules])
    with ev.connect(where) as db:
        assert db.view("given").rows() == db.view("given").answer() == [("Ada", 1.5)]
        done = db.transact('[{:db/id "x" :email "a@b" :friend {:db/id "y" :name "Cy"}} [:db/add 1 :unheard 2.5]]')
        assert done.tempids == {"x": 1, "y": 3}
        assert sorted(db.view("near").rows()) == [(1, 2), (1, 3)]
        assert db.view("open").rows() == [(2.5,)]
        db.transact('[[:db/retract 1 :name "Ada"]]')
        assert db.view("given").rows() == []
        assert db.verify()


def test_shards(tmp_path: Path) -> None:
    with ev.connect(str(tmp_path / "state"), shards=3) as db:
        db.transact(PEOPLE)
        db.transact([{":db/id": n, ":name": f"n{n}", ":friend": [n + 1, n + 2]} for n in range(1, 20)])
        db.transact('[[:db/retract 3 :friend] [:db/retractEntity 5] [:db/add 7 :name "x"]]')
        found = db.edn("[:find ?a ?b :where [?a :friend ?b]]")
        wanted = [(n, m) for n in range(1, 20) for m in (n + 1, n + 2) if n not in (3, 5) and m != 5]
        assert sorted(found) == wanted
        assert db.edn("[:find ?n . :where [7 :name ?n]]") == "x"
