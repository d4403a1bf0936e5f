"""The door by HTTP: queries, views, changes as server-sent events, and rows that come in."""

from __future__ import annotations

from everview.serve.http.app import make_app
from everview.serve.http.door import HttpDoor

__all__ = ["HttpDoor", "make_app"]
