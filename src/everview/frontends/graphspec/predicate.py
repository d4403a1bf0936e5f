"""A pointwise predicate as a function over columns: how operators ask a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from everview.codes import to_rows
from everview.errors import EverviewError, ProviderError
from everview.frontends.graphspec.tuples import TUPLES, Row, Tuples, key_of
from everview.types import Schema

T = TypeVar("T")
Asked = Callable[[Tuples], Iterable[Row]]


def guarded(what: str, call: str, ask: Callable[[], T]) -> T:
    """A provider's answer to a call; whatever it raises is an error that names the node and the relation."""
    try:
        return ask()
    except EverviewError as error:
        raise ProviderError(f"{what}: {call}: {error.message}", hint=error.hint) from error
    except Exception as error:
        raise ProviderError(
            f"{what}: {call} raised {type(error).__name__}: {error}",
            hint="nothing was applied; everything is as it was before",
        ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """A function that gives a verdict for each row, by asking a provider which of the rows are true."""

    what: str  # node and relation, for errors
    eval_many: Asked
    schema: Schema

    def __call__(self, *columns: Any) -> Any:
        rows = to_rows(self.schema, pa.Table.from_arrays(list(columns), schema=self.schema.arrow))
        true = self._true(Tuples.of_rows(rows))
        return pa.array([key_of(row) in true for row in rows], pa.bool_())

    def _true(self, candidates: Tuples) -> set[Any]:
        return guarded(
            self.what, "eval_many", lambda: {key_of(self._row(row)) for row in rows_of(self.eval_many(candidates))}
        )

    def _row(self, row: Any) -> Row:
        if not isinstance(row, tuple) or len(row) != len(self.schema):
            raise ProviderError(f"it answered {row!r}, not tuples of {len(self.schema)} values", hint=TUPLES)
        return row


def rows_of(answer: Any) -> list[Any]:
    """The answer of a provider as a list; refuses an answer that is no collection."""
    if isinstance(answer, Tuples):
        return list(answer.unordered)
    if isinstance(answer, str | bytes | dict) or not isinstance(answer, Iterable):
        raise ProviderError(f"it answered {type(answer).__name__}, which is no set of tuples", hint=TUPLES)
    return list(answer)  # pyright: ignore[reportUnknownArgumentType]
