"""PomoLogic: what rules derive, example by example, and what is refused, with a reason of its own."""

from __future__ import annotations

from typing import Any

import pytest

import everview as ev
from everview.errors import (
    BadAggregate,
    DatalogError,
    EndlessInduction,
    EverviewError,
    NotRangeRestricted,
    NotStratified,
    UnboundVariable,
    UnknownRelation,
)
from frontends.pomologic.naive import content_id

Rows = dict[str, list[tuple[Any, ...]]]
SCHEMAS = {
    "point": "x BIGINT NOT NULL, y BIGINT NOT NULL",
    "profile": "id BIGINT NOT NULL",
    "follower": "who BIGINT NOT NULL, follows BIGINT NOT NULL",
    "person": "name STRING NOT NULL",
    "likes": "name STRING NOT NULL, food STRING NOT NULL",
    "dislikes": "name STRING NOT NULL, food STRING NOT NULL",
    "product": "name STRING NOT NULL, category STRING NOT NULL, quantity BIGINT NOT NULL",
    "price": "name STRING NOT NULL, cost DECIMAL(8,2), at DATE, fresh BOOLEAN",
}
GRID = {"point": [(x, y) for x in range(3) for y in range(3)]}
MEALS: Rows = {
    "person": [("Ann",), ("Bob",)],
    "likes": [("Ann", "soup"), ("Bob", "kale"), ("Bob", "pie")],
    "dislikes": [("Ann", "kale"), ("Bob", "figs")],
}
STOCK: Rows = {"product": [("saw", "tools", 3), ("axe", "tools", 3), ("pea", "food", 12)]}

EXAMPLES: dict[str, tuple[str, Rows, set[tuple[Any, ...]]]] = {
    "one attribute": ("out(x: X) :- point(x: X, y: Y).", GRID, {(0,), (1,), (2,)}),
    "others left out": ("out(x: X) :- point(x: X).", GRID, {(0,), (1,), (2,)}),
    "a minus sign as in print": ("out(x: X) :− point(x: X, y: 2).", GRID, {(0,), (1,), (2,)}),
    "two heads": (
        *("out(x: 0, y: Y) :- point(x: 0, y: Y). out(x: X, y: 0) :- point(x: X, y: 0).", GRID),
        {(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)},
    ),
    "one variable twice": ("out(x: X) :- point(x: X, y: X).", GRID, {(0,), (1,), (2,)}),
    "a constraint": (
        *("out(x: X, y: Y) :- point(x: X, y: Y), X <= Y.", GRID),
        {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)},
    ),
    "all constraints": (
        "out(x: X, y: Y) :- point(x: X, y: Y), X == Y, X = Y, X != 1, X >= 0, X > -1, X < 2, 2 > Y, Y <= 1.5.",
        *(GRID, {(0, 0)}),
    ),
    "a count": (
        "out(id: X) :- profile(id: X), c := count : follower(follows: X), c >= 2.",
        {"profile": [(1,), (2,)], "follower": [(5, 1), (6, 1), (7, 2)]},
        {(1,)},
    ),
    "a count of nothing is 0": (
        "out(id: X, n: N) :- profile(id: X), N := count : follower(follows: X).",
        {"profile": [(1,), (2,)], "follower": [(5, 1)]},
        {(1, 1), (2, 0)},
    ),
    "a sum of nothing is 0": ("out(n: N) :- N := sum Q : product(quantity: Q).", {}, {(0,)}),
    "of nothing there is no least": ("out(n: N) :- N := min Q : product(quantity: Q).", {}, set()),
    "negation": (
        """out(one: PersonA, two: PersonB, meal: Food) :- person(name: PersonA), person(name: PersonB),
             PersonA != PersonB, likes(name: PersonA, food: Food), !dislikes(name: PersonB, food: Food)""",
        *(MEALS, {("Ann", "Bob", "soup"), ("Bob", "Ann", "pie")}),
    ),
    "small letters are variables, too": (
        "out(meal: food) :- likes(name: who, food: food), !dislikes(food: food).",
        *(MEALS, {("soup",), ("pie",)}),
    ),
    "a sum of all": ("out(t: T) :- T := sum Q : product(category: C, quantity: Q).", STOCK, {(18,)}),
    "a sum a group": (
        "out(c: C, t: T) :- product(category: C), T := sum Q : product(category: C, quantity: Q).",
        *(STOCK, {("tools", 6), ("food", 12)}),
    ),
    "a row that is there twice counts once": (
        "out(n: N) :- N := count : profile().",
        *({"profile": [(1,), (1,), (2,)]}, {(2,)}),
    ),
    "a content id counts products": (
        "out(c: C, n: N) :- C := person(), N := count : product(category: C).",
        {
            "person": [("Ann",), ("Bob",)],
            "product": [("saw", content_id("person", frozenset({("name", "Ann")})), 1)],
        },
        {(content_id("person", frozenset({("name", n)})), k) for n, k in (("Ann", 1), ("Bob", 0))},
    ),
    "a bound content id selects": (
        "out(x: X) :- C := point(x: X, y: 1), C := point(x: 2).",
        *(GRID, {(2,)}),
    ),
    "a fact": (
        'out(name: "Eve", n: 1). out(name: N, n: 2) :- person(name: N).',
        MEALS,
        {("Eve", 1), ("Ann", 2), ("Bob", 2)},
    ),
    "truth values": (
        "out(name: N) :- price(name: N, fresh: true), !price(name: N, fresh: false).",
        {"price": [("a", None, None, True), ("b", None, None, False), ("c", None, None, None)]},
        {("a",)},
    ),
    "dates and decimals": (
        "out(name: N) :- price(name: N, cost: C, at: D), C > 1.5, D >= '2026-01-02'.",
        {
            "price": [
                ("a", "2.00", "2026-01-02", None),
                ("b", "2.00", "2026-01-01", None),
                ("c", "1.50", "2026-02-01", None),
            ]
        },
        {("a",)},
    ),
    "quoted names and comments": (
        "/* all */ `out`(`a b`: X) :- // one\n point(x: X, y: _), X > 1. % end",
        *(GRID, {(2,)}),
    ),
    "one relation of another": (
        """far(x: X) :- point(x: X), X > 0. near(x: X) :- point(x: X), !far(x: X).
           out(x: X, n: N) :- near(x: X), N := count : far().""",
        *(GRID, {(0, 2)}),
    ),
}


def database(rows: Rows) -> ev.Database:
    db = ev.connect()
    for name, columns in SCHEMAS.items():
        db.create_table(name, columns)
    with db.transaction() as tx:
        for name, given in rows.items():
            tx.insert(name, given)
    return db


@pytest.mark.parametrize(("text", "rows", "wanted"), EXAMPLES.values(), ids=list(EXAMPLES))
@pytest.mark.parametrize("first", ["rules", "rows"])
def test_examples(text: str, rows: Rows, wanted: set[tuple[Any, ...]], first: str) -> None:
    db = database(rows if first == "rows" else {})
    db.datalog(text, dialect="pomologic")
    if first == "rules":
        with db.transaction() as tx:
            for name, given in rows.items():
                tx.insert(name, given)
    assert set(db.view("out").rows()) == wanted
    assert len(db.view("out")) == len(wanted)
    assert db.verify()
    with db.transaction() as tx:
        for name, given in rows.items():
            tx.delete(name, given)
    assert db.verify()


REFUSED: dict[str, tuple[type[EverviewError], str, tuple[str, ...]]] = {
    "a head variable that nothing binds": (
        *(NotRangeRestricted, "out(x: X, z: Z) :- point(x: X)."),
        ("variable Z of the head of out", "out(x: X, z: Z) :- point(x: X).", "line 1, column 1"),
    ),
    "in another case": (
        *(NotRangeRestricted, "out(x: PersonA) :- person(name: personA)."),
        ("variable PersonA", "the body binds personA"),
    ),
    "a fact with a variable": (NotRangeRestricted, "out(x: X).", ("variable X",)),
    "any value in a head": (NotRangeRestricted, "out(x: _) :- point().", ("_ in a head",)),
    "a head variable that only a constraint has": (
        *(UnboundVariable, "out(x: X, z: Z) :- point(x: X), Z = 3."),
        ("variable Z of the constraint Z = 3", "a constraint only tests"),
    ),
    "a head variable of an aggregate's own": (
        *(NotRangeRestricted, "out(c: C, t: T) :- T := sum Q : product(category: C, quantity: Q)."),
        ("variable C of the head", "only inside the aggregate T := sum Q"),
    ),
    "an ungrounded negation": (
        *(UnboundVariable, "out(x: X) :- point(x: X), !likes(name: N)."),
        ("variable N of !likes(name: N) is not grounded", "leave the attribute out"),
    ),
    "a constraint on an aggregate's own": (
        *(UnboundVariable, "out(t: T) :- T := sum Q : product(quantity: Q, category: C), C = 'a'."),
        ("variable C of the constraint", "only inside the aggregate"),
    ),
    "a constraint of nothing": (UnboundVariable, "out(x: X) :- point(x: X), X > _.", ("_ in the constraint",)),
    "aggregates that wait for each other": (
        UnboundVariable,
        "out(n: N) :- point(x: X), N := count : point(x: M), M := count : point(y: N).",
        ("variable M of N := count : point(x: M) is not grounded before the aggregate",),
    ),
    "an aggregate that waits for itself": (
        *(UnboundVariable, "out(n: N) :- N := count : point(x: N)."),
        ("variable N of N := count",),
    ),
    "a bound parameter": (
        *(BadAggregate, "out(t: T) :- product(name: N, quantity: Q), T := sum Q : product(quantity: Q)."),
        ("parameter Q of T := sum Q : product(quantity: Q) is bound outside",),
    ),
    "a parameter that is not there": (
        *(BadAggregate, "out(t: T) :- T := sum R : product(quantity: Q)."),
        ("parameter R", "stands 0 times"),
    ),
    "a parameter twice": (
        *(BadAggregate, "out(t: T) :- T := sum X : point(x: X, y: X)."),
        ("parameter X", "stands 2 times"),
    ),
    "too many parameters": (
        *(BadAggregate, "out(t: T) :- T := sum X Y : point(x: X, y: Y)."),
        ("sum takes 1 parameter", "write X := sum Y : atom(…)"),
    ),
    "a counted parameter": (BadAggregate, "out(t: T) :- T := count X : point(x: X).", ("count takes 0 parameters",)),
    "no aggregate": (BadAggregate, "out(t: T) :- T := pomo_nothing X : point(x: X).", ("no aggregate pomo_nothing",)),
    "its own negation": (
        *(NotStratified, "out(x: X) :- point(x: X), !out(x: X)."),
        ("out depends on its own negation: out → !out",),
    ),
    "negation around": (
        *(NotStratified, "a(x: X) :- point(x: X), !b(x: X). b(x: X) :- point(x: X), a(x: X)."),
        ("a depends on its own negation: a → !b → a",),
    ),
    "its own aggregate": (
        *(NotStratified, "out(x: N) :- point(x: X), N := count : out(x: X)."),
        ("an aggregate (count) of itself",),
    ),
    "its own sum": (
        *(NotStratified, "out(x: X) :- point(x: X). out(x: N) :- N := sum Y : out(x: Y)."),
        ("an aggregate (sum) of itself",),
    ),
    "goes on for ever": (
        *(
            EndlessInduction,
            "out(x: X)@next :- late(x: X). late(x: X)@next :- point(x: X). late(x: X)@next :- late(x: X).",
        ),
        ("inductive rule of out", "add out(x: X) to its body"),
    ),
    "turns for ever": (
        EndlessInduction,
        """on(x: X, s: S) :- point(x: X, y: S), !ever(x: X). ever(x: 1)@next :- ever(x: 1).
           on(x: X, s: 1)@next :- on(x: X, s: 0).""",
        ("inductive rule of on",),
    ),
    "other attributes": (
        *(DatalogError, "out(x: X) :- point(x: X). out(y: Y) :- point(y: Y)."),
        ("other attributes", "there it has x"),
    ),
    "no attributes": (DatalogError, "out() :- point().", ("out has no attributes",)),
    "attribute twice": (DatalogError, "out(x: X) :- point(x: X, x: 1).", ("1:14: point has attribute x twice",)),
    "no relation": (UnknownRelation, "out(x: X) :- pint(x: X).", ('"pint" does not exist', 'did you mean "point"')),
    "no attribute": (DatalogError, "out(x: Z) :- point(z: Z).", ("point has no column z", "x, y")),
    "a table": (DatalogError, "point(x: X, y: X) :- profile(id: X).", ("point is a table",)),
    "types": (DatalogError, "out(x: X) :- point(x: X), person(name: X).", ("BIGINT", "STRING")),
    "no text": (DatalogError, "out(x: X) :- point(x X).", ("1:22: 'X' cannot stand here", '":"')),
    "an aggregate without a colon": (DatalogError, "out(t: T) :- T := sum Q product(quantity: Q).", ("cannot stand",)),
    "no later than next": (DatalogError, "out(x: X)@later :- point(x: X).", ('expected "next"',)),
}


@pytest.mark.parametrize(("error", "text", "messages"), REFUSED.values(), ids=list(REFUSED))
def test_refused(error: type[EverviewError], text: str, messages: tuple[str, ...]) -> None:
    db = database({})
    tables = db.tables()
    with pytest.raises(error) as raised:
        db.datalog(text, dialect="pomologic")
    for message in messages:
        assert message in str(raised.value)
    assert raised.value.hint
    assert db.views() == []
    assert db.tables() == tables
    assert db.rules() == []


def test_content_ids_tell_all_rows_apart() -> None:
    db = database({})
    rows = [
        (n, c, d, t)
        for n in ("a", "a1", "")
        for c in (None, "1", "1.1")
        for d in (None, "2026-01-01")
        for t in (None, True)
    ]
    db.apply({"price": [(row, 2) for row in rows]})
    db.datalog("out(id: C, name: N) :- C := price(name: N).", dialect="pomologic")
    ids = [found for found, _ in db.view("out").rows()]
    assert len(set(ids)) == len(ids) == len(rows)
    assert all(len(found) == 64 for found in ids)


def test_content_ids_depend_on_the_relation_and_not_on_the_order_of_columns() -> None:
    db = ev.connect()
    db.create_table("p", "x BIGINT NOT NULL, y BIGINT NOT NULL")
    db.create_table("q", "y BIGINT NOT NULL, x BIGINT NOT NULL")
    db.datalog(
        """r(x: X, y: Y) :- p(x: X, y: Y). s(id: C) :- C := p(). s(id: C) :- C := q(). s(id: C) :- C := r().""",
        dialect="pomologic",
    )
    db.apply({"p": [((1, 2), 1)], "q": [((2, 1), 1)]})
    row = frozenset({("x", 1), ("y", 2)})
    assert {found for (found,) in db.view("s").rows()} == {content_id(name, row) for name in "pqr"}


def test_content_ids_are_told_beforehand() -> None:
    db = ev.connect()
    db.create_table("category", "name STRING NOT NULL, at DATE")
    db.create_table("product", "name STRING NOT NULL, category STRING NOT NULL")
    tools, food = db.content_ids("category", [("tools", None), {"name": "food", "at": "2026-01-01"}])
    db.datalog(
        """categoryCount(category: Category, count: Count) :-
             Category := category(), Count := count : product(category: Category).""",
        dialect="pomologic",
    )
    db.apply({"category": [(("tools", None), 1), (("food", "2026-01-01"), 1)], "product": [(("saw", tools), 1)]})
    assert sorted(db.view("categoryCount").rows()) == sorted([(tools, 1), (food, 0)])
    db.apply({"product": [(("saw", tools), -1), (("pea", food), 1), (("fig", food), 1)]})
    assert sorted(db.view("categoryCount").rows()) == sorted([(tools, 0), (food, 2)])
    assert db.content_ids("categoryCount", []) == []


def test_no_content_ids_of_arrays() -> None:
    db = ev.connect()
    db.create_table("t", "xs ARRAY<BIGINT>")
    with pytest.raises(DatalogError, match="its attribute xs is of type ARRAY"):
        db.datalog("out(id: C) :- C := t().", dialect="pomologic")


def test_dialects_extend_each_other() -> None:
    db = database(GRID)
    db.datalog("near(x) :- point(x, y), y < 1, x < 1.")
    db.datalog("near(x: X) :- point(x: X), X > 1. out(n: N) :- N := count : near().", dialect="pomologic")
    assert sorted(db.view("near").rows()) == [(0,), (2,)]
    db.remove_rules("near(x: X) :- point(x: X), X > 1.", dialect="pomologic")
    assert db.view("near").rows() == [(0,)]
    assert db.view("out").rows() == [(1,)]
