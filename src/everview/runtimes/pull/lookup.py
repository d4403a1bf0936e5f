"""Partners by key: how joins look rows up in one of their sides, and keep none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from everview.runtimes.pull.demand import Among, Demand, Row
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.rows import RowTest
from everview.scalars.expressions import Expression
from everview.types import Schema

FIRST, MOST = 32, 512  # rows of a side for which partners are looked up at once
Found = Mapping[Row, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class JoinMatching:
    """A join's condition: columns of both sides that are equal, and a test of the pair."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    null_safe: tuple[bool, ...]
    test: RowTest | None

    @staticmethod
    def of(
        places: tuple[tuple[int, ...], tuple[int, ...]],
        null_safe: Sequence[bool],
        rest: Expression | None,
        both: Schema,
    ) -> JoinMatching:
        """The matching of equal columns, by their places on both sides, and of a condition over the pair."""
        return JoinMatching(*places, tuple(null_safe), None if rest is None else RowTest((rest,), both))

    def title(self, kind: str, left: PullNode, right: PullNode) -> str:
        """A join of two nodes in one line: ``Join left on id = artist``."""
        pairs = zip(self.left, self.right, strict=True)
        on = ", ".join(f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in pairs)
        return f"Join {kind}{f' on {on}' if on else ''}"

    def key(self, columns: tuple[int, ...]) -> Callable[[Row], Row | None]:
        """The function from a row to its key, None if a NULL in it matches nothing."""
        safe = all(self.null_safe)

        def key(row: Row) -> Row | None:
            values = tuple([row[column] for column in columns])
            return values if safe or None not in values or self._safe(values) else None

        return key

    def _safe(self, key: Row) -> bool:
        return all(safe for value, safe in zip(key, self.null_safe, strict=True) if value is None)

    def partners(self, row: Row, others: Sequence[Row], *, turned: bool = False) -> Sequence[Row]:
        """The rows among those with the same key that pass the test of the pair."""
        if self.test is None or not others:
            return others
        pairs = [other + row if turned else row + other for other in others]
        return [other for other, holds in zip(others, self.test.of(pairs), strict=True) if holds]


def found_by(node: PullNode, columns: tuple[int, ...], keys: Iterable[Row], demand: Demand = Demand()) -> Found:  # noqa: B008
    """The rows of a node by key, for some keys."""
    wanted = frozenset(keys)
    matched: dict[Row, list[Row]] = {}
    if not wanted:
        return matched
    asked = demand.and_among(Among(columns, wanted)) if columns else demand
    for row in node.pull(asked):
        matched.setdefault(tuple([row[column] for column in columns]), []).append(row)
    return matched


def batches(rows: Iterable[Row], first: int | None) -> Iterator[list[Row]]:
    """Rows in lists that double in size, up to `MOST`."""
    waiting, size = iter(rows), max(1, min(first or FIRST, MOST))
    while part := list(islice(waiting, size)):
        yield part
        size = min(2 * size, MOST)


def before(after: Counter[Row], change: Mapping[Row, int]) -> Counter[Row]:
    """The rows before a change, of those after it."""
    rows = Counter(after)
    for row, weight in change.items():
        rows[row] -= weight
        if not rows[row]:
            del rows[row]
    return rows


def by_key(
    rows: Mapping[Row, int], key: Callable[[Row], Row | None]
) -> tuple[dict[Row, dict[Row, int]], dict[Row, int]]:
    """Changed rows by key, and those whose key has a NULL that matches nothing."""
    changed: dict[Row, dict[Row, int]] = {}
    unmatched: dict[Row, int] = {}
    for row, weight in rows.items():
        own = key(row)
        (unmatched if own is None else changed.setdefault(own, {}))[row] = weight
    return changed, unmatched
