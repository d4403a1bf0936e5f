"""The documentation as a site: it builds, nothing of it comes from elsewhere, and no link is dead."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHARTS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "```mermaid" in page.read_text()]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("docs_site")


def test_the_site_is_whole(scripts: ModuleType, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "docs_site.py", tmp_path]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(tmp_path / "site").as_posix() for page in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "files/readme.html", "tutorial/first-view.html", "files/examples/index.html"} <= pages
    assert "<svg" in (tmp_path / "site" / "explanation" / "packages.html").read_text()

    page = tmp_path / "site" / "index.html"
    page.write_text(
        page.read_text()
        + """<a href="gone.html">x</a><a href="#no-such-place">x</a>
        <script src="https://example.org/x.js"></script><img src="gone.png">"""
    )
    assert list(scripts.faults(tmp_path / "site")) == [
        "index.html loads https://example.org/x.js",
        "index.html leads to gone.html, which is not there",
        "index.html leads to #no-such-place, and that page has no such place",
        "index.html leads to gone.png, which is not there",
    ]


def test_the_steps_of_the_tutorial_lead_to_each_other(scripts: ModuleType) -> None:
    pages = scripts.steps(ROOT / "docs")
    assert sorted(pages) == sorted((ROOT / "docs" / "tutorial").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages]
    links = [f"[{text.splitlines()[0][2:]}]({page.name})" for page, text in zip(pages, texts, strict=True)]
    for place, text in enumerate(texts):
        parts = [f"{place + 1} of {len(pages)}"]
        parts += [f"before: {links[place - 1]}"] if place else []
        parts += [f"next: {links[place + 1]}"] if place + 1 < len(pages) else []
        assert text.splitlines()[-1] == " · ".join(parts), pages[place]
        assert ">>> " in text


@pytest.mark.parametrize("page", CHARTS, ids=lambda page: page.stem)
def test_every_flowchart_is_drawn(scripts: ModuleType, page: Path) -> None:
    for chart in scripts.FLOWCHART.findall(page.read_text()):
        svg = scripts.drawn(chart)
        assert svg.startswith("<svg")
        assert svg.count('class="head"') >= chart.count("->")


def test_a_flowchart_of_all_that_is_used(scripts: ModuleType) -> None:
    from everview.drawings import Arrow, Box, Diagram, Outline

    text = """flowchart TB
      a[(kept)] -->|rows| b{"two<br/>lines"} -. before .-> c
      subgraph g ["a group"]
        direction LR
        d([round]) <--> e>flag]
      end
      c --> g"""
    inner = Diagram(
        (Box("d", ("round",), Outline.ROUND), Box("e", ("flag",), Outline.FLAG)), (Arrow("d", "e"), Arrow("e", "d"))
    )
    boxes = (
        Box("a", ("kept",), Outline.STORE),
        Box("b", ("two", "lines"), Outline.CHOICE),
        Box("c", ("c",)),
        Box("g", ("a group",), inside=inner),
    )
    arrows = (Arrow("a", "b", "rows"), Arrow("b", "c", "before", dashed=True), Arrow("c", "g"))
    assert importlib.import_module("flowcharts").diagram_of(text) == Diagram(boxes, arrows, down=True)
