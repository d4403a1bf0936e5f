"""Files as people have them: no digit and no row is lost, and what is wrong is told with its line, in plain words."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import everview as ev
from everview.errors import BadRows
from everview.sources.csv_form import CsvForm
from everview.sources.inferring import table_of_objects
from everview.sources.reading import read_file
from everview.types import Schema

LONG = "12345678901234567890123"


def read(folder: Path, name: str, content: str | bytes, **form: Any) -> Any:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_file(path, None, CsvForm(**form))
    return [str(field.type) for field in Schema.from_arrow(table.schema)], table.to_pylist()


@pytest.mark.parametrize(
    ("numbers", "type_", "values"),
    [
        ((LONG, "1"), "DECIMAL(38,0)", [Decimal(LONG), Decimal(1)]),
        (("9223372036854775808", "", "+5"), "DECIMAL(38,0)", [Decimal(2**63), None, Decimal(5)]),
        (("-" + "9" * 38,), "DECIMAL(38,0)", [Decimal("-" + "9" * 38)]),
        (("9" * 39, "1"), "STRING", ["9" * 39, "1"]),
        ((LONG, "1.5", "2."), "DECIMAL(38,1)", [Decimal(LONG), Decimal("1.5"), Decimal(2)]),
        ((LONG, "1." + "0" * 20), "STRING", [LONG, "1." + "0" * 20]),
        (("1e400", "1"), "STRING", ["1e400", "1"]),
        ((LONG, "1e3"), "STRING", [LONG, "1e3"]),
        (("1e300", "inf", "2"), "DOUBLE", [1e300, float("inf"), 2.0]),
        (("9007199254740991", "0.5"), "DOUBLE", [9007199254740991.0, 0.5]),
        (("1", "-2"), "BIGINT", [1, -2]),
    ],
)
def test_numbers_keep_their_digits(tmp_path: Path, numbers: tuple[str, ...], type_: str, values: list[Any]) -> None:
    content = "n,m\n" + "".join(f"{number},x\n" for number in numbers)
    types, rows = read(tmp_path, "n.csv", content)
    assert types[0] == type_
    assert [row["n"] for row in rows] == values


@settings(max_examples=60, deadline=None)
@given(some.lists(some.integers(-(10**38) + 1, 10**38 - 1) | some.decimals(-(10**20), 10**20, places=3), min_size=1))
def test_drawn_numbers_are_read_as_they_are_written(numbers: list[Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        types, rows = read(
            Path(folder),
            "n.csv",
            "n\n" + "".join(f"{number:f}\n" if isinstance(number, Decimal) else f"{number}\n" for number in numbers),
        )
    if types == ["DOUBLE"]:
        assert all(abs(number) < 2**53 for number in numbers)
    else:
        assert [Decimal(row["n"]) for row in rows] == [Decimal(number) for number in numbers]


def test_numbers_with_a_decimal_comma_keep_their_digits(tmp_path: Path) -> None:
    types, rows = read(tmp_path, "n.csv", f"n;m\n{LONG},25;1\n", delimiter=";", decimal=",")
    assert (types, rows) == (["DECIMAL(38,2)", "BIGINT"], [{"n": Decimal(f"{LONG}.25"), "m": 1}])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,a,b\n1,2,3\n", 'columns 1 and 2 are both called "a"'),
        ("a,,c\n1,2,3\n", "column 2 has no name"),
        ("   \n", "column 1 has no name"),
        ("", "it is empty"),
        ('a,b\n1,"x\n2,y\n', "line 2: a quote is opened and never closed"),
        ('a,b\n0,"x\ny"\n1,"x\n2,y\n', "line 4: a quote is opened and never closed"),
        ("a,b\n1," + "x" * 300_000 + "\n2\n", "line 3 has 1 value, not 2"),
        ("a\nm\xfcll\n".encode("latin-1"), "line 2 is no UTF-8"),
    ],
)
def test_what_is_wrong_with_a_csv(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(BadRows, match=said):
        read(tmp_path, "bad.csv", content)


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "\ufeffa,b\r\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path: Path, content: str) -> None:
    path = tmp_path / "head.csv"
    path.write_text(content)
    assert read_file(path, None, CsvForm()).column_names == ["a", "b"]
    assert read_file(path, Schema.parse("a INT, b STRING"), CsvForm()).num_rows == 0


def test_quotes_within_values_are_no_open_quotes(tmp_path: Path) -> None:
    assert read(tmp_path, "q.csv", 'a,b\n1,5" pipe\n2,"x\n"\n')[1] == [{"a": 1, "b": '5" pipe'}, {"a": 2, "b": "x\n"}]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (('{"a":1}', '{"a":"x"}'), 'line 2, column "a": "x" is text, and 1 in line 1 is a whole number'),
        (('{"a":true}', "", '{"a":1}'), 'line 3, column "a": 1 is a whole number, and true in line 1 is a truth value'),
        (('{"a":[1]}', '{"a":[2,"x"]}'), r'line 2, column "a\[\]": "x" is text'),
        (('{"a":{"b":1}}', '{"a":{"b":"x"}}'), r'line 2, column "a\.b": "x" is text'),
        (('{"a":{"b":1}}', '{"a":5}'), 'line 2, column "a": 5 is a whole number, and {"b": 1} in line 1 is an object'),
        (('{"a":1.5}', f'{{"a":{LONG}}}'), f'line 2, column "a": {LONG} has more digits'),
        ((f'{{"a":{"9" * 39}}}',), 'line 1, column "a": 9+ has more digits'),
        (('{"a":1e400}',), 'line 1, column "a": a number that no DOUBLE holds'),
        (('{"a":"\\ud800"}',), 'line 1, column "a": half of a character'),
        (('{"a":1}', "not json"), "line 2 is no JSON: expecting value at character 1"),
        ((f'{{"a":{"9" * 5000}}}',), "line 1 .*: a number has too many digits"),
        ((f'{{"a":{"[" * 100_000}',), "line 1 .*: it is nested too deeply"),
        (("{}",), "its objects have no columns"),
        (("",), "it has no objects"),
    ],
)
def test_what_is_wrong_with_json(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadRows, match=said):
        read(tmp_path, "bad.jsonl", "\n".join(lines))


@pytest.mark.parametrize(
    ("lines", "types", "rows"),
    [
        (('{"a":1}', '{"b":2}'), ["BIGINT", "BIGINT"], [{"a": 1, "b": None}, {"a": None, "b": 2}]),
        (('\ufeff{"a":1}\r', '{"a":2.5}\r'), ["DOUBLE"], [{"a": 1.0}, {"a": 2.5}]),
        ((f'{{"a":{LONG}}}', '{"a":null}'), ["DECIMAL(38,0)"], [{"a": Decimal(LONG)}, {"a": None}]),
        (('{"a":{"b":1}}', '{"a":{"c":[2]}}'), ["STRUCT<b: BIGINT, c: ARRAY<BIGINT>>"],
         [{"a": {"b": 1, "c": None}}, {"a": {"b": None, "c": [2]}}]),
        (('{"a":Infinity}',), ["DOUBLE"], [{"a": float("inf")}]),
    ],
)  # fmt: skip
def test_objects_that_differ(tmp_path: Path, lines: tuple[str, ...], types: list[str], rows: list[Any]) -> None:
    assert read(tmp_path, "o.jsonl", "\n".join(lines)) == (types, rows)


VALUES = some.recursive(
    some.none() | some.integers(-(2**63), 2**63 - 1) | some.booleans() | some.text('ab\n"é'),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("xyz"), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(some.lists(some.dictionaries(some.sampled_from("abc"), VALUES, max_size=3), max_size=6))
def test_drawn_objects_come_back_or_are_refused(drawn: list[dict[str, Any]]) -> None:
    try:
        table = table_of_objects([(line, json.dumps(row), row) for line, row in enumerate(drawn, 1)])
    except BadRows:
        return
    assert [_bare(row) for row in table.to_pylist()] == [_bare(row) for row in drawn]


def _bare(value: Any) -> Any:
    """A value without the fields that are NULL: there is no telling them from fields that are not there."""
    if isinstance(value, dict):
        return {name: bare for name, inner in value.items() if (bare := _bare(inner)) not in (None, {})}
    return (
        [_bare(inner) or None if isinstance(inner, dict) else _bare(inner) for inner in value]
        if isinstance(value, list)
        else value
    )


def test_damaged_files_are_told_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 broken")
    (tmp_path / "b.csv.gz").write_bytes(b"a\n1\n")
    (tmp_path / "c.jsonl").write_bytes(b'{"a": 1}\n{"a": "\xfc"}\n')
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"".join(b"%d,%d\n" % (n, n * n) for n in range(5000)))[:-4000])
    for name, said in {
        "a.parquet": "it is no Parquet file", "b.csv.gz": "it cannot be decompressed", "c.jsonl": "line 2 is no UTF-8",
        "d.csv.gz": "it cannot be decompressed",
    }.items():  # fmt: skip
        with pytest.raises(BadRows, match=said):
            read_file(tmp_path / name, None, CsvForm())


def test_long_numbers_of_a_file_are_kept_in_tables_and_views(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(f"k,n\n1,{LONG}\n2,7\n")
    with ev.connect() as db:
        db.sql(f"CREATE TABLE t AS SELECT * FROM read_csv('{tmp_path / 'n.csv'}')")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS s FROM t")
        assert db.view("v").rows() == [(Decimal(LONG) + 7,)]
        db.sql("DELETE FROM t WHERE k = 2")
        assert db.view("v").rows() == [(Decimal(LONG),)]
