"""Numbers without a sign: from 0 to 2^63 - 1; what leads out of them is an error, and leaves everything as it was."""

from __future__ import annotations

from typing import Any

import pytest

from everview import connect
from everview.errors import EverviewError
from everview.frontends.datalog.parse import parse
from everview.frontends.rules.signs import with_signs

SIZE = ".decl u(x: unsigned, y: unsigned)\n.input u\n"
LARGE = (1 << 63) - 1
ROWS = [(3, 5), (4294967295, 2), (LARGE, 2)]

# the rule of p over u: its rows
RIGHT: dict[str, list[tuple[Any, ...]]] = {
    "p(x) :- u(x, y), x > y.": [(4294967295,), (LARGE,)],
    "p(x / y, x % y) :- u(x, y).": [(0, 3), (2147483647, 1), (LARGE // 2, 1)],
    "p(x bshr y, x bshru y) :- u(x, y).": [(0, 0), (1073741823, 1073741823), (LARGE >> 2, LARGE >> 2)],
    "p(min(x, y), max(x, y)) :- u(x, y).": [(3, 5), (2, 4294967295), (2, LARGE)],
    "p(to_string(x)) :- u(x, _).": [("3",), ("4294967295",), (str(LARGE),)],
    "p(m, n) :- m = min x : { u(x, _) }, n = max x : { u(x, _) }.": [(3, LARGE)],
    "p(x - y) :- u(x, y), x > y.": [(4294967293,), (LARGE - 2,)],
    "p(x) :- u(x, y), x - y < 5, x > y.": [],
    "p(x band y, x bor y, x bxor y) :- u(x, y), x < 9.": [(1, 7, 6)],
    "p(x bshl 31) :- u(x, y), x < 4294967296.": [(6442450944,), (9223372034707292160,)],
    "p(utoi(x) - utoi(y)) :- u(x, y).": [(-2,), (4294967293,), (LARGE - 2,)],
    "p(to_number(x) - 4) :- u(x, _).": [(-1,), (4294967291,), (LARGE - 4,)],
    'p(itou(5), to_unsigned("4294967295")).': [(5, 4294967295)],
    "q(7). p(x - 9) :- q(x).": [(-2,)],
}


@pytest.mark.parametrize("rule", RIGHT)
def test_right(rule: str) -> None:
    db = connect()
    db.datalog(SIZE + rule)
    db.apply({"u": [(row, 1) for row in ROWS]})
    assert sorted(db.view("p").rows()) == sorted(RIGHT[rule])
    assert db.verify()


# rules that lead out of them for the row (3, 5)
WRONG = [
    "p(x - y) :- u(x, y).",
    "p(x + -4) :- u(x, y).",
    "p(-x) :- u(x, y).",
    "p(bnot x) :- u(x, y).",
    "p(x bshl 62) :- u(x, y).",
    "p(x) :- u(x, y), x - y < 5.",
    "p(x) :- u(x, y), !u(x - y, _).",
    "p(n) :- n = sum (x - y) : { u(x, y) }.",
    "p(x) :- u(x, y), 0 < count : { u(z, _), z < x - y }.",
    "p(y, min(x - y)) :- u(x, y).",
    "q(x) :- u(x, _). p(x - 4) :- q(x).",
    "q(x) :- u(x, _). q(x) :- q(y), u(y, x). p(x - 6) :- q(x).",
    "p(itou(to_number(x) - 4)) :- u(x, _).",
    "p(to_unsigned(to_string(to_number(x) - 4))) :- u(x, _).",
    ".decl p(x: unsigned) p(to_number(x) - to_number(y)) :- u(x, y).",
    ".decl p(x: unsigned, y: unsigned) p(x, min(to_number(x) - y)) :- u(x, y).",
    ".type Id <: unsigned .decl p(x: Id) p(to_number(x) - 4) :- u(x, _).",
]


@pytest.mark.parametrize("rule", WRONG)
def test_what_would_be_negative_is_an_error(rule: str) -> None:
    db = connect()
    db.datalog(SIZE + rule)
    before = db.view("p").rows()
    with pytest.raises(EverviewError, match="is negative, and no unsigned number"):
        db.apply({"u": [((3, 5), 1)]})
    assert db.view("p").rows() == before
    assert db.verify()


@pytest.mark.parametrize("of", ["unsigned", "uint8", "uint16", "uint32", "uint64"])
def test_negative_rows_are_not_read(of: str) -> None:
    db = connect()
    db.datalog(f".decl u(x: {of})\n.input u\n.output u\np(x) :- u(x). u(7).")
    db.apply({"u": [((3,), 1)]})
    with pytest.raises(EverviewError, match="is negative, and no unsigned number"):
        db.apply({"u": [((-3,), 1)]})
    assert sorted(db.view("p").rows()) == [(3,), (7,)]
    assert db.verify()


def test_rules_of_another_text_know_what_is_unsigned() -> None:
    db = connect()
    db.datalog(SIZE)
    db.datalog("q(x) :- u(x, _).")
    db.datalog("p(x - 4) :- q(x).")
    assert [str(rule) for rules in db.rules() for rule in rules.rules] == ["q(x) :- u(x, _).", "p(x - 4) :- q(x)."]
    with pytest.raises(EverviewError, match="-1 is negative"):
        db.apply({"u": [((3, 5), 1)]})


def test_checks_are_put_in_once() -> None:
    program = with_signs(parse(SIZE + "p(x - y, bnot (x - y)) :- u(x, y), x - y < 3."))
    assert with_signs(program) == program
    plain = parse("p(x - 1) :- q(x). q(1).")
    assert with_signs(plain) is plain
