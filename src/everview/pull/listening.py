"""Who is told of the changes of views: once a transaction, in order, whatever the others do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import length_hint
from typing import Any, Protocol

from everview.blocks import Busy
from everview.errors import ListenerError

Listener = Callable[[Any, int], None]  # told (changes, epoch)
Together = Callable[[Mapping[str, Any], int], None]  # told ({view: changes}, epoch)
Ended = Callable[[], None]
Raised = tuple[str, int, Exception]


class Active(Protocol):
    """A subscription as those see it who tell."""

    @property
    def active(self) -> bool: ...

    @property
    def listener(self) -> Callable[[Any, int], Any]: ...


Call = tuple[Active, Callable[[], Any]]  # someone who is told of changes, if still active then, and how
Concerned = tuple[str, Active, Any]  # a view, someone who listens to it, and what there is to tell


class Subscription:
    """Someone who is told of the changes of some views; calling or closing it ends that."""

    def __init__(
        self,
        views: Collection[str],
        listener: Together,
        since: int,
        end: Callable[[Subscription], None],
        ended: Ended | None,
    ) -> None:
        self.views, self.listener, self.since = frozenset(views), listener, since
        self.active = True
        self._end, self._ended = end, ended

    def close(self) -> None:
        """Be told no more."""
        self.active = False
        self._end(self)

    __call__ = close

    def over(self) -> None:
        """What it listens to has ended: tell it so, once."""
        if self.active:
            self.close()
            if self._ended is not None:
                self._ended()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def raise_first(raised: Collection[Raised]) -> None:
    """Report the first of the listeners that raised, if any did; one that was told by another is named itself."""
    for view, epoch, error in raised:
        cause = error.__cause__ if isinstance(error, ListenerError) and error.__cause__ else error
        raise ListenerError(
            f"a listener of view {view} raised {type(cause).__name__}: {cause}",
            hint=f"epoch {epoch} has been applied, and all listeners were told",
        ) from cause


class Telling:
    """The telling of one epoch's changes, which an exception may cut short: whoever goes on leaves nobody out.

    All that follow take the changes, then all listeners are told: none of them sees one that is behind.
    """

    def __init__(self, epoch: int, changes: Mapping[str, Any]) -> None:
        self.epoch, self.changes = epoch, changes
        self._concerned: list[Concerned] | None = None
        self._calls: list[list[Call]] = []  # of each that is concerned and has taken the changes
        self._views: list[str] = []
        self._left: Iterator[Call] | None = None  # who has yet to be told

    def go_on(self, concerned: Callable[[int, Mapping[str, Any]], Iterable[Concerned]]) -> Iterator[Raised]:
        """Tell everyone who has not been told; who those are is asked once."""
        if self._concerned is None:
            self._concerned = list(concerned(self.epoch, self.changes))
        while len(self._calls) < len(self._concerned):
            view, subscription, found = self._concerned[len(self._calls)]
            calls: list[Call] = []
            try:
                calls = calls_of(subscription, found, self.epoch)
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                yield view, self.epoch, error
            self._calls.append(calls)
        if self._left is None:
            self._views = [view for (view, *_), calls in zip(self._concerned, self._calls, strict=True) for _ in calls]
            self._left = iter([call for calls in self._calls for call in calls])
        while length_hint(self._left):
            try:
                call_each(self._left)
            except Exception as error:  # noqa: BLE001, the same
                yield self._views[-1 - length_hint(self._left)], self.epoch, error


def call_each(calls: Iterator[Call]) -> None:
    """Call all that are still active, until one raises; the next time, those after it.

    Between taking one and its first line there is nothing at which the interpreter runs a signal handler. So nobody is
    left out, and nobody is told twice, not even one whom an exception cuts short.
    """
    deque((call() for subscription, call in calls if subscription.active), maxlen=0)


class Told:
    """Subscriptions, and the changes that they have not been told of yet."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._untold: deque[Telling] = deque()
        self._telling: Busy | None = None

    def add(self, views: Collection[str], listener: Together, epoch: int, ended: Ended | None) -> Subscription:
        """Tell someone of what changes after an epoch."""
        found = Subscription(views, listener, epoch, self._drop, ended)
        self._subscriptions.append(found)
        return found

    def _drop(self, subscription: Subscription) -> None:
        self._subscriptions = [each for each in self._subscriptions if each is not subscription]

    def end(self, views: Collection[str]) -> None:
        """Views that end take their subscriptions with them."""
        end_all([each for each in self._subscriptions if each.views & set(views)])

    def note(self, epoch: int, changes: Mapping[str, Any]) -> None:
        """Changes to tell of, when it is time. What was noted for an epoch is not noted again."""
        if self._subscriptions and changes and not (self._untold and self._untold[-1].epoch >= epoch):
            self._untold.append(Telling(epoch, changes))

    def tell(self) -> None:
        """Tell of all that was noted, in order; if a listener makes more happen, of that afterwards.

        An exception that no listener should raise, as Ctrl-C does, ends it: whoever is left is told the next time.
        """
        if not self._untold or (self._telling is not None and self._telling.alive):
            return
        raised: list[Raised] = []
        busy = Busy()
        with busy:
            self._telling = busy
            while self._untold:
                raised += self._untold[0].go_on(self._concerned)
                self._untold.popleft()
        raise_first(raised)

    def _concerned(self, epoch: int, changes: Mapping[str, Any]) -> Iterator[Concerned]:
        for subscription in tuple(self._subscriptions):
            found = {view: changes[view] for view in changes if view in subscription.views}
            if found and epoch > subscription.since:
                yield next(iter(found)), subscription, found


class Ending(Protocol):
    """A subscription as those see it who end."""

    def over(self) -> None: ...


def end_all(subscriptions: Iterable[Ending]) -> None:
    """Tell all of them that this is the end; if one raises, that is said when all have been told."""
    raised: Exception | None = None
    for subscription in subscriptions:
        try:
            subscription.over()
        except Exception as error:  # noqa: BLE001, whatever it is, the others are told
            raised = raised or error
    if raised is not None:
        raise ListenerError(
            f"a listener raised {type(raised).__name__} when its view ended: {raised}",
            hint="the view has ended, and all listeners were told",
        ) from raised


class Through:
    """A listener that is told what a function makes of the changes; who follows, follows through it."""

    def __init__(self, listener: Callable[[Any, int], None], made: Callable[[Any], Any]) -> None:
        self.listener, self.made = listener, made

    def __call__(self, changes: Any, epoch: int) -> None:
        self.listener(self.made(changes), epoch)


def calls_of(subscription: Active, changes: Any, epoch: int) -> list[Call]:
    """How someone is told of changes; who follows takes them now, and says who else is to be told."""
    listener = subscription.listener
    while isinstance(listener, Through):  # who is told is called itself, see `call_each`
        listener, changes = listener.listener, listener.made(changes)
    follow = getattr(listener, "follow", None)
    if follow is None:
        return [(subscription, partial(listener, changes, epoch))]
    return follow(changes, epoch) if subscription.active else []
