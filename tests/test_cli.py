"""The command line: pipelines run, explained and verified, and mistakes told in sentences."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

import everview
from everview.cli import app
from everview.errors import EverviewError
from everview.spark.failures import of_spark
from everview.verify import Compared, Rest, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """
state: state
sources:
  orders:
    {format: json, path: orders, schema: "id BIGINT NOT NULL, shop STRING, amount BIGINT", stream: true,
     key: id, changes: upsert}
views: CREATE MATERIALIZED VIEW by_shop AS SELECT shop, SUM(amount) AS total FROM orders GROUP BY shop
shards: 2
place: driver
"""


def everview_(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(FILE)
    arrive(tmp_path, '{"id": 1, "shop": "A", "amount": 4}')
    return tmp_path / "p.yaml"


def arrive(directory: Path, *lines: str) -> None:
    (directory / "orders").mkdir(exist_ok=True)
    number = len(list((directory / "orders").iterdir()))
    (directory / "orders" / f"{number}.json").write_text("\n".join(lines))


def test_run_explain_verify(spark: SparkSession, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = file.parent / "circuit.svg"
    explained = everview_("explain", file, "--svg", picture)
    assert explained.exit_code == 0, explained.output
    assert ">source orders<" in picture.read_text(encoding="utf-8")
    refused = everview_("explain", file, "--svg", file / "circuit.svg")
    assert refused.exit_code == 1
    assert "cannot be written" in refused.stderr
    assert "orders (id BIGINT NOT NULL, shop STRING, amount BIGINT): upsert, key id" in explained.stdout
    assert not (file.parent / "state").exists(), "explaining leaves nothing behind"

    early = everview_("verify", file)
    assert early.exit_code == 2
    assert "there is no state at" in early.stderr
    assert "everview run" in early.stderr

    ran = everview_("run", file)
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines()[0].split() == [
        "epoch",
        "changes",
        "in",
        "by_shop",
        "tick",
        "ms",
        "total",
        "ms",
        "placement",
    ]
    assert ran.stdout.splitlines()[-1] == "epoch 1"
    again = everview_("run", "--once", file)
    assert again.stdout.splitlines()[-1] == "epoch 1: nothing was new"
    arrive(file.parent, '{"id": 2, "shop": "A", "amount": 5}')
    epoch, ended = map(json.loads, everview_("run", "--once", "--json", file).stdout.splitlines())
    assert (epoch["epoch"], epoch["rows_in"], epoch["placement"]) == (2, {"orders": 1}, "driver")
    assert ended == {"ended": "epoch 2", "stopped": False}

    verified = everview_("verify", file)
    assert verified.exit_code == 0, verified.output
    assert "by_shop: 1 row, as it should be" in verified.stdout

    wrong = Verdict({"by_shop": Compared("by_shop", 1, 2, missing=Rest(1, ((("B", 1), 1),)))}, 0.1)
    monkeypatch.setattr("everview.spark.pipeline.Pipeline.verify", lambda self: wrong)
    differing = everview_("verify", file)
    assert differing.exit_code == 1
    assert "lacks 1 row" in differing.stdout


def test_a_changed_file_is_planned_first_and_then_goes_on(spark: SparkSession, file: Path) -> None:
    new = everview_("run", file, "--dry-run")
    assert (new.exit_code, new.output) == (0, "the state is new: all is computed\n")
    assert json.loads(everview_("run", file, "--dry-run", "--json").output)["possible"]
    assert not (file.parent / "state").exists()
    everview_("run", file, "--once")
    counted = FILE.replace("SUM(amount) AS total", "COUNT(*) AS orders").replace("by_shop", "counted")
    counted = counted.replace("amount BIGINT", "amount DECIMAL(20,0), city STRING")
    file.write_text(counted)
    planned = everview_("run", file, "--dry-run")
    assert planned.exit_code == 0
    assert everview_("explain", file).output == planned.output  # which changes nothing either
    assert everview_("verify", file).exit_code == 2
    assert "view counted: new" in planned.output
    assert "view by_shop: dropped" in planned.output
    assert 'source orders: column "city" is new, NULL in the rows held; column "amount" was BIGINT' in planned.output
    assert everview_("run", file, "--once").exit_code == 0
    assert everview_("verify", file).exit_code == 0
    file.write_text(counted.replace("amount DECIMAL(20,0)", "amount INTEGER"))
    refused = everview_("run", file, "--dry-run")
    assert refused.exit_code == 1
    assert 'column "amount" is INTEGER, and the rows held have DECIMAL(20,0)' in refused.output.replace("\n", "")


def test_a_bad_row_in_a_stream_is_a_sentence(spark: SparkSession, file: Path) -> None:
    arrive(file.parent, '{"id": null, "shop": "[red]", "amount": 4}')
    ran = everview_("run", file)
    assert ran.exit_code == 1
    assert "error: source orders has 1 bad row" in ran.stderr
    assert "[red]" in ran.stderr, "what a row says is not taken for colours"
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") <= 3


def test_forever_needs_a_stream(spark: SparkSession, file: Path) -> None:
    file.write_text(FILE.replace("stream: true", "stream: false"))
    ran = everview_("run", "--forever", file)
    assert ran.exit_code == 1
    assert "no source is a stream" in ran.stderr


@pytest.mark.parametrize("command", ["run", "explain", "verify"])
def test_mistakes_are_sentences(tmp_path: Path, command: str) -> None:
    code = 2 if command == "verify" else 1
    absent = everview_(command, tmp_path / "p.yaml")
    assert absent.exit_code == code
    assert absent.stderr.startswith("error: there is no file")
    (tmp_path / "p.yaml").write_text(FILE.replace("shards", "shads"))
    unknown = everview_(command, tmp_path / "p.yaml")
    assert unknown.exit_code == code
    assert "p.yaml: shads: there is no such key" in unknown.stderr
    assert 'did you mean "shards"?' in unknown.stderr


def test_benchmarks_are_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(everview, "__file__", str(tmp_path / "src" / "everview" / "__init__.py"))
    absent = everview_("bench")
    assert absent.exit_code == 1
    assert "the benchmarks are in the repository" in absent.stderr
    (tmp_path / "benchmarks" / "run.py").write_text(
        f"import sys, json; open({str(tmp_path / 'told')!r}, 'w').write(json.dumps(sys.argv[1:])); sys.exit(3)"
    )
    assert everview_("bench", "--quick", "--only", "tails").exit_code == 3
    assert json.loads((tmp_path / "told").read_text()) == ["--quick", "--only", "tails"]
    assert everview_("bench", "--json", "--quick").exit_code == 3
    assert json.loads((tmp_path / "told").read_text()) == ["--quick", "--json"]


def test_benchmarks_without_the_peers_say_what_to_do(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "benchmarks"
    script = "import pathlib, run; run.require_peers(('views', 'tpch'), pathlib.Path('/nowhere/python'))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: tpch: these are measured beside peers, and there is no /nowhere/python\n")
    assert "hint: make bench installs them; or leave them out: --only scaling" in ran.stderr


def test_what_spark_says_otherwise() -> None:
    error = of_spark(ValueError("[PATH_NOT_FOUND] Path does not exist\nJVM stacktrace:\n\tat x"))
    assert isinstance(error, EverviewError)
    assert error.message == "[PATH_NOT_FOUND] Path does not exist"
