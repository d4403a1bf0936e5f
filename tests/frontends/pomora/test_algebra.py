"""PomoRA: every operator, programs with loops over random changes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import everview as ev
from everview.errors import BadAggregate, DatalogError, EverviewError, NotStratified, TypeConflict, UnknownName
from everview.frontends.pomora.parse import parse
from frontends.pomo_streams import Fed, ticks
from frontends.pomora.naive import run

AUTHORS = """[(id: 1, name: "Abe", born: 1924), (id: 2, name: "Borges", born: 1899),
              (id: 3, name: "Calvino", born: 1923), (id: 4, name: "Eco", born: 1932)]"""
USERS = """[(id: 1, region: "Europe", ok: true), (id: 2, region: "Europe", ok: false),
            (id: 3, region: "Asia", ok: true), (id: 4, region: "America", ok: false)]"""
PRODUCTS = """[(p: 1, pc: 1, cost: 80), (p: 2, pc: 1, cost: 90), (p: 3, pc: 1, cost: 120),
               (p: 4, pc: 2, cost: 60), (p: 5, pc: 2, cost: 20)]"""
BUDGETS = "[(c: 1, budget: 100), (c: 2, budget: 50)]"

EXAMPLES: dict[str, tuple[str, set[tuple[Any, ...]]]] = {
    "projection": (f"projection([:id, :name], {AUTHORS})", {(1, "Abe"), (2, "Borges"), (3, "Calvino"), (4, "Eco")}),
    "projection without duplicates": (f"projection([:ok], {USERS})", {(True,), (False,)}),
    "rename": ("rename([foo: :bar], [(foo: 1), (foo: 2), (foo: 3)])", {(1,), (2,), (3,)}),
    "two renamed at once": ("projection([:a], rename([a: :b, b: :a], [(a: 1, b: 2)]))", {(2,)}),
    "selection": (f"projection([:id], selection(born < 1925, {AUTHORS}))", {(1,), (2,), (3,)}),
    "formula": (f'projection([:id], select((not (region = "Europe")) or (ok = true), {USERS}))', {(1,), (3,), (4,)}),
    "and before or": (f"projection([:id], selection(ok = true or id > 1 and id <= 2, {USERS}))", {(1,), (2,), (3,)}),
    "union": ('union([(n: "R"), (n: "G")], [(n: "G"), (n: "B")], [(n: "R")])', {("R",), ("G",), ("B",)}),
    "union by name": ("union([(a: 1, b: 2)], [(b: 4, a: 3)])", {(1, 2), (3, 4)}),
    "difference": ('difference([(n: "R"), (n: "O"), (n: "G")], [(n: "G"), (n: "R")])', {("O",)}),
    "product": ("cartesian_product([(r: 1), (r: 2)], [(s: 3), (s: 4)])", {(1, 3), (1, 4), (2, 3), (2, 4)}),
    "natural join": (
        """natural_join([(l: "Ruby", y: 1995), (l: "Prolog", y: 1972)],
                        [(f: "Rails", l: "Ruby"), (f: "Sinatra", l: "Ruby")])""",
        {("Ruby", 1995, "Rails"), ("Ruby", 1995, "Sinatra")},
    ),
    "theta join": (
        f"projection([:p, :c, :budget], theta_join(c = pc and cost < budget, {BUDGETS}, {PRODUCTS}))",
        {(1, 1, 100), (2, 1, 100), (5, 2, 50)},
    ),
    "equijoin": (
        f"projection([:budget, :p], equijoin(c = pc, {BUDGETS}, {PRODUCTS}))",
        {(100, 1), (100, 2), (100, 3), (50, 4), (50, 5)},
    ),
    "semijoin": ('semijoin([(u: 1, n: "A"), (u: 2, n: "B")], [(u: 1)])', {(1, "A")}),
    "antijoin": ('antijoin([(u: 1, n: "A"), (u: 2, n: "B")], [(u: 1)])', {(2, "B")}),
    "group by": (f"group_by(pc, total, sum(cost), {PRODUCTS})", {(1, 290), (2, 80)}),
    "count": (f"group_by([:pc], n, count, {PRODUCTS})", {(1, 3), (2, 2)}),
    "ends": (f"group_by([:pc], most, max(cost), {PRODUCTS})", {(1, 120), (2, 60)}),
    "all in one group": (f"group_by([], least, min(cost), {PRODUCTS})", {(20,)}),
    "no group of nothing": (f"group_by([], n, count, selection(cost > 500, {PRODUCTS}))", set()),
    "decimals meet whole numbers": ("union([(x: 1)], [(x: 2.50)])", {(1,), (2.5,)}),
}


@pytest.mark.parametrize(("expression", "wanted"), EXAMPLES.values(), ids=list(EXAMPLES))
@pytest.mark.parametrize("sign", [":-", ":="])
def test_operators(expression: str, wanted: set[tuple[Any, ...]], sign: str) -> None:
    db = ev.connect()
    db.datalog(f"r {sign} {expression};", dialect="pomora")
    rows = db.view("r").rows()
    assert set(rows) == wanted
    assert len(rows) == len(wanted)
    assert db.verify()


@ev.aggregate("BIGINT", name="pomo_product", by_group=True)
def product(xs: list[int]) -> int:
    found = 1
    for x in xs:
        found *= x
    return found


def test_a_user_aggregate() -> None:
    db = ev.connect()
    db.datalog("r := group_by(k, p, pomo_product(x), [(k: 1, x: 3), (k: 1, x: 4), (k: 2, x: 5)]);", dialect="pomora")
    assert sorted(db.view("r").rows()) == [(1, 12), (2, 5)]


PROGRAMS = {
    "closure": """path := edge;
        while change do
          path := projection([:a, :b], natural_join(rename([b: :m], path), rename([a: :m], edge)));
        end""",
    "mutual": """odd := rename([x: :b], event);
        while change do
          even := projection([:b], semijoin(edge, rename([b: :a], odd)));
          odd := projection([:b], semijoin(edge, rename([b: :a], even)));
        end""",
    "a relation in several versions": """r := projection([:a], edge);
        before := difference(rename([x: :a], event), r);
        r := rename([x: :a], event);
        after := difference(rename([x: :a], event), r);
        r := projection([:a], rename([x: :a], node));""",
    "nested loops": """r := rename([x: :b], event);
        while change do
          while change do r := projection([:b], semijoin(edge, rename([b: :a], r))); end
          s := rename([b: :x], r);
          r := projection([:b], rename([x: :b], semijoin(node, s)));
        end""",
    "after a loop": """path := edge;
        while change do
          path := projection([:a, :b], natural_join(rename([b: :m], path), rename([a: :m], edge)));
        end
        apart := difference(cartesian_product(projection([:a], edge), projection([:b], edge)), path);
        degree := group_by([:a], n, count, path);
        most := group_by([], n, max(n), degree);
        path := rename([a: :b, b: :a], path);
        alone := antijoin(node, rename([a: :x], path));""",
    "loops in sequence": """r := event;
        while change do r := rename([b: :x], projection([:b], semijoin(edge, rename([x: :a], r)))); end
        first := r;
        while change do r := rename([a: :x], projection([:a], semijoin(edge, rename([x: :b], r)))); end""",
    "subtracts what the loop leaves alone": """r := event;
        while change do
          r := difference(rename([b: :x], projection([:b], semijoin(edge, rename([x: :a], r)))),
                          projection([:x], node));
        end""",
    "conditions": """r := theta_join(a < x and not (label = "red") or b = x, edge, node);
        s := selection(a != b and (a >= 1 or b <= 1), edge);
        t := group_by([:label], total, sum(x), node);""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
@settings(max_examples=10)
@given(ticks=ticks)
def test_programs_mean_what_running_them_gives(text: str, ticks: list[Any]) -> None:
    fed, block = Fed.new(), parse(text)
    heads = fed.database.datalog(text, dialect="pomora").heads
    for changes in [[], *ticks]:
        fed.apply(changes)
        wanted = run(block, fed.facts)
        for head in heads:
            assert fed.view(head) == wanted[head], head
    assert fed.database.verify()


REFUSED: dict[str, tuple[type[EverviewError], str, str]] = {
    "no relation": (DatalogError, "r := nothing;", "no relation nothing here"),
    "read before it is assigned": (DatalogError, "r := s; s := edge;", "no relation s here"),
    "a table": (DatalogError, "edge := edge;", "edge is a relation of the database"),
    "of itself alone": (DatalogError, "while change do r := s; s := r; end", "made of itself alone"),
    "subtracting in a loop": (
        *(NotStratified, "while change do r := edge; s := difference(edge, r); end"),
        "s is assigned a difference of r",
    ),
    "antijoin in a loop": (
        NotStratified,
        "while change do r := antijoin(edge, r); end",
        "r is assigned an antijoin of r",
    ),
    "aggregate in a loop": (
        *(NotStratified, "r := node; while change do r := group_by([:label], x, sum(x), r); end"),
        "a group_by (sum) of r",
    ),
    "unknown attribute": (UnknownName, "r := projection([:z], edge);", '"z" does not exist\n  line 1, column 6'),
    "attribute twice": (DatalogError, "r := projection([:a, :a], edge);", "a would be there twice"),
    "renamed onto another": (DatalogError, "r := rename([a: :b], edge);", "b would be there twice"),
    "other attributes": (DatalogError, "r := union(edge, node);", "(a, b) and (x, label)"),
    "common attributes": (DatalogError, "r := cartesian_product(edge, edge);", "have an attribute a"),
    "theta of common": (DatalogError, "r := theta_join(a = b, edge, edge);", "both sides of a theta_join"),
    "no equality": (DatalogError, "r := equijoin(a < x, edge, node);", "and not by a < x"),
    "denied equality": (DatalogError, "r := equijoin(a = x and not (b = x), edge, node);", "by equality"),
    "types": (TypeConflict, "r := selection(label = 1, node);", "compares STRING and INTEGER"),
    "types in a union": (TypeConflict, 'r := union([(x: 1)], [(x: "a")]);', "attribute x is of BIGINT and of STRING"),
    "types in rows": (TypeConflict, 'r := [(x: 1), (x: "a")];', "values of different types"),
    "rows that differ": (DatalogError, "r := [(x: 1), (y: 1)];", "different attributes"),
    "no rows": (DatalogError, "r := [];", "without rows"),
    "no aggregate": (UnknownName, "r := group_by(a, n, median(b), edge);", 'aggregate "median" does not exist'),
    "parameters": (BadAggregate, "r := group_by(a, n, sum, edge);", "sum takes 1"),
    "no operator": (DatalogError, "r := join(edge, node);", "1:10: '(' cannot stand here"),
    "no end": (DatalogError, "while change do r := edge;", "the text ends too early"),
    "no semicolon": (DatalogError, "r := edge s := edge;", "1:11: 's' cannot stand here"),
}


@pytest.mark.parametrize(("error", "text", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refused(error: type[EverviewError], text: str, message: str) -> None:
    fed = Fed.new()
    with pytest.raises(error) as raised:
        fed.database.datalog(text, dialect="pomora")
    assert message in str(raised.value)
    assert raised.value.hint
    assert fed.database.views() == []


def test_views_are_there_again(tmp_path: Path) -> None:
    text = PROGRAMS["after a loop"]
    with ev.connect(tmp_path / "state") as db:
        db.create_table("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
        db.create_table("node", "x BIGINT NOT NULL, label STRING NOT NULL")
        db.datalog(text, dialect="pomora")
        db.apply({"edge": [((1, 2), 1), ((2, 3), 1)], "node": [((1, "red"), 1), ((9, "blue"), 1)]})
        held = {name: sorted(db.view(name).rows()) for name in db.views()}
        order = db.views()
    with ev.connect(tmp_path / "state") as db:
        assert db.views() == order
        assert {name: sorted(db.view(name).rows()) for name in db.views()} == held
        db.apply({"edge": [((3, 9), 1)]})
        assert db.view("alone").rows() == []
        assert db.verify()


def test_programs_and_other_views_read_each_other() -> None:
    fed = Fed.new()
    fed.database.sql("CREATE MATERIALIZED VIEW big AS SELECT a, b FROM edge WHERE a > 0")
    program = fed.database.datalog("r := projection([:a], big);", dialect="pomora")
    fed.database.sql("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM r")
    fed.apply([("edge", (1, 2), 1), ("edge", (1, 3), 1), ("edge", (0, 1), 1)])
    assert fed.database.view("total").rows() == [(1,)]
    with pytest.raises(EverviewError, match="total reads it"):
        program.remove()
    fed.database.sql("CREATE OR REPLACE MATERIALIZED VIEW big AS SELECT a, b FROM edge")
    assert fed.database.view("total").rows() == [(2,)]
    fed.database.drop("total")
    program.remove()
    assert fed.database.views() == ["big"]


def test_a_dialect_that_there_is_not_names_those_that_there_are() -> None:
    database = ev.connect()
    with pytest.raises(UnknownName, match="available: souffle, pomologic, pomora"):
        database.datalog("p(1).", dialect="prolog")
    with pytest.raises(DatalogError, match="a program of PomoRA has no rules") as refused:
        database.remove_rules("r := edge;", dialect="pomora")
    assert refused.value.hint == "remove it by its handle, or drop its views"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a", "^1:2: the text ends too early", 'expected ":="'),
        ("a := b;\nc = d;", "^2:3: '=' cannot stand here", 'expected ":="'),
        ('a := [(b: "\\x4")];', "^1:11: .* is no text", "write a backslash twice, or use one as Python does"),
    ],
)
def test_misread_texts_have_a_place(text, message, hint):
    with pytest.raises(DatalogError, match=message) as error:
        parse(text)
    assert error.value.hint == hint


def test_a_projection_to_no_attributes_is_refused():
    with ev.connect() as db, pytest.raises(DatalogError, match="a projection to no attributes") as refused:
        db.datalog("none := projection([], [(a: 1)]);", dialect="pomora")
    assert refused.value.hint
