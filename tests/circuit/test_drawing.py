"""Circuits as pictures: whatever names hold, what is drawn stays well-formed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.circuit.nodes import Child
from everview.runtimes.embedded import Embedded
from everview.types import BIGINT, Field, Schema

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    'a"b',
    "back\\slash",
    "ends in a backslash\\",
    '\\"',
    "<script>alert(1)</script>",
    "a & b; #quot; &lt;",
    "two\nlines\rand\u2028more",
    "n0 --> n1",
    "]; drop [",
    "end",
    "",
    "日本 😀",
]
names = st.sampled_from(HOSTILE) | st.text(max_size=12)


def drawn(name: str, column: str) -> Circuit:
    circuit = Circuit()
    t = circuit.source(name, Schema([Field(column, BIGINT)]))
    loop = circuit.child(name)
    inner, again = loop.feedback(t.schema)
    again((loop.enter(t) + inner).distinct())
    loop.leave(inner).sink(name)
    t.delay().sink(f"{name} late")
    return incrementalize(circuit)


DOT_NODE = re.compile(r'n[\d_]+ \[label="(?:[^"\\]|\\.)*", shape=\w+\];')
DOT_EDGE = re.compile(r'n[\d_]+ -> n[\d_]+(?: \[style=dashed, label="[^"\\]*"\])?;')
DOT_FRAME = re.compile(
    r"digraph circuit \{|rankdir=LR; node \[fontname=\"Helvetica\"\];|subgraph cluster_n[\d_]+ \{|\}"
)


@given(name=names, column=names)
def test_graphviz(name: str, column: str) -> None:
    for line in drawn(name, column).to_dot().split("\n"):
        text = line.strip()
        assert DOT_NODE.fullmatch(text) or DOT_EDGE.fullmatch(text) or DOT_FRAME.fullmatch(text), line


MERMAID_TEXT = r'(?:[\w ⁻¹]*|"(?:[^"<>&\n\r]|#\w+;)*")'
MERMAID_NODE = re.compile(
    rf"n[\d_]+(?:\[{MERMAID_TEXT}\]|\[\[{MERMAID_TEXT}\]\]|\[\({MERMAID_TEXT}\)\]|\(\[{MERMAID_TEXT}\]\)"
    rf"|>{MERMAID_TEXT}\]|\{{{MERMAID_TEXT}\}})"
)
MERMAID_EDGE = re.compile(r"n[\d_]+ (?:-->|-\. \S+ \.->) n[\d_]+")
MERMAID_FRAME = re.compile(rf"flowchart LR|subgraph \w+\[{MERMAID_TEXT}\]|end")


@given(name=names, column=names)
def test_mermaid(name: str, column: str) -> None:
    for line in drawn(name, column).to_mermaid().split("\n"):
        text = line.strip()
        assert MERMAID_NODE.fullmatch(text) or MERMAID_EDGE.fullmatch(text) or MERMAID_FRAME.fullmatch(text), line


class Cells(HTMLParser):
    """The tags and texts of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", HOSTILE)
def test_html(name: str) -> None:
    cells = Cells(drawn(name, name)._repr_html_())
    assert cells.tags <= {"table", "caption", "tr", "th", "td", "svg", "title", "style", "rect", "text", "path"}
    assert cells.open == []
    assert f"source {name}" in cells.text


@given(name=names, column=names)
def test_svg(name: str, column: str) -> None:
    circuit = drawn(name, column)
    root = ElementTree.fromstring(circuit.to_svg())
    assert root.tag == f"{SVG}svg"
    inner = next(node.circuit for node in circuit if isinstance(node, Child))
    assert len(root.findall(f"{SVG}rect")) == len(circuit) + len(inner)


def test_a_large_circuit_is_a_table_alone_in_a_notebook() -> None:
    circuit = Circuit()
    for at in range(70):
        circuit.source(f"t{at}", "x BIGINT")
    assert circuit._repr_html_().startswith("<table>")


@pytest.mark.parametrize("name", HOSTILE)
def test_views_and_batches_show_what_they_hold_and_no_more(name: str) -> None:
    circuit = Circuit()
    circuit.source("t", Schema.parse("a STRING")).rename({"a": name}).sink("v")
    run = Embedded(circuit)
    changes = run.tick({"t": [((name,), 1)]})["v"]
    for shown in (changes._repr_html_(), run.view("v")._repr_html_(), changes.to_zset()._repr_html_()):
        cells = Cells(shown)
        assert cells.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "caption"}
        assert name in cells.text


def test_a_circuit_prints_as_its_nodes() -> None:
    circuit = Circuit()
    t = circuit.source("t", "a BIGINT NOT NULL, s STRING")
    t.join(t, "a", select=["left.a", "right.s"]).sink("v")
    assert str(incrementalize(circuit)).splitlines() == [
        "0 source t → [a, s]",
        "1 Index(0) → [a → s]",
        "2 Arrange(1) → [a → s]",
        "3 JoinIncremental(2, 2, 2 after, 2 before) → [a, s]",
        "4 Index(3) → [a, s → ]",
        "5 sink v(4)",
    ]
