"""The progress of epochs: rows, times and places of each, as data and as a table."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from time import perf_counter, time
from types import TracebackType
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.status import Status
from rich.table import Column, Table

STEPS: Final = ("fetch", "tick", "commit", "sinks", "total")
SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """One epoch: rows by source and by view, seconds by step, and where it ran, with the reason.

    >>> done = Progress(7, 3, {"transfer": 1000}, {"exposure": 12}, {"tick": 0.004, "total": 0.2}, "driver", "small")
    >>> done.changes_in, done.changes_out, done.milliseconds("tick")
    (1000, 12, 4.0)
    """

    epoch: int
    batch: int | None  # of the streaming query; None for a refresh
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    times: Mapping[str, float]
    placement: str
    reason: str
    state_bytes: int = 0
    trace_rows: int = 0
    bad_rows: int = 0
    recomputed: tuple[str, ...] = ()  # views that Spark has computed in full

    @property
    def changes_in(self) -> int:
        return sum(self.rows_in.values())

    @property
    def changes_out(self) -> int:
        return sum(self.rows_out.values())

    def milliseconds(self, step: str) -> float:
        return 1000 * self.times.get(step, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The progress as plain values, for JSON."""
        return asdict(self) | {
            "rows_in": dict(self.rows_in),
            "rows_out": dict(self.rows_out),
            "times": dict(self.times),
            "recomputed": list(self.recomputed),
        }


@dataclass(slots=True)
class Totals:
    """Sums over all epochs of a process, also those that its log has dropped."""

    epochs: Counter[str] = field(default_factory=Counter[str])  # by where they ran
    rows_in: Counter[str] = field(default_factory=Counter[str])
    rows_out: Counter[str] = field(default_factory=Counter[str])
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))  # by step
    bad_rows: int = 0
    ended: float = 0.0  # when the last epoch ended, in seconds since 1970

    def add(self, done: Progress) -> None:
        self.epochs[done.placement] += 1
        self.rows_in.update(done.rows_in)
        self.rows_out.update(done.rows_out)
        for step, seconds in done.times.items():
            self.seconds[step] += seconds
        self.bad_rows += done.bad_rows
        self.ended = time()


class ProgressLog(list[Progress]):
    """The epochs of a pipeline, oldest first; a notebook shows the last of them as a table."""

    def __init__(self, epochs: Iterable[Progress] = ()) -> None:
        super().__init__()
        self.totals = Totals()
        for done in epochs:
            self.append(done)

    def append(self, done: Progress) -> None:
        self.totals.add(done)
        super().append(done)

    def to_svg(self) -> str:
        """The times of ticks and of whole epochs, and where each ran, as an SVG picture."""
        return epochs_svg(self)

    def _repr_html_(self) -> str:
        shown = self[-SHOWN:]
        header, *rows = [_header(shown), *_lines(shown, _views(shown))]
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{len(self) - SHOWN} earlier ones are not shown</p>" if len(self) > SHOWN else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"


class LiveTable:
    """A table that grows by a line an epoch, while a pipeline runs.

    On a terminal the last epochs stay in view; elsewhere every epoch is a line of text, as it comes.

    >>> with LiveTable(["exposure"], console=Console(width=60)) as live:
    ...     live.add(Progress(1, 0, {"transfer": 9}, {"exposure": 2}, {"tick": 0.001, "total": 0.1}, "driver", ""))
    epoch  changes in  exposure  tick ms  total ms  placement
        1           9         2      1.0       100  driver
    """

    def __init__(self, views: Sequence[str] = (), *, console: Console | None = None, shown: int = 30) -> None:
        self.views = tuple(views)
        self.console = console or Console()
        self.shown = shown
        self.done: list[Progress] = []
        self._live: Live | None = None

    def __enter__(self) -> LiveTable:
        if self.console.is_terminal:
            self._live = Live(self._table(), console=self.console, refresh_per_second=8)
            self._live.__enter__()
        else:
            self._line(_header((), self.views))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def add(self, done: Progress) -> None:
        """Show one more epoch."""
        self.done.append(done)
        if self._live is not None:
            self._live.update(self._table())
        else:
            self._line(*_lines([done], self.views))

    def _table(self) -> Table:
        return table(self.done[-self.shown :], self.views)

    def _line(self, cells: Sequence[str]) -> None:
        names = _header((), self.views)
        last = len(names) - 1
        aligned = [
            cell.rjust(max(len(name), 5)) if place < last else cell
            for place, (name, cell) in enumerate(zip(names, cells, strict=True))
        ]
        self.console.print("  ".join(aligned), soft_wrap=True, highlight=False, markup=False)


def epochs_svg(progress: Sequence[Progress]) -> str:
    """The milliseconds of each epoch and of its tick as a chart, over a strip that shows where it ran.

    >>> done = Progress(7, 3, {}, {}, {"tick": 0.004, "total": 0.2}, "driver", "small")
    >>> "epoch 7" in epochs_svg([done]), ">driver<" in epochs_svg([done])
    (True, True)
    """
    from everview.drawings.chart import Series, Strip, chart

    series = [
        Series(name, tuple((done.epoch, done.milliseconds(step)) for done in progress if done.times.get(step)))
        for name, step in (("whole epoch", "total"), ("its tick", "tick"))
    ]
    ends = sorted({done.epoch for done in (*progress[:1], *progress[-1:])})
    title = f"epoch{'s' * (len(ends) > 1)} {' to '.join(map(str, ends))}: how long, and where"
    return chart(title, "epoch", "ms", series, Strip(tuple(done.placement for done in progress)))


class JsonEpochs:
    """Epochs as lines of JSON, each as it comes, for other programs: in the place of a `LiveTable`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done: list[Progress] = []

    def __enter__(self) -> JsonEpochs:
        return self

    def __exit__(self, *error: object) -> None:
        """Every line was printed when it came."""

    def add(self, done: Progress) -> None:
        """Print one more epoch."""
        self.done.append(done)
        print_json(self.console, done.to_dict())


def print_json(console: Console, said: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON."""
    line = json.dumps(said, ensure_ascii=False, default=str)
    console.print(line, soft_wrap=True, highlight=False, markup=False)


def table(progress: Sequence[Progress], views: Sequence[str] | None = None) -> Table:
    """Epochs as a table for the terminal; a column for every view, or for the ones named."""
    views = _views(progress) if views is None else views
    *figures, placement = _header(progress, views)
    drawn = Table(*(Column(name, justify="right") for name in figures), Column(placement), box=None, pad_edge=False)
    for cells in _lines(progress, views):
        drawn.add_row(*cells)
    return drawn


def _views(progress: Sequence[Progress]) -> list[str]:
    return list(dict.fromkeys(view for done in progress for view in done.rows_out))


def _header(progress: Sequence[Progress], views: Sequence[str] | None = None) -> list[str]:
    views = _views(progress) if views is None else views
    return ["epoch", "changes in", *views, "tick ms", "total ms", "placement"]


def _lines(progress: Sequence[Progress], views: Sequence[str]) -> list[list[str]]:
    return [
        [
            str(done.epoch),
            f"{done.changes_in:,}",
            *(f"{done.rows_out.get(view, 0):,}" for view in views),
            f"{done.milliseconds('tick'):,.1f}",
            f"{done.milliseconds('total'):,.0f}",
            done.placement,
        ]
        for done in progress
    ]


class ProgressLine:
    """One line on a terminal that names the step under way."""

    def __init__(self, *, shown: bool) -> None:
        self._console = Console(stderr=True)
        self._shown = shown and self._console.is_terminal and not self._console.is_dumb_terminal
        self._status: Status | None = None
        self._began = perf_counter()

    def update(self, step: str) -> None:
        if not self._shown:
            return
        elapsed = perf_counter() - self._began
        text = f"{step} ({elapsed:.0f} s)" if elapsed >= 1 else step
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
