"""A state goes on under other definitions: every view is what recomputing gives, and so is the sum of its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.errors import DefinitionError
from everview.runtimes.embedded import runtime
from everview.runtimes.spark import turned_views
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.stored_change import StoredChange
from everview.runtimes.spark.worker import replica
from everview.runtimes.tables import Table
from everview.spark.queries import Queries
from everview.traces.store import Store
from everview.traces.store.layout import StatePaths
from everview.traces.store.verify import verify as verify_store
from everview.verify import verify
from spark.in_process import engine, tick

SOURCES = {
    "t": "id BIGINT NOT NULL, g INTEGER NOT NULL, s STRING, v BIGINT NOT NULL",
    "u": "g INTEGER NOT NULL, name STRING",
}
TABLES = {"t": Table(("id",)), "u": Table(("g",))}
BODIES = {
    "sums": "SELECT g, sum(v) AS n FROM t GROUP BY g",
    "counts": "SELECT g, count(*) AS n FROM t GROUP BY g",
    "texts": "SELECT s || 'x' AS x, v FROM t WHERE v > 2",
    "joined": "SELECT t.id, u.name FROM t JOIN u ON t.g = u.g",
    "outer": "SELECT t.id, u.name FROM t LEFT JOIN u ON t.g = u.g",
    "top": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2",
    "apart": "SELECT DISTINCT g FROM u",
    "reached": "WITH RECURSIVE r AS (SELECT id AS a, v AS b FROM t UNION SELECT r.a, t.v FROM r JOIN t ON r.b = t.id) "
    "SELECT a, b FROM r",
    "ring": "SELECT a.id, b.id AS o FROM t a JOIN t b ON a.v = b.id JOIN t c ON b.v = c.id AND c.v = a.id",
}
Views = Mapping[str, str]  # by name, what it is of `BODIES`


def circuit_of(views: Views, sources: Mapping[str, str] = SOURCES) -> Circuit:
    circuit = Circuit()
    for name, schema in sources.items():
        circuit.source(name, schema)
    queries = Queries(circuit)
    for name, body in views.items():
        queries.define_sql(f"CREATE MATERIALIZED VIEW {name} AS {BODIES.get(body, body)}", "spark")
    return circuit


def opened(path: Path, views: Views, delivered: Any = None, sources: Mapping[str, str] = SOURCES, **how: Any) -> Engine:
    how = {"tables": TABLES, "place": "driver", "shards": 2, "fed": lambda _: sources.keys() & SOURCES.keys(), **how}
    circuit = circuit_of(views, sources)
    return engine(circuit, path, delivered=views if delivered is None else delivered, **how)


def check(run: Engine, circuit: Circuit) -> None:
    sources = {name: run.contents(name) for name in circuit.sources}
    held = {name: run.run.view(name).contents() for name in run.run.views}
    verdict = verify(circuit, sources, held)
    assert verdict, str(verdict)


names = st.sampled_from(["a", "b", "c"])
views = st.dictionaries(names, st.sampled_from(sorted(BODIES)), min_size=1, max_size=3)
rows_t = st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([None, "x", "é"]), st.integers(0, 5))
batches = st.lists(rows_t, min_size=1, max_size=6, unique_by=lambda row: row[0])


def upserts(held: dict[int, Any], rows: list[Any]) -> list[Any]:
    """The change that puts rows in place of those of their ids."""
    change = [(held[row[0]], -1) for row in rows if row[0] in held] + [(row, 1) for row in rows]
    held.update((row[0], row) for row in rows)
    return change


@settings(max_examples=10)
@given(
    definitions=st.lists(views, min_size=2, max_size=3),
    feeds=st.lists(batches, min_size=3, max_size=3),
    place=st.sampled_from(["driver", "cluster"]),
    shards=st.sampled_from([2, 1]),
    running=st.booleans(),
    most=st.sampled_from([0, 100, 1 << 20]),
)
def test_views_after_other_definitions(
    definitions: list[Views], feeds: list[Any], place: Any, shards: int, running: bool, most: int
) -> None:
    """Also if a turn says its changes, all or only larger ones, by the epochs that they lie between."""
    with TemporaryDirectory() as folder, patch.object(turned_views, "MOST_BYTES", most):
        path, held, sums, told = Path(folder) / "s", {}, Counter[Any](), set[int]()
        columns: dict[str, Any] = {}
        run = opened(path, definitions[0], place=place, shards=shards)
        tick(run, {"u": [((g, f"g{g}"), 1) for g in range(3)]})
        for views, feed in zip(definitions, feeds, strict=False):
            if running:
                circuit = circuit_of(views)
                if run.run.planned(circuit, TABLES).changes:
                    run.redefine(circuit, TABLES, views)
            else:
                run.close()
                run = opened(path, views, place=place, shards=shards)
            moved = {old: new for new, old in run.run.renamed.items() if new not in columns and old not in views}
            columns = {moved.get(view, view): schema for view, schema in columns.items()}
            sums = Counter({(moved.get(view, view), row): n for (view, row), n in sums.items()})
            for view in views:
                schema = run.run.view(view).schema
                if columns.get(view) != schema:  # then it begins anew
                    sums = Counter({key: n for key, n in sums.items() if key[0] != view})
                columns[view] = schema
            columns = {view: columns[view] for view in views}
            sums = Counter({key: n for key, n in sums.items() if key[0] in views})
            note(sums, run, told)
            check(run, circuit_of(views))
            tick(run, {"t": upserts(held, feed)})
            note(sums, run, told)
            check(run, circuit_of(views))
            for view in views:
                shown = {row: n for (name, row), n in sums.items() if name == view and n}
                assert shown == dict(run.run.view(view).contents())
        run.close()


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_one_shard_is_enough(tmp_path: Path, place: Any) -> None:
    """Loops and joins of many relations read what the only shard has made in the same tick."""
    views = {"reached": "reached", "ring": "ring"}
    with opened(tmp_path / "s", views, place=place, shards=1) as run:
        for edges in ([(0, 1), (1, 2), (2, 0)], [(2, 3), (3, 0)]):
            gone = [(row, -1) for row, _ in run.contents("t") if row[0] in dict(edges)]
            tick(run, {"t": [*gone, *(((a, 1, None, b), 1) for a, b in edges)]})
            check(run, circuit_of(views))


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_value_that_was_let_go_of_comes_back(tmp_path: Path, place: Any) -> None:
    views = {"a": "SELECT upper(name) || '!' AS x FROM u"}
    with opened(tmp_path / "s", views, place=place) as run:
        for change in ([((1, "Ada"), 1)], [((1, "Ada"), -1)], [((2, "Bob"), 1)]):
            tick(run, {"u": change})
        replica(run.path, run.epoch).dictionary()  # a task has looked at the values before
        run.upkeep.vacuum(1)
        tick(run, {"u": [((3, "Ada"), 1)]})
        check(run, circuit_of(views))
    with opened(tmp_path / "s", views, place=place) as run:
        check(run, circuit_of(views))


def note(sums: Counter[Any], run: Engine, told: set[int]) -> None:
    """Add up what a sink is given, each epoch once."""
    if run.epoch not in told:
        told.add(run.epoch)
        for view, change in run.last_changes().items():
            for row, weight in change.batch() if isinstance(change, StoredChange) else change:
                sums[view, row] += weight


def test_a_large_change_of_a_turn_is_not_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new view, and one in place of another, are told by the epochs that they lie between; columns may differ."""
    monkeypatch.setattr(turned_views, "MOST_BYTES", 100)
    with opened(tmp_path / "s", {"a": "sums"}) as run:
        tick(run, {"t": [((i, i % 9, "x", i), 1) for i in range(90)], "u": [((g, "n"), 1) for g in range(9)]})
    monkeypatch.setattr(turned_views, "merge", lambda *_: pytest.fail("the driver merges"))
    for definitions, since in (({"a": "counts", "b": "joined"}, [1, 0]), ({"a": "texts", "b": "joined"}, [0])):
        with opened(tmp_path / "s", definitions) as run:
            told = [change for change in run.last_changes().values() if len(change)]
            assert [change.since for change in told if isinstance(change, StoredChange)] == since
            check(run, circuit_of(definitions))


def test_kept_traces_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "s", {"a": "sums", "b": "joined"}) as run:
        tick(run, {"t": [((i, i % 3, None, i), 1) for i in range(9)]})
    before = {entry.id for entry in Store.attach(tmp_path / "s").manifest.entries()}
    with opened(tmp_path / "s", {"a": "sums"}) as run:  # dropping a view keeps the others
        assert run.epoch == 2
        after = {entry.id for entry in run.store.manifest.entries()}
        assert after < before
    with opened(tmp_path / "s", {"z": "sums"}) as run:  # renaming one changes nothing but its name
        assert run.epoch == 3
        assert {e.id for e in run.store.manifest.entries() if "change" not in e.ref.name} <= after
        assert not len(run.last_changes()["z"])
        assert run.run.renamed == {"z": "a"}
    with opened(tmp_path / "s", {"z": "sums"}) as run:  # the same again is no epoch
        assert run.epoch == 3


def graded(more: int) -> Circuit:
    """A view by a function of one name, whose body depends on the release."""

    def grade(ids: pa.Array) -> pa.Array:
        return pc.add(ids, more)

    circuit = Circuit()
    numbers = circuit.source("t", "id BIGINT NOT NULL")
    numbers.extend(grade, "g BIGINT").aggregate(["g"], n="count").sink("grades")
    numbers.select("id").distinct().sink("plain")
    return incrementalize(circuit)


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_function_with_another_body_is_another_definition(tmp_path: Path, place: Any) -> None:
    def at(more: int) -> Engine:
        return engine(
            graded(more), tmp_path / "s", place=place, tables={"t": Table(("id",))}, fed=lambda _: ("t",), shards=2
        )

    def grades(run: Engine) -> list[int]:
        return sorted(row[0] for row, _ in run.run.view("grades").contents())

    with at(1) as run:
        tick(run, {"t": [((i,), 1) for i in range(3)]})
        assert grades(run) == [1, 2, 3]
    with at(1) as run:  # the same body, in another process or not, changes nothing
        assert run.epoch == 1
    with at(10) as run:
        assert (run.epoch, grades(run)) == (2, [10, 11, 12])
        tick(run, {"t": [((0,), -1), ((5,), 1)]})
        assert grades(run) == [11, 12, 15]
    with at(10) as run:
        assert (run.epoch, grades(run)) == (3, [11, 12, 15])
    with at(1) as run:
        assert (run.epoch, grades(run)) == (4, [2, 3, 6])


def test_tasks_compute_new_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "s", {"a": "sums"}, place="cluster") as run:
        tick(run, {"t": [((i, i % 3, f"s{i}", i), 1) for i in range(9)], "u": [((g, f"g{g}"), 1) for g in range(3)]})
    views = {"a": "counts", "b": "joined", "c": "texts", "d": "top", "e": "outer"}

    def hydrate(*_: Any) -> None:
        raise AssertionError("the driver computes nothing")

    with monkeypatch.context() as patch:
        patch.setattr(runtime, "hydrate", hydrate)
        with opened(tmp_path / "s", views, place="cluster") as run:
            assert not any(trace.is_loaded for trace, _, _ in run.run.state)
            check(run, circuit_of(views))
            tick(run, {"t": [((1, 1, "s1", 1), -1), ((1, 2, "y", 7), 1)]})
            check(run, circuit_of(views))
    with opened(tmp_path / "s", {**views, "f": "reached"}, place="cluster") as run:  # a recursion is the driver's
        check(run, circuit_of({**views, "f": "reached"}))
        run.store.verify()


@pytest.mark.parametrize("place", ["driver", "cluster"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_the_commit_of_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, place: str
) -> None:
    """Either all of the turn counts, or nothing; opening again completes it."""
    with opened(tmp_path / "s", {"a": "sums"}) as run:
        tick(run, {"t": [((i, i % 3, "x", i), 1) for i in range(9)]})
    plain, new = Store._publish, {"a": "counts", "b": "joined"}

    def crashing(self: Any, *given: Any, **how: Any) -> None:
        if when == "after":
            plain(self, *given, **how)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_publish", crashing)
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path / "s", new, place=place)
    with opened(tmp_path / "s", new, place=place) as run:
        assert run.epoch == 2
        check(run, circuit_of(new))
        assert sorted(run.last_changes()["a"]) == [
            ((g, 3 if n > 0 else s), n) for g, s in ((0, 9), (1, 12), (2, 15)) for n in ((1, -1) if s > 3 else (-1, 1))
        ]


# -- columns


def test_columns_that_come_go_and_widen(tmp_path: Path) -> None:
    old = {"t": "id INTEGER NOT NULL, gone STRING, g INTEGER, v BIGINT NOT NULL, s STRING, f FLOAT"}
    new = {"t": "id BIGINT NOT NULL, g BIGINT, s STRING, v DECIMAL(22,1) NOT NULL, extra STRING, f DOUBLE"}
    views = {"a": "SELECT g, sum(v) AS n FROM t GROUP BY g", "b": "SELECT s, count(*) AS n FROM t GROUP BY s"}
    more = {**views, "c": "SELECT id, extra, f FROM t"}
    tables = {"t": Table(("id",))}
    with opened(tmp_path / "s", views, sources=old, tables=tables) as run:
        tick(run, {"t": [((i, "x", i % 2 or None, 10 * i, f"s{i % 2}", i / 4), 1) for i in range(5)]})
    plan = opened_plan(tmp_path / "s", more, new, tables)
    assert [each.name for each in plan.reshapes] == ["t"]
    assert not list(plan.refusals())
    assert sum(plan.read.values()) == 5
    with opened(tmp_path / "s", more, sources=new, tables=tables) as run:
        check(run, circuit_of(more, new))
        assert sorted(run.run.view("c").rows()) == [(i, None, i / 4) for i in range(5)]
        tick(run, {"t": [((7, 5, "s1", 1, "new", 0.5), 1), ((4, None, "s0", 40, None, 1.0), -1)]})
        check(run, circuit_of(more, new))
        assert (7, "new", 0.5) in run.run.view("c").rows()


@pytest.mark.parametrize("running", [False, True])
def test_what_reads_only_columns_that_stay_is_not_computed_again(tmp_path: Path, running: bool) -> None:
    new = SOURCES | {"t": "id BIGINT NOT NULL, extra STRING, g INTEGER NOT NULL, v BIGINT NOT NULL"}
    views = {"a": "sums", "b": "joined", "c": "reached"}
    with opened(tmp_path / "s", {**views, "d": "texts"}) as run:
        tick(run, {"t": [((i, i % 3, "x", (i + 1) % 7), 1) for i in range(9)], "u": [((1, "one"), 1)]})
        run.durable.tidy(run.run.state)
        tick(run, {"t": [((9, 1, "y", 0), 1)]})
        if running:
            run.redefine(circuit_of(views, new), TABLES, views)
            check_moved(run, circuit_of(views, new))
    if not running:
        plan = opened_plan(tmp_path / "s", views, new, TABLES)
        assert plan.views == {"a": "kept", "b": "kept", "c": "kept", "d": "dropped"}
        assert len(plan.computed) == 1  # of the table itself
    with opened(tmp_path / "s", views, sources=new) as run:
        check_moved(run, circuit_of(views, new))
    assert Store.attach(tmp_path / "s").epoch == (5 if running else 4)
    verify_store(StatePaths(tmp_path / "s"))


def check_moved(run: Engine, circuit: Circuit) -> None:
    assert not any(map(len, run.last_changes().values())) or run.epoch > 3
    check(run, circuit)
    tick(run, {"t": [((20 + run.epoch, "new", 2, 20), 1), ((3, None, 0, 4), -1 if run.epoch == 3 else 0)]})
    check(run, circuit)
    run.upkeep.vacuum(1)
    check(run, circuit)


def opened_plan(path: Path, views: Views, sources: Mapping[str, str], tables: Any) -> Any:
    from everview.runtimes.embedded.prepare import prepared
    from everview.runtimes.embedded.turning import TurnPlan

    program = prepared(circuit_of(views, sources), tables, 2, as_is=False, stored=True)
    with Store.attach(path) as state:
        return TurnPlan(state.manifest, program, tables, frozenset(sources))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id BIGINT NOT NULL, g SMALLINT NOT NULL, s STRING, v BIGINT NOT NULL", 'column "g" is SMALLINT'),
        (f"{SOURCES['t']}, w DATE NOT NULL", 'column "w" is new and NOT NULL'),
        ("k BIGINT NOT NULL, g INTEGER NOT NULL", 'column "k" is new and of the key'),
        ("id BIGINT NOT NULL, g INTEGER NOT NULL, s STRING NOT NULL, v BIGINT NOT NULL", "rows held have NULL"),
        ("g INTEGER NOT NULL, v BIGINT NOT NULL", "rows held have the same g"),
    ],
)
def test_columns_that_cannot_be_taken_over(tmp_path: Path, schema: str, why: str) -> None:
    views, tables = {"a": "SELECT g FROM t"}, {"t": Table(("id",))}
    sources = {"t": SOURCES["t"]}
    with opened(tmp_path / "s", views, sources=sources, tables=tables) as run:
        tick(run, {"t": [((i, 1, None, i), 1) for i in range(3)]})
    key = {"t": Table((schema.split(maxsplit=1)[0],))}
    with pytest.raises(DefinitionError, match=why):
        opened(tmp_path / "s", views, sources={"t": schema}, tables=key)
    with opened(tmp_path / "s", views, sources=sources, tables=tables) as run:  # all is as it was
        assert run.epoch == 1


def test_what_cannot_be_computed_names_the_node(tmp_path: Path) -> None:
    with opened(tmp_path / "s", {"a": "sums"}, tables={}) as run:
        tick(run, {"t": [((1, 2, "x", 3), 1)]})
    with pytest.raises(DefinitionError, match=r"view b cannot be computed: node \d+ .* source t, whose contents"):
        opened(tmp_path / "s", {"a": "sums", "b": "counts"}, tables={})
    with opened(
        tmp_path / "s", {"b": "SELECT g, n + 1 AS n FROM (SELECT g, sum(v) AS n FROM t GROUP BY g)"}, tables={}
    ) as run:  # of what a view holds, another one can be computed
        assert run.run.view("b").rows() == [(2, 4)]


def test_a_source_that_is_gone_or_other_shards(tmp_path: Path) -> None:
    with opened(tmp_path / "s", {"a": "sums"}) as run:
        tick(run, {"t": [((1, 2, "x", 3), 1)]})
    with pytest.raises(DefinitionError, match="source u is not defined any more"):
        opened(
            tmp_path / "s", {"a": "sums"}, sources={"t": SOURCES["t"]}, tables={"t": TABLES["t"]}, fed=lambda _: SOURCES
        )
    with pytest.raises(DefinitionError, match="2 shards, not 3"):
        opened(tmp_path / "s", {"a": "sums"}, shards=3)
