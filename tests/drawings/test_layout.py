"""Layouts of any diagram: no box over another, arrows from box to box, everything within the picture."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from everview.drawings import Arrow, Box, Diagram
from everview.drawings.layers import layers_of
from everview.drawings.layout import PlacedBox, laid_out

edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    """Up to eight boxes of any text, the last of which may hold two, and arrows between any of them."""
    texts = draw(st.lists(st.text(max_size=12), min_size=8, max_size=8))
    boxes = [Box(str(at), (text,)) for at, text in enumerate(texts)]
    down, inner_down = draw(st.booleans()), draw(st.booleans())
    group = Box("group", ("held",), inside=Diagram(tuple(boxes[6:]), (Arrow("6", "7"),), inner_down))
    arrows = tuple(Arrow(str(a), str(b), draw(st.sampled_from(["", "before"]))) for a, b in draw(edges))
    return Diagram((*boxes[:6], group), arrows, down)


def _apart(a: PlacedBox, b: PlacedBox) -> bool:
    beside = abs(a.x - b.x) >= (a.width + b.width) / 2
    return beside or abs(a.y - b.y) >= (a.height + b.height) / 2


@given(diagrams())
def test_boxes_lie_apart_and_inside(diagram: Diagram) -> None:
    layout = laid_out(diagram)
    outer = [placed for placed in layout.boxes if placed.box in diagram.boxes]
    inner = [placed for placed in layout.boxes if placed.box not in diagram.boxes]
    assert len(outer) == 7
    assert len(inner) == 2
    assert all(_apart(a, b) for beside in (outer, inner) for a, b in combinations(beside, 2))
    group = next(placed for placed in outer if placed.box.name == "group")
    for placed, (x, y, width, height) in [
        *((each, (layout.width / 2, layout.height / 2, layout.width, layout.height)) for each in outer),
        *((each, (group.x, group.y, group.width, group.height)) for each in inner),
    ]:
        assert abs(placed.x - x) + placed.width / 2 <= width / 2 + 1e-6
        assert abs(placed.y - y) + placed.height / 2 <= height / 2 + 1e-6


@given(diagrams())
def test_arrows_begin_and_end_at_the_borders_of_their_boxes(diagram: Diagram) -> None:
    layout = laid_out(diagram)
    by_name = {placed.box.name: placed for placed in layout.boxes}
    assert len(layout.arrows) == len(diagram.arrows) + 1
    for placed in layout.arrows:
        for name, (x, y) in ((placed.arrow.source, placed.points[0]), (placed.arrow.target, placed.points[-1])):
            box = by_name[name]
            far = abs(x - box.x) / (box.width / 2), abs(y - box.y) / (box.height / 2)
            assert abs(max(far) - 1) < 1e-6


@given(edges)
def test_joined_nodes_are_in_neighbouring_layers(edges: list[tuple[int, int]]) -> None:
    found = layers_of(8, edges)
    layer = {node: at for at, nodes in enumerate(found.layers) for node in nodes}
    assert {node for node in layer if node < 8} == set(range(8))
    assert all(layer[after] == layer[node] + 1 for node, others in found.after.items() for after in others)
    joined = {frozenset(edge) for edge in found.joints}
    assert joined == {frozenset(edge) for edge in edges if edge[0] != edge[1]}


def test_a_chain_is_a_straight_line() -> None:
    boxes = tuple(Box(name, (name,)) for name in "abc")
    layout = laid_out(Diagram(boxes, (Arrow("a", "b"), Arrow("b", "c"))))
    assert len({placed.y for placed in layout.boxes}) == 1
    assert [placed.x for placed in layout.boxes] == sorted(placed.x for placed in layout.boxes)
