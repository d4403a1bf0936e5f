"""Trees as HTML tables, for notebooks: cells are escaped, children are tables in cells, long tables are cut.

>>> from everview.views.node import Names, Node
>>> nested([Node(Names(("name",)), ("<b>",))], 1)
'<table><tr><th>name</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from everview.views.node import Node
from everview.zset.tables import SHOWN, html_cell, readable


def nested(nodes: Sequence[Any], count: int) -> str:
    """The first nodes of ``count`` as a table."""
    if not nodes:
        return "<p>nothing</p>"
    if not all(isinstance(node, Node) for node in nodes):
        return escape(", ".join(map(readable, nodes[:SHOWN])))
    head = "".join(f"<th>{escape(name)}</th>" for name in nodes[0])
    body = "".join(f"<tr>{''.join(map(_cell, node.values()))}</tr>" for node in nodes[:SHOWN])
    more = f"<p>… and {count - SHOWN} more</p>" if count > SHOWN else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, Node):
        return f"<td>{nested([value], 1)}</td>"
    if isinstance(value, tuple) and value and isinstance(value[0], Node):
        return f"<td>{nested(value, len(value))}</td>"
    return html_cell(value)
