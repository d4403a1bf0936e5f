"""Values that Python has no type for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A name as a value: ``Symbol("a")`` is not ``"a"``."""

    name: str

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"


@total_ordering
@dataclass(frozen=True, slots=True, init=False)
class Id:
    """An opaque identity, ordered by its bytes; text stands for its UTF-8 bytes.

    >>> Id("n1") == Id(b"n1"), Id("n1") == "n1"
    (True, False)
    """

    raw: bytes

    def __init__(self, value: str | bytes) -> None:
        object.__setattr__(self, "raw", value.encode() if isinstance(value, str) else bytes(value))

    def __lt__(self, other: object) -> bool:
        return self.raw < other.raw if isinstance(other, Id) else NotImplemented

    def __str__(self) -> str:
        return self.raw.decode(errors="backslashreplace")

    def __repr__(self) -> str:
        try:
            return f"Id({self.raw.decode()!r})"
        except UnicodeDecodeError:
            return f"Id({self.raw!r})"
