"""Aggregates: one row for each group. Sums and values at an end are kept, all else is pulled by the group's key.

A group is *known* once all its rows were read: for a view being attached, or because a change touched it. The change of
an unknown group reads the group as it is now, and takes the change back to learn the state before. So nothing is kept
for groups that nobody has looked at, and no row is added up twice: a group that is read replaces its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from everview.plan.aggregates import of_nothing
from everview.plan.typing import call as typed
from everview.runtimes.pull.calls import AddedUp, Called, Collected, End, called, kept, reads
from everview.runtimes.pull.demand import Among, Demand, Row, Sort
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import through
from everview.runtimes.pull.rows import Rowwise, satisfied
from everview.scalars.expressions import AggregateCall, Column, Expression, columns_of, rewritten
from everview.sources.protocol import Update
from everview.types import Schema

AT_ONCE = 4096  # rows that are put into their groups together
Entries = list[tuple[Row, int]]  # the values of all that the calls read, and how often


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """The kept state of a group: its number of rows, and for each call a sum, a value at an end, or a result."""

    count: int
    states: tuple[object, ...]


class PullAggregate(PullNode):
    """The node of GROUP BY: group columns and the results of aggregate calls. `Distinct` is one without calls."""

    def __init__(self, input_: PullNode, groups: Sequence[int], calls: Sequence[AggregateCall], schema: Schema) -> None:
        self.input, self.groups, self.schema = input_, tuple(groups), schema
        self.inputs, self.few = (input_,), input_.few if groups else 1
        self.key = tuple(range(len(self.groups)))
        self._texts = [str(call) for call in calls]
        self._calls, self._kinds = tuple(calls), tuple(map(called, calls))
        self._nothing: Row = tuple(of_nothing(call) for call in calls)
        self._spans = _spans(calls)
        self._values = Rowwise([e for call in calls for e in reads(call)], input_.schema)
        self._collects = any(isinstance(kind, Collected) for kind in self._kinds)
        self._known: dict[Row, KnownGroup] = {}
        self._staged: dict[Row, KnownGroup] = {}
        self._complete = False  # whether a group that is not known has no rows

    @property
    def kept(self) -> int:
        return len(self._known)

    @property
    def title(self) -> str:
        by = ", ".join(self.input.schema.names[column] for column in self.groups)
        return f"Aggregate {', '.join(self._texts)} by {by}" if self._calls else f"Distinct {by}"

    # -- history

    def pull(self, demand: Demand) -> Iterator[Row]:
        if self._complete:
            known = {**self._known, **self._staged}
            rows = (self._row(key, group) for key, group in known.items() if group.count > 0 or not self.groups)
            return satisfied(rows, self.schema, demand)
        if not self.groups:
            return satisfied(self._one(demand.keep), self.schema, demand)
        below, rest = self._parted(demand)

        def ask(asked: Demand) -> Iterator[Row]:
            groups = self._grouped(replace(asked, where=below.where, among=(*below.among, *asked.among), limit=None))
            return satisfied(groups, self.schema, rest)

        if demand.keep and demand.everything and not demand.order:
            return self._whole()
        return through(
            demand, self.schema, lambda column: self.groups[column] if column < len(self.groups) else None, ask
        )

    def _whole(self) -> Iterator[Row]:
        """Pull all groups, and keep them: from now on a group that is not known has no rows."""
        yield from self._grouped(Demand(keep=True))
        self._complete = True

    def _one(self, keep: bool) -> Iterator[Row]:
        """Pull the only row of an aggregate without GROUP BY."""
        entries = self._read(self.input.pull(Demand(keep=keep)))
        group = self._of(entries)
        if keep:
            self._known[()] = group
            self._complete = True
        yield self._row((), group)

    def _parted(self, demand: Demand) -> tuple[Demand, Demand]:
        """Split a demand: the part over group columns goes to the input, the part over results is tested here."""
        width = len(self.groups)
        below = [w for w in demand.where if max(columns_of(w), default=width) < width]
        keys = [a for a in demand.among if max(a.columns, default=width) < width]
        return (
            Demand(
                tuple(rewritten(w, self._of_input) for w in below),
                tuple(a.at(self.groups.__getitem__) for a in keys),
            ),
            Demand(tuple(w for w in demand.where if w not in below), tuple(a for a in demand.among if a not in keys)),
        )

    def _of_input(self, expression: Expression) -> Expression:
        if not isinstance(expression, Column):
            return expression
        return replace(expression, index=self.groups[expression.index])

    def _grouped(self, asked: Demand) -> Iterator[Row]:
        """The rows of all groups of a demand, in the order of the ordered columns."""
        if not asked.order:
            yield from self._hashed(self.input.pull(asked), asked.keep)
            return
        columns = tuple(s.column for s in asked.order)
        for _, run in groupby(self.input.pull(asked), lambda row: tuple([row[column] for column in columns])):
            yield from self._hashed(run, asked.keep)

    def _hashed(self, rows: Iterable[Row], keep: bool) -> Iterator[Row]:
        """The rows of the groups of some input rows, which must be all rows of these groups."""
        groups: dict[Row, KnownGroup] = {}
        collected: dict[Row, Entries] = {}
        pairs = self._values.lazily(rows)
        while part := list(islice(pairs, AT_ONCE)):
            for key, entries in self._by_group(part).items():
                groups[key] = self._with(groups.get(key) or self._empty(), entries)[0]
                if self._collects:
                    collected.setdefault(key, []).extend(entries)
        for key, group in groups.items():
            yield self._noted(key, self._reread(group, collected[key]) if self._collects else group, keep)

    def _by_group(self, pairs: Iterable[tuple[Row, Row]]) -> dict[Row, Entries]:
        """The values that the calls read, by group, of rows with weight 1."""
        entries: dict[Row, Entries] = {}
        for row, values in pairs:
            entries.setdefault(self._group(row), []).append((values, 1))
        return entries

    def _noted(self, key: Row, group: KnownGroup, keep: bool) -> Row:
        if keep and key not in self._known:
            self._known[key] = group
        return self._row(key, group)

    def _group(self, row: Row) -> Row:
        return tuple([row[column] for column in self.groups])

    def _read(self, rows: Iterable[Row]) -> Entries:
        return [(values, 1) for _, values in self._values.lazily(rows)]

    # -- groups

    def _empty(self) -> KnownGroup:
        return KnownGroup(0, tuple(_start(kind) for kind in self._kinds))

    def _of(self, entries: Entries) -> KnownGroup:
        """The state of a group of these rows."""
        group = self._with(self._empty(), entries)[0]
        return self._reread(group, entries)

    def _with(self, group: KnownGroup, entries: Entries) -> tuple[KnownGroup, bool]:
        """The group after its rows changed, and whether its state is certain without reading all its rows."""
        states, sure = list(group.states), not self._collects
        for place, (call, kind, span) in enumerate(zip(self._calls, self._kinds, self._spans, strict=True)):
            given = [(values[span], weight) for values, weight in entries]
            if call.filter is not None:
                given = [(values, weight) for values, weight in given if kept(call, values)]
            if isinstance(kind, AddedUp):
                states[place] = kind.added(states[place], given)
            elif isinstance(kind, End):
                states[place], certain = kind.moved(states[place], given)
                sure = sure and certain
        return KnownGroup(group.count + sum(weight for _, weight in entries), tuple(states)), sure

    def _reread(self, group: KnownGroup, entries: Entries) -> KnownGroup:
        """The group with the states that are not sums computed from all its rows."""
        states = list(group.states)
        for place, (call, kind, span) in enumerate(zip(self._calls, self._kinds, self._spans, strict=True)):
            if isinstance(kind, AddedUp):
                continue
            given = [(values[span], weight) for values, weight in entries]
            states[place] = kind.result([(values, weight) for values, weight in given if kept(call, values)])
        return KnownGroup(group.count, tuple(states))

    def _row(self, key: Row, group: KnownGroup) -> Row:
        if group.count <= 0 and not self.groups:
            return self._nothing
        pairs = zip(self._kinds, group.states, strict=True)
        return (*key, *[kind.result(state) if isinstance(kind, AddedUp) else state for kind, state in pairs])

    # -- changes

    def push(self, *updates: Update) -> Update:
        rows = updates[0].rows
        touched: dict[Row, Entries] = {}
        for (row, weight), values in zip(rows.items(), self._values(list(rows)), strict=True):
            touched.setdefault(self._group(row), []).append((values, weight))
        before = {key: self._was(key) for key in touched}
        after: dict[Row, KnownGroup] = {}
        again: list[Row] = []
        for key, group in before.items():
            changed, sure = self._with(group, touched[key]) if group is not None else (self._empty(), False)
            gone = group is not None and changed.count <= 0
            after[key] = self._empty() if gone else changed
            if not sure and not gone:
                again.append(key)
        ended = {key for key in again if before[key] is not None and self._ends_found(key, touched[key], before, after)}
        for key, entries in self._pulled([key for key in again if key not in ended]).items():
            group = before[key]
            after[key] = self._reread(after[key], entries) if group is not None else self._of(entries)
            before[key] = group if group is not None else self._of(_back(entries, touched[key]))
        return self._replaced(before, after)

    def _was(self, key: Row) -> KnownGroup | None:
        known = self._known.get(key)
        return self._empty() if known is None and self._complete else known

    def _ends_found(
        self, key: Row, entries: Entries, before: Mapping[Row, KnownGroup | None], after: dict[Row, KnownGroup]
    ) -> bool:
        """Find a new least or greatest value by pulling one row in its order; False if more than that is unsure."""
        group = before[key]
        if self._collects or group is None:
            return False
        states = list(after[key].states)
        for place, (call, kind, span) in enumerate(zip(self._calls, self._kinds, self._spans, strict=True)):
            given = [(values[span], weight) for values, weight in entries if kept(call, values[span])]
            if not isinstance(kind, End) or kind.moved(group.states[place], given)[1]:
                continue
            (argument,) = call.arguments
            if not isinstance(argument, Column):
                return False
            states[place] = self._outermost(key, argument, call, kind)
        after[key] = KnownGroup(after[key].count, tuple(states))
        return True

    def _outermost(self, key: Row, argument: Column, call: AggregateCall, kind: End) -> object:
        where = (typed("is_not_null", argument), *(() if call.filter is None else (call.filter,)))
        among = (Among(self.groups, frozenset({key})),) if self.groups else ()
        sort = Sort(argument.index, kind.greatest, not kind.greatest)
        row = next(self.input.pull(Demand(where, among, (sort,), limit=1)), None)
        return None if row is None else row[argument.index]

    def _pulled(self, keys: Sequence[Row]) -> Mapping[Row, Entries]:
        """The entries of all rows of some groups, as they are now."""
        entries: dict[Row, Entries] = {key: [] for key in keys}
        if keys:
            demand = Demand(among=(Among(self.groups, frozenset(keys)),)) if self.groups else Demand()
            entries.update(self._by_group(self._values.lazily(self.input.pull(demand))))
        return entries

    def _replaced(self, before: Mapping[Row, KnownGroup | None], after: Mapping[Row, KnownGroup]) -> Update:
        out: dict[Row, int] = {}
        for key, group in before.items():
            assert group is not None, "a group that was not known has been read"
            now = after[key]
            if now == group:
                continue
            if group.count > 0 or not self.groups:
                old = self._row(key, group)
                out[old] = out.get(old, 0) - 1
            if now.count > 0 or not self.groups:
                new = self._row(key, now)
                out[new] = out.get(new, 0) + 1
        self._staged = dict(after)
        return Update({row: weight for row, weight in out.items() if weight})

    def commit(self) -> None:
        for key, group in self._staged.items():
            if group.count > 0 or not self.groups:
                self._known[key] = group
            else:
                self._known.pop(key, None)
        self._staged = {}

    def rollback(self) -> None:
        self._staged = {}


def _start(kind: Called) -> object:
    return kind.zero if isinstance(kind, AddedUp) else None


def _spans(calls: Sequence[AggregateCall]) -> list[slice]:
    spans: list[slice] = []
    start = 0
    for call in calls:
        stop = start + len(reads(call))
        spans.append(slice(start, stop))
        start = stop
    return spans


def _back(entries: Entries, change: Entries) -> Entries:
    """The entries before a change, of those after it."""
    sums: dict[Row, int] = {}
    for values, weight in entries:
        sums[values] = sums.get(values, 0) + weight
    for values, weight in change:
        sums[values] = sums.get(values, 0) - weight
    return [(values, weight) for values, weight in sums.items() if weight]
