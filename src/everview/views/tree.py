"""Views as a tree: rows in order, and beneath each row its children, to any depth.

Every version is an immutable snapshot, which stays as it is when the view changes. The next version shares all nodes
with it but those on the paths to the changes.

>>> from everview import connect
>>> from everview.views import Related
>>> db = connect()
>>> _ = db.sql("CREATE TABLE artist (id BIGINT NOT NULL, name STRING); CREATE TABLE track (artist BIGINT, n BIGINT)")
>>> _ = db.sql("CREATE MATERIALIZED VIEW artists AS SELECT * FROM artist")
>>> _ = db.sql("CREATE MATERIALIZED VIEW tracks AS SELECT * FROM track")
>>> _ = db.apply({"artist": [((1, "Ada"), 1), ((2, "Bob"), 1)], "track": [((1, 5), 1)]})
>>> tree = db.view("artists").tree(Related("tracks", "tracks", on=("id", "artist"), show=["n"]), by="name")
>>> before = tree.data
>>> _ = db.apply({"track": [((2, 7), 1)]})
>>> tree.to_list()
[{'id': 1, 'name': 'Ada', 'tracks': [{'n': 5}]}, {'id': 2, 'name': 'Bob', 'tracks': [{'n': 7}]}]
>>> before[0] is tree.data[0], before[1] is tree.data[1], before[1].tracks
(True, False, ())
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from typing import Any

from everview.errors import ShapeError
from everview.views.branch import Branch, walk
from everview.views.change import Change, Net, add_one
from everview.views.feed import Feeds, Weighted
from everview.views.html import nested
from everview.views.level import Before, TreeLevel
from everview.views.node import plain
from everview.views.shape import Shape
from everview.zset.tables import SHOWN


class TreeView(Shape):
    """The trees of a branch and those beneath, whose rows come from feeds that change together.

    ``feeds`` has one for every branch, by its path: ``recent``, ``recent.artist``. ``names`` gives those of a path
    another name. Changes iterate as (node, weight), where the nodes are those at the root.
    """

    def __init__(self, branch: Branch, feeds: Feeds, name: str, *, names: Mapping[str, str] | None = None) -> None:
        super().__init__(name, feeds.lock)
        self._names = {path: (names or {}).get(path, path) for path, _ in walk(name, branch)}
        for wanted in self._names.values():
            if wanted not in feeds.schemas:
                raise ShapeError(f"there is no feed {wanted} for the tree {name}", hint="give one for every branch")
        self._branch, self._feeds = branch, feeds
        self._data: Any = None
        self._rebuild([{} for _ in self._names])
        self._follow(feeds)

    def _rebuild(self, parts: list[Net]) -> None:
        levels: list[tuple[str, TreeLevel]] = []
        self._add_level(self._branch, self.name, levels)
        _pass_up(levels, [Change(rows) for rows in parts])
        self._levels, self._stale = levels, True

    def _add_level(self, branch: Branch, path: str, levels: list[tuple[str, TreeLevel]]) -> TreeLevel:
        """Add the level of a branch to others, after those beneath it."""
        beneath = [self._add_level(each, f"{path}.{each.name}", levels) for each in branch.children]
        level = TreeLevel(branch, self._feeds.schemas[self._names[path]], beneath)
        levels.append((self._names[path], level))
        return level

    def _parts(self) -> list[Net]:
        return [level.rows for _, level in self._levels]

    @property
    def _root(self) -> TreeLevel:
        return self._levels[-1][1]

    def _netted(self, changes: Mapping[str, Weighted], epoch: int) -> list[Change] | None:
        if any(getattr(changes.get(name), "schema", level.schema) != level.schema for name, level in self._levels):
            return None
        return [Change.of(changes.get(name, ()), epoch, level.key) for name, level in self._levels]

    def _take(self, changes: list[Change], epoch: int) -> Change | None:
        first = self._root.first() if self._single else None
        before = _pass_up(self._levels, changes)
        self._stale |= bool(before)
        if not (before and self._listeners):
            return None
        return Change(self._other(first) if self._single else self._difference(before), epoch, epoch - 1)

    def _difference(self, before: Before) -> Net:
        net: Net = {}
        for key, (old, weight) in before.items():
            if weight:
                add_one(net, old, old, -weight)
            if key in self._root.nodes:
                new = self._root.nodes[key]
                add_one(net, new, new, self._root.rows[key][1])
        return net

    def _other(self, first: Any) -> Net:
        now = self._root.first()
        if now is first:
            return {}
        return dict(Change.of((node, weight) for node, weight in ((first, -1), (now, 1)) if node is not None).net)

    @property
    def _single(self) -> bool:
        return self._root.branch.one or self._root.branch.scalar

    # -- reading

    @property
    def data(self) -> Any:
        """The tree now: a tuple of nodes; if the root is a single row, its node or None; if it is a single value, that.

        The tree is immutable. Reading it again without a change between gives the same object.
        """
        with self.lock:
            if self._stale:
                self._data, self._stale = self._made(), False
            return self._data

    def _made(self) -> Any:
        if not self._single:
            return tuple(self._root.ordered())
        first = self._root.first()
        return next(iter(first.values()), None) if self._root.branch.scalar and first is not None else first

    def to_list(self) -> Any:
        """The tree now as new lists and dicts."""
        return plain(self.data)

    rows = to_list  # as the other shapes have it

    def contents(self) -> Change:
        """The nodes at the root, each with its weight."""
        with self.lock:
            nodes = [self._root.first()] if self._single else self._root.ordered()
            whole = Change.of(((node, 1) for node in nodes if node is not None), self.epoch)
            return Change(whole.net, self.epoch, self.epoch, True)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._nodes())

    def __getitem__(self, index: Any) -> Any:
        return self._nodes()[index]

    def _nodes(self) -> Any:
        data = self.data
        if not self._single:
            return data
        return () if data is None else (data,)

    def __len__(self) -> int:
        """The number of nodes at the root."""
        with self.lock:
            siblings = self._root.groups.get(())
            count = len(siblings.rows) if siblings else 0
            return min(count, 1) if self._single else count

    def __repr__(self) -> str:
        return f"<tree view {self.name}: {len(self)} at the root>"

    def _repr_html_(self) -> str:
        with self.lock:
            first = [node for node in islice(self._root.ordered(), 1 if self._single else SHOWN) if node is not None]
            return nested(first, len(self))


def _pass_up(levels: list[tuple[str, TreeLevel]], changes: list[Change]) -> Before:
    """Take the changes of all levels, from the leaves up; the former nodes of changed rows at the root."""
    changed: dict[int, set[Hashable]] = {}
    before: Before = {}
    for (_, level), change in zip(levels, changes, strict=True):
        changed[id(level)], before = level.take(change, [changed[id(each)] for each in level.beneath])
    return before
