"""Write docs/reference/sql-clauses.md: the clauses of SQL by example, from the files of the conformance suite.

``scripts/clauses.py`` prints the page; with ``--write`` it writes it. A test sees to it that the page is current.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "sql-clauses.md"
CASES = ROOT / "tests" / "conformance" / "cases"

# Which files are on the page, in which order, and under which heading.
HEADINGS = {
    "logic": "Expressions and conditions",
    "joins": "Joins",
    "merged": "Joins by name",
    "aggregates": "Groups and aggregates",
    "subqueries": "Subqueries",
    "sets": "Set operations",
    "tops_and_windows": "Limits and windows",
    "frames": "Frames of windows",
    "aggregates_over_windows": "Aggregates over windows",
    "windows_over_arrays": "Windows over arrays",
    "shapes": "Shapes and arrays",
    "moments": "Dates, timestamps and intervals",
    "recursion": "Recursion",
}

HEAD = """# SQL clauses by example

Every view on this page is kept under inserts, deletes and updates, and its contents are compared with DuckDB's answer
after every tick, on both runtimes. The page is made from the files of that suite, `tests/conformance/cases`, by
`scripts/clauses.py --write`.
"""

STATEMENT = re.compile(r"^sql (CREATE (?:TABLE|MATERIALIZED VIEW) .*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def page() -> str:
    """Give the page as it should be."""
    return "\n".join([HEAD, *(_section(stem, heading) for stem, heading in HEADINGS.items())])


def _section(stem: str, heading: str) -> str:
    text = (CASES / f"{stem}.test").read_text()
    told = text.splitlines()[0].removeprefix("# ")
    statements = ";\n\n".join(STATEMENT.findall(text))
    return f"## {heading}\n\n{told}\n\n```sql\n{statements};\n```\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
