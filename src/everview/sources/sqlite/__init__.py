"""SQLite tables as sources."""

from everview.sources.sqlite.source import SQLite

__all__ = ["SQLite"]
