"""Listeners of views: the order in which they are told of changes, and what happens when one of them raises.

`Subscription` is one listener's handle, `Listeners` holds the subscriptions of many views and tells them, `calls` has
how a single listener is called and how its exception is reported.
"""

from everview.listening.listeners import Listeners
from everview.listening.subscription import Ended, Handle, Listener, Subscription, Together

__all__ = ["Ended", "Handle", "Listener", "Listeners", "Subscription", "Together"]
