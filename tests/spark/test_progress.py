"""Progress as data, as a table on a terminal and in a notebook, and line by line elsewhere."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

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
