"""Z-sets as HTML tables, for notebooks: every cell escaped, long ones cut with a count of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

SHOWN = 50


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """The first rows of ``count`` as a table.

    >>> table(["element", "weight"], [("<b>", 1)], 1)
    '<table><tr><th>element</th><th>weight</th></tr><tr><td>&#x27;&lt;b&gt;&#x27;</td><td>1</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(rows, SHOWN))
    more = f"<p>… and {count - SHOWN} more</p>" if count > SHOWN else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _cell(value: Any) -> str:
    return f"<td>{escape(repr(value))}</td>"
