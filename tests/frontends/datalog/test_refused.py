"""Programs that must be refused, each with what its error says; and beside them those that must not."""

from __future__ import annotations

import pytest

from everview import connect
from everview.errors import DatalogError, EverviewError, NotStratified, TypeConflict, UnboundVariable

KNOWN = """.decl edge(a: number, b: number)
.input edge
.decl name(a: number, s: symbol)
.input name
.decl size(a: unsigned, b: unsigned)
.input size
"""

# a part of the message: programs with that mistake
REFUSED: dict[str, list[str]] = {
    # relations
    'relation "q" does not exist': [
        "p(x) :- q(x).",
        "p(x) :- edge(x, _), !q(x).",
        "p(n) :- n = count : { q(_) }.",
        ".comp C { .decl p(x: number) p(x) :- q(x). } .init c = C",
        ".output q",
        ".input q",
        ".printsize q",
        ".limitsize q(n=3)",
        ".comp C { .output q } .init c = C",
    ],
    "counts rows as they are found": [
        "p($, x) :- edge(x, _).",
        "p(autoinc(), x) :- edge(x, _).",
        "p($) :- edge(_, _).",
    ],
    "reads the bits of another type": ["p(as(x, float)) :- edge(x, _)."],
    "type Smal does not exist": ["p(as(x, Smal)) :- edge(x, _)."],
    "is declared twice": [
        ".decl p(x: number) .decl p(x: number)",
        ".decl p(x: number) .decl p(x: symbol)",
        ".comp A { .decl p(x: number) } .comp B : A { .decl p(x: number) } .init b = B",
        ".functor f(x: number): number .functor f(x: number): number",
    ],
    "edge is declared as": [".decl edge(a: number)"],
    "relation p names x twice": [".decl p(x: number, x: number)"],
    # arities
    "p has 1 columns": [".decl p(x: number) p(1, 2).", ".decl p(x: number) p()."],
    "p has 2 columns": ["p(x, y) :- edge(x, y). p(x) :- edge(x, _)."],
    "edge has 2 columns": [
        "p(x) :- edge(x).",
        "p(x) :- edge(x, _), !edge(x).",
        "p(x) :- edge(x, _), !(!edge(x)).",
        "p(n) :- n = count : { edge(_) }.",
        "p(x) :- edge(x, _, _).",
    ],
    "edge has no column x": ["p(x) :- edge(x: x)."],
    "edge names a column twice": ["p(x) :- edge(a: x, a: x)."],
    # types
    'type "nowhere" does not exist': [
        ".decl p(x: nowhere)",
        ".type A = nowhere",
        ".type A = number | nowhere",
        ".type A = [x: nowhere]",
        ".comp C { .decl p(x: nowhere) } .init c = C",
        ".functor f(x: nowhere): number",
        ".functor f(x: number): nowhere",
    ],
    "is made of itself": [
        ".type A <: A",
        ".type A = B .type B = A",
        ".type A = number | B .type B = A | number",
        ".comp C { .init c = C } .init d = C",
        ".comp C : C { .decl p(x: number) } .init c = C",
        ".comp C : C { }",
        ".comp C : D { } .comp D : C { }",
    ],
    "already, and cannot be a type": [
        ".type A = number .type A = symbol",
        ".type number = symbol",
        ".decl p(x: number) .type p = number",
    ],
    "record A has a field twice": [".type A = [x: number, x: number]"],
    "type A is BIGINT and STRING": [".type A = number | symbol"],
    # ungrounded variables
    "is not bound": [
        "p(x).",
        "p(x) :- edge(_, _).",
        "p(x + 1) :- edge(_, _).",
        "p([x, 1]) :- edge(_, _).",
        "p(x) :- x < 3.",
        "p(x) :- x = y, y = x.",
        "p(x) :- x = x + 1.",
        "p(x) :- edge(x, _), y = y.",
        "p(x) :- edge(x, _), y + 1 = x.",
        "p(r) :- r = [x, 1].",
        "p(x) :- [x, y] = [1, z].",
        "p(x) :- edge(x + 1, _).",
        "p(x) :- edge(x, _), !edge(y, _).",
        "p(x) :- edge(x, _), !!edge(y, _).",
        "p(x) :- edge(x, _), !(!edge(y, _), x > 1).",
        "p(x) :- edge(x, _), !(y > 3).",
        'p(x) :- edge(x, _), contains("a", y).',
        "p(x, y) :- edge(x, _) ; edge(x, y).",
        "p(x) :- edge(x, _), 1 < sum y : { edge(x, _) }.",
        "p(x) :- edge(x, _), z = sum y : { edge(x, y) }, y > 1.",
        "p(y) :- edge(x, _), 1 = count : { edge(x, y) }.",
        "p(x) :- edge(x, _), n = count : { edge(x, _), m = n }, m = count : { edge(n, _) }.",
        "p(_).",
        "p(_) :- edge(_, _).",
    ],
    "_ stands for a value that nothing binds": [
        "p(_ + 1) :- edge(_, _).",
        "p([_, 1]) :- edge(_, _).",
        'p(cat(_, "a")) :- edge(_, _).',
        "p(x) :- edge(x, _), _ = x.",
        "p(x) :- edge(x, _), _ < x.",
        "p(x) :- edge(x, _), x = _ + 1.",
        'p(x) :- edge(x, _), contains(_, "a").',
        "p(x) :- edge(x, 1 + _).",
        "p(x) :- edge(x, _), !edge(x, -_).",
        "p(x) :- edge(x, _), !(_ = x).",
        "p(n) :- n = count : { edge(x, _), x != _ }.",
    ],
    # constants and functors
    "and the rule gives": [
        '.decl p(x: number) p("a").',
        ".decl p(x: symbol) p(1).",
        ".decl p(x: number) p(1.5).",
        ".decl p(x: number) p(true).",
        ".decl p(x: number) p(9223372036854775808).",
        ".decl p(x: number) p(x) :- name(_, x).",
        ".type R = [a: number, b: symbol] .decl p(r: R) p([1]).",
        '.type R = [a: number, b: symbol] .decl p(r: R) p(["a", 1]).',
    ],
    "cannot be compared": ['p(x) :- edge(x, "a").', 'p(x) :- edge(x, y), y = "a".', "p(x) :- name(x, y), x < y."],
    "is BIGINT, and 1.5 is none": ["p(x) :- edge(x, 1.5).", "p(x) :- edge(x, _), !edge(1.5, x)."],
    "variable y is BIGINT and STRING": ["p(x) :- edge(x, y), name(_, y)."],
    "is no unsigned number": [
        ".decl p(x: unsigned) p(-1).",
        ".type Id <: unsigned .decl p(x: Id) p(-1).",
        ".decl p(x: unsigned) p(9223372036854775808).",
        ".decl p(x: unsigned) p(18446744073709551615).",
        "p(x) :- size(x, -1).",
        "p(x) :- size(x, _), !size(-1, x).",
    ],
    "takes numbers": ["p(x + 1) :- name(_, x).", "p(x) :- name(x, y), x < y * 2."],
    "takes text": [
        'p(cat(x, "a")) :- edge(x, _).',
        "p(strlen(x)) :- edge(x, _).",
        "p(substr(x, 1, 1)) :- edge(x, _).",
        'p(x) :- edge(x, _), match(x, "a").',
        'p(x) :- edge(x, _), contains(x, "a").',
    ],
    "takes integers": ['p(substr(x, "a", 1)) :- name(_, x).', "p(x band 1) :- name(_, x).", "p(1.5 bshl 1)."],
    "takes numbers and truth values": ["p(lnot(x)) :- name(_, x).", "p(1 land x) :- name(_, x)."],
    "arguments, and was given": [
        "p(substr(x, 1)) :- name(_, x).",
        "p(cat(x)) :- name(_, x).",
        "p(strlen(x, x)) :- name(_, x).",
        "p(to_number(x, 1)) :- name(_, x).",
        ".functor f(x: number): number p(f(x, x)) :- edge(x, _).",
    ],
    'functor "nofunctor" does not exist': ["p(nofunctor(x)) :- edge(x, _)."],
    "cannot stand here": ["p(@f(x)) :- edge(x, _).", "p(n) :- n = count : { }."],
    "is no range of constants": ["p(x) :- x = range(1).", 'p(x) :- x = range("a", "b").'],
    # aggregates
    "takes one argument": [
        "p(n) :- n = sum : { edge(x, _) }.",
        "p(n) :- n = min : { edge(x, _) }.",
        "p(n) :- n = sum(x, y) : { edge(x, y) }.",
    ],
    "count takes no argument": ["p(n) :- n = count x : { edge(x, _) }."],
    "sum of STRING": ["p(n) :- n = sum x : { name(_, x) }."],
    "depends on its own negation": ["p(x) :- edge(x, _), !p(x).", "p(x) :- edge(x, _), !!p(x)."],
    "depends on an aggregate (count) of itself": ["p(x) :- edge(x, _), 0 = count : { p(_) }."],
    # heads
    "is no head": ["1 :- edge(_, _).", "!p(x) :- edge(x, _).", "x = 1 :- edge(x, _).", "(p(1) ; q(1))."],
    "is no condition": ["p(x) :- edge(x, _), x.", 'p(x) :- edge(x, _), "a".', "p(x) :- edge(x, _), x + 1."],
    "is no subsumption that can be maintained": [
        "p(x, a) <= p(x) :- a > 1. p(x, y) :- edge(x, y).",
        "p(x, a) <= q(x, b) :- a > b. p(x, y) :- edge(x, y). q(x, y) :- edge(x, y).",
        "p(a) <= p(b) :- a > c. p(x) :- edge(x, _).",
    ],
    "has no rules here": ["p(x, a) <= p(x, b) :- a > b."],
    # directives
    'parameter of .output "nosuch" does not exist': [".output edge(nosuch=1)"],
    'parameter of .printsize "n" does not exist': [".printsize edge(n=1)"],
    "has IO twice": [".output edge(IO=file, IO=file)"],
    "there is no IO=nowhere": [".input edge(IO=nowhere)"],
    ".limitsize edge has no number": [
        ".limitsize edge",
        ".limitsize edge(n=abc)",
        ".limitsize edge(m=3)",
        ".limitsize edge(n=3, m=4)",
    ],
    "to include": ['.include "no/other.dl"'],
    # qualifiers
    "the text ends too early": [".decl p(x: number) nosuch"],
    "twice": [
        ".decl p(x: number) brie brie",
        ".decl p(x: number) inline inline",
        ".decl p(x: number) output output",
    ],
    "cannot be": [
        ".decl p(x: number) brie btree",
        ".decl p(x: number, y: number) brie eqrel",
        ".decl p(x: number) inline no_inline",
        ".decl p(x: number) magic no_magic",
        ".decl p(x: number) inline output p(1).",
        ".decl p(x: number) inline .input p",
        ".decl p(x: number) inline p(x) :- p(x), edge(x, _).",
        ".decl p, q(x: number) inline p(x) :- q(x). q(x) :- p(x). q(1).",
    ],
    "p is inline, has variables of its own, and is negated": [
        ".decl p(x: number) inline p(x) :- edge(x, y), y > 1. q(x) :- edge(x, _), !p(x)."
    ],
    "and not 2": [
        ".decl p(x: number) eqrel",
        ".decl p(x: number, y: number, z: number) eqrel",
        ".decl p() eqrel",
    ],
    "equivalence p is of number and symbol": [".decl p(x: number, y: symbol) eqrel"],
    "has no columns, and no rows that give way": [".decl p() btree_delete p()."],
    "choice-domain names z, which p does not have": [
        ".decl p(x: number, y: number) choice-domain z p(x, y) :- edge(x, y).",
        ".decl p(x: number, y: number) choice-domain (x, z) p(x, y) :- edge(x, y).",
    ],
    # components
    'component "C" does not exist': [".init c = C"],
    'component "D" does not exist': [".comp C : D { .decl p(x: number) p(1). }", ".comp C { .init d = D } .init c = C"],
    "component C takes 0 parameters": [".comp C { .decl p(x: number) p(1). } .init c = C<number>"],
    "component C takes 1 parameters": [
        ".comp C<T> { .decl p(x: T) p(1). } .init c = C",
        ".comp C<T> { .decl p(x: T) } .comp D : C { } .init d = D",
    ],
    "component C has a parameter twice": [".comp C<T, T> { .decl p(x: T) }"],
    "is defined twice": [".comp C { } .comp C { }", ".comp C { .decl p(x: number) } .init c = C .init c = C"],
    "p is a relation, and cannot be a component": [".decl p(x: number) .comp p { } .init q = p"],
    "T is a type, and cannot be a component": [".type T = number .comp T { }"],
    "p is a relation, and cannot be an instance": [".comp C { } .decl p(x: number) .init p = C"],
    "C is a component, and cannot be an instance": [".comp C { } .init C = C"],
    "relation p is not overridable": [
        ".comp A { .decl p(x: number) p(1). } .comp B : A { .override p p(2). } .init b = B"
    ],
    "inherits no relation": [
        ".comp A { .decl p(x: number) overridable p(1). } .comp B : A { .override q p(2). } .init b = B",
        ".comp A { .override p .decl p(x: number) p(1). }",
    ],
    ".override p is in no component": [".override p"],
    # plans
    "is no order of": [
        "p(x) :- edge(x, _). .plan 0:(1,2)",
        "p(x) :- edge(x, y), edge(y, x). .plan 0:(1)",
        "p(x) :- edge(x, y), edge(y, x). .plan 0:(1,1)",
        "p(x) :- edge(x, y), edge(y, x). .plan 0:(0,1)",
    ],
    ".plan has version 0 twice": ["p(x) :- edge(x, y), edge(y, x). .plan 0:(1,2), 0:(2,1)"],
    "the rule versions 0 to 0": [
        "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z). .plan 0:(1,2), 1:(2,1)",
    ],
    ".plan is of no rule": [".plan 0:(1)", "p(1). .plan 0:(1)", ".decl p(x: number) .plan 0:(1) p(1)."],
}
KINDS: dict[str, type[EverviewError]] = {
    "is not bound": UnboundVariable,
    "depends on its own negation": NotStratified,
    "cannot be compared": TypeConflict,
    "is no unsigned number": TypeConflict,
}


@pytest.mark.parametrize(("message", "text"), [(m, text) for m, texts in REFUSED.items() for text in texts])
def test_refused(message: str, text: str) -> None:
    db = connect()
    db.datalog(KNOWN)
    with pytest.raises(EverviewError) as found:
        db.datalog(text)
    assert message in str(found.value)
    assert found.value.hint
    assert isinstance(found.value, KINDS.get(message, EverviewError))
    assert not db.views()
    assert set(db.tables()) == {"edge", "name", "size"}
    db.datalog("p(x) :- edge(x, _).")


ACCEPTED = [
    ".type L = [h: number, t: L]",
    ".type A = number | B .type B <: number .decl p(x: A) p(1).",
    ".comp C { .type A = number .decl p(x: A) } .type A = symbol .init c = C",
    ".decl p(x: float) p(1).",
    ".decl p(x: unsigned) p(4294967295). p(0xffffffff). p(7u). p(9223372036854775807).",
    ".decl p(x: number) inline no_magic p(1). q(x) :- p(x).",
    ".decl p(x: number) inline p(x) :- edge(x, 1). q(x) :- edge(x, _), !p(x).",
    ".decl p(x: number, y: number) eqrel p(1, 2).",
    ".decl p(x: number, y: number) btree_delete p(x, a) <= p(x, b) :- a > b. p(x, y) :- edge(x, y).",
    ".decl p(x: number) brie output p(1).",
    '.output edge(IO=file, filename="edge.csv", delimiter=",", headers=true)',
    ".decl edge(a: number, b: number) .limitsize edge(n=10)",
    ".decl p(x: number, y: number) choice-domain x p(x, y) :- edge(x, y).",
    ".printsize edge",
    "p(1). .output p",
    "p(x) :- edge(x, y), edge(y, x). .plan 0:(2,1)",
    "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), p(y, z). .plan 0:(1,2), 1:(2,1)",
    '.pragma "verbose" .pragma "magic-transform" "*"',
    ".functor f(x: number, y: symbol): number",
    ".comp A { .decl p(x: number) overridable p(1). } .comp B : A { .override p p(2). } .init b = B",
    ".comp A { .decl p(x: number) overridable } .comp B : A { } .comp C : B { .override p p(2). } .init c = C",
    ".comp C<T> : T { q(1). .decl q(x: number) } .comp D { .decl p(x: number) p(1). } .init c = C<D>",
    ".comp A { .comp B { .decl p(x: number) p(1). } } .comp C : A { .init b = B } .init c = C",
    "p(x) :- edge(x, _), [x, _] = [1, 2].",
    "p(x) :- edge(x, _), !edge(_, x), !!edge(x, _).",
    "p(n) :- n = max s : { name(_, s) }.",
    'p(x) :- name(_, x), match("a.*", x), contains("a", x).',
    "p(n) :- n = sum (x + y) : { edge(x, y) }.",
    "p(x) :- edge(x, _), _y = x, _y > 1.",
    "p() :- edge(_, _). q(x) :- edge(x, _), p().",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    db = connect()
    db.datalog(KNOWN)
    db.datalog(text)
    db.apply({"edge": [((1, 2), 1), ((2, 1), 1)], "name": [((1, "a"), 1)]})
    assert db.verify()


def test_directives_name_relations_of_the_database() -> None:
    db = connect()
    db.sql("CREATE TABLE t (x BIGINT NOT NULL)")
    db.datalog("p(x) :- t(x).")
    db.datalog(".output p\n.output t\n.printsize t")
    with pytest.raises(DatalogError, match=r'\.output tt: relation "tt" does not exist'):
        db.datalog(".output tt")
