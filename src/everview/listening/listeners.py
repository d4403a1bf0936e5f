"""The listeners of many views, told of changes in order, once each, whatever the others do.

>>> listeners = Listeners()
>>> with listeners.add("v", lambda changes, epoch: print(epoch, changes), epoch=0):
...     listeners.note(1, {"v": [("a", 1)]})
...     listeners.tell()
1 [('a', 1)]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import length_hint
from typing import Any

from everview.blocks import Busy
from everview.errors import ListenerError
from everview.listening.calls import Call, Raised, call_each, calls_of, end_all, raise_first
from everview.listening.subscription import Ended, Listener, Subscription, Together


@dataclass(frozen=True, slots=True)
class ViewGroup:
    """Views whose listener is told of all of them in one call."""

    views: tuple[str, ...]
    subscriptions: list[Subscription] = field(default_factory=list[Subscription])


Concerned = tuple[str, Subscription, Any]  # a view, a subscription to it, and the changes to tell of


class UntoldChanges:
    """The changes of an epoch, until every listener has been told of them, however often exceptions cut that short.

    All that follow take the changes, then all listeners are called: none of them sees a shape that is behind.
    """

    __slots__ = ("_calls", "_concerned", "_left", "changes", "epoch")

    def __init__(self, epoch: int, changes: Mapping[str, Any]) -> None:
        self.epoch, self.changes = epoch, changes
        self._concerned: list[Concerned] | None = None
        self._calls: list[list[Call]] = []  # of each that is concerned and has taken the changes
        self._left: Iterator[Call] | None = None  # calls that are yet to be made

    def tell(self, concerned: Callable[[int, Mapping[str, Any]], list[Concerned]], raised: list[Raised]) -> None:
        """Tell all listeners that have not been told; which are ``concerned`` is asked once."""
        if self._concerned is None:
            self._concerned = concerned(self.epoch, self.changes)
        while len(self._calls) < len(self._concerned):
            _, subscription, changes = self._concerned[len(self._calls)]
            self._calls.append(calls_of(subscription, changes, self.epoch))
        if self._left is None:
            self._left = iter(list(chain.from_iterable(self._calls)))
        while length_hint(self._left):
            try:
                call_each(self._left)
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                views = [view for (view, *_), calls in zip(self._concerned, self._calls, strict=True) for _ in calls]
                told = len(views) - length_hint(self._left)  # 0 if it came before the first call
                raised.append((views[max(0, told - 1)], self.epoch, error))


class Listeners:
    """Subscriptions by view, and the changes that their listeners have not been told of yet."""

    def __init__(self) -> None:
        self._of: dict[str, list[Subscription]] = {}
        self._groups: list[ViewGroup] = []
        self._untold: deque[UntoldChanges] = deque()
        self._telling: Busy | None = None
        self._at_end: list[tuple[str, Exception]] = []  # raised by listeners that were told that a view has ended

    def __bool__(self) -> bool:
        return bool(self._of or self._groups)

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return sum(map(len, self._of.values())) + sum(len(group.subscriptions) for group in self._groups)

    def has(self, view: str) -> bool:
        """Whether anyone listens to a view."""
        return bool(self._of.get(view)) or any(view in group.views for group in self._groups)

    def add(self, view: str, listener: Listener, epoch: int, ended: Ended | None = None) -> Subscription:
        """Tell a listener of a view's changes after an epoch."""
        return _added(self._of.setdefault(view, []), listener, epoch, ended)

    def add_group(
        self, views: Collection[str], listener: Together, epoch: int, ended: Ended | None = None
    ) -> Subscription:
        """Tell a listener of the changes of several views after an epoch, in one call for each epoch."""
        group = ViewGroup(tuple(views))
        self._groups = [*self._groups, group]

        def end() -> None:
            self._groups = [each for each in self._groups if each is not group]

        return _added(group.subscriptions, listener, epoch, ended, end)

    # -- views that end

    def end(self, view: str) -> None:
        """End all subscriptions to a view, or to groups with this view; `tell` reports their listeners' exceptions."""
        for subscription in self._taken_out((view,)):
            try:
                subscription.over()
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                self._at_end.append((view, error))

    def end_now(self, views: Collection[str]) -> None:
        """`end` for several views, which reports a listener that raises at once."""
        end_all(self._taken_out(views))

    def end_all_but(self, views: Container[str]) -> None:
        """End the subscriptions of all views that are not among these."""
        known = [*self._of, *(view for group in self._groups for view in group.views)]
        for view in dict.fromkeys(view for view in known if view not in views):
            self.end(view)

    def _taken_out(self, views: Collection[str]) -> list[Subscription]:
        gone = set(views)
        over = [each for view in views for each in self._of.pop(view, ())]
        over += [each for group in self._groups if not gone.isdisjoint(group.views) for each in group.subscriptions]
        self._groups = [group for group in self._groups if gone.isdisjoint(group.views)]
        return over

    # -- changes

    def note(self, epoch: int, changes: Mapping[str, Any]) -> None:
        """Put the changes of an epoch aside until `tell`."""
        if self and not (self._untold and self._untold[-1].epoch >= epoch):
            self._untold.append(UntoldChanges(epoch, changes))

    def tell(self) -> None:
        """Tell of all noted changes, in order; of what a listener makes happen meanwhile, afterwards.

        An exception that no listener should raise, as Ctrl-C does, ends the telling: whoever is left is told the next
        time.
        """
        if not (self._untold or self._at_end) or (self._telling is not None and self._telling.alive):
            return
        raised: list[Raised] = []
        busy = Busy()
        with busy:
            self._telling = busy
            while self._untold:
                self._untold[0].tell(self._concerned, raised)
                self._untold.popleft()
        raise_first(raised)
        self._raise_at_end()

    def _raise_at_end(self) -> None:
        raised, self._at_end = self._at_end, []
        for view, error in raised[:1]:
            raise ListenerError(
                f"a listener raised {type(error).__name__} when view {view} ended: {error}",
                hint="the view has ended, and all listeners were told",
            ) from error

    def _concerned(self, epoch: int, changes: Mapping[str, Any]) -> list[Concerned]:
        """The subscriptions whose views have changed, each with the changes for its listener."""
        concerned: list[Concerned] = []
        for view, listeners in self._of.items():
            changed = changes.get(view)
            if changed is not None and len(changed):
                concerned.extend([(view, each, changed) for each in listeners if epoch > each.since])
        for group in self._groups:
            parts = {view: changes[view] for view in group.views if view in changes and len(changes[view])}
            if parts:
                first = next(iter(parts))
                concerned.extend([(first, each, parts) for each in group.subscriptions if epoch > each.since])
        return concerned


def _added(
    among: list[Subscription],
    listener: Listener | Together,
    epoch: int,
    ended: Ended | None,
    end: Callable[[], None] | None = None,
) -> Subscription:
    def removed(subscription: Subscription) -> None:
        if subscription in among:
            among.remove(subscription)
        if end is not None:
            end()

    added = Subscription(listener, epoch, removed, ended)
    among.append(added)
    return added
