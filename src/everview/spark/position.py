"""The position of a state in the batches of a streaming query: is a batch new, a replay, or of another query?

Spark writes the offsets of a batch down before it runs it, and runs the batch again after a crash. The state knows the
query's id, the last batch it took in, and a digest of that batch's offsets. A batch with the next number is new; the
last one with the same offsets is a replay, and changes nothing. Everything else means that the two directories do not
belong together, and taking it in would lose or double changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everview.errors import ForeignState

HEAD = 2  # lines before the offsets of the streams: the version, and settings
SPARK = "spark"  # under which the offsets of a state have the position


@dataclass(frozen=True, slots=True)
class Position:
    """A batch of a streaming query."""

    query: str
    batch: int
    digest: str
    streams: tuple[str, ...]  # in the order in which Spark has their offsets
    # By how many streams there were, the digest of their offsets alone: a stream that was added has none yet.
    earlier: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, query: str, batch: int, checkpoint: Path, streams: tuple[str, ...]) -> Position:
        """The position of a batch under way, whose offsets Spark has written to its checkpoint."""
        path = checkpoint / "offsets" / str(batch)
        return cls(query, batch, _digest(path), streams, tuple(_digest(path, n) for n in range(len(streams) + 1)))

    @classmethod
    def known(cls, offsets: Mapping[str, Any]) -> Position | None:
        """The last batch that a state has taken in."""
        stored = offsets.get(SPARK)
        return (
            None
            if stored is None
            else cls(stored["query"], stored["batch"], stored["digest"], tuple(stored["streams"]))
        )

    def to_offsets(self) -> dict[str, Any]:
        streams = list(self.streams)
        return {SPARK: {"query": self.query, "batch": self.batch, "digest": self.digest, "streams": streams}}

    def is_replay_of(self, last: Position | None) -> bool:
        """Whether the state has this batch already; raises if the batch cannot be the next one either."""
        if last is None:
            if self.batch:
                raise ForeignState(
                    f"Spark's checkpoint is at batch {self.batch}, and the state has none of the batches before it",
                    hint="restore the state directory, or start both anew in an empty one",
                )
            return False
        if self.query != last.query:
            raise ForeignState(
                f"the state was fed by streaming query {last.query}, and this one is {self.query}: "
                "its checkpoint was lost or is another's, so the sources would be read again from their start",
                hint="restore the spark directory inside the checkpoint, or start both anew in an empty one",
            )
        if self.streams[: len(last.streams)] != last.streams:
            raise ForeignState(
                f"the state was fed by the streams {', '.join(last.streams)}, and now they are "
                f"{', '.join(self.streams)}: Spark would take the offsets of one for those of another",
                hint="keep the sources that are streams as they were, or start anew in an empty directory",
            )
        if self.batch == last.batch + 1:
            return False
        if self.is_batch(last):
            return True
        which = "older than" if self.batch <= last.batch else "ahead of"
        raise ForeignState(
            f"Spark's checkpoint is {which} the state: it runs batch {self.batch}, and the state has taken in "
            f"batch {last.batch}",
            hint="restore both from the same moment, or start both anew in an empty directory",
        )

    def is_batch(self, other: Position) -> bool:
        """Whether this is the same batch, perhaps with streams that were added since, and have brought nothing."""
        count = len(other.streams)
        known = (self.digest, *self.earlier[count : count + 1])
        return (self.query, self.batch) == (other.query, other.batch) and other.digest in known


def query_of(checkpoint: Path) -> str | None:
    """The id of the query that a checkpoint of Spark's belongs to, if it has one."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):  # none, or one that a crash cut short
        return None


def _digest(path: Path, streams: int | None = None) -> str:
    """The digest of the offsets of a batch: of all streams, or of the first few."""
    try:
        lines = path.read_bytes().split(b"\n")
        kept = lines if streams is None else lines[: HEAD + streams]
        return hashlib.blake2b(b"\n".join(kept), digest_size=16).hexdigest()
    except FileNotFoundError:
        return ""
