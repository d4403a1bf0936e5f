"""A diagram as SVG: one text for pages, notebooks and files, in the light or dark colours of its reader."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html import escape as escape_html
from typing import Final

from everview.drawings.diagram import Diagram, Outline
from everview.drawings.layout import LINE, MARGIN, PlacedArrow, PlacedBox, PlacedDiagram, Point, laid_out, text_width

AROUND: Final = 12.0
_STYLE = """\
.everview-diagram { color: #24292f; font: 12px ui-monospace, "DejaVu Sans Mono", monospace; }
.everview-diagram .box { fill: #f6f8fa; stroke: #8c959f; }
.everview-diagram .store { fill: #ddf4ff; stroke: #218bff; }
.everview-diagram .flag { fill: #dafbe1; stroke: #2da44e; }
.everview-diagram .choice { fill: #fff8c5; stroke: #bf8700; }
.everview-diagram .group { fill: none; stroke: #8c959f; stroke-dasharray: 2 3; }
.everview-diagram .arrow { fill: none; stroke: #57606a; }
.everview-diagram .dashed { stroke-dasharray: 5 4; }
.everview-diagram .head { fill: #57606a; }
.everview-diagram text { fill: currentColor; text-anchor: middle; dominant-baseline: central; }
.everview-diagram .label { font-size: 10.5px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
@media (prefers-color-scheme: dark) {
  .everview-diagram { color: #e6edf3; }
  .everview-diagram .box { fill: #161b22; stroke: #6e7681; }
  .everview-diagram .store { fill: #0c2d6b; stroke: #388bfd; }
  .everview-diagram .flag { fill: #04260f; stroke: #2ea043; }
  .everview-diagram .choice { fill: #341a00; stroke: #bb8009; }
  .everview-diagram .arrow { stroke: #8b949e; }
  .everview-diagram .head { fill: #8b949e; }
  .everview-diagram .label { stroke: #0d1117; }
}"""
_CLASSES = {Outline.STORE: "box store", Outline.FLAG: "box flag", Outline.CHOICE: "box choice"}


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """A text within XML, which has no characters of control."""
    return escape_html(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def to_svg(diagram: Diagram, title: str = "") -> str:
    """The diagram as an SVG element, with its style in it.

    >>> from everview.drawings.diagram import Arrow, Box
    >>> text = to_svg(Diagram((Box("a", ("from",)), Box("b", ("to",))), (Arrow("a", "b", "rows"),)))
    >>> text.startswith("<svg "), text.count("<rect "), text.count("<path "), text.endswith("</svg>")
    (True, 2, 2, True)
    """
    layout = laid_out(diagram)
    width, height = layout.width + 2 * AROUND, layout.height + 2 * AROUND
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="everview-diagram" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="{-AROUND:.0f} {-AROUND:.0f} {width:.0f} {height:.0f}">'
    )
    named = [f"<title>{escape(title)}</title>"] if title else []
    return "\n".join([head, *named, f"<style>{_STYLE}</style>", *_parts(layout), "</svg>"])


def _parts(layout: PlacedDiagram) -> Iterator[str]:
    for box in layout.boxes:
        yield _box(box)
    for arrow in layout.arrows:
        yield from _arrow(arrow)
    for arrow in layout.arrows:
        if arrow.arrow.label:
            yield _text((arrow.arrow.label,), *_middle(arrow.points), "label")


def _box(placed: PlacedBox) -> str:
    box = placed.box
    left, top = placed.x - placed.width / 2, placed.y - placed.height / 2
    grouped = box.inside is not None
    kind = "group" if grouped else _CLASSES.get(box.shape, "box")
    round_ = placed.height / 2 if box.shape is Outline.ROUND and not grouped else 4
    outline = (
        f'<rect class="{kind}" data-box="{escape(box.name)}" x="{left:.1f}" y="{top:.1f}" '
        f'width="{placed.width:.1f}" height="{placed.height:.1f}" rx="{round_:.1f}"/>'
    )
    if not grouped:
        return outline + _text(box.lines, placed.x, placed.y, "")
    wide = max(map(text_width, box.lines), default=0.0)  # at the left, where few arrows come in
    return outline + _text(box.lines, left + MARGIN + wide / 2, top + MARGIN + LINE * len(box.lines) / 2, "")


def _text(lines: tuple[str, ...], x: float, y: float, kind: str) -> str:
    first = y - LINE * (len(lines) - 1) / 2
    named = f' class="{kind}"' if kind else ""
    return "".join(
        f'<text{named} x="{x:.1f}" y="{first + LINE * number:.1f}" textLength="{text_width(line):.0f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(line)}</text>'
        for number, line in enumerate(lines)
        if line
    )


def _arrow(placed: PlacedArrow) -> Iterator[str]:
    kind = "arrow dashed" if placed.arrow.dashed else "arrow"
    (x, y), points = placed.points[0], placed.points
    path = f"M{x:.1f} {y:.1f}" + "".join(
        _curve(start, end, down=placed.down) for start, end in itertools.pairwise(points)
    )
    yield f'<path class="{kind}" d="{path}"/>'
    yield _head(points[-2], points[-1], down=placed.down)


def _curve(start: Point, end: Point, *, down: bool) -> str:
    (a, b), (c, d) = start, end
    if down:
        return f" C{a:.1f} {(b + d) / 2:.1f} {c:.1f} {(b + d) / 2:.1f} {c:.1f} {d:.1f}"
    return f" C{(a + c) / 2:.1f} {b:.1f} {(a + c) / 2:.1f} {d:.1f} {c:.1f} {d:.1f}"


def _head(before: Point, end: Point, *, down: bool) -> str:
    """A triangle at the end of an arrow, which arrives straight."""
    x, y = end
    if down:
        sign = 1 if y >= before[1] else -1
        return f'<path class="head" d="M{x:.1f} {y:.1f} l-3.5 {-7 * sign} l7 0 z"/>'
    sign = 1 if x >= before[0] else -1
    return f'<path class="head" d="M{x:.1f} {y:.1f} l{-7 * sign} -3.5 l0 7 z"/>'


def _middle(points: tuple[Point, ...]) -> Point:
    """The middle of the middle piece of an arrow."""
    at = (len(points) - 1) // 2
    (a, b), (c, d) = points[at], points[at + 1]
    return (a + c) / 2, (b + d) / 2
