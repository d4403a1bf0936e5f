"""Declarative projects: updates equal what Spark computes, and what is wrong is told with the line that declares it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from documented import run_page
from everview.errors import EverviewError, PipelineError
from everview.spark import pipelines as dp
from everview.spark.pipelines import PipelineProject
from everview.spark.pipelines.specs import find_spec, read_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = """
name: bank
storage: storage
configuration: {everview.shards: "2"}
libraries: [{glob: {include: transformations/**}}]
"""
HEAD = """
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from everview.spark import pipelines as dp
spark = SparkSession.active()
DATA = Path(__file__).parents[1] / "data"
"""
BANK = """
@dp.materialized_view(partition_cols=["country"], comment="what countries owe")
def exposure():
    return spark.read.table("paid").groupBy("country").agg(F.sum("amount").alias("total"))

@dp.temporary_view
def paid():
    t, a = spark.table("transfers"), spark.table("account")
    return t.join(a, t.src == a.id).select(t.id, "country", "amount")

@dp.table
def transfers():
    return spark.readStream.schema("id BIGINT, src BIGINT, amount BIGINT").json(f"{DATA}/transfer")

@dp.materialized_view(name="account", schema="id BIGINT, country STRING")
def accounts():
    return spark.read.schema("id INT, country STRING").json(f"{DATA}/account")

dp.create_streaming_table("event")
dp.create_sink("out", "json", {"path": f"{DATA}/out"})

@dp.append_flow(target="event")
def big():
    return spark.readStream.table("transfers").filter("amount > 5").select("id", F.lit("big").alias("what"))

@dp.append_flow(target="out")
def outgoing():
    return spark.readStream.table("transfers").select("id")

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow("latest", "transfers", ["src"], "id", apply_as_deletes="amount < 0", except_column_list=["id"])
"""
MORE = """
CREATE MATERIALIZED VIEW top AS SELECT e.country, e.total FROM exposure AS e ORDER BY total DESC LIMIT 1; -- the ; here
CREATE FLOW low AS INSERT INTO event BY NAME SELECT 'low' AS what, transfers.id FROM STREAM transfers WHERE amount <= 5;
CREATE TEMPORARY VIEW named AS WITH q AS (SELECT * FROM default.account) SELECT q.* FROM q;
SET spark.sql.caseSensitive = false;
CREATE MATERIALIZED VIEW countries AS SELECT DISTINCT COUNTRY FROM named;
"""
Row = dict[str, Any]


def project(root: Path, *python: str, **sql: str) -> Path:
    files = root / "transformations"
    (files / "more").mkdir(parents=True)
    (root / "spark-pipeline.yml").write_text(SPEC)
    for place, text in enumerate(python):
        (files / f"part{place}.py").write_text(HEAD + text)
    for name, text in sql.items():
        (files / "more" / f"{name}.sql").write_text(text)
    return root


def arrive(root: Path, name: str, *rows: Row) -> None:
    (root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
    (root / "data" / name).write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[None]:
    """Tables of a test are gone after it."""
    yield
    for table in spark.catalog.listTables():
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")


@pytest.mark.spark
@pytest.mark.usefixtures("tables")
def test_an_update_takes_in_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    root = project(tmp_path, BANK, more=MORE)
    arrive(root, "transfer/1.json", {"id": 1, "src": 10, "amount": 3}, {"id": 2, "src": 11, "amount": 30})
    arrive(root, "account/1.json", {"id": 10, "country": "FR"}, {"id": 11, "country": "DE"})

    def table(name: str) -> set[Any]:
        return {tuple(row) for row in spark.table(name).collect()}

    with PipelineProject(root, spark) as p:
        p.update()
        assert table("event") == {("low", 1), ("big", 2)}
        assert p.reads("paid") == ("account", "transfers")
        assert p.reads("event") == ("transfers",)
        arrive(root, "transfer/2.json", {"id": 3, "src": 10, "amount": 100}, {"id": 4, "src": 11, "amount": -1})
    assert not spark.catalog.tableExists("paid")

    with PipelineProject(root, spark) as p:
        assert "account" not in p.update().tables
        assert table("exposure") == {(29, "DE"), (103, "FR")}
        assert table("top") == {("FR", 103)}
        assert table("latest") == {(10, 100)}
        assert p.update().sources == ()
        assert sorted(row.id for row in spark.read.json(f"{root}/data/out").collect()) == [1, 2, 3, 4]

    arrive(root, "account/1.json", {"id": 10, "country": "IT"}, {"id": 11, "country": "DE"})
    (root / "data" / "transfer" / "2.json").unlink()
    with PipelineProject(root, spark) as p:
        assert p.update(refresh=["account"]).tables == ("account",)
        assert table("account") == {(10, "IT"), (11, "DE")}
        assert table("exposure") == {(29, "DE"), (103, "FR")}
        p.update(full_refresh=["transfers"])
        p.update()
        assert table("exposure") == {(30, "DE"), (3, "IT")}
        assert table("countries") == {("DE",), ("IT",)}
        assert p.pipeline.verify().raise_if_different()
        with pytest.raises(EverviewError, match='dataset "acount" does not exist'):
            p.update(refresh=["acount"])


@pytest.mark.spark
@pytest.mark.usefixtures("tables")
def test_a_source_that_is_read_no_more_is_emptied(spark: SparkSession, tmp_path: Path) -> None:
    view = '@dp.materialized_view\ndef v():\n    return spark.read.schema("a INT").json(f"{DATA}/%s")\n'
    root = project(tmp_path, view % "one")
    arrive(root, "one/1.json", {"a": 1})
    arrive(root, "two/1.json", {"a": 2})
    for folder, rows in (("one", [1]), ("two", [2]), ("one", [1])):
        (root / "transformations" / "part0.py").write_text(HEAD + view % folder)
        with PipelineProject(root, spark) as p:
            p.update()
            assert [row.a for row in p.pipeline.view("v").collect()] == rows


AGGREGATED = '@dp.table\ndef n():\n    return spark.readStream.table("t").groupBy("id").count()\n'
T = '@dp.table\ndef t():\n    return spark.readStream.schema("id BIGINT").json(str(DATA))\n'
M = "@dp.materialized_view\ndef m():\n    return spark.range(3)\n"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("python", "said"),
    [
        (
            '@dp.materialized_view\ndef a():\n    return spark.table("b")\n'
            '@dp.materialized_view\ndef b():\n    return spark.sql("SELECT * FROM a")\n',
            r"part0.py:7: datasets read each other: a reads b reads a",
        ),
        (T + AGGREGATED, "flow n: Aggregate may revise rows"),
        (T + M + '@dp.table\ndef j():\n    return spark.readStream.table("t").join(spark.table("m"), "id")\n',
         "part0.py:13: flow j joins a stream with rows that change"),
        (M + '@dp.table\ndef s():\n    return spark.readStream.table("m")\n', "m is a materialized view, whose rows"),
        ("@dp.table\ndef m():\n    return spark.range(3)\n", "flow m into streaming table m reads no stream"),
        (T + '@dp.materialized_view\ndef m():\n    return spark.readStream.table("t")\n', "is asked from a stream"),
        (M + M.replace("def m", "def other").replace("view", 'view(name="m")'), "there is a dataset m already"),
        ('dp.create_streaming_table("e")\n', "no flow goes into streaming table e"),
        ('@dp.append_flow(target="e")\ndef f():\n    return spark.range(1)\n', "goes into e, which is not"),
        ("@dp.materialized_view\ndef m():\n    return 1\n", "part0.py:7: the query m returns int"),
        ("@dp.materialized_view\ndef m():\n    return 1 / 0\n", "part0.py:7: ZeroDivisionError"),
        ('@dp.materialized_view\ndef m():\n    return spark.table("nowhere")\n', "part0.py:7: .*nowhere"),
        ("@dp.materialized_view\ndef m():\n    return spark.range(9).sample(0.5)\n", "part0.py:7: .*sample"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(spark: SparkSession, tmp_path: Path, python: str, said: str) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(EverviewError, match=f"(?i){said}"):
        PipelineProject(project(tmp_path, python), spark)


@pytest.mark.spark
def test_statements_that_are_none_of_a_project(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"a.sql:2: DROP TABLE X … is no statement of a project"):
        PipelineProject(project(tmp_path / "one", a="SET a.b = c;\nDROP TABLE x"), spark)
    with pytest.raises(PipelineError, match=r"b.sql: .*PARSE_SYNTAX_ERROR"):
        PipelineProject(project(tmp_path / "two", b="CREATE MATERIALIZED VUE x AS SELECT 1"), spark)


@pytest.mark.spark
@pytest.mark.usefixtures("tables")
def test_the_guide(spark: SparkSession, tmp_path: Path) -> None:
    run_page("how-to/declarative-pipelines.md", spark=spark, root=tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("storage: s", "name is missing"),
        ("name: a", "storage is missing"),
        ("name: a\nstorage: s\nlibrary: []", '"library" does not exist'),
        ("name: a\nstorage: s\nconfiguration: {a: 1}", "configuration has names and texts"),
        ("name: a\nstorage: s\nlibraries: [{glob: {include: 'a/**/*.py'}}]", "is none of a library"),
        ("name: a\nstorage: s\nlibraries: [x]", "a library is a pattern of files"),
        ("name: a\nstorage: s\ncatalog: 3", "catalog is a name"),
    ],
)
def test_a_specification_is_checked(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "spark-pipeline.yml").write_text(text)
    with pytest.raises(PipelineError, match=said):
        read_spec(tmp_path / "spark-pipeline.yml")


def test_the_specification_is_that_of_the_nearest_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    assert find_spec(tmp_path / "a" / "b") == tmp_path / "spark-pipeline.yml"
    spec = read_spec(find_spec(tmp_path / "a"))
    assert (spec.name, spec.place, list(spec.files())) == ("bank", str(tmp_path / "storage"), [])
    (tmp_path / "spark-pipeline.yaml").write_text(SPEC)
    with pytest.raises(PipelineError, match=r"has spark-pipeline.yaml and spark-pipeline.yml"):
        find_spec(tmp_path)


def test_declarations_need_a_project() -> None:
    with pytest.raises(PipelineError, match="none is being loaded"):
        dp.create_streaming_table("t")
    with pytest.raises(PipelineError, match="type 2"):
        dp.create_auto_cdc_flow("t", "s", ["k"], "at", stored_as_scd_type=2)
