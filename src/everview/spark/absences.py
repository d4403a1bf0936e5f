"""Sinks that were away: a definition that ran without a sink has let epochs pass which the sink has not got.

The state notes which sinks it has, and of one that is gone the last epoch that it got. When such a sink is there again,
it gets what its view has changed since then, as one change under the number of the epoch that the state is at. So the
sum of its changes is what it would be if it had never been away. Callbacks are called from then on, as ever.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from everview.errors import SinkError
from everview.spark.folders import Folder
from everview.spark.sinks import SinkSpec

NOTED: Final = "away"  # the file of a state that has its sinks, and since when some are away
_ANEW: Final = 'give the sink another place, with begin="snapshot"; the old one stays as it is'


@dataclass(frozen=True, slots=True)
class Absence:
    """The absence of a sink after the epoch ``since``; the missed changes are delivered under the epoch ``at``."""

    since: int
    sure: bool = True  # whether it is known that it has that epoch, and none after it
    at: int | None = None


class Absences:
    """The sinks of a state, and which of them are away or have come back."""

    def __init__(self, notes: Folder) -> None:
        self._notes = notes
        self._known: dict[str, Absence | None] | None = None  # by sink; read when it is first needed

    def reread(self) -> None:
        """Read the notes again when they are next needed."""
        self._known = None

    def look(self, sinks: Sequence[SinkSpec], epoch: int, *, delivered: int) -> None:
        """Note who is there at an epoch; ``delivered`` is the last one that all sinks are known to have."""
        here = {sink.target for sink in sinks if sink.callback is None}
        known = self._all()
        if not epoch or (here == known.keys() and not any(known.values())):
            return
        away = Absence(delivered, sure=delivered == epoch)
        noted = {target: known[target] or away for target in known.keys() - here}
        noted |= {target: self._still(known.get(target), epoch) for target in here}
        if noted != known:
            self._write(noted)

    @staticmethod
    def _still(absence: Absence | None, epoch: int) -> Absence | None:
        """The absence of a sink that is there again; none if it has missed nothing."""
        return None if absence == Absence(epoch) else absence

    def of(self, sink: SinkSpec) -> Absence | None:
        """The absence of a sink that is back and has not caught up yet; None for others."""
        return None if sink.callback is not None else self._all().get(sink.target)

    def begin(self, sink: SinkSpec, absence: Absence, epoch: int) -> None:
        """Note that a sink is about to catch up; refused if the epochs that it has are not known."""
        if not absence.sure or absence.at not in (None, epoch):
            raise missed(sink, absence, "was not sure to have all of it")
        self._write({**self._all(), sink.target: Absence(absence.since, at=epoch)})

    def end(self, sink: SinkSpec) -> None:
        """Note that a sink has caught up."""
        self._write({**self._all(), sink.target: None})

    def _all(self) -> dict[str, Absence | None]:
        if self._known is None:
            said = json.loads(self._notes.read(NOTED) or b"{}")
            self._known = {target: None if each is None else Absence(*each) for target, each in said.items()}
        return self._known

    def _write(self, noted: dict[str, Absence | None]) -> None:
        said = {target: None if each is None else (each.since, each.sure, each.at) for target, each in noted.items()}
        self._notes.write(NOTED, json.dumps(said).encode())
        self._known = noted


def missed(sink: SinkSpec, absence: Absence, why: str) -> SinkError:
    """The error of a sink whose missed changes cannot be delivered."""
    return SinkError(
        f"the pipeline ran without this sink after epoch {absence.since}, and it {why}: {sink}", hint=_ANEW
    )
