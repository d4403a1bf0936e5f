"""Write the layers of the packages into CONTRIBUTING.md, from the contract in pyproject.toml that import-linter checks.

``scripts/layers.py`` prints them; with ``--write`` it replaces the block in CONTRIBUTING.md. A test sees to it that
the block is current.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- layers -->\n).*?(?=<!-- end of layers -->)", re.DOTALL)


def layers() -> str:
    """Give the block: one layer a line, the highest first, each with the first sentence of its packages' docstrings."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["name"] == "Layers")
    rows = [_row(name) for layer in contract["layers"] for name in re.findall(r"\w+", layer)]
    return "\n".join(["| package | what it is |", "|---|---|", *rows, ""])


def _row(name: str) -> str:
    """Give a package's line: its name and what its docstring says first."""
    home = ROOT / "src" / "everview"
    path = home / name / "__init__.py" if (home / name).is_dir() else home / f"{name}.py"
    docstring = re.match(r'\s*"""(.*?)("""|\n\n)', path.read_text(), re.DOTALL)
    told = " ".join(docstring[1].split()).replace("|", "\\|") if docstring else ""
    return f"| `{name}` | {told} |"


def page() -> str:
    """Give CONTRIBUTING.md as it should be."""
    return BLOCK.sub(lambda _: layers(), PAGE.read_text())


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(layers())
