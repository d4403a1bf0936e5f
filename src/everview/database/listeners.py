"""Who is told of the changes of views: in order, once each, whatever the others do."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping

from everview.database.views import Listener, Subscription
from everview.errors import ListenerError
from everview.zset.batch import Batch

Raised = tuple[str, int, Exception]


class Listeners:
    """Subscriptions by view, and the changes that they have not been told of yet."""

    def __init__(self) -> None:
        self._of: dict[str, list[Subscription]] = {}
        self._untold: deque[tuple[int, Mapping[str, Batch]]] = deque()
        self._telling = False

    def __bool__(self) -> bool:
        return bool(self._of)

    def has(self, view: str) -> bool:
        """Whether anyone listens to a view."""
        return bool(self._of.get(view))

    def add(self, view: str, listener: Listener, epoch: int) -> Subscription:
        """Tell someone of a view's changes after an epoch."""
        listeners = self._of.setdefault(view, [])
        found = Subscription(listener, epoch, lambda it: listeners.remove(it) if it in listeners else None)
        listeners.append(found)
        return found

    def end(self, view: str) -> None:
        """Tell nobody of a view any more."""
        for subscription in tuple(self._of.pop(view, ())):
            subscription.active = False

    def end_all_but(self, views: Container[str]) -> None:
        """Tell nobody of views that are not among these."""
        for view in [view for view in self._of if view not in views]:
            self.end(view)

    def note(self, epoch: int, changes: Mapping[str, Batch]) -> None:
        """Changes to tell of, when it is time."""
        if self._of:
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
        if raised:
            view, epoch, error = raised[0]
            raise ListenerError(
                f"a listener of view {view} raised {type(error).__name__}: {error}",
                hint=f"epoch {epoch} has been applied, and all listeners were told",
            ) from error

    def _tell_of(self, epoch: int, changes: Mapping[str, Batch]) -> Iterator[Raised]:
        for view, listeners in list(self._of.items()):
            found = changes.get(view)
            if found is None or not len(found):
                continue
            for subscription in tuple(listeners):
                if not subscription.active or epoch <= subscription.since:
                    continue
                try:
                    subscription.listener(found, epoch)
                except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                    yield view, epoch, error
