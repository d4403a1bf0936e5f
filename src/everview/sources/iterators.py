"""Python iterables as a feed of a table: of rows, of rows with weights, or of batches of rows.

>>> numbers = Iterator(lambda start: ((n, n * n) for n in range(start, 100)), "n BIGINT, square BIGINT")
>>> numbers.begin(); [step[:2] for step in numbers.read(2)]; numbers.position(); numbers.commit()
[('insert', [(0, 0), (1, 1)])]
'2'
"""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from everview.doors import doors
from everview.errors import LostPosition, SourceError
from everview.sources.feed import FeedStep
from everview.sources.protocol import Position
from everview.sources.values import keyed
from everview.types import COMPOSITE, Schema


@doors(SourceError)
class Iterator:
    """An iterable, or a function of how many items have been taken before that gives one.

    An item is a row (a tuple or a dict), a pair of a row and its weight, or a batch: a list of rows or of pairs, or a
    table or frame, which may have a ``_weight`` column. Only a function can be taken up after a restart.
    """

    def __init__(
        self,
        items: Iterable[Any] | Callable[[int], Iterable[Any]],
        schema: Schema | str,
        key: str | Sequence[str] = (),
    ) -> None:
        self.schema, columns, has_key = keyed(Schema.parse(schema) if isinstance(schema, str) else schema, key)
        self.key = columns if has_key else ()
        self.loads = False
        self._items = items
        self._left: abc.Iterator[Any] = self._from(0)
        self._taken = 0  # items, in all turns
        self._turn: list[Any] = []

    def begin(self) -> None:
        self._turn = []

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """The next items, at most ``limit``; without a limit, all that there are."""
        self._turn = []
        try:
            for item in islice(self._left, limit):
                self._turn.append(item)
        except Exception as error:
            if callable(self._items):
                self._left = self._again(self._taken + len(self._turn))
            hint = "what it gave before is not lost: it is taken in by the next turn"
            raise SourceError(f"the iterator raised {type(error).__name__}: {error}", hint=hint) from error
        return list(self._steps(self._turn))

    def position(self) -> Position:
        return Position(str(self._taken + len(self._turn)))

    def commit(self) -> None:
        self._taken, self._turn = self._taken + len(self._turn), []

    def rollback(self) -> None:
        self._left, self._turn = chain(self._turn, self._left), []

    def resume(self, position: Position) -> None:
        if not callable(self._items):
            hint = "give a function of the number of items that have been taken: Iterator(lambda start: ..., ...)"
            raise LostPosition("an iterator cannot be taken up where it was left", hint=hint)
        if not position.isdecimal():
            raise LostPosition("the position is not one of an iterator", hint="attach what was attached before")
        self._taken = int(position)
        self._left = self._from(self._taken)

    def settle(self, position: Position) -> None:
        """Do nothing: the function that was given knows what came before."""

    def close(self) -> None:
        """Take nothing more."""
        self._left = iter(())

    # -- inside

    def _again(self, start: int) -> abc.Iterator[Any]:
        """The items from a number on, asked for when they are needed."""
        yield from self._from(start)

    def _from(self, start: int) -> abc.Iterator[Any]:
        items: Any = self._items(start) if callable(self._items) else self._items
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise SourceError(f"{items!r} gives no rows", hint="give an iterable, or a function that returns one")
        return iter(items)

    def _steps(self, items: Iterable[Any]) -> Iterable[FeedStep]:
        """Steps of successive items of one kind."""
        waiting: list[Any] = []
        kind = ""
        for item in items:
            if self._is_batch(item):
                yield from self._ended(kind, waiting)
                yield FeedStep("apply" if self._is_weighted(item) else "insert", item)
                waiting, kind = [], ""
                continue
            its = "apply" if self._is_pair(item) else "insert"
            if its != kind:
                yield from self._ended(kind, waiting)
                waiting, kind = [], its
            waiting.append(item)
        yield from self._ended(kind, waiting)

    @staticmethod
    def _ended(kind: str, waiting: list[Any]) -> Iterable[FeedStep]:
        if waiting:
            yield FeedStep("apply" if kind == "apply" else "insert", waiting)

    @staticmethod
    def _is_batch(item: Any) -> bool:
        return not isinstance(item, tuple | Mapping)

    def _is_weighted(self, batch: Any) -> bool:
        """Whether a batch has weights: tables and frames say it by a column, lists by their first row."""
        if isinstance(batch, list):
            return bool(batch) and self._is_pair(batch[0])
        return True

    def _is_pair(self, item: Any) -> bool:
        """Whether an item is a pair of a row and its weight, not a row of two columns that begins with a list."""
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], tuple | list | Mapping):
            return False
        whole = isinstance(item[1], int) and not isinstance(item[1], bool)
        return whole and not (len(self.schema) == 2 and isinstance(self.schema[0].type, COMPOSITE))
