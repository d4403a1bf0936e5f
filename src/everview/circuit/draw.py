"""Circuits as pictures: Graphviz, Mermaid, and a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Node, Sink, Source, inputs_of, reads_of, title
from everview.operators.arrange import Arrange

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
    lines = ["digraph circuit {", '  rankdir=LR; node [fontname="Helvetica"];']
    lines += [f'  n{at} [label="{_dot_text(node)}", shape={_dot_shape(node)}];' for at, node in enumerate(circuit)]
    for source, target, label in _edges(circuit):
        lines.append(f"  n{source} -> n{target}{_dot_style(label)};")
    return "\n".join([*lines, "}"])


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
    lines = ["flowchart LR"]
    lines += [f"  n{at}{_mermaid_shape(node)}" for at, node in enumerate(circuit)]
    for source, target, label in _edges(circuit):
        lines.append(f"  n{source} -. {label} .-> n{target}" if label else f"  n{source} --> n{target}")
    return "\n".join(lines)


def to_html(circuit: Circuit) -> str:
    """A table of the nodes, for notebooks."""
    rows = "".join(_html_row(circuit, at, node) for at, node in enumerate(circuit))
    head = "<tr><th>node</th><th>operation</th><th>inputs</th><th>reads</th><th>output</th></tr>"
    return f"<table><caption>circuit of {len(circuit)} nodes</caption>{head}{rows}</table>"


def _edges(circuit: Circuit) -> Iterator[tuple[int, int, str]]:
    for at, node in enumerate(circuit):
        for source in inputs_of(node):
            if source is not None:
                yield source, at, "z⁻¹" if isinstance(node, Feedback) else ""
        for read in reads_of(node):
            yield read.node, at, read.moment.value


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


def _mermaid_text(text: str) -> str:
    """Names from outside may hold what Mermaid reads as syntax."""
    plain = all(c.isalnum() or c in " _⁻¹" for c in text)
    return text if plain else f'"{_one_line(text).translate(MERMAID)}"'


def _html_row(circuit: Circuit, at: int, node: Node) -> str:
    inputs = ", ".join("?" if i is None else str(i) for i in inputs_of(node))
    reads = ", ".join(f"{r.node} {r.moment.value}" for r in reads_of(node))
    output = "" if isinstance(node, Sink | Child) else str(node.output)
    cells = (".".join(map(str, circuit.global_id(at))), title(node), inputs, reads, output)
    return "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>"
