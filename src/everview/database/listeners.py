"""Who is told of the changes of views: in order, once each, whatever the others do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field

from everview.blocks import Busy
from everview.errors import ListenerError
from everview.pull.listening import Concerned, Raised, Telling, raise_first
from everview.views.feed import Together
from everview.views.subscription import Ended, Listener, Subscription
from everview.zset.batch import Batch


@dataclass(frozen=True, slots=True)
class Group:
    """Views whose listener is told of all of them in one call."""

    views: tuple[str, ...]
    subscriptions: list[Subscription] = field(default_factory=list[Subscription])


class Listeners:
    """Subscriptions by view, and the changes that they have not been told of yet."""

    def __init__(self) -> None:
        self._of: dict[str, list[Subscription]] = {}
        self._groups: list[Group] = []
        self._untold: deque[Telling] = deque()
        self._telling: Busy | None = None
        self._at_end: list[tuple[str, Exception]] = []  # what was raised by those who were told that a view has ended

    def __bool__(self) -> bool:
        return bool(self._of or self._groups)

    def has(self, view: str) -> bool:
        """Whether anyone listens to a view."""
        return bool(self._of.get(view)) or any(view in group.views for group in self._groups)

    def add(self, view: str, listener: Listener, epoch: int, ended: Ended | None = None) -> Subscription:
        """Tell someone of a view's changes after an epoch."""
        return _added(self._of.setdefault(view, []), listener, epoch, ended)

    def add_group(
        self, views: Collection[str], listener: Together, epoch: int, ended: Ended | None = None
    ) -> Subscription:
        """Tell someone of the changes of several views after an epoch, in one call for each."""
        group = Group(tuple(views))
        self._groups = [*self._groups, group]

        def end() -> None:
            self._groups = [each for each in self._groups if each is not group]

        return _added(group.subscriptions, listener, epoch, ended, end)

    def end(self, view: str) -> None:
        """Tell nobody of a view any more; nor of others with it. Should one of them raise, `tell` says so."""
        over = [*self._of.pop(view, ())]
        over += [each for group in self._groups if view in group.views for each in group.subscriptions]
        self._groups = [group for group in self._groups if view not in group.views]
        for subscription in over:
            try:
                subscription.over()
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                self._at_end.append((view, error))

    def end_all_but(self, views: Container[str]) -> None:
        """Tell nobody of views that are not among these."""
        known = [*self._of, *(view for group in self._groups for view in group.views)]
        for view in dict.fromkeys(view for view in known if view not in views):
            self.end(view)

    def note(self, epoch: int, changes: Mapping[str, Batch]) -> None:
        """Changes to tell of, when it is time."""
        if self and not (self._untold and self._untold[-1].epoch >= epoch):
            self._untold.append(Telling(epoch, changes))

    def tell(self) -> None:
        """Tell of all that was noted, in order; if a listener makes more happen, of that afterwards.

        An exception that no listener should raise, as Ctrl-C does, ends it: whoever is left is told the next time.
        """
        if not (self._untold or self._at_end) or (self._telling is not None and self._telling.alive):
            return
        raised: list[Raised] = []
        busy = Busy()
        with busy:
            self._telling = busy
            while self._untold:
                raised += self._untold[0].go_on(self._concerned)
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

    def _concerned(self, epoch: int, changes: Mapping[str, Batch]) -> Iterator[Concerned]:
        """Everyone who is to be told something, and what."""
        for view, listeners in list(self._of.items()):
            found = changes.get(view)
            if found is not None and len(found):
                yield from ((view, each, found) for each in tuple(listeners) if epoch > each.since)
        for group in self._groups:
            parts = {view: changes[view] for view in group.views if view in changes and len(changes[view])}
            if parts:
                yield from ((next(iter(parts)), each, parts) for each in group.subscriptions if epoch > each.since)


def _added(
    among: list[Subscription],
    listener: Listener | Together,
    epoch: int,
    ended: Ended | None,
    end: Callable[[], None] | None = None,
) -> Subscription:
    def removed(it: Subscription) -> None:
        if it in among:
            among.remove(it)
        if end is not None:
            end()

    found = Subscription(listener, epoch, removed, ended)
    among.append(found)
    return found
