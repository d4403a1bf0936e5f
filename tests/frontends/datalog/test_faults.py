"""What can be wrong with a program: each mistake its own error, with the place, the rule, and what to do."""

from __future__ import annotations

import pytest

from everview.errors import (
    DatalogError,
    EverviewError,
    NotStratified,
    TypeConflict,
    UnboundVariable,
    UnknownRelation,
)
from everview.frontends.datalog.parse import parse
from everview.frontends.rules.compile import compile_program
from everview.plan.catalog import Tables
from everview.types import Schema

KNOWN = Tables(
    {
        "edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"),
        "name": Schema.parse("id BIGINT NOT NULL, text STRING NOT NULL"),
        "size": Schema.parse("id BIGINT NOT NULL, much DOUBLE NOT NULL"),
        "cost": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL, w BIGINT NOT NULL"),
    }
)

# text: (error, what its message has)
MISTAKES: dict[str, tuple[type[EverviewError], str]] = {
    # reading
    "p(x) :- edge(x, _)": (DatalogError, "the text ends too early\n  line 1, column 19\n  hint: expected"),
    "p(x) :- edge(x _).": (DatalogError, "'_' cannot stand here\n  line 1, column 16:\n    p(x) :- edge(x _)."),
    "p(x) :- edge(x, _), q(x) r(x).": (DatalogError, "'r' cannot stand here"),
    "p(1)\nq(2).": (DatalogError, "'q' cannot stand here\n  line 2, column 1:"),
    "p($).": (DatalogError, "$ counts rows as they are found"),
    "#include <x>": (DatalogError, "hint: directives of a preprocessor are not read"),
    '.include "x.dl"': (DatalogError, 'there is no file "x.dl" to include\n  line 1, column 1'),
    "1 = 2 :- edge(1, 2).": (DatalogError, "1 = 2 is no head"),
    "p(x) :- edge(x, _), x + 1.": (DatalogError, "x + 1 is no condition"),
    "p(x = 1) :- edge(x, _).": (DatalogError, "cannot stand here"),
    "p(x) :- edge(x, _), x != nil.": (DatalogError, "nil is of which type?\n  line 1, column 1"),
    # declarations
    ".decl p(x: number) .decl p(x: number)": (DatalogError, "relation p is declared twice\n  line 1, column 26"),
    ".decl p(x: numbr)": (
        DatalogError,
        'type "numbr" does not exist\n  line 1, column 7\n  hint: did you mean "number"?',
    ),
    ".decl p(x: number, x: number)": (EverviewError, "names x twice"),
    ".type L = K .type K = L .decl p(x: L)": (DatalogError, "type L is made of itself"),
    ".type A = number | symbol .decl p(x: A)": (TypeConflict, "type A is BIGINT and STRING"),
    ".decl p(x: number, y: number) choice-domain x": (DatalogError, "p has a choice-domain, and no rules here"),
    # components
    ".init a = A": (DatalogError, 'component "A" does not exist'),
    ".comp A<T> { .decl p(x: T) } .init a = A": (DatalogError, "component A takes 1 parameters, and was given 0"),
    ".comp A { .init a = A } .init a = A": (DatalogError, "component A is made of itself"),
    # names
    "p(x) :- egde(x, _).": (
        UnknownRelation,
        'relation "egde" does not exist\n  line 1, column 9:\n    p(x) :- egde(x, _).\n  hint: did you mean "edge"?',
    ),
    "p(x) :- edge(x, _), !nothing(x).": (UnknownRelation, 'relation "nothing" does not exist'),
    "p(n) :- n = count : { nothing(_) }.": (UnknownRelation, 'relation "nothing" does not exist'),
    "p(x) :- edge(x).": (
        DatalogError,
        "edge has 2 columns, and edge(x) 1 terms\n  line 1, column 9:\n    p(x) :- edge(x).\n  hint: edge(a, b)",
    ),
    "p(x) :- edge(x, _). p(x, y) :- edge(x, y).": (DatalogError, "p has 1 columns, and p(x, y) 2 terms"),
    ".decl p() q(x) :- edge(x, _), p(x, x).": (DatalogError, "p has 0 columns, and p(x, x) 2 terms"),
    "p(x) :- edge(a: x, c: _).": (DatalogError, "edge has no column c\n  line 1, column 9"),
    "p(x) :- edge(a: x, a: x).": (DatalogError, "edge names a column twice"),
    "p(n: x) :- edge(x, _). p(m: x) :- edge(x, _).": (DatalogError, "p has no column m"),
    "p(n: x, m: x) :- edge(x, _). p(n: x) :- edge(x, _).": (DatalogError, "p(n: x) leaves out m"),
    "p(f(a: x)) :- edge(x, _).": (DatalogError, "a condition stands where a value should"),
    "p(shout(x)) :- name(_, x).": (DatalogError, 'functor "shout" does not exist'),
    "p(catt(x, x)) :- name(_, x).": (DatalogError, 'did you mean "cat"?'),
    "p(substr(x, 1)) :- name(_, x).": (DatalogError, "substr takes 3 arguments, and was given 2"),
    # variables that nothing binds
    "p(x, y) :- edge(x, _).": (
        UnboundVariable,
        "variable y is not bound in the head\n  line 1, column 1:\n    p(x, y) :- edge(x, _).\n  hint: use y",
    ),
    "p(x).": (UnboundVariable, "variable x is not bound in the head"),
    "p(_) :- edge(_, _).": (UnboundVariable, "variable _ is not bound in the head"),
    "p(x) :- edge(x, _), !edge(x, y).": (UnboundVariable, "variable y is not bound in a negation"),
    "p(x) :- edge(x, _), y < x.": (UnboundVariable, "variable y is not bound in y < x"),
    "p(x) :- edge(x, _), y = z.": (UnboundVariable, "variable y is not bound in y = z"),
    "p(x) :- edge(x + 1, _).": (UnboundVariable, "variable x is not bound"),
    'p(x) :- edge(x, _), match("a", y).': (UnboundVariable, 'variable y is not bound in match("a", y)'),
    "p(x, y) :- edge(x, _) ; edge(x, y).": (UnboundVariable, "variable y is not bound in the head"),
    "p(n) :- n = sum y : { edge(x, _) }.": (UnboundVariable, "variable y is not bound in the aggregate sum"),
    "p(n) :- n = count : { edge(x, _), y > x }.": (UnboundVariable, "variable y is not bound in y > x"),
    "p(x, n) :- n = count : { edge(x, _) }.": (
        UnboundVariable,
        "variable x is not bound outside of the aggregate count",
    ),
    "p(sum(y)) :- edge(x, _).": (UnboundVariable, "variable y is not bound in the head"),
    "p(x) :- edge(x, _), y = count : { edge(x, z) }, z > 1.": (UnboundVariable, "variable z is not bound"),
    # cycles
    "p(x) :- edge(x, _), !p(x).": (NotStratified, "p depends on its own negation: p → !p"),
    "p(x) :- edge(x, _), !q(x). q(x) :- p(x).": (NotStratified, "p depends on its own negation: p → !q → p"),
    "p(x) :- q(x). q(x) :- r(x). r(x) :- edge(x, _), !p(x).": (
        NotStratified,
        "r depends on its own negation: r → !p → q → r",
    ),
    "p(x) :- edge(x, _), 0 = count : { p(x) }.": (
        NotStratified,
        "p depends on an aggregate (count) of itself: p → count(p)",
    ),
    "p(x, n) :- edge(x, _), n = min y : { p(x, y) }.": (NotStratified, "an aggregate (min) of itself"),
    "p(x, sum(y)) :- p(x, y). p(x, sum(y)) :- edge(x, y).": (NotStratified, "an aggregate (sum) of itself"),
    # types
    "p(x) :- edge(x, y), name(_, y).": (
        TypeConflict,
        "variable y is BIGINT and STRING\n  line 1, column 1:\n    p(x) :- edge(x, y), name(_, y).",
    ),
    "p(x) :- edge(x, _), size(_, x).": (TypeConflict, "variable x is BIGINT and DOUBLE"),
    'p(x) :- edge(x, "a").': (TypeConflict, "column b of edge: BIGINT and STRING cannot be compared"),
    "p(x) :- name(x, y), y < x.": (TypeConflict, "y < x: STRING and BIGINT cannot be compared"),
    "p(x) :- edge(x, _). p(x) :- name(_, x).": (TypeConflict, "column x of p is BIGINT and STRING"),
    '.decl p(x: number) p("a").': (TypeConflict, "column x of p is BIGINT, and the rule gives STRING"),
    ".decl p(x: symbol) p(x) :- edge(x, _).": (TypeConflict, "column x of p is STRING, and the rule gives BIGINT"),
    "p(x + 1) :- name(_, x).": (TypeConflict, "add takes numbers, and was given STRING"),
    "p(cat(x, y)) :- name(x, y).": (TypeConflict, "cat takes text, and was given BIGINT"),
    "p(n) :- n = sum x : { name(_, x) }.": (TypeConflict, "sum of STRING"),
    "p(x) :- edge(x, _), x.": (DatalogError, "x is no condition"),
    "p(x ^ y) :- edge(x, y).": (TypeConflict, "an integer to a power that is no small constant"),
    "p(x) :- edge(x, y), (x, y) = [x, y, x].": (TypeConflict, "have different numbers of fields"),
    # heads
    "p(x) :- p(x).": (DatalogError, "p is defined by itself alone, so its types are not known"),
    "p(x) :- q(x). q(x) :- p(x).": (DatalogError, "is defined by itself alone"),
    "p(x, count(y)) :- edge(x, y). p(x, y) :- edge(x, y).": (DatalogError, "column 2 of p is a count in other rules"),
    "p(x, min(y)) :- edge(x, y). p(x, max(y)) :- edge(x, y).": (DatalogError, "is aggregated by min and max"),
    "p(x) :- edge(x, _), count(x) > 1.": (DatalogError, "count of which rows?"),
    "p(x) :- x = range(1, y), edge(y, _).": (DatalogError, "range(1, y) is no range of constants"),
    "p(x, y) <= p(x, z) :- y < 3. p(x, y) :- edge(x, y).": (DatalogError, "is no subsumption that can be maintained"),
    "p(x) :- edge(x, _). p(x) :- p(y), edge(y, x), 1 < count : { edge(z, _), z < y }.": (
        DatalogError,
        "needs y, which only other parts of this recursive rule bind",
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str) -> None:
    kind, message = MISTAKES[text]
    with pytest.raises(kind) as found:
        compile_program(parse(text), KNOWN)
    assert message in str(found.value)
    assert found.value.hint


# -- min and max inside of recursion

START = "d(x, min(0)) :- edge(x, _). "
NOT_MONOTONE = {
    "d(y, min(n * w)) :- d(x, n), cost(x, y, w).": "n * w may get worse as it gets better",
    "d(y, min(0 - n)) :- d(x, n), edge(x, y).": "0 - n may get worse as it gets better",
    "d(y, min(n * -2)) :- d(x, n), edge(x, y).": "n * -2 may get worse",
    "d(y, min(n % 3)) :- d(x, n), edge(x, y).": "n % 3 may get worse",
    "d(y, min(n)) :- d(x, n), edge(x, y), n > 3.": "n > 3 may become false as n gets better",
    "d(y, min(n)) :- d(x, n), edge(x, y), n = 3.": "n = 3 may become false",
    "d(y, min(n)) :- d(x, n), edge(x, y), m = n + 1, 7 < m.": "7 < m may become false",
    "d(y, min(n)) :- d(x, n), edge(n, y).": "n is joined",
    "d(y, min(n)) :- d(x, n), d(y, n).": "n is read twice",
    "d(y, min(1)) :- d(x, 3), edge(x, y).": "d(x, 3) asks for one value of it",
    "d(n, min(n)) :- d(x, n).": "n is a plain column of the head",
    "d(y, min(n)) :- d(x, n), edge(x, y), !edge(n, y).": "!edge(n, y) depends on n",
    "d(y, min(n)) :- d(x, n), edge(x, y), 1 = count : { edge(n, _) }.": "may become false as n gets better",
    "d(y, min(1)) :- r(x, _), edge(x, y). r(x, n) :- d(x, n).": "n is a plain column of the head",
    "d(y, min(n)) :- u(y, n). u(y, max(n)) :- d(y, n).": "n may get worse as it gets better",
}
MONOTONE = [
    "d(y, min(n + w)) :- d(x, n), cost(x, y, w).",
    "d(y, min(n - w)) :- d(x, n), cost(x, y, w).",
    "d(y, min(n * 2 + 3 * n / 4)) :- d(x, n), edge(x, y).",
    "d(y, min(m)) :- d(x, n), cost(x, y, w), m = n + w, m < 100, 7 >= n.",
    "d(y, min(max(n, w))) :- d(x, n), cost(x, y, w).",
    "d(y, min(min(n, w))) :- d(x, n), cost(x, y, w), !edge(x, x).",
    "d(y, min(1)) :- d(x, _), edge(x, y).",
    "d(y, min(n)) :- near(y), d(x, n), edge(x, y). near(x) :- d(x, n), n < 5.",
    "d(y, min(-n)) :- u(x, n), edge(x, y). u(y, max(-n)) :- d(x, n), edge(x, y).",
    "d(y, min(n)) :- (d(x, n), edge(x, y) ; d(x, n), edge(y, x)).",
]


@pytest.mark.parametrize("text", NOT_MONOTONE)
def test_extremes_that_are_not_monotone_are_refused(text: str) -> None:
    with pytest.raises(NotStratified, match="depends on its own") as found:
        compile_program(parse(START + text), KNOWN)
    assert NOT_MONOTONE[text] in str(found.value)


@pytest.mark.parametrize("text", MONOTONE)
def test_extremes_that_are_monotone_are_taken(text: str) -> None:
    assert "d" in compile_program(parse(START + text), KNOWN).heads
