"""Levels of a tree: the rows of one branch in groups of siblings, a node for every row, and the parents of every group.

A change goes from the leaves up. A new row makes a node; a group whose nodes have changed gets a new tuple of them; the
parents of this group get new nodes, and so on. Nodes that are not on such a path stay the same objects, and no node is
ever changed, so older versions of the tree stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from operator import is_, itemgetter
from typing import Any

from everview.orders.sorted_rows import SortedRows
from everview.types import Schema
from everview.views.branch import Branch, ShownFields
from everview.views.change import Change, Net, add_one
from everview.views.identity import frozen, identity
from everview.views.node import Names, Node, held
from everview.views.order import sort_key

Of = Callable[[Any], Hashable]
Before = dict[Hashable, tuple[Any, int]]  # by the key of a row: the node that it had, and its weight


@dataclass(slots=True)
class SiblingGroup:
    """The rows with the same parents, in order, and their nodes."""

    rows: SortedRows = field(default_factory=SortedRows)
    nodes: tuple[Any, ...] = ()


class TreeLevel:
    """The rows of one branch, and their nodes."""

    def __init__(self, branch: Branch, schema: Schema, beneath: list[TreeLevel]) -> None:
        self.branch, self.schema, self.beneath = branch, schema, beneath
        self.key = identity(schema)
        self.sort_key = sort_key(schema, branch.order)
        self.rows: Net = {}
        self.nodes: dict[Hashable, Any] = {}  # by the key of their row
        self.groups: dict[Hashable, SiblingGroup] = {}
        self.group_of = _picked(branch.child)
        # For every branch beneath, the rows of this one by the group that they hold.
        self.holds = [_picked(level.branch.parent) for level in beneath]
        self.holders: list[dict[Hashable, dict[Hashable, Any]]] = [{} for _ in beneath]
        self._record = _recorder(branch.record, tuple(level.branch.name for level in beneath))

    def value(self, group: Hashable) -> Any:
        """The value of a group in its parents: all its nodes, the first node, or its only value."""
        siblings = self.groups.get(group)
        if self.branch.scalar:
            return next(iter(siblings.nodes[0].values()), None) if siblings and siblings.nodes else None
        if self.branch.one:
            return siblings.nodes[0] if siblings and siblings.nodes else None
        return siblings.nodes if siblings else ()

    def take(self, change: Change, changed: list[set[Hashable]]) -> tuple[set[Hashable], Before]:
        """Take a change of the rows, after the levels beneath have changed some groups.

        Returns the groups whose value has changed, and the former nodes of rows whose node has changed or gone.
        """
        before: Before = {}
        touched: set[Hashable] = set()
        for key, (row, weight) in change.net.items():
            self._take_row(key, row, weight, before, touched)
        for place, groups in enumerate(changed):
            for group in groups:
                for key, row in self.holders[place].get(group, {}).items():
                    self._renew(key, row, before, touched)
        return {group for group in touched if self._regroup(group)}, before

    def _take_row(self, row_key: Hashable, row: Any, weight: int, before: Before, touched: set[Hashable]) -> None:
        was = max(self.rows[row_key][1], 0) if row_key in self.rows else 0
        add_one(self.rows, row_key, row, weight)
        now = max(self.rows[row_key][1], 0) if row_key in self.rows else 0
        if was == now:
            return
        group = self.group_of(row)
        rows = self.groups.setdefault(group, SiblingGroup()).rows
        key = self.sort_key(row)
        for _ in range(now - was):
            rows.add(key, row_key, 0)
        for _ in range(was - now):
            rows.remove(key, 0)
        touched.add(group)
        before[row_key] = self.nodes.get(row_key), was
        if not was:
            self._hold(row_key, row)
            self.nodes[row_key] = self._made(row)
        elif not now:
            del self.nodes[row_key]
            self._let_go(row_key, row)

    def _renew(self, row_key: Hashable, row: Any, before: Before, touched: set[Hashable]) -> None:
        """Make the node of a row again, if a value beneath it is another object now."""
        old, new = self.nodes[row_key], self._made(row)
        if _same(old, new, len(self.beneath)):
            return
        before.setdefault(row_key, (old, self.rows[row_key][1]))
        self.nodes[row_key] = new
        touched.add(self.group_of(row))

    def _regroup(self, group: Hashable) -> bool:
        """Collect the nodes of a group again; whether its value has changed."""
        siblings = self.groups[group]
        old = self.value(group)
        siblings.nodes = () if self.is_root else tuple([self.nodes[row_key] for row_key in siblings.rows])
        if not len(siblings.rows):
            del self.groups[group]
        return self.is_root or self.value(group) is not old

    @property
    def is_root(self) -> bool:
        """Whether this level is the tree's root, whose nodes are collected when they are read: there may be many."""
        return not self.branch.name

    def ordered(self) -> Iterator[Any]:
        """The nodes of the root, in order."""
        siblings = self.groups.get(())
        return (self.nodes[row_key] for row_key in siblings.rows) if siblings else iter(())

    def first(self) -> Any:
        """The first node of the root, or None."""
        return next(self.ordered(), None)

    def _made(self, row: Any) -> Any:
        return self._record(row, [level.value(hold(row)) for level, hold in zip(self.beneath, self.holds, strict=True)])

    def _hold(self, row_key: Hashable, row: Any) -> None:
        for holders, hold in zip(self.holders, self.holds, strict=True):
            holders.setdefault(hold(row), {})[row_key] = row

    def _let_go(self, row_key: Hashable, row: Any) -> None:
        for holders, hold in zip(self.holders, self.holds, strict=True):
            group = hold(row)
            del holders[group][row_key]
            if not holders[group]:
                del holders[group]


def _picked(places: tuple[int, ...]) -> Of:
    """The function from a row to the values of some columns, in a form that can be a key."""
    if not places:
        return lambda row: ()
    if len(places) == 1:
        (place,) = places
        return lambda row: (frozen(row[place]),)
    pick = itemgetter(*places)
    return lambda row: frozen(pick(row))


def _same(old: Any, new: Any, beneath: int) -> bool:
    """Whether two nodes of one row show the same objects beneath it."""
    if not isinstance(old, Node) or not isinstance(new, Node):
        return old is new
    return all(map(is_, old.last(beneath), new.last(beneath)))


def _recorder(record: ShownFields, beneath: tuple[str, ...] = ()) -> Callable[[Any, list[Any]], Any]:
    """The function that makes a row's node, given the values of the branches beneath."""
    names = Names((*(name for name, _ in record.fields), *beneath))
    parts = [_part(field) for _, field in record.fields]

    def made(row: Any, more: list[Any]) -> Any:
        if record.present is not None and row[record.present] is None:
            return None
        return Node(names, (*(part(row) for part in parts), *more))

    return made


def _part(field: int | ShownFields) -> Callable[[Any], Any]:
    if isinstance(field, int):
        return lambda row: held(row[field])
    inner = _recorder(field)
    return lambda row: inner(row, [])
