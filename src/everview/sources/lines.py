"""JSON lines as a feed of a table, from a file, standard input or any stream of text.

A line is an object with columns. It may have ``_weight``, how often the row is added or removed; or ``op``, which is
``insert``, ``delete`` or ``upsert`` (unless the table has a column of that name). A line that is not right is an error
that names it, and then nothing of the turn is taken in.

>>> import io
>>> lines = Lines(io.StringIO('{"id": 1, "n": 5}\\n{"op": "delete", "id": 2}\\n'), "id BIGINT, n BIGINT", "id")
>>> lines.begin(); [step[:2] for step in lines.read(10)]; lines.position(); lines.commit()
[('insert', [{'id': 1, 'n': 5}]), ('delete', [{'id': 2}])]
'2:0'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import Any, Final, Literal, TextIO

from everview.codes.coerce import Unfit, coerce
from everview.doors import doors, path_of
from everview.errors import BadRows, LostPosition, SourceError
from everview.sources.feed import FeedStep
from everview.sources.protocol import Position
from everview.sources.records import check_columns, one_object
from everview.sources.values import keyed
from everview.types import Schema

Kind = Literal["insert", "upsert", "delete", "apply"]
OPS: Final[dict[str, Kind]] = {"insert": "insert", "upsert": "upsert", "delete": "delete"}
WEIGHT: Final = "_weight"


@doors(SourceError)
class Lines:
    """A stream of text, or the path of a file. ``op`` needs a key for all but ``insert``.

    A file is taken up after a restart where it was left, and may have grown since. A stream is taken to go on: what it
    gives is new.
    """

    def __init__(self, stream: TextIO | str | Path, schema: Schema | str, key: str | Sequence[str] = ()) -> None:
        self.schema, columns, has_key = keyed(Schema.parse(schema) if isinstance(schema, str) else schema, key)
        self.key = columns if has_key else ()
        self.loads = False
        self._path = path_of(stream, SourceError) if isinstance(stream, str | Path) else None
        self._stream = stream if not isinstance(stream, str | Path) else None
        self._line, self._byte = 0, 0  # taken in all turns
        self._turn: list[str] = []
        self._left: list[str] = []  # of a turn that was rolled back

    def begin(self) -> None:
        self._turn = []

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """The next lines, at most ``limit``; without a limit, all until the stream ends."""
        again = self._left if limit is None else self._left[:limit]
        rest = None if limit is None else limit - len(again)
        self._turn = [*again, *self._next(rest)]
        self._left = self._left[len(again) :]
        return list(self._steps())

    def position(self) -> Position:
        size = sum(len(line.encode()) for line in self._turn) if self._path is not None else 0
        return Position(f"{self._line + len(self._turn)}:{self._byte + size}")

    def commit(self) -> None:
        line, byte = self.position().split(":")
        self._line, self._byte, self._turn = int(line), int(byte), []

    def rollback(self) -> None:
        # Of a file the lines are read again: whoever found a mistake there may have put it right.
        self._left = [] if self._path is not None else [*self._turn, *self._left]
        self._turn = []

    def resume(self, position: Position) -> None:
        try:
            line, byte = map(int, position.split(":"))
        except ValueError:
            raise LostPosition("the position is not one of lines", hint="attach what was attached before") from None
        if self._path is not None and self._path.exists():
            _require_grown(self._path, self._path.stat().st_size, byte)
        self._line, self._byte, self._left = line, byte, []

    def settle(self, position: Position) -> None:
        """Do nothing: a stream does not remember."""

    def close(self) -> None:
        """Do nothing: a stream is closed by whoever opened it."""

    # -- inside

    def _next(self, limit: int | None) -> list[str]:
        if self._stream is not None:
            return list(islice(self._stream, limit))
        assert self._path is not None
        try:
            with self._path.open("rb") as file:
                _require_grown(self._path, file.seek(0, SEEK_END), self._byte)
                file.seek(self._byte)
                lines = list(islice(file, limit))
        except OSError as error:
            raise SourceError(f"{self._path}: {error}", hint="give the path of a file of JSON lines") from error
        # A last line without an end may still be written.
        whole = (line for line in lines if line.endswith(b"\n"))
        return [_text(line, number) for number, line in enumerate(whole, self._line + 1)]

    def _steps(self) -> Iterator[FeedStep]:
        waiting: list[Any] = []
        kind: Kind = "insert"
        for number, line in enumerate(self._turn, self._line + 1):
            if not line.strip():
                continue
            its, row = self._read(line, number)
            if its != kind and waiting:
                yield FeedStep(kind, waiting)
                waiting = []
            kind = its
            waiting.append(row)
        if waiting:
            yield FeedStep(kind, waiting)

    def _read(self, line: str, number: int) -> tuple[Kind, Any]:
        row = one_object(line, number)
        weight = row.pop(WEIGHT, None) if WEIGHT not in self.schema else None
        op = row.pop("op", None) if "op" not in self.schema else None
        check_columns(self.schema, row, number)
        if op is None:
            self._require_fit(row, number)
            return ("insert", row) if weight is None else ("apply", (row, self._weight(weight, number)))
        kind = self._kind(op, weight, number)
        if kind == "delete":
            return kind, self._key_in(row, number)
        self._require_fit(row, number)
        return kind, row

    def _kind(self, op: Any, weight: Any, number: int) -> Kind:
        if not isinstance(op, str) or op not in OPS or weight is not None:
            hint = f"op is one of {', '.join(OPS)}, and then there is no {WEIGHT}"
            raise BadRows(f"line {number} has the op {op!r}", hint=hint)
        if op != "insert" and not self.key:
            raise BadRows(f"line {number}: {op} needs a key", hint="give one, or rows with _weight")
        return OPS[op]

    @staticmethod
    def _weight(weight: Any, number: int) -> int:
        if isinstance(weight, int) and not isinstance(weight, bool):
            return weight
        raise BadRows(f"line {number} has the weight {weight!r}", hint="a weight is a whole number")

    def _key_in(self, row: dict[str, Any], number: int) -> dict[str, Any]:
        lacking = [column for column in self.key if row.get(column) is None]
        if lacking:
            raise BadRows(f'line {number} does not say "{lacking[0]}"', hint=f"the key is {', '.join(self.key)}")
        return {column: row[column] for column in self.key}

    def _require_fit(self, row: dict[str, Any], number: int) -> None:
        for field in self.schema:
            value = row.get(field.name)
            if value is None and not field.nullable:
                raise BadRows(f'line {number} has no "{field.name}", which is NOT NULL', hint="give it a value")
            try:
                coerce(field.type, value)
            except Unfit as error:
                raise BadRows(f'line {number}, "{field.name}": {error.message}', hint=error.hint) from None


def _require_grown(path: Path, size: int, read: int) -> None:
    if size < read:
        hint = "it may only grow; to read it anew, drop the table and attach it again"
        raise LostPosition(f"{path} is shorter than what has been read of it", hint=hint)


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadRows(f"line {number} is no text: {error}", hint="lines are in UTF-8") from None
