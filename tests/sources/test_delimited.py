"""CSV as people have it: texts that look like NULL, line breaks in quotes, long rows; and mistakes by line."""

import math
from pathlib import Path

import pytest

import everview as ev
from everview.errors import BadRows, DuplicateKey, SourceError, UnknownName
from everview.sources import Files

COLUMNS = "code STRING, name STRING, n BIGINT, x DOUBLE"


def read(path: Path, text: str, columns: str = COLUMNS, **options: object) -> list[tuple[object, ...]]:
    path.write_text(text, encoding="utf-8")
    with ev.connect() as db:
        db.attach("t", Files(path, columns, **options))  # pyright: ignore[reportArgumentType]
        return sorted(db.table("t").rows(), key=repr)


@pytest.mark.parametrize("text", ["NA", "N/A", "null", "NULL", "nan", "#N/A", "n/a", "None", "-"])
def test_only_empty_text_is_null(tmp_path: Path, text: str) -> None:
    found = read(tmp_path / "t.csv", f'code,name,n,x\n{text},Namibia,1,\n,"",,nan\n')
    assert (text, "Namibia", 1, None) in found
    (other,) = (row for row in found if row[0] is None)
    assert other[1:3] == ("", None)
    assert math.isnan(other[3])  # pyright: ignore[reportArgumentType]


def test_texts_that_stand_for_null_are_named(tmp_path: Path) -> None:
    text = 'code,name,n,x\nNA,"NA",NA,-\n'
    assert read(tmp_path / "t.csv", text, nulls=("NA", "-")) == [(None, "NA", None, None)]
    with pytest.raises(BadRows, match=r'line 2, column "n": \'NA\' is no BIGINT[\s\S]*nulls='):
        read(tmp_path / "t.csv", text)
    with pytest.raises(SourceError, match="not a list"):
        Files(tmp_path, COLUMNS, nulls="NA")


@pytest.mark.parametrize("rows", [1, 1_000, 60_000])
def test_line_breaks_in_quotes_at_every_size(tmp_path: Path, rows: int) -> None:
    lines = "".join(f'c{i},"first\nsecond, ""{i}""\r\nthird",{i},\n' for i in range(rows))
    found = read(tmp_path / "t.csv", f"code,name,n,x\n{lines}")
    assert len(found) == rows
    assert ("c0", 'first\nsecond, "0"\r\nthird', 0, None) in found


def test_a_row_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = "long\n" * 4_000_000
    found = read(tmp_path / "t.csv", f'code,name,n,x\na,"{long}",1,\nb,short,2,\n')
    assert [(row[0], row[1] == long) for row in found] == [("a", True), ("b", False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('code,name,n,x\n"a\nb",c,1,\n\nd,e,what,\n', "line 5, column \"n\": 'what' is no BIGINT"),
        ("code,name,n,x\na,b,1,\nc,d\n", "line 3 has 2 values, not 4: c,d"),
        ("code,name,n,x\na,b,99999999999999999999,\n", 'line 2, column "n"'),
        ("", "it is empty"),
    ],
)
def test_a_mistake_is_named_by_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadRows) as raised:
        read(tmp_path / "t.csv", text)
    assert f"t.csv: {message}" in str(raised.value)
    assert raised.value.hint


def test_bytes_that_are_no_text_are_named_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"code,name,n,x\na,b,1,\nc,caf\xe9,2,\n")
    with ev.connect() as db, pytest.raises(BadRows, match="line 3 is no UTF-8"):
        db.attach("t", Files(tmp_path / "t.csv", COLUMNS))


def test_text_of_another_encoding_is_never_taken_for_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,name\n1,Ada\n2,José\n".encode("latin-1"))
    db = ev.connect()
    with pytest.raises(BadRows, match=r"line 3 is no UTF-8(.|\n)*name its encoding"):
        db.sql(f"SELECT * FROM read_csv('{tmp_path}/a.csv')")
    told = db.sql(f"SELECT name FROM read_csv('{tmp_path}/a.csv', encoding => 'latin-1')")
    assert sorted(told) == [("Ada",), ("José",)]
    for name in ("'a.csv'", "a.csv"):
        with pytest.raises(UnknownName, match=r"read_csv\('a.csv'\) reads a file"):
            db.sql(f"SELECT * FROM {name}")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("t.csv", 'id,at\n"1",2026-01-01\n\n2,soon\n', "line 4"),
        ("t.jsonl", '{"id": 1, "at": "2026-01-01"}\n\n{"id": 2, "at": "soon"}\n', "line 3"),
    ],
)
def test_values_that_the_table_reads_are_named_by_their_line(tmp_path: Path, name: str, text: str, place: str) -> None:
    with pytest.raises(BadRows, match=rf"{name}: column \"at\", {place}: 'soon' is no TIMESTAMP"):
        read(tmp_path / name, text, "id BIGINT, at TIMESTAMP")


def test_an_unknown_column_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadRows, match=r'line 3 has the unknown column "b"'):
        read(tmp_path / "t.jsonl", '{"a": 1}\n\n{"b": 2}\n', "a BIGINT")


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("t.csv", 'id,name\n1,a\n2,"b\nc"\n1,d\n', "line 2 and line 5"),
        ("t.jsonl", '{"id": 1}\n{"id": 2}\n\n{"id": 1}\n', "line 1 and line 4"),
    ],
)
def test_a_key_that_is_there_twice_is_named_by_its_lines(tmp_path: Path, name: str, text: str, places: str) -> None:
    with pytest.raises(DuplicateKey, match=rf"{name}, {places}: table t would hold two rows with id = 1") as raised:
        read(tmp_path / name, text, "id BIGINT, name STRING", key="id")
    assert 'mode="upsert"' in (raised.value.hint or "")
    assert len(read(tmp_path / name, text, "id BIGINT, name STRING", key="id", mode="upsert")) == 2


def test_a_key_of_an_earlier_file_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("at,n\n2026-01-01 12:00:00,1\n")
    (tmp_path / "2.csv").write_text("at,n\n2026-01-02 12:00:00,1\n2026-01-01 12:00:00,2\n")
    with ev.connect() as db, pytest.raises(DuplicateKey, match=r"2\.csv, line 3: "):
        db.attach("t", Files(tmp_path, "at TIMESTAMP, n BIGINT", "at"))
