"""Files, iterators and lines: each item once, in turns that count or do not, over restarts."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from rich.console import Console

import everview as ev
from everview.database import counting
from everview.errors import BadRows, DuplicateKey, LostPosition, SourceError
from everview.sources import Files, Iterator, Lines

COLUMNS = "id BIGINT, name STRING, price DECIMAL(8,2), day DATE, at TIMESTAMP, ok BOOLEAN"


def rows(db: Any, table: str = "t") -> list[Any]:
    return sorted(db.table(table).rows())


# -- files


def test_every_form_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    wanted = [
        (1, "Ada", decimal.Decimal("9.50"), dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12), True),
        (2, "a,b", None, None, None, False),
    ]
    (tmp_path / "t.csv").write_text(
        'id,name,price,day,at,ok\n1,Ada,9.50,2026-01-31,2026-01-31 12:00:00,true\n2,"a,b",,,,false\n'
    )
    text = {"id": 1, "name": "Ada", "price": "9.50", "day": "2026-01-31", "at": "2026-01-31 12:00:00", "ok": True}
    (tmp_path / "t.jsonl").write_text(
        json.dumps(text) + "\n\n" + json.dumps({"id": 2, "name": "a,b", "ok": False}) + "\n"
    )
    table = pa.Table.from_pylist([dict(zip(text, row, strict=True)) for row in wanted])
    papq.write_table(table, tmp_path / "t.parquet")
    for form in ("csv", "jsonl", "parquet"):
        with ev.connect() as db:
            db.attach("t", Files(tmp_path / f"t.{form}", COLUMNS, "id"))
            assert rows(db) == wanted


def test_a_directory_is_watched_and_every_file_read_once(tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    (folder / "1.csv").write_text("id,name\n1,a\n")
    with ev.connect(state) as db:
        db.attach("t", Files(folder, "id BIGINT, name STRING", "id"))
        assert rows(db) == [(1, "a")]
        (folder / "_half.csv").write_text("id,na")
        (folder / "2.csv.tmp").write_text("id,na")
        assert db.poll() == {}
        (folder / "2.csv").write_text("id,name\n2,b\n")
        (folder / "3.jsonl").write_text('{"id": 3}\n')
        db.poll(limit=1)
        assert rows(db) == [(1, "a"), (2, "b")]
    with ev.connect(state) as db:
        db.attach("t", Files(folder, "id BIGINT, name STRING", "id"))
        db.poll()
        assert rows(db) == [(1, "a"), (2, "b"), (3, None)]
        assert db.poll() == {}
        (folder / "1.csv").touch()
        db.poll()
        (folder / "1.csv").unlink()
        db.poll()
        assert len(rows(db)) == 3


def test_a_file_that_has_changed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id\n1\n")
    with ev.connect() as db:
        db.attach("t", Files([path]))
        path.write_text("id\n1\n2\n")
        with pytest.raises(SourceError, match="has changed since it was read"):
            db.poll()
        assert rows(db) == [(1,)]


def test_a_bad_file_is_named_and_nothing_of_the_tick_counts(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,n\n1,1\n")
    (tmp_path / "2.csv").write_text("id,n\n2,what\n")
    with ev.connect() as db:
        with pytest.raises(BadRows, match=r"2\.csv"):
            db.attach("t", Files(tmp_path, "id BIGINT, n BIGINT"))
        assert db.tables() == []
        (tmp_path / "2.csv").write_text("id,n\n2,2\n")
        db.attach("t", Files(tmp_path, "id BIGINT, n BIGINT"))
        (tmp_path / "3.jsonl").write_text('{"id": 3}\n{"id": \n')
        with pytest.raises(BadRows, match=r"3\.jsonl: line 2 is no JSON"):
            db.poll()
        (tmp_path / "3.jsonl").write_text('{"id": 3}\n')
        db.poll()
        assert rows(db) == [(1, 1), (2, 2), (3, None)]


def test_keys_of_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,n\n1,1\n")
    with ev.connect() as db:
        db.attach("t", Files(tmp_path, key="id"))
        db.attach("u", Files(tmp_path, key="id", mode="upsert"))
        (tmp_path / "2.csv").write_text("id,n\n1,2\n")
        with pytest.raises(DuplicateKey):
            db.poll("t")
        db.poll("u")
        assert (rows(db), rows(db, "u")) == ([(1, 1)], [(1, 2)])


def test_files_that_say_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="which columns"):
        Files(tmp_path)
    with pytest.raises(SourceError, match="no file or directory"):
        Files(tmp_path / "none.csv")
    (tmp_path / "t.xls").write_text("")
    with pytest.raises(SourceError, match="does not say"):
        Files(tmp_path / "t.xls")


# -- iterators


def test_items_of_all_kinds() -> None:
    items = [
        (1, "a"),
        {"id": 2, "name": "b"},
        ((3, "c"), 2),
        ((1, "a"), -1),
        [(4, "d"), (5, "e")],
        pa.table({"id": [3], "name": ["c"], "_weight": [-1]}),
    ]
    with ev.connect() as db:
        db.attach("t", Iterator(items, "id BIGINT, name STRING"))
        assert rows(db) == []
        db.poll("t", limit=2)
        assert rows(db) == [(1, "a"), (2, "b")]
        db.poll("t")
        assert rows(db) == [(2, "b"), (3, "c"), (4, "d"), (5, "e")]
        assert db.poll("t") == {}


def test_a_function_is_taken_up_after_a_restart(tmp_path: Path) -> None:
    def numbers(start: int) -> Any:
        return ((n,) for n in range(start, 10))

    with ev.connect(tmp_path / "state") as db:
        db.attach("t", Iterator(numbers, "n BIGINT"))
        db.poll(limit=4)
    with ev.connect(tmp_path / "state") as db:
        with pytest.raises(LostPosition, match="cannot be taken up"):
            db.attach("t", Iterator([(1,)], "n BIGINT"))
        db.attach("t", Iterator(numbers, "n BIGINT"))
        db.poll()
        assert rows(db) == [(n,) for n in range(10)]


def test_a_turn_that_fails_is_given_again() -> None:
    with ev.connect() as db:
        db.attach("t", Iterator([(1,), (2,), (1,), (3,)], "n BIGINT", "n"))
        for _ in range(2):
            with pytest.raises(DuplicateKey):
                db.poll()
        db.poll(limit=2)
        assert rows(db) == [(1,), (2,)]


# -- lines


def test_lines_of_a_stream() -> None:
    stream = io.StringIO(
        '{"id": 1, "n": 1}\n{"id": 2, "n": 2}\n\n{"id": 1, "n": 1, "_weight": -1}\n'
        '{"op": "upsert", "id": 2, "n": 9}\n{"op": "insert", "id": 3}\n{"op": "delete", "id": 3}\n'
    )
    with ev.connect() as db:
        db.attach("t", Lines(stream, "id BIGINT, n BIGINT", "id"))
        db.poll("t", limit=2)
        assert rows(db) == [(1, 1), (2, 2)]
        db.poll("t")
        assert rows(db) == [(2, 9)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is no JSON"),
        ("[1]", "line 2 is no object"),
        ('{"idd": 1}', 'line 2 has the unknown column "idd"'),
        ('{"id": "x"}', "line 2, \"id\": 'x' is no BIGINT"),
        ('{"n": 1}', 'line 2 has no "id"'),
        ('{"id": 1, "_weight": "x"}', "line 2 has the weight 'x'"),
        ('{"op": "what", "id": 1}', "line 2 has the op 'what'"),
        ('{"op": "delete", "n": 1}', 'line 2 does not say "id"'),
    ],
)
def test_bad_lines_are_named(line: str, said: str) -> None:
    with ev.connect() as db:
        db.attach("t", Lines(io.StringIO(f'{{"id": 7}}\n{line}\n'), "id BIGINT NOT NULL, n BIGINT", "id"))
        for _ in range(2):
            with pytest.raises(BadRows) as raised:
                db.poll()
            assert raised.value.message.startswith(said)
        assert rows(db) == []
        db.poll(limit=1)
        assert rows(db) == [(7, None)]


def test_a_file_of_lines_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"id": 1, "name": "é"}\n{"id": 2}')  # the last line is being written
    with ev.connect(tmp_path / "state") as db:
        db.attach("t", Lines(path, "id BIGINT, name STRING"))
        db.poll()
        assert rows(db) == [(1, "é")]
    with path.open("a") as file:
        file.write('\n{"id": 3}\n')
    with ev.connect(tmp_path / "state") as db:
        db.attach("t", Lines(path, "id BIGINT, name STRING"))
        db.poll()
        assert rows(db) == [(1, "é"), (2, None), (3, None)]
    path.write_text("")
    with ev.connect(tmp_path / "state") as db, pytest.raises(LostPosition, match="shorter"):
        db.attach("t", Lines(path, "id BIGINT, name STRING"))


# -- progress


def test_a_long_copy_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(counting, "PATIENCE", -1.0)
    assert counting.counted(iter(range(25_000)), "copying t", out) == list(range(25_000))
    assert isinstance(out.file, io.StringIO)
    assert "copying t: " in out.file.getvalue()
