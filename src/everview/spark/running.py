"""Running a pipeline from the command line: it shows epochs as they come, until all is read or it is stopped."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from rich.console import Console

from everview.spark.files import opened
from everview.spark.pipeline import Pipeline
from everview.spark.progress import JsonEpochs, LiveTable, ProgressLog
from everview.stopping import Stop

ONCE: Final = "availableNow"
FOREVER: Final = {"processingTime": "1 second"}


def run(
    file: Path, state: Path | None, once: bool | None, console: Console, stop: Stop, *, as_json: bool = False
) -> ProgressLog:
    """Take in all that is there by now, or follow the streams if the trigger does not end, and show the epochs.

    With ``once`` None the file decides. Asked to stop, the run ends after the epoch under way. ``as_json`` shows each
    epoch as a line of JSON. What it gives are the epochs of this run.
    """
    with opened(file, state) as opening:
        pipeline = opening.pipeline
        trigger = None if once else opening.trigger
        if once is False and (trigger is None or ONCE in trigger):
            trigger = FOREVER
        stop.end, stop.endless = pipeline.stop, trigger is not None and ONCE not in trigger
        if stop:
            return pipeline.progress
        epochs = JsonEpochs(console) if as_json else LiveTable(tuple(pipeline.circuit.sinks), console=console)
        with Shown(pipeline, epochs, stop):
            if stop.endless:
                query = pipeline.start(trigger=trigger)
                if not stop:
                    query.awaitTermination()
            else:
                pipeline.refresh()
        nothing = "" if pipeline.progress else ": nothing was new"
        stop.said = f"epoch {pipeline.epoch}{nothing}"
        return pipeline.progress


class Shown:
    """The epochs of a pipeline, shown as they come while it runs."""

    def __init__(self, pipeline: Pipeline, epochs: LiveTable | JsonEpochs, stop: Stop) -> None:
        self._pipeline, self._live, self._stop = pipeline, epochs, stop
        self._lock = threading.Lock()

    def __enter__(self) -> Shown:
        self._live.__enter__()
        self._stop.look, self._stop.close = self.look, self.close
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def look(self) -> None:
        """Show the epochs that are new."""
        with self._lock:
            for done in self._pipeline.progress[len(self._live.done) :]:
                self._live.add(done)
                self._stop.said = f"epoch {done.epoch}"

    def close(self) -> None:
        """Show the last epochs, and give the terminal back."""
        self.look()
        self._stop.look = self._stop.close = lambda: None
        self._live.__exit__(None, None, None)
