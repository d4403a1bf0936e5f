"""Rules that come and go at random between changes of rows: always what a new database with the same rules holds."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview import connect
from everview.circuit import stepping
from everview.circuit.program import Program, Task
from everview.database import Database
from everview.errors import EverviewError
from everview.runtimes import compiled_scope

DECLARED = """
.decl edge(a: number, b: number)
.decl node(a: number)
.input edge, node
.decl path(a: number, b: number)
.decl back(a: number, b: number)
.decl lone(a: number)
.decl many(a: number, n: number)
.decl near(a: number, d: number)
"""
RULES = (
    "path(x, y) :- edge(x, y).",
    "path(x, z) :- path(x, y), edge(y, z).",
    "path(x, y) :- back(y, x), node(x).",
    "back(y, x) :- path(x, y), !node(y).",
    "back(x, x) :- node(x).",
    "back(x, z) :- back(x, y), edge(y, z).",
    "edge(x, x) :- node(x).",
    "edge(y, x) :- edge(x, y), x < y.",
    "node(9).",
    "node(x) :- edge(x, 3).",
    "lone(x) :- node(x), !path(x, _).",
    "lone(x) :- node(x), !back(_, x).",
    "many(x, n) :- node(x), n = count : { path(x, _) }.",
    "near(x, min(0)) :- node(x).",
    "near(y, min(d + 1)) :- near(x, d), edge(x, y).",
)
HEADS = ("path", "back", "lone", "many", "near")
COUNTS = {"new": 800, "assign": 800, "load": 200, "store": 200}
VALUE = st.integers(0, 4)
ACTION = st.one_of(
    st.sets(st.sampled_from(RULES), min_size=1, max_size=4),
    st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=4),
    st.lists(VALUE, min_size=1, max_size=2),
)


def contents(db: Database) -> dict[str, Counter[Any]]:
    return {view: Counter(db.view(view).rows()) for view in db.views()}


def anew(rules: set[str], facts: dict[str, Counter[Any]]) -> dict[str, Counter[Any]]:
    db = connect()
    db.datalog(DECLARED + "\n".join(sorted(rules)))
    db.apply({table: list(rows.items()) for table, rows in facts.items()})
    return contents(db)


class Toggling:
    """A database, the rules and rows that it should have, and what its listeners should have been told."""

    def __init__(self) -> None:
        self.db = connect()
        self.db.datalog(DECLARED)
        for head in HEADS:  # declared alone, they are tables
            self.db.drop(head)
        self.rules: set[str] = set()
        self.facts: dict[str, Counter[Any]] = {"edge": Counter(), "node": Counter()}

    def change_rules(self, chosen: set[str]) -> None:
        """Those that are not there come, in one text; or, if all are, they go."""
        missing = chosen - self.rules
        try:
            if missing:
                self.db.datalog("\n".join(sorted(missing)))
                self.rules |= missing
            else:
                self.db.remove_rules("\n".join(sorted(chosen)))
                self.rules -= chosen
        except EverviewError:
            self._must_be_refused(self.rules ^ (missing or chosen))

    def _must_be_refused(self, rules: set[str]) -> None:
        db = connect()
        db.datalog(DECLARED)
        for head in HEADS:
            db.drop(head)
        with pytest.raises(EverviewError):
            db.datalog("\n".join(sorted(rules)))

    def change_rows(self, table: str, rows: list[Any]) -> None:
        changes: list[Any] = []
        for row in rows:
            gone = self.facts[table][row] > 0
            self.facts[table][row] += -1 if gone else 1
            changes.append((row, -1 if gone else 1))
        self.facts[table] += Counter()
        self.db.apply({table: changes})


@given(actions=st.lists(ACTION, min_size=2, max_size=8))
@settings(max_examples=15, deadline=None)
def test_a_database_is_its_rules_and_its_rows(actions: list[Any]) -> None:
    at = Toggling()
    for action in actions:
        if isinstance(action, set):
            at.change_rules(action)
        elif isinstance(action[0], tuple):
            at.change_rows("edge", action)
        else:
            at.change_rows("node", [(value,) for value in action])
        if at.rules:
            wanted = {view: rows for view, rows in anew(at.rules, at.facts).items() if view in at.db.views()}
            assert contents(at.db) == wanted
    at.db.verify().raise_if_different()


def test_listeners_can_follow_rules_that_come_and_go() -> None:
    rng = random.Random("listeners")
    db = connect()
    db.datalog(".decl edge(a: number, b: number)\n.input edge\npath(x, y) :- edge(x, y). near(x) :- path(0, x).")
    seen: dict[str, Counter[Any]] = {"path": Counter(), "near": Counter()}

    def follow(view: str) -> None:
        db.view(view).subscribe(lambda changes, epoch: seen[view].update(dict(changes)))

    follow("path")
    follow("near")
    handles: list[Any] = []
    for _ in range(30):
        match rng.randrange(3):
            case 0 if handles:
                handles.pop(rng.randrange(len(handles))).remove()
            case 1:
                rule = rng.choice(["path(x, z) :- path(x, y), edge(y, z).", "path(y, x) :- edge(x, y).", "path(0, 4)."])
                handles.append(db.datalog(rule))
            case _:
                row = (rng.randrange(5), rng.randrange(5))
                db.apply({"edge": [(row, -1 if row in db.table("edge").rows() else 1)]})
        for view, rows in seen.items():
            assert Counter({row: n for row, n in rows.items() if n}) == Counter(db.view(view).rows())


def test_the_work_of_a_change_follows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that operators inside loops are given: of all facts at once, and of one that changes."""
    given = [0]
    apply_at = stepping._apply_at

    def counted(program: Program, task: Task, step_at: Any, *others: Any) -> None:
        def step(now: Any, deltas: Any, woken: Any, *more: Any) -> Any:
            given[0] += sum(len(delta) for delta in deltas) + (0 if woken is None else len(woken))
            return step_at(now, deltas, woken, *more)

        apply_at(program, task, step, *others)

    monkeypatch.setattr(stepping, "_apply_at", counted)
    monkeypatch.setattr(compiled_scope, "MOST_ROWS", 0)  # so that Python runs all rounds, which counts
    rng = random.Random("work")
    db = connect()
    db.datalog(
        """.decl new(v: number, o: number)
           .decl assign(v: number, w: number)
           .decl load(v: number, w: number)
           .decl store(v: number, w: number)
           .input new, assign, load, store
           points(v, o) :- new(v, o).
           points(v, o) :- assign(v, w), points(w, o).
           points(v, o) :- load(v, w), points(w, p), points(p, o).
           points(p, o) :- store(v, w), points(v, p), points(w, o)."""
    )

    def local() -> tuple[int, int]:
        function = rng.randrange(100) * 20
        return function + rng.randrange(20), function + rng.randrange(20)

    facts = {kind: {local() for _ in range(n)} for kind, n in COUNTS.items()}
    db.apply({kind: [(row, 1) for row in rows] for kind, rows in facts.items()})
    whole, given[0] = given[0], 0
    for kind, rows in facts.items():
        row = sorted(rows)[0]
        db.apply({kind: [(row, -1)]})
        db.apply({kind: [(row, 1)]})
    assert given[0] / 8 < whole / 20


def test_tuples_come_and_go_with_the_rows_they_are_made_of() -> None:
    db = ev.connect()
    db.datalog("""
        .decl In(x: int32, y: int32)
        .input In
        .type P = ( a: int32, b: int32 )
        .decl Out(p: P)
        Out(p) :- In(x, y), p = (x, y).
        back(y, x) :- Out((x, y)).
    """)
    changed = db.apply({"In": [((1, 2), 1), ((3, 4), 1)]})
    assert sorted(changed["back"]) == [((2, 1), 1), ((4, 3), 1)]
    assert sorted(changed["Out"], key=str) == [(({"a": 1, "b": 2},), 1), (({"a": 3, "b": 4},), 1)]
    changed = db.apply({"In": [((1, 2), -1)]})
    assert list(changed["Out"]) == [(({"a": 1, "b": 2},), -1)]
    assert list(changed["back"]) == [((2, 1), -1)]
    db.verify()
