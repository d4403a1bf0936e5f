"""Sets of tuples of atoms, as hosts and providers give and get them.

An atom is its type and its value: ``1``, ``1.0`` and ``True`` are three, though Python thinks them equal, NaN is
itself, and ``-0.0`` is ``0.0``. So a set of tuples is one by that equality, and it iterates in the total order of its
atoms: by type, ``Boolean < Integer < Float < String < Symbol < ID``, then by value, text by its UTF-8 bytes.

>>> Tuples([("b", 1), ("a", 1), ("a", 1.0), ("a", True), ("a", 1)])
{('a', True), ('a', 1), ('a', 1.0), ('b', 1)}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from typing import Any, Final

from everview.codes import atom_key, pack, unpack
from everview.errors import EverviewError, NullNotAllowed, WrongArity, WrongType, shown
from everview.types import Id, Symbol, atom_of_class
from everview.zset.elements import identity

Row = tuple[Any, ...]
Order = Callable[[Row], Any]
_LEAST, _GREATEST = -(2**63), 2**63 - 1
ATOMS: Final = "an atom is a bool, int, float, str, Symbol, Id, or of a type that was registered with register_atom"
TUPLES: Final = 'give a set of tuples, such as {("a1", "b2")}'


def natural(row: Row) -> Any:
    """A key that sorts tuples in the total order of their atoms."""
    return tuple(map(atom_key, row))


class Tuples(Set[Row]):
    """An immutable set of tuples of atoms, in order."""

    __slots__ = ("_by", "_order", "_sorted")

    def __init__(self, rows: Iterable[Any] = (), order: Order = natural) -> None:
        self._by = rows._by if isinstance(rows, Tuples) else _gathered(rows)
        self._order = order
        self._sorted: list[Row] | None = None

    @classmethod
    def of_rows(cls, rows: Iterable[Row], order: Order = natural) -> Tuples:
        """A set of rows of the engine, unchecked; they may hold values of any column type."""
        tuples = cls((), order)
        tuples._by.update((key_of(row), row) for row in rows)
        return tuples

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple):
            return False
        try:
            return key_of(row) in self._by
        except EverviewError:
            return False

    def __iter__(self) -> Iterator[Row]:
        if self._sorted is None:
            self._sorted = self._in_order()
        return iter(self._sorted)

    def _in_order(self) -> list[Row]:
        try:
            return sorted(self._by.values(), key=self._order)
        except Exception as error:
            if self._order is natural:
                raise
            raise WrongType(
                f"the order given for atoms raised {type(error).__name__}: {error}",
                hint="its keys must compare with each other, whatever the atoms",
            ) from error

    def __len__(self) -> int:
        return len(self._by)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tuples):
            return self._by.keys() == other._by.keys()
        if not isinstance(other, Set):
            return NotImplemented
        return len(other) == len(self) and all(row in self for row in other)  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = Set._hash  # pyright: ignore[reportAssignmentType]

    @property
    def unordered(self) -> Collection[Row]:
        """The tuples in no order, for where order does not matter."""
        return self._by.values()

    def without(self, other: Tuples) -> Tuples:
        """The tuples that the other set does not have."""
        left = Tuples((), self._order)
        left._by.update((key, row) for key, row in self._by.items() if key not in other._by)
        return left

    def common(self, other: Tuples) -> Tuples:
        """The tuples that the other set has, too."""
        return self.without(self.without(other))

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self._by else "set()"


class Watched(Tuples):
    """A set of tuples that only its owner changes; others see the changes."""

    __slots__ = ()

    def change(self, adds: Iterable[Row], removes: Iterable[Row]) -> None:
        self._sorted = None
        for row in removes:
            self._by.pop(key_of(row), None)
        self._by.update((key_of(row), row) for row in adds)


def _gathered(rows: Any) -> dict[Hashable, Row]:
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise WrongType(f"{_shown(rows)} is no set of tuples", hint=TUPLES)
    checked = map(checked_row, rows)
    return {key_of(row): row for row in checked}


def checked_row(row: Any) -> Row:
    """A tuple of atoms in the form in which they are kept; refuses anything else."""
    if not isinstance(row, tuple | list):
        raise WrongArity(f"{_shown(row)} is no tuple", hint=TUPLES)
    try:
        return tuple(map(atom, row))
    except EverviewError as error:
        raise type(error)(f"{_shown(row)}: {error.message}", hint=error.hint) from None


def atom(value: Any) -> Any:
    """The form in which an atom is kept: of Python's own types, with a place in the order.

    >>> atom(("a",))
    Traceback (most recent call last):
    everview.errors.WrongType: ('a',) is no atom, but a tuple
      hint: an atom is a bool, int, float, str, Symbol, Id, or of a type that was registered with register_atom
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int:
        if _LEAST <= value <= _GREATEST:
            return value
        raise WrongType(f"{_shown(value)} is outside the range of 64-bit integers", hint="use text, or a float")
    if kind is bool or kind is float:
        return value
    if kind is Symbol and isinstance(value.name, str):
        _text(value.name)
        return value
    return value if kind is Id else _unusual(value)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise WrongType(f"{shown(value)} is not valid Unicode", hint="half of a surrogate pair is no text") from None
    return value


def _unusual(value: Any) -> Any:
    """Registered atoms, NumPy's scalars, subclasses of plain types: as they come back from their bytes."""
    if value is None:
        raise NullNotAllowed("None is no atom", hint=f"relations have no NULL; {ATOMS}")
    if isinstance(value, list | tuple | Mapping | Set):
        raise WrongType(f"{_shown(value)} is no atom, but a {type(value).__name__}", hint=ATOMS)
    try:
        restored = unpack(pack(value))
    except EverviewError as error:
        raise WrongType(error.message, hint=ATOMS) from None
    except Exception as error:
        what = f"a {type(value).__name__} that raised {type(error).__name__}: {error}"
        raise WrongType(f"{what} is no atom", hint=ATOMS) from error
    if restored is None or isinstance(restored, tuple | dict):
        raise WrongType(f"{_shown(value)} is no atom, but a {type(value).__name__}", hint=ATOMS)
    return restored


def key_of(row: Row) -> Hashable:
    """A key that two tuples share exactly if they are the same."""
    return tuple([value if type(value) is str or type(value) is int else _identity(value) for value in row])


def _identity(value: Any) -> Hashable:
    host = atom_of_class(type(value))
    return identity(value) if host is None else (host.type.name, host.to_bytes(value))


_SHOWN = 80


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001, whatever its class does
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
