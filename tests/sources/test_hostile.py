"""Sources that are not as they should be: what is said of them, and that nothing is lost or taken twice."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import everview as ev
from everview.errors import BadRows, DefinitionError, EverviewError, LostPosition, SourceError, StoreError, WrongArity
from everview.sources import Files, Lines, Memory, SQLite
from everview.sources import Iterator as Items
from everview.sources.protocol import Update

COLUMNS = "id BIGINT, name STRING"


def made(path: Path, script: str) -> sqlite3.Connection:
    found = sqlite3.connect(path, isolation_level=None)
    found.executescript(script)
    return found


# -- SQLite


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no SQLite database"):
        SQLite(tmp_path, "t")


def test_a_table_that_may_only_be_read_says_how(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, "CREATE TABLE t (id INTEGER PRIMARY KEY)").close()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as only:
        with pytest.raises(SourceError, match="readonly") as raised:
            SQLite(only, "t")
        assert "watch=False" in str(raised.value)
        SQLite(only, "t", watch=False).close()


def test_a_connection_that_was_closed_is_told_of(tmp_path: Path) -> None:
    shop = made(tmp_path / "a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with ev.connect() as db:
        db.attach("t", SQLite(shop, "t"))
        shop.close()
        with pytest.raises(SourceError, match="closed"):
            db.poll()


def test_a_row_is_removed_where_a_column_is_called_rowid(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(made(path, "CREATE TABLE t (rowid TEXT, a INT)")) as shop:
        shop.execute("INSERT INTO t VALUES (NULL, 1), (NULL, 1), ('x', 2), ('x', 2)")
        source = SQLite(path, "t")
        source.begin()
        source.write(Update({(None, 1): -1, ("x", 2): -1}))
        source.commit()
        source.close()
        assert shop.execute("SELECT * FROM t").fetchall() == [(None, 1), ("x", 2)]


def test_rows_that_are_alike_but_not_in_the_way(tmp_path: Path) -> None:
    """A unique index over some rows: others may be there several times, and are removed one by one."""
    path = tmp_path / "a.db"
    with closing(made(path, "CREATE TABLE t (a INT, b INT); CREATE UNIQUE INDEX u ON t (a) WHERE b = 1")) as shop:
        shop.execute("INSERT INTO t VALUES (1, 0), (1, 0)")
        with ev.connect() as db:
            db.attach("t", SQLite(path, "t"))
            for change in (
                "INSERT INTO t VALUES (1, 1)",
                "INSERT OR REPLACE INTO t VALUES (1, 1)",
                "DELETE FROM t WHERE rowid = 1",
            ):
                shop.execute(change)
            shop.execute("INSERT OR REPLACE INTO t VALUES (1, 1)")
            db.poll()
            assert sorted(db.table("t").rows()) == sorted(shop.execute("SELECT * FROM t")) == [(1, 0), (1, 1)]


def test_text_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(made(path, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")) as shop, ev.connect() as db:
        db.attach("t", SQLite(path, "t"))
        shop.execute("INSERT INTO t VALUES (1, CAST(x'ff' AS TEXT))")
        with pytest.raises(SourceError, match="decode") as raised:
            db.poll()
        assert "attach it anew" in str(raised.value)
        shop.execute("UPDATE t SET a = 'x'")
        db.drop("t")
        db.attach("t", SQLite(path, "t"))
        assert db.table("t").rows() == [(1, "x")]


@pytest.mark.parametrize("keep", [True, False])
def test_a_row_that_does_not_fit_is_repaired(keep: bool, tmp_path: Path) -> None:
    """It was told to nobody, so nobody is told that it goes."""
    path = tmp_path / "a.db"
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT); INSERT INTO t VALUES (1, NULL), (2, 2)"
    with closing(made(path, script)) as shop, ev.connect() as db:
        source = SQLite(path, "t", schema="id BIGINT, n BIGINT NOT NULL")

        def read() -> list[Any]:
            if "t" not in db.sources and "t" not in db.tables():
                db.attach("t", source, keep=keep)
            db.poll()
            return db.table("t").rows() if keep else [tuple(row.values()) for row in db.query("t").materialize("v")]

        for repair in ("UPDATE t SET n = 1 WHERE id = 1", "UPDATE t SET n = 3", "DELETE FROM t WHERE n IS NULL"):
            with pytest.raises(BadRows, match="NULL"):
                read()
            shop.execute(repair)
            assert sorted(read()) == shop.execute("SELECT * FROM t").fetchall()
            shop.execute("INSERT OR REPLACE INTO t VALUES (3, NULL)")


def test_a_source_is_attached_once(tmp_path: Path) -> None:
    source = Memory(COLUMNS, "id")
    with ev.connect() as db:
        db.attach("a", source)
        for keep in (True, False):
            with pytest.raises(DefinitionError, match='attached as "a"'):
                db.attach("b", source, keep=keep)
        db.detach("a")
        db.attach("b", source, keep=False)
        with pytest.raises(DefinitionError, match='attached as "b"'):
            db.attach("c", source)


# -- rows


@pytest.mark.parametrize("row", [1, None, "ab", b"ab"])
def test_what_is_no_row(row: Any) -> None:
    with pytest.raises(WrongArity, match="is no row"):
        Memory("a STRING, b STRING", rows=[row])


# -- iterators


def test_an_iterator_that_raises_loses_nothing() -> None:
    def items() -> Iterator[tuple[int]]:
        yield (1,)
        yield (2,)
        raise RuntimeError("torn")

    with ev.connect() as db:
        db.attach("t", Items(items(), "n BIGINT"))
        with pytest.raises(SourceError, match="torn") as raised:
            db.poll()
        assert isinstance(raised.value.__cause__, RuntimeError)
        assert db.table("t").rows() == []
        db.poll()
        assert sorted(db.table("t").rows()) == [(1,), (2,)]


@pytest.mark.parametrize("limit", [None, 2])
def test_a_function_of_items_is_asked_again(limit: int | None) -> None:
    torn = [True]

    def items(start: int) -> Iterator[tuple[int]]:
        for n in range(start, 5):
            if n == 3 and torn:
                raise RuntimeError("torn")
            yield (n,)

    with ev.connect() as db:
        db.attach("t", Items(items, "n BIGINT"))
        for _ in range(3):
            try:
                db.poll(limit=limit)
            except SourceError:
                torn.clear()
        db.poll()
        assert sorted(db.table("t").rows()) == [(n,) for n in range(5)]


@pytest.mark.parametrize("limit", [-1, "x"])
def test_what_is_no_limit(limit: Any) -> None:
    with ev.connect() as db, pytest.raises(EverviewError, match=r"no limit|limit is"):
        db.poll(limit=limit)


# -- lines


@pytest.mark.parametrize("line", ['{"op": [1], "id": 1}', '{"op": {}, "id": 1}', "[" * 100_000])
def test_lines_that_are_not_right(line: str) -> None:
    with ev.connect() as db:
        db.attach("t", Lines(io.StringIO(line + "\n"), COLUMNS, "id"))
        with pytest.raises(BadRows, match="line 1"):
            db.poll()


def test_lines_of_other_bytes_are_named_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 1}\n{"id": 2, "name": "\xe9"}\n')
    with ev.connect() as db:
        db.attach("t", Lines(path, COLUMNS))
        with pytest.raises(BadRows, match="line 2"):
            db.poll()
        db.poll(limit=1)
        with pytest.raises(BadRows, match="line 2"):
            db.poll()
        path.write_bytes(b'{"id": 1}\n{"id": 2, "name": "e"}\n')
        db.poll()
        assert sorted(db.table("t").rows()) == [(1, None), (2, "e")]


def test_a_file_of_lines_that_has_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    with ev.connect() as db:
        db.attach("t", Lines(path, COLUMNS))
        db.poll()
        path.write_text('{"id": 3}\n')
        with pytest.raises(LostPosition, match="shorter"):
            db.poll()


# -- files


@pytest.mark.parametrize("columns", [None, COLUMNS])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", b""),
        ("a.csv", b"id,name\n1,a\n2\n"),
        ("a.parquet", b"none"),
        ("a.jsonl", b'{"id": 1}\nno\n'),
        ("a.jsonl", b'{"id": 1}\n{"id": [2]}\n'),
        ("a.jsonl", b'{"id": 1, "name": "\xe9"}\n'),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: bytes, columns: str | None) -> None:
    (tmp_path / name).write_bytes(text)
    with ev.connect() as db, pytest.raises(EverviewError) as raised:
        db.attach("t", Files(tmp_path, columns))
    assert raised.value.hint


@pytest.mark.parametrize("text", ["1,a\n2,b\n", "id,name,more\n1,a,b\n", "id,id\n1,2\n"])
def test_a_file_of_other_columns_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with ev.connect() as db:
        with pytest.raises(BadRows, match=r"a\.csv"):
            db.attach("t", Files(tmp_path, COLUMNS))
        assert db.tables() == []


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,name\n1,a\n")
    with ev.connect() as db:
        db.attach("t", Files([path, tmp_path, path], COLUMNS))
        assert db.table("t").rows() == [(1, "a")]


def test_a_file_that_goes_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n")
    with ev.connect() as db:
        source = Files(tmp_path, COLUMNS)
        db.attach("t", source)
        gone = [tmp_path / "b.csv"]
        with monkeypatch.context() as patched:
            patched.setattr(source, "_files", lambda: gone)
            with pytest.raises(SourceError, match=r"b\.csv"):
                db.poll()
        db.poll()
        assert db.table("t").rows() == [(1, "a")]


def test_a_mode_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="mode is 'merge', not 'insert', 'upsert' or 'replace'"):
        Files(tmp_path, COLUMNS, "id", mode="merge")  # pyright: ignore[reportArgumentType]


# -- positions


KINDS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda _: Memory("id BIGINT, n BIGINT", "id", [(1, 1)]),
    "iterator": lambda _: Items(lambda start: iter([(1, 1)][start:]), "id BIGINT, n BIGINT", "id"),
    "lines": lambda _: Lines(io.StringIO('{"id": 1}\n'), "id BIGINT, n BIGINT", "id"),
    "files": lambda path: Files(path / "files", "id BIGINT, n BIGINT", "id"),
    "sqlite": lambda path: SQLite(path / "a.db", "t"),
}


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_a_position_of_another_kind_of_source(before: str, after: str, tmp_path: Path) -> None:
    if before == after:
        return
    made(tmp_path / "a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 1)").close()
    (tmp_path / "files").mkdir()
    for n in (1, 2):
        (tmp_path / f"files/{n}.csv").write_text(f"id\n{n}\n")
    with ev.connect() as db:
        db.attach("t", KINDS[before](tmp_path))
        db.poll()
        db.detach("t")
        other = KINDS[after](tmp_path)
        with pytest.raises(LostPosition):
            db.attach("t", other)
        other.close()


# -- the end


def test_all_sources_are_closed_whatever_one_says(tmp_path: Path) -> None:
    class Stubborn(Memory):
        def close(self) -> None:
            raise OSError("no")

    made(tmp_path / "a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)").close()
    db = ev.connect(tmp_path / "state")
    db.attach("a", Stubborn("id BIGINT", "id"))
    table = SQLite(tmp_path / "a.db", "t")
    db.attach("t", table)
    with pytest.raises(OSError, match="no"):
        db.close()
    with pytest.raises(sqlite3.ProgrammingError):
        table.link.session.connection.execute("SELECT 1")
    ev.connect(tmp_path / "state").close()


def test_after_the_end_nothing_is_polled() -> None:
    db = ev.connect()
    db.attach("t", Memory(COLUMNS, "id"))
    db.close()
    with pytest.raises(StoreError, match="closed"):
        db.poll()


def test_what_another_thread_writes_is_not_undone_with_a_turn() -> None:
    source = Memory("id BIGINT", "id")
    source.begin()
    source.write(Update({(1,): 1}))
    began = Event()

    def write() -> None:
        began.set()
        source.write(Update({(2,): 1}))

    other = Thread(target=write)
    other.start()
    began.wait()
    other.join(0.05)
    assert other.is_alive()
    source.rollback()
    other.join()
    source.begin()
    assert dict(source.changes()) == {(2,): 1}
    source.commit()
