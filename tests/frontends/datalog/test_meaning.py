"""What programs mean: rows by hand, in a database, and by the oracle."""

from __future__ import annotations

from typing import Any

import pytest

import everview as ev
from everview import connect
from everview.errors import ArithmeticFailure, TypeConflict
from everview.frontends.datalog.parse import parse
from everview.frontends.rules.compile import compile_program, whole
from everview.oracle.plans import evaluate
from everview.plan.catalog import Tables
from everview.plan.nodes import Recursive, scans
from everview.types import Schema

E = "e(1, 2). e(2, 3). e(1, 3). e(3, 3). "

# text: the rows of its last head
MEANINGS: dict[str, list[tuple[Any, ...]]] = {
    # joins, constants, wildcards
    E + "p(x, z) :- e(x, y), e(y, z).": [(1, 3), (2, 3), (3, 3)],
    E + "p(x) :- e(x, x).": [(3,)],
    E + "p(y) :- e(1, y).": [(2,), (3,)],
    E + "p(x) :- e(x, _).": [(1,), (2,), (3,)],
    E + "p(x, y) :- e(x, _), e(_, y), x > y.": [(3, 2)],
    E + "p(x) :- e(x, x + 1).": [(1,), (2,)],
    E + "p(x) :- e(x - 1, x).": [(2,), (3,)],
    E + "p(x, y) :- x = 1, e(x, y), y = x + 1.": [(1, 2)],
    ".decl t(a: number, b: number, c: number) t(1, 2, 3). p(n: x, m: y) :- t(c: x, a: y).": [(3, 1)],
    "p(n: 1, m: 2). p(m: 3, n: 4).": [(1, 2), (4, 3)],
    # aggregates in heads, values as of other types
    E + "p(sum x : { e(x, _) }).": [(7,)],
    E + "p(sum x : { e(x, _) } + 1, count : { e(_, _) }).": [(8, 4)],
    E + "p(x, max y : { e(x, y) }) :- e(x, _).": [(1, 3), (2, 3), (3, 3)],
    E + "p(x, count : { e(x, _) }) :- e(x, 2) ; e(_, x), x > 2.": [(1, 2), (3, 1)],
    ".type Small <: number " + E + "p(as(x, Small)) :- e(as(x, number), 2).": [(1,)],
    # disjunction, several heads
    E + "p(x) :- e(x, 2) ; e(x, 3), e(3, x).": [(1,), (3,)],
    E + "q(x), p(x) :- e(x, 2).": [(1,)],
    # negation
    E + "p(x) :- e(x, _), !e(_, x).": [(1,)],
    E + "p(x) :- e(x, _), !e(x, 3).": [],
    E + "p(x) :- e(x, _), !(e(x, y), y < 3), x > 0.": [(2,), (3,)],
    E + "p(x) :- e(x, _), !(e(y, x), y != x).": [(1,)],
    E + "p(x) :- e(x, _), !(e(x, 2) ; e(2, x)).": [(2,)],
    E + "p(x) :- e(x, _), !(n = count : { e(x, _) }, n > 1).": [(2,), (3,)],
    # negations inside of negations
    E + "p(x) :- e(x, _), !!e(_, x).": [(2,), (3,)],
    E + "p(x) :- e(x, _), !!!e(_, x).": [(1,)],
    E + "p(x) :- e(x, _), !(!e(x, 2), !e(2, x)).": [(1,), (3,)],
    E + "p(x) :- e(x, _), !(!e(x, 3) ; !e(_, x)).": [(2,), (3,)],
    E + "p(x) :- e(x, _), !(!(e(x, 2) ; e(x, x))).": [(1,), (3,)],
    E + "p(x) :- e(x, _), !(!(e(x, y), e(y, x))).": [(3,)],
    E + "p(x) :- e(x, _), !(!e(_, x), x < 3).": [(2,), (3,)],
    E + "p(x) :- e(x, _), !(!(x > 2)).": [(3,)],
    E + "p(x) :- e(x, _), !(e(x, y), !e(y, x)).": [(3,)],
    E + "p(x) :- e(x, _), !(e(_, y), !e(x, y)).": [(1,)],
    E + "p(x) :- e(x, _), !(!(!(!e(x, x), x = 1))).": [(2,), (3,)],
    E + "p(n) :- n = count : { e(x, _), !(!e(x, 2), !e(x, x)) }.": [(3,)],
    E + "p(x) :- e(x, _), !(0 = count : { e(x, y), !!e(y, y) }).": [(1,), (2,), (3,)],
    E + "p(1). p(y) :- p(x), e(x, y), !!e(x, 2).": [(1,), (2,), (3,)],
    E + "p(1). p(y) :- p(x), e(x, y), !(!e(x, 2), !e(x, x)).": [(1,), (2,), (3,)],
    E + "p(2). p(y) :- p(x), e(x, y), !(!e(x, 2), !e(x, x)).": [(2,)],
    E + "h() :- e(7, _). p(x) :- e(x, _), !h().": [(1,), (2,), (3,)],
    E + "h() :- e(1, _). p(x) :- e(x, _), h(), x < 2.": [(1,)],
    # recursion
    E + "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).": [(1, 2), (1, 3), (2, 3), (3, 3)],
    "p(0). p(x + 1) :- p(x), x < 3.": [(0,), (1,), (2,), (3,)],
    "o(1). o(x + 2) :- o(x), x < 6. p(x) :- o(x), !q(x). q(3).": [(1,), (5,), (7,)],
    "b(0). a(x) :- b(x). b(x + 1) :- a(x), x < 2. p(x) :- a(x), b(x).": [(0,), (1,), (2,)],
    E + "p(x, y) :- e(x, y) ; p(x, z), e(z, y).": [(1, 2), (1, 3), (2, 3), (3, 3)],
    E + "p(x, min(y)) :- e(x, y) ; p(x, z), e(1, y), z < 9.": [(1, 2), (2, 2), (3, 2)],
    # aggregates in bodies
    E + "p(x, n) :- e(x, _), n = count : { e(x, _) }.": [(1, 2), (2, 1), (3, 1)],
    E + "p(y, n) :- e(_, y), n = count : { e(y, _) }.": [(2, 1), (3, 1)],
    E + "p(n) :- n = count : { e(x, y), x < y }.": [(3,)],
    E + "p(n) :- n = sum y : { e(_, y) }.": [(11,)],
    E + "p(n) :- n = sum y : { e(7, y) }.": [(0,)],
    E + "p(n) :- n = max y : { e(7, y) }.": [],
    E + "p(x, m) :- e(x, _), m = mean y : { e(x, y) }.": [(1, 2.5), (2, 3.0), (3, 3.0)],
    E + "p(x, n) :- e(x, _), n = count : { e(y, _), y < x }.": [(1, 0), (2, 2), (3, 3)],
    E + "p(x, n) :- e(x, _), n = min (y * x) : { e(y, _) }.": [(1, 1), (2, 2), (3, 3)],
    E + "p(n) :- n = count : { e(x, _) ; e(_, x) }.": [(3,)],
    E + "p(x) :- e(x, _), 1 < count : { e(x, _) }.": [(1,)],
    E + "p(x) :- e(x, max y : { e(_, y) }).": [(1,), (2,), (3,)],
    E + "p(a + b) :- a = count : { e(1, _) }, b = sum x : { e(x, 3) }.": [(8,)],
    E + "p(n) :- n = count : { e(x, _), !e(_, x) }.": [(2,)],
    E + "p(n) :- n = max c : { e(x, _), c = count : { e(x, _) } }.": [(2,)],
    # witnesses of an aggregate in a body
    E + "p(x, m) :- m = max y : { e(x, y) }.": [(1, 3), (2, 3), (3, 3)],
    E + "p(x) :- 1 + min y : { e(x, y) } = 3.": [(1,)],
    E + "p(x, y) :- e(x, _), m = min z + 0 : { e(x, y), z = y }, m < 3.": [(1, 2)],
    E + "p(x, m) :- m = max y : { e(x, y), y < 3 } ; m = min y : { e(x, y), x > 2 }.": [(1, 2), (3, 3)],
    # aggregates in heads
    E + "p(x, count(y), sum(y), max(y)) :- e(x, y).": [(1, 2, 5, 3), (2, 1, 3, 3), (3, 1, 3, 3)],
    E + "p(sum(y), x) :- e(x, y).": [(3, 2), (3, 3), (5, 1)],
    E + "p(count(x)) :- e(x, _), x > 7.": [],
    E + "p(average(y), mean(y)) :- e(_, y).": [(2, 2.75)],
    E + "p(count(x)) :- e(x, _) ; e(_, x).": [(3,)],
    E + "p(count(1)) :- e(1, _) ; e(_, 3).": [(1,)],
    E + "p(n) :- n = count : { e(1, _) ; e(_, 7) }.": [(1,)],
    E + "p(x, min(y)) :- e(x, y). p(x, min(0)) :- e(_, x).": [(1, 2), (2, 0), (3, 0)],
    E + "p(x, min(y)) :- e(x, y). p(x, 0) :- e(_, x).": [(1, 2), (2, 0), (3, 0)],
    # extremes in recursion
    "w(1, 2, 4). w(1, 3, 1). w(3, 2, 1). w(2, 1, 0). p(1, min(0)). p(y, min(d + c)) :- p(x, d), w(x, y, c).": [
        (1, 0),
        (2, 2),
        (3, 1),
    ],
    "w(1, 2, 4). w(1, 3, 1). w(3, 2, 1). p(1, 0). p(y, d + c) :- p(x, d), w(x, y, c). p(x, a) <= p(x, b) :- b <= a.": [
        (1, 0),
        (2, 2),
        (3, 1),
    ],
    "w(1, 2). w(2, 1). w(3, 4). p(x, min(x)) :- w(x, _) ; w(_, x). p(y, min(l)) :- p(x, l), w(x, y).": [
        (1, 1),
        (2, 1),
        (3, 3),
        (4, 3),
    ],
    # functors
    "a(7, 2). p(x + y, x - y, x * y, x / y, x % y, x ^ 2, -x) :- a(x, y).": [(9, 5, 14, 3, 1, 49, -7)],
    "a(-7, 2). p(x / y, x % y) :- a(x, y).": [(-3, -1)],
    "a(7.0, 2). p(x / to_float(y), x ^ 2.0) :- a(x, y).": [(3.5, 49.0)],
    "a(5, 3). p(x band y, x bor y, x bxor y, x bshl y, x bshr 1, bnot x) :- a(x, y).": [(1, 7, 6, 40, 2, -6)],
    "a(5, 0). p(x land y, x lor y, x lxor y, lnot y) :- a(x, y).": [(0, 1, 1, 1)],
    "a(5, 3). p(min(x, y), max(x, y, 9)) :- a(x, y).": [(3, 9)],
    's("abcd"). p(cat(x, "!", x), strlen(x), substr(x, 1, 2)) :- s(x).': [("abcd!abcd", 4, "bc")],
    's("12"). p(to_number(x) + 1, to_string(7), to_float(x)) :- s(x).': [(13, "7", 12.0)],
    's("abc"). s("xyz"). p(x) :- s(x), contains("b", x).': [("abc",)],
    's("abc"). s("ab"). p(x) :- s(x), match("a.", x).': [("ab",)],
    's("abc"). s("ab"). p(x) :- s(x), !match("a.", x).': [("abc",)],
    's("abc"). s("abd"). p(x) :- s(x), s(y), x < y.': [("abc",)],
    's("a"). s("b"). p(n) :- n = count : { s(x), s(y), ord(x) = ord(y) }.': [(2,)],
    's("ab"). p(upper(x), reverse(x)) :- s(x).': [("AB", "ba")],
    "p(x, y) :- x = range(0, 4, 2), y = range(1, 3).": [(0, 1), (0, 2), (2, 1), (2, 2)],
    "p(true, 1.5). q(x) :- p(true, x).": [(1.5,)],
    # records
    "a(1, 2). t([x, y]) :- a(x, y). p(y, x) :- t([x, y]).": [(2, 1)],
    "a(1, 2). a(1, 1). p(x) :- a(x, y), t = (x, y), (z, z) = t.": [(1,)],
    'a(1, "b"). t([x, [y, x]]) :- a(x, y). p(z) :- t(r), r = [_, [z, _]].': [("b",)],
    "a(1, 2). t([x, y]) :- a(x, y). p(x) :- a(x, y), !t([y, x]).": [(1,)],
    "a(1, 2). a(2, 1). t([x, y]) :- a(x, y). p(n) :- n = count : { t(r), t(s), r = s }.": [(2,)],
    # others
    ".decl p(a: number, b: number) eqrel p(1, 2). p(2, 3).": [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)],
    ".comp C<T> { .decl in(x: T) .decl out(x: T) out(x) :- in(x), x != 1. } .init c = C<number> c.in(1). c.in(2). "
    "p(x) :- c.out(x).": [(2,)],
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str) -> None:
    db = connect()
    db.datalog(text)
    heads = parse(text).heads
    goal = "q" if heads[-1] == "q" and "p(true" in text else "p"
    assert sorted(db.view(goal).rows(), key=repr) == sorted(MEANINGS[text], key=repr)
    assert db.verify()
    plan = whole(parse(text), goal, Tables({}))
    assert not scans(plan)
    assert dict(evaluate(plan, {})) == dict.fromkeys(MEANINGS[text], 1)


# -- tables of a database


def test_tables_are_sets_to_rules() -> None:
    db = connect()
    db.sql("CREATE TABLE sale (dept BIGINT, much BIGINT)")
    db.datalog("n(count(d)) :- sale(d, _). total(d, sum(m)) :- sale(d, m).")
    db.apply({"sale": [((1, 10), 2), ((1, 5), 1), ((2, 7), 1)]})
    assert db.view("n").rows() == [(3,)]
    assert sorted(db.view("total").rows()) == [(1, 15), (2, 7)]
    db.apply({"sale": [((1, 10), -1)]})
    assert db.view("n").rows() == [(3,)]
    db.apply({"sale": [((1, 10), -1)]})
    assert sorted(db.view("total").rows()) == [(1, 5), (2, 7)]
    assert db.verify()


def test_constants_take_the_types_of_columns() -> None:
    db = connect()
    db.sql(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, at DATE NOT NULL, much DECIMAL(12,2) NOT NULL, share FLOAT NOT NULL)"
    )
    db.datalog(
        """late(i) :- t(i, d, _, _), d >= "2026-02-01".
           much(i) :- t(i, _, m, _), m > 9.5, m < 100.
           tenth(i) :- t(i, _, _, 0.1).
           day(i) :- t(i, "2026-01-01", _, _)."""
    )
    db.apply({"t": [((1, "2026-01-01", "9.50", 0.1), 1), ((2, "2026-02-01", "9.51", 0.2), 1)]})
    assert [db.view(name).rows() for name in ("late", "much", "tenth", "day")] == [[(2,)], [(2,)], [(1,)], [(1,)]]
    assert db.verify()


def test_null_equals_nothing() -> None:
    db = connect()
    db.sql("CREATE TABLE t (a BIGINT, b BIGINT)")
    db.datalog("meets(x, y) :- t(x, z), t(z, y). all(x) :- t(x, _). lone(x) :- t(x, _), !t(_, x).")
    db.apply({"t": [((1, None), 1), ((None, 2), 1), ((2, 1), 1)]})
    assert sorted(db.view("meets").rows(), key=str) == [(2, None), (None, 1)]
    assert sorted(db.view("all").rows(), key=str) == [(1,), (2,), (None,)]
    assert db.view("lone").rows() == [(None,)]
    assert db.verify()


@pytest.mark.parametrize("times", [1, 2, 3, 1000])
def test_an_atom_that_is_repeated(times: int) -> None:
    db = connect()
    db.sql("CREATE TABLE e (a BIGINT, b BIGINT); INSERT INTO e VALUES (1, 2), (2, 3), (NULL, 4)")
    body = ", ".join(["e(x, y)"] * times)
    db.datalog(f"""
        p(x, y) :- {body}.
        none(x) :- e(_, x), !({body}, y > 0).
        n(c) :- c = count : {{ {body} }}.
        ways(c) :- c = count : {{ {", ".join(["e(_, _)"] * min(times, 3))} }}.
        reached(x, y) :- {body}.
        reached(x, z) :- {", ".join(["reached(x, y)"] * times)}, e(y, z).
    """)
    nulls = [(None, 4)] if times == 1 else []
    assert set(db.view("p").rows()) == {(1, 2), (2, 3), *nulls}
    assert set(db.view("none").rows()) == {(3,), (4,)}
    assert list(db.view("n").rows()) == [(2 + len(nulls),)]
    assert list(db.view("ways").rows()) == [(3 ** min(times, 3),)]
    assert set(db.view("reached").rows()) == {(1, 2), (2, 3), (1, 3), *nulls}
    assert db.verify()


def test_null_in_what_a_nested_negation_or_an_aggregate_shares() -> None:
    db = connect()
    db.sql("CREATE TABLE t (x BIGINT); CREATE TABLE a (x BIGINT); CREATE TABLE b (x BIGINT)")
    db.datalog(
        """twice(x) :- t(x), !!a(x).
           either(x) :- t(x), !(!a(x), !b(x)).
           divided(x) :- t(x), !(a(y), y > 0, !b(x)).
           counted(x, n) :- t(x), n = count : { a(y), !b(x) }."""
    )
    db.apply({"t": [((1,), 1), ((None,), 1), ((3,), 1)], "a": [((1,), 1), ((None,), 1)], "b": [((3,), 1)]})
    assert db.view("twice").rows() == [(1,)]
    assert sorted(db.view("either").rows()) == [(1,), (3,)]
    assert db.view("divided").rows() == [(3,)]
    assert sorted(db.view("counted").rows(), key=str) == [(1, 2), (3, 0), (None, 2)]
    assert db.verify()


def test_integers_of_all_widths_join() -> None:
    db = connect()
    db.sql(
        "CREATE TABLE a (x INT NOT NULL); CREATE TABLE b (x BIGINT NOT NULL); CREATE TABLE c (x DECIMAL(9,0) NOT NULL)"
    )
    db.datalog("p(x) :- a(x), b(x), c(x). q(x) :- a(x) ; b(x).")
    db.apply({"a": [((1,), 1), ((2,), 1)], "b": [((1,), 1), ((1 << 40,), 1)], "c": [((1,), 1)]})
    assert db.view("p").rows() == [(1,)]
    assert sorted(db.view("q").rows()) == [(1,), (2,), (1 << 40,)]
    assert db.verify()


def test_an_overflow_is_an_error_and_leaves_everything_as_it_was() -> None:
    db = connect()
    db.datalog(".decl a(x: number)\n.input a\np(x * x) :- a(x).")
    db.apply({"a": [((2,), 1)]})
    with pytest.raises(ArithmeticFailure):
        db.apply({"a": [((1 << 40,), 1)]})
    assert db.view("p").rows() == [(4,)]
    assert db.view("a") is not None if "a" in db.views() else True


# -- functions of users


@ev.function("BIGINT", name="datalog_twice", by_row=True)
def _twice(x: int) -> int:
    return 2 * x


@ev.function("BOOLEAN", name="datalog_even", by_row=True)
def _even(x: int) -> bool:
    return x % 2 == 0


def test_functions_of_users_are_functors() -> None:
    db = connect()
    db.datalog(
        """.functor datalog_twice(x: number): number
           .extern fn datalog_even(x: int64) -> bool
           a(1). a(2).
           p(datalog_twice(x) + 1) :- a(x).
           q(x) :- a(x), datalog_even(x).
           r(x) :- a(x), datalog_even(x) = false."""
    )
    assert sorted(db.view("p").rows()) == [(3,), (5,)]
    assert db.view("q").rows() == [(2,)]
    assert db.view("r").rows() == [(1,)]
    assert db.verify()


# -- what compiling says


KNOWN = Tables({"edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL")})


def test_heads_of_a_group_share_their_bindings() -> None:
    text = "a(x, y) :- edge(x, y). a(x, z) :- b(x, y), edge(y, z). b(x, y) :- a(x, y). c(x) :- a(x, x)."
    compiled = compile_program(parse(text), KNOWN)
    together, alone = compiled.groups
    assert together.recursive
    assert not alone.recursive
    a, b = (head.optimized for head in together.heads)
    assert isinstance(a, Recursive)
    assert isinstance(b, Recursive)
    assert a.bindings == b.bindings
    assert alone.heads[0].reads == ("a",)


def test_what_is_given_and_derived_is_said() -> None:
    text = ".decl arc(a: number, b: number)\n.input arc\n.output arc\narc(b, a) :- arc(a, b)."
    compiled = compile_program(parse(text), Tables({}))
    assert compiled.heads["arc"].reads == ("arc.given",)
    assert list(compiled.inputs) == ["arc"]
    assert compiled.outputs == ("arc",)


def test_types_are_found_around_a_cycle() -> None:
    text = "a(x) :- b(x). b(x) :- c(x + 0). c(x) :- a(x). c(x) :- small(x). a(x) :- edge(x, _)."
    known = Tables({**KNOWN.relations, "small": Schema.parse("x INT")})
    heads = compile_program(parse(text.replace("c(x + 0)", "c(x)")), known).heads
    assert {str(heads[name].schema) for name in "abc"} == {"x BIGINT"}


def test_a_conflict_is_found_around_a_cycle() -> None:
    known = Tables({**KNOWN.relations, "name": Schema.parse("x STRING NOT NULL")})
    with pytest.raises(TypeConflict, match=r"is BIGINT and STRING|is STRING and BIGINT"):
        compile_program(parse("a(x) :- b(x). b(x) :- a(x). a(x) :- edge(x, _). b(x) :- name(x)."), known)
