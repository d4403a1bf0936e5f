"""A diagram as data: boxes with text, arrows between them, and boxes that hold another diagram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Outline(Enum):
    """The outline of a box."""

    PLAIN = "plain"
    ROUND = "round"
    STORE = "store"
    CHOICE = "choice"
    FLAG = "flag"


@dataclass(frozen=True)
class Box:
    """A box with lines of text; `inside` is drawn below the text, and the box is as large as that needs."""

    name: str
    lines: tuple[str, ...] = ()
    shape: Outline = Outline.PLAIN
    inside: Diagram | None = None


@dataclass(frozen=True)
class Arrow:
    """An arrow between two boxes of a diagram, or of the diagrams inside of them, by their names."""

    source: str
    target: str
    label: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows; names are unique, also across the diagrams inside. Arrows lead to the right, or `down`."""

    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    down: bool = False

    def homes(self) -> dict[str, int]:
        """For each name of a box, at any depth, the place of the box of this diagram that holds it."""
        return {name: place for place, box in enumerate(self.boxes) for name in names_of(box)}

    def all_arrows(self) -> Iterator[Arrow]:
        """The arrows of this diagram and of those inside."""
        yield from self.arrows
        for box in self.boxes:
            if box.inside is not None:
                yield from box.inside.all_arrows()


def names_of(box: Box) -> Iterator[str]:
    """The name of a box, and those of all boxes inside."""
    yield box.name
    if box.inside is not None:
        for inner in box.inside.boxes:
            yield from names_of(inner)
