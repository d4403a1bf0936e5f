"""Pull: views of entities as maps, against plain Python after every transaction; and patterns that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import EdnError

SCHEMA = """[{:db/ident :name :db/valueType :db.type/string :db/cardinality :db.cardinality/one}
             {:db/ident :boss :db/valueType :db.type/ref :db/cardinality :db.cardinality/one}
             {:db/ident :friend :db/valueType :db.type/ref}
             {:db/ident :tag :db/valueType :db.type/string}]"""
Fact = tuple[int, str, Any]
Facts = set[Fact]

# The pattern as text, and as Python: an attribute is (name, options), where options may have "in", "limit", "depth".
Pattern = list[tuple[str, dict[str, Any]]]
PATTERNS: dict[str, Pattern] = {
    "[:name :tag]": [(":name", {}), (":tag", {})],
    "[:db/id (:tag :limit 1) [:name :as :called]]": [
        (":db/id", {}),
        (":tag", {"limit": 1}),
        (":name", {"as": ":called"}),
    ],
    "[{:friend [:name {:boss [:db/id]}]} :_boss]": [
        (":friend", {"in": [(":name", {}), (":boss", {"in": [(":db/id", {})]})]}),
        (":_boss", {}),
    ],
    "[:name {:_friend [:db/id {:friend [:name]}]}]": [
        (":name", {}),
        (":_friend", {"in": [(":db/id", {}), (":friend", {"in": [(":name", {})]})]}),
    ],
    "[:name {:boss 3}]": [(":name", {}), (":boss", {"depth": 3})],
    "[(limit :tag 2) {(:friend :limit 2) 2}]": [(":tag", {"limit": 2}), (":friend", {"depth": 2, "limit": 2})],
    '[(default :name "?")]': [(":name", {"default": "?"})],
}
MANY = (":friend", ":tag")


def pulled(facts: Facts, entity: int, pattern: Pattern, way: tuple[int, ...] | None = None) -> Any:
    if way is not None and entity in way:
        return {":db/id": entity}
    found: dict[str, Any] = {}
    for name, said in pattern:
        if name == ":db/id":
            found[name] = entity
            continue
        plain = f":{name[2:]}" if name.startswith(":_") else name
        pairs = [(v, e) if name != plain else (e, v) for e, a, v in facts if a == plain]
        values: list[Any] = sorted(v for e, v in pairs if e == entity)[: said.get("limit", 1000)]
        if "depth" in said:
            less = {**said, "depth": said["depth"] - 1}
            inner = [(n, less if n == name else s) for n, s in pattern if n != name or less["depth"]]
            values = [pulled(facts, v, inner, (*(way or ()), entity)) for v in values]
        elif "in" in said:
            values = [pulled(facts, v, said["in"]) for v in values]
        values = [v for v in values if v is not None]
        many = name != plain or name in MANY
        if values or "default" in said:
            found[said.get("as", name)] = values if many else values[0] if values else said["default"]
    return found or None


entities = st.integers(1, 4)
drawn = st.one_of(
    st.tuples(entities, st.just(":name"), st.sampled_from("ab")),
    st.tuples(entities, st.just(":tag"), st.sampled_from("xyz")),
    st.tuples(entities, st.sampled_from([":boss", ":friend"]), entities),
)


def _next(held: Facts, tick: list[Fact]) -> tuple[Facts, list[list[Any]]]:
    """The facts after a transaction: what is there goes, what is not comes, in place of another value of one."""
    done: list[list[Any]] = []
    for fact in tick:
        if fact in held:
            held = held - {fact}
            done.append([":db/retract", *fact])
        else:
            one = fact[1] not in MANY
            held = {f for f in held if not (one and f[:2] == fact[:2])} | {fact}
            done.append([":db/add", *fact])
    return held, done


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(drawn, max_size=8), min_size=1, max_size=4))
def test_after_every_transaction_what_plain_python_pulls(ticks: list[list[Fact]]) -> None:
    db = ev.connect()
    db.transact(SCHEMA)
    views = {
        text: db.edn(f"[:find ?e (pull ?e {text}) :where [?e :friend]]", name=f"v{number}")
        for number, text in enumerate(PATTERNS)
    }
    held: Facts = set()
    for tick in ticks:
        held, parts = _next(held, tick)
        db.transact(parts)
        there = {e for e, a, _ in held if a == ":friend"}
        for text, view in views.items():
            assert dict(view.answer()) == {e: pulled(held, e, PATTERNS[text]) for e in there}, text
    assert db.verify()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(drawn, max_size=8), min_size=1, max_size=2))
def test_a_recursion_without_a_number_goes_to_the_end(ticks: list[list[Fact]]) -> None:
    db = ev.connect()
    db.transact(SCHEMA)
    held: Facts = set()
    for tick in ticks:
        held, parts = _next(held, tick)
        db.transact(parts)
        there = {e for e, a, _ in held if a == ":friend"}
        for name, more in ((":friend", "[:name]"), (":_friend", "[:tag :name]")):
            pattern: Pattern = [(name, {"depth": 9}), *((one, {}) for one in more[1:-1].split())]
            answer = db.edn(f"[:find ?e (pull ?e [{{{name} ...}} {more[1:-1]}]) :where [?e :friend]]")
            assert dict(answer) == {e: pulled(held, e, pattern) for e in there}


@pytest.mark.slow
def test_a_recursion_that_goes_too_deep_is_refused() -> None:
    db = ev.connect()
    db.transact(SCHEMA)
    db.transact([[":db/add", n, ":friend", n + 1] for n in range(1, 40)])
    with pytest.raises(EdnError, match="for more than 31 levels"):
        db.edn("[:find (pull ?e [{:friend ...}]) . :in $ ?e :where [?e :friend]]", args=[1])


def test_a_view_has_a_number_of_levels(db: ev.Database) -> None:
    with pytest.raises(EdnError, match="the recursion of :friend has no number of levels"):
        db.edn("[:find (pull ?e [:name {:boss [{:friend ...}]}]) :where [?e :name]]", name="v")


@pytest.fixture
def db() -> ev.Database:
    db = ev.connect()
    db.transact(SCHEMA)
    db.transact('[{:db/id 1 :name "Ada" :friend [2 3] :tag ["x"]} {:db/id 2 :name "Ada" :boss 1}]')
    return db


def test_a_wildcard_has_attributes_that_come_later(db: ev.Database) -> None:
    view = db.edn("[:find (pull ?e [* {:friend [:name]}]) . :where [?e :tag]]", name="all")
    assert view.answer() == {":db/id": 1, ":name": "Ada", ":tag": ["x"], ":friend": [{":name": "Ada"}]}
    db.transact("[[:db/add 1 :age 36]]")
    assert view.answer()[":age"] == [36]
    assert db.verify()


def test_beside_aggregates_and_keys(db: ev.Database) -> None:
    query = "[:find (count ?f) (pull ?e [:name]) :keys n who :where [?e :friend ?f]]"
    assert db.edn(query) == [{"n": 2, "who": {":name": "Ada"}}]
    assert db.edn("[:find [(pull $ ?e [:name]) ...] :where [?e :name]]") == [{":name": "Ada"}] * 2
    assert db.edn("[:find (pull ?e [:boss]) . :where [?e :tag]]") is None


def test_columns_of_tables() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE track (id STRING PRIMARY KEY, name STRING NOT NULL, after STRING)")
    pattern = "[:track/name {:track/after [:track/name]} :track/_after]"
    view = db.edn(f"[:find (pull ?t {pattern}) :where [?t :track/name]]", "v")
    db.sql("INSERT INTO track VALUES ('a', 'A', NULL), ('b', 'B', 'a')")
    assert sorted(map(str, view.answer())) == [
        "({':track/name': 'A', ':track/_after': ['b']},)",
        "({':track/name': 'B', ':track/after': {':track/name': 'A'}},)",
    ]


REFUSED = {
    "(pull ?e)": "is no pull",
    "(pull ?e :name)": ":name is no pattern of pull",
    "(pull ?e [])": "[] is no pattern of pull",
    "(pull $x ?e [:name])": "is no pull",
    "(pull 1 [:name])": "1 is no variable",
    "(pull ?e [:nmae])": 'attribute ":nmae" does not exist',
    "(pull ?e [:name :name])": ":name stands in this pattern twice",
    "(pull ?e [{:friend 0}])": "0 is no number of levels",
    "(pull ?e [{:friend []}])": "[] is no pattern of pull",
    "(pull ?e [{:friend 30 :boss 30 :_boss 30}])": "more than 200 attributes",
    "(pull ?e [(:tag :limit 0)])": ":limit 0 is no such option",
    "(pull ?e [(:tag :limit)])": "is no attribute with options",
    "(pull ?e [(:tag :xform str)])": ":xform calls a function",
    "(pull ?e [(:tag :other 1)])": "there is no option :other",
    "(pull ?e [(:name :default 3)])": "the values of :name are STRING, and the default 3 is none",
    "(pull ?n [:name])": ":name is of entities that are BIGINT, and is asked of STRING",
    "(pull ?e [{:name [:tag]}])": ":tag is of entities that are BIGINT, and is asked of STRING",
    "(pull ?e [{:db/id [:tag]}])": ":db/id is a number",
    '(pull ?e ["name"])': '"name" is no part of a pattern',
    "(pull ?x [:name])": "?x is asked for",
}


@pytest.mark.parametrize("find", REFUSED)
def test_refused(db: ev.Database, find: str) -> None:
    for name in (None, "v"):
        with pytest.raises(EdnError) as refused:
            db.edn(f"[:find {find} :where [?e :name ?n]]", name)
        assert REFUSED[find] in str(refused.value)
        assert str(refused.value).startswith("1:")
        assert refused.value.hint
