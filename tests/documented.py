"""Pages as tests see them: the names that the reference tells of, and the programs of how-to guides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = DOCS / "reference"


def documented(page: str) -> set[str]:
    """The names that stand as code in a page."""
    text = (REFERENCE / page).read_text()
    code = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE) + re.findall(r"`[^`\n]+`", text)
    return {name for part in code for name in re.findall(r"\w+", part)}


def undocumented(thing: Any, page: str) -> list[str]:
    """The names without a leading underscore that ``dir`` shows and the page does not have."""
    return sorted({name for name in dir(thing) if not name.startswith("_")} - documented(page))


def run_page(page: str, **given: Any) -> dict[str, Any]:
    """Run the Python of a page from top to bottom, with some names given, and return all names."""
    names = dict(given)
    for block in re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, page, "exec"), names)
    return names
