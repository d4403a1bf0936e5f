"""Pipelines in files: what they say, what is wrong with them, and that they run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EverviewError, PipelineError
from everview.frontends.sql.files import read_file
from everview.spark.definition import SinkModel
from everview.spark.files import build, opened, read, state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YAML = """
state: state
sources:
  orders: {format: json, path: the orders, schema: "id BIGINT NOT NULL, shop STRING, amount BIGINT, seq BIGINT",
           key: id, changes: upsert, order: seq, columns: [id, shop, amount]}
  steps: {format: json, path: steps, schema: "a BIGINT, b BIGINT"}
views:
  - views.sql
  - CREATE MATERIALIZED VIEW rich AS SELECT shop FROM by_shop WHERE total > 10
sinks:
  by_shop: {path: out}
shards: 2
place: driver
"""
VIEWS = """
CREATE MATERIALIZED VIEW paths AS WITH RECURSIVE p(a, b) AS
  (SELECT a, b FROM steps UNION SELECT p.a, s.b FROM p JOIN steps s ON s.a = p.b) SELECT * FROM p;
CREATE MATERIALIZED VIEW by_shop AS SELECT shop, SUM(amount) AS total FROM orders GROUP BY shop;
"""
SQL = """
-- one shop; and a comment
SET everview.state = 'state';
SET everview.shards = 2;
CREATE TABLE orders (id BIGINT PRIMARY KEY, shop STRING, amount BIGINT, seq BIGINT) USING json
  OPTIONS (path 'the orders', changes 'upsert', stream 'true', order 'seq', maxFilesPerTrigger 5);
CREATE MATERIALIZED VIEW by_shop AS SELECT shop, SUM(amount) AS total FROM orders GROUP BY shop;
INSERT OVERWRITE DIRECTORY 'out' USING parquet SELECT * FROM by_shop;
"""
PYTHON = """
from pathlib import Path
from everview.spark import Pipeline

def pipeline(spark, state):
    p = Pipeline(spark, state, shards=2, place="driver")
    orders = spark.read.schema("id BIGINT, shop STRING, amount BIGINT").json(str(Path(__file__).parent / "the orders"))
    p.source("orders", orders, key="id", changes="upsert")
    p.sql("CREATE MATERIALIZED VIEW by_shop AS SELECT shop, SUM(amount) AS total FROM orders GROUP BY shop")
    return p
"""


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory with data and a file of each kind."""
    for name, text in (("p.yaml", YAML), ("views.sql", VIEWS), ("p.sql", SQL), ("p.py", PYTHON)):
        (tmp_path / name).write_text(text)
    orders = [{"id": 1, "shop": "A", "amount": 4, "seq": 1}, {"id": 2, "shop": "B", "amount": 20, "seq": 1}]
    write(tmp_path / "the orders" / "0.json", *orders)
    write(tmp_path / "steps" / "0.json", {"a": 1, "b": 2}, {"a": 2, "b": 1})
    return tmp_path


# -- on Spark


def rows(frame: Any) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in frame.collect()}


def test_yaml_runs_and_is_verified(spark: SparkSession, shop: Path) -> None:
    with build(shop / "p.yaml", read(shop / "p.yaml"), spark) as p:
        assert (
            str(p.circuit.layout(p.circuit.sources["orders"]).schema)
            == "id BIGINT NOT NULL, shop STRING, amount BIGINT"
        )
        p.refresh()
        assert rows(p.view("rich")) == {("B",)}
        assert p.view("paths").count() == 4
        assert p.verify().raise_if_different()  # a view after one that Spark cannot say
    assert spark.read.parquet(str(shop / "out")).count() == 2
    assert (shop / "state").is_dir()


def test_sql_runs_again_where_it_was(spark: SparkSession, shop: Path) -> None:
    with build(shop / "p.sql", read(shop / "p.sql"), spark) as p:
        p.refresh()
        assert rows(p.view("by_shop")) == {("A", 4), ("B", 20)}
    write(shop / "the orders" / "1.json", {"id": 2, "shop": "A", "amount": 1, "seq": 2})
    with build(shop / "p.sql", read(shop / "p.sql"), spark) as p:
        p.refresh()
        assert rows(p.view("by_shop")) == {("A", 5)}
        assert p.epoch == 2
    found = spark.read.parquet(str(shop / "out"))
    assert rows(found.select("shop", "total")) == {("A", 5)}, "a snapshot"


def test_python_is_given_session_and_state(spark: SparkSession, shop: Path) -> None:
    with opened(shop / "p.py", shop / "elsewhere") as found:
        found.pipeline.refresh()
        assert rows(found.pipeline.view("by_shop")) == {("A", 4), ("B", 20)}
    assert (shop / "elsewhere").is_dir()


BUILT = [
    ("the orders,", "no orders,", "sources.orders: there is nothing at .*no orders"),
    ("changes: upsert", "changes: upsert, op: x", 'sources.orders: .*op="x" needs changes="cdc"'),
    ("[id, shop, amount]", "[id, shpo]", 'sources.orders: column "shpo" does not exist'),
    ('schema: "a BIGINT, b BIGINT"', 'schema: "a BIGNT"', "sources.steps: .*BIGNT"),
    ("SELECT shop FROM by_shop", "SELECT shpo FROM by_shop", r"views\[1\]: .*shpo"),
    ("views.sql", "view.sql", "views: there is no file .*view.sql"),
    ("by_shop: {path: out}", "by_shp: {path: out}", 'sinks.by_shp: view "by_shp" does not exist'),
    ("by_shop: {path: out}", "by_shop: {path: out, table: t}", "sinks.by_shop: .*path and table"),
    ("by_shop: {path: out}", "by_shop: {path: out, format: xml}", 'sinks.by_shop: no sink writes "xml"'),
    ("state: state", "state: ftp://bank/state", "state: a state cannot be at ftp:"),
    ("state: state\n", "", "state is missing"),
]


@pytest.mark.parametrize(("old", "new", "message"), BUILT)
def test_what_does_not_fit(spark: SparkSession, shop: Path, old: str, new: str, message: str) -> None:
    path = shop / "p.yaml"
    assert YAML.count(old) >= 1
    path.write_text(YAML.replace(old, new, 1))
    with pytest.raises(EverviewError, match=f"p.yaml: {message}" if "view.sql" not in message else message):
        build(path, read(path), spark)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "defines no pipeline"),
        ("pipeline = 3", "has a pipeline that is a int"),
        ("\n\npipeline = nothing", r"p.py: line 3: NameError: name 'nothing'"),
        ("def pipeline(spark):\n  return 3", r"pipeline\(\) returns a int"),
        ("def pipeline(spark):\n  return 1 / 0", "p.py: line 2: ZeroDivisionError"),
        ("def pipeline(", "p.py: line 1: SyntaxError"),
    ],
)
def test_what_is_wrong_in_python(spark: SparkSession, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.py").write_text(text)
    with pytest.raises(PipelineError, match=message), opened(tmp_path / "p.py"):
        pass


def test_a_state_that_python_does_not_take(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def pipeline(spark):\n  return 3")
    with pytest.raises(PipelineError, match="takes no state"), opened(tmp_path / "p.py", tmp_path):
        pass


# -- without Spark


def test_what_sql_says(shop: Path) -> None:
    found = read(shop / "p.sql")
    orders = found.sources["orders"]
    assert (orders.key, orders.stream, orders.changes, orders.order) == (["id"], True, "upsert", "seq")
    assert orders.schema_ == "id BIGINT NOT NULL, shop STRING, amount BIGINT, seq BIGINT"
    assert orders.options == {"maxFilesPerTrigger": "5"}
    assert found.shards == 2
    assert found.sinks == {"by_shop": [SinkModel(path="out", format="parquet", mode="snapshot")]}


def test_sinks_and_settings_of_sql() -> None:
    found = read_file(
        """SET spark.master=local[2]; SET spark.x = a b -- c; d
        ; INSERT INTO bank.t TABLE v; INSERT OVERWRITE TABLE `a.b` USING orc SELECT * FROM v;
        INSERT OVERWRITE DIRECTORY USING json OPTIONS ('path' = 'x', mode 'changes') SELECT * FROM v"""
    )
    assert found.settings == {"spark.master": "local[2]", "spark.x": "a b"}
    assert [(s.mode, s.path, s.table, s.format) for s in found.sinks] == [
        ("changes", None, "bank.t", None),
        ("snapshot", None, "`a.b`", "orc"),
        ("changes", "x", None, "json"),
    ]


def test_topics_of_sql(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text("""SET everview.state = 'state';
        CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING) USING kafka
          OPTIONS (changes 'upsert', subscribe 'accounts', kafka.bootstrap.servers 'here:9092');
        CREATE MATERIALIZED VIEW held AS SELECT owner, count(*) AS n FROM account GROUP BY owner;
        INSERT INTO TOPIC 'held' OPTIONS (mode 'upsert', key 'owner', exactly_once false, 'kafka.acks' = 'all')
          SELECT * FROM held;
        INSERT INTO TOPIC 'all' TABLE held; INSERT INTO topic SELECT * FROM held""")
    found = read(tmp_path / "p.sql")
    account, to = found.sources["account"], {"options": {"kafka.acks": "all"}, "exactly_once": False}
    assert (account.format, account.key, account.changes) == ("kafka", ["id"], "upsert")
    assert account.options == {"subscribe": "accounts", "kafka.bootstrap.servers": "here:9092"}
    assert found.sinks["held"] == [
        SinkModel(topic="held", mode="upsert", key=["owner"], **to),
        SinkModel(topic="all"),
        SinkModel(table="topic"),
    ]


def test_views_stay_in_their_places() -> None:
    text = "SET a.b = 'x;y';\nCREATE TABLE t (a INT)\n  USING json;\nCREATE VIEW v AS SELECT ';' FROM t"
    assert read_file(text).views.splitlines()[3] == "CREATE VIEW v AS SELECT ';' FROM t"
    assert not read_file(text).views.replace(";", "").partition("CREATE")[0].strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET nothing.x = 1", 'setting "nothing.x" does not exist'),
        ("SET everview.shads = 1", "everview.shards"),
        ("SET everview.state", "set to nothing"),
        ("CREATE TABLE t (a INT) USING json OPTIONS (chnages 'upsert')", 'did you mean "changes"'),
        ("CREATE TABLE t (a INT) USING json OPTIONS (key 'a', key 'b')", "is there twice"),
        ("CREATE TABLE t (a INT PRIMARY KEY) USING json OPTIONS (key 'b')", "another key"),
        ("CREATE TABLE t (a INT", "left open|breaks off"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "syntax error at 'PARTITIONED"),
        ("CREATE TABLE b.t (a INT)", "cannot be called b.t"),
        ("CREATE TABLE t (a INT); CREATE TABLE t (b INT)", "a table t already"),
        ("INSERT OVERWRITE DIRECTORY 'o' USING json SELECT a FROM v", "a view of its own"),
        ("INSERT OVERWRITE DIRECTORY 'o' USING json SELECT * FROM v WHERE a", "syntax error at 'WHERE'"),
        ("INSERT v", "INTO is missing"),
        ("SET x.y = 'open", "breaks off"),
    ],
)
def test_what_is_wrong_in_sql(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.sql").write_text(text)
    with pytest.raises(EverviewError, match=f"(?s)p.sql: .*({message})"):
        read(tmp_path / "p.sql")


BASE = "sources: {t: {path: t}}\nviews: CREATE …\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE + "shads: 4", '(?s)shads: there is no such key.*did you mean "shards"'),
        (BASE + "spark: {mster: x}", '(?s)spark.mster: there is no such key.*"master"'),
        (BASE.replace("path: t", "pth: t, path: x"), '(?s)sources.t.pth: there is no such key.*"path"'),
        (BASE.replace("path: t", "path: 3"), "sources.t.path: should be a string, and is 3"),
        (BASE.replace("path: t", "changes: often, path: t"), "sources.t.changes: should be 'append'"),
        (BASE.replace("path: t", "path: t, table: u"), "sources.t: has a path and a table"),
        (BASE.replace("path: t", "key: a"), "sources.t: comes from nowhere"),
        (BASE.replace("path: t", "path: t, options: {Key: a}"), "sources.t: Key stands beside the options"),
        (BASE.replace("path: t", "path: t, options: {a: [b]}"), "sources.t.options.a: should be a text"),
        (BASE + "sinks: {v: {path: 1}}", "sinks.v.path: should be"),
        (BASE + "sinks: {v: [{path: a}, {mode: x}]}", r"sinks.v\[1\].mode: should be"),
        (BASE + "shards: 0", "shards: should be greater than or equal to 1"),
        (BASE + "trigger: soon", "trigger: should be .once. or an interval"),
        (BASE + "place: [1]", "place: should be .*, and is a list"),
        ("views: x", "sources: is missing"),
        ("sources: {t: {path: t}}", "views: is missing"),
        (BASE + "views: y", "views is there twice, again in line 3"),
        (BASE + "1: y", "1 is no key"),
        ("sources: [", "line 1, column"),
        ("- a", "says nothing of sources"),
        ("", "says nothing of sources"),
        ("[" * 5000, "nested too deeply"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    ],
)
def test_what_is_wrong_in_yaml(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(PipelineError, match=message) as raised:
        read(tmp_path / "p.yaml")
    assert "p.yaml" in str(raised.value)


def test_what_is_no_pipeline_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no file"):
        read(tmp_path / "p.yaml")
    with pytest.raises(PipelineError, match="is no pipeline file"):
        read(tmp_path / "p.toml")
    (tmp_path / "p.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(PipelineError, match="UTF-8"):
        read(tmp_path / "p.sql")


def test_triggers_and_numbers_as_text(tmp_path: Path) -> None:
    for text, wanted in (("once", {"availableNow": True}), ("10 seconds", {"processingTime": "10 seconds"})):
        (tmp_path / "p.yaml").write_text(f"{BASE}trigger: {text}\nspark: {{settings: {{a: true, b: 4}}}}")
        found = read(tmp_path / "p.yaml")
        assert found.trigger == wanted
        assert found.spark.settings == {"a": "true", "b": "4"}


def test_where_the_state_is(shop: Path) -> None:
    assert state_of(shop / "p.yaml") == shop / "state"
    assert state_of(shop / "p.yaml", "other") == Path("other")
    assert state_of(shop / "p.py") is None


def test_an_error_in_a_view_names_the_line_of_the_file(spark: SparkSession, shop: Path) -> None:
    (shop / "p.sql").write_text(SQL.replace("SELECT shop, SUM", "SELECT shpo, SUM"))
    with pytest.raises(EverviewError, match=r"(?s)p.sql: .*shpo.*line 7"):
        build(shop / "p.sql", read(shop / "p.sql"), spark)
