"""Sources that are files: new ones are seen at every refresh, and text that is no row is set aside."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import BadRows, SourceError
from everview.spark import Pipeline, traps
from everview.spark.paths import PathFrame, hidden_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT NOT NULL, v BIGINT"


def put(folder: Path, name: str, *lines: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))


def held(p: Pipeline, view: str = "all") -> list[Any]:
    return sorted(tuple(row) for row in p.view(view).collect())


def test_files_are_followed_and_what_is_not_json_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        put(tmp_path / "in", "0.json", {"id": 1, "v": 2}, '{"id": 2, "v"', "no json")
        put(tmp_path / "log", "0.json", {"op": "c", "before": None, "after": {"k": 1}}, "{")
        p.source("t", path=tmp_path / "in", format="json", schema=COLUMNS, key="id", changes="upsert").sink("all")
        event = "op STRING, before STRUCT<k: BIGINT>, after STRUCT<k: BIGINT>"
        p.source("e", path=tmp_path / "log", format="json", schema=event, key="k", changes="cdc").sink("events")
        p.refresh()
        assert held(p) == [(1, 2)]
        assert held(p, "events") == [(1,)]
        raw = [(row.source, row.raw) for row in p.quarantined().collect()]
        assert sorted(raw) == [("e", "{"), ("t", "no json"), ("t", '{"id": 2, "v"')]
        put(tmp_path / "in", "1.json", {"id": 1, "v": 3}, {"id": 7})
        p.refresh()
        assert held(p) == [(1, 3), (7, None)]
        put(tmp_path / "in", "2.json", "{", {"v": 3})  # a row without its key is no text that cannot be read
        with pytest.raises(Exception, match=r'1 bad row, the first one .*NULL in key column "id"'):
            p.refresh()
        assert p.verify()


def test_what_is_not_xml_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    rows = (
        "<row><id>1</id><v>2</v></row>",
        "<row><id>2</id><v>two</v></row>",
        "<row><id>3</id>",
        "<row><id>4</id></row>",
    )
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        put(tmp_path / "in", "0.xml", "<rows>", *rows[:2], "</rows>")
        options = {"rowTag": "row"}
        p.source("t", path=tmp_path / "in", format="xml", schema="id BIGINT, v BIGINT", options=options).sink("all")
        p.refresh()
        put(tmp_path / "in", "1.xml", "<rows>", rows[3], rows[2])
        p.refresh()
        assert held(p) == [(1, 2), (4, None)]
        raw = [row.raw for row in p.quarantined().collect()]  # Spark gives the file in which the row is
        assert sorted(rows[1] in text for text in raw) == [False, True]
        assert p.verify()


def test_text_that_is_no_row_fails_if_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0.csv", "1,2", "3,four")
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver", bad_rows="fail") as p:
        p.source("t", path=tmp_path / "in", format="csv", schema=COLUMNS, stream=False).sink("all")
        with pytest.raises(BadRows, match="the first one 3,four: text that cannot be read"):
            p.refresh()


def test_batch_frames_see_new_files_at_every_refresh(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0.json", {"id": 1, "v": 2})
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        frame = spark.read.schema("id BIGINT, v BIGINT").json(str(tmp_path / "in"))
        p.source("t", frame.filter("v > 0"), key="id", changes="upsert").sink("all")
        p.source("s", path=tmp_path / "in", format="json", key="id", changes="snapshot").sink("now")
        p.refresh()
        put(tmp_path / "in", "1.json", {"id": 1, "v": 5}, {"id": 2, "v": 1})
        p.refresh()
        assert held(p) == held(p, "now") == [(1, 5), (2, 1)]
        (tmp_path / "in" / "0.json").unlink()
        (tmp_path / "in" / "1.json").unlink()
        put(tmp_path / "in", "2.json", {"id": 3, "v": 1})
        p.refresh()
        assert held(p) == [(1, 5), (2, 1), (3, 1)]
        assert held(p, "now") == [(3, 1)]


def test_a_frame_that_hides_text_is_told_of(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "in", "0.json", {"id": 1, "v": 2})
    where, schema = str(tmp_path / "in"), "id BIGINT, v BIGINT"
    p = Pipeline(spark, tmp_path / "state")
    with caplog.at_level(logging.WARNING, "everview.spark"):
        p.source("t", spark.read.schema(schema).json(where).filter("v > 1"))
    assert "source t: text that is not JSON comes as rows of NULLs" in caplog.text
    assert hidden_text(spark.readStream.schema(schema).csv(where)) == "CSV"
    assert hidden_text(spark.read.schema(schema).xml(where, rowTag="row")) == "XML"
    assert hidden_text(spark.read.schema(schema).option("Mode", "failfast").json(where)) is None
    assert hidden_text(spark.read.schema(f"{schema}, _corrupt_record STRING").json(where)) is None
    assert hidden_text(spark.read.schema(schema).parquet(where)) is None
    assert hidden_text(spark.range(3).toDF("id")) is None
    assert hidden_text(PathFrame(where, "json", schema).read(spark)) is None


def test_what_goes_unnoticed_is_told_once(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch frame whose new files are not read, an order that rows do not keep, deletes that are forgotten."""

    def told() -> str:
        return "\n".join(caplog.messages)  # PySpark gives other loggers' lines a form of its own

    monkeypatch.setattr(traps, "MANY_DELETES", 2)
    put(tmp_path / "in", "0.json", {"id": 1, "v": 2})
    files = spark.read.schema("id BIGINT, v BIGINT").option("mode", "FAILFAST").json(str(tmp_path / "in"))
    events = "op STRING, id BIGINT, at BIGINT, s STRUCT<lsn: BIGINT>"
    first = spark.createDataFrame([("c", n, 1, (n,)) for n in range(9)], events)
    with caplog.at_level(logging.WARNING, "everview.spark"), Pipeline(spark, tmp_path / "state", shards=2) as p:
        p.source("t", files).sink("all")
        p.source("here", spark.range(3).toDF("id")).sink("same")
        p.source("kept", first, key="id", changes="cdc", order="at", schema="id BIGINT, at BIGINT").sink("of_kept")
        assert not told()
        row = f"STRUCT<{COLUMNS.replace(' NOT NULL', '')}>"
        envelope = spark.createDataFrame([], f"op STRING, before {row}, after {row}, source STRUCT<lsn: BIGINT>")
        p.source("logged", envelope, key="id", changes="cdc", order="source.lsn").sink("of_logged")
        assert 'source logged: its rows do not keep "source.lsn"' in told()
        p.refresh()
        assert "not read again" not in told()
        put(tmp_path / "in", "1.json", {"id": 2, "v": 3})
        for _ in range(2):
            p.refresh()
        assert held(p) == [(1, 2)]
        for n in range(2):
            p.refresh(kept=spark.createDataFrame([("d", k, 2, (n,)) for k in range(n * 4, n * 4 + 4)], events))
    assert told().count("source t: its batch frame was read, and is not read again") == 1
    assert "source here" not in told()
    assert told().count("source kept: a shard remembers 2 deletes or more; of more than 1048576") == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "neither a frame nor a path"),
        ({"path": "in"}, "the format of its files is missing"),
        ({"frame": 1, "path": "in"}, "a frame and a path"),
        ({"frame": 1, "format": "json"}, "are for a path"),
    ],
)
def test_what_a_source_needs(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _: "UTC"))
    with pytest.raises(SourceError, match=why):
        Pipeline(session, tmp_path / "state").source("t", **given)


ODD = ("a b.json", "ü.json", "c%20d.json", "e#f.json", "_metadata", "_common_metadata", "_x=1")
PLAIN = ("1.json", "part-0.snappy.parquet", "_SUCCESS", ".1.json.crc", "2.json._COPYING_", "A-9_z.json", "_metadat")


@pytest.mark.parametrize("options", [{}, {"pathGlobFilter": "*.json"}, {"recursiveFileLookup": "true"}])
def test_files_are_listed_as_spark_lists_them(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    def listed(folder: str) -> set[str]:
        there = PathFrame(str(tmp_path / folder), "text", "value STRING", options)
        by_spark = spark.read.format("text").schema("value STRING").options(**options).load(str(tmp_path / folder))
        assert there.listed(spark) == sorted(by_spark.inputFiles())
        return {url.rpartition("/")[2] for url in there.listed(spark)}

    for name in PLAIN:
        put(tmp_path / "in", name, "x")
    assert {"1.json", "A-9_z.json"} <= listed("in") <= {*PLAIN}
    (tmp_path / "nothing").mkdir()
    assert listed("nothing") == set()
    for name in ODD:
        put(tmp_path / f"odd{ODD.index(name)}", "1.json", "x")
        put(tmp_path / f"odd{ODD.index(name)}", name, "x")
        listed(f"odd{ODD.index(name)}")
    put(tmp_path / "a folder", "1.json", "x")
    assert listed("a folder") == {"1.json"}
    put(tmp_path / "deep", "1.json", "x")
    put(tmp_path / "deep" / "more", "2.json", "x")
    (tmp_path / "deep" / ".hidden").mkdir()
    listed("deep")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert listed("link") == listed("in")
    assert listed("in/../in") == listed("in")
    assert listed("in/1.json") <= {"1.json"}


def test_a_plain_folder_is_listed_without_spark(tmp_path: Path) -> None:
    put(tmp_path / "in", "1.json", "x")
    assert PathFrame(str(tmp_path / "in"), "json").listed(None) == [f"file://{tmp_path}/in/1.json"]  # type: ignore[arg-type]
