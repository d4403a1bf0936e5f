"""What cannot be asked: each mistake has its place, says what is wrong, and what to do."""

# ruff: noqa: E501, a case of a table stands on one line

from __future__ import annotations

from typing import Any

import pytest

import everview as ev
from everview.errors import EdnError


@pytest.fixture(scope="module")
def db() -> Any:
    found = ev.connect()
    found.sql("""
        CREATE TABLE track (id BIGINT PRIMARY KEY, name STRING);
        CREATE TABLE sale (shop STRING, amount BIGINT, at DATE);
    """)
    found.transact('[[:db/add 1 :name "Ada"] [:db/add 1 :age 36] [:db/add 1 :to 2]]')
    return found


CASES: list[tuple[str, list[Any], str]] = [
    # queries
    ("1", [], "1:1: 1 is no query"),
    ("[:where [?e :name]]", [], "1:1: a query without :find"),
    ("[:find :where [?e :name]]", [], "1:1: :find is empty"),
    ("[?e :find ?e]", [], "1:1: a query begins with :find"),
    ("{:find ?e :where [[?e :name]]}", [], "1:8: :find has a vector"),
    ("[:find ?e :order ?e]", [], "1:11: a query has no part :order"),
    ("[:find ?e :find ?e]", [], "1:11: :find stands in this query twice"),
    ("[:find e :where [?e :name]]", [], "1:8: e is no variable"),
    ("[:find ?x :where [?e :name]]", [], "1:1: ?x is asked for, and no clause has it"),
    ("[:find (total ?e) :where [?e :name]]", [], "1:8: there is no aggregate total"),
    ("[:find (min 0 ?e) :where [?e :name]]", [], "1:13: (min n ?x) is of 0 values"),
    ("[:find (rand ?e) :where [?e :name]]", [], "1:8: rand is another at every look"),
    ("[:find (sum ?n) :where [?e :name ?n]]", [], "1:8: sum takes numbers, and ?n is STRING"),
    ("[:find ?e :keys a b :where [?e :name]]", [], "1:17: :keys does not name every element"),
    ("[:find ?e . :keys a :where [?e :name]]", [], "1:19: :keys names the parts of rows"),
    # clauses
    ("[:find ?e :where\n [?e :nmae]]", [], "2:2: attribute \":nmae\" does not exist"),
    ("[:find ?e :where [?e :track/nmae]]", [], "1:18: attribute \":track/nmae\" does not exist"),
    ("[:find ?e :where [?e :sale/shop]]", [], "1:18: attribute :sale/shop: sale has no key"),
    ("[:find ?e :where [?e :sale _]]", [], "1:18: :sale: sale has 3 columns"),
    ("[:find ?e :where [?e name]]", [], "1:22: name is no variable"),
    ('[:find ?e :where [?e "name" _]]', [], "1:18: 'name' is no attribute"),
    ("[:find ?e :where [?e :age \"x\"]]", [], '1:18: the values of :age are BIGINT, and "x" is none'),
    ('[:find ?n :where ["x" :name ?n]]', [], "1:18: the entities of :name are BIGINT"),
    ("[:find ?e :where [?e :age nil]]", [], "1:27: nil is no value"),
    ("[:find ?e :where [?e :age _ _ _]]", [], "1:18: a pattern has an entity"),
    ("[:find ?e :where :name]", [], "1:18: a query has no part :name"),
    ("[:find ?e :where 3]", [], "1:18: 3 is no clause"),
    ("[:find ?e :where [?e :name ?x] [?e :age ?x]]", [], "1:32: ?x is STRING and BIGINT"),
    ("[:find ?e :where [?e :name ?x] [(< ?x 3)]]", [], "1:32: x < 3: STRING and BIGINT cannot be compared"),
    # functions
    ("[:find ?e :where [?e :age ?a] [(frobnicate ?a)]]", [], "1:31: there is no function frobnicate"),
    ("[:find ?e :where [?e :age ?a] [(inc ?a 2) ?b]]", [], "1:31: inc takes 1 arguments, not 2"),
    ("[:find ?e :where [?e :age ?a] [(< ?a)]]", [], "1:31: < compares two or more values"),
    ("[:find ?e :where [?e :age ?a] [(inc ?a) ?b ?c]]", [], "1:31: a function has one binding"),
    ("[:find ?e :where [?e :age ?a] [(inc ?a) [?b ...]]]", [], "1:31: inc gives one value"),
    ("[:find ?e :where [?e :age ?a] [(< ?a ?b)]]", [], "1:31: insufficient bindings: (< …) needs ?b"),
    ("[:find ?b :where [?e :age ?a] [(+ ?a ?c) ?b]]", [], "1:31: insufficient bindings: (+ …) needs ?c"),
    ("[:find ?e :where [?e :age ?a] [(get-else $ ?e :age) ?b]]", [], "1:31: get-else takes 4 arguments"),
    ('[:find ?b :where [?e :age] [(get-else $ ?e :age "x") ?b]]', [], "1:28: the values of :age are BIGINT"),
    ("[:find ?e :where [?e :name ?n] [(+ ?n 1) ?x]]", [], "1:1: add takes numbers, and was given STRING"),
    # or, not
    ("[:find ?e :where (or [?e :age ?a] [?e :name])]", [], "1:18: the branches of or have different variables: ?a"),
    ("[:find ?e :where (or)]", [], "1:18: (or) has no branch"),
    ("[:find ?e :where (or-join [?e ?x] [?e :name ?x] [?e :age ?y])]", [], "1:49: insufficient bindings: this branch does not bind ?x"),
    ("[:find ?e :where [?e :name] (not [?x :age])]", [], "1:29: insufficient bindings: not shares none"),
    ("[:find ?e :where [?e :name] (not-join [?x] [?x :age])]", [], "1:29: insufficient bindings: not-join shares ?x"),
    ("[:find ?e :where [?e :name] (not)]", [], "1:29: (not) has no clause"),
    ("[:find ?e :where (or-join [?e] (and [?e :name] [(< ?q 3)]))]", [], "1:48: insufficient bindings: (< …) needs ?q"),
    # rules
    ("[:find ?e :where (big ?e)]", [], "1:18: there is no rule big"),
    ("[:find ?e :in $ % :where (big ?e 1)]", ["[[(big ?e) [?e :age]]]"], "1:26: rule big has 1 variables"),
    ("[:find ?e :in $ % :where (big ?e)]", ["[[(big ?e)]]"], "1:2: [(big ?e)] has no clause"),
    ("[:find ?e :in $ % :where (big ?e)]", ["[[(big ?e) [_ :age]]]"], "1:2: rule big: no clause has ?e"),
    ("[:find ?e :in $ % :where (big ?e)]", ["[[(big ?e) [?e :age]] [(big ?e ?f) [?e :to ?f]]]"], "1:23: the clauses of rule big"),
    ("[:find ?e :in $ % :where (big ?e)]", ["[[(big [?e]) [?e :age]]]"], "1:26: insufficient bindings: rule big needs ?e"),
    ("[:find ?e :in $ % :where (win ?e)]", ["[[(win ?x) [?x :to ?y] (not (win ?y))]]"], "win depends on its own negation"),
    ("[:find ?y :in $ % :where (up 1 ?y)]", ["[[(up [?x] ?y) [(+ ?x 1) ?y]] [(up [?x] ?y) [(+ ?x 1) ?z] (up ?z ?y)]]"],
     "1:16: insufficient bindings: (+ …) needs ?x"),
    # arguments
    ("[:find ?e :in $ ?n :where [?e :name ?n]]", [], "takes 1 arguments besides the database, and was given 0"),
    ("[:find ?e :where [?e :name]]", [1], "takes 0 arguments"),
    ("[:find ?e :in $ ?n :where [?e :name ?n]]", [[1]], "1:17: [1] is no single value"),
    ("[:find ?e :in $ ?n :where [?e :name ?n]]", [None], "1:17: nil is no value"),
    ("[:find ?e :in $ [?n ...] :where [?e :name ?n]]", ["x"], '1:17: "x" is no collection'),
    ("[:find ?e :in $ [?n ...] :where [?e :name ?n]]", [["x", 1]], "1:17: the values that are given are STRING and BIGINT"),
    ("[:find ?e :in $ [?n ?m] :where [?e :name ?n]]", [["x"]], "1:17: 2 variables for 1 values"),
    ("[:find ?e :in $ ?e ?e]", [1, 2], "1:20: :in gives e twice"),
    ("[:find ?e :where [$x ?e]]", [], "1:18: there is no source $x"),
    ("[:find ?e :in $ $x :where [$x ?e]]", ["nowhere"], '1:27: relation "nowhere" does not exist'),
    ("[:find ?e :in $ $x :where [$x _ _ _ ?e]]", ["sale"], "1:27: $x has 3 columns, not 4"),
    ("[:find ?e :in $ ?n :where [?e :name ?n]]", [object()], "is no value of EDN"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "args", "message"), CASES)
def test_refused_with_its_place(db: Any, query: str, args: list[Any], message: str) -> None:
    with pytest.raises(EdnError) as error:
        db.edn(query, args=args)
    assert message in error.value.message
    assert error.value.hint


def test_a_query_that_is_refused_leaves_nothing(db: Any) -> None:
    before = db.tables(), db.views(), db.epoch
    with pytest.raises(EdnError):
        db.edn("[:find ?e :where [?e :unheard ?x] [(frobnicate ?x)]]", name="wrong")
    with pytest.raises(EdnError):
        db.edn("[:find ?e :where [?e :track/unheard ?x]]", name="wrong")
    assert (db.tables(), db.views(), db.epoch) == before


def test_args_is_a_list(db: Any) -> None:
    with pytest.raises(EdnError, match="args is 'x'"):
        db.edn("[:find ?e :in $ ?n :where [?e :name ?n]]", args="x")


ALTERNATIVES = " ".join(f"(or [?e :age {n}] [?e :age {n + 1}])" for n in range(25))
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 3000, "nested too deeply"),
        ("[" * 3000 + "]" * 3000, "nested too deeply"),
        (f"[:find ?e :where {'(not ' * 400}[?e :name]{')' * 400}]", "nested too deeply"),
        (f"[:find ?e :where [?e :name] {ALTERNATIVES}]", "^1:1: there are more than 1,024 combinations"),
        (f"[:find ?e :where [?e :name] (not {ALTERNATIVES})]", "^1:29: there are more than 1,024 combinations"),
    ],
)
def test_too_deep_or_too_wide(db, text, message):
    with pytest.raises(EdnError, match=message) as error:
        db.edn(text)
    assert error.value.hint


def test_data_that_is_inside_of_itself(db):
    with pytest.raises(EdnError, match="nested too deeply"):
        db.transact(ENDLESS)


def test_arguments_that_are_no_list(db):
    with pytest.raises(EdnError, match="args is 5"):
        db.edn("[:find ?n :in $ ?e :where [?e :name ?n]]", args=5)


def test_rows_of_a_source_that_have_no_values(db):
    with pytest.raises(EdnError, match="the rows of a source have no values"):
        db.edn("[:find ?x :in $ $z :where [$z ?x]]", args=[[[]]])
