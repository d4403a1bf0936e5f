"""Circuits as pictures: SVG, Graphviz, Mermaid, and a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import assert_never

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import (
    Apply,
    Child,
    Export,
    Feedback,
    Import,
    Node,
    Sink,
    Source,
    inputs_of,
    reads_of,
    title,
)
from everview.drawings import Arrow, Box, Diagram, Outline
from everview.drawings import to_svg as svg_of
from everview.operators.arrange import Arrange

DRAWN = 60  # nodes of a circuit that a notebook draws; a larger one is a table
LETTERS = 48  # of a line in a box
MERMAID = str.maketrans({'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;"})


def to_dot(circuit: Circuit) -> str:
    """The circuit for Graphviz: streams as arrows, reads of traces dashed.

    >>> circuit = Circuit()
    >>> circuit.source("t", "x BIGINT NOT NULL").sink("v", keep=False)
    >>> print(to_dot(circuit))
    digraph circuit {
      rankdir=LR; node [fontname="Helvetica"];
      n0 [label="source t\\n[x]", shape=box];
      n1 [label="Index\\n[x → ]", shape=ellipse];
      n2 [label="sink v", shape=star];
      n0 -> n1;
      n1 -> n2;
    }
    """
    body = _dot_lines(circuit, "  ")
    return "\n".join(["digraph circuit {", '  rankdir=LR; node [fontname="Helvetica"];', *body, "}"])


def _dot_lines(circuit: Circuit, margin: str) -> Iterator[str]:
    for node_id, node in enumerate(circuit):
        yield f'{margin}{drawn_id(circuit, node_id)} [label="{_dot_text(node)}", shape={_dot_shape(node)}];'
        if isinstance(node, Child):
            yield f"{margin}subgraph cluster_{drawn_id(circuit, node_id)} {{"
            yield from _dot_lines(node.circuit, margin + "  ")
            yield f"{margin}}}"
    for source, target, label in edges_of(circuit):
        yield f"{margin}{source} -> {target}{_dot_style(label)};"


def to_mermaid(circuit: Circuit) -> str:
    """The circuit for Mermaid, which notebooks and code forges draw.

    >>> circuit = Circuit()
    >>> circuit.source("t", "x BIGINT NOT NULL").sink("v", keep=False)
    >>> print(to_mermaid(circuit))
    flowchart LR
      n0[source t]
      n1([Index])
      n2>sink v]
      n0 --> n1
      n1 --> n2
    """
    return "\n".join(["flowchart LR", *_mermaid_lines(circuit, "  ")])


def _mermaid_lines(circuit: Circuit, margin: str) -> Iterator[str]:
    for node_id, node in enumerate(circuit):
        yield f"{margin}{drawn_id(circuit, node_id)}{_mermaid_shape(node)}"
        if isinstance(node, Child):
            yield f"{margin}subgraph s{drawn_id(circuit, node_id)}[{_mermaid_text(node.name)}]"
            yield from _mermaid_lines(node.circuit, margin + "  ")
            yield f"{margin}end"
    for source, target, label in edges_of(circuit):
        yield f"{margin}{source} -. {label} .-> {target}" if label else f"{margin}{source} --> {target}"


def to_svg(circuit: Circuit) -> str:
    """The circuit as SVG: streams as arrows, reads of traces dashed, a loop as a box with its own nodes.

    >>> circuit = Circuit()
    >>> circuit.source("t", "x BIGINT NOT NULL").sink("v", keep=False)
    >>> to_svg(circuit).count("<rect ")
    3
    """
    return svg_of(_diagram(circuit), f"circuit of {len(circuit)} nodes")


def _diagram(circuit: Circuit) -> Diagram:
    boxes = tuple(
        Box(
            drawn_id(circuit, node_id),
            _box_lines(node),
            _shape(node),
            _diagram(node.circuit) if isinstance(node, Child) else None,
        )
        for node_id, node in enumerate(circuit)
    )
    return Diagram(boxes, tuple(Arrow(source, to, label, bool(label)) for source, to, label in edges_of(circuit)))


def _box_lines(node: Node) -> tuple[str, ...]:
    lines = [title(node)] if isinstance(node, Sink | Child) else [title(node), str(node.output)]
    return tuple(_shortened(_one_line(line)) for line in lines)


def _shortened(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _shape(node: Node) -> Outline:
    match node:
        case Source() | Import() | Export() | Child():
            return Outline.PLAIN
        case Sink():
            return Outline.FLAG
        case Feedback():
            return Outline.CHOICE
        case Apply():
            return Outline.STORE if isinstance(node.operator, Arrange) else Outline.ROUND
        case _:
            assert_never(node)


def to_html(circuit: Circuit) -> str:
    """A picture of a circuit that is not too large for one, and a table of the nodes: for notebooks."""
    rows = "".join(_html_rows(circuit))
    head = "<tr><th>node</th><th>operation</th><th>inputs</th><th>reads</th><th>output</th></tr>"
    picture = to_svg(circuit) if len(circuit) <= DRAWN else ""
    return f"{picture}<table><caption>circuit of {len(circuit)} nodes</caption>{head}{rows}</table>"


def drawn_id(circuit: Circuit, node_id: int) -> str:
    """The name of a node in pictures: the numbers from the root to it.

    >>> drawn_id(Circuit(), 3)
    'n3'
    """
    return "n" + "_".join(map(str, circuit.global_id(node_id)))


def edges_of(circuit: Circuit) -> Iterator[tuple[str, str, str]]:
    """(from, to, label) of every stream and trace that a circuit's nodes read."""
    for node_id, node in enumerate(circuit):
        name = drawn_id(circuit, node_id)
        match node:
            case Import():
                assert circuit.parent is not None
                yield drawn_id(circuit.parent, node.parent), name, ""
            case Export():
                child = circuit[node.child]
                assert isinstance(child, Child)
                yield drawn_id(child.circuit, node.node), name, ""
            case Child():
                pass
            case Source() | Apply() | Feedback() | Sink():
                for source in inputs_of(node):
                    if source is not None:
                        yield drawn_id(circuit, source), name, "z⁻¹" if isinstance(node, Feedback) else ""
            case _:
                assert_never(node)
        for read in reads_of(node):
            yield drawn_id(circuit, read.node), name, read.moment.value


def _dot_text(node: Node) -> str:
    lines = [title(node)] if isinstance(node, Sink | Child) else [title(node), str(node.output)]
    # Names from outside may hold what Graphviz reads as the end of a label or as an escape.
    return "\\n".join(_one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _dot_shape(node: Node) -> str:
    match node:
        case Source() | Import() | Export():
            return "box"
        case Child():
            return "box3d"
        case Sink():
            return "star"
        case Feedback():
            return "diamond"
        case Apply():
            return "cylinder" if isinstance(node.operator, Arrange) else "ellipse"
        case _:
            assert_never(node)


def _dot_style(label: str) -> str:
    return f' [style=dashed, label="{label}"]' if label else ""


def _mermaid_shape(node: Node) -> str:
    text = _mermaid_text(title(node))
    match node:
        case Source() | Import() | Export():
            return f"[{text}]"
        case Child():
            return f"[[{text}]]"
        case Sink():
            return f">{text}]"
        case Feedback():
            return f"{{{text}}}"
        case Apply():
            return f"[({text})]" if isinstance(node.operator, Arrange) else f"([{text}])"
        case _:
            assert_never(node)


def _mermaid_text(text: str) -> str:
    """Names from outside may hold what Mermaid reads as syntax."""
    plain = all(c.isalnum() or c in " _⁻¹" for c in text)
    return text if plain else f'"{_one_line(text).translate(MERMAID)}"'


def _html_rows(circuit: Circuit) -> Iterator[str]:
    for node_id, node in enumerate(circuit):
        yield _html_row(circuit, node_id, node)
        if isinstance(node, Child):
            yield from _html_rows(node.circuit)


def _html_row(circuit: Circuit, node_id: int, node: Node) -> str:
    inputs = ", ".join("?" if i is None else str(i) for i in inputs_of(node))
    reads = ", ".join(f"{r.node} {r.moment.value}" for r in reads_of(node))
    output = "" if isinstance(node, Sink | Child) else str(node.output)
    cells = (".".join(map(str, circuit.global_id(node_id))), title(node), inputs, reads, output)
    return "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>"
