"""Files as people have them: separators, marks, encodings, formats, compression; and rows that cannot be taken."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import everview as ev
from everview.errors import BadRows, DefinitionError, DuplicateKey, EverviewError, SourceError
from everview.sources import Files

MESSY = 'id;name;price;day;at\n1;"Zoë\nLind";1,50;31.12.2025;31.12.2025 10:30\n2;Bob;NA;01.02.2026;\n'
ROWS = [
    (1, "Zoë\nLind", Decimal("1.50"), dt.date(2025, 12, 31), dt.datetime(2025, 12, 31, 10, 30)),
    (2, "Bob", None, dt.date(2026, 2, 1), None),
]
COLUMNS = "id BIGINT, name STRING, price DECIMAL(9,2), day DATE, at TIMESTAMP"
OPTIONS: dict[str, Any] = {
    "delimiter": ";",
    "decimal": ",",
    "encoding": "latin-1",
    "nulls": ("", "NA"),
    "date_format": "%d.%m.%Y",
    "timestamp_format": "%d.%m.%Y %H:%M",
}


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


def taken(*args: Any, **options: Any) -> list[tuple[Any, ...]]:
    with ev.connect() as db:
        db.attach("t", Files(*args, **options))
        return sorted(db.table("t").rows(), key=repr)


@pytest.mark.parametrize(("name", "packed"), [("m.csv", bytes), ("m.csv.gz", gzip.compress), ("m.CSV.zst", zstd)])
def test_a_messy_file_with_the_options_that_say_how_it_is(tmp_path: Path, name: str, packed: Any) -> None:
    (tmp_path / name).write_bytes(packed(MESSY.encode("latin-1")))
    assert taken(tmp_path / name, COLUMNS, **OPTIONS) == ROWS
    inferred = Files(tmp_path, **OPTIONS).schema
    assert str(inferred) == "id BIGINT, name STRING, price DOUBLE, day DATE, at TIMESTAMP"


def test_files_without_a_header_other_quotes_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\t'x\ty'\n2\t\n", encoding="utf-8")
    assert taken(tmp_path / "a.tsv", "n BIGINT, s STRING", header=False, quote="'") == [(1, "x\ty"), (2, None)]
    assert Files(tmp_path / "a.tsv", header=False, quote="'").schema.names == ("f0", "f1")
    (tmp_path / "b.csv").write_text('n,s\n1,5" pipe\n', encoding="utf-8")
    assert taken(tmp_path / "b.csv", quote="") == [(1, '5" pipe')]


def test_patterns_and_several_formats_of_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n", encoding="utf-8")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"n": 2}\n'))
    papq.write_table(pa.table({"n": [3]}), tmp_path / "c.parquet")
    (tmp_path / "no.csv").write_text("n\n9\n", encoding="utf-8")
    assert taken([str(tmp_path / "[abc].*")], "n BIGINT") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": ";;"}, "one ASCII character"),
        ({"delimiter": '"'}, "cannot be"),
        ({"decimal": ""}, "one ASCII character"),
        ({"thousands": "."}, "cannot stand between"),
        ({"thousands": "', "}, "cannot stand between"),
        ({"encoding": "klingon"}, "not known"),
        ({"date_format": "DD.MM.YYYY"}, "no format of dates"),
        ({"mode": "merge"}, "not 'insert'"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        Files(tmp_path, "n BIGINT", **options)


def test_a_date_of_another_form_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(MESSY.encode("latin-1") + b"3;x;;2026-01-01;\n")
    with pytest.raises(BadRows, match=r'column "day", line 5: \'2026-01-01\' is not of the form %d.%m.%Y'):
        taken(tmp_path, COLUMNS, **OPTIONS)


@pytest.mark.parametrize("mark", [".", " ", "'", "\u00a0", "*"])
def test_numbers_with_thousands(tmp_path: Path, mark: str) -> None:
    text = "n;d;f;s\n1.240;-1.000.000,50;1.234,5e3;1.0\n12;7,25;,5;x\n;;nan;\n".replace(".", mark)
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    options: dict[str, Any] = {"delimiter": ";", "decimal": ",", "thousands": mark}
    rows = taken(tmp_path / "m.csv", "n INT, d DECIMAL(12,2), f DOUBLE, s STRING", **options)
    first, nothing = (1240, Decimal("-1000000.50"), 1234500.0, f"1{mark}0"), (None, None, rows[2][2], None)
    assert rows == [(12, Decimal("7.25"), 0.5, "x"), first, nothing]
    assert str(Files(tmp_path, **options).schema) == "n BIGINT, d DOUBLE, f DOUBLE, s STRING"
    (tmp_path / "m.csv").write_text(f"n\n1\n1{mark}5\n12{mark}34{mark}567\n", encoding="utf-8")
    with pytest.raises(BadRows, match=r'column "n", line 3: .* is no DECIMAL'):
        taken(tmp_path / "m.csv", "n DECIMAL(9,2)", **options)
    with ev.connect() as db:
        db.attach("t", Files(tmp_path, "n DOUBLE", rejects="bad", **options))
        assert db.table("t").rows() == [(1.0,)]
        assert sorted(line for _, line, _, _ in db.table("bad").rows()) == [3, 4]


ARRAY = '\n [ {"id": 1, "n": [1, 2]},\n\n{"id": 2}\n, {"id": 3, "n":\n[]}]\n'


def test_an_array_of_objects_is_as_good_as_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAY, encoding="utf-8")
    assert taken(tmp_path, "id BIGINT, n ARRAY<BIGINT>") == [(1, [1, 2]), (2, None), (3, [])]
    assert str(Files(tmp_path).schema) == "id BIGINT, n ARRAY<BIGINT>"
    (tmp_path / "a.json").write_text("[ ]", encoding="utf-8")
    assert taken(tmp_path, "id BIGINT") == []
    (tmp_path / "a.json").write_text('[{"id": 1},\n{"id": "x"},\n7,\n{"m": 1}]', encoding="utf-8")
    with ev.connect() as db:
        db.attach("t", Files(tmp_path, "id BIGINT", rejects="bad"))
        assert db.table("t").rows() == [(1,)]
        assert sorted((line, text) for _, line, _, text in db.table("bad").rows()) == [
            (2, "{'id': 'x'}"), (3, "7"), (4, '{"m": 1}')
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1},\n]', "line 2 is no JSON: Expecting value"),
        ('\n[{"id": 1}\n;{"id": 2}]', "line 2: the array goes on with ';'"),
        ('[{"id": 1}', "line 1: the array goes on with ''"),
        ('[{"id": 1}]\n{"id": 2}', 'behind the array stands more: {"id": 2}'),
        ('[{"id": 1},\n\n{"id": "x"}]', r"line 3.*'x' is no BIGINT|'x'.*line 3"),
    ],
)
def test_a_broken_array_is_told_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadRows, match=said):
        taken(tmp_path, "id BIGINT")


# -- rows that cannot be taken


def test_bad_rows_go_to_a_table_and_block_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,5\n", encoding="utf-8")
    db = ev.connect()
    db.attach("t", Files(tmp_path, "id BIGINT, n BIGINT", "id", rejects="bad"))
    assert db.table("bad").rows() == []
    bad = '\n"2\n",6\n3,many\n4\n1,7\n,8\n5,9\n'
    (tmp_path / "b.csv").write_text(f"id,n{bad}", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('{"id": 6}\nnope\n{"id": "x"}\n{"id": 7, "m": 1}\n', encoding="utf-8")
    papq.write_table(pa.table({"id": [8, 9], "n": ["x", "1"]}), tmp_path / "d.parquet")
    (tmp_path / "e.csv").write_text("id,other\n1,1\n", encoding="utf-8")
    (tmp_path / "f.csv").write_bytes(b"id,n\n\xff,1\n")
    (tmp_path / "g.txt").write_text("what", encoding="utf-8")
    db.poll()
    assert sorted(db.table("t").rows()) == [(1, 5), (2, 6), (5, 9), (6, None)]
    refused = {(Path(file).name, line): reason for file, line, reason, _ in db.table("bad").rows()}
    for place, said in {
        ("b.csv", 4): 'column "n"',
        ("b.csv", 5): "1 value, not 2",
        ("b.csv", 6): "two rows with id = 1",
        ("b.csv", 7): "NULL",
        ("c.jsonl", 2): "no JSON",
        ("c.jsonl", 3): "'x' is no BIGINT",
        ("c.jsonl", 4): 'unknown column "m"',
        ("d.parquet", 1): "'x' is no BIGINT",
        ("d.parquet", 2): "'1' is no BIGINT",
        ("e.csv", None): 'column "other" does not exist',
        ("f.csv", None): "line 2 is no UTF-8",
        ("g.txt", None): "does not say what is in it",
    }.items():
        assert said in refused.pop(place), place
    assert not refused
    (tmp_path / "a.csv").write_text("id,n\n1,6\n", encoding="utf-8")  # which would be an error without such a table
    db.poll()
    db.poll()
    assert [reason for *_, reason, _ in db.table("bad").rows() if "changed" in reason] == [
        "it has changed since it was read"
    ]
    db.sql("DELETE FROM bad WHERE line IS NULL")
    assert db.verify()


def test_one_bad_row_among_many_is_found(tmp_path: Path) -> None:
    lines = [f"{n},{n}" for n in range(20_000)]
    lines[12_345] = "12345,x"
    (tmp_path / "a.csv").write_text("id,n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    db = ev.connect()
    db.attach("t", Files(tmp_path, "id BIGINT, n BIGINT", rejects="bad"))
    assert len(db.table("t")) == 19_999
    assert [(line, text) for _, line, _, text in db.table("bad").rows()] == [(12_347, "12345,x")]


def test_a_table_for_bad_rows_survives_and_is_checked(tmp_path: Path) -> None:
    home, state = tmp_path / "in", tmp_path / "s"
    home.mkdir()
    (home / "a.csv").write_text("n\nx\n", encoding="utf-8")
    with ev.connect(state) as db:
        db.attach("t", Files(home, "n BIGINT", rejects="bad"))
        assert len(db.table("bad")) == 1
    with ev.connect(state) as db:
        db.attach("t", Files(home, "n BIGINT", rejects="bad"))
        db.poll()
        assert len(db.table("bad")) == 1
        with pytest.raises(DefinitionError, match="not one for rows that cannot be taken"):
            db.attach("u", Files(home, "n BIGINT", rejects="t"))
        assert db.tables() == ["t", "bad"]


def test_replace_makes_the_table_the_last_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\n1,a\n2,b\n", encoding="utf-8")
    db = ev.connect()
    db.attach("t", Files(tmp_path, key="k", mode="replace"))
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    (tmp_path / "a.csv").write_text("k,v\n2,b\n3,c\n", encoding="utf-8")
    assert sorted(db.poll()["v"]) == [((1, "a"), -1), ((3, "c"), 1)]
    (tmp_path / "b.csv").write_text("k,v\n9,z\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("k,v\n3,c\n", encoding="utf-8")
    assert sorted(db.poll()["v"]) == [((2, "b"), -1)]
    assert db.poll() == {}


# -- in SQL


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ev.Database:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_bytes(MESSY.encode("latin-1"))
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name STRING, price DECIMAL(9,2), note STRING DEFAULT 'none')")
    return db


SQL_OPTIONS = "delimiter => ';', decimal => ',', encoding => 'latin-1', nulls => array('', 'NA')"


def test_files_are_read_in_queries(db: ev.Database) -> None:
    assert db.sql(f"SELECT name, price * 2 FROM read_csv(?, {SQL_OPTIONS}) r WHERE r.id = 1", ["m.csv"]) == [
        ("Zoë\nLind", 3.0)
    ]
    db.sql(f"CREATE TABLE made AS SELECT id, day FROM read_csv('m.csv', {SQL_OPTIONS}, dateformat => '%d.%m.%Y')")
    assert sorted(db.table("made").rows()) == [(1, dt.date(2025, 12, 31)), (2, dt.date(2026, 2, 1))]
    db.sql(f"INSERT INTO t (id, name) SELECT id, name FROM read_csv('m.csv', {SQL_OPTIONS})")
    assert db.table("t").get(2) == (2, "Bob", None, "none")
    merged = "MERGE INTO t USING (SELECT * FROM read_json('j.jsonl')) j ON t.id = j.id WHEN MATCHED THEN DELETE"
    Path("j.jsonl").write_text('{"id": 1}\n{"id": 5}\n', encoding="utf-8")
    assert db.sql(merged) == 1
    assert db.sql("SELECT count(*) FROM read_json(['j.jsonl', 'j.jsonl'])", dialect="duckdb") == [(4,)]
    assert db.sql("SELECT id FROM read_csv('m.csv', delim=';', encoding='latin-1') WHERE id > 1", dialect="duckdb") == [
        (2,)
    ]
    assert not db._core.files  # nothing of them is held


@pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.csv.gz", "o.csv.zst", "o.jsonl", "o.jsonl.gz", "o.parquet"])
def test_what_copy_writes_it_reads(db: ev.Database, name: str) -> None:
    rows = [(1, 'a "quoted"\nline', Decimal("1.50"), ""), (2, None, None, "ä")]
    db.apply({"t": [(row, 1) for row in rows]})
    assert db.sql(f"COPY t TO '{name}'") == 2
    db.sql("CREATE TABLE u (id BIGINT, name STRING, price DECIMAL(9,2), note STRING)")
    assert db.sql(f"COPY u FROM '{name}'") == 2
    assert sorted(db.table("u").rows()) == rows
    assert sorted(Path().iterdir()) == [Path("m.csv"), Path(name)]


def test_copy_takes_options_columns_and_modes(db: ev.Database) -> None:
    db.sql("INSERT INTO t (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    assert db.sql("COPY (SELECT id, name FROM t ORDER BY id DESC) TO 'o.csv' (DELIMITER '|', HEADER false)") == 3
    assert Path("o.csv").read_text(encoding="utf-8").split() == ['3|"c"', '2|"b"', '1|"a"']
    with pytest.raises(DuplicateKey, match=r"o.csv, line 3: table t would hold two rows with id = 1"):
        db.sql("COPY t (id, name) FROM 'o.csv' (DELIMITER '|', HEADER false)")
    Path("o.csv").write_text("2|B\n4|d\n5\n", encoding="utf-8")
    copy = "COPY t (id, name) FROM 'o.csv' (FORMAT csv, DELIMITER '|', HEADER false, REJECTS bad"
    assert db.sql(f"{copy})") == 1
    assert sorted((line, reason) for _, line, reason, _ in db.table("bad").rows()) == [
        (1, "table t would hold two rows with id = 2"),
        (3, "it has 1 value, not 2"),
    ]
    assert db.sql(f"{copy}, MODE upsert)") == 2
    assert db.table("t").get(2) == (2, "B", None, "none")
    assert db.sql(f"{copy}, MODE replace)") == 2
    assert sorted(row[0] for row in db.table("t")) == [2, 4]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM read_csv('none.csv')", "there is no file none.csv"),
        ("SELECT * FROM read_csv('m.csv', dec => ',')", 'option "dec" does not exist'),
        ("SELECT * FROM read_csv()", "read_csv of what"),
        ("SELECT * FROM read_csv(7)", "which are texts"),
        ("SELECT * FROM read_parquet('m.csv', header => true)", "parquet has no option header"),
        ("SELECT * FROM read_csv('m.csv', header => 1)", "the option header is 1"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM read_csv('m.csv')",
            r"read_csv in a view[\s\S]*CREATE TABLE t AS",
        ),
        ("CREATE VIEW v AS SELECT * FROM t WHERE id IN (SELECT id FROM read_json('j'))", "read_json in a view"),
        ("COPY t FROM 'm.csv' (ENCODING 'latin-1')", 'column "id;name;price;day;at" does not exist'),
        ("COPY t TO 'o.csv' (DECIMAL ',')", "option of COPY TO csv"),
        ("COPY t TO 'o.what'", "does not say what is in it"),
        ("COPY t TO 'no/such/o.csv'", "cannot be written"),
        ("COPY nothing FROM 'm.csv'", 'table "nothing" does not exist'),
        ("COPY t FROM 'm.csv' (MODE merge)", "no mode"),
        ("COPY (SELECT array(1) AS a) TO 'o.csv'", "nested"),
    ],
)
def test_statements_about_files_that_cannot_be(db: ev.Database, statement: str, said: str) -> None:
    before = db.epoch
    with pytest.raises(EverviewError, match=said):
        db.sql(statement)
    assert (db.epoch, db.tables(), db.views(), sorted(Path().iterdir())) == (before, ["t"], [], [Path("m.csv")])


def test_a_function_that_reads_files_makes_no_view(db: ev.Database) -> None:
    db.sql(f"CREATE FUNCTION latest() RETURNS TABLE RETURN SELECT id FROM read_csv('m.csv', {SQL_OPTIONS})")
    with pytest.raises(DefinitionError, match="reads files"):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM latest()")
