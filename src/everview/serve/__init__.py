"""A server of a database: one writer, readers on snapshots, sessions, subscriptions, limits and tokens; and its doors.

The core is `Owner`; each door, HTTP as any other, is a client of it and of nothing else.
"""

from __future__ import annotations

from everview.serve.changes import ChangeSubscriber, ViewChange
from everview.serve.limits import ServeLimits
from everview.serve.owner import Owner
from everview.serve.roles import Role
from everview.serve.sessions import ClientSession
from everview.serve.tasks import ServerTask
from everview.serve.tokens import TokenFile

__all__ = ["ChangeSubscriber", "ClientSession", "Owner", "Role", "ServeLimits", "ServerTask", "TokenFile", "ViewChange"]
