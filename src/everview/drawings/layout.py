"""Where the boxes and arrows of a diagram lie, in pixels."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from everview.drawings.diagram import Arrow, Box, Diagram
from everview.drawings.layers import Edge, Layers, layers_of

LETTER: Final = 7.0  # the width of a letter
LINE: Final = 17.0  # the height of a line of text
MARGIN: Final = 10.0  # between the border of a box and what is in it
BETWEEN: Final = 16.0  # two boxes of a layer
APART: Final = 46.0  # two layers; a label of an arrow has its room there
SWEEPS: Final = 6

Point = tuple[float, float]


@dataclass(frozen=True)
class PlacedBox:
    """A box, where its middle is, how large it is, and by how much its layer is thicker than it, along the arrows."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    spare: float = 0.0


@dataclass(frozen=True)
class PlacedArrow:
    """An arrow, and the points that it passes, from its beginning to its head."""

    arrow: Arrow
    points: tuple[Point, ...]
    down: bool


@dataclass(frozen=True)
class PlacedDiagram:
    """All boxes, outer ones before those in them, and all arrows of a diagram of a size."""

    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    arrows: tuple[PlacedArrow, ...]


def text_width(text: str) -> float:
    """The width of a text, about: East Asian letters are twice as wide as others."""
    return LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def laid_out(diagram: Diagram) -> PlacedDiagram:
    """Where everything of a diagram lies."""
    boxes, joints, width, height = _placed(diagram, list(diagram.all_arrows()))
    by_name = {placed.box.name: placed for placed in boxes}
    arrows = tuple(
        _led(arrow, by_name, joints.get((arrow.source, arrow.target), ()), down=_leads_down(diagram, arrow))
        for arrow in diagram.all_arrows()
        if arrow.source in by_name and arrow.target in by_name
    )
    return PlacedDiagram(width, height, tuple(boxes), arrows)


Joints = dict[tuple[str, str], Sequence[Point]]


def _placed(diagram: Diagram, arrows: Sequence[Arrow]) -> tuple[list[PlacedBox], Joints, float, float]:
    """The boxes of a diagram and of those inside, and the joints of its long arrows; the whole begins at 0, 0."""
    inner = [None if box.inside is None else _placed(box.inside, arrows) for box in diagram.boxes]
    sizes = [_size_of(box, None if each is None else each[2:]) for box, each in zip(diagram.boxes, inner, strict=True)]
    lifted = _lifted(diagram.homes(), arrows)
    layers = layers_of(len(diagram.boxes), list(lifted.values()))
    labels = max((text_width(arrow.label) for arrow in diagram.arrows), default=0.0)
    centres, width, height = _centres(layers, sizes, APART + (0.0 if diagram.down else labels), down=diagram.down)
    thick = _thickness(layers, [size[1 if diagram.down else 0] for size in sizes])
    passing = _passing(thick, centres, len(sizes), down=diagram.down)
    boxes = list[PlacedBox]()
    joints: Joints = {}
    for place, box in enumerate(diagram.boxes):
        (x, y), (w, h) = centres[place], sizes[place]
        boxes.append(PlacedBox(box, x, y, w, h, thick[place] - (h if diagram.down else w)))
        each = inner[place]
        if each is not None:
            moved = _moved(each[0], each[1], x - w / 2 + MARGIN, y + h / 2 - MARGIN - each[3])
            boxes += moved[0]
            joints |= moved[1]
    for names, (source, target) in lifted.items():
        forth, back = layers.joints.get((source, target), []), layers.joints.get((target, source), [])
        points = [point for joint in forth or back for point in passing[joint]]
        joints[names] = points if forth else points[::-1]
    return boxes, joints, width, height


def _moved(boxes: list[PlacedBox], joints: Joints, right: float, down: float) -> tuple[list[PlacedBox], Joints]:
    """What lies inside of a box, so far from where the whole begins."""
    lines: Joints = {names: [(x + right, y + down) for x, y in points] for names, points in joints.items()}
    return [replace(box, x=box.x + right, y=box.y + down) for box in boxes], lines


def _lifted(homes: Mapping[str, int], arrows: Sequence[Arrow]) -> dict[tuple[str, str], Edge]:
    """The arrows between different boxes of a diagram, or between what is inside of these, as edges of the boxes."""
    return {
        (arrow.source, arrow.target): (homes[arrow.source], homes[arrow.target])
        for arrow in arrows
        if arrow.source in homes and arrow.target in homes and homes[arrow.source] != homes[arrow.target]
    }


def _size_of(box: Box, inside: Sequence[float] | None) -> Point:
    width = max(map(text_width, box.lines), default=0.0)
    height = LINE * len(box.lines)
    if inside is not None:
        width, height = max(width, inside[0]), height + inside[1] + MARGIN
    return width + 2 * MARGIN, height + 2 * MARGIN


def _centres(
    layers: Layers, sizes: Sequence[Point], apart: float, *, down: bool
) -> tuple[Mapping[int, Point], float, float]:
    """The middle of every node and joint, and the size of the whole. Along the arrows is x, unless they lead down."""
    along = {node: size[1] if down else size[0] for node, size in enumerate(sizes)}
    across = {node: size[0] if down else size[1] for node, size in enumerate(sizes)}
    places = _across(layers, across)
    start, first = 0.0, dict[int, float]()
    for layer in layers.layers:
        thick = max((along.get(node, 0.0) for node in layer), default=0.0)
        first |= dict.fromkeys(layer, start + thick / 2)
        start += thick + apart
    low = min((places[node] - across.get(node, 0.0) / 2 for node in places), default=0.0)
    high = max((places[node] + across.get(node, 0.0) / 2 for node in places), default=0.0)
    size = max(start - apart, 0.0), high - low
    centres = {node: (first[node], places[node] - low) for node in places}
    if down:
        return {node: (y, x) for node, (x, y) in centres.items()}, size[1], size[0]
    return centres, *size


def _thickness(layers: Layers, along: Sequence[float]) -> dict[int, float]:
    """For each node and joint, the size of the largest box of its layer, along the arrows."""
    thickness = dict[int, float]()
    for layer in layers.layers:
        thickness |= dict.fromkeys(layer, max((along[node] for node in layer if node < len(along)), default=0.0))
    return thickness


def _passing(
    thick: Mapping[int, float], centres: Mapping[int, Point], first: int, *, down: bool
) -> dict[int, tuple[Point, Point]]:
    """For each joint, where its arrow enters and leaves the layer: it passes straight between the boxes there."""
    passing: dict[int, tuple[Point, Point]] = {}
    for joint, size in thick.items():
        if joint >= first:
            x, y = centres[joint]
            passing[joint] = ((x, y - size / 2), (x, y + size / 2)) if down else ((x - size / 2, y), (x + size / 2, y))
    return passing


def _across(layers: Layers, sizes: Mapping[int, float]) -> dict[int, float]:
    """The place of each node across the arrows: near the mean of its neighbours, none over another."""
    places = dict[int, float]()
    for layer in layers.layers:
        _stack(layer, dict.fromkeys(layer, 0.0), sizes, places)
    for sweep in range(SWEEPS):
        backwards = sweep % 2 == 1
        neighbours = layers.after if backwards else layers.before
        for layer in layers.layers[::-1] if backwards else layers.layers:
            wanted = dict[int, float]()
            for node in layer:
                known = [places[other] for other in neighbours.get(node, ())]
                wanted[node] = sum(known) / len(known) if known else places[node]
            _stack(layer, wanted, sizes, places)
    return places


def _stack(
    layer: Sequence[int], wanted: Mapping[int, float], sizes: Mapping[int, float], out: dict[int, float]
) -> None:
    """Put the nodes of a layer in their order: each at its wanted place, or after its predecessor; then centre them."""
    end = None
    for node in layer:
        half = sizes.get(node, 0.0) / 2
        out[node] = wanted[node] if end is None else max(wanted[node], end + BETWEEN + half)
        end = out[node] + half
    shift = sum(wanted[node] - out[node] for node in layer) / max(len(layer), 1)
    for node in layer:
        out[node] += shift


def _leads_down(diagram: Diagram, arrow: Arrow) -> bool:
    """Whether an arrow leads down: as the innermost diagram that holds both of its ends has it."""
    for box in diagram.boxes:
        if box.inside is not None and {arrow.source, arrow.target} <= box.inside.homes().keys():
            return _leads_down(box.inside, arrow)
    return diagram.down


def _led(arrow: Arrow, boxes: Mapping[str, PlacedBox], joints: Sequence[Point], *, down: bool) -> PlacedArrow:
    """An arrow from a side of its source over its joints to the nearer side of its target."""
    source, target = boxes[arrow.source], boxes[arrow.target]
    if source is target:
        x, y = source.x, source.y - source.height / 2
        return PlacedArrow(
            arrow, ((x - MARGIN, y), (x - MARGIN, y - MARGIN), (x + MARGIN, y - MARGIN), (x + MARGIN, y)), down
        )
    ahead = target.y >= source.y if down else target.x >= source.x
    begins, ends = _beside(source, down, ahead), _beside(target, down, not ahead)
    return PlacedArrow(arrow, (*begins, *joints, *reversed(ends)), down)


def _beside(box: PlacedBox, down: bool, last: bool) -> tuple[Point, ...]:
    """Where an arrow leaves a box, and where it leaves the layer, if others there are larger."""
    x, y = _side(box, down, last)
    if not box.spare:
        return ((x, y),)
    away = box.spare / 2 if last else -box.spare / 2
    return ((x, y), (x, y + away) if down else (x + away, y))


def _side(box: PlacedBox, down: bool, last: bool) -> Point:
    """The middle of the right or left side of a box; of the lower or upper one, if arrows lead down."""
    sign = 1 if last else -1
    return (box.x, box.y + sign * box.height / 2) if down else (box.x + sign * box.width / 2, box.y)
