"""Diagrams of boxes and arrows as SVG: laid out in layers, without a server, a script or a font from elsewhere."""

from __future__ import annotations

from everview.drawings.diagram import Arrow, Box, Diagram, Outline
from everview.drawings.svg import to_svg

__all__ = ["Arrow", "Box", "Diagram", "Outline", "to_svg"]
