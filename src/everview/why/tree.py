"""The answer to a why: a tree of rows, from the row that was asked about down to rows of tables.

>>> edge = Why("Scan edge", (1, 2), ("a", "b"), table="edge")
>>> print(Why("view reach", (1, 2), ("a", "b"), children=(edge,), more=1204))
view reach: (a=1, b=2)
├─ table edge: (a=1, b=2)
└─ … and 1,204 more
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Why:
    """A row, the plan node behind it, and the reasons for its input rows.

    A base row names its ``table``. What is absent has no row: its ``note`` says what there is none of. ``more`` counts
    rows that stand beside the children and are not shown, ``ways`` how the row could be made of other rows, too; a row
    that has been explained before is there ``again``, without its children.
    """

    node: str
    row: Row | None
    columns: tuple[str, ...] = ()
    children: tuple[Why, ...] = ()
    more: int = 0
    ways: int = 0
    note: str = ""
    table: str = ""
    times: int = 1  # how often a table without a key has the row
    again: bool = False

    def walk(self) -> Iterator[Why]:
        """This node and all below it, from the top."""
        waiting: list[Why] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def base_rows(self) -> dict[str, list[Row]]:
        """The rows of tables at the leaves, by table, each as often as the table has it to give the row."""
        often: dict[str, dict[str, tuple[Row, int]]] = {}
        for node in self.walk():
            if node.table and node.row is not None:
                rows, shown = often.setdefault(node.table, {}), repr(node.row)  # a row with a list has no hash
                rows[shown] = node.row, max(node.times, rows.get(shown, (node.row, 0))[1])
        return {table: [row for row, times in rows.values() for _ in range(times)] for table, rows in often.items()}

    @property
    def complete(self) -> bool:
        """Whether all rows behind the row are shown."""
        return not any(node.more for node in self.walk())

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts and lists."""
        made: dict[int, dict[str, Any]] = {}
        for node in reversed(list(self.walk())):
            told: dict[str, Any] = {"node": node.node}
            if node.row is not None:
                told["row"] = dict(zip(node.columns, node.row, strict=True))
            more = {"table": node.table, "times": node.times if node.times != 1 else 0, "note": node.note}
            more |= {
                "more": node.more,
                "ways": node.ways,
                "again": node.again,
                "because": [made[id(child)] for child in node.children],
            }
            made[id(node)] = told | {name: value for name, value in more.items() if value}
        return made[id(self)]

    @property
    def title(self) -> str:
        """One line: the node, its row, and what is to be said of it."""
        named = f"table {self.table}" if self.table else self.node
        row = "" if self.row is None else f": ({', '.join(map(_named, self.columns, self.row))})"
        times = f" × {self.times:,}" if self.times != 1 else ""
        again = " (explained above)" if self.again else ""
        note = f" — {self.note}" if self.note else ""
        ways = f" (and {self.ways:,} other way{'s' if self.ways > 1 else ''})" if self.ways else ""
        return f"{named}{row}{times}{again}{ways}{note}"

    def __str__(self) -> str:
        lines: list[str] = []
        waiting: list[tuple[Why | int, str, str]] = [(self, "", "")]
        while waiting:
            node, first, rest = waiting.pop()
            if isinstance(node, int):
                lines.append(f"{first}… and {node:,} more")
                continue
            lines.append(first + node.title)
            below: list[Why | int] = [*node.children, *([node.more] if node.more else [])]
            last = len(below) - 1
            for place in range(last, -1, -1):
                ends = ("└─ ", "   ") if place == last else ("├─ ", "│  ")
                waiting.append((below[place], rest + ends[0], rest + ends[1]))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<why {self.title}>"

    def _repr_html_(self) -> str:
        parts: list[str] = []
        waiting: list[Why | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            line = escape(node.title)
            more = f"<li>… and {node.more:,} more</li>" if node.more else ""
            if not node.children:
                parts.append(f"<li>{line}{f'<ul>{more}</ul>' if more else ''}</li>")
                continue
            parts.append(f"<li><details open><summary>{line}</summary><ul>")
            waiting.append(f"{more}</ul></details></li>")
            waiting.extend(reversed(node.children))
        return f"<ul>{''.join(parts)}</ul>"


def _named(name: str, value: Any) -> str:
    return f"{name}={'NULL' if value is None else repr(value)}"
