"""Types with branches, and records that may hold themselves: what rules make of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DatalogError, EverviewError, TypeConflict
from everview.oracle.scalar_casts import NoValue
from everview.oracle.scalar_rule_terms import RULE_TERMS
from everview.scalars.functions import rule_terms
from everview.scalars.functions.kernel import Failed

TYPES = """
    .type Pair = [n: number, s: symbol]
    .type Expr = Num {n: number} | Add {a: Expr, b: Expr} | Name {p: Pair} | Zero {}
    .type Items = [head: Expr, tail: Items]
"""
PROGRAM = f"""{TYPES}
    .decl given(l: Items)
    .input given
    .decl item(e: Expr)
    .decl rest(l: Items)
    rest(l) :- given(l).
    rest(t), item(h) :- rest([h, t]).
    .decl part(e: Expr)
    part(e) :- item(e).
    part(a), part(b) :- part(e), e = $Add(a, b).
    .decl size(e: Expr, n: number)
    size(e, n) :- part(e), e = $Num(n).
    size($Zero, 0) :- part($Zero).
    size($Add(a, b), m + n) :- part($Add(a, b)), size(a, m), size(b, n).
    .decl turned(e: Expr, f: Expr)
    turned(e, e) :- part(e), e != $Add(_, _), !wide(e).
    turned($Add(a, b), $Add(d, c)) :- part($Add(a, b)), turned(a, c), turned(b, d).
    wide(e) :- part(e), e = $Name([n, _]), n > 1.
    name(n, s, p) :- part($Name(p)), p = [n, s].
    last(h) :- rest([h, nil]).
    many(n) :- n = count : {{ part($Add(_, _)) }}.
"""
PROGRAM = PROGRAM.replace("e != $Add(_, _)", "!sum(e)") + "sum(e) :- part(e), e = $Add(_, _)."

Tree = tuple[Any, ...]
symbols = st.text(st.sampled_from('ab,"\\[)\n é'), max_size=3)
leaves = st.one_of(
    st.tuples(st.just("$Num"), st.integers(-2, 2)),
    st.just(("$Zero",)),
    st.tuples(st.just("$Name"), st.tuples(st.just("[]"), st.integers(0, 2), symbols)),
)
trees = st.recursive(leaves, lambda inner: st.tuples(st.just("$Add"), inner, inner), max_leaves=4)
lists = st.lists(trees, max_size=3).map(lambda items: _list(items))  # noqa: PLW0108


def _list(items: list[Tree]) -> Tree:
    found: Tree = ("nil",)
    for item in reversed(items):
        found = ("[]", item, found)
    return found


def text(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return rule_terms.quoted(value)
    name, *arguments = value
    inside = ", ".join(map(text, arguments))
    return f"[{inside}]" if name == "[]" else f"{name}({inside})" if arguments else name


def meaning(held: set[Tree]) -> dict[str, set[tuple[Any, ...]]]:
    rests, parts, items = set[Tree](), set[Tree](), set[Tree]()
    for whole in held:
        left = whole
        while left != ("nil",):
            rests.add(left)
            _, head, left = left
            items.add(head)
        rests.add(left)
    waiting = list(items)
    while waiting:
        parts.add(one := waiting.pop())
        waiting += one[1:] if one[0] == "$Add" else ()
    sizes = {p: size for p in parts if (size := _size(p)) is not None}
    turned = {p: t for p in parts if (t := _turned(p)) is not None}
    names = [p[1] for p in parts if p[0] == "$Name"]
    return {
        "rest": {(text(r),) for r in rests},
        "item": {(text(i),) for i in items},
        "part": {(text(p),) for p in parts},
        "size": {(text(p), n) for p, n in sizes.items()},
        "turned": {(text(p), text(t)) for p, t in turned.items()},
        "name": {(n, s, (n, s)) for _, n, s in names},
        "last": {(text(r[1]),) for r in rests if r[0] == "[]" and r[2] == ("nil",)},
        "many": {(sum(p[0] == "$Add" for p in parts),)},
    }


def _size(tree: Tree) -> int | None:
    if tree[0] == "$Add":
        sizes = [_size(part) for part in tree[1:]]
        return None if None in sizes else sum(s for s in sizes if s is not None)
    return {"$Num": tree[-1], "$Zero": 0}.get(tree[0])


def _turned(tree: Tree) -> Tree | None:
    if tree[0] == "$Add":
        inner = [_turned(part) for part in tree[1:]]
        return None if None in inner else ("$Add", *reversed(inner))
    return None if tree[0] == "$Name" and tree[1][1] > 1 else tree


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sets(lists, max_size=3), min_size=1, max_size=4))
def test_after_every_tick_what_trees_of_python_give(ticks: list[set[Tree]]) -> None:
    db = ev.connect()
    db.datalog(PROGRAM)
    held: set[Tree] = set()
    for tick in ticks:
        db.apply({"given": [((text(one),), -1 if one in held else 1) for one in tick]})
        held ^= tick
        for name, rows in meaning(held).items():
            shown = {
                tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row) for row in db.view(name).rows()
            }
            assert shown == rows, name
    assert db.verify()


SPEC = (
    '{"root": "L", "types": {"L": {"[]": ["@E", ["BIGINT", "STRING"], "@L"], "nil": []}, "E": {'
    '"$D": ["DOUBLE", "DATE"], "$B": ["BOOLEAN"], "$Z": []}}}'
)
pieces = st.sampled_from(
    [
        "[", "]", "nil", "$Z", "$Z()", "$D(",
        "1.5", "-0.0", "1e9", ", ", "2024-02-29", ")", "$B(true)", "[7,", '"\\"]"', "x"]
)  # fmt: skip
WHOLE = [
    "[$Z, [1, x y], nil]",
    '[ $B( true ),[2,"a,\\n"],[$D(-0.0, 2024-01-01), [3, ""], nil] ]',
    "nil",
    "[$Z(), [1, a], nil]",
]


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.sampled_from(WHOLE), st.lists(pieces, max_size=9).map("".join)))
def test_the_oracle_reads_terms_as_the_kernels_do(written: str) -> None:
    def tried(check: Any) -> str | None:
        try:
            return check(written, SPEC)
        except (Failed, NoValue, EverviewError):
            return None

    found = tried(rule_terms._checked)  # pyright: ignore[reportPrivateUsage]
    assert found == tried(RULE_TERMS["term_checked"])
    if found is None:
        return
    assert rule_terms._checked(found, SPEC) == found  # pyright: ignore[reportPrivateUsage]
    for branch in ("[]", "$D", "$Z"):
        for place in range(4):
            parts = [f(found, branch, place, "none") for f in (rule_terms._part, RULE_TERMS["term_part"])]  # pyright: ignore[reportPrivateUsage]
            assert parts[0] == parts[1]


@given(st.text())
def test_symbols_come_back(symbol: str) -> None:
    quoted = rule_terms.quoted(symbol)
    assert quoted == RULE_TERMS["term_quoted"](symbol)
    assert rule_terms._part(f"$A({quoted})", "$A", 0, "") == symbol  # pyright: ignore[reportPrivateUsage]


def test_what_is_given_is_read_and_written_anew() -> None:
    db = ev.connect()
    db.datalog(f"{TYPES} .decl e(x: Expr) .input e p(x) :- e(x).")
    db.apply({"e": [(("$Add($Num( 1),$Zero())",), 1), (("$Add($Num(1), $Zero)",), 1), (("$Name([3, a b])",), 1)]})
    assert sorted(db.view("p").rows()) == [("$Add($Num(1), $Zero)",), ('$Name([3, "a b"])',)]
    db.apply({"e": [(("$Add($Num(1), $Zero)",), -1)]})
    assert len(db.view("p").rows()) == 2
    with pytest.raises(
        EverviewError, match=r"\$Num\(x\) is no Expr: a value of type BIGINT should stand at character 6"
    ):
        db.apply({"e": [(("$Num(x)",), 1)]})
    assert len(db.view("p").rows()) == 2
    assert db.verify()


def test_a_list_of_two_thousand() -> None:
    db = ev.connect()
    db.datalog(".type L = [h: number, t: L] .decl l(x: L) .input l .decl s(x: L) s([h, t]) :- l([h, t]).")
    deep = "".join(f"[{n}, " for n in range(2000)) + "nil" + "]" * 2000
    db.apply({"l": [((deep,), 1)]})
    assert db.view("s").rows() == [(deep,)]


def test_types_of_components_and_of_other_texts() -> None:
    db = ev.connect()
    db.datalog(
        ".comp C<T> { .type O = Some {x: T} | None {} .decl p(x: O) p($None). p($Some(1)). } .init c = C<number>"
    )
    db.datalog("q(x) :- c.p($Some(x)). r($None) :- q(_).")
    assert db.view("q").rows() == [(1,)]
    assert db.view("r").rows() == [("$None",)]


REFUSED = {
    ".decl p(x: Expr) p(1).": (TypeConflict, "1 is no Expr"),
    '.decl p(x: Expr) p("$Zero").': (TypeConflict, '"$Zero" is no Expr'),
    ".decl p(x: Expr) p($None).": (TypeConflict, "$None is no Expr"),
    ".decl p(x: Expr) p($Num(1, 2)).": (TypeConflict, "$Num(1, 2) has 2 fields, and Expr 1"),
    ".decl p(x: Expr) p(nil).": (TypeConflict, "nil is no Expr"),
    ".decl p(x: Items) p([1, nil]).": (TypeConflict, "1 is no Expr"),
    ".decl p(x: Pair) p(nil).": (TypeConflict, "nil is no STRUCT"),
    ".decl p(x: Expr, y: symbol) q(x) :- p(x, x).": (TypeConflict, "variable x is Expr and STRING"),
    ".decl p(x: Expr) q(x) :- p(x), p(y), x < y.": (
        TypeConflict,
        "x < y: records that may hold themselves have no order",
    ),
    ".decl p(x: Expr) q(m) :- m = max x : { p(x) }.": (TypeConflict, "max of x"),
    ".decl p(x: Expr) q(x) :- p($Num(y)), x = y + z.": (DatalogError, "variable x is not bound"),
    ".decl p(x: Expr) q($Num(y)) :- p(_).": (DatalogError, "variable y is not bound in the head"),
    ".decl p(x: Expr) p($Num(1.5)).": (TypeConflict, "a field of type BIGINT is given"),
    "p($Other(1)).": (DatalogError, "there is no type with the branch $Other"),
    "p(nil).": (DatalogError, "nil is of which type?"),
    ".type A = X {} | X {y: number} .decl p(x: A)": (DatalogError, "type A has branch $X twice"),
    ".type A = X {} .type B = X {} .decl p(x: A)": (DatalogError, "$X is a branch of A and of B"),
    ".type A = X {y: number, y: number} .decl p(x: A)": (DatalogError, "$X has a field twice"),
    ".type A = X {y: nothing} .decl p(x: A)": (DatalogError, 'type "nothing" does not exist'),
    ".type A = X {y: timestamp} .decl p(x: A)": (DatalogError, "a field of type TIMESTAMP"),
    ".type A = Expr | Items .decl p(x: A)": (DatalogError, "type A is a union"),
    ".decl p(x: Expr) p($).": (DatalogError, "$ counts rows as they are found"),
}


@pytest.mark.parametrize("written", REFUSED)
def test_refused(written: str) -> None:
    kind, message = REFUSED[written]
    with pytest.raises(kind) as refused:
        ev.connect().datalog(TYPES + written)
    assert message in str(refused.value)
    assert refused.value.hint
    assert "line" in str(refused.value)


@pytest.mark.parametrize(
    "spec", ["", "true", "{}", '{"root": "x", "types": 3}', '{"root": "x", "types": {"x": {"y": 3}}}']
)
def test_a_specification_of_types_that_is_none_is_named(spec: str) -> None:
    with pytest.raises(Failed, match="no specification of types"):
        rule_terms._checked("a", spec)  # pyright: ignore[reportPrivateUsage]
