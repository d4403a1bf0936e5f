"""Rules in a database: every head a view; rules come and go, one turn each, and outlive the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everview import connect
from everview.circuit.nodes import Child
from everview.database import Database
from everview.errors import DatalogError, DefinitionError, EverviewError, NotStratified, TransactionError

EDGE = ".decl edge(a: number, b: number)\n.input edge\n"
PATH = "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
BACK = "path(y, x) :- path(x, y)."
CHAIN = [((1, 2), 1), ((2, 3), 1)]
FORTH = [(1, 2), (1, 3), (2, 3)]


def chain(text: str = EDGE + PATH) -> Database:
    db = connect()
    db.datalog(text)
    db.apply({"edge": CHAIN})
    return db


def rows(db: Database, view: str) -> list[Any]:
    return sorted(db.view(view).rows())


def loops(db: Database) -> int:
    return sum(isinstance(node, Child) for node in db._core.run.program.circuit)


# -- heads, tables, facts


def test_every_head_is_a_view_and_what_is_only_declared_a_table() -> None:
    db = connect()
    handle = db.datalog(EDGE + ".decl node(x: number)\n" + PATH + "seen(x) :- node(x), path(x, _).")
    assert db.tables() == ["edge", "node"]
    assert db.views() == ["path", "seen"]
    assert handle.heads == ("path", "seen")
    assert repr(handle) == "<3 rules for path, seen>"
    assert "path(x, z)" in handle._repr_html_()


def test_facts_are_rules() -> None:
    db = connect()
    facts = db.datalog("edge(1, 2). edge(2, 3).")
    db.datalog(PATH)
    assert rows(db, "path") == FORTH
    db.remove_rules("edge(2, 3).")
    assert rows(db, "path") == [(1, 2)]
    assert len(facts) == 1
    db.datalog("edge(2, 4).")
    assert rows(db, "path") == [(1, 2), (1, 4), (2, 4)]
    assert db.verify()


def test_the_example_of_the_surface() -> None:
    db = connect()
    db.sql("""
        CREATE TABLE sanctioned (id BIGINT PRIMARY KEY);
        CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2), at TIMESTAMP);
        INSERT INTO sanctioned VALUES (1);
    """)
    db.datalog("""tainted(x) :- sanctioned(x).
                  tainted(y) :- tainted(x), transfer(_, x, y, _, _).""")
    out = db.apply({"transfer": [((7, 1, 2, "9.50", "2026-01-01"), +1), ((8, 2, 3, "1", "2026-01-01"), +1)]})
    assert sorted(out["tainted"]) == [((2,), 1), ((3,), 1)]
    assert sorted(db.apply({"transfer": [((7, 1, 2, "9.50", "2026-01-01"), -1)]})["tainted"]) == [
        ((2,), -1),
        ((3,), -1),
    ]


def test_values_may_come_as_text() -> None:
    db = connect()
    db.datalog(".decl p(n: number, f: float, s: symbol)\n.input p\nq(n, f, s) :- p(n, f, s).")
    db.apply({"p": [(("1", "0.5", "1"), 1), ((2, 1.5, "b"), 1)]})
    with db.transaction() as tx:
        tx.insert("p", [("3", "2", "c")])
        tx.insert("p", [{"n": "4", "f": "3", "s": "d"}])
        tx.delete("p", [("2", "1.5", "b")])
    assert rows(db, "q") == [(1, 0.5, "1"), (3, 2.0, "c"), (4, 3.0, "d")]
    with pytest.raises(EverviewError, match="'x' is no"):
        db.apply({"p": [(("x", "0.5", "1"), 1)]})


def test_sql_reads_rules_and_rules_read_sql() -> None:
    db = chain()
    db.sql("CREATE MATERIALIZED VIEW ends AS SELECT y, COUNT(*) AS n FROM path GROUP BY y")
    db.datalog("popular(x) :- ends(x, n), n > 1.")
    assert rows(db, "popular") == [(3,)]
    db.apply({"edge": [((1, 2), -1)]})
    assert rows(db, "popular") == []
    assert db.sql("SELECT * FROM path") == [(2, 3)]
    assert db.verify()


def test_relations_that_read_each_other_share_one_loop() -> None:
    db = chain()
    assert loops(db) == 1
    traces = len(list(db._core.run.state))
    more = db.datalog(
        "odd(x, y) :- edge(x, y). odd(x, z) :- even(x, y), edge(y, z). even(x, z) :- odd(x, y), edge(y, z)."
    )
    assert loops(db) == 2
    alone = connect()
    alone.datalog(EDGE + "\n".join(map(str, more.rules)))
    assert loops(alone) == 1
    assert len(list(db._core.run.state)) < traces + len(list(alone._core.run.state))  # the table's are shared
    assert rows(db, "even") == [(1, 3)]
    assert db.verify()


# -- rules come and go


def test_further_rules_extend_a_head() -> None:
    db = chain()
    more = db.datalog(BACK)
    assert rows(db, "path") == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3) if (x, y) != (1, 1)]
    more.remove()
    assert rows(db, "path") == FORTH
    assert [str(r) for handle in db.rules() for r in handle.rules] == [
        "path(x, y) :- edge(x, y).",
        "path(x, z) :- path(x, y), edge(y, z).",
    ]


def test_listeners_are_told_the_difference_once() -> None:
    db = chain()
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM path")
    told: list[Any] = []
    db.view("path").subscribe(lambda changes, epoch: told.append(("path", sorted(changes), epoch)))
    db.view("n").subscribe(lambda changes, epoch: told.append(("n", sorted(changes), epoch)))
    epoch = db.epoch
    more = db.datalog("path(9, 9). path(1, 2).")
    assert db.epoch == epoch + 1
    assert told == [("path", [((9, 9), 1)], epoch + 1), ("n", [((3,), -1), ((4,), 1)], epoch + 1)]
    told.clear()
    more.remove()
    assert told == [("path", [((9, 9), -1)], epoch + 2), ("n", [((3,), 1), ((4,), -1)], epoch + 2)]


def test_only_what_is_affected_is_computed_again() -> None:
    db = chain(EDGE + PATH + "loop(x) :- path(x, x).")
    db.datalog("big(x) :- edge(x, _), x > 1.")
    before = {name: db._core.catalog.views[name] for name in db.views()}
    streams = {trace.name if hasattr(trace, "name") else id(trace) for trace, _, _ in db._core.run.state}
    db.datalog("big(x) :- edge(_, x), x > 2.")
    assert [name for name in before if db._core.catalog.views[name] is not before[name]] == ["big"]
    kept = {trace.name if hasattr(trace, "name") else id(trace) for trace, _, _ in db._core.run.state}
    assert len(streams & kept) >= len(streams) - 3
    assert rows(db, "big") == [(2,), (3,)]


def test_a_later_text_may_close_a_cycle() -> None:
    db = chain(EDGE + "a(x, y) :- edge(x, y). b(x, z) :- a(x, y), edge(y, z).")
    assert loops(db) == 0
    more = db.datalog("a(x, y) :- b(y, x).")
    assert loops(db) == 1
    assert rows(db, "a") == [(1, 2), (2, 3), (3, 1)]
    assert db.verify()
    more.remove()
    assert loops(db) == 0
    assert rows(db, "a") == [(1, 2), (2, 3)]


def test_a_rule_that_came_twice_stays_until_it_is_removed() -> None:
    db = chain()
    again = db.datalog("path(x, y) :- edge(x, y).")
    again.remove()
    assert rows(db, "path") == FORTH
    db.datalog("path(x, y) :- edge(x, y).")
    db.datalog("path(0, 0).")
    db.remove_rules("path(x, y) :- edge(x, y).")
    assert rows(db, "path") == [(0, 0)]


def test_the_last_rule_takes_the_view_with_it() -> None:
    db = chain()
    end = db.datalog("end(x) :- path(_, x), !edge(x, _).")
    with pytest.raises(DefinitionError, match="the last rule of path cannot go: end reads it"):
        db.remove_rules(PATH)
    assert rows(db, "end") == [(3,)]
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM end")
    with pytest.raises(DefinitionError, match="n reads it"):
        end.remove()
    db.drop("n")
    db.remove_rules(PATH + "end(x) :- path(_, x), !edge(x, _).")
    assert db.views() == []
    assert db.rules() == []
    assert db.tables() == ["edge"]
    with pytest.raises(DatalogError, match="have been removed"):
        end.remove()


def test_dropping_a_view_removes_its_rules() -> None:
    db = chain(EDGE + PATH + "odd(x) :- edge(x, y), even(y). even(x) :- odd(x). odd(1).")
    with pytest.raises(DefinitionError, match="even reads it"):
        db.drop("odd")
    db.drop("odd", cascade=True)
    assert db.views() == ["path"]
    db.sql("DROP MATERIALIZED VIEW path")
    assert db.rules() == []


# -- what is given and derived


def test_an_input_with_rules_is_both() -> None:
    db = connect()
    db.datalog(EDGE + "edge(y, x) :- edge(x, y).\n.output edge\nloop(x) :- edge(x, y), edge(y, x).")
    assert (db.tables(), db.views()) == (["edge"], ["edge", "loop"])
    told: list[Any] = []
    db.view("edge").subscribe(lambda changes, epoch: told.append(sorted(changes)))
    out = db.apply({"edge": [((1, 2), 1)]})
    assert sorted(out["edge"]) == [((1, 2), 1), ((2, 1), 1)] == told[0]
    assert rows(db, "edge") == [(1, 2), (2, 1)]
    assert db.table("edge").rows() == [(1, 2)]
    assert sorted(db.sql("SELECT * FROM edge")) == [(1, 2), (2, 1)]
    assert rows(db, "loop") == [(1,), (2,)]
    with db.transaction() as tx:
        tx.delete("edge", [(1, 2)])
    assert rows(db, "edge") == rows(db, "loop") == []
    assert db.verify()
    assert "edge" in db.explain("edge")


def test_an_input_that_gets_rules_later_is_seen_with_them_by_all() -> None:
    db = chain()
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM edge")
    db.create_view("firsts", lambda of: of["edge"].select("a").distinct())
    more = db.datalog("edge(3, 4).")
    assert rows(db, "path") == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    assert rows(db, "n") == [(3,)]
    assert rows(db, "firsts") == [(1,), (2,), (3,)]
    assert db.verify()
    more.remove()
    assert rows(db, "path") == FORTH
    assert rows(db, "n") == [(2,)]
    assert rows(db, "firsts") == [(1,), (2,)]
    assert db.views() == ["path", "n", "firsts"]


def test_sql_changes_the_rows_that_are_given() -> None:
    db = connect()
    db.datalog(EDGE + "edge(y, x) :- edge(x, y).")
    db.sql("INSERT INTO edge VALUES (1, 2)")
    assert rows(db, "edge") == [(1, 2), (2, 1)]
    db.sql("DELETE FROM edge WHERE a = 1")
    assert rows(db, "edge") == []


def test_a_table_goes_with_the_rules_about_it(tmp_path: Path) -> None:
    with connect(tmp_path / "db") as db:
        db.datalog(EDGE + "edge(y, x) :- edge(x, y). loop(x) :- edge(x, x).")
        assert list(db.verify("edge").views) == ["edge"]
        with pytest.raises(DefinitionError, match="cannot be dropped"):
            db.drop("edge")
        db.drop("edge", cascade=True)
        assert (db.tables(), db.views(), db.rules()) == ([], [], [])
        db.datalog(EDGE + "loop(x) :- edge(x, x).")
    with connect(tmp_path / "db") as db:
        assert (db.tables(), db.views()) == (["edge"], ["loop"])


def test_an_input_may_be_shown_as_it_is() -> None:
    db = connect()
    db.datalog(EDGE + ".output edge\n" + PATH)
    out = db.apply({"edge": [((1, 2), 2)]})
    assert list(out["edge"]) == [((1, 2), 1)]
    assert db.view("edge").rows() == [(1, 2)]
    assert list(db.apply({"edge": [((1, 2), -1)]})["edge"]) == []


# -- mistakes leave everything as it was


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("path(x) :- nothing(x).", DatalogError, "nothing"),
        ("p(x) :- edge(x, _), !q(x). q(x) :- edge(x, _), !p(x).", NotStratified, "negation"),
        ("other(x, y) :- path(x, z), !other(z, y), edge(y, y).", NotStratified, "negation"),
        ("n(1).", DatalogError, "defined otherwise"),
        ("t(1).", DatalogError, "is a table, and rules cannot add to it"),
        (".decl edge(a: symbol, b: symbol)\n.input edge", DatalogError, "edge is declared as"),
        (".decl path(a: number, b: number)\n.input path", DatalogError, "path is a view"),
        ("path(x, y) :- edge(x, y", DatalogError, "line 1"),
        ("path(x, n) :- edge(x, _), n(n).", DefinitionError, "cannot read itself"),
    ],
)
def test_a_text_that_is_refused_changes_nothing(text: str, error: type[EverviewError], match: str) -> None:
    db = chain()
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM path; CREATE TABLE t (x BIGINT)")
    before = (db.epoch, db._core.catalog, db._core.run.program)
    with pytest.raises(error, match=match):
        db.datalog(text)
    assert (db.epoch, db._core.catalog, db._core.run.program) == before
    db.apply({"edge": [((3, 4), 1)]})
    assert rows(db, "n") == [(6,)]


def test_rules_that_are_not_there_cannot_be_removed() -> None:
    db = chain()
    with pytest.raises(DatalogError, match=r"there is no rule path\(x, x\)") as raised:
        db.remove_rules("path(x, x) :- edge(x, x).")
    assert "path(x, y) :- edge(x, y)." in (raised.value.hint or "")


def test_rules_do_not_change_inside_a_transaction() -> None:
    db = chain()
    with db.transaction(), pytest.raises(TransactionError, match="definitions do not change"):
        db.datalog("p(1).")


def test_a_view_by_rules_is_not_replaced_by_another_definition() -> None:
    db = chain()
    with pytest.raises(DefinitionError, match="path is defined by rules"):
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW path AS SELECT a, b FROM edge")


def test_a_loop_without_end_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_LOOP_ROUNDS", "30")
    db = chain(EDGE + "count(x) :- edge(x, _). count(x + 1) :- count(x), edge(0, _).")
    with pytest.raises(EverviewError, match="has not ended after 30 iterations"):
        db.apply({"edge": [((0, 0), 1)]})
    assert rows(db, "count") == [(1,), (2,)]
    with pytest.raises(EverviewError, match="has not ended after 30 iterations"):
        db.datalog("edge(0, 0).")
    assert db.views() == ["count"]
    db.apply({"edge": [((5, 0), 1)]})
    assert rows(db, "count") == [(1,), (2,), (5,)]


# -- on disk


def test_rules_outlive_the_process(tmp_path: Path) -> None:
    with connect(tmp_path / "db") as db:
        db.datalog(EDGE + PATH + ".output edge\n")
        db.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM path")
        db.datalog("odd(x) :- n(x), edge(x, y), even(y). even(x) :- odd(x). even(3).")
        db.datalog("path(7, 7). path(8, 8).")
        db.remove_rules("path(8, 8).")
        db.apply({"edge": [(("1", "2"), 1), ((2, 3), 1)]})
        held = {view: rows(db, view) for view in db.views()}
    with connect(tmp_path / "db") as db:
        assert {view: rows(db, view) for view in db.views()} == held
        assert [len(handle) for handle in db.rules()] == [2, 3, 1]
        assert loops(db) == 2
        db.apply({"edge": [(("3", "4"), 1)]})
        assert rows(db, "n") == [(7,)]
        db.rules()[-1].remove()
        assert rows(db, "n") == [(6,)]
        assert db.verify()
    with connect(tmp_path / "db") as db:
        assert rows(db, "n") == [(6,)]


def test_a_state_directory_keeps_no_more_than_texts(tmp_path: Path) -> None:
    with connect(tmp_path / "db") as db:
        db.datalog(EDGE + PATH)
        said = db._core.catalog.to_json()["rules"]
    assert said == [[1, EDGE + PATH, "souffle", []]]
