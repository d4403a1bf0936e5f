"""The change of a relation: tuples that come, and tuples that go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from everview.errors import WrongType, shown
from everview.frontends.graphspec.tuples import Tuples


class Delta:
    """Tuples added and removed, each a set; removes count before adds.

    Rows may also be dicts by column, or a table or frame: the relation that they are for says in which order.

    >>> Delta(adds={("a1", "b2")})
    Delta(adds={('a1', 'b2')}, removes=set())
    >>> Delta(adds=[(1,), (2,), (1,)], removes=[(2,), (3,)]).normalized()
    Delta(adds={(1,)}, removes={(3,)})
    """

    __slots__ = ("adds", "removes")

    adds: Tuples
    removes: Tuples

    def __init__(self, adds: Any = (), removes: Any = ()) -> None:
        object.__setattr__(self, "adds", _collected(adds))
        object.__setattr__(self, "removes", _collected(removes))

    @classmethod
    def of(cls, given: Any) -> Delta:
        """A delta as hosts may write it: one, ``{"adds": …, "removes": …}``, or rows to add."""
        if isinstance(given, Delta):
            return given
        if isinstance(given, Mapping):
            if not given.keys() <= {"adds", "removes"}:
                raise WrongType(
                    f"a delta of {', '.join(sorted(map(str, given)))}", hint='a delta has "adds" and "removes"'
                )
            return cls(**given)
        return cls(adds=given)

    def normalized(self) -> Delta:
        """The symmetric difference of both sets: what is added and removed at once does not change."""
        for rows in (self.adds, self.removes):
            if not isinstance(rows, Tuples):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType(
                    f"{shown(rows)} is no set of tuples", hint="a relation's push_batch reads dicts and frames by names"
                )
        return Delta(self.adds.without(self.removes), self.removes.without(self.adds))

    def __bool__(self) -> bool:
        return bool(len(self.adds) or len(self.removes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Delta):
            return NotImplemented
        return self.adds == other.adds and self.removes == other.removes

    def __hash__(self) -> int:
        return hash((self.adds, self.removes))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a delta does not change: {name}")

    def __repr__(self) -> str:
        return f"Delta(adds={self.adds!r}, removes={self.removes!r})"


def _collected(rows: Any) -> Any:
    """A set of tuples; rows that only their relation can read stay as they are."""
    if isinstance(rows, Tuples) or is_table(rows):
        return rows
    if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__"):
        return Tuples(rows)  # which refuses it
    try:
        listed = list(rows)
    except TypeError:  # an array without dimensions
        raise WrongType(f"{shown(rows)} is no collection of tuples", hint="give a list or a set of tuples") from None
    return listed if any(isinstance(row, Mapping) for row in listed) else Tuples(listed)


def is_table(rows: Any) -> bool:
    """Whether it is an Arrow table, a frame, or a structured array."""
    if isinstance(rows, np.ndarray):
        return rows.dtype.names is not None
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "to_arrow") or hasattr(rows, "iterrows")
