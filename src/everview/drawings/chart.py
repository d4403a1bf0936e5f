"""Charts as SVG: series of points over a logarithmic scale, and a strip of colours below; light or dark as its reader.

>>> text = chart("ticks", "epoch", "ms", [Series("tick", ((1, 20.0), (2, 3.0)))], Strip(("driver", "tasks")))
>>> text.startswith("<svg "), text.count("<circle fill"), text.count("<polyline ")
(True, 2, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from everview.drawings.svg import escape

WIDTH, HEIGHT = 640.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 46.0, 58.0
STRIP: Final = 8.0  # the height of the strip
LETTER: Final = 7.0
COLOURS: Final = ("#2a6f97", "#c08552", "#6a994e", "#9d4edd", "#8c959f")
_STYLE: Final = """\
.everview-chart { color: #24292f; font: 12px ui-sans-serif, system-ui, sans-serif; }
.everview-chart text { fill: currentColor; }
.everview-chart .title { font-weight: 600; }
.everview-chart .axis { stroke: #8c959f; stroke-width: 1; }
.everview-chart .grid { stroke: #8c959f; stroke-opacity: 0.25; }
.everview-chart polyline { fill: none; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) { .everview-chart { color: #e6edf3; } }"""


@dataclass(frozen=True)
class Series:
    """Points of one kind, by the place on the horizontal axis; a value of zero lies on that axis."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Strip:
    """A kind for each place on the horizontal axis, in the order of the places: each kind has a colour."""

    kinds: tuple[str, ...]


def chart(title: str, across: str, up: str, series: Sequence[Series], strip: Strip | None = None) -> str:
    """The series as lines with points, ``across`` and ``up`` name the axes."""
    frame = PlotArea.around(series)
    parts = [
        *_axes(frame, across, up),
        *(line for place, each in enumerate(series) for line in _line(frame, each, COLOURS[place % len(COLOURS)])),
        *(() if strip is None else _strip(frame, series, strip)),
        *_legend(series, strip),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="everview-chart" role="img" width="{WIDTH:.0f}" '
        f'height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}">'
    )
    named = f'<title>{escape(title)}</title><text class="title" x="{LEFT:.0f}" y="16">{escape(title)}</text>'
    return "\n".join([head, f"<style>{_STYLE}</style>", named, *parts, "</svg>"])


@dataclass(frozen=True)
class PlotArea:
    """What part of the plane a chart shows: places from ``first`` to ``last``, values between powers of ten."""

    first: float
    last: float
    low: int
    high: int

    @classmethod
    def around(cls, series: Sequence[Series]) -> PlotArea:
        """The frame of all points; of none, an empty one."""
        places = [place for each in series for place, _ in each.points]
        logs = [log10(value) for each in series for _, value in each.points if value > 0] or [0.0]
        low = floor(min(logs))
        return cls(min(places, default=0), max(places, default=1), low, max(ceil(max(logs)), low + 1))

    def x(self, place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place - self.first) / max(self.last - self.first, 1)

    def y(self, value: float) -> float:
        share = (log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _axes(frame: PlotArea, across: str, up: str) -> Iterator[str]:
    floor_ = HEIGHT - BOTTOM
    for power in range(frame.low, frame.high + 1):
        y = frame.y(10.0**power)
        yield f'<line class="grid" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>'
    yield f'<line class="axis" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{floor_:.1f}" y2="{floor_:.1f}"/>'
    for place in sorted({frame.first, frame.last}):
        yield f'<text x="{frame.x(place):.1f}" y="{floor_ + 28:.1f}" text-anchor="middle">{place:,g}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{floor_ + 28:.1f}" text-anchor="middle">{escape(across)}</text>'
    yield f'<text x="{LEFT - 6:.0f}" y="{TOP - 8:.0f}" text-anchor="end">{escape(up)}</text>'


def _line(frame: PlotArea, series: Series, colour: str) -> Iterator[str]:
    points = [(frame.x(place), frame.y(value), place, value) for place, value in series.points]
    yield f'<polyline stroke="{colour}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)}"/>'
    for x, y, place, value in points:
        said = escape(f"{series.name}, {place:,g}: {value:,.3g}")
        yield f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.2"><title>{said}</title></circle>'


def _strip(frame: PlotArea, series: Sequence[Series], strip: Strip) -> Iterator[str]:
    """A stretch of colour for each place; neighbours of one kind are one stretch."""
    places = sorted({place for each in series for place, _ in each.points})
    colours = dict(zip(dict.fromkeys(strip.kinds), reversed(COLOURS), strict=False))
    wide = (WIDTH - LEFT - RIGHT) / max(len(places), 1)
    for place, kind in zip(places, strip.kinds, strict=False):
        left = max(LEFT, frame.x(place) - wide / 2)
        right = min(WIDTH - RIGHT, frame.x(place) + wide / 2)
        where = f'x="{left:.1f}" y="{HEIGHT - BOTTOM + 3:.1f}" width="{right - left:.1f}" height="{STRIP:.0f}"'
        said = escape(f"{place:,g}: {kind}")
        yield f'<rect {where} fill="{colours.get(kind, COLOURS[-1])}"><title>{said}</title></rect>'


def _legend(series: Sequence[Series], strip: Strip | None) -> Iterator[str]:
    kinds = tuple(dict.fromkeys(() if strip is None else strip.kinds))
    entries = [(each.name, COLOURS[place % len(COLOURS)], "circle") for place, each in enumerate(series)]
    entries += [(kind, colour, "rect") for kind, colour in zip(kinds, reversed(COLOURS), strict=False)]
    x, y = LEFT, HEIGHT - 10
    for name, colour, shape in entries:
        if shape == "circle":
            yield f'<circle class="mark" fill="{colour}" cx="{x:.1f}" cy="{y - 4:.1f}" r="4"/>'
        else:
            yield f'<rect class="mark" fill="{colour}" x="{x - 4:.1f}" y="{y - 8:.1f}" width="8" height="8"/>'
        yield f'<text x="{x + 8:.1f}" y="{y:.1f}">{escape(name)}</text>'
        x += 24 + LETTER * len(name)
