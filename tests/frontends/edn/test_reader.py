"""Reading EDN: a table of texts and what they say, and of those that say nothing."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import EdnError
from everview.frontends.edn.forms import (
    KeywordForm,
    ListForm,
    MapForm,
    ScalarForm,
    SetForm,
    SymbolForm,
    VectorForm,
    form_of,
    python,
    written,
)
from everview.frontends.edn.reader import read, read_all

READ = [
    ("nil", ScalarForm(None)),
    ("true", ScalarForm(True)),
    ("false", ScalarForm(False)),
    ("42", ScalarForm(42)),
    ("-7", ScalarForm(-7)),
    ("+7", ScalarForm(7)),
    ("0", ScalarForm(0)),
    ("12345678901234567890N", ScalarForm(12345678901234567890)),
    ("1.5", ScalarForm(1.5)),
    ("-1e3", ScalarForm(-1000.0)),
    ("2.", ScalarForm(2.0)),
    ("2.50M", ScalarForm(decimal.Decimal("2.50"))),
    ("3M", ScalarForm(decimal.Decimal("3"))),
    ("##Inf", ScalarForm(float("inf"))),
    ("##-Inf", ScalarForm(float("-inf"))),
    ('"a b"', ScalarForm("a b")),
    (r'"a\n\t\"\\\u0041"', ScalarForm('a\n\t"\\A')),
    ('"two\nlines"', ScalarForm("two\nlines")),
    (r"\a", ScalarForm("a")),
    (r"\newline", ScalarForm("\n")),
    (r"\u00e9", ScalarForm("é")),
    (r"[\( \)]", VectorForm((ScalarForm("("), ScalarForm(")")))),
    (":name", KeywordForm(":name")),
    (":track/name", KeywordForm(":track/name")),
    ("?x", SymbolForm("?x")),
    ("...", SymbolForm("...")),
    (".", SymbolForm(".")),
    ("<=", SymbolForm("<=")),
    ("-", SymbolForm("-")),
    ("%", SymbolForm("%")),
    ("$edges", SymbolForm("$edges")),
    ("clojure.string/upper-case", SymbolForm("clojure.string/upper-case")),
    ("(a 1)", ListForm((SymbolForm("a"), ScalarForm(1)))),
    ("[1, 2 3]", VectorForm((ScalarForm(1), ScalarForm(2), ScalarForm(3)))),
    ("[]", VectorForm(())),
    ("#{1 true 1.0}", SetForm((ScalarForm(1), ScalarForm(True), ScalarForm(1.0)))),
    (
        "{:a 1, :b [2]}",
        MapForm(((KeywordForm(":a"), ScalarForm(1)), (KeywordForm(":b"), VectorForm((ScalarForm(2),))))),
    ),
    ("; a comment\n 1 ; another", ScalarForm(1)),
    ("#_ 2 1", ScalarForm(1)),
    ("[1 #_ #_ 2 3 4]", VectorForm((ScalarForm(1), ScalarForm(4)))),
    ("[1 #_[2 3]]", VectorForm((ScalarForm(1),))),
    ('#inst "2026-01-02T03:04:05Z"', ScalarForm(dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC))),
    ('#inst "2026-01-02T03:04:05+02:00"', ScalarForm(dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC))),
    ('#uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"', ScalarForm("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
    ('#ev/date "2026-01-02"', ScalarForm(dt.date(2026, 1, 2))),
    ('#ev/bytes "00ff"', ScalarForm(b"\x00\xff")),
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
    assert isinstance(outer, VectorForm)
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
