"""After any sequence of ticks, changes of definitions, failures and reopenings, every view is what the oracle says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from database.defined import ACCOUNT, NEEDS, TRANSFER, VIEWS
from everview import Database, EverviewError, connect
from everview.errors import DuplicateKey, NegativeWeight

ids = st.integers(0, 5)
accounts = st.tuples(ids, st.sampled_from(["Ada", "Bob", "Zoë", None]), st.sampled_from(["UK", "DE", None]))
transfers = st.tuples(st.one_of(st.none(), ids), ids, st.integers(-3, 9))
weights = st.sampled_from([1, 1, 1, 1, 1, -1, 2])

steps = st.one_of(
    st.tuples(st.just("insert"), st.lists(accounts, max_size=4), st.lists(transfers, max_size=5)),
    st.tuples(st.just("upsert"), st.lists(accounts, max_size=4), st.lists(transfers, max_size=5)),
    st.tuples(st.just("delete"), st.lists(ids, max_size=3), st.lists(transfers, max_size=1)),
    st.tuples(st.just("take back"), st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), st.none()),
    st.tuples(st.just("update"), st.lists(accounts, max_size=3), st.none()),
    st.tuples(
        st.just("apply"),
        st.lists(st.tuples(accounts, weights), max_size=3),
        st.lists(st.tuples(transfers, weights), max_size=4),
    ),
    st.tuples(st.just("create"), st.sampled_from(sorted(VIEWS)), st.none()),
    st.tuples(st.just("create"), st.sampled_from(sorted(VIEWS)), st.none()),
    st.tuples(st.just("drop"), st.sampled_from(sorted(VIEWS)), st.none()),
    st.tuples(st.just("reopen"), st.sampled_from(["tick", "periodic", "none"]), st.none()),
    st.tuples(st.just("fail"), st.lists(accounts, max_size=2), st.none()),
)


class Drawn(Exception):
    pass


def take(db: Database, step: tuple[str, object, object]) -> None:
    what, first, second = step
    match what:
        case "insert" | "upsert":
            with db.transaction() as tx:
                getattr(tx, what)("account", first)
                tx.insert("transfer", second)
        case "delete":
            with db.transaction() as tx:
                tx.delete("account", first)
                tx.delete("transfer", second)
        case "take back":
            for table in ("account", "transfer"):
                rows = db.table(table).rows()
                db.apply({table: [(rows[at], -1) for at in first if at < len(rows)]})
        case "update":
            with db.transaction() as tx:
                tx.update("account", [{"id": id_, "country": country} for id_, _, country in first])
        case "apply":
            db.apply({"account": first, "transfer": second})
        case "create":
            for name in (*NEEDS.get(first, ()), first):
                db.create_view(name, VIEWS[name], replace=True)
        case "drop":
            db.drop(first, cascade=True)
        case "fail":
            with db.transaction() as tx:
                tx.upsert("account", first)
                raise Drawn


def model(db: Database) -> tuple[list[object], list[object]]:
    return sorted(db.table("account").rows(), key=repr), sorted(db.table("transfer").rows(), key=repr)


def run(path: Path | None, shards: int, drawn: list[tuple[str, object, object]]) -> None:
    db = connect(path, shards=shards)
    db.create_table("account", ACCOUNT, key="id")
    db.create_table("transfer", TRANSFER)
    told: dict[str, dict[object, int]] = {}
    for step in drawn:
        if step[0] == "reopen":
            before, epoch = model(db), db.epoch
            told.clear()
            if path is not None:
                db.close()
                db = connect(path, durability=str(step[1]), views=VIEWS)
            assert (model(db), db.epoch) == (before, epoch)
        else:
            before, epoch = model(db), db.epoch
            try:
                take(db, step)
            except (DuplicateKey, NegativeWeight, EverviewError, Drawn):
                assert (model(db), db.epoch) == (before, epoch), "what is refused leaves no trace"
        for name in db.views():
            if name not in told:
                told[name] = {}
                db.view(name).subscribe(follow(told[name]), snapshot=True)
        for name in [name for name in told if name not in db.views()]:
            del told[name]
        db.verify().raise_if_different()
        for name, rows in told.items():
            assert {r: w for r, w in rows.items() if w} == dict(db.view(name).contents())
    db.close()


def follow(rows: dict[object, int]):
    def listener(changes, epoch: int) -> None:
        for row, weight in changes:
            rows[row] = rows.get(row, 0) + weight

    return listener


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=5, max_size=14))
def test_in_memory(drawn: list[tuple[str, object, object]]) -> None:
    run(None, 1, drawn)


@pytest.mark.parametrize("shards", [1, 3])
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(steps, min_size=5, max_size=12))
def test_in_a_directory(shards: int, drawn: list[tuple[str, object, object]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory) / "state", shards, drawn)
