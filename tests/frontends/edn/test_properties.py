"""Random queries over random facts: after every transaction the view, the oracle and brute force agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from frontends.edn.naive import Naive, read

ENTITIES = st.integers(1, 4)
NUMBERS = st.integers(0, 2)
TEXTS = st.sampled_from(["", "a", "bb"])
LINKS = (":to", ":from")
VALUES: dict[str, Any] = {
    ":to": ENTITIES,
    ":from": ENTITIES,
    ":n": NUMBERS,
    ":m": NUMBERS,
    ":s": TEXTS,
    ":one": NUMBERS,
}
SCHEMA = "[{:db/ident :one :db/valueType :db.type/long :db/cardinality :db.cardinality/one}]"
RULES = """[[(reach ?a ?b) [?a :to ?b]]
            [(reach ?a ?c) (reach ?a ?b) (or [?b :to ?c] [?b :from ?c])]
            [(alike ?a ?b) [?a :n ?x] [?b :n ?x]]
            [(alike ?a ?c) (alike ?a ?b) [?b :m ?y] [?c :m ?y]]]"""

fact = st.sampled_from(list(VALUES)).flatmap(lambda a: st.tuples(ENTITIES, st.just(a), VALUES[a]))
change = st.tuples(st.sampled_from(["add", "add", "retract"]), fact) | st.tuples(
    st.sampled_from(["retract all", "retract entity"]), fact
)
# Enough facts to begin with that most queries find something, then a few changes at a time.
loads = st.lists(st.tuples(st.just("add"), fact), min_size=15, max_size=40)
ticks = st.tuples(loads, st.lists(st.lists(change, max_size=6), max_size=4)).map(lambda drawn: [drawn[0], *drawn[1]])

# -- random bodies, with variables ?a … ?d for entities, ?x ?y for numbers, ?s for text

entity_terms = st.sampled_from(["?a", "?b", "?c", "?d", "1", "2", "_"])
bound_entities = st.sampled_from(["?a", "?b"])


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


patterns = st.one_of(
    st.tuples(entity_terms, st.sampled_from(LINKS), entity_terms),
    st.tuples(entity_terms, st.sampled_from([":n", ":m", ":one"]), st.sampled_from(["?x", "?y", "0", "_"])),
    st.tuples(entity_terms, st.just(":s"), st.sampled_from(["?s", '"a"', "_"])),
).map(lambda terms: f"[{' '.join(terms)}]")

# What holds of ?a, which the body binds; each is complete in itself.
inner = st.one_of(
    st.tuples(st.just("?a"), st.sampled_from(LINKS), st.sampled_from(["?b", "?q", "3"])).map(
        lambda t: f"[{' '.join(t)}]"
    ),
    st.sampled_from(["[?a :n ?q] [(< ?q 1)]", "[?a :to ?q] [?q :to ?a]", "[?a :s ?q]", "(reach ?a ?q) [?q :n 1]"]),
)
branch = st.sampled_from(["[?a :n 0]", "(and [?a :to ?b] [?b :n 1])", "[?a :to ?b]", '(and [?a :from ?b] [?a :s "a"])'])
extra = st.one_of(
    inner.map(lambda c: f"(not {c})"),
    inner.map(lambda c: f"(not-join [?a] {c})"),
    st.lists(st.sampled_from(["[?a :to ?b]", "[?a :from ?b]", "(and [?b :to ?a] [?a :n 1])", "(reach ?a ?b)"]),
             min_size=1, max_size=3, unique=True).map(lambda b: f"(or {' '.join(b)})"),
    st.lists(branch, min_size=1, max_size=2, unique=True).map(lambda b: f"(or-join [?a] {' '.join(b)})"),
    st.sampled_from(["(reach ?a ?b)", "(reach ?b ?a)", "(reach ?a 3)", "(alike ?a ?b)", "(reach _ ?a)"]),
    st.sampled_from(["[(!= ?a ?b)]", "[(< ?a ?b)]", "[(+ ?a ?b) ?t]", "[(mod ?a 2) ?t]", "[(max ?a ?b 3) ?t]"]),
    st.sampled_from(["[(missing? $ ?a :n)]", "[(get-else $ ?a :n 7) ?u]", '[(get-else $ ?a :s "no") ?v]']),
    st.sampled_from(["[(<= 1 ?a 3)]", "[(even? ?a)]"]),
)  # fmt: skip
FINDS = [
    ("?a ?b", ""),
    ("?a", ""),
    ("?b", ""),
    ("?a (count ?b)", ""),
    ("(count ?a) (count-distinct ?b) (sum ?b)", ""),
    ("?b (sum ?a) (min ?a) (max ?a)", ""),
    ("(sum ?a)", ":with [?b]"),
    ("(avg ?a) (median ?b)", ""),
]


@st.composite
def queries(draw: Any) -> str:
    # ?a and ?b are bound whatever else is drawn.
    binding = draw(st.sampled_from(["[?a :to ?b]", "[?a :from ?b]", "[?a :n ?x] [?b :m ?x]", "[?a :n _] [?b :s _]"]))
    body = [binding, *draw(st.lists(patterns, max_size=1)), *draw(st.lists(extra, max_size=2, unique=True))]
    find, more = draw(st.sampled_from(FINDS))
    return f"{{:find [{find}] {more} :where [{' '.join(body)}]}}"


def transaction(changes: list[Any]) -> str:
    parts = {
        "add": lambda e, a, v: f"[:db/add {e} {a} {_shown(v)}]",
        "retract": lambda e, a, v: f"[:db/retract {e} {a} {_shown(v)}]",
        "retract all": lambda e, a, _: f"[:db/retract {e} {a}]",
        "retract entity": lambda e, _, __: f"[:db/retractEntity {e}]",
    }
    return f"[{' '.join(parts[what](*fact) for what, fact in changes)}]"


def changed(facts: set[Any], changes: list[Any]) -> set[Any]:
    """The facts after a transaction, by hand."""
    for what, (e, a, v) in changes:
        if what == "add":
            facts = {f for f in facts if a != ":one" or f[:2] != (e, a)} | {(e, a, v)}
        elif what == "retract":
            facts = facts - {(e, a, v)}
        elif what == "retract all":
            facts = {f for f in facts if f[:2] != (e, a)}
        else:
            facts = {f for f in facts if f[0] != e}
    return facts


def prepared() -> Any:
    db = ev.connect()
    db.transact(SCHEMA)
    start = [(1, a, "a" if a == ":s" else 1) for a in VALUES]
    db.transact(transaction([("add", f) for f in start]))
    db.transact("[[:db/retractEntity 1]]")
    return db


def rows(found: list[Any]) -> list[Any]:
    return sorted(found, key=repr)


@given(queries(), ticks)
@settings(max_examples=15, deadline=None)
def test_views_are_what_brute_force_says(query: str, stream: list[Any]) -> None:
    check(query, stream)


@pytest.mark.slow
@given(queries(), ticks)
@settings(max_examples=50, deadline=None)
def test_many_views_are_what_brute_force_says(query: str, stream: list[Any]) -> None:
    check(query, stream)


def check(query: str, stream: list[Any]) -> None:
    """A view after every transaction, and the answer after the last."""
    db, facts = prepared(), set[Any]()
    text = query.replace(" :where", " :in [$ %] :where")
    view = db.edn(text, name="found", args=[RULES])
    rules = read(RULES)
    for changes in stream:
        facts = changed(facts, changes)
        db.transact(transaction(changes))
        wanted = Naive(facts, rules).query(query)
        assert rows(view.rows()) == wanted
    assert rows(db.edn(text, args=[RULES])) == wanted
    assert db.verify()


@given(ticks, st.lists(ENTITIES, max_size=3), NUMBERS)
@settings(max_examples=10, deadline=None)
def test_arguments(stream: list[Any], some: list[int], number: int) -> None:
    db, facts = prepared(), set[Any]()
    db.edn("[:find ?a ?b :in $ [?a ...] :where [?a :to ?b]]", name="each", args=[some])
    db.edn("[:find ?a :in $ ?x :where [?a :n ?x]]", name="one", args=[number])
    db.edn("[:find ?a ?k :in $ [[?a ?k]] :where [_ :to ?a]]", name="rows", args=[[(e, e + 10) for e in some]])
    db.edn("[:find ?e ?a ?v :in $ [?e ...] :where [?e ?a ?v]]", name="all", args=[some])
    for changes in stream:
        facts = changed(facts, changes)
        db.transact(transaction(changes))
        assert rows(db.view("each").rows()) == rows({(e, v) for e, a, v in facts if a == ":to" and e in some})
        assert rows(db.view("one").rows()) == rows({(e,) for e, a, v in facts if a == ":n" and v == number})
        assert rows(db.view("rows").rows()) == rows({(v, v + 10) for _, a, v in facts if a == ":to" and v in some})
        assert rows(db.view("all").rows()) == rows({f for f in facts if f[0] in some})
    assert db.verify()


@given(ticks)
@settings(max_examples=8, deadline=None)
def test_facts_before_and_after_the_view(stream: list[Any]) -> None:
    """A view of attributes that nobody knew is the same as one that was defined when they were there."""
    early, late, facts = ev.connect(), ev.connect(), set[Any]()
    asked = "[:find ?a ?b ?c :where [?a :to ?b] [?b :to ?c] [?c :to ?a]]"
    names = "[:find ?s (count ?e) :where [?e :s ?s] (not [?e :n 0])]"
    for name, query in (("ring", asked), ("names", names)):
        early.edn(query, name=name)
    for db in (early, late):
        db.transact(SCHEMA)
    for changes in stream:
        kept = [c for c in changes if c[0] == "add"]
        facts = changed(facts, kept)
        for db in (early, late):
            db.transact(transaction(kept))
    late.transact('[{:db/id 9 :to 9 :s "a" :n 5}]')
    late.transact("[[:db/retractEntity 9]]")
    for name, query in (("ring", asked), ("names", names)):
        late.edn(query, name=name)
        assert rows(early.view(name).rows()) == rows(late.view(name).rows())
    assert early.verify()
    assert late.verify()


# -- tables as attributes

OVER_TABLES = [
    "{:find [?e ?a] :where [[?e :t/a ?a]]}",
    "{:find [?e ?f] :where [[?e :t/a ?x] [?f :t/b ?x]]}",
    "{:find [?e] :where [[?e :t/id _] (not [?e :t/a _])]}",
    "{:find [?a (count ?e)] :where [[?e :t/a ?a]]}",
    "{:find [?x ?z] :where [[?x :u ?y] [?y :u ?z]]}",
    "{:find [?x ?a] :where [[?x :u ?y] [?y :t/a ?a] [(< ?x ?a)]]}",
    "{:find [?e ?b] :where [[?e :t/id _] [(get-else $ ?e :t/b 9) ?b]]}",
    "{:find [?x ?y] :where [[?x :u ?y] [(missing? $ ?x :t/a)]]}",
]
small = st.integers(0, 3)
maybe = st.none() | small
table_ticks = st.lists(
    st.tuples(
        st.lists(st.tuples(small, maybe, maybe), max_size=4),
        st.lists(small, max_size=2),
        st.lists(st.tuples(maybe, maybe), max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@given(table_ticks)
@settings(max_examples=10, deadline=None)
def test_tables_as_attributes(stream: list[Any]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b BIGINT); CREATE TABLE u (x BIGINT, y BIGINT)")
    for number, query in enumerate(OVER_TABLES):
        db.edn(query, name=f"v{number}")
    db.edn("[:find ?x ?a :in $ $u $t :where [$u ?x ?y] [$t ?y ?a]]", name="sources", args=["u", "t"])
    held, bag = dict[int, Any](), list[Any]()
    for upserted, deleted, added in stream:
        with db.transaction() as tx:
            tx.upsert("t", upserted)
            tx.delete("t", deleted)
            tx.insert("u", added)
            tx.delete("u", bag[::2])
        held |= {row[0]: row for row in upserted}
        held = {key: row for key, row in held.items() if key not in deleted}
        bag = bag[1::2] + added
        facts = {(i, a, v) for i, *values in held.values() for a, v in zip((":t/a", ":t/b"), values, strict=True)}
        facts |= {(i, ":t/id", i) for i in held} | {(x, ":u", y) for x, y in bag if x is not None}
        facts = {fact for fact in facts if fact[2] is not None}
        for number, query in enumerate(OVER_TABLES):
            assert rows(db.view(f"v{number}").rows()) == Naive(facts).query(query)
        wanted = {(x, held[y][1]) for x, y in bag if x is not None and y in held and held[y][1] is not None}
        assert rows(db.view("sources").rows()) == rows(wanted)
    assert db.verify()


@given(ticks)
@settings(max_examples=6, deadline=None)
def test_facts_of_tables_change_their_rows(stream: list[Any]) -> None:
    """The same transactions on attributes of facts and of a table leave the same facts."""
    db, facts = ev.connect(), set[Any]()
    db.sql("CREATE TABLE row (id BIGINT PRIMARY KEY, n BIGINT, s STRING)")
    for changes in stream:
        kept = [(what, f) for what, f in changes if f[1] in (":n", ":s") and what != "retract entity"]
        db.transact(transaction([(what, (e, f":row/{a[1:]}", v)) for what, (e, a, v) in kept]))
        for what, (e, a, v) in kept:
            facts = changed({f for f in facts if what != "add" or f[:2] != (e, a)}, [(what, (e, a, v))])
        found = {(e, ":n", n) for e, n in db.edn("[:find ?e ?n :where [?e :row/n ?n]]")}
        found |= {(e, ":s", s) for e, s in db.edn("[:find ?e ?s :where [?e :row/s ?s]]")}
        assert found == facts
