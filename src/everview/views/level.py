"""One branch of a tree at work: its rows in groups, a node for every row, and who above holds which group.

A change goes from the leaves up. A row that comes makes a node; a group whose nodes have changed gets a new tuple of
them; the rows above that hold this group get new nodes, and so on. Whatever is not on such a path stays the object that
it was. Nodes are made of values and nodes, never of places, so older versions stay as they were.
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
    """The rows that belong to the same rows above, in order, and the nodes that they make."""

    rows: SortedRows = field(default_factory=SortedRows)
    nodes: tuple[Any, ...] = ()


class TreeLevel:
    """The rows of one branch, and the nodes that are made of them."""

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
        """What a row above shows of a group: all its nodes, or the first, or its only value."""
        found = self.groups.get(group)
        if self.branch.scalar:
            return next(iter(found.nodes[0].values()), None) if found and found.nodes else None
        if self.branch.one:
            return found.nodes[0] if found and found.nodes else None
        return found.nodes if found else ()

    def take(self, change: Change, changed: list[set[Hashable]]) -> tuple[set[Hashable], Before]:
        """Take a change of the rows, when those beneath have changed some groups.

        The groups of this one that show something else now, and what was there of the rows whose nodes are others or
        gone.
        """
        before: Before = {}
        touched: set[Hashable] = set()
        for of, (row, weight) in change.net.items():
            self._take_row(of, row, weight, before, touched)
        for at, groups in enumerate(changed):
            for group in groups:
                for of, row in self.holders[at].get(group, {}).items():
                    self._renew(of, row, before, touched)
        return {group for group in touched if self._regroup(group)}, before

    def _take_row(self, of: Hashable, row: Any, weight: int, before: Before, touched: set[Hashable]) -> None:
        was = max(self.rows[of][1], 0) if of in self.rows else 0
        add_one(self.rows, of, row, weight)
        now = max(self.rows[of][1], 0) if of in self.rows else 0
        if was == now:
            return
        group = self.group_of(row)
        rows = self.groups.setdefault(group, SiblingGroup()).rows
        key = self.sort_key(row)
        for _ in range(now - was):
            rows.add(key, of, 0)
        for _ in range(was - now):
            rows.remove(key, 0)
        touched.add(group)
        before[of] = self.nodes.get(of), was
        if not was:
            self._hold(of, row)
            self.nodes[of] = self._made(row)
        elif not now:
            del self.nodes[of]
            self._let_go(of, row)

    def _renew(self, of: Hashable, row: Any, before: Before, touched: set[Hashable]) -> None:
        """Make the node of a row again, if anything beneath it is another object now."""
        old, new = self.nodes[of], self._made(row)
        if _same(old, new, len(self.beneath)):
            return
        before.setdefault(of, (old, self.rows[of][1]))
        self.nodes[of] = new
        touched.add(self.group_of(row))

    def _regroup(self, group: Hashable) -> bool:
        """Put the nodes of a group together again; whether it shows something else now."""
        found = self.groups[group]
        old = self.value(group)
        found.nodes = () if self.is_root else tuple([self.nodes[of] for of in found.rows])
        if not len(found.rows):
            del self.groups[group]
        return self.is_root or self.value(group) is not old

    @property
    def is_root(self) -> bool:
        """Its nodes are put together when they are read: there may be many."""
        return not self.branch.name

    def ordered(self) -> Iterator[Any]:
        """The nodes of the root, in order."""
        found = self.groups.get(())
        return (self.nodes[of] for of in found.rows) if found else iter(())

    def first(self) -> Any:
        """The first node of the root, or None."""
        return next(self.ordered(), None)

    def _made(self, row: Any) -> Any:
        return self._record(row, [level.value(hold(row)) for level, hold in zip(self.beneath, self.holds, strict=True)])

    def _hold(self, of: Hashable, row: Any) -> None:
        for holders, hold in zip(self.holders, self.holds, strict=True):
            holders.setdefault(hold(row), {})[of] = row

    def _let_go(self, of: Hashable, row: Any) -> None:
        for holders, hold in zip(self.holders, self.holds, strict=True):
            group = hold(row)
            del holders[group][of]
            if not holders[group]:
                del holders[group]


def _picked(places: tuple[int, ...]) -> Of:
    """The values of some columns, as they are compared."""
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
    """What makes nodes of rows, and of what is beneath them."""
    names = Names((*(name for name, _ in record.fields), *beneath))
    parts = [_part(of) for _, of in record.fields]

    def made(row: Any, more: list[Any]) -> Any:
        if record.present is not None and row[record.present] is None:
            return None
        return Node(names, (*(part(row) for part in parts), *more))

    return made


def _part(of: int | ShownFields) -> Callable[[Any], Any]:
    if isinstance(of, int):
        return lambda row: held(row[of])
    inner = _recorder(of)
    return lambda row: inner(row, [])
