"""The explorer of an owner: its page, and the circuit and the ticks that the page shows as they are."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from everview.drawings.layout import PlacedDiagram, laid_out
from everview.errors import EverviewError
from everview.serve.explorer.folding import FoldedCircuit, FoldedDrawing
from everview.serve.explorer.pages import PageFiles
from everview.serve.explorer.ticks import epochs_after
from everview.serve.explorer.work import CircuitWork, end_times, work_by_box, work_of

if TYPE_CHECKING:
    from everview.database import Database
    from everview.serve.owner import Owner

FRESH: Final = 0.4  # seconds for which the work of nodes is told as it was read
IDLE: Final = 5.0  # seconds without a look after which times of nodes are taken no more
DRAWN: Final = 32  # drawings that are remembered
NOTED: Final = 10_000  # epochs of a pipeline whose rows are summed
Drawn = tuple[str, FoldedDrawing, PlacedDiagram]


class Explorer:
    """What the page of an owner needs beyond rows and queries. `work` is for the server's loop."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.pages = PageFiles()
        self._folded: FoldedCircuit | None = None
        self._drawn: OrderedDict[tuple[tuple[str, ...], str], Drawn] = OrderedDict()
        self._circuits = secrets.token_hex(4), 0  # names the circuit at hand, unlike that of any other server
        self._drawing = threading.RLock()
        self._catalog: Any = None
        self._definitions = 0
        self._work: CircuitWork | None = None
        self._read_at = self._looked_at = 0.0
        self._timing = False
        self._reading = asyncio.Lock()

    # -- ticks

    def pulse(self, after: float) -> dict[str, Any]:
        """What a page asks for every second: the epoch, the ticks since one, and whether definitions have changed.

        The epochs of a pipeline are read from its directory, so it is for a reader's thread.
        """
        snapshot = self._owner.snapshot
        ticks = epochs_after(self._owner.epochs, after, snapshot.epoch)
        if snapshot.catalog is not self._catalog:
            self._catalog = snapshot.catalog
            self._definitions += 1
        return {
            "epoch": snapshot.epoch,
            "definitions": self._definitions,
            "read_only": self._owner.read_only,
            "ticks": ticks,
            "last": ticks[-1]["number"] if ticks else after,
        }

    # -- the circuit

    def drawing(self, opened: tuple[str, ...], focus: str) -> Drawn:
        """The circuit folded and laid out, with a name that is another one if the picture is; for a reader's thread."""
        with self._drawing:
            folded = self.folded()
            known = self._drawn.get((opened, focus))
            if known is None:
                drawing = folded.drawing(opened, focus)
                name = hashlib.sha256(repr((self._circuits, sorted(drawing.opened), focus)).encode()).hexdigest()[:12]
                known = self._drawn[opened, focus] = name, drawing, laid_out(drawing.diagram)
                if len(self._drawn) > DRAWN:
                    self._drawn.popitem(last=False)
            return known

    def folded(self) -> FoldedCircuit:
        """The circuit of now, with the home of each node."""
        with self._drawing:
            shown = self._owner.model() or self._owner.snapshot
            circuit, folded = shown.program.circuit, self._folded
            if folded is None or folded.circuit is not circuit:
                self._folded = folded = FoldedCircuit(circuit, shown.catalog)
                self._circuits = self._circuits[0], self._circuits[1] + 1
                self._drawn.clear()
            return folded

    async def work(self) -> CircuitWork:
        """The work of nodes, at most so old; times are taken from now on, until nobody looks any more."""
        self._looked_at = monotonic()
        if not self._timing:
            self._timing = True
            asyncio.get_running_loop().call_later(IDLE, self._look_away)
        async with self._reading:
            if self._work is None or monotonic() - self._read_at > FRESH:
                before = self._work
                task = self._owner.submit(lambda database: self._work_of(database, before))
                self._work = await asyncio.wrap_future(task)
                self._read_at = monotonic()
        return self._work

    def _work_of(self, database: Database, before: CircuitWork | None) -> CircuitWork:
        model = self._owner.model()
        return work_of(database, before) if model is None else model.work(database, self._owner.epochs(NOTED))

    def told(self, work: CircuitWork, drawing: FoldedDrawing) -> dict[str, dict[str, Any]]:
        """The work of each box of a drawing; nothing if the circuit is another one by now."""
        folded = self.folded()
        return work_by_box(work, folded, drawing.seen) if folded.circuit is work.program.circuit else {}

    def _look_away(self) -> None:
        left = self._looked_at + IDLE - monotonic()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._look_away)
            return
        self._timing = False
        try:
            self._owner.submit(_end)
        except EverviewError:  # the server stops
            return


def _end(database: Database) -> None:
    end_times(database)
