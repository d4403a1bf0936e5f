"""Progress as metrics in Prometheus' text format, and a small server that a Prometheus can ask.

Counters cover the epochs of this process; a restart begins at zero, as Prometheus expects of counters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from everview.blocks import Closing
from everview.exposition import CONTENT_TYPE, by_label, metric
from everview.spark.progress import ProgressLog


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
        yield from metric("epoch", "gauge", "The last epoch that is committed.", last.epoch)
        yield from by_label(
            "last_epoch_seconds", "gauge", "Seconds that the last epoch took, by step.", "step", last.times
        )
        yield from metric("state_bytes", "gauge", "Bytes of the state.", last.state_bytes)
        yield from metric("trace_rows", "gauge", "Rows that traces hold.", last.trace_rows)
        yield from metric("last_epoch_timestamp_seconds", "gauge", "When the last epoch ended.", sums.ended)
    yield from metric("delivered_epoch", "gauge", "The last epoch that all sinks are known to have.", delivered)
    yield from by_label("epochs_total", "counter", "Epochs, by where they ran.", "placement", sums.epochs)
    yield from by_label("epoch_seconds_total", "counter", "Seconds of epochs, by step.", "step", sums.seconds)
    yield from by_label("rows_in_total", "counter", "Changed rows that came in.", "source", sums.rows_in)
    yield from by_label("rows_out_total", "counter", "Changed rows of views.", "view", sums.rows_out)
    yield from metric("bad_rows_total", "counter", "Rows that were set aside.", sums.bad_rows)


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
