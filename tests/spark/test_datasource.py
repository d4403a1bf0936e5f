"""`spark.read.format("everview")`: views of a stored state as frames, and as streams of their changes."""

from __future__ import annotations

import datetime as dt
import pickle
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from everview.circuit import Circuit
from everview.errors import EverviewError, SchemaError, StoreError, UnknownName
from everview.runtimes.embedded import Embedded
from everview.traces.store import Store
from pyspark_everview import DefaultSource, ShardPartition
from runtimes.spark.test_stored import PLAN, embedded, made, meanings, minus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SHARDS = 3
EVERYTHING = (
    "flag BOOLEAN, tiny TINYINT NOT NULL, small SMALLINT, i INTEGER, big BIGINT, f FLOAT, d DOUBLE NOT NULL,"
    " day DATE, at TIMESTAMP, amount DECIMAL(12,2) NOT NULL, wide DECIMAL(38,4), text STRING NOT NULL, raw BINARY,"
    " name SYMBOL, id ID, many ARRAY<DECIMAL(5,1)>, pair STRUCT<a BIGINT NOT NULL, b ARRAY<STRING>>"
)
FULL = (
    *(True, -1, 2, 3, 2**62, 1.5, 2.5, dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)),
    *(Decimal("9.50"), Decimal("12345678901234567890.1234"), "é", b"\0\xff", "sym", "id"),
    *([Decimal("1.5"), None], {"a": 1, "b": ["x", None]}),
)

Rows = Counter[tuple[Any, ...]]


def everything() -> Circuit:
    built = Circuit()
    built.source("rows", EVERYTHING).sink("rows")
    return built


def changes(seed: int) -> list[tuple[tuple[Any, ...], int]]:
    chance = random.Random(seed)
    names, tags = [None, "Ada", "Bob", "Çelik"], [None, (), ("x", None)]
    return [((chance.choice(names), chance.randrange(3), chance.choice(tags)), 1) for _ in range(chance.randrange(9))]


class Written:
    """A state in the making, and what its rows were at every epoch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: Embedded = embedded(path, SHARDS)
        self.history: dict[int, Rows] = {0: Counter()}

    def tick(self, rows: list[tuple[tuple[Any, ...], int]]) -> None:
        self.run.tick({"rows": rows})
        now = Counter(self.history[self.run.epoch - 1])
        for row, weight in rows:
            now[row] += weight
        self.history[self.run.epoch] = now

    def views(self, epoch: int) -> dict[str, Rows]:
        return meanings(self.history[epoch])


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Written]:
    written = Written(tmp_path / "s")
    yield written
    written.run.close()


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Ten epochs, of which the first are vacuumed, with merges in between."""
    written = Written(tmp_path_factory.mktemp("past") / "s")
    for epoch in range(1, 11):
        gone = [(row, -1) for row in list(written.history[epoch - 1])[:2] if written.history[epoch - 1][row] > 0]
        written.tick([*changes(epoch), *gone])
        if epoch % 3 == 0:
            written.run.vacuum(4)
    written.run.close()
    return written


def read(spark: SparkSession, path: object, **options: object) -> DataFrame:
    return spark.read.format("everview").options(**options).load(str(path))  # pyright: ignore


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, list) else value


def counted(frame: DataFrame) -> Rows:
    """The rows of a frame, as often as they are there."""
    return Counter(tuple(map(plain, row)) for row in frame.collect())


def weighted(frame: DataFrame) -> Rows:
    """The rows of a frame by the column ``_weight``."""
    found: Rows = Counter()
    assert frame.columns[-1] == "_weight"
    for *row, weight in (map(plain, row) for row in frame.collect()):
        assert tuple(row) not in found
        found[tuple(row)] = weight
    return found


# -- frames


def test_contents_at_every_kept_epoch(spark: SparkSession, past: Written) -> None:
    kept = Store.history(past.path)
    assert 0 not in kept
    for epoch in (kept[0], kept[-2]):
        for name, expected in past.views(epoch).items():
            assert counted(read(spark, past.path, view=name, epoch=epoch)) == expected
    assert counted(read(spark, f"file://{past.path}", view="rows")) == past.views(kept[-1])["rows"]
    assert weighted(read(spark, past.path, view="rows", weights=True)) == past.views(kept[-1])["rows"]


def test_changes_between_epochs(spark: SparkSession, past: Written) -> None:
    kept = Store.history(past.path)
    for since, until in ((kept[0], kept[-1]), (kept[1], kept[3]), (kept[2], kept[2]), (0, kept[1])):
        now, then = past.views(until), past.views(since)
        for name in now:
            found = weighted(read(spark, past.path, view=name, since=since, until=until))
            assert found == minus(now[name], then[name])
    assert weighted(read(spark, past.path, view="rows", since=kept[1])) == minus(
        past.views(kept[-1])["rows"], past.views(kept[1])["rows"]
    )


def test_changes_epoch_by_epoch(spark: SparkSession, past: Written) -> None:
    kept = Store.history(past.path)
    frame = read(spark, past.path, view="by name", since=kept[0], until=kept[-2], epochs=True)
    assert frame.columns[-2:] == ["_weight", "_epoch"]
    for earlier, epoch in pairwise(kept[:-1]):
        change = minus(past.views(epoch)["by name"], past.views(earlier)["by name"])
        assert weighted(frame.where(frame["_epoch"] == epoch).drop("_epoch")) == change
    assert not read(spark, past.path, view="rows", since=kept[-1], epochs=True).collect()


def test_columns_have_their_types(spark: SparkSession, tmp_path: Path) -> None:
    with embedded(tmp_path / "s", SHARDS, everything()) as run:
        required = tuple(value if "NOT NULL" in of else None for value, of in zip(FULL, columns(), strict=True))
        run.tick({"rows": [(FULL, 2), (required, 1)]})
        expected = run.view("rows").to_arrow()
    frame = read(spark, tmp_path / "s")
    nullable = {field.name: field.nullable for field in frame.schema}
    assert [name for name, null in nullable.items() if not null] == ["tiny", "d", "amount", "text"]
    pair = frame.schema["pair"].dataType
    assert pair.simpleString() == "struct<a:bigint,b:array<string>>"
    assert frame.schema["at"].dataType.typeName() == "timestamp"
    found = frame.toArrow()
    texts = [None if raw is None else raw.decode() for raw in expected.column("id").to_pylist()]
    at = expected.schema.get_field_index("id")
    expected = expected.set_column(at, "id", pa.array(texts))
    assert key(found) == key(expected)


def columns() -> list[str]:
    """The columns of `EVERYTHING`, as text."""
    from everview.types import Schema

    return [str(field) for field in Schema.parse(EVERYTHING)]


def key(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def test_a_frame_stays_at_its_epoch(spark: SparkSession, state: Written) -> None:
    state.tick([(("Ada", 1, None), 1)])
    frame = read(spark, state.path, view="rows")
    assert counted(frame) == state.views(1)["rows"]
    state.tick([(("Bob", 1, None), 1)])
    assert counted(frame.union(frame)) == Counter({("Ada", 1, None): 2})
    assert counted(read(spark, state.path, view="rows")) == state.views(2)["rows"]


def test_many_partitions_and_batches(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large shards have a partition each, and a row of a large weight is not laid out at once."""
    rows = 300_000
    with Store.create(tmp_path / "s", PLAN) as store:
        meta = {"views": {"v": {"trace": "t", "schema": "n BIGINT NOT NULL"}}, "shards": SHARDS}
        parts = [np.stack([np.arange(rows) * SHARDS + shard, np.ones(rows, int)], 1) for shard in range(SHARDS)]
        parts[0][5, 1] = 200_000
        store.commit(1, [("t", shard, np.ascontiguousarray(part)) for shard, part in enumerate(parts)], meta=meta)
    frame = read(spark, tmp_path / "s")
    assert frame.rdd.getNumPartitions() == SHARDS
    assert frame.count() == SHARDS * rows + 199_999
    assert frame.where("n = 15").count() == 200_000


def test_small_shards_share_a_partition(past: Written) -> None:
    reader = DefaultSource({"path": str(past.path), "view": "rows"})
    parts = reader.reader(reader.schema()).partitions()
    assert parts == [ShardPartition((0, 1, 2))]
    assert pickle.loads(pickle.dumps(parts)) == parts


# -- streams


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Callable[..., StreamingQuery]:
    """Start a stream of the changes of a view into parquet files."""

    def start(path: Path, **options: Any) -> StreamingQuery:
        once = options.pop("once", True)
        frame = spark.readStream.format("everview").options(epochs=True, **options).load(str(path))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start(str(tmp_path / "out"))

    return start


def written(spark: SparkSession, tmp_path: Path) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for *row, weight, epoch in spark.read.parquet(str(tmp_path / "out")).collect():
        found.setdefault(epoch, Counter())[tuple(map(plain, row))] += weight
    return found


def test_a_stream_goes_on_where_it_ended(
    spark: SparkSession, tmp_path: Path, state: Written, sink: Callable[..., StreamingQuery]
) -> None:
    for epoch in (1, 2):
        state.tick([*changes(epoch + 20), (("Ada", 7, None), 1)])
    sink(state.path, view="by name").awaitTermination()
    for epoch in (3, 4):
        state.tick([*changes(epoch + 20), (("Ada", 7, None), 1)])
    sink(state.path, view="by name").awaitTermination()
    found = written(spark, tmp_path)
    assert found == {
        epoch: minus(state.views(epoch)["by name"], state.views(epoch - 1)["by name"]) for epoch in range(1, 5)
    }


def test_a_running_stream_loses_nothing_to_vacuums(
    spark: SparkSession, tmp_path: Path, state: Written, sink: Callable[..., StreamingQuery]
) -> None:
    """Epochs that are vacuumed before they were read come with the next; the sum is the same."""
    state.tick([(("Ada", 1, None), 1)])
    query = sink(state.path, view="rows", once=False)
    try:
        query.processAllAvailable()
        for epoch in range(2, 7):
            state.tick([(("Ada", 1, None), -1 if epoch % 2 == 0 else 1), (("Bob", epoch, ("x",)), 1)])
            state.run.vacuum(1)
        query.processAllAvailable()
    finally:
        query.stop()
    total: Rows = Counter()
    for change in written(spark, tmp_path).values():
        total.update(change)
    assert minus(total, Counter()) == state.views(6)["rows"]


def test_a_stream_that_a_vacuum_has_left_behind(state: Written, sink: Callable[..., StreamingQuery]) -> None:
    state.tick([(("Ada", 1, None), 1)])
    sink(state.path, view="rows").awaitTermination()
    deadline = time.monotonic() + 60
    while 1 in Store.history(state.path):  # the query's process holds on to it until Spark has ended it
        assert time.monotonic() < deadline
        state.tick([(("Bob", 2, None), 1)])
        state.run.vacuum(1)
        time.sleep(0.1)
    with pytest.raises(StreamingQueryException, match=r"epoch 1 is not in .*\n.*it has epochs"):
        sink(state.path, view="rows").awaitTermination()


def test_a_stream_is_one_of_changes(spark: SparkSession, past: Written, tmp_path: Path) -> None:
    stream = spark.readStream.format("everview").options(view="rows").load(str(past.path))
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException, match="stream of its changes"):
        query.awaitTermination()


# -- mistakes


def source(path: object, **options: object) -> DefaultSource:
    return DefaultSource({"path": str(path), **{name: str(value) for name, value in options.items()}})


def test_mistakes_reach_the_user(spark: SparkSession, past: Written) -> None:
    with pytest.raises(AnalysisException, match=r"the state has 2 views\n.*rows, by name"):
        read(spark, past.path)
    with pytest.raises(AnalysisException, match='did you mean "rows"'):
        read(spark, past.path, view="rosw")
    with pytest.raises(PySparkException, match="leave out the schema"):
        spark.read.format("everview").schema("a INT").options(view="rows").load(str(past.path)).collect()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, EverviewError, "2 views"),
        ({"view": "row"}, UnknownName, "did you mean"),
        ({"viev": "rows"}, UnknownName, 'option "viev"'),
        ({"epoch": "1"}, StoreError, "epoch 1 is not in"),
        ({"epoch": "99"}, StoreError, "epoch 99 is not in"),
        ({"epoch": "last"}, EverviewError, "number of an epoch"),
        ({"epoch": "-1"}, EverviewError, "number of an epoch"),
        ({"weights": "yes"}, EverviewError, "true or false"),
        ({"epoch": "9", "since": "8"}, EverviewError, "two things"),
        ({"since": "10", "until": "9"}, EverviewError, "no epoch is after 10"),
        ({"since": "99"}, EverviewError, "no epoch is after 99"),
    ],
)
def test_options(past: Written, options: dict[str, str], error: type[Exception], says: str) -> None:
    view = {} if {"view", "viev"} & set(options) or not options else {"view": "rows"}
    with pytest.raises(error, match=says):
        source(past.path, **view, **options)


def test_options_are_spelled_in_any_case_and_others_have_dots(past: Written) -> None:
    found = source(past.path, VIEW="rows", Weights="TRUE", **{"serialization.format": 1})
    assert found.schema().names == ["name", "n", "tags", "_weight"]


def test_no_state_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        source(tmp_path / "none")
    with pytest.raises(StoreError, match="not a state"):
        source(tmp_path)
    with pytest.raises(EverviewError, match="no state to read"):
        DefaultSource({})
    Store.create(tmp_path / "new", PLAN).close()
    with pytest.raises(EverviewError, match="has no views"):
        source(tmp_path / "new")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("a ANY", "no type for column a"),
        ("a ARRAY<ID>", "no type for column a"),
        ("a STRUCT<b ARRAY<ANY>>", "no type for column a"),
    ],
)
def test_types_that_spark_has_not(tmp_path: Path, schema: str, says: str) -> None:
    meta = {"views": {"v": {"trace": "t", "schema": schema}}}
    with made(tmp_path / "s", [[(1, 1)]], meta), pytest.raises(SchemaError, match=says):
        source(tmp_path / "s").schema()


def test_columns_that_would_be_there_twice(tmp_path: Path) -> None:
    meta = {"views": {"v": {"trace": "t", "schema": "_weight BIGINT NOT NULL"}}}
    with made(tmp_path / "s", [[(1, 1)]], meta):
        assert source(tmp_path / "s").schema().names == ["_weight"]
        with pytest.raises(SchemaError, match="of its own"):
            source(tmp_path / "s", weights="true").schema()


def test_a_stream_has_no_end(past: Written) -> None:
    found = source(past.path, view="rows", epochs="true", until=10)
    with pytest.raises(EverviewError, match="no end"):
        found.streamReader(found.schema())
