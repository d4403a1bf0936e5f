"""Leapfrog triejoin: all bindings of a join depth first, each level an intersection of sorted iterators.

Iterators of a level leap over each other: whoever is behind seeks the largest key seen, in turn, until all keys are
equal, and only then is the variable bound. As soon as one of them ends, so does the level.

Keys come in one total order: by type, Boolean < Integer < Float < String < Symbol < ID, and within a type the natural
one, strings by their UTF-8 bytes, NaN last. ``1``, ``1.0`` and ``True`` are three keys; ``-0.0`` is ``0.0``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from everview.doors import door, doors
from everview.errors import SchemaError, WeightOverflow, WrongType
from everview.kernels.leapfrog import Walk
from everview.kernels.sort import arrange, is_batch
from everview.theory.patterns import Pattern, Row, Variable
from everview.types import atom_of_class
from everview.types.words import Matrix
from everview.zset.elements import identity, position
from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet
from everview.zset.weights import checked

Order: TypeAlias = Callable[[Any], Any]
Entries: TypeAlias = ZSet | IndexedZSet | Matrix | Iterable[Row]

PORTION = 1 << 16  # bindings that the compiled walk writes at once
_REGISTERED = 1 << 10  # registered atoms come after every type that has a place of its own


def natural_order(key: Any) -> tuple[Any, ...]:
    """A sort key: by type, then by value; values of a registered atom by their bytes.

    >>> from everview.types import Id, Symbol
    >>> sorted([Id("a"), "b", "ä", 2, Symbol("a"), float("nan"), 1.5, True, "Z", 10, False], key=natural_order)
    [False, True, 2, 10, 1.5, nan, 'Z', 'b', 'ä', Symbol('a'), Id('a')]
    """
    host = atom_of_class(type(key))
    return position(key) if host is None else (_REGISTERED, host.type.kind, host.to_bytes(key))


@runtime_checkable
class LevelIterator(Protocol):
    """The keys of one variable under a bound prefix, strictly ascending."""

    def seek_ge(self, key: Any) -> None:
        """Go to the smallest key that is not less than this one; never backwards."""
        ...

    def key(self) -> Any:
        """The key it stands on; there is none at the end."""
        ...

    def next(self) -> None:
        """Go to the next key, or to the end."""
        ...

    def at_end(self) -> bool:
        """Whether there are no more keys."""
        ...


@doors()
class SortedKeys:
    """An iterator over keys in memory.

    >>> keys = SortedKeys([1, 3, 5])
    >>> keys.seek_ge(2)
    >>> keys.key()
    3
    >>> keys.seek_ge(6)
    >>> keys.at_end()
    True
    """

    def __init__(self, keys: Iterable[Any], order: Order = natural_order) -> None:
        placed = sorted(((order(key), key) for key in keys), key=lambda pair: pair[0])
        placed = [pair for n, pair in enumerate(placed) if n == 0 or pair[0] != placed[n - 1][0]]
        self._order = order
        self._places = [place for place, _ in placed]
        self._keys = [key for _, key in placed]
        self._at = 0

    def seek_ge(self, key: Any) -> None:
        self._at = bisect_left(self._places, self._order(key), lo=self._at)

    def key(self) -> Any:
        if self.at_end():
            raise SchemaError("there is no key at the end", hint="ask at_end() first")
        return self._keys[self._at]

    def next(self) -> None:
        self._at = min(self._at + 1, len(self._keys))

    def at_end(self) -> bool:
        return self._at == len(self._keys)

    def again(self) -> SortedKeys:
        """Another iterator over these keys, at the first; the keys are not sorted again."""
        fresh = SortedKeys((), self._order)
        fresh._places, fresh._keys = self._places, self._keys
        return fresh


@door
def common_keys(iterators: Sequence[LevelIterator], order: Order = natural_order) -> Iterator[Any]:
    """The keys that all iterators have, in order.

    >>> list(common_keys([SortedKeys([1, 3, 4, 7]), SortedKeys([3, 4, 5, 7, 9]), SortedKeys([2, 3, 7])]))
    [3, 7]
    >>> list(common_keys([SortedKeys([1, 5]), SortedKeys([2, 6])]))
    []
    """
    if not iterators:
        raise SchemaError("the keys common to no iterators", hint="give one at least")
    if any(iterator.at_end() for iterator in iterators):
        return
    largest = iterators[0].key()
    agreed, turn = 1, 0
    while True:
        turn = (turn + 1) % len(iterators)  # the one that has stood still longest
        iterator = iterators[turn]
        if agreed == len(iterators):
            yield largest
            iterator.next()
        else:
            iterator.seek_ge(largest)
        if iterator.at_end():
            return
        same = order(iterator.key()) == order(largest)
        agreed = agreed + 1 if same else 1
        largest = iterator.key()


class Trie:
    """The keys of each level under each prefix, sorted once, and the weights of whole paths."""

    def __init__(self, paths: Iterable[tuple[Row, int]], depth: int, order: Order) -> None:
        self._weights = ZSet.of(paths)
        below: list[dict[Hashable, dict[Hashable, Any]]] = [{} for _ in range(depth)]
        for path, _ in self._weights:
            for level, key in enumerate(path):
                below[level].setdefault(identity(path[:level]), {})[identity(key)] = key
        self._levels = [{prefix: SortedKeys(keys.values(), order) for prefix, keys in level.items()} for level in below]

    def make_iter(self, prefix: Row) -> LevelIterator:
        """The keys under a prefix; if there is no such prefix, an iterator that is at its end."""
        keys = self._levels[len(prefix)].get(identity(prefix))
        return SortedKeys(()) if keys is None else keys.again()

    def weight(self, path: Row) -> int:
        return self._weights[path]


@doors()
@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """An atom, and the rows of its relation: a Z-set, an indexed one, tuples, or a batch of words, the weight last."""

    pattern: Pattern
    entries: Entries

    def pairs(self) -> Iterable[tuple[Row, int]]:
        """The rows with their weights."""
        entries = self.entries
        if isinstance(entries, ZSet | IndexedZSet):
            return entries
        if isinstance(entries, np.ndarray):
            return ((tuple(row[:-1]), row[-1]) for row in entries.tolist())
        return ((row, 1) for row in entries)

    def words(self, variables: Sequence[Variable]) -> Matrix:
        """A batch of words with a column for each of these variables, in this order."""
        assert isinstance(self.entries, np.ndarray), "only a batch holds words"
        kept = np.ascontiguousarray(_fitting(self.pattern, self.entries))
        columns = [self.pattern.terms.index(variable) for variable in variables]
        if columns == list(range(kept.shape[1] - 1)) and is_batch(kept):
            return kept
        return arrange(kept, np.array(columns, np.int64)) if columns else kept[:, -1:]


@doors()
class Leapfrog:
    """The join of atoms, its variables bound in the given order.

    >>> from everview.multiway import Pattern, Scan, variables
    >>> a, b, c = variables("a b c")
    >>> edges = ZSet({(1, 2): 1, (1, 3): 1, (2, 3): 2, (3, 4): 1})
    >>> atoms = Pattern("edge", a, b), Pattern("edge", a, c), Pattern("edge", b, c)
    >>> triangles = Leapfrog([Scan(atom, edges) for atom in atoms], order=(a, b, c))
    >>> list(triangles.enumerate())
    [((1, 2, 3), 2)]

    A **probe** completes one tuple of one atom with the rows of the others; its variables may sit at any levels:

    >>> list(triangles.probe(2, (2, 3)))
    [((1, 2, 3), 1)]

    If every relation is a batch of words, compiled code does the same in the order of the words.

    >>> words = np.array([[1, 2, 1], [1, 3, 1], [2, 3, 2], [3, 4, 1]])
    >>> compiled = Leapfrog([Scan(atom, words) for atom in atoms], order=(a, b, c))
    >>> list(compiled.enumerate()), compiled.count()
    ([((1, 2, 3), 2)], 1)
    """

    def __init__(self, atoms: Sequence[Scan], order: Sequence[Variable], *, key: Order = natural_order) -> None:
        self.atoms = tuple(atoms)
        self.order = tuple(order)
        self._key = key
        self._tries: dict[tuple[int, tuple[Variable, ...]], Trie] = {}
        self._batches: dict[tuple[int, tuple[Variable, ...]], Matrix] = {}
        self._check()

    # -- all bindings

    def enumerate(self) -> Iterator[tuple[Row, int]]:
        """Every binding, with the product of the weights; lexicographically in the order of the variables."""
        return self._run(self.order, {})

    def count(self) -> int:
        """How many bindings there are."""
        if self._in_words:
            return _raising_overflow(self._walk(self.order, {}).count)
        return sum(1 for _ in self.enumerate())

    def matrices(self) -> Iterator[Matrix]:
        """Every binding of words, some at a time: a word a variable, the weight last."""
        if not self._in_words:
            raise SchemaError("the relations of this join are not batches of words", hint="use enumerate()")
        return self._portions(self._walk(self.order, {}))

    # -- what one tuple completes

    def probe(self, atom: int, row: Row) -> Iterator[tuple[Row, int]]:
        """Every binding with this row in place of the atom's relation, with the product of the other weights.

        The row's variables are bound first and the others after them, so its cost is that of its completions. To use
        it for changes of several atoms, let each atom see those before it new and those after it old.
        """
        if not 0 <= atom < len(self.atoms):
            raise SchemaError(f"there is no atom {atom}", hint=f"atoms are numbered from 0 to {len(self.atoms) - 1}")
        own = self.atoms[atom].pattern.arranged(self.order)
        order = (*own, *(variable for variable in self.order if variable not in own))
        entries = _one_row(row) if self._in_words else ZSet({row: 1})
        places = [order.index(variable) for variable in self.order]
        for binding, weight in self._run(order, {atom: Scan(self.atoms[atom].pattern, entries)}):
            yield tuple(binding[place] for place in places), weight

    def make_iter(self, atom: int, level: int, bound_prefix: Row) -> LevelIterator:
        """The keys of the variable of a level in an atom, under the values of the atom's earlier variables.

        >>> from everview.multiway import Pattern, Scan, variables
        >>> a, b, c = variables("a b c")
        >>> join = Leapfrog([Scan(Pattern("A", a), [(7,)]), Scan(Pattern("B", c, b), [(1, 2), (3, 2)])], (a, b, c))
        >>> keys = join.make_iter(1, 2, (2,))
        >>> keys.key(), keys.next(), keys.key(), keys.next(), keys.at_end()
        (1, None, 3, None, True)
        >>> join.make_iter(1, 2, (9,)).at_end()
        True
        """
        own = self.atoms[atom].pattern.arranged(self.order)
        earlier = [variable for variable in own if self.order.index(variable) < level]
        if self.order[level] not in own or len(bound_prefix) != len(earlier):
            raise SchemaError(
                f"{self.atoms[atom].pattern} has no iterator at level {level} under {bound_prefix!r}",
                hint=f"bind {earlier} and ask for a level of its own",
            )
        return self._trie(atom, own, {}).make_iter(bound_prefix)

    # -- the descent

    def _run(self, order: tuple[Variable, ...], given: dict[int, Scan]) -> Iterator[tuple[Row, int]]:
        if self._in_words:
            for matrix in self._portions(self._walk(order, given)):
                for row in matrix.tolist():
                    yield tuple(row[:-1]), row[-1]
            return
        owns = [scan.pattern.arranged(order) for scan in self.atoms]
        tries = [self._trie(atom, own, given) for atom, own in enumerate(owns)]
        weight = 1
        for trie, own in zip(tries, owns, strict=True):
            weight = checked(weight if own else weight * trie.weight(()))
        if weight:
            yield from self._descend(order, owns, tries, {}, weight)

    def _descend(
        self,
        order: tuple[Variable, ...],
        owns: list[tuple[Variable, ...]],
        tries: list[Trie],
        bound: dict[Variable, Any],
        weight: int,
    ) -> Iterator[tuple[Row, int]]:
        if len(bound) == len(order):
            yield tuple(bound[variable] for variable in order), weight
            return
        variable = order[len(bound)]
        group = [(trie, own, own.index(variable)) for trie, own in zip(tries, owns, strict=True) if variable in own]
        iterators = [trie.make_iter(tuple(bound[v] for v in own[:place])) for trie, own, place in group]
        for key in common_keys(iterators, self._key):
            now = bound | {variable: key}
            product = weight
            for trie, own, place in group:
                if place == len(own) - 1:
                    product = checked(product * trie.weight(tuple(now[v] for v in own)))
            yield from self._descend(order, owns, tries, now, product)

    def _trie(self, atom: int, own: tuple[Variable, ...], given: dict[int, Scan]) -> Trie:
        if atom in given:
            return Trie(given[atom].pattern.matches(given[atom].pairs(), own), len(own), self._key)
        if (atom, own) not in self._tries:
            scan = self.atoms[atom]
            self._tries[atom, own] = Trie(scan.pattern.matches(scan.pairs(), own), len(own), self._key)
        return self._tries[atom, own]

    # -- the same in words

    @property
    def _in_words(self) -> bool:
        return bool(self.order) and all(isinstance(scan.entries, np.ndarray) for scan in self.atoms)

    def _walk(self, order: tuple[Variable, ...], given: dict[int, Scan]) -> Walk:
        owns = [scan.pattern.arranged(order) for scan in self.atoms]
        batches = [self._batch(atom, own, given) for atom, own in enumerate(owns)]
        weight = 1
        for batch, own in zip(batches, owns, strict=True):
            weight = checked(weight if own else weight * sum(batch[:, -1].tolist()))
        if weight == 0:
            batches = [batch[:0] for batch in batches]
        levels = [tuple(order.index(variable) for variable in own) for own in owns]
        kept = [atom for atom, own in enumerate(owns) if own]
        return Walk.over([batches[atom] for atom in kept], [levels[atom] for atom in kept], len(order), weight)

    def _batch(self, atom: int, own: tuple[Variable, ...], given: dict[int, Scan]) -> Matrix:
        if atom in given:
            return given[atom].words(own)
        if (atom, own) not in self._batches:
            self._batches[atom, own] = self.atoms[atom].words(own)
        return self._batches[atom, own]

    def _portions(self, walk: Walk) -> Iterator[Matrix]:
        while len(portion := _raising_overflow(lambda: walk.bindings(PORTION))):
            yield portion

    def _check(self) -> None:
        for scan in self.atoms:
            scan.pattern.arranged(self.order)
        for variable in self.order:
            if not any(variable in scan.pattern.variables for scan in self.atoms):
                raise SchemaError(f"no atom holds {variable}", hint="leave it out of the order")


def _fitting(pattern: Pattern, rows: Matrix) -> Matrix:
    """The rows of words with the pattern's constants, and equal words where a variable is repeated."""
    if rows.ndim != 2 or rows.dtype != np.int64 or rows.shape[1] != len(pattern.terms) + 1:
        raise SchemaError(
            f"{pattern} needs a matrix of {len(pattern.terms)} words and a weight, not {rows.shape} of {rows.dtype}",
            hint="give int64 rows, the weight in the last column",
        )
    fits = np.ones(len(rows), np.bool_)
    for column, term in enumerate(pattern.terms):
        if isinstance(term, Variable):
            fits &= rows[:, column] == rows[:, pattern.terms.index(term)]
        else:
            fits &= _equal(rows[:, column], identity(term))
    return rows if fits.all() else rows[fits]


def _one_row(row: Row) -> Matrix:
    if not all(type(identity(word)) is int for word in row):
        raise WrongType(f"{row!r} is no row of words", hint="the relations are batches of words: give integers")
    return np.array([[*row, 1]], np.int64)


def _equal(column: Matrix, constant: Hashable) -> NDArray[np.bool_]:
    if type(constant) is not int or not -(2**63) <= constant < 2**63:
        return np.zeros(len(column), np.bool_)
    return column == constant


def _raising_overflow(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except OverflowError:
        raise WeightOverflow(
            "the weight of a binding leaves the range of 64 bits",
            hint="take the distinct rows before weights multiply again",
        ) from None
