"""Atoms: a relation, and what stands in its columns: variables, some of them twice, and constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from everview.doors import door, doors
from everview.errors import SchemaError, WrongArity
from everview.zset.elements import identity
from everview.zset.reference import ZSet

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that a join binds; everything else in an atom is a constant."""

    name: str

    def __repr__(self) -> str:
        return f"?{self.name}"


@door
def variables(names: str) -> tuple[Variable, ...]:
    """Variables of these names.

    >>> variables("a b")
    (?a, ?b)
    """
    return tuple(map(Variable, names.split()))


@doors()
@dataclass(frozen=True, slots=True, init=False)
class Pattern:
    """The rows of a relation that fit a pattern, as bindings of its variables.

    >>> a, b = variables("a b")
    >>> edge = ZSet({("x", "y"): 2, ("y", "y"): 1, ("z", "x"): -1})
    >>> Pattern("edge", a, b).bindings(edge, (b, a))
    ZSet({('x', 'z'): -1, ('y', 'x'): 2, ('y', 'y'): 1})
    >>> Pattern("edge", a, a).bindings(edge, (a,))
    ZSet({('y',): 1})
    >>> Pattern("edge", a, "y").bindings(edge, (a,))
    ZSet({('x',): 2, ('y',): 1})

    With its constants and repetitions given, a row is one binding and a binding one row: weights carry over.
    """

    relation: str
    terms: tuple[Any, ...]

    def __init__(self, relation: str, *terms: Any) -> None:
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "terms", terms)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables, once each, as they come."""
        return tuple(dict.fromkeys(term for term in self.terms if isinstance(term, Variable)))

    def arranged(self, order: Sequence[Variable]) -> tuple[Variable, ...]:
        """Its variables in the order in which a join binds them.

        >>> a, b, c = variables("a b c")
        >>> Pattern("edge", c, b).arranged((a, b, c))
        (?b, ?c)
        """
        if len(set(order)) < len(order):
            raise SchemaError(f"the order {list(order)} binds a variable twice", hint="name every variable once")
        missing = [variable for variable in self.variables if variable not in order]
        if missing:
            raise SchemaError(
                f"the order {list(order)} does not bind {missing[0]} of {self}", hint="name every variable in the order"
            )
        return tuple(variable for variable in order if variable in self.variables)

    def bindings(self, rows: ZSet, order: Sequence[Variable]) -> ZSet:
        """The bindings of some of its variables that these rows give."""
        return ZSet.of(self.matches(rows, order))

    def matches(self, rows: Iterable[tuple[Row, int]], order: Sequence[Variable]) -> Iterator[tuple[Row, int]]:
        """The rows that fit, each as its values of these variables."""
        firsts = [self.terms.index(variable) for variable in order]
        for row, weight in rows:
            if self._fits(row):
                yield tuple(row[column] for column in firsts), weight

    def _fits(self, row: Row) -> bool:
        if not isinstance(row, tuple) or len(row) != len(self.terms):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongArity(f"{row!r} is no row of {self}", hint=f"give tuples of {len(self.terms)} values")
        return all(
            identity(value) == identity(row[self.terms.index(term)] if isinstance(term, Variable) else term)
            for value, term in zip(row, self.terms, strict=True)
        )

    def __repr__(self) -> str:
        return f"{self.relation}({', '.join(map(repr, self.terms))})"
