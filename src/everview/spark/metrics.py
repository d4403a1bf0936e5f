"""Progress as metrics in Prometheus' text format, and a small server that a Prometheus can ask.

Counters cover the epochs of this process; a restart begins at zero, as Prometheus expects of counters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Literal

from everview.blocks import Closing
from everview.spark.progress import ProgressLog

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["counter", "gauge"]
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def metrics(progress: ProgressLog, *, delivered: int) -> str:
    """The metrics of a pipeline; ``delivered`` is the last epoch that its sinks are known to have.

    >>> from everview.spark.progress import Progress
    >>> log = ProgressLog()
    >>> log.append(Progress(7, 3, {"transfer": 1000}, {"exposure": 12}, {"total": 0.25}, "driver", "small"))
    >>> print(metrics(log, delivered=7))
    # HELP everview_epoch The last epoch that is committed.
    # TYPE everview_epoch gauge
    everview_epoch 7
    ...
    # HELP everview_rows_in_total Changed rows that came in.
    # TYPE everview_rows_in_total counter
    everview_rows_in_total{source="transfer"} 1000
    ...
    """
    return "".join(_lines(progress, delivered))


def _lines(progress: ProgressLog, delivered: int) -> Iterator[str]:
    sums, last = progress.totals, progress[-1] if progress else None
    if last is not None:
        yield from _metric("epoch", "gauge", "The last epoch that is committed.", last.epoch)
        yield from _by("last_epoch_seconds", "gauge", "Seconds that the last epoch took, by step.", "step", last.times)
        yield from _metric("state_bytes", "gauge", "Bytes of the state.", last.state_bytes)
        yield from _metric("trace_rows", "gauge", "Rows that traces hold.", last.trace_rows)
        yield from _metric("last_epoch_timestamp_seconds", "gauge", "When the last epoch ended.", sums.ended)
    yield from _metric("delivered_epoch", "gauge", "The last epoch that all sinks are known to have.", delivered)
    yield from _by("epochs_total", "counter", "Epochs, by where they ran.", "placement", sums.epochs)
    yield from _by("epoch_seconds_total", "counter", "Seconds of epochs, by step.", "step", sums.seconds)
    yield from _by("rows_in_total", "counter", "Changed rows that came in.", "source", sums.rows_in)
    yield from _by("rows_out_total", "counter", "Changed rows of views.", "view", sums.rows_out)
    yield from _metric("bad_rows_total", "counter", "Rows that were set aside.", sums.bad_rows)


def _metric(name: str, kind: Kind, help_: str, value: float) -> Iterator[str]:
    yield from _head(name, kind, help_)
    yield f"everview_{name} {_number(value)}\n"


def _by(name: str, kind: Kind, help_: str, label: str, values: Mapping[str, float]) -> Iterator[str]:
    yield from _head(name, kind, help_)
    for key, value in dict(values).items():  # a copy, as an epoch may end meanwhile
        yield f'everview_{name}{{{label}="{key.translate(_ESCAPED)}"}} {_number(value)}\n'


def _head(name: str, kind: Kind, help_: str) -> Iterator[str]:
    yield f"# HELP everview_{name} {help_}\n# TYPE everview_{name} {kind}\n"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"


class MetricsServer(Closing):
    """A server of ``/metrics``, on loopback unless told otherwise; port 0 takes one that is free, see ``port``.

    ```python
    with MetricsServer(p.metrics, port=9400):
        p.start().awaitTermination()
    ```
    """

    def __init__(self, text: Callable[[], str], *, port: int, host: str = "127.0.0.1") -> None:
        class Handler(BaseHTTPRequestHandler):
            """Answers one request."""

            def do_GET(self) -> None:
                known = self.path.partition("?")[0] == "/metrics"
                body = text().encode() if known else b"the metrics are at /metrics\n"
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing of each request."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="everview-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
