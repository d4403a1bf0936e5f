"""Names that pages of the reference tell of, beside those that ``dir`` shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def documented(page: str) -> set[str]:
    """The names that stand as code in a page."""
    text = (REFERENCE / page).read_text()
    code = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE) + re.findall(r"`[^`\n]+`", text)
    return {name for part in code for name in re.findall(r"\w+", part)}


def undocumented(thing: Any, page: str) -> list[str]:
    """The names without a leading underscore that ``dir`` shows and the page does not have."""
    return sorted({name for name in dir(thing) if not name.startswith("_")} - documented(page))
