"""Build the documentation as a site: ``make site`` writes build/site; it needs no server and nothing from elsewhere.

The pages are those of docs, with README.md first. What they link to outside of docs, an example or a module, becomes a
page that shows it; a Mermaid flowchart becomes a picture. Afterwards every link and asset of the site is looked up.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from flowcharts import drawn

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "design": "Design",
    "theory": "Theory",
}
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
FLOWCHART = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SETTINGS = """\
[project]
site_name = "Everview"
site_description = "Incremental views for Python and Spark: ask once, and the answer stays correct as the data changes."
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
extra_css = ["site.css"]
nav = [
{nav}
]

[project.theme]
font = false
features = [
  "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.top", "search.highlight", "toc.follow"
]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.markdown_extensions.admonition]
[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
"""
STYLE = ".everview-diagram { max-width: 100%; height: auto; } .md-typeset .diagram { overflow-x: auto; }\n"


class Pages:
    """The pages of the site as far as they are written; what they link to outside of docs is written when it is met."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._shown: dict[Path, Path] = {}

    def write(self, file: Path, page: Path) -> None:
        """Write a page of Markdown, its links as the site has them."""
        self._shown[file] = page
        text = LINK.sub(lambda link: self._led(link, file, page), file.read_text(encoding="utf-8"))
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(FLOWCHART.sub(_picture, text), encoding="utf-8")

    def of(self, target: Path) -> Path:
        """Give the page of a file or folder of the project."""
        if target.is_relative_to(ROOT / "docs"):
            return self.home / target.relative_to(ROOT / "docs")
        name = target.relative_to(ROOT).as_posix()
        if target.is_dir():
            return self.home / "files" / name / "index.md"
        if target.suffix == ".svg":
            return self.home / "files" / name
        return (
            self.home / "files" / (name.lower() if target.suffix == ".md" else f"{name}.md")
        )  # README.md would be an index

    def _led(self, link: re.Match[str], file: Path, page: Path) -> str:
        """Give a link from a page; what is outside of docs is shown on a page of its own."""
        path, place = link[1], link[2] or ""
        if urlsplit(path).scheme:
            return link[0]
        target = (file.parent / unquote(path)).resolve()
        shown = self._shown.get(target) or self.of(target)
        if target not in self._shown and not target.is_relative_to(ROOT / "docs"):
            self._show(target, shown)
        return os.path.relpath(shown, page.parent) + (place if target.suffix == ".md" else "")

    def _show(self, target: Path, page: Path) -> None:
        if target.suffix == ".md":
            self.write(target, page)
            return
        self._shown[target] = page
        page.parent.mkdir(parents=True, exist_ok=True)
        name = target.relative_to(ROOT).as_posix()
        if target.suffix == ".svg":  # a picture is shown where it stands
            shutil.copy(target, page)
        elif target.is_dir():
            files = [file for file in sorted(target.iterdir()) if file.suffix in {".py", ".yaml"}]
            for file in files:
                self._show(file, self.of(file))
            listed = "\n".join(f"- [{f.name}]({os.path.relpath(self.of(f), page.parent)})" for f in files)
            page.write_text(f"# {name}\n\n{listed}\n", encoding="utf-8")
        else:
            text = target.read_text(encoding="utf-8")
            page.write_text(f"# {name}\n\n````{target.suffix[1:]}\n{text}````\n", encoding="utf-8")


def _picture(block: re.Match[str]) -> str:
    return f'<div class="diagram">{drawn(block[1])}</div>'


def _nav(home: Path) -> str:
    """Give the navigation: the sections, each with its pages by title."""
    lines = ['  {"Everview" = ["index.md", "files/readme.md"]},']
    for folder, title in SECTIONS.items():
        pages = steps(home) if folder == "tutorial" else sorted((home / folder).glob("*.md"), key=_title)
        numbers = [f"{number}. " if folder == "tutorial" else "" for number in range(1, len(pages) + 1)]
        entries = ", ".join(
            f'{{"{number}{_title(page)}" = "{page.relative_to(home).as_posix()}"}}'
            for number, page in zip(numbers, pages, strict=True)
        )
        lines.append(f'  {{"{title}" = [{entries}]}},')
    lines.append('  {"Examples" = ["files/examples/index.md"]},')
    return "\n".join(lines)


def steps(docs: Path) -> list[Path]:
    """Give the pages of the tutorial, in the order in which the table of contents has them."""
    listed = re.findall(r"^\d+\. \[.*?\]\((tutorial/.*?\.md)\)", (docs / "index.md").read_text("utf-8"), re.MULTILINE)
    return [docs / page for page in listed]


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").replace("`", "").replace('"', "'")


class _Links(HTMLParser):
    """What a page links to and loads, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        if "id" in given:
            self.places.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given or (tag == "link" and given.get("rel") in {"stylesheet", "icon"}):
            self.assets.append(given.get("src") or given["href"])


def faults(site: Path) -> Iterator[str]:
    """Give every dead link, and every asset that is missing or comes from elsewhere."""
    pages = {page: _Links(page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))}
    for page, found in pages.items():
        if page.name == "404.html":  # its links begin at the root of a server
            continue
        name = page.relative_to(site).as_posix()
        yield from (f"{name} loads {url}" for url in found.assets if urlsplit(url).netloc)
        for url in found.links + found.assets:
            parts = urlsplit(url)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if parts.scheme or parts.netloc:
                continue
            if not target.exists():
                yield f"{name} leads to {url}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{name} leads to {url}, and that page has no such place"


def main(build: Path) -> int:
    """Write the pages, build the site, and look for faults in it."""
    shutil.rmtree(build / "site", ignore_errors=True)
    shutil.rmtree(build / "pages", ignore_errors=True)
    pages = Pages(build / "pages")
    for file in sorted((ROOT / "docs").rglob("*.md")):
        pages.write(file, pages.of(file))
    for picture in (each for each in (ROOT / "docs").rglob("*") if each.suffix in {".svg", ".png"}):
        pages.of(picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, pages.of(picture))
    (pages.home / "site.css").write_text(STYLE)
    (build / "zensical.toml").write_text(SETTINGS.replace("{nav}", _nav(pages.home)), encoding="utf-8")
    command = [Path(sys.executable).with_name("zensical"), "build", "--clean"]
    built = subprocess.run(command, cwd=build, check=False, capture_output=True, text=True)
    if built.returncode:
        sys.stderr.write(built.stdout + built.stderr)
        return 1
    found = list(faults(build / "site"))
    print(
        "\n".join([*found, f"{len(list(build.glob('site/**/*.html')))} pages, from {build / 'site' / 'index.html'} on"])
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")))
