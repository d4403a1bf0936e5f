"""Reading EDN: a table of texts and what they say, and of those that say nothing."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import EdnError
from everview.frontends.edn.forms import Keyword, List, MapOf, Scalar, SetOf, Symbol, Vector, form_of, python, written
from everview.frontends.edn.reader import read, read_all

READ = [
    ("nil", Scalar(None)),
    ("true", Scalar(True)),
    ("false", Scalar(False)),
    ("42", Scalar(42)),
    ("-7", Scalar(-7)),
    ("+7", Scalar(7)),
    ("0", Scalar(0)),
    ("12345678901234567890N", Scalar(12345678901234567890)),
    ("1.5", Scalar(1.5)),
    ("-1e3", Scalar(-1000.0)),
    ("2.", Scalar(2.0)),
    ("2.50M", Scalar(decimal.Decimal("2.50"))),
    ("3M", Scalar(decimal.Decimal("3"))),
    ("##Inf", Scalar(float("inf"))),
    ("##-Inf", Scalar(float("-inf"))),
    ('"a b"', Scalar("a b")),
    (r'"a\n\t\"\\\u0041"', Scalar('a\n\t"\\A')),
    ('"two\nlines"', Scalar("two\nlines")),
    (r"\a", Scalar("a")),
    (r"\newline", Scalar("\n")),
    (r"\u00e9", Scalar("é")),
    (r"[\( \)]", Vector((Scalar("("), Scalar(")")))),
    (":name", Keyword(":name")),
    (":track/name", Keyword(":track/name")),
    ("?x", Symbol("?x")),
    ("...", Symbol("...")),
    (".", Symbol(".")),
    ("<=", Symbol("<=")),
    ("-", Symbol("-")),
    ("%", Symbol("%")),
    ("$edges", Symbol("$edges")),
    ("clojure.string/upper-case", Symbol("clojure.string/upper-case")),
    ("(a 1)", List((Symbol("a"), Scalar(1)))),
    ("[1, 2 3]", Vector((Scalar(1), Scalar(2), Scalar(3)))),
    ("[]", Vector(())),
    ("#{1 true 1.0}", SetOf((Scalar(1), Scalar(True), Scalar(1.0)))),
    ("{:a 1, :b [2]}", MapOf(((Keyword(":a"), Scalar(1)), (Keyword(":b"), Vector((Scalar(2),)))))),
    ("; a comment\n 1 ; another", Scalar(1)),
    ("#_ 2 1", Scalar(1)),
    ("[1 #_ #_ 2 3 4]", Vector((Scalar(1), Scalar(4)))),
    ("[1 #_[2 3]]", Vector((Scalar(1),))),
    ('#inst "2026-01-02T03:04:05Z"', Scalar(dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC))),
    ('#inst "2026-01-02T03:04:05+02:00"', Scalar(dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC))),
    ('#uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"', Scalar("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
    ('#ev/date "2026-01-02"', Scalar(dt.date(2026, 1, 2))),
    ('#ev/bytes "00ff"', Scalar(b"\x00\xff")),
]

REFUSED = [
    ("", "nothing"),
    ("1 2", "2 forms"),
    ("[1 2", "1:1: this [ is never closed"),
    ("[1\n (2]", "2:4: ] closes a ("),
    ("]", "1:1: this ] closes nothing"),
    ('"abc', "1:1: this text is never closed"),
    (r'["a" "b\q"]', r"1:8: there is no escape \q"),
    ("1/2", "1:1: 1/2 is a ratio"),
    ("007", "1:1: 007 is neither"),
    ("1x", "1:1: 1x is neither"),
    (":", "1:1: : is neither"),
    ("{:a}", "1:1: a map has a value for every key"),
    ("{:a 1 :a 2}", "1:7: the key :a stands here twice"),
    ("#{1 1}", "1:5: the element 1 stands here twice"),
    ('#foo "x"', "1:1: the tag #foo is not known"),
    ("#inst 3", "1:1: #inst is followed by text"),
    ('#inst "soon"', '1:1: #inst "soon" is none'),
    ("[1 #_]", "1:6: this ] closes nothing"),
    ("#_", "1:1: nothing follows this #_"),
    (r"\long", r"1:1: \long is no character"),
    ("##Zero", "1:1: ##Zero is no number"),
]


@pytest.mark.parametrize(("text", "form"), READ)
def test_reads(text: str, form: object) -> None:
    assert read(text) == form


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(EdnError) as error:
        read(text)
    assert message in error.value.message
    assert error.value.hint


def test_places() -> None:
    outer = read("[1\n  :a]")
    assert isinstance(outer, Vector)
    assert [(item.place.line, item.place.column) for item in outer.items] == [(1, 2), (2, 3)]
    assert len(read_all("1 [2] ; 3")) == 2


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.binary(max_size=4)
    | st.dates() | st.datetimes(timezones=st.just(dt.UTC)),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)  # fmt: skip


@given(values)
def test_what_is_written_reads_as_itself(value: object) -> None:
    assert python(read(written(form_of(value)))) == value
