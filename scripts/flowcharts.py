"""Mermaid's flowcharts, as far as the pages use them, drawn as SVG."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from everview.drawings import Arrow, Box, Diagram, Outline, to_svg

# What opens and closes the text of a node, and the shape that it stands for; longer ones first.
_SHAPES = (
    ("([", "])", Outline.ROUND),
    ("[(", ")]", Outline.STORE),
    ("[[", "]]", Outline.PLAIN),
    ("[", "]", Outline.PLAIN),
    ("{", "}", Outline.CHOICE),
    (">", "]", Outline.FLAG),
)
_NAME = re.compile(r"\s*(\w+)")
_LINK = re.compile(r"\s*(?:(<?-->)(?:\|([^|]*)\|)?|-\.->(?:\|([^|]*)\|)?|-\.\s*(.*?)\s*\.->)")
_SUBGRAPH = re.compile(r'subgraph (\w+)\s*(?:\["?([^"\]]*)"?\])?$')


@dataclass
class _Part:
    """A flowchart or a subgraph of one, as far as it is read."""

    down: bool
    name: str = ""
    title: str = ""
    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    arrows: list[Arrow] = field(default_factory=list[Arrow])

    def diagram(self) -> Diagram:
        return Diagram(tuple(self.boxes.values()), tuple(self.arrows), self.down)


def drawn(text: str) -> str:
    """Give the flowchart as SVG in one line, which is a block of HTML to Markdown.

    >>> drawn("flowchart LR\\n  a[from] -->|rows| b([to])").count("<rect ")
    2
    """
    return to_svg(diagram_of(text)).replace("\n", " ")


def diagram_of(text: str) -> Diagram:
    """Read a flowchart."""
    first, *lines = [line.strip() for line in text.strip().splitlines()]
    open_ = [_Part(_down(first))]
    known = set[str]()
    for line in lines:
        subgraph = _SUBGRAPH.fullmatch(line)
        if subgraph is not None:
            open_.append(_Part(open_[-1].down, subgraph[1], subgraph[2] or subgraph[1]))
            known.add(subgraph[1])
        elif line.startswith("direction "):
            open_[-1].down = _down(line)
        elif line == "end":
            inner = open_.pop()
            open_[-1].boxes[inner.name] = Box(inner.name, (inner.title,), inside=inner.diagram())
        elif line:
            _read(line, open_[-1], known)
    (whole,) = open_
    return whole.diagram()


def _down(line: str) -> bool:
    return line.split()[1] in {"TB", "TD"}


def _read(line: str, part: _Part, known: set[str]) -> None:
    """Read a line of nodes and arrows between them: ``a[from] --> b --> c``."""
    source, at = _node(line, 0, part, known)
    while at < len(line):
        link = _LINK.match(line, at)
        assert link is not None, f"not read: {line[at:]}"
        target, at = _node(line, link.end(), part, known)
        label = (link[2] or link[3] or link[4] or "").strip('"')
        part.arrows.append(Arrow(source, target, label, dashed=link[1] is None))
        if link[1] == "<-->":
            part.arrows.append(Arrow(target, source))
        source = target


def _node(line: str, at: int, part: _Part, known: set[str]) -> tuple[str, int]:
    """Read a node; give its name and where it ends. A node is in the part that names it first."""
    name = _NAME.match(line, at)
    assert name is not None, f"no node: {line[at:]}"
    at, text, shape = name.end(), name[1], Outline.PLAIN
    for opening, closing, kind in _SHAPES:
        if line.startswith(opening, at):
            end = line.index(closing, at + len(opening))
            text, shape, at = line[at + len(opening) : end], kind, end + len(closing)
            break
    if name[1] not in known:
        known.add(name[1])
        lines = unescape(text.strip('"').replace("#quot;", '"').replace("#lt;", "<").replace("#gt;", ">"))
        part.boxes[name[1]] = Box(name[1], tuple(re.split(r"<br ?/?>", lines)), shape)
    return name[1], at
