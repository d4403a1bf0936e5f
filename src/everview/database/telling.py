"""Telling: the subscriptions to views of a database, and when listeners are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from everview.listening import Ended, Listener, Listeners, Subscription, Together
from everview.listening.calls import begun
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core


class Telling:
    """Subscriptions to views. Changes are noted when they count, and listeners are called when nothing is under way."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.listeners = Listeners()
        self._dropped = False  # whether listeners of views that are gone have yet to be told so

    def subscribe(
        self, name: str, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None
    ) -> Subscription:
        """See `View.subscribe`."""
        core = self._core
        with core.still:
            core.access.ready()
            core.access.require_open()
            held = core.holdings.contents_of(name)  # refused if it is not there
            subscription = self.listeners.add(name, listener, core.run.epoch, ended)
            return begun(subscription, held, core.run.epoch) if snapshot else subscription

    def subscribe_all(
        self, names: Collection[str], listener: Together, *, snapshot: bool = False, ended: Ended | None = None
    ) -> Subscription:
        """Call ``listener({view: changes}, epoch)`` once after every tick that changed any of some views."""
        core = self._core
        with core.still:
            core.access.ready()
            core.access.require_open()
            held = {name: core.holdings.contents_of(name) for name in names}
            subscription = self.listeners.add_group(names, listener, core.run.epoch, ended)
            return begun(subscription, held, core.run.epoch) if snapshot else subscription

    def tell(self) -> None:
        """Call listeners with the noted changes, including changes of views over sources that are not kept."""
        try:
            self.listeners.tell()
        finally:
            if self._core.attached.pulls:
                self._core.attached.pipeline.tell()

    # -- definitions that change

    def held(self, names: Collection[str]) -> dict[str, Batch]:
        """The contents of views that have listeners, taken before the views are made anew."""
        views = self._core.run.views
        return {n: self._core.holdings.now(n) for n in names if n in views and self.listeners.has(n)}

    def note_turn(self, before: Mapping[str, Batch]) -> None:
        """Note how views differ from what they held ``before`` a change of definitions. Repeating the call is harmless.

        Subscriptions to a view that held rows of other columns end, and so do those to a view that holds nothing now:
        `tell_of_ends` finds them.
        """
        self._dropped = True
        changes: dict[str, Batch] = {}
        for name, held in before.items():
            if name not in self._core.run.views:
                continue
            after = self._core.holdings.now(name)
            if not len(held):
                changes[name] = after
            elif after.schema != held.schema:
                self.listeners.end(name)
            else:
                changes[name] = after - held
        if changes:
            self.listeners.note(self._core.run.epoch, changes)

    def note_epoch(self, changes: Mapping[str, Batch]) -> None:
        """Note the changes to the epoch that is shown now; subscriptions to views of other columns end."""
        self._dropped = True
        self.listeners.note(self._core.run.epoch, changes)

    def tell_of_ends(self) -> None:
        """Tell the listeners of dropped views, once, that the view has ended."""
        if self._dropped:
            self.listeners.end_all_but(self._core.run.views)
            self._dropped = False
