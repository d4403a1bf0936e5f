"""Trees of inner joins: the order of their joins, and the relations to be joined all at once.

A tree is taken apart into its relations and conditions. One operator joins all of them (`Multiway`) where

- their graph is cyclic, so that any join of two may be larger than the result, as with triangles, unless keys say that
  they can be joined in an order in which none is (`everview.optimize.keyed`), or
- some value is shared by three relations or more, and no condition makes any of them smaller, so that none of the
  joins between is worth keeping,

and every relation is reached by equalities of columns. Else relations are joined one after the other, each with one
that a condition ties to those before, so that there is no product where none was asked for. Where sizes are known, that
is the order along keys in which joins have the least rows, or else smaller relations come first; where sizes are not
known, first come those of which conditions leave the least, and last what a recursion finds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from everview.multiway import Statistics
from everview.plan import node
from everview.plan.conditions import conjunction, conjuncts, split
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Multiway, Project, Scan
from everview.plan.references import free_references
from everview.plan.typing import call
from everview.scalars.expressions import Call, Column, Expression, columns_of, moved

if TYPE_CHECKING:
    from everview.optimize.keyed import Keys


def arrange_joins(plan: Plan, statistics: Mapping[str, Statistics] | None = None, keys: Keys | None = None) -> Plan:
    """The plan with its trees of inner joins put in order, or joined at once."""
    return _Arranging(plan, statistics or {}, keys or {}).of(plan)


@dataclass(frozen=True)
class Tree:
    """The relations of a tree of inner joins, and its conditions over the columns of all of them, side by side."""

    relations: tuple[Plan, ...]
    conditions: tuple[Expression, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first column of each relation, and the number of all."""
        return (0, *accumulate(len(relation.schema) for relation in self.relations))

    def relation_of(self, column: int) -> int:
        return bisect_right(self.starts, column) - 1

    def reads(self, condition: Expression) -> frozenset[int]:
        """The relations that a condition reads."""
        return frozenset(map(self.relation_of, columns_of(condition)))

    def equalities(self) -> dict[Expression, tuple[int, int]]:
        """The conditions that are equalities of columns of two relations, of one type."""
        equalities: dict[Expression, tuple[int, int]] = {}
        for condition in self.conditions:
            match condition:
                case Call("equal", (Column(a, _, type_), Column(b, _, other))) if type_ == other:
                    if self.relation_of(a) != self.relation_of(b):
                        equalities[condition] = a, b
                case _:
                    pass
        return equalities


class _Arranging:
    def __init__(self, plan: Plan, statistics: Mapping[str, Statistics], keys: Keys) -> None:
        self.statistics, self.keys = statistics, keys
        self._known: dict[Plan, Plan] = {}
        self._readers: dict[Plan, int] = {}
        for part in node.walk(plan):
            for input_ in part.inputs:
                self._readers[input_] = self._readers.get(input_, 0) + 1

    def of(self, plan: Plan) -> Plan:
        if plan not in self._known:
            self._known[plan] = self._arranged(plan)
        return self._known[plan]

    def _arranged(self, plan: Plan) -> Plan:
        sunk = self._sunk(plan)
        if sunk != plan:
            return self.of(sunk)
        if not _is_inner(plan):
            inputs = tuple(map(self.of, plan.inputs))
            return plan.with_inputs(*inputs) if inputs else plan
        tree = self._tree(plan, root=True)
        if len(tree.relations) < 3:
            return plan.with_inputs(*map(self.of, plan.inputs))
        tree = Tree(tuple(map(self.of, tree.relations)), tree.conditions)
        return self._at_once(plan, tree) or self._in_turn(plan, tree, self._order(tree))

    def _sunk(self, plan: Plan) -> Plan:
        """A semijoin below the inner joins under it, where it asks more than anything else there.

        ``(A ⋈ B) ⋉ C = (A ⋉ C) ⋈ B``, if the condition reads A and C only.
        """
        match plan:
            case Join(Join(a, b, "inner") as left, right, "semi", condition):
                if self._readers.get(left, 0) > 1 or split(condition, len(left.schema)).rest is not None:
                    return plan
                if _strictness(right) <= max(map(_strictness, self._tree(left, root=True).relations)):
                    return plan
                reads = [column for e in conjuncts(condition) for column in columns_of(e) if column < len(left.schema)]
                start, end, width = len(a.schema), len(left.schema), len(b.schema)
                if all(column < start for column in reads):
                    over = (
                        moved(condition, lambda column: column if column < start else column - end + start)
                        if condition
                        else None
                    )
                    return Join(self._sunk(Join(a, right, "semi", over)), b, "inner", left.condition)
                if all(column >= start for column in reads):
                    over = (
                        moved(condition, lambda column: column - start if column < end else column - end + width)
                        if condition
                        else None
                    )
                    return Join(a, self._sunk(Join(b, right, "semi", over)), "inner", left.condition)
            case _:
                pass
        return plan

    def _tree(self, plan: Plan, *, root: bool = False) -> Tree:
        """The tree of inner joins at a plan; a join with several readers is a leaf, so that it stays shared."""
        shared = not root and self._readers.get(plan, 0) > 1
        if shared or not isinstance(plan, Join) or plan.kind != "inner":
            return Tree((plan,), ())
        left, right = self._tree(plan.left), self._tree(plan.right)
        width = len(plan.left.schema)
        theirs = tuple(moved(c, lambda column: column + width) for c in right.conditions)
        own = tuple(conjuncts(plan.condition))
        return Tree((*left.relations, *right.relations), (*left.conditions, *theirs, *own))

    # -- at once

    def _at_once(self, plan: Plan, tree: Tree) -> Plan | None:
        equalities = tree.equalities()
        variable = _classes(tree.starts[-1], equalities.values())
        terms = tuple(tuple(variable[start:stop]) for start, stop in pairwise(tree.starts))
        edges = [frozenset(term) for term in terms]
        shared = {v for v, met in _meetings(edges).items() if met > 1}
        joined = [edge & shared for edge in edges]
        whole = not any(map(_strictness, tree.relations))
        cyclic, in_three = _is_cyclic(joined), whole and max(_meetings(joined).values(), default=0) > 2
        rows = [self._rows(relation) for relation in tree.relations]
        sizes = [size for size in rows if size is not None]
        sized = len(sizes) == len(rows)
        if not _connected(joined) or not (cyclic or in_three or sized):
            return None
        others = [c for c in tree.conditions if c not in equalities]
        order = self._along_keys(tree, terms, sizes if sized else None) if cyclic or not in_three else None
        if order is not None:
            ties = _ties(plan, tree, variable, order)
            return self._in_turn(plan, Tree(tree.relations, (*ties, *others)), order)
        if not (cyclic or in_three):
            return None
        made = Multiway(tree.relations, terms, tuple(variable), plan.schema.names)
        rest = conjunction(others)
        return made if rest is None else Filter(made, rest)

    def _along_keys(self, tree: Tree, terms: Sequence[Sequence[int]], rows: Sequence[float] | None) -> list[int] | None:
        from everview.optimize.keyed import order_along_keys  # here: few plans have cycles, or tables many rows

        return order_along_keys(tree.relations, terms, self.keys, rows)

    # -- one after the other

    def _in_turn(self, plan: Plan, tree: Tree, order: Sequence[int]) -> Plan:
        starts = tree.starts
        places: dict[int, int] = {}
        for relation in order:
            for column in range(starts[relation], starts[relation + 1]):
                places[column] = len(places)
        waiting = list(tree.conditions)
        joined, known = tree.relations[order[0]], {order[0]}
        for relation in order[1:]:
            known.add(relation)
            now = [c for c in waiting if tree.reads(c) <= known]
            waiting = [c for c in waiting if c not in now]
            condition = conjunction(moved(c, places.__getitem__) for c in now)
            joined = Join(joined, tree.relations[relation], "inner", condition)
        if [*order] == sorted(order):
            return joined
        columns = tuple(joined.column(places[place]) for place in range(len(plan.schema)))
        return Project(joined, columns, plan.schema.names)

    def _order(self, tree: Tree) -> list[int]:
        waiting = list(range(len(tree.relations)))
        sizes = [self._size(relation) for relation in tree.relations]
        if None not in sizes:
            waiting.sort(key=lambda number: sizes[number] or 0)
        else:
            waiting.sort(key=lambda number: _first_guess(tree.relations[number]))
        order = [waiting.pop(0)]
        ties = [tree.reads(c) for c in tree.conditions if isinstance(c, Call) and c.function == "equal"]
        loose = [tree.reads(c) for c in tree.conditions]
        while waiting:
            known = frozenset(order)
            following = next(
                (
                    number
                    for conditions in (ties, loose)
                    for number in waiting
                    if any(number in read and len(read) > 1 and read <= known | {number} for read in conditions)
                ),
                waiting[0],
            )
            waiting.remove(following)
            order.append(following)
        return order

    def _size(self, plan: Plan) -> float | None:
        """The number of rows that conditions may leave of a relation; None if it is unknown."""
        from everview.optimize.keyed import share_left

        rows = self._rows(plan)
        return None if rows is None else rows * share_left(plan)

    def _rows(self, plan: Plan) -> float | None:
        """The number of rows of the table of a relation; None if it is unknown."""
        match plan:
            case Scan(relation):
                known = self.statistics.get(relation)
                return None if known is None else max(1.0, known.rows)
            case Project(input_) | Filter(input_):
                return self._rows(input_)
            case _:
                return None


def _first_guess(plan: Plan) -> tuple[int, bool, int]:
    """The rank of a relation of unknown size: by strict conditions, then not recursive, then with narrow tables."""
    return -_strictness(plan), bool(free_references(plan)), _breadth(plan)


def _strictness(plan: Plan) -> int:
    """How strictly conditions filter a relation: an equality counts most."""
    match plan:
        case Filter(input_, predicate):
            return _strictness(input_) + sum(map(_asks, conjuncts(predicate)))
        case Project(input_):
            return _strictness(input_)
        case Join(left, right):
            return max(_strictness(left), _strictness(right))
        case _:
            return 0


def _breadth(plan: Plan) -> int:
    """The number of columns of a relation's tables: tables that others refer to have few columns, and few rows."""
    return sum(len(part.schema) for part in node.walk(plan) if isinstance(part, Scan))


def _asks(condition: Expression) -> int:
    match condition:
        case Call("equal"):
            return 6
        case Call("like" | "in"):
            return 4
        case Call("not_equal" | "not" | "is_not_null"):
            return 0
        case Call("or", alternatives):
            return min(sum(map(_asks, conjuncts(part))) for part in alternatives) * 2 // 3
        case _:
            return 1


def _is_inner(plan: Plan) -> bool:
    return isinstance(plan, Join) and plan.kind == "inner"


def _classes(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The class of each column, numbered as they come; equal columns share a class."""
    parent = list(range(count))

    def root(column: int) -> int:
        while parent[column] != column:
            column = parent[column]
        return column

    for a, b in pairs:
        parent[max(root(a), root(b))] = min(root(a), root(b))
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(member), len(numbers)) for member in range(count)]


def _ties(plan: Plan, tree: Tree, classes: Sequence[int], order: Sequence[int]) -> list[Expression]:
    """Equalities that make the columns of each class equal: all with the first of them, as relations are joined."""
    first: dict[int, int] = {}
    ties: list[Expression] = []
    for relation in order:
        for column in range(tree.starts[relation], tree.starts[relation + 1]):
            other = first.setdefault(classes[column], column)
            if other != column:
                ties.append(call("equal", plan.column(other), plan.column(column)))
    return ties


def _connected(edges: Sequence[frozenset[int]]) -> bool:
    """Whether every relation is reached from the first by shared variables."""
    reached, waiting = {0}, [0]
    while waiting:
        edge_vars = edges[waiting.pop()]
        for number, edge in enumerate(edges):
            if number not in reached and edge_vars & edge:
                reached.add(number)
                waiting.append(number)
    return len(reached) == len(edges)


def _meetings(edges: Iterable[Iterable[int]]) -> Counter[int]:
    """How many relations each variable is in."""
    return Counter(v for edge in edges for v in edge)


def _is_cyclic(edges: Sequence[frozenset[int]]) -> bool:
    """Whether the graph is cyclic: removing ears, relations that hang on one other, leaves several.

    >>> _is_cyclic([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})])
    True
    >>> _is_cyclic([frozenset({0}), frozenset({0, 1}), frozenset({1})])
    False
    """
    left = {number: set(edge) for number, edge in enumerate(edges)}
    met = _meetings(edges)
    changed = True
    while changed:
        changed = False
        for number, edge in list(left.items()):
            alone = {v for v in edge if met[v] == 1}
            edge.difference_update(alone)
            hangs = any(edge <= other for i, other in left.items() if i != number)
            if hangs:
                met.subtract(edge)
                del left[number]
            changed = changed or hangs or bool(alone)
    return len(left) > 1
