"""Views come and go while data is there: a new one loads from what is held, and nothing else is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from database.defined import ACCOUNT, TRANSFER, VIEWS, exposure, reach
from everview import Database, connect
from everview.circuit.stream import Stream
from everview.errors import CircuitError, DefinitionError, EverviewError, FunctionError, SchemaError, UnknownName

Relations = Mapping[str, Stream]
ACCOUNTS = [(i, f"owner {i}", ["UK", "DE", None][i % 3]) for i in range(20)]
TRANSFERS = [(i % 20, (i * 7) % 20, i % 11) for i in range(60)]


@pytest.fixture
def db() -> Database:
    db = connect()
    db.create_table("account", ACCOUNT, key="id")
    db.create_table("transfer", TRANSFER)
    with db.transaction() as tx:
        tx.insert("account", ACCOUNTS)
        tx.insert("transfer", TRANSFERS)
    return db


class Counted:
    """A stream that says how often it was computed, and with how many rows."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()

    def __call__(self, name: str, stream: Stream) -> Stream:
        def look(changes: Any) -> None:
            self.steps[name] += 1

        look.__qualname__ = f"look at {name}"
        return stream.inspect(look)


@pytest.mark.parametrize("shards", [1, 2])
def test_adding_a_view_computes_no_other(shards: int) -> None:
    counted = Counted()
    db = connect(shards=shards)
    db.create_table("account", ACCOUNT, key="id")
    db.create_table("transfer", TRANSFER)
    db.create_view("seen", lambda of: counted("seen", of["transfer"].join(of["account"], ("src", "id"))))
    db.create_view("counts", lambda of: counted("counts", of["seen"].aggregate(["country"], n="count")))
    db.apply({"account": [(row, 1) for row in ACCOUNTS], "transfer": [(row, 1) for row in TRANSFERS]})
    assert counted.steps["seen"] >= 1
    counted.steps.clear()
    db.create_view("all", lambda of: counted("all", of["seen"].select("country").distinct()))
    db.create_view("more", lambda of: counted("more", of["account"].select("country")))
    if shards == 1:  # over several, what a new reader needs may have to move
        db.create_view("top", lambda of: of["counts"].top(1, "n desc"))
        db.create_view("again", lambda of: of["seen"].aggregate(["country"], n="count"))
    assert set(counted.steps) == {"all", "more"}
    assert db.verify()
    counted.steps.clear()
    db.drop("all")
    db.create_table("other", "x BIGINT")
    db.drop("other")
    db.create_view("more", VIEWS["by_country"], replace=True)
    assert not counted.steps
    assert db.verify()


def test_the_same_definition_costs_nothing(db: Database) -> None:
    steps: list[Any] = []

    def build(of: Relations) -> Stream:
        return of["account"].inspect(steps.append).select("country").distinct()

    db.create_view("one", build)
    assert len(steps) == 1
    db.create_view("two", build)
    assert len(steps) == 1
    assert sorted(db.view("two").rows(), key=repr) == sorted(db.view("one").rows(), key=repr)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_view_loads(db: Database, name: str) -> None:
    db.create_view("exposure", exposure)
    db.create_view("pairs", VIEWS["pairs"])
    db.create_view(name, VIEWS[name], if_not_exists=True)
    assert db.verify()
    db.apply({"transfer": [((3, 4, 100), 1), (TRANSFERS[0], -1)], "account": [(ACCOUNTS[5], -1)]})
    assert db.verify()


def test_functions_of_one_name_are_told_apart(db: Database) -> None:
    """Traces go by the names of functions, so a name is never another function's."""
    for limit in (1, 5, 9):
        db.create_view(
            "v", lambda of, n=limit: of["transfer"].filter(lambda a: pc.greater(a, n), columns="amount"), replace=True
        )
        assert len(db.view("v")) == sum(t[2] > limit for t in TRANSFERS)
    db.create_view("a", lambda of: of["transfer"].filter(lambda a: pc.greater(a, 2), columns="amount"))
    db.create_view("b", lambda of: of["transfer"].filter(lambda a: pc.greater(a, 7), columns="amount"))
    db.drop("v")
    db.drop("a")
    db.create_view("c", lambda of: of["transfer"].filter(lambda a: pc.greater(a, 8), columns="amount"))
    assert db.verify()
    assert [len(db.view(name)) for name in "bc"] == [sum(t[2] > n for t in TRANSFERS) for n in (7, 8)]


def test_a_directory_takes_no_functions_that_it_cannot_tell_apart(tmp_path: Path) -> None:
    def twin() -> Any:
        def large(a: pa.Array) -> pa.Array:
            return pc.greater(a, 1)

        return large

    with connect(tmp_path / "s") as db:
        db.create_table("transfer", TRANSFER)
        with pytest.raises(FunctionError, match="lambda"):
            db.create_view("v", lambda of: of["transfer"].filter(lambda a: a, columns="amount"))
        one, two = twin(), twin()
        db.create_view("one", lambda of: of["transfer"].filter(one, columns="amount"))
        with pytest.raises(FunctionError, match="large~2"):
            db.create_view("two", lambda of: of["transfer"].filter(two, columns="amount"))
        assert db.views() == ["one"]


def test_recursion_is_not_computed_again(db: Database) -> None:
    counted = Counted()
    db.create_view("reach", lambda of: counted("reach", reach(of)))
    db.create_view("ends", lambda of: of["reach"].select("dst").distinct())
    assert counted.steps["reach"] == 1
    assert db.verify()


def test_a_failing_view_changes_nothing(db: Database) -> None:
    def fails(owner: pa.Array) -> pa.Array:
        raise ValueError("no")

    db.create_view("exposure", exposure)
    before = db.views(), db.epoch, len(db._core.run.dictionary), db.view("exposure").contents()
    with pytest.raises(FunctionError):
        db.create_view("bad", lambda of: of["account"].map(fails, "x STRING", columns="owner"))
    with pytest.raises(UnknownName, match='did you mean "account"'):
        db.create_view("bad", lambda of: of["acount"])
    with pytest.raises(FunctionError):
        db.create_view("exposure", lambda of: of["account"].map(fails, "x STRING", columns="owner"), replace=True)
    after = db.views(), db.epoch, len(db._core.run.dictionary), db.view("exposure").contents()
    assert after == before
    db.apply({"transfer": [((3, 4, 100), 1)]})
    assert db.verify()


def test_names_are_taken_once(db: Database) -> None:
    db.create_view("v", exposure)
    for name in ("v", "V", "account"):
        with pytest.raises(DefinitionError, match="already"):
            db.create_view(name, exposure)
    with pytest.raises(DefinitionError, match="already"):
        db.create_table("v", "x BIGINT")
    with pytest.raises(DefinitionError, match="already"):
        db.create_view("account", exposure, replace=True)
    db.create_view("v", VIEWS["pairs"], if_not_exists=True)
    assert db.view("v").schema.names == ("country", "total", "most")


def test_drop(db: Database) -> None:
    db.create_view("exposure", exposure)
    db.create_view("over", VIEWS["over_exposure"])
    with pytest.raises(DefinitionError, match="exposure, over read it"):
        db.drop("transfer")
    with pytest.raises(DefinitionError, match="over reads it"):
        db.drop("exposure")
    with pytest.raises(UnknownName, match='did you mean "exposure"'):
        db.drop("exposur")
    db.drop("nothing", if_exists=True)
    view = db.view("over")
    db.drop("exposure", cascade=True)
    assert (db.tables(), db.views()) == (["account", "transfer"], [])
    with pytest.raises(UnknownName):
        view.rows()
    db.drop("transfer")
    with pytest.raises(UnknownName):
        db.apply({"transfer": []})
    db.create_table("transfer", TRANSFER)
    assert db.table("transfer").rows() == [], "a table of the same name is another"


def test_dropped_state_goes(db: Database) -> None:
    held = set(db._core.run.state.held())
    db.create_view("exposure", exposure)
    assert set(db._core.run.state.held()) > held
    db.drop("exposure")
    assert set(db._core.run.state.held()) == held


def test_replace(db: Database) -> None:
    db.create_view("v", lambda of: of["account"].select("id", "owner"))
    db.create_view("w", lambda of: of["v"].select("id"))
    db.create_view("v", lambda of: of["account"].select("owner", "id", "country"), replace=True)
    assert db.view("v").schema.names == ("owner", "id", "country")
    assert sorted(db.view("w").rows()) == [(i,) for i in range(20)]
    before = db.epoch, db.view("v").contents()
    with pytest.raises(UnknownName, match="id"):
        db.create_view("v", lambda of: of["account"].select("owner"), replace=True)
    with pytest.raises(DefinitionError, match="read itself"):
        db.create_view("v", lambda of: of["w"].select("id"), replace=True)
    assert (db.epoch, db.view("v").contents()) == before
    assert db.verify()


def test_plain_views_are_inlined(db: Database) -> None:
    db.create_view("p", lambda of: of["account"].select("country"), materialized=False)
    db.create_view("v", lambda of: of["p"].distinct())
    db.create_view("same", lambda of: of["account"].select("country").distinct())
    assert set(db._core.run.views) == {"v", "same"}
    assert db.verify()
    with pytest.raises(DefinitionError, match="plain"):
        db.view("p")
    with pytest.raises(DefinitionError, match="v reads it"):
        db.drop("p")
    assert "plain" in db.explain("p")


def test_a_view_by_another_circuit(db: Database) -> None:
    other = connect()
    other.create_table("t", "a BIGINT")
    stream: list[Stream] = []

    def keep(of: Relations) -> Stream:
        stream.append(of["t"])
        return of["t"]

    other.create_view("v", keep)
    with pytest.raises((CircuitError, SchemaError)):
        db.create_view("v", lambda of: stream[0])
    assert db.views() == []


def test_explain(db: Database) -> None:
    db.create_view("exposure", exposure)
    db.apply({"transfer": [((3, 4, 100), 1)]})
    text = db.explain("exposure")
    assert text.startswith("view exposure: country STRING")
    assert "JoinIncremental" in text
    assert "holds 61" in text
    assert "steps 2" in text or "steps 1" in text
    assert db.view("exposure").explain() == text
    with pytest.raises(UnknownName):
        db.explain("exposures of")


def test_verify_notices(db: Database) -> None:
    db.create_view("pairs", VIEWS["pairs"])
    assert db.verify("pairs")
    trace = db._core.run.state.of(db._core.run.program.contents("pairs"))[0]
    trace.past.append(trace.before.consolidated()[:1].copy())
    verdict = db.verify("pairs")
    assert not verdict
    assert verdict["pairs"].extra.count == 1


Change = Callable[[Database], None]
CHANGES: dict[str, Change] = {
    "create": lambda db: db.create_view("reach", reach),
    "replace": lambda db: db.create_view("exposure", VIEWS["by_country"], replace=True),
    "drop": lambda db: db.drop("exposure"),
    "table": lambda db: db.create_table("more", "x BIGINT"),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_commit_that_fails_changes_nothing(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everview.errors import StoreError
    from everview.traces.store import FileSystem

    with connect(tmp_path / "s") as db:
        db.create_table("account", ACCOUNT, key="id")
        db.create_table("transfer", TRANSFER)
        db.create_view("exposure", exposure)
        db.apply({"account": [(row, 1) for row in ACCOUNTS], "transfer": [(row, 1) for row in TRANSFERS]})
        before = db.tables(), db.views(), db.epoch, db.view("exposure").contents()

        def refuse(*_: Any) -> None:
            raise OSError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(FileSystem, "append", refuse)
            with pytest.raises(StoreError, match="no space left"):
                CHANGES[change](db)
        assert (db.tables(), db.views(), db.epoch, db.view("exposure").contents()) == before
        db.apply({"transfer": [((1, 2, 3), 1)]})
        assert db.verify()
        CHANGES[change](db)
        assert db.verify()
    with connect(
        tmp_path / "s", views={**VIEWS, "exposure": VIEWS["by_country"] if change == "replace" else exposure}
    ) as db:
        assert db.verify()


def test_a_temporary_view_is_a_name_until_the_database_is_closed(tmp_path: Path) -> None:
    db = connect(tmp_path / "state")
    db.sql("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 2), (3, 4)")
    db.sql(
        "CREATE TEMPORARY VIEW added AS SELECT a + b AS c FROM t;CREATE TEMP VIEW twice AS SELECT c * 2 AS d FROM added"
    )
    db.sql("CREATE OR REPLACE TEMP VIEW added (c) AS SELECT a - b FROM t")
    assert sorted(db.sql("SELECT d FROM twice")) == [(-2,), (-2,)]
    assert list(db.sql("SHOW VIEWS LIKE 'tw*'")) == [("default", "twice", True, False)]
    for text, said in (
        ("CREATE MATERIALIZED VIEW kept AS SELECT d FROM twice", "kept would outlast twice"),
        ("CREATE OR REPLACE VIEW added AS SELECT 1 AS c", 'there is a view "added"'),
        ("CREATE TEMPORARY MATERIALIZED VIEW x AS SELECT 1 AS c", "a materialized view that is temporary"),
    ):
        with pytest.raises(EverviewError, match=said):
            db.sql(text)
    db.sql("CREATE VIEW stays AS SELECT a FROM t")
    db.close()
    with connect(tmp_path / "state") as again:
        assert again.views() == ["stays"]


def test_who_reads_a_replaced_view_reads_the_new_one_however_it_was_made(tmp_path: Path) -> None:
    """With the same columns as before: the plans of the readers say the same, of another relation."""
    pairs = "[:find ?x ?y :in $ $r :where [$r ?x ?y]]"
    makes: list[Callable[[Database, str], Any]] = [
        lambda db, of: db.edn(pairs, name="v", args=[of], replace=True),
        lambda db, of: db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT DISTINCT x, y FROM {of}"),
        lambda db, of: db.define("v", db.frame(of).select("x", "y"), replace=True),
        lambda db, of: db.create_view("v", lambda read: read[of].select("x", "y"), replace=True),
    ]
    for place, make in enumerate(makes):
        db = connect(tmp_path / str(place))
        db.sql("CREATE TABLE a (x BIGINT NOT NULL, y BIGINT); INSERT INTO a VALUES (1, 2)")
        db.sql("CREATE TABLE b (x BIGINT NOT NULL, y BIGINT); INSERT INTO b VALUES (3, 4), (5, 6)")
        make(db, "a")
        db.edn(pairs, name="read", args=["v"])
        db.sql("CREATE MATERIALIZED VIEW sums AS SELECT sum(x) AS n FROM v")
        db.sql("CREATE MATERIALIZED VIEW again AS SELECT n FROM sums")
        db.datalog("rule(x) :- v(x, _).")
        db.query("v").select("x").materialize("built")
        for of, rows in (("b", [3, 5]), ("a", [1])):
            make(db, of)
            for _ in range(2):
                assert db.view("again").rows() == [(sum(rows),)], place
                assert sorted(db.view("rule").rows()) == sorted(db.view("built").rows()) == [(x,) for x in rows], place
                assert sorted(db.view("read").rows()) == sorted(db.view("v").rows()), place
                if place < 3:  # a directory does not keep functions
                    db.close()
                    db = connect(tmp_path / str(place))
        db.close()
