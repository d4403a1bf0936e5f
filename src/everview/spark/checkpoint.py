"""Spark's own checkpoint in a state directory: mending what a crash cut short, and reading which files are planned.

Spark writes, for a streaming query: ``metadata`` with the query's id; ``offsets/N`` before batch N is run and
``commits/N`` after it; and ``sources/I/K``, which for a source of files says which files came with its offset K.
A crash may leave the last of them empty or cut, and Spark then fails at every start.

The state says which batch it has taken in last. Everything after that batch has not happened here, so a cut file about
it may go, and Spark plans anew; the state sees to it that the batch itself is not run twice. A cut file about what has
been read already cannot be mended: without it, rows would be read twice or never.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from py4j.java_gateway import JavaClass

from everview.errors import CorruptState, SourceError
from everview.spark.folders import local_path
from everview.spark.jvm import own_java
from everview.spark.position import HEAD, Position, query_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("everview.spark")

COMPACT = ".compact"
_VERSION = re.compile(r"v\d+")
MISSING = "spark.sql.files.ignoreMissingFiles"
FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
PLAIN_FILES: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


class Planned(NamedTuple):
    """A file that a batch is to read, and the name of its source."""

    source: str
    url: str


# -- writing


@contextmanager
def plain_local_files(spark: SparkSession) -> Generator[None]:
    """Let a query that starts inside the block write its checkpoint, which is on local disk, with few processes.

    By default Spark renames the files of a checkpoint through Hadoop's `FileContext`, which asks a process ``readlink``
    for every name before each rename: 24 processes a batch with one stream. Hadoop's `FileSystem` asks nobody. Unlike
    the other it does not notice a second writer between its look and its rename; the state lets in one writer only.
    What a user has set stays.
    """
    if spark.conf.get(FILE_MANAGER, None) is not None or not _knows_class(spark, PLAIN_FILES):
        yield
        return
    spark.conf.set(FILE_MANAGER, PLAIN_FILES)
    try:
        yield
    finally:
        spark.conf.unset(FILE_MANAGER)


def _knows_class(spark: SparkSession, name: str) -> bool:
    """Whether this version of Spark has a class: internal classes move between versions."""
    package: Any = own_java(spark, "a stream").jvm
    for part in name.split("."):
        package = getattr(package, part)
    return isinstance(package, JavaClass)


# -- mending


def mend(checkpoint: Path, last: Position | None) -> None:
    """Remove or restore files cut short by a crash, if the state, at ``last``, proves that nothing is lost.

    Without a last batch, nothing was taken in yet, so every cut file may go.
    """
    if not checkpoint.is_dir():
        return
    _mend_metadata(checkpoint, last)
    done = -1 if last is None else last.batch
    for path, batch in _numbered(checkpoint / "commits"):
        if batch >= done and _is_cut(path):
            _drop(path, f"batch {batch} is run again, and recognised if it has been taken in")
    read = _log_offsets(checkpoint, done)
    for directory in sorted((checkpoint / "sources").glob("*")):
        place = int(directory.name) if directory.name.isdigit() else -1
        for path, offset in _numbered(directory):
            if _is_cut(path, lines=2 if place in _log_offsets(checkpoint, None) else 1):
                if done >= 0 and offset <= read.get(place, offset):
                    raise _lost(path)
                _drop(path, "the source is asked again")
                _drop_later(checkpoint, done)
    for path, batch in _numbered(checkpoint / "offsets"):
        if _is_cut(path, lines=HEAD + _sources(checkpoint)):
            if batch == done:
                raise _lost(path)
            if batch > done:
                _drop(path, f"batch {batch} is planned anew")


def _mend_metadata(checkpoint: Path, last: Position | None) -> None:
    """Restore the id of the query, without which Spark does not start where there are offsets.

    The state knows the id, and tells by the offsets of its last batch whether this is the checkpoint of that query.
    """
    if query_of(checkpoint) is not None:
        return
    path = checkpoint / "metadata"
    if last is not None and not Position.of(last.query, last.batch, checkpoint, last.streams).is_batch(last):
        return  # another query's, which is refused
    _drop(path, "the query has a new id" if last is None else "the state knows the query's id")
    if _numbered(checkpoint / "offsets"):
        path.write_text(json.dumps({"id": str(uuid4()) if last is None else last.query}))


def make_room(checkpoint: Path, streams: int) -> None:
    """Let Spark go on with more streams than its checkpoint knows: those that are new have no offsets yet.

    Spark reads the last two batches when it starts, and refuses them if they are of another number of streams. What it
    writes for a stream that has brought nothing is a line with a dash. Repeating this changes nothing.
    """
    for path, _ in _numbered(checkpoint / "offsets")[-2:]:
        lines = path.read_text().split("\n")
        missing = HEAD + streams - len(lines)
        if missing > 0:
            written = path.with_name(f".{path.name}.writing")
            written.write_text("\n".join([*lines, *["-"] * missing]))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # it is of the file that is replaced
            written.replace(path)


def _drop_later(checkpoint: Path, done: int) -> None:
    for path, batch in _numbered(checkpoint / "offsets"):
        if batch > done:
            _drop(path, f"batch {batch} is planned anew")


def _drop(path: Path, why: str) -> None:
    """Remove a file of Spark's and the checksum that Hadoop keeps beside it."""
    if path.exists():
        log.warning("%s was cut short by a crash and is removed: %s", path, why)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _lost(path: Path) -> CorruptState:
    return CorruptState(
        f"{path} is damaged: it says what Spark has read already",
        hint="restore the state directory with its spark directory from one moment, or start anew in an empty one",
    )


def _is_cut(path: Path, lines: int = 1) -> bool:
    """Whether a log is cut: it lacks the version or a line, or a line that begins as JSON does not end so."""
    written = path.read_text(errors="replace").lstrip("\0").splitlines()
    if len(written) < lines or not written or not _VERSION.fullmatch(written[0]):
        return True
    return any(line[:1] in ("{", "[") and not _is_json(line) for line in written[1:])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _numbered(directory: Path) -> list[tuple[Path, int]]:
    """The files of a log of Spark's and their numbers, oldest first."""
    named = [(path, path.name.removesuffix(COMPACT)) for path in directory.glob("*")]
    return sorted(((path, int(number)) for path, number in named if number.isdigit()), key=lambda each: each[1])


def _sources(checkpoint: Path) -> int:
    """The number of sources with a log of what they read; some never have one."""
    return sum(1 for directory in (checkpoint / "sources").glob("*") if directory.name.isdigit())


# -- what batches read


def _log_offsets(checkpoint: Path, batch: int | None) -> dict[int, int]:
    """The offsets of sources of files in their logs after a batch, by place; None means the last readable batch."""
    if batch is None:
        every = [path for path, _ in _numbered(checkpoint / "offsets") if not _is_cut(path)]
        if not every:
            return {}
        path = every[-1]
    else:
        path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text().splitlines()[2:]
    except OSError:
        return {}
    offsets = {place: _log_offset(line) for place, line in enumerate(lines)}
    return {place: offset for place, offset in offsets.items() if offset is not None}


def _log_offset(line: str) -> int | None:
    """The offset of a source of files; None for any other."""
    try:
        offset: Any = json.loads(line)
    except ValueError:
        return None
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else None


def planned(checkpoint: Path, batch: int, streams: Sequence[str]) -> Iterator[Planned]:
    """The files that a batch is to read, for sources that are files."""
    before = _log_offsets(checkpoint, batch - 1) if batch else {}
    for place, until in _log_offsets(checkpoint, batch).items():
        if place < len(streams):
            since = before.get(place, -1)
            for url in _files(checkpoint / "sources" / str(place), since, until):
                yield Planned(streams[place], url)


def _files(directory: Path, since: int, until: int) -> Iterator[str]:
    """The files that a log lists after one offset and up to another; a compacted log lists earlier files, too."""
    for path, offset in _numbered(directory):
        if since < offset <= until:
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                if entry.get("batchId", offset) == offset:
                    yield entry["path"]


def require_planned(spark: SparkSession, checkpoint: Path, batch: int, streams: Sequence[str]) -> None:
    """Refuse a batch of which a file was deleted: Spark would leave its rows out without a word."""
    if spark.conf.get(MISSING, "false") == "true":
        return
    exists = _exists_for(spark)
    gone = [file for file in planned(checkpoint, batch, streams) if not exists(file.url)]
    if gone:
        more = f", and {len(gone) - 1} more," if len(gone) > 1 else ""
        raise SourceError(
            f"source {gone[0].source}: file {gone[0].url}{more} was deleted before it was read",
            hint=f"put it back and start again; nothing was applied. To go on without its rows: SET {MISSING} = true",
        )


def _exists_for(spark: SparkSession) -> Callable[[str], bool]:
    def exists(url: str) -> bool:
        local = local_path(url)
        if local is not None:
            return local.exists()
        java = own_java(spark, "a stream of files in an object store")
        path = java.jvm.org.apache.hadoop.fs.Path(java.jvm.java.net.URI(url))
        return bool(path.getFileSystem(java.hadoop).exists(path))

    return exists
