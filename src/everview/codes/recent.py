"""A cache of the values that a dictionary has interned or looked up of late: single values are often the same few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")
RECENT: Final = 4096  # how many values are remembered, of each kind and way
SHORT: Final = 64  # how long they are at most


class RecentValues:
    """Short values by their codes, and codes by their values, until anything is forgotten."""

    __slots__ = ("bytes_by_code", "codes_by_bytes", "codes_by_text", "texts_by_code")

    def __init__(self) -> None:
        self.codes_by_bytes: dict[tuple[int, bytes], int] = {}
        self.bytes_by_code: dict[tuple[int, int], bytes] = {}
        self.codes_by_text: dict[int, dict[str, int]] = {}  # by kind, too
        self.texts_by_code: dict[int, dict[int, str | None]] = {}

    def clear(self) -> None:
        """Forget all."""
        self.codes_by_bytes.clear()
        self.bytes_by_code.clear()
        self.codes_by_text.clear()
        self.texts_by_code.clear()


def remember(recent: dict[K, V], pairs: Iterable[tuple[K, V]]) -> None:
    """Add pairs to those that are remembered; when these are many, they are forgotten first."""
    if len(recent) > RECENT:
        recent.clear()
    recent.update(pairs)
