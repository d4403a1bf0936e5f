"""Texts that are too deep, too wide or none at all: a clear error in a moment, and everything as it was."""

import datetime as dt

import pytest

import everview as ev
from everview.errors import DatalogError, TypeConflict, WrongType


@pytest.fixture
def db():
    found = ev.connect()
    found.sql("CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL)")
    found.datalog("p(x, y) :- e(x, y).")
    found.apply({"e": [((1, 2), 1)]})
    return found


BRANCHES = ", ".join(f"(e(x, {n}) ; e(x, {n + 1}))" for n in range(25))

REFUSED = {
    "parentheses around a term": (f"q({'(' * 2000}1{')' * 2000}).", "nested too deeply"),
    "parentheses around a body": (f"q(x) :- {'(' * 1500}e(x, _){')' * 1500}.", "nested too deeply"),
    "a long sum": (f"q(x) :- e(x, _), x = {'+'.join(['1'] * 3000)}.", "nested too deeply"),
    "negations": (f"q(x) :- e(x, _), {'!(' * 500}e(x, _){')' * 500}.", "nested too deeply"),
    "combinations": (f"q(x) :- e(x, _), {BRANCHES}.", "more than 1,024 combinations"),
    "combinations in an aggregate": (f"q(n) :- n = count : {{ e(x, _), {BRANCHES} }}.", "more than 1,024 combinations"),
    "combinations in a negation": (f"q(x) :- e(x, _), !({BRANCHES}).", "more than 1,024 combinations"),
    "a long range": ("q(x) :- x = range(0, 100000000000).", "more than 100,000 numbers"),
    "an escape that is none": (r'q("\u12").', r"is no text\n  line 1, column 3"),
    "a subsumption of other rules": ("p(x, a) <= p(x, b) :- b < a.", "p has no rules here"),
    "a subsumption of a table": (".decl t(x: number)\n.input t\nt(a) <= t(b) :- b < a.", "t has no rules here"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(db, text, message):
    with pytest.raises(DatalogError, match=message) as error:
        db.datalog(text)
    assert error.value.hint
    assert (db.tables(), db.views(), len(db.rules())) == (["e"], ["p"], 1)
    assert list(db.apply({"e": [((2, 3), 1)]})["p"]) == [((2, 3), 1)]
    assert db.verify()


@pytest.mark.parametrize("text", [None, 5, b"p(1)."])
@pytest.mark.parametrize("dialect", ["souffle", "pomologic", "pomora"])
def test_no_text(db, text, dialect):
    with pytest.raises(WrongType, match=r"text is .*, not text"):
        db.datalog(text, dialect=dialect)


def test_a_constant_that_does_not_fit(db):
    with pytest.raises(TypeConflict, match=r"line 2, column 1:\n    q\(99999999999999999999\)"):
        db.datalog(".decl q(x: number)\nq(99999999999999999999).")
    db.datalog("p(1, 99999999999999999999).")
    assert sorted(db.view("p").rows()) == [(1, 2), (1, 99999999999999999999)]
    assert db.verify()


@pytest.mark.filterwarnings("error")
def test_a_backslash_that_is_no_escape_is_itself(db):
    db.datalog(r'w("a\d"). w("12"). n(x) :- w(x), match("\d+", x).')
    assert db.view("n").rows() == [("12",)]
    assert ("a\\d",) in db.view("w").rows()


def test_many_alternatives_that_can_be_joined(db):
    db.datalog(f"q(x) :- e(x, _), {', '.join(f'(e(x, {n}) ; e(x, {n + 1}))' for n in (1, 2, 3))}.")
    db.apply({"e": [((1, 3), 1)]})
    assert db.view("q").rows() == [(1,)]


def test_a_column_that_equals_a_constant_keeps_its_type():
    db = ev.connect()
    db.sql("CREATE TABLE t (d DATE, f DOUBLE)")
    db.datalog('day(x) :- x = "2026-01-01", t(x, _). one(x) :- t(_, x), x = 1. one(x) :- t(_, x), x > 2.')
    db.apply({"t": [((dt.date(2026, 1, 1), 1.0), 1), ((dt.date(2026, 1, 2), 2.5), 1)]})
    assert db.view("day").rows() == [(dt.date(2026, 1, 1),)]
    assert [str(f.type) for v in ("day", "one") for f in db.view(v).schema.fields] == ["DATE", "DOUBLE"]
    assert sorted(db.view("one").rows()) == [(1.0,), (2.5,)]
    assert db.verify()


def test_a_dialect_is_a_name() -> None:
    with pytest.raises(WrongType, match="dialect is"):
        ev.connect().datalog("p(1).", dialect=["souffle"])  # type: ignore[arg-type]


def test_of_a_long_line_only_the_place_is_shown(db):
    with pytest.raises(DatalogError, match="cannot stand here") as refused:
        db.datalog("q([" * 10_000 + "x" + "]" * 10_000 + ") :- e(x, _).")
    assert len(str(refused.value)) < 500
    line, caret = str(refused.value).splitlines()[2:4]
    assert line[caret.index("^")] == "]"
