"""Definitions that change: over a restart or at work, every view is what recomputing gives, and sinks agree with it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.circuit import Circuit
from everview.errors import DefinitionError, PipelineError, SinkError, UnknownName
from everview.runtimes.spark import turned_views
from everview.runtimes.spark.stored_change import MOST_BYTES
from everview.spark import Pipeline, delivery
from everview.traces.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = "CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS n FROM t GROUP BY g"
COUNTS = "CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT g, sum(v + 1) AS n FROM t GROUP BY g"
LARGE = "CREATE MATERIALIZED VIEW large AS SELECT g, n FROM sums WHERE n > 1"


def feed(folder: Path, number: int, **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    lines = [{"id": number * 3 + i, "g": i % 2, "v": number + i, **more} for i in range(4)]
    (folder / f"{number}.json").write_text("\n".join(map(json.dumps, lines)))


def built(spark: SparkSession, root: Path, *texts: str, schema: str = "id BIGINT, g BIGINT, v BIGINT") -> Pipeline:
    """A pipeline over a stream of files, with a sink of the view sums."""
    p = Pipeline(spark, root / "state", place="driver", shards=2)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(root / "in"))
    p.source("t", stream, key="id", changes="upsert")
    for text in texts:
        p.sql(text)
    if "sums" in p.circuit.sinks:
        p.sink("sums", path=root / "out")
    return p


def taken(spark: SparkSession, path: Path) -> dict[Any, int]:
    """The sum of the changes that a sink was given."""
    sums = Counter[Any]()
    for *row, weight, _ in spark.read.parquet(str(path)).collect():
        sums[tuple(row)] += weight
    return {row: weight for row, weight in sums.items() if weight}


def held(p: Pipeline, view: str) -> dict[Any, int]:
    return dict(Counter(tuple(row) for row in p.view(view).collect()))


def run(p: Pipeline) -> None:
    p.start(trigger={"availableNow": True}).awaitTermination()


def test_views_that_come_go_and_change_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    with built(spark, tmp_path, SUMS) as p:
        run(p)
        assert not p.plan_change()
    feed(tmp_path / "in", 1)
    with built(spark, tmp_path, SUMS, LARGE) as p:
        planned = p.plan_change()
        assert (planned.views, planned.computed, planned.rows_read) == ({"sums": "kept", "large": "new"}, 1, 2)
        assert planned.read == {"view sums": 2}
        run(p)
        assert p.epoch == 3  # the turn was one
        assert p.verify()
    with built(spark, tmp_path, COUNTS, LARGE) as p:
        assert p.plan_change().views == {"sums": "computed anew", "large": "computed anew"}
        assert "reads 9 rows: 9 of source t" in str(p.plan_change())
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "sums")
    with built(spark, tmp_path, COUNTS.replace("sums", "counts")) as p:
        assert p.plan_change().views == {"counts": "sums under another name", "large": "dropped"}
        p.sink("counts", path=tmp_path / "out")  # which goes on
        feed(tmp_path / "in", 2)
        run(p)
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "counts")
    with built(spark, tmp_path, COUNTS.replace("AS n", "AS n, max(v) AS m")) as p:
        assert not p.plan_change().refused  # the sink is new to this view
    with built(spark, tmp_path, COUNTS.replace("sums", "counts").replace("AS n", "AS n, 1 AS one")) as p:
        p.sink("counts", path=tmp_path / "out")
        with pytest.raises(DefinitionError, match="view counts has other columns now"):
            p.refresh()


def test_a_pipeline_at_work_is_redefined_between_epochs(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    p = built(spark, tmp_path, SUMS, LARGE)
    query = p.start(trigger={"processingTime": "100 milliseconds"})
    query.processAllAvailable()
    assert p.plan_change(COUNTS).views == {"sums": "computed anew", "large": "computed anew"}
    assert p.plan_change().views == {"sums": "kept", "large": "kept"}
    p.sql(COUNTS)
    assert p.verify()
    feed(tmp_path / "in", 1)
    query.processAllAvailable()
    assert p.verify()
    assert taken(spark, tmp_path / "out") == held(p, "sums")
    with pytest.raises(PipelineError, match="large reads it"):
        p.drop("sums")
    with pytest.raises(PipelineError, match="would read itself, by way of large"):
        p.sql("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT g, n FROM large")
    with pytest.raises(DefinitionError, match="view sums has other columns now"):
        p.sql(COUNTS.replace("AS n", "AS n, max(v) AS m"))
    p.sql("DROP VIEW large")
    p.rename("sums", "counts")
    p.query("t").where("v", ">", 1).materialize("chosen")
    with pytest.raises(PipelineError, match="stop"):
        p.source("u", spark.readStream.schema("k BIGINT").json(str(tmp_path / "in")))
    p.source("u", spark.createDataFrame([(0, "zero")], "g BIGINT, name STRING"), key="g", changes="upsert")
    p.sql("CREATE MATERIALIZED VIEW named AS SELECT u.name, t.v FROM t JOIN u ON t.g = u.g")
    p.refresh()
    feed(tmp_path / "in", 2)
    query.processAllAvailable()
    assert p.verify()
    assert {*p.circuit.sinks} == {"counts", "chosen", "named"}
    assert taken(spark, tmp_path / "out") == held(p, "counts")
    shown = held(p, "named")
    p.close()
    again = COUNTS.replace("sums", "counts"), "CREATE MATERIALIZED VIEW chosen AS SELECT * FROM t WHERE v > 1"
    with built(spark, tmp_path, *again) as p:  # and the program says the same when it is started again
        p.source("u", spark.createDataFrame([(0, "zero")], "g BIGINT, name STRING"), key="g", changes="upsert")
        p.sql("CREATE MATERIALIZED VIEW named AS SELECT u.name, t.v FROM t JOIN u ON t.g = u.g")
        assert not p.plan_change()
        assert held(p, "named") == shown


def test_columns_of_a_source_change_at_work(spark: SparkSession, tmp_path: Path) -> None:
    """One is added, one wider, one dropped; views in SQL are bound again, and sinks get what that changes."""

    def t(p: Pipeline, rows: list[Any], schema: str, **how: Any) -> None:
        p.source("t", spark.createDataFrame(rows, schema), key="id", changes="upsert", **how)

    narrow, wide = "id BIGINT, g INT, v BIGINT", "id BIGINT, g BIGINT, v BIGINT, name STRING"
    with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
        t(p, [(1, 1, 5), (2, 1, 7), (3, 2, 1)], narrow)
        p.sql("CREATE MATERIALIZED VIEW sums AS SELECT g + 0L AS g, sum(v) AS n FROM t GROUP BY g")
        p.sql(LARGE)
        p.sink("sums", path=tmp_path / "out")
        p.refresh()
        with pytest.raises(PipelineError, match="a source t already"):
            t(p, [], wide)
        t(p, [(1, 1, 6), (4, 2, 2)], narrow, replace=True)  # the same columns, and other rows
        assert (p.epoch, p.plan_change().views) == (1, {"sums": "kept", "large": "kept"})
        p.refresh()
        t(p, [(3, 2**40, 9, "Ada")], wide, replace=True)  # one added, one wider
        assert p.epoch == 3
        assert sorted(tuple(row) for row in p.table("t").collect()) == [
            (1, 1, 6, None), (2, 1, 7, None), (3, 2, 1, None), (4, 2, 2, None),
        ]  # fmt: skip
        p.refresh()
        p.sql("CREATE MATERIALIZED VIEW named AS SELECT name, v FROM t WHERE name IS NOT NULL")
        assert held(p, "named") == {("Ada", 9): 1}
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "sums") == {(1, 13): 1, (2, 2): 1, (2**40, 9): 1}
        before = p.epoch
        with pytest.raises(UnknownName, match='column "name" does not exist'):
            t(p, [], wide.removesuffix(", name STRING"), replace=True)  # a view reads what would be dropped
        with pytest.raises(DefinitionError, match='"g" is INTEGER, and the rows held have BIGINT'):
            t(p, [], wide.replace("g BIGINT", "g INT"), replace=True)
        p.query("t").where("v", ">", 1).materialize("chosen")
        with pytest.raises(PipelineError, match="chosen reads it, and was not written in SQL"):
            t(p, [], wide + ", more INT", replace=True)
        p.drop("chosen")
        p.drop("named")
        t(p, [], "id BIGINT, g BIGINT, v BIGINT", replace=True)  # one dropped
        assert p.epoch > before
        assert p.verify()
        p.refresh(t=spark.createDataFrame([(9, 3, 3)], "id BIGINT, g BIGINT, v BIGINT"))
        assert taken(spark, tmp_path / "out") == held(p, "sums")


def test_a_source_with_a_lateness_and_one_of_a_given_circuit_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    def clicks(*rows: tuple[int, int, Any]) -> Any:
        times = [(k, datetime(2024, 1, 1, hour, tzinfo=UTC), w) for k, hour, w in rows]
        return spark.createDataFrame(times, "k BIGINT, at TIMESTAMP, w STRING")

    with Pipeline(spark, tmp_path / "timed", place="driver", shards=2) as p:
        p.source("click", clicks((1, 1, None), (2, 5, None)).drop("w"), lateness=("at", "1 hour"))
        p.sql("CREATE MATERIALIZED VIEW n AS SELECT date_trunc('HOUR', at) AS h, count(*) AS n FROM click GROUP BY h")
        p.refresh()
        p.source("click", clicks(), replace=True)
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT k, w FROM click")
        p.refresh(click=clicks((3, 3, "late"), (4, 6, "new")))
        assert held(p, "v") == {(1, None): 1, (2, None): 1, (4, "new"): 1}
        assert p.quarantined().count() == 1
        assert p.verify()
    circuit = Circuit()
    circuit.source("t", "id BIGINT NOT NULL, v BIGINT").sink("all")
    with Pipeline(spark, tmp_path / "given", circuit=circuit, place="driver", shards=2) as p:
        for number, replaced in enumerate((False, True)):
            frame = spark.createDataFrame([(1, number), (2, number)], "id BIGINT, v BIGINT")
            p.source("t", frame, key="id", changes="snapshot", replace=replaced)
            p.refresh()
            assert held(p, "all") == {(1, number): 1, (2, number): 1}


def test_columns_of_a_stream_change_between_stop_and_start(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    with built(spark, tmp_path, SUMS) as p:
        query = p.start(trigger={"processingTime": "100 milliseconds"})
        query.processAllAvailable()
        lines = spark.readStream.schema("id BIGINT, g BIGINT, v BIGINT, w INT").json(str(tmp_path / "in"))
        with pytest.raises(PipelineError, match="stream t cannot be replaced while streams are followed"):
            p.source("t", lines, key="id", changes="upsert", replace=True)
        p.stop()
        p.source("t", lines, key="id", changes="upsert", replace=True)
        p.sql("CREATE MATERIALIZED VIEW more AS SELECT w, count(*) AS n FROM t GROUP BY w")
        feed(tmp_path / "in", 1, w=4)
        run(p)
        assert held(p, "more") == {(None, 3): 1, (4, 4): 1}
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "sums")


def test_a_stream_that_is_added_begins_at_its_start_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    def more(p: Pipeline, name: str) -> None:
        p.source(name, spark.readStream.schema("g BIGINT, name STRING").json(str(tmp_path / name)))
        p.sql(f"CREATE MATERIALIZED VIEW v_{name} AS SELECT t.v, x.name FROM t JOIN {name} AS x ON t.g = x.g")

    feed(tmp_path / "in", 0)
    with built(spark, tmp_path, SUMS) as p:
        run(p)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.json").write_text(json.dumps({"g": 1, "name": name}))
    feed(tmp_path / "in", 1)
    with built(spark, tmp_path, SUMS) as p:
        more(p, "b")
        run(p)
        assert p.verify()
        assert len(held(p, "v_b")) == 3
        p.stop()
        more(p, "a")  # which comes before the others by its name, and after them in Spark's offsets
        feed(tmp_path / "in", 2)
        run(p)
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "sums")
    with built(spark, tmp_path, SUMS) as p:
        more(p, "a")
        more(p, "b")
        feed(tmp_path / "in", 3)
        run(p)
        assert p.verify()
    with built(spark, tmp_path, SUMS) as p, pytest.raises(DefinitionError, match="source a is not defined any more"):
        p.refresh()


def test_a_sink_that_is_added_later_begins_with_all_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(tmp_path / "in", 0)
    called: list[Any] = []
    with built(spark, tmp_path, SUMS) as p:
        run(p)
        p.sink("sums", callback=lambda changes, epoch: called.append((epoch, dict(changes))), begin="snapshot")
        assert called == [(1, held(p, "sums"))]
    feed(tmp_path / "in", 1)
    p = built(spark, tmp_path, SUMS)
    p.sink("sums", path=tmp_path / "later", begin="snapshot")
    with monkeypatch.context() as patched:
        failing(delivery, "deliver", after=True, which=1)(patched)
        with pytest.raises(KeyboardInterrupt):
            run(p)
    die(p)
    with built(spark, tmp_path, SUMS) as p:
        p.sink("sums", path=tmp_path / "later", begin="snapshot")
        run(p)
        assert taken(spark, tmp_path / "later") == held(p, "sums") == taken(spark, tmp_path / "out")


def test_a_sink_that_was_away_gets_what_it_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipeline ran without it, or its view was gone; whoever has emptied its place gets all rows."""

    def ran(number: int, *texts: str, out: str | None = "out") -> None:
        rows = spark.createDataFrame([(number, number % 2, number)], "id BIGINT, g BIGINT, v BIGINT")
        with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
            p.source("t", rows, key="id", changes="upsert")
            for text in ("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t", *texts):
                p.sql(text)
            if out is not None:
                p.sink("sums", path=tmp_path / out, begin="snapshot")
            p.refresh()
            if out is not None:
                assert taken(spark, tmp_path / out) == held(p, "sums")

    ran(1, SUMS)
    ran(2, SUMS, out=None)
    ran(3, SUMS)
    ran(4, out=None)
    ran(5, COUNTS)
    ran(6, COUNTS, out=None)
    shutil.rmtree(tmp_path / "out")
    ran(7, COUNTS)
    ran(8, COUNTS, out=None)
    with monkeypatch.context() as patched:
        patched.setattr(delivery, "opened", lambda *_: Store.attach(tmp_path / "gone"))
        with pytest.raises(SinkError, match=r"without this sink after epoch .* is kept no more"):
            ran(9, COUNTS)
    ran(10, COUNTS)


def test_what_no_user_has_defined_comes_and_goes(spark: SparkSession, tmp_path: Path) -> None:
    """The clock, a watermark and the rows of recomputed views end with what needs them, over a restart, too."""
    times = [(1, datetime(2024, 1, 1, tzinfo=UTC)), (2, datetime(2024, 1, 2, tzinfo=UTC))]

    def built(*texts: str, columns: str = "", **how: Any) -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", place="driver", shards=2)
        p.source("t", spark.createDataFrame(times, "id BIGINT NOT NULL, ts TIMESTAMP"), **how)
        for text in ("CREATE MATERIALIZED VIEW n AS SELECT ts, count(*) AS n FROM t GROUP BY ts", *texts):
            p.sql(text)
        if columns:
            p.define("m", p.frame("t").mapInPandas(lambda parts: parts, columns), otherwise="recompute")
        return p

    recent = "CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE ts > now() - INTERVAL 1 DAY"
    with built(recent, columns="id BIGINT, ts TIMESTAMP", lateness=("ts", "1 hour")) as p:
        p.advance(datetime(2024, 1, 2, 12, tzinfo=UTC))
        p.refresh()
        assert (held(p, "recent"), len(held(p, "m"))) == ({(2,): 1}, 2)
        p.sql("DROP VIEW recent")
    with built() as p:
        assert p.plan_change().possible
        p.refresh()
        assert p.verify()
    with built(recent, columns="id BIGINT NOT NULL, ts TIMESTAMP", lateness=("ts", "1 day")) as p:
        p.refresh()  # which tells the present again
        assert (held(p, "recent"), len(held(p, "m"))) == ({}, 2)
        assert p.verify()


def test_names_keys_and_front_ends_change(spark: SparkSession, tmp_path: Path) -> None:
    def t(p: Pipeline, rows: list[Any], schema: str = "id BIGINT NOT NULL, g BIGINT", **how: Any) -> None:
        p.source("t", spark.createDataFrame(rows, schema), **{"key": "id", "changes": "upsert", **how})

    with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
        t(p, [(1, 1), (2, 1)])
        p.datalog("a(g) :- t(_, g).")
        p.datalog("n(c) :- c = count : { a(_) }.")
        p.query("a").materialize("q")
        p.sql("CREATE MATERIALIZED VIEW s AS SELECT g, count(*) AS n FROM t GROUP BY g")
        p.refresh()
        with pytest.raises(PipelineError, match="view a cannot have rows twice: n reads it"):
            p.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT g FROM t")
        p.drop("n")
        p.define("a", p.frame("t").select("g").distinct(), replace=True)
        assert p.trees("q") == [{"g": 1}]
        with pytest.raises(PipelineError, match="source t cannot have another key: a reads it"):
            t(p, [], key=("id", "g"), replace=True)
        p.drop("a", cascade=True)
        p.rename("s", "sums")
        t(p, [(3, 2)], key=("id", "g"), replace=True)
        p.refresh(t=spark.createDataFrame([(3, 1)], "id BIGINT NOT NULL, g BIGINT"))
        assert held(p, "sums") == {(1, 3): 1}
        t(p, [(3, 2, "x")], "id BIGINT NOT NULL, g BIGINT, w STRING", key=("id", "g"), replace=True)
        p.refresh()  # the frame is read, although others were given before it
        assert held(p, "sums") == {(1, 3): 1, (2, 1): 1}
        assert p.verify()


Step = Callable[[pytest.MonkeyPatch], None]


def failing(where: Any, name: str, *, after: bool, which: int) -> Step:
    """Let the process end at this step, before or after it is done."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain, calls = getattr(where, name), Counter[str]()

        def crashing(*given: Any, **how: Any) -> Any:
            calls[name] += 1
            found = plain(*given, **how) if after or calls[name] != which else None
            if calls[name] == which:
                raise KeyboardInterrupt
            return found

        monkeypatch.setattr(where, name, crashing)

    return patch


STEPS = {
    "before the epoch before is delivered": failing(delivery, "deliver", after=False, which=1),
    "after it is": failing(delivery, "deliver", after=True, which=1),
    "before the turn counts": failing(Store, "_publish", after=False, which=1),
    "when it counts": failing(Store, "_publish", after=True, which=1),
    "before the turn is delivered": failing(delivery, "deliver", after=False, which=2),
    "before that is noted": failing(delivery.Delivery, "mark", after=False, which=2),
}


LARGE_TOO = ("before the turn is delivered", "before that is noted")


@pytest.mark.parametrize(
    ("step", "most"), [*((step, MOST_BYTES) for step in STEPS), *((step, -1) for step in LARGE_TOO)]
)
def test_a_crash_at_every_step_of_a_turn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, most: int
) -> None:
    monkeypatch.setattr(turned_views, "MOST_BYTES", most)
    feed(tmp_path / "in", 0)
    p = built(spark, tmp_path, SUMS)
    with monkeypatch.context() as patched:
        patched.setattr(delivery, "deliver", crash)
        with pytest.raises(Exception, match=r"[Cc]rash"):
            run(p)
    die(p)
    p = built(spark, tmp_path, COUNTS)
    with monkeypatch.context() as patched:
        STEPS[step](patched)
        with pytest.raises(KeyboardInterrupt):
            p.refresh()
    die(p)
    feed(tmp_path / "in", 1)
    with built(spark, tmp_path, COUNTS, LARGE) as p:
        run(p)
        assert p.verify()
        assert taken(spark, tmp_path / "out") == held(p, "sums")


def crash(*_: Any, **__: Any) -> None:
    raise RuntimeError("crash")


def die(p: Pipeline) -> None:
    """What the end of a process does: locks are released, nothing else is done."""
    if p._streaming.query is not None:
        p._streaming.query.stop()
    if p._state.current is not None:
        p._state.current.store._release()
