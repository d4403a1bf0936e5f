"""What triggers tell is what has really changed, whoever changed it and how; and replies keep to it."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.errors import LostPosition, NegativeWeight, SchemaDrift, SourceError
from everview.sources.memory import Memory
from everview.sources.postgres import Postgres
from everview.sources.protocol import Compare, Followed, Request, Source, Update
from everview.sources.sqlite import SQLite

ids, names, numbers = st.integers(1, 4), st.sampled_from(["a", "A", "b", None]), st.integers(0, 2)


def told(source: Source) -> Counter[Any]:
    """The changes of a turn."""
    source.begin()
    found = Counter(dict(source.changes()))
    source.commit()
    return found


def after(before: Counter[Any], changes: Counter[Any]) -> Counter[Any]:
    total = Counter(before)
    for row, weight in changes.items():
        total[row] += weight
        assert total[row] >= 0, "what goes was there"
    return +total


# -- SQLite

SQLITE_DML = [
    ("INSERT INTO t VALUES (?, ?, ?)", (ids, names, numbers)),
    ("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", (ids, names, numbers)),
    ("INSERT OR IGNORE INTO t VALUES (?, ?, ?)", (ids, names, numbers)),
    ("INSERT OR REPLACE INTO t (name, n) VALUES (?, ?)", (names, numbers)),
    ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET n = n + 1", (ids, names, numbers)),
    ("UPDATE t SET n = ? WHERE id >= ?", (numbers, ids)),
    ("UPDATE t SET id = ? WHERE id = ?", (ids, ids)),
    ("UPDATE OR REPLACE t SET id = ? WHERE id = ?", (ids, ids)),
    ("UPDATE OR REPLACE t SET name = ? WHERE id = ?", (names, ids)),
    ("DELETE FROM t WHERE id = ?", (ids,)),
    ("DELETE FROM t", ()),
]
SQLITE_TABLES = [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE, n INT)",
    "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, name TEXT UNIQUE, n INT) WITHOUT ROWID",
    "CREATE TABLE t (id INT NOT NULL, name TEXT, n INT, PRIMARY KEY (id) ON CONFLICT REPLACE)",
]


def dml(statements: list[Any]) -> st.SearchStrategy[Any]:
    return st.one_of([st.tuples(st.just(text), st.tuples(*given_)) for text, given_ in statements])


def steps(statements: list[Any]) -> st.SearchStrategy[Any]:
    """Transactions, by one of two connections, kept or not; and between some of them a turn."""
    transaction = st.tuples(
        st.sampled_from([0, 1]), st.booleans(), st.lists(dml(statements), min_size=1, max_size=4), st.booleans()
    )
    return st.lists(transaction, max_size=6)


@given(steps=steps(SQLITE_DML), made=st.sampled_from(SQLITE_TABLES), recursive=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sqlite_tells_what_has_changed(
    tmp_path_factory: pytest.TempPathFactory, steps: Any, made: str, recursive: bool
) -> None:
    path = tmp_path_factory.mktemp("sqlite") / "db"
    connections = [sqlite3.connect(path, isolation_level=None) for _ in range(3)]
    for each in connections:
        each.execute("PRAGMA synchronous = OFF")
    reader, *writers = connections
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute(made)
    writers[1].execute(f"PRAGMA recursive_triggers = {int(recursive)}")
    source = SQLite(reader, "t", key="id", trim_every=3)
    _follow(source, writers, steps, sqlite3.Error)
    source.close()
    for each in connections:
        each.close()


def _follow(source: Any, writers: list[Any], steps: Any, refused: type[Exception]) -> None:
    state: Counter[Any] = Counter()
    for which, keep, transaction, turn in steps:
        writer = writers[which]
        writer.execute("BEGIN")
        for text, bound in transaction:
            try:
                writer.execute("SAVEPOINT one")
                writer.execute(text, bound)
                writer.execute("RELEASE one")
            except refused:
                writer.execute("ROLLBACK TO one")
        writer.execute("COMMIT" if keep else "ROLLBACK")
        assert Counter(source.pull(Request())) == state, "outside of a turn, all is as it was"
        wanted = Request(Compare("n", ">", 0), (("n", "desc"), ("name", "asc")), limit=2)
        order = sorted((row for row in state if row[2] > 0), key=lambda row: (-row[2], row[1] or "", row[0]))
        assert list(source.pull(wanted)) == order[:2]
        if turn:
            state = after(state, told(source))
            assert state == Counter(tuple(row) for row in writer.execute("SELECT id, name, n FROM t").fetchall())
            assert not told(source), "nothing is told twice"


def test_replacing_a_row_with_the_same_one_is_no_change(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "db", isolation_level=None)
    other.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT UNIQUE)")
    source = SQLite(tmp_path / "db", "t")
    other.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    assert told(source) == {(1, 1): 1, (2, 2): 1}
    other.execute("INSERT OR REPLACE INTO t VALUES (1, 1)")
    assert not told(source)
    other.execute("INSERT OR REPLACE INTO t VALUES (1, 2)")  # in the way of both
    assert told(source) == {(1, 1): -1, (2, 2): -1, (1, 2): 1}
    source.close()
    other.close()


# -- PostgreSQL

POSTGRES_DML = [
    ("INSERT INTO t VALUES (%s, %s, %s)", (ids, names, numbers)),
    ("INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (ids, names, numbers)),
    ("INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = t.n + 1", (ids, names, numbers)),
    ("UPDATE t SET n = %s WHERE id >= %s", (numbers, ids)),
    ("UPDATE t SET id = %s WHERE id = %s", (ids, ids)),
    ("DELETE FROM t WHERE id = %s", (ids,)),
    ("TRUNCATE t", ()),
]


@pytest.fixture
def writers(postgres: str) -> Iterator[list[psycopg.Connection[Any]]]:
    found = [psycopg.connect(postgres, autocommit=True) for _ in range(2)]
    found[0].execute("DROP TABLE IF EXISTS t")
    found[0].execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT UNIQUE, n INT)")
    yield found
    for each in found:
        each.close()


@given(steps=steps(POSTGRES_DML))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_postgres_tells_what_has_changed(postgres: str, writers: Any, steps: Any) -> None:
    writers[0].execute("TRUNCATE t")
    source = Postgres(postgres, "t", trim_every=3)
    _follow(source, writers, steps, psycopg.Error)
    source.close()


def test_what_is_committed_late_is_told_once_and_not_lost(postgres: str, writers: Any) -> None:
    source = Postgres(postgres, "t")
    early, late = writers
    late.execute("BEGIN")
    late.execute("INSERT INTO t VALUES (1, 'first', 1)")  # entered first, committed last
    early.execute("INSERT INTO t VALUES (2, 'second', 2)")
    assert told(source) == {(2, "second", 2): 1}
    late.execute("COMMIT")
    assert told(source) == {(1, "first", 1): 1}
    assert not told(source)
    source.close()


def test_many_writers_at_once(postgres: str, writers: Any) -> None:
    source = Postgres(postgres, "t", trim_every=10)

    def write(first: int) -> None:
        with psycopg.connect(postgres, autocommit=True) as connection:
            for i in range(first, first + 60):
                connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (i, None, i))

    threads = [threading.Thread(target=write, args=(1000 * n,)) for n in range(3)]
    for each in threads:
        each.start()
    state: Counter[Any] = Counter()
    while any(each.is_alive() for each in threads):
        state = after(state, told(source))
    state = after(state, told(source))
    assert len(state) == 180
    assert set(state.values()) == {1}
    source.close()


# -- both, and memory


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Followed]:
    match request.param:
        case "memory":
            found: Any = Memory("id INTEGER, name STRING, n INTEGER", "id")
        case "sqlite":
            with sqlite3.connect(tmp_path / "db") as connection:
                connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT)")
            connection.close()
            found = SQLite(tmp_path / "db", "t", schema="id INTEGER, name STRING, n INTEGER")
        case _:
            dsn = request.getfixturevalue("postgres")
            request.getfixturevalue("writers")
            found = Postgres(dsn, "t")
    yield found
    found.close()


def test_a_source_is_a_source(source: Followed) -> None:
    assert isinstance(source, Followed)


def test_a_turn_sees_what_it_has_written(source: Followed) -> None:
    source.begin()
    source.write(Update({(1, "a", 1): 1, (2, "b", 2): 1}))
    assert list(source.pull(Request())) == [(1, "a", 1), (2, "b", 2)]
    assert dict(source.changes()) == {(1, "a", 1): 1, (2, "b", 2): 1}
    source.write(Update({(1, "a", 1): -1, (1, "c", 1): 1}))
    assert dict(source.changes()) == {(1, "c", 1): 1, (2, "b", 2): 1}
    source.commit()
    assert not told(source)


def test_a_turn_that_is_rolled_back_leaves_nothing(source: Followed) -> None:
    source.begin()
    source.write(Update({(1, "a", 1): 1}))
    source.commit()
    source.begin()
    source.write(Update({(1, "a", 1): -1, (2, "b", 2): 1}))
    source.rollback()
    assert list(source.pull(Request())) == [(1, "a", 1)]
    assert not told(source)


def test_a_write_that_cannot_be_is_refused(source: Followed) -> None:
    source.begin()
    with pytest.raises(NegativeWeight, match="not there"):
        source.write(Update({(1, "a", 1): -1}))
    source.rollback()
    assert list(source.pull(Request())) == []


def test_a_reply_ends_with_its_state(source: Followed) -> None:
    source.begin()
    source.write(Update({(i, None, i): 1 for i in range(5)}))
    reply = source.pull(Request())
    assert next(reply) == (0, None, 0)
    source.commit()
    with pytest.raises(SourceError, match="has changed since"):
        list(reply)
    assert len(list(source.pull(Request()))) == 5


def test_replies_may_be_read_side_by_side(source: Followed) -> None:
    source.begin()
    source.write(Update({(i, None, i): 1 for i in range(5)}))
    source.commit()
    pairs = zip(source.pull(Request()), source.pull(Request(order=(("id", "desc"),))), strict=True)
    assert [(a[0], b[0]) for a, b in pairs] == [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]


# -- positions


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """How a table is opened, again and again; and someone who writes to it."""
    if request.param == "sqlite":
        writer: Any = sqlite3.connect(tmp_path / "db", isolation_level=None)
        writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT)")
        yield lambda **more: SQLite(tmp_path / "db", "t", **more), writer
        writer.close()
        return
    dsn, (writer, _) = request.getfixturevalue("postgres"), request.getfixturevalue("writers")
    yield lambda **more: Postgres(dsn, "t", **more), writer


def test_a_position_is_taken_up_by_another_process(opened: Any) -> None:
    make, writer = opened
    first = make()
    writer.execute("INSERT INTO t VALUES (1, 'a', 1)")
    first.begin()
    assert len(first.changes()) == 1
    position = first.position()
    first.commit()
    first.close()
    writer.execute("INSERT INTO t VALUES (2, 'b', 2)")
    second = make()
    second.resume(position)
    assert told(second) == {(2, "b", 2): 1}
    second.close()


def test_what_is_not_settled_is_kept(opened: Any) -> None:
    make, writer = opened
    first = make(trim_every=1)
    first.begin()
    position = first.position()
    first.commit()
    for i in range(5):
        writer.execute(f"INSERT INTO t VALUES ({i}, NULL, {i})")
        told(first)
    again = make(trim_every=1)
    again.resume(position)
    assert len(told(again)) == 5
    again.begin()
    writer.execute("INSERT INTO t VALUES (7, NULL, 7)")
    again.changes()
    later = again.position()
    again.commit()
    again.settle(later)
    with pytest.raises(LostPosition, match="trimmed"):
        again.resume(position)
    first.close()
    again.close()


def test_a_position_of_another_log_is_refused(opened: Any) -> None:
    make, _ = opened
    source = make()
    position = source.position()
    source.uninstall()
    source.close()
    source = make()
    with pytest.raises(LostPosition, match="not the one"):
        source.resume(position)
    source.uninstall()
    source.close()


def test_uninstalling_leaves_nothing(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
    connection.execute('CREATE TABLE "odd ""name"" ; --" (id INTEGER PRIMARY KEY, "a ""b""" TEXT)')
    before = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    source = SQLite(tmp_path / "db", 'odd "name" ; --')
    connection.execute('INSERT INTO "odd ""name"" ; --" VALUES (1, ?)', ("x",))
    assert told(source) == {(1, "x"): 1}
    source.uninstall()
    source.close()
    found = connection.execute("SELECT name FROM sqlite_master WHERE name <> 'sqlite_sequence' ORDER BY name")
    assert found.fetchall() == before
    connection.close()


def test_hostile_names_in_postgres(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "s; ""%s"""')
        connection.execute("""CREATE TABLE "s; ""%s""\"."t'%I" ("id%%" INT PRIMARY KEY, "b""c" TEXT)""")
        source = Postgres(postgres, "t'%I", 's; "%s"')
        connection.execute("""INSERT INTO "s; ""%s""\"."t'%I" VALUES (1, 'x')""")
        assert told(source) == {(1, "x"): 1}
        assert list(source.pull(Request(Compare('b"c', "=", "x")))) == [(1, "x")]
        connection.execute("""TRUNCATE "s; ""%s""\"."t'%I\"""")
        assert told(source) == {(1, "x"): -1}
        source.uninstall()
        source.close()
        connection.execute('DROP SCHEMA "s; ""%s""" CASCADE')


def test_a_table_made_anew_is_noticed(opened: Any) -> None:
    make, writer = opened
    source = make()
    told(source)
    writer.execute("DROP TABLE t")
    writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT)")
    source.begin()
    with pytest.raises(SchemaDrift, match="anew"):
        source.changes()
    source.rollback()
    source.close()
