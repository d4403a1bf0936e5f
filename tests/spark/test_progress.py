"""Progress as data, as a table on a terminal and in a notebook, and line by line elsewhere."""

from __future__ import annotations

import io
import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from rich.console import Console

from everview.spark.metrics import MetricsServer, metrics
from everview.spark.progress import LiveTable, Progress, ProgressLog, table


def done(epoch: int, **out: int) -> Progress:
    times = {"fetch": 0.01, "tick": 0.0123, "commit": 0.02, "sinks": 0.0, "total": 0.5}
    return Progress(epoch, None, {"t": 1000, "a": 200}, out, times, "driver", "few rows", 4096, 77, 1)


def text(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None)


def test_progress_is_data() -> None:
    found = done(3, v=2).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["epoch"] == 3
    assert found["batch"] is None
    assert found["times"]["tick"] == 0.0123
    assert found["bad_rows"] == 1


def test_progress_never_changes() -> None:
    with pytest.raises(AttributeError):
        done(1).epoch = 2  # type: ignore[misc]


def test_a_table_has_a_column_for_every_view() -> None:
    out = console(terminal=False)
    out.print(table([done(1, v=2), done(2, v=0, w=12345)]))
    assert text(out) == [
        "epoch  changes in  v       w  tick ms  total ms  placement",
        "    1       1,200  2       0     12.3       500  driver",
        "    2       1,200  0  12,345     12.3       500  driver",
    ]


def test_a_notebook_shows_the_last_epochs() -> None:
    html = ProgressLog(done(n, **{"<v>": n}) for n in range(1, 61))._repr_html_()
    assert html.count("<tr>") == 51
    assert "<th>&lt;v&gt;</th>" in html
    assert "10 earlier ones" in html
    assert "<table>" in ProgressLog()._repr_html_()


def test_lines_where_there_is_no_terminal() -> None:
    out = console(terminal=False)
    with LiveTable(["v"], console=out) as live:
        live.add(done(1, v=2))
        live.add(done(2, v=3))
    assert text(out) == [
        "epoch  changes in      v  tick ms  total ms  placement",
        "    1       1,200      2     12.3       500  driver",
        "    2       1,200      3     12.3       500  driver",
    ]


def test_the_last_epochs_on_a_terminal() -> None:
    out = console(terminal=True)
    with LiveTable(["v"], console=out, shown=2) as live:
        for epoch in (1, 2, 3):
            live.add(done(epoch, v=epoch))
    drawn = "\n".join(text(out)).split("epoch")[-1]  # the last of the drawings
    assert [line.split()[0] for line in drawn.splitlines()[1:3]] == ["2", "3"]


def test_metrics_are_told_to_whoever_asks() -> None:
    log = ProgressLog()
    first = Progress(1, 0, {"t": 5}, {'v"': 2}, {"tick": 0.5, "total": 1.0}, "driver", "few", 100, 7, 1)
    for done in (first, Progress(2, 1, {"t": 3}, {}, {"tick": 0.25, "total": 0.5}, "cluster", "many", 200, 9, 0)):
        log.append(done)
    del log[:-1]  # what is dropped from the log stays in the sums
    with MetricsServer(lambda: metrics(log, delivered=1), port=0) as server:
        with urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = answer.read().decode().splitlines()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{server.port}/")
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(told.pop("everview_last_epoch_timestamp_seconds")) > 0
    assert told == {
        "everview_epoch": "2",
        'everview_last_epoch_seconds{step="tick"}': "0.250000",
        'everview_last_epoch_seconds{step="total"}': "0.500000",
        "everview_state_bytes": "200",
        "everview_trace_rows": "9",
        "everview_delivered_epoch": "1",
        'everview_epochs_total{placement="driver"}': "1",
        'everview_epochs_total{placement="cluster"}': "1",
        'everview_epoch_seconds_total{step="tick"}': "0.750000",
        'everview_epoch_seconds_total{step="total"}': "1.500000",
        'everview_rows_in_total{source="t"}': "8",
        'everview_rows_out_total{view="v\\""}': "2",
        "everview_bad_rows_total": "1",
    }
    helped = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(helped) == len(set(helped)) == 11
