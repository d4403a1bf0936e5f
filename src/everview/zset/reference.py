"""Z-sets as plain dictionaries: what every operator and kernel means, and is tested against.

A Z-set is a function from elements to integer weights that is zero almost everywhere: a collection with
multiplicities, a set of changes, or their sum, without a difference. Under pointwise addition it is a
commutative group.

Invariant, from construction on: no element is listed twice, no weight is zero, every weight has 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everview.doors import doors
from everview.errors import FunctionError, SchemaError, WrongType, shown
from everview.zset.elements import identity, position
from everview.zset.tables import table
from everview.zset.weights import checked, integral

if TYPE_CHECKING:
    from everview.zset.indexed import IndexedZSet

Entry = tuple[Any, int]  # an element and its weight


def pairs(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries as pairs of an element and a weight; anything else is refused."""
    for entry in entries:
        if not isinstance(entry, tuple | list) or len(entry) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType(f"{shown(entry)} is no pair of an element and a weight", hint='write ZSet.of([("a", 1)])')
        yield entry[0], entry[1]


def several(function: Callable[..., Iterable[Any]], *given: Any) -> Iterable[Any]:
    """The elements that a user's function gives for one element; refused unless they can be iterated."""
    elements = function(*given)
    if not isinstance(elements, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FunctionError(f"a function gave {shown(elements)}, not several elements", hint="return a list, or a ZSet")
    return elements


def consolidated(entries: Iterable[Entry]) -> dict[Hashable, Entry]:
    """Each element once, under its identity, with the sum of its weights; zero sums disappear.

    A sum is checked when it is complete, so the order of the entries never matters.
    """
    sums: dict[Hashable, Entry] = {}
    for element, weight in pairs(entries):
        key = identity(element)
        kept, before = sums.get(key, (element, 0))
        sums[key] = (kept, before + integral(weight))
    return {key: (element, checked(weight)) for key, (element, weight) in sums.items() if weight != 0}


@doors()
class ZSet:
    """A consolidated Z-set; frozen.

    >>> ZSet.of([("a", 1), ("b", 2), ("a", -1)])
    ZSet({'b': 2})
    >>> ZSet.of([("a", 1), ("a", -1)]) == ZSet({})
    True

    It is a group, so a change can be undone:

    >>> a, b = ZSet({"x": 1, "y": 2}), ZSet({"y": -2, "z": 1})
    >>> a + b
    ZSet({'x': 1, 'z': 1})
    >>> (a + b) - b == a
    True

    An element is its type and its value:

    >>> ZSet.of([(1, 1), (True, 1), (1.0, 1)])
    ZSet({True: 1, 1: 1, 1.0: 1})
    """

    __slots__ = ("_entries",)
    _entries: dict[Hashable, Entry]

    def __init__(self, weights: Mapping[Any, int] | None = None) -> None:
        entries = consolidated((weights or {}).items())
        object.__setattr__(self, "_entries", entries)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> ZSet:
        """The sum of weighted elements, in any order and as often as they come."""
        zset = cls.__new__(cls)
        object.__setattr__(zset, "_entries", consolidated(entries))
        return zset

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Z-set is frozen; adding gives a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return ZSet.of, (list(self._entries.values()),)

    # -- a function from elements to weights

    def __getitem__(self, element: Any) -> int:
        """The weight of an element, 0 if it is absent."""
        entry = self._entries.get(identity(element))
        return 0 if entry is None else entry[1]

    def __contains__(self, element: Any) -> bool:
        return identity(element) in self._entries

    def __iter__(self) -> Iterator[Entry]:
        """Elements with their weights, in order.

        >>> list(ZSet({"b": 1, "a": -2, 3: 1}))
        [(3, 1), ('a', -2), ('b', 1)]
        """
        return iter(sorted(self._entries.values(), key=lambda entry: position(entry[0])))

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZSet):
            return NotImplemented
        return self._weights() == other._weights()

    def __hash__(self) -> int:
        return hash(frozenset(self._weights().items()))

    def _weights(self) -> dict[Hashable, int]:
        return {key: weight for key, (_, weight) in self._entries.items()}

    # -- a group

    def __add__(self, other: ZSet) -> ZSet:
        if not isinstance(other, ZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return ZSet.of([*self._entries.values(), *other._entries.values()])

    def __neg__(self) -> ZSet:
        return self * -1

    def __sub__(self, other: ZSet) -> ZSet:
        if not isinstance(other, ZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        opposite = ((element, -weight) for element, weight in other._entries.values())
        return ZSet.of([*self._entries.values(), *opposite])

    def __mul__(self, factor: int) -> ZSet:
        """Every weight times an integer.

        >>> ZSet({"a": 2, "b": -1}) * 3
        ZSet({'a': 6, 'b': -3})
        """
        scale = checked(factor)
        return ZSet.of((element, weight * scale) for element, weight in self._entries.values())

    __rmul__ = __mul__

    # -- linear operators: f(a + b) == f(a) + f(b)

    def map(self, function: Callable[[Any], Any]) -> ZSet:
        """Replace every element by its image; images that collide add their weights.

        >>> ZSet({1: 1, -1: 2, 2: 1, -2: -1}).map(abs)
        ZSet({1: 3})
        """
        return ZSet.of((function(element), weight) for element, weight in self)

    def filter(self, predicate: Callable[[Any], bool]) -> ZSet:
        """Keep the elements for which the predicate holds.

        >>> ZSet({0: 1, 1: 2, 2: -3}).filter(lambda x: x >= 1)
        ZSet({1: 2, 2: -3})
        """
        return ZSet.of((element, weight) for element, weight in self if predicate(element))

    def flat_map(self, function: Callable[[Any], Iterable[Any]]) -> ZSet:
        """Replace every element by any number of elements, each with its weight.

        >>> ZSet({"ab": 2, "b": -1}).flat_map(list)
        ZSet({'a': 2, 'b': 1})
        """
        return ZSet.of((image, weight) for element, weight in self for image in several(function, element))

    def index_with(self, key: Callable[[Any], Any]) -> IndexedZSet:
        """Group the elements by a key.

        >>> ZSet({(0, 1): 1, (1, 2): 1, (1, 3): -1}).index_with(lambda edge: edge[0])
        IndexedZSet({0: {(0, 1): 1}, 1: {(1, 2): 1, (1, 3): -1}})
        """
        from everview.zset.indexed import IndexedZSet  # each of the two is defined by the other

        return IndexedZSet.of(((key(element), element), weight) for element, weight in self)

    # -- and others

    def distinct(self) -> ZSet:
        """The elements of positive weight, once each.

        >>> ZSet({0: 1, 1: 2, 2: -1}).distinct()
        ZSet({0: 1, 1: 1})
        """
        return ZSet.of((element, 1) for element, weight in self._entries.values() if weight > 0)

    def positive(self) -> ZSet:
        """The elements of positive weight, with their weights; elements of negative weight are dropped.

        >>> ZSet({0: 1, 1: 2, 2: -1}).positive()
        ZSet({0: 1, 1: 2})
        """
        return ZSet.of((element, weight) for element, weight in self._entries.values() if weight > 0)

    def equi_join(self, other: ZSet) -> ZSet:
        """The elements of both, weights multiplied; bilinear.

        >>> ZSet({"a": 2, "b": 1}).equi_join(ZSet({"a": -3, "c": 1}))
        ZSet({'a': -6})
        """
        return ZSet.of((element, weight * other[element]) for element, weight in self._entries.values())

    # -- a trie of one level

    def extend_leaves(self, function: Callable[[tuple[Any, ...], int], ZSet]) -> IndexedZSet:
        """Extend every element by a Z-set made from it, as a prefix of one, and from its weight.

        >>> ZSet({"NYC": -1, "LA": 1}).extend_leaves(lambda prefix, weight: ZSet({prefix[0][0]: weight}))
        IndexedZSet({'LA': {'L': 1}, 'NYC': {'N': -1}})
        """
        from everview.zset.indexed import IndexedZSet  # each of the two is defined by the other

        return IndexedZSet.of(
            ((element, extension), extended)
            for element, weight in self
            for extension, extended in pairs(several(function, (element,), weight))
        )

    def get_by_prefix(self, prefix: Sequence[Any]) -> ZSet:
        """The Z-set itself, at the empty prefix: an element leads to a weight, not to a Z-set."""
        if prefix:
            raise SchemaError(f"no Z-set lies below the prefix {shown(tuple(prefix))}", hint="use zset[element]")
        return self

    def as_zset_view(self) -> ZSet:
        """The Z-set itself; of an indexed one it would be the unweighted keys."""
        return self

    # -- display

    def __repr__(self) -> str:
        return f"ZSet({self._written()})"

    def _written(self) -> str:
        return "{" + ", ".join(f"{element!r}: {weight}" for element, weight in self) + "}"

    def _repr_html_(self) -> str:
        return table(["element", "weight"], self, len(self))
