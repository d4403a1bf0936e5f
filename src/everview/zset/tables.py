"""Rows as HTML tables, for notebooks: values as people read them, every cell escaped, long tables cut with a count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from itertools import islice
from typing import Any

SHOWN = 50


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """The first rows of ``count`` as a table.

    >>> table(["element"], [("<b>",)], 1)
    '<table><tr><th>element</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(html_cell, row))}</tr>" for row in islice(rows, SHOWN))
    more = f"<p>… and {count - SHOWN:,} more</p>" if count > SHOWN else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def html_cell(value: Any) -> str:
    """A value as a cell: numbers to the right, and NULL paler than a text.

    >>> html_cell(7), html_cell(None)
    ('<td style="text-align:right">7</td>', '<td style="opacity:.5">NULL</td>')
    """
    style = ' style="text-align:right"' if is_number(value) else ' style="opacity:.5"' if value is None else ""
    return f"<td{style}>{escape(readable(value))}</td>"


def is_number(value: Any) -> bool:
    """Whether a value is a number, which stands to the right."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def readable(value: Any) -> str:
    """A value as people read it: as SQL writes it, without the quotes of a text; moments are in UTC.

    >>> from datetime import UTC, datetime
    >>> [readable(each) for each in ("it's", None, True, Decimal("0E-2"), b"ab", datetime(2026, 1, 1, tzinfo=UTC))]
    ["it's", 'NULL', 'true', '0.00', "X'6162'", '2026-01-01 00:00:00']
    >>> readable({"at": [Decimal("1.50"), None]})
    '{"at": ["1.50", null]}'
    """
    match value:
        case str():
            return value
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return f"{value:f}"
        case dict() | list():
            return json.dumps(value, default=readable, ensure_ascii=False)
        case tuple():
            return f"({', '.join(map(readable, value))})"
        case _:
            return str(value).removesuffix("+00:00")
