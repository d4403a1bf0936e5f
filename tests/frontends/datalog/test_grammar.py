"""The language: what each way of writing something is, as rules and declarations."""

from __future__ import annotations

import pytest

from everview.frontends.datalog.parse import parse
from everview.frontends.rules.program import RuleProgram

RULES = {
    # facts and rules
    "p(1).": "p(1).",
    'p(-1, 2.5, "a", true, False).': 'p(-1, 2.5, "a", true, false).',
    "größe(ü) :- maß(ü).": "größe(ü) :- maß(ü).",
    "p(0x1f, 0b101, 7u, 1e3, 1.5e-2).": "p(31, 5, 7, 1000.0, 0.015).",
    r'p("a\"b\n").': r'p("a\"b\n").',
    "p().": "p().",
    "p(x):-q(x),r(x).": "p(x) :- q(x), r(x).",
    "p(X) :- q(X, _), ?v(X).": "p(X) :- q(X, _), ?v(X).",
    "p(x), q(x) :- r(x).": "p(x) :- r(x). | q(x) :- r(x).",
    "p(x) :- x = y, q(y).\nr(1).": "p(x) :- x = y, q(y). | r(1).",
    "p(x) // all of it\n :- /* q\n and r */ q(x).": "p(x) :- q(x).",
    "p(x) :- q(b: x, a: 1), !r(c: x).": "p(x) :- q(b: x, a: 1), !r(c: x).",
    "p(n: x, m: x + 1) :- q(x).": "p(n: x, m: x + 1) :- q(x).",
    # disjunction and negation
    "p(x) :- q(x) ; r(x).": "p(x) :- (q(x) ; r(x)).",
    "p(x) :- q(x), (r(x) ; s(x), t(x)).": "p(x) :- q(x), (r(x) ; s(x), t(x)).",
    "p(x) :- (q(x)), ((r(x))).": "p(x) :- q(x), r(x).",
    "p(x) :- q(x), !r(x), !s(x, _).": "p(x) :- q(x), !r(x), !s(x, _).",
    "p(x) :- q(x), !(r(x), x > 1 ; s(x)).": "p(x) :- q(x), !(r(x), x > 1 ; s(x)).",
    "p(x) :- q(x), !(r(x, y), x > y).": "p(x) :- q(x), !(r(x, y), x > y).",
    "p(x) :- q(x), !(r(x)).": "p(x) :- q(x), !r(x).",
    # constraints
    "p(x) :- q(x), x != 1, x < 2, x <= 3, x > 4, x >= 5.": "p(x) :- q(x), x != 1, x < 2, x <= 3, x > 4, x >= 5.",
    'p(x) :- q(x), match("a.*", x), !contains("b", x).': ('p(x) :- q(x), match("a.*", x), lnot(contains("b", x)).'),
    "p(x) :- q(x), true.": "p(x) :- q(x), true.",
    # arithmetic
    "p(a + b * c) :- q(a, b, c).": "p(a + (b * c)) :- q(a, b, c).",
    "p((a + b) * c) :- q(a, b, c).": "p((a + b) * c) :- q(a, b, c).",
    "p(a - b - c) :- q(a, b, c).": "p((a - b) - c) :- q(a, b, c).",
    "p(a ^ b ^ c) :- q(a, b, c).": "p(a ^ (b ^ c)) :- q(a, b, c).",
    "p(-a + -3 / b % c) :- q(a, b, c).": "p(-a + ((-3 / b) % c)) :- q(a, b, c).",
    "p(a band b bor c bshl 1) :- q(a, b, c).": "p((a band b) bor (c bshl 1)) :- q(a, b, c).",
    "p(a land b lor c, lnot a, bnot b) :- q(a, b, c).": "p((a land b) lor c, lnot(a), bnot(b)) :- q(a, b, c).",
    "p(min(a, b), max(a, b, c)) :- q(a, b, c).": "p(min(a, b), max(a, b, c)) :- q(a, b, c).",
    "p(cat(a, strlen(b))) :- q(a, b).": "p(cat(a, strlen(b))) :- q(a, b).",
    # aggregates
    "p(n) :- n = count : { q(_) }.": "p(n) :- n = count : { q(_) }.",
    "p(n) :- n = count : q(_).": "p(n) :- n = count : { q(_) }.",
    "p(n) :- n = sum x : { q(x), x > 1 }.": "p(n) :- n = sum x : { q(x), x > 1 }.",
    "p(n) :- n = sum x * 2 : { q(x) }.": "p(n) :- n = sum x * 2 : { q(x) }.",
    "p(n) :- n = max(x + 1) : { q(x) }.": "p(n) :- n = max x + 1 : { q(x) }.",
    "p(n) :- n = 1 + min x : { q(x) ; r(x) }.": "p(n) :- n = 1 + min x : { (q(x) ; r(x)) }.",
    "p(x, count(y), sum(y + 1)) :- q(x, y).": "p(x, count(y), sum(y + 1)) :- q(x, y).",
    "p(x, average(y), mean(y)) :- q(x, y).": "p(x, average(y), mean(y)) :- q(x, y).",
    "p(count, sum) :- q(count, sum).": "p(count, sum) :- q(count, sum).",
    # records and tuples
    "p([x, [y, 1]]) :- q(x, y).": "p([x, [y, 1]]) :- q(x, y).",
    "p(t) :- q(x, y), t = (x, y).": "p(t) :- q(x, y), t = [x, y].",
    "p(x) :- q(t), (x, _) = t.": "p(x) :- q(t), [x, _] = t.",
    "p(t) :- q(x), t = (x,).": "p(t) :- q(x), t = [x].",
    # other
    "p(x) :- x = range(0, 10, 2).": "p(x) :- x = range(0, 10, 2).",
    "p(x, a) <= p(x, b) :- a > b. p(x, y) :- q(x, y).": "p(x, min(y)) :- q(x, y).",
    "p(x, a) <= p(x, b) :- b >= a. p(x, y) :- q(x, y).": "p(x, max(y)) :- q(x, y).",
    "p(x) :- q(x).\n.plan 0:(1)\nr(1).": "p(x) :- q(x). | r(1).",
    '.pragma "verbose"\np(1).': "p(1).",
}


@pytest.mark.parametrize("text", RULES)
def test_rules(text: str) -> None:
    assert " | ".join(map(str, parse(text).rules)) == RULES[text]


@pytest.mark.parametrize("text", [t for t in RULES if "<=" not in t and "e3" not in t])
def test_what_is_printed_can_be_read(text: str) -> None:
    rules = parse(text).rules
    assert parse("\n".join(map(str, rules))).rules == rules


DECLARATIONS = {
    ".decl p(a: number, b: symbol)": "p a BIGINT NOT NULL, b STRING NOT NULL",
    ".decl p(a: unsigned, b: float)": "p a BIGINT NOT NULL, b DOUBLE NOT NULL",
    ".decl p(a: int8, b: int16, c: int32, d: int64)": (
        "p a TINYINT NOT NULL, b SMALLINT NOT NULL, c INTEGER NOT NULL, d BIGINT NOT NULL"
    ),
    ".decl p(a: uint8, b: uint16, c: uint32, d: uint64)": (
        "p a SMALLINT NOT NULL, b INTEGER NOT NULL, c BIGINT NOT NULL, d DECIMAL(20,0) NOT NULL"
    ),
    ".decl p(a: f32, b: float64, c: bool)": "p a FLOAT NOT NULL, b DOUBLE NOT NULL, c BOOLEAN NOT NULL",
    ".decl p(a: date, b: timestamp)": "p a DATE NOT NULL, b TIMESTAMP NOT NULL",
    ".decl p()": "p holds BOOLEAN NOT NULL",
    ".decl p, q(count: number)": "p count BIGINT NOT NULL; q count BIGINT NOT NULL",
    '.decl p(a: number) no_inline btree\n.input p(IO=file, filename="p.csv")': "p< a BIGINT NOT NULL",
    ".decl p(a: number) output": "p> a BIGINT NOT NULL",
    ".decl p(a: number)\n.output p(IO=stdout)\n.printsize p": "p> a BIGINT NOT NULL",
    ".type A <: symbol\n.type B = A\n.decl p(a: B)": "p a STRING NOT NULL",
    ".type A = number | B\n.type B <: number\n.decl p(a: A)": "p a BIGINT NOT NULL",
    ".number_type A .symbol_type B .type C .decl p(a: A, b: B, c: C)": (
        "p a BIGINT NOT NULL, b STRING NOT NULL, c STRING NOT NULL"
    ),
    ".type P = [a: number, b: Q]\n.type Q = (c: symbol)\n.decl p(p: P)": (
        "p p STRUCT<a: BIGINT NOT NULL, b: STRUCT<c: STRING NOT NULL> NOT NULL> NOT NULL"
    ),
}


@pytest.mark.parametrize("text", DECLARATIONS)
def test_declarations(text: str) -> None:
    assert "; ".join(_declared(parse(text))) == DECLARATIONS[text]


def _declared(program: RuleProgram) -> list[str]:
    return [f"{d.name}{'<' * d.input}{'>' * d.output} {d.schema}" for d in program.declarations]


COMPONENTS = {
    "instances have relations of their own": (
        ".comp C { .decl p(x: number) p(x) :- q(x). } .decl q(x: number) .init a = C .init b = C",
        ["a.p(x) :- q(x).", "b.p(x) :- q(x)."],
    ),
    "parameters stand for types": (
        ".comp C<T> { .decl p(x: T) } .init a = C<symbol> a.p(x) :- q(x).",
        ["a.p(x) :- q(x)."],
    ),
    "components extend others": (
        ".comp A<T> { .decl p(x: T) p(x) :- q(x). } .comp B<T> : A<T> { .decl r(x: T) r(x) :- p(x). } "
        ".init b = B<number>",
        ["b.p(x) :- q(x).", "b.r(x) :- b.p(x)."],
    ),
    "and override their rules": (
        ".comp A { .decl p(x: number) overridable p(1). } .comp B : A { .override p p(2). } .init b = B .init a = A",
        ["b.p(2).", "a.p(1)."],
    ),
    "instances stand inside of others": (
        ".comp A { .decl p(x: number) p(1). } .comp B { .init a = A .decl q(x: number) q(x) :- a.p(x). } .init b = B",
        ["b.a.p(1).", "b.q(x) :- b.a.p(x)."],
    ),
    "parameters stand for components": (
        ".comp A { .type T = symbol } .comp B<C> { .init c = C .decl p(x: c.T) } .init b = B<A> b.p(x) :- q(x).",
        ["b.p(x) :- q(x)."],
    ),
    "components are defined inside of others": (
        ".comp A { .comp B { .decl p(x: number) p(1). } .init b = B } .init a = A",
        ["a.b.p(1)."],
    ),
}


@pytest.mark.parametrize("what", COMPONENTS)
def test_components(what: str) -> None:
    text, rules = COMPONENTS[what]
    assert [str(rule) for rule in parse(text).rules] == rules


def test_places_are_of_the_text() -> None:
    first, second = parse("p(1).\n\n  p(x) :-\n    q(x).").rules
    assert (first.place.line, first.place.column) == (1, 1)
    assert (second.place.line, second.place.column) == (3, 3)
    (atom,) = second.body
    assert (atom.place.line, atom.place.column) == (4, 5)  # type: ignore[union-attr]
