"""What the explorer's page asks for beyond rows and queries: the circuit, its nodes, ticks, and words to complete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from everview.circuit.nodes import Child, Sink, inputs_of, reads_of, title
from everview.errors import EverviewError
from everview.frontends.sql.words import KEYWORDS
from everview.operators.aggregate.registry import AGGREGATES
from everview.scalars.signatures import SIGNATURES
from everview.serve.http.answering import NotFound, result_of, said

if TYPE_CHECKING:
    from everview.drawings.layout import PlacedDiagram
    from everview.serve.explorer.explorer import Explorer
    from everview.serve.explorer.folding import FoldedDrawing
    from everview.serve.http.door import HttpDoor

NUMBER: Final = re.compile(r"\d{1,12}(\.\d{1,12})?", re.ASCII)
OPENED: Final = 200  # boxes that a request may ask to open


def _explorer(door: HttpDoor) -> Explorer:
    assert door.explorer is not None, "its routes are there only with it"
    return door.explorer


async def pulse(door: HttpDoor, request: Request) -> Response:
    """Tell the epoch and the ticks after one."""
    explorer, given = _explorer(door), request.query_params.get("after", "0")
    if not NUMBER.fullmatch(given):
        raise EverviewError(f"{given!r} is no number of a tick", hint="give the last one that was told")
    return said(await result_of(request, door.owner.read(lambda _: explorer.pulse(float(given)))))


async def circuit(door: HttpDoor, request: Request) -> Response:
    """Tell the work of the boxes that are drawn, and where they lie if the picture is another than the one named."""
    explorer = _explorer(door)
    opened = tuple(dict.fromkeys(request.query_params.getlist("open")))[:OPENED]
    focus = request.query_params.get("focus", "")
    name, drawing, placed = await result_of(request, door.owner.read(lambda _: explorer.drawing(opened, focus)))
    work = await explorer.work()
    told = await result_of(request, door.owner.read(lambda _: explorer.told(work, drawing)))
    answer: dict[str, Any] = {"picture": name, "epoch": work.epoch, "work": told}
    if request.query_params.get("picture") != name:
        answer |= _laid_out(drawing, placed)
        answer["nodes"] = len(explorer.folded().nodes)
    return said(answer)


def _laid_out(drawing: FoldedDrawing, placed: PlacedDiagram) -> dict[str, Any]:
    """Boxes, outer ones first, by their left upper corners, and arrows by the points they pass."""
    boxes: list[dict[str, Any]] = []
    for each in placed.boxes:
        box = drawing.boxes[each.box.name]
        boxes.append(
            {
                "id": box.id,
                "kind": box.kind,
                "title": box.title,
                "relation": box.relation,
                "nodes": box.nodes,
                "opens": box.opens,
                "open": box.id in drawing.opened,
                "at": [round(each.x - each.width / 2), round(each.y - each.height / 2)],
                "size": [round(each.width), round(each.height)],
            }
        )
    arrows = [
        {
            "from": each.arrow.source,
            "to": each.arrow.target,
            "dashed": each.arrow.dashed,
            "points": [[round(x, 1), round(y, 1)] for x, y in each.points],
        }
        for each in placed.arrows
    ]
    return {"size": [round(placed.width), round(placed.height)], "boxes": boxes, "arrows": arrows}


async def node(door: HttpDoor, request: Request) -> Response:
    """Describe one node: its operator, its inputs, and the place where it runs."""
    explorer, name = _explorer(door), request.path_params["name"]
    work = await explorer.work()

    def work_on(_: Any) -> dict[str, Any]:
        known = explorer.folded().nodes.get(name)
        if known is None:
            raise NotFound(f"there is no node {name}", hint="the circuit may have changed")
        inside, at = known
        each = inside[at]
        return {
            "id": name,
            "title": title(each),
            "text": inside.line(at).splitlines()[0][:2_000],
            "output": "" if isinstance(each, Sink | Child) else str(each.output)[:2_000],
            "inputs": [i for i in inputs_of(each) if i is not None],
            "reads": [f"{read.node} {read.moment.value}" for read in reads_of(each)],
            "how": work.how(name) if work.program.circuit is explorer.folded().circuit else "",
        }

    return said(await result_of(request, door.owner.read(work_on)))


async def words(door: HttpDoor, request: Request) -> Response:
    """List the keywords and functions of SQL."""
    aggregates = {word for each in AGGREGATES for word in each.sql.split()}
    return said({"keywords": KEYWORDS, "functions": sorted({*SIGNATURES, *aggregates})})


ROUTES: Final = (
    ("/v1/explorer/pulse", pulse, ("GET",)),
    ("/v1/explorer/circuit", circuit, ("GET",)),
    ("/v1/explorer/nodes/{name}", node, ("GET",)),
    ("/v1/explorer/words", words, ("GET",)),
)
