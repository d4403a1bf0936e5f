"""Notebooks: cells of SQL, Datalog and EDN, and widgets that show a view, a query or a circuit as ticks arrive.

`live` makes a widget: its page of rows is read and sent by a thread of its own, a few times a second at most, however
many ticks there are. A tick only says that something has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.notebook.magics import EverviewMagics, load_ipython_extension

if TYPE_CHECKING:
    from everview.notebook.output import live
else:
    from everview.later import Later

    live = Later("everview.notebook.output", "live")

__all__ = ["EverviewMagics", "live", "load_ipython_extension"]
