"""A pipeline's state, served by a process that follows the pipeline epoch by epoch, and has no Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from chromium import chromium
from everview.cli import app
from everview.database.snapshots import core_of
from everview.observe import TickReport
from everview.runtimes.spark.node_work import WorkNote
from everview.serve.mirrors import PipelineMirror
from everview.spark import Pipeline
from everview.why import Why
from serving import Client, Events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

SHOTS = Path(__file__).parents[2] / "build" / "explorer"
ORDER = "id BIGINT, customer STRING, amount BIGINT"
# Spark cannot be imported there.
SERVE = "import sys; sys.modules['pyspark'] = None; from everview.cli import app; app(sys.argv[1:])"


def test_a_server_follows_a_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state", place="driver") as p:
        p.source("orders", spark.createDataFrame([(1, "Ada", 5), (2, "Bob", 7)], ORDER), key="id", changes="upsert")
        p.source("noise", spark.createDataFrame([("Ada",)], "customer STRING"), keep=False)
        p.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        p.sql("CREATE MATERIALIZED VIEW loud AS SELECT customer, count(*) AS n FROM noise GROUP BY customer")
        p.datalog("rich(C) :- totals(C, T), T > 6.")
        p.refresh()
        file = tmp_path / "bank.yaml"
        file.write_text("state: state\nsources: {}\nviews: []\n")
        command = [sys.executable, "-c", SERVE, "serve", str(file), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
                assert port is not None
                followed(p, spark, int(port[1]))
                explained(Client(int(port[1])))
                explored(p, spark, int(port[1]))
            finally:
                process.kill()


def explained(client: Client) -> None:
    """Rows are explained by the base rows that the state keeps; where it keeps none, the answer says why."""
    leaves = base_rows(client, "totals", {"customer": "Ada", "total": 6})
    assert sorted(leaves) == [("orders", (1, "Ada", 5), ""), ("orders", (3, "Ada", 1), "")]
    [(table, row, note)] = base_rows(client, "loud", {"customer": "Ada", "n": 1})
    assert (table, row) == ("pipeline.loud", ("Ada", 1))
    assert "noise is not kept" in note
    assert base_rows(client, "rich", {"C": "Bob"}) == [("orders", (2, "Bob", 9), "")]
    told = client("GET", "/v1/views/totals/plan")[1]
    assert "sum(amount) AS total" in told["text"]
    assert "orders" in told["plan"]


def base_rows(client: Client, view: str, row: dict[str, object]) -> list[tuple[str, tuple[object, ...], str]]:
    status, why = client("POST", f"/v1/views/{view}/why", {"row": row})
    assert status == 200, why
    leaves, waiting = list[tuple[str, tuple[object, ...], str]](), [why]
    while waiting:
        node = waiting.pop()
        waiting += node["because"]
        if node["table"]:
            leaves.append((node["table"], tuple(node["row"]), node["note"]))
    return leaves


def explored(p: Pipeline, spark: SparkSession, port: int) -> None:
    """The explorer, in a real browser: circuit, epochs with their placement, rows that follow, and SQL."""
    with chromium() as browser:
        tab = browser.tab(f"http://127.0.0.1:{port}/")
        tab.until(
            "document.querySelector('[data-box=\"v:totals\"]') && document.querySelector('[data-box=\"t:orders\"]')"
        )
        circuit = Client(port)("GET", "/v1/explorer/circuit?open=v:totals")[1]
        titles = {box["title"].split()[0] for box in circuit["boxes"]}
        assert {"orders", "noise", "totals", "late"} <= titles
        inside = [box for box in circuit["boxes"] if box["id"].startswith("n")]
        assert any("sum" in box["title"].lower() or "aggregate" in box["title"].lower() for box in inside), inside
        assert circuit["work"]["t:orders"] | {"rows": 5, "held": 4} == circuit["work"]["t:orders"]
        assert circuit["work"]["v:late"]["rows"] > 0
        timed = [box["id"] for box in inside if circuit["work"][box["id"]]["ms"] > 0]
        assert len(timed) > len(inside) / 2, circuit["work"]
        tab.evaluate("location.hash = '#/ticks'")
        tab.until("document.querySelectorAll('.tick').length >= 3")
        tab.until("document.querySelector('main').textContent.includes('driver')")
        tab.click('[data-relation="totals"]')
        tab.until("[...document.querySelectorAll('td')].some((cell) => cell.textContent === 'Cy')")
        p.refresh(orders=spark.createDataFrame([(5, "Dot", 3)], ORDER))
        tab.until("[...document.querySelectorAll('td')].some((cell) => cell.textContent === 'Dot')")
        tab.press("j")
        tab.press("Enter")
        tab.until("document.querySelector('.tree')")
        tab.until("document.querySelector('.tree').textContent.includes('orders')")
        tab.screenshot(SHOTS / "pipeline.png")
        tab.evaluate("location.hash = '#/'")
        tab.until("document.querySelector('[data-box=\"v:totals\"]')")
        tab.click('[data-box="v:totals"]')
        tab.until("document.querySelectorAll('[data-box^=\"n\"]').length > 0")
        tab.screenshot(SHOTS / "pipeline_circuit.png")
        assert tab.complaints == []


def followed(p: Pipeline, spark: SparkSession, port: int) -> None:
    client, first, reports = Client(port), p.epoch, list[TickReport]()
    p.observe(reports.append)
    assert sorted(client.sql("SELECT * FROM totals")) == [["Ada", 5], ["Bob", 7]]
    assert sorted(client.sql("SELECT id FROM orders")) == [[1], [2]]
    with closing(Events(port, "/v1/views/totals/changes")) as events:
        kind, seen, data = events.next()
        assert (kind, seen, sorted(data["rows"])) == ("snapshot", first, [["Ada", 5, 1], ["Bob", 7, 1]])
        p.refresh(orders=spark.createDataFrame([(3, "Ada", 1)], ORDER))
        p.refresh(orders=spark.createDataFrame([(2, "Bob", 9)], ORDER))
        assert [events.next() for _ in range(2)] == [
            ("change", first + 1, {"epoch": first + 1, "rows": [["Ada", 5, -1], ["Ada", 6, 1]]}),
            ("change", first + 2, {"epoch": first + 2, "rows": [["Bob", 7, -1], ["Bob", 9, 1]]}),
        ]
        p.sql("CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n FROM orders")
        p.refresh(orders=spark.createDataFrame([(4, "Cy", 2)], ORDER))
        kind, seen, data = events.next()
        assert (kind, seen, data["rows"]) == ("change", p.epoch, [["Cy", 2, 1]])
    with closing(Events(port, "/v1/views/totals/changes", Last_Event_ID=str(first))) as events:
        changed = [event for _ in range(3) for event in events.next()[2]["rows"]]
        assert ["Bob", 9, 1] in changed
    assert client.sql("SELECT n FROM late") == [[4]]
    assert sorted(client.sql(f"SELECT * FROM totals VERSION AS OF {first}")) == [["Ada", 5], ["Bob", 7]]
    assert client("POST", "/v1/ingest/orders", '{"id": 9}')[0] == 403
    progress = client("GET", "/v1/progress?count=3")[1]
    assert progress["epoch"] == p.epoch
    last = progress["epochs"][-1]
    assert (last["epoch"], last["placement"], last["rows_in"]) == (p.epoch, "driver", {"orders": 1})
    assert last["seconds"] >= last["steps"]["tick"] > 0
    assert [report.epoch for report in reports] == [first + 1, first + 2, p.epoch]
    assert (dict(reports[0].rows_in), reports[0].placement, reports[0].failure) == ({"orders": 1}, "driver", None)
    assert f"everview_epoch {p.epoch}" in client.raw("GET", "/metrics")[2].decode()


def test_what_cannot_be_served_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("state: nowhere\nsources: {}\nviews: []\n")
    (tmp_path / "b.sql").write_text("SET everview.state = 'nowhere';")
    (tmp_path / "c.py").write_text("pipeline = None")
    for name, said in (("a.yaml", "everview run"), ("b.sql", "everview run"), ("c.py", "without running it")):
        done = CliRunner().invoke(app, ["serve", str(tmp_path / name), "--port", "0"])
        assert done.exit_code, done.output
        assert said in " ".join(done.output.split()), done.output


@pytest.mark.parametrize(("shards", "place"), [(1, "driver"), (4, "driver"), (4, "cluster")])
def test_the_time_of_nodes_is_shown(spark: SparkSession, tmp_path: Path, shards: int, place: str) -> None:
    """Every operator that the pipeline has run is found again in the server's circuit, with steps, rows and time."""
    with Pipeline(spark, tmp_path / "state", place=place, shards=shards) as p:
        p.source("orders", spark.createDataFrame([(1, "Ada", 5), (2, "Bob", 7)], ORDER), key="id", changes="upsert")
        p.source("towns", spark.createDataFrame([("Ada", "Ulm")], "customer STRING, town STRING"))
        p.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        p.sql("CREATE MATERIALIZED VIEW placed AS SELECT town, total FROM totals JOIN towns USING (customer)")
        p.sql("CREATE MATERIALIZED VIEW top AS SELECT * FROM placed ORDER BY total DESC LIMIT 1")
        p.refresh()
        p.refresh(orders=spark.createDataFrame([(3, "Ada", 1)], ORDER))
        noted = WorkNote(tmp_path / "state").read()
        mirror = PipelineMirror(tmp_path / "state")
        assert mirror.model is not None
        work = mirror.model.work(mirror.database, mirror.epochs(10))
        assert len(noted) > 5
        assert len(work.seconds) == len(noted)
        assert sum(work.seconds.values()) == pytest.approx(sum(spent.seconds for spent in noted.values()))
        assert sum(work.seconds.values()) > 0
        mirror.database.close()


def test_rows_of_every_language_are_explained(spark: SparkSession, tmp_path: Path) -> None:
    """Explanations go through rules, EDN, algebra and fluent queries as they do in the pipeline itself."""
    with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
        people = [(1, "Ada", None), (2, "Bob", 1), (3, "Cy", 2)]
        p.source(
            "person", spark.createDataFrame(people, "id BIGINT, name STRING, boss BIGINT"), key="id", changes="upsert"
        )
        p.source("likes", spark.createDataFrame([("Ada", "Bob"), ("Bob", "Cy")], "a STRING, b STRING"))
        p.sql("CREATE MATERIALIZED VIEW under AS SELECT name, boss FROM person WHERE boss IS NOT NULL")
        p.datalog("reach(X, Y) :- likes(X, Y). reach(X, Z) :- reach(X, Y), likes(Y, Z).")
        p.edn("{:find [?n ?m] :where [[?p :person/name ?n] [?p :person/boss ?q] [?q :person/name ?m]]}", "works_for")
        p.query("person").related_many("liked", p.query("likes"), on=("name", "a")).materialize("people")
        p.datalog("far(X) :- reach(X, Y), under(Y, _), works_for(Y, _).")
        p.define("framed", p.frame("likes").select("a"))
        p.edn("{:find [?b] :in [$ ?a] :where [[?x :person/name ?a] [?x :person/boss ?b]]}", "asked", args=["Cy"])
        p.refresh()
        mirror = PipelineMirror(tmp_path / "state")
        for view in ("reach", "works_for", "people", "people.liked", "far"):
            rows = p.view(view).collect()
            assert rows, view
            for row in map(tuple, rows):
                told = mirror.database.why(view.replace(".", "_"), row)
                assert leaves_of(told) == leaves_of(p.why(view, row)), view
                assert leaves_of(told), view
        for view, row, said in (("framed", ("Ada",), "by a DataFrame"), ("asked", (2,), "with parameters")):
            [(table, _, _)] = leaves_of(mirror.database.why(view, row))
            assert table == f"pipeline.{view}"
            assert said in core_of(mirror.database).catalog.tables[table].comments[""]
        p.drop("far")
        p.refresh(likes=spark.createDataFrame([("Cy", "Dot")], "a STRING, b STRING"))
        mirror.follow(mirror.database)
        assert len(leaves_of(mirror.database.why("reach", ("Ada", "Dot")))) == 3
        mirror.database.close()


def leaves_of(why: Why) -> list[tuple[str, str, str]]:
    """The base rows of an explanation, each once."""
    return sorted({(node.table, repr(node.row), node.note) for node in why.walk() if node.table})
