"""Who is told of the changes of views: once a transaction, in order, whatever the others do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from everview.errors import ListenerError

Listener = Callable[[Any, int], None]  # told (changes, epoch)
Together = Callable[[Mapping[str, Any], int], None]  # told ({view: changes}, epoch)
Ended = Callable[[], None]
Raised = tuple[str, int, Exception]


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


class Told:
    """Subscriptions, and the changes that they have not been told of yet."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._untold: deque[tuple[int, Mapping[str, Any]]] = deque()
        self._telling = False

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
        """Changes to tell of, when it is time."""
        if self._subscriptions and changes:
            self._untold.append((epoch, changes))

    def tell(self) -> None:
        """Tell of all that was noted, in order; if a listener makes more happen, of that afterwards."""
        if self._telling or not self._untold:
            return
        self._telling = True
        raised: list[Raised] = []
        try:
            while self._untold:
                raised += self._tell_of(*self._untold.popleft())
        finally:
            self._telling = False
        raise_first(raised)

    def _tell_of(self, epoch: int, changes: Mapping[str, Any]) -> Iterator[Raised]:
        """Those who follow take the changes, then all are told: nobody sees one of them that is behind."""
        calls: list[tuple[str, Callable[[], None]]] = []
        for subscription in tuple(self._subscriptions):
            found = {view: changes[view] for view in changes if view in subscription.views}
            if not found or epoch <= subscription.since:
                continue
            try:
                call = call_of(subscription, found, epoch)
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                yield next(iter(found)), epoch, error
            else:
                calls += [] if call is None else [(next(iter(found)), call)]
        for view, call in calls:
            try:
                call()
            except Exception as error:  # noqa: BLE001, the same
                yield view, epoch, error


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


class Active(Protocol):
    """A subscription as those see it who tell."""

    @property
    def active(self) -> bool: ...

    @property
    def listener(self) -> Callable[[Any, int], Any]: ...


def call_of(subscription: Active, changes: Any, epoch: int) -> Callable[[], None] | None:
    """How someone is told of changes; who follows takes them now, and has others told when it is called."""
    follow = getattr(subscription.listener, "follow", None)
    if follow is not None:
        return follow(changes, epoch) if subscription.active else None
    return lambda: subscription.listener(changes, epoch) if subscription.active else None


class Through:
    """A listener that is told what a function makes of the changes; who follows, follows through it."""

    def __init__(self, listener: Callable[[Any, int], None], made: Callable[[Any], Any]) -> None:
        self._listener, self._made = listener, made

    def __call__(self, changes: Any, epoch: int) -> None:
        self._listener(self._made(changes), epoch)

    @property
    def follow(self) -> Callable[[Any, int], Any] | None:
        """How it follows, if it does."""
        follow = getattr(self._listener, "follow", None)
        return None if follow is None else lambda changes, epoch: follow(self._made(changes), epoch)
