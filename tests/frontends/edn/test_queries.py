"""Queries and their answers: a table over one set of facts, as questions and as views, which the oracle checks."""

# ruff: noqa: E501, a case of a table stands on one line

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

import everview as ev

FACTS = """
[[:db/add 1 :name "Ada"] [:db/add 1 :age 36] [:db/add 1 :to 2] [:db/add 1 :to 3] [:db/add 1 :tag "a"] [:db/add 1 :tag "b"]
 [:db/add 2 :name "Bob"] [:db/add 2 :age 17] [:db/add 2 :to 3]
 [:db/add 3 :name "Cy"]  [:db/add 3 :age 36] [:db/add 3 :to 1] [:db/add 3 :tag "b"] [:db/add 3 :status :away]
 [:db/add 4 :name "Dee"] [:db/add 4 :parent 1]
 [:db/add 1 :parent 5] [:db/add 5 :parent 6] [:db/add 5 :score 1.5] [:db/add 6 :score 2.5]]
"""
ANCESTORS = """[[(ancestor ?a ?b) [?a :parent ?b]]
                [(ancestor ?a ?c) [?a :parent ?b] (ancestor ?b ?c)]]"""


@pytest.fixture(scope="module")
def db() -> Any:
    found = ev.connect()
    found.sql("""
        CREATE TABLE artist (id BIGINT PRIMARY KEY, name STRING NOT NULL, born DATE);
        CREATE TABLE track (id STRING PRIMARY KEY, title STRING, artist_id BIGINT, price DECIMAL(6,2), played TIMESTAMP);
        CREATE TABLE follows (a BIGINT, b BIGINT);
        CREATE TABLE sale (shop STRING, item STRING, amount BIGINT);
        INSERT INTO artist VALUES (1, 'Nina', DATE '1933-02-21'), (2, 'Miles', NULL);
        INSERT INTO track VALUES ('a', 'Sinnerman', 1, 1.20, TIMESTAMP '2026-01-01 00:00:00'), ('b', 'So What', 2, 0.99, NULL),
                                 ('c', 'Lost', NULL, 1.20, NULL);
        INSERT INTO follows VALUES (1, 2), (1, 2), (2, 3), (3, NULL);
        INSERT INTO sale VALUES ('x', 'pen', 2), ('x', 'pen', 2), ('y', 'ink', NULL);
    """)
    found.transact(FACTS)
    return found


CASES: list[tuple[str, list[Any], Any]] = [
    # find specs
    ("[:find ?n :where [?e :name ?n]]", [], [("Ada",), ("Bob",), ("Cy",), ("Dee",)]),
    ("{:find [?n] :where [[?e :name ?n]]}", [], [("Ada",), ("Bob",), ("Cy",), ("Dee",)]),
    ("[:find [?n ...] :where [?e :name ?n]]", [], ["Ada", "Bob", "Cy", "Dee"]),
    ('[:find ?a . :where [?e :name "Bob"] [?e :age ?a]]', [], 17),
    ('[:find [?e ?a] :where [?e :name "Bob"] [?e :age ?a]]', [], (2, 17)),
    ('[:find ?a . :where [?e :name "Nobody"] [?e :age ?a]]', [], None),
    ('[:find [?a ?b] :where [?a :name "Nobody"] [?a :to ?b]]', [], None),
    ("[:find ?age ?age :where [2 :age ?age]]", [], [(17, 17)]),
    ('[:find ?n ?a :keys name age :where [?e :name ?n] [?e :age ?a] [(< ?a 20)]]', [], [{"name": "Bob", "age": 17}]),
    ('[:find [?n ?a] :strs name age :where [?e :name ?n] [?e :age ?a] [(< ?a 20)]]', [], {"name": "Bob", "age": 17}),
    # patterns
    ("[:find ?a ?b ?c :where [?a :to ?b] [?b :to ?c] [?c :to ?a]]", [], [(1, 2, 3), (2, 3, 1), (3, 1, 2)]),
    ("[:find ?e :where [?e :age]]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where [?e :age _]]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where [?e :to 3]]", [], [(1,), (2,)]),
    ("[:find ?v :where [1 :to ?v]]", [], [(2,), (3,)]),
    ("[:find ?e :where [?e :to ?e]]", [], []),
    ("[:find ?a ?v :where [3 ?a ?v]]", [], [(":age", 36), (":name", "Cy"), (":status", ":away"), (":tag", "b"), (":to", 1)]),
    ("[:find ?a :where [_ ?a _]]", [], [(":age",), (":name",), (":parent",), (":score",), (":status",), (":tag",), (":to",)]),
    ("[:find ?a :where [?e ?a 36]]", [], [(":age",)]),
    ("[:find ?e ?a ?f :where [?e ?a ?f] [?f :age 17]]", [], [(1, ":to", 2)]),
    ("[:find ?e :where [?e :status :away]]", [], [(3,)]),
    ("[:find ?e :where [?e :age 36.0]]", [], [(1,), (3,)]),
    # predicates and functions
    ("[:find ?e :where [?e :age ?a] [(< 18 ?a 40)]]", [], [(1,), (3,)]),
    ("[:find ?e :where [?e :age ?a] [(not= ?a 36)]]", [], [(2,)]),
    ("[:find ?x :where [2 :age ?a] [(+ ?a 1 1) ?x]]", [], [(19,)]),
    ("[:find ?x :where [2 :age ?a] [(- ?a) ?b] [(* ?b 2) ?x]]", [], [(-34,)]),
    ("[:find ?x :where [2 :age ?a] [(/ ?a 2) ?x]]", [], [(8.5,)]),
    ("[:find ?q ?r ?m :where [(ground -7) ?a] [(quot ?a 2) ?q] [(rem ?a 2) ?r] [(mod ?a 2) ?m]]", [], [(-3, -1, 1)]),
    ("[:find ?m :where [(ground 7) ?a] [(mod ?a -3) ?m]]", [], [(-2,)]),
    ("[:find ?i ?d :where [2 :age ?a] [(inc ?a) ?i] [(dec ?a) ?d]]", [], [(18, 16)]),
    ("[:find ?x :where [1 :age ?a] [2 :age ?b] [(max ?a ?b 3) ?x]]", [], [(36,)]),
    ("[:find ?e :where [?e :age ?a] [(even? ?a)]]", [], [(1,), (3,)]),
    ('[:find ?s :where [2 :name ?n] [2 :age ?a] [(str ?n "-" ?a) ?s]]', [], [("Bob-17",)]),
    ("[:find ?s ?c :where [2 :name ?n] [(subs ?n 1) ?s] [(count ?n) ?c]]", [], [("ob", 3)]),
    ("[:find ?s :where [2 :name ?n] [(subs ?n 0 2) ?s]]", [], [("Bo",)]),
    ("[:find ?s :where [2 :name ?n] [(clojure.string/upper-case ?n) ?s]]", [], [("BOB",)]),
    ('[:find ?e :where [?e :name ?n] [(clojure.string/starts-with? ?n "A")]]', [], [(1,)]),
    ('[:find ?e :where [?e :name ?n] [(re-find "^.o" ?n)]]', [], [(2,)]),
    ('[:find ?e :where [?e :name ?n] [(re-matches "C." ?n)]]', [], [(3,)]),
    ("[:find ?e :where [?e :age ?a] [(contains? #{17 18} ?a)]]", [], [(2,)]),
    ("[:find ?e ?young :where [?e :age ?a] [(< ?a 18) ?young]]", [], [(1, False), (2, True), (3, False)]),
    ("[:find ?x :where [2 :age ?a] [(+ (* ?a 2) 1) ?x]]", [], [(35,)]),
    ("[:find ?x ?y :where [(ground [[1 2] [3 4]]) [[?x ?y]]] [(< 2 ?x)]]", [], [(3, 4)]),
    ("[:find ?n :where [(ground [1 2]) [?e ...]] [?e :name ?n]]", [], [("Ada",), ("Bob",)]),
    ('[:find ?x ?y :where [(ground [1 "a"]) [?x ?y]]]', [], [(1, "a")]),
    ('[:find ?e ?t :where [?e :name] [(get-else $ ?e :tag "none") ?t]]', [], [(1, "a"), (1, "b"), (2, "none"), (3, "b"), (4, "none")]),
    ("[:find ?n :where [?e :name ?n] [(missing? $ ?e :age)]]", [], [("Dee",)]),
    ("[:find ?e ?a ?v :where [?e :name] [(get-some $ ?e :age :parent) [?a ?v]]]", [],
     [(1, ":age", 36), (2, ":age", 17), (3, ":age", 36), (4, ":parent", 1)]),
    ("[:find ?y :where [(ground 5) ?x] [(identity ?x) ?y]]", [], [(5,)]),
    ("[:find ?e :where [?e :age ?x] [(= ?x ?y)] [2 :age ?y]]", [], [(2,)]),
    ('[:find ?x ?y :where [(ground "7") ?s] [(parse-long ?s) ?x] [(double ?x) ?y]]', [], [(7, 7.0)]),
    ("[:find ?x ?y :where [2 :name ?n] [2 :age ?a] [(tuple ?n ?a) ?t] [(untuple ?t) [?x ?y]]]", [], [("Bob", 17)]),
    ("[:find ?x :where [_ :age ?a] [(nullif ?a 36) ?x]]", [], [(17,)]),
    ('[:find ?y :where [_ :artist/born ?d] [(year ?d) ?y]]', [], [(1933,)]),
    # or, and, not
    ("[:find ?e :where (or [?e :age 17] [?e :tag \"b\"])]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where (or (and [?e :age 36] [?e :to 1]) [?e :age 17])]", [], [(2,), (3,)]),
    ("[:find ?e :where [?e :name] (or [?e :age 17] (and [?e :age 36] (not [?e :to 1])))]", [], [(1,), (2,)]),
    ("[:find ?e :where [?e :age ?a] (or [(< ?a 20)] [(= ?a 36)])]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where [?e :name] (or-join [?e] [?e :tag ?t] (and [?e :to ?f] [?f :tag ?u]))]", [], [(1,), (2,), (3,)]),
    ("[:find ?x :where (or-join [?x] [?x :tag ?t] (and [?x :to ?f] [?f :age 17]))]", [], [(1,), (3,)]),
    ("[:find ?e :where [?e :age ?a] (or-join [[?a] ?e] (and [?e :to 1] [(> ?a 18)]) (and [?e :to 2] [(> ?a 18)]))]", [], [(1,), (3,)]),
    ("[:find ?e :where [?e :name] (not [?e :age 36])]", [], [(2,), (4,)]),
    ("[:find ?e :where [?e :name] (not [?e :age 36] [?e :to 1])]", [], [(1,), (2,), (4,)]),
    ("[:find ?e :where [?e :name] (not-join [?e] [?e :to ?f] [?f :tag])]", [], [(4,)]),
    ("[:find ?e :where [?e :name] (not (or [?e :age 36] [?e :to 3]))]", [], [(4,)]),
    ("[:find ?e :where [?e :name] (not [?e :to ?f] (not [?f :tag]))]", [], [(2,), (3,), (4,)]),
    ("[:find ?e :where [?e :name] (not (not [?e :age 36]))]", [], [(1,), (3,)]),
    ("[:find ?e :where [?e :name] (not (not (not [?e :age 36])))]", [], [(2,), (4,)]),
    ("[:find ?e :where [?e :name] (not (not [?e :age 17]) (not [?e :to 1]))]", [], [(2,), (3,)]),
    ("[:find ?e :where [?e :name] (not (or (not [?e :age 36]) (not [?e :to 1])))]", [], [(3,)]),
    ("[:find ?e :where [?e :name] (not (not (or [?e :age 17] [?e :parent 1])))]", [], [(2,), (4,)]),
    ("[:find ?e :where [?e :name] (not-join [?e] (not [?e :tag]))]", [], [(1,), (3,)]),
    ("[:find ?e :where [?e :name] (not-join [?e] (not-join [?e] [?e :to ?f] [?f :tag]))]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where [?e :name] (not-join [?e] (not [?e :tag]) (not-join [?e] [?e :to ?f] [?f :age 36]))]", [], [(1,), (2,), (3,)]),
    ("[:find ?e :where [?e :age ?a] (not (not [(< ?a 20)]))]", [], [(2,)]),
    ("[:find ?e ?f :where [?e :age ?a] [?f :age ?b] (not [(<= ?b ?a)])]", [], [(2, 1), (2, 3)]),
    # rules
    ("[:find ?b :in $ % :where (ancestor 4 ?b)]", [ANCESTORS], [(1,), (5,), (6,)]),
    ("[:find ?a ?b :in $ % :where (ancestor ?a ?b) (not [?a :parent ?b])]", [ANCESTORS], [(1, 6), (4, 5), (4, 6)]),
    ("[:find ?a :in $ % :where [?a :name] (not (ancestor ?a _))]", [ANCESTORS], [(2,), (3,)]),
    ("{:find [?b] :where [(up 4 ?b)] :rules [[(up ?a ?b) (or-join [?a ?b] [?a :parent ?b] (and [?a :parent ?c] (up ?c ?b)))]]}", [], [(1,), (5,), (6,)]),
    ("[:find ?e ?y :in $ % :where [?e :age ?a] (next ?a ?y)]", ["[[(next [?x] ?y) [(+ ?x 1) ?y]]]"], [(1, 37), (2, 18), (3, 37)]),
    ("[:find ?e :in $ % :where [?e :age ?a] (grown ?a)]", ["[[(grown [?x]) [(>= ?x 18)]]]"], [(1,), (3,)]),
    ("[:find ?a ?b :in $ % :where (even ?a ?b)]",
     ["""[[(odd ?a ?b) [?a :parent ?b]] [(odd ?a ?b) [?a :parent ?c] (even ?c ?b)] [(even ?a ?b) [?a :parent ?c] (odd ?c ?b)]]"""],
     [(1, 6), (4, 5)]),
    # arguments
    ("[:find ?n :in $ ?e :where [?e :name ?n]]", [2], [("Bob",)]),
    ("[:find ?e ?n :in $ ?e :where [?e :name ?n]]", [2], [(2, "Bob")]),
    ("[:find ?v :in $ ?e ?attribute :where [?e ?attribute ?v]]", [2, ":age"], [(17,)]),
    ("[:find ?n :in $ [?e ...] :where [?e :name ?n]]", [[1, 2, 9]], [("Ada",), ("Bob",)]),
    ("[:find ?n :in $ [?e ...] :where [?e :name ?n]]", [[]], []),
    ("[:find ?n :in $ [?n ?a] :where [?e :name ?n] [?e :age ?a]]", [["Ada", 36]], [("Ada",)]),
    ("[:find ?n ?x :in $ [[?n ?x]] :where [?e :name ?n]]", [[("Ada", 1), ("Eve", 2)]], [("Ada", 1)]),
    ("[:find ?n ?x :in $ [[?n ?x]] :where [?e :name ?n]]", [{"Ada": 1}], [("Ada", 1)]),
    ("[:find ?e :in $ [[_ ?a]] :where [?e :age ?a]]", [[("x", 17)]], [(2,)]),
    ("[:find ?x :in [?x ...]]", [[3, 1, 3]], [(1,), (3,)]),
    ("[:find ?x . :in ?x]", ["only"], "only"),
    ("[:find ?e ?a ?v :in $ ?e [?a ...] :where [?e ?a ?v]]", [2, [":age", ":to"]], [(2, ":age", 17), (2, ":to", 3)]),
    ("[:find ?n ?x :in $ $more :where [?e :name ?n] [$more ?e ?x]]", [[(1, "x"), (9, "y")]], [("Ada", "x")]),
    ("[:find ?s ?i :in $ $sale :where [$sale ?s ?i]]", ["sale"], [("x", "pen"), ("y", "ink")]),
    ("[:find ?s ?n :in $ $sale :where [$sale ?s _ ?n]]", ["sale"], [("x", 2)]),
    # aggregates
    ("[:find (count ?e) . :where [?e :age]]", [], 3),
    ("[:find (count ?a) . :where [?e :age ?a]]", [], 2),
    ("[:find (count ?a) . :with ?e :where [?e :age ?a]]", [], 3),
    ("[:find (sum ?a) . :with ?e :where [?e :age ?a]]", [], 89),
    ("[:find ?a (count ?e) :where [?e :age ?a]]", [], [(17, 1), (36, 2)]),
    ("[:find (min ?a) (max ?a) (avg ?a) (median ?a) :with ?e :where [?e :age ?a]]", [], [(17, 36, 89 / 3, 36.0)]),
    ("[:find (min 2 ?a) (max 2 ?a) :with ?e :where [?e :age ?a]]", [], [([17, 36], [36, 36])]),
    ("[:find (count-distinct ?a) . :with ?e :where [?e :age ?a]]", [], 2),
    ("[:find ?n (distinct ?t) :where [?e :tag ?t] [?e :name ?n]]", [], [("Ada", ["a", "b"]), ("Cy", ["b"])]),
    ("[:find (sum ?s) . :where [_ :score ?s]]", [], 4.0),
    ("[:find (variance ?s) (stddev ?s) :where [_ :score ?s]]", [], [(0.25, 0.5)]),
    ('[:find (count ?e) . :where [?e :name "Nobody"]]', [], None),
    ('[:find (sum ?a) (count ?e) :where [?e :age ?a] [(> ?a 99)]]', [], []),
    ("[:find (min ?n) (count ?n) :keys first names :where [_ :name ?n]]", [], [{"first": "Ada", "names": 4}]),
    # tables
    ("[:find ?n ?b :where [?a :artist/name ?n] [?a :artist/born ?b]]", [], [("Nina", dt.date(1933, 2, 21))]),
    ("[:find ?t ?n :where [?e :track/title ?t] [?e :track/artist-id ?a] [?a :artist/name ?n]]", [],
     [("Sinnerman", "Nina"), ("So What", "Miles")]),
    ('[:find ?t . :where ["b" :track/title ?t]]', [], "So What"),
    ("[:find ?e :where [?e :track/price 1.20M]]", [], [("a",), ("c",)]),
    ("[:find ?e :where [?e :track/price ?p] [(< ?p 1)]]", [], [("b",)]),
    ('[:find ?e :where [?e :track/played #inst "2026-01-01T00:00:00Z"]]', [], [("a",)]),
    ("[:find ?at . :where [_ :track/played ?at]]", [], dt.datetime(2026, 1, 1)),
    ('[:find ?e :where [?e :artist/born "1933-02-21"]]', [], [(1,)]),
    ("[:find (sum ?p) . :with ?e :where [?e :track/price ?p]]", [], Decimal("3.39")),
    ("[:find ?e :where [?e :track/title] [(missing? $ ?e :track/artist-id)]]", [], [("c",)]),
    ("[:find ?a ?c :where [?a :follows ?b] [?b :follows ?c]]", [], [(1, 3)]),
    ("[:find ?n ?m :where [?e :artist/id ?i] [?i :name ?m] [?e :artist/name ?n]]", [], [("Miles", "Bob"), ("Nina", "Ada")]),
]  # fmt: skip


def in_order(found: Any) -> Any:
    return sorted(found, key=repr) if isinstance(found, list) else found


@pytest.mark.parametrize(("query", "args", "wanted"), CASES)
def test_answers(db: Any, query: str, args: list[Any], wanted: Any) -> None:
    assert in_order(_sets(db.edn(query, args=args))) == in_order(wanted)


@pytest.mark.parametrize(("query", "args", "wanted"), CASES)
def test_views(db: Any, query: str, args: list[Any], wanted: Any) -> None:
    view = db.edn(query, name="case", args=args)
    try:
        assert in_order(_sets(view.answer())) == in_order(wanted)
        assert db.verify("case")
    finally:
        db.drop("case")


def _sets(found: Any) -> Any:
    """A set has no order."""
    if not isinstance(found, list):
        return found
    return [
        tuple(sorted(v) if isinstance(v, list) else v for v in row) if isinstance(row, tuple) else row for row in found
    ]
