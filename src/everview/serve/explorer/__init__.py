"""The explorer: pages that show a served database to people, from the same process, and what these pages ask for."""

from __future__ import annotations

from everview.serve.explorer.explorer import Explorer

__all__ = ["Explorer"]
