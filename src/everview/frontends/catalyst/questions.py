"""What JSON leaves out of a plan, as questions that Spark can be asked about nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from everview.frontends.catalyst.plan_reader import MARK
from everview.frontends.catalyst.reading import question
from everview.frontends.catalyst.tree import CatalystNode

Asked = Literal["rows", "mode", "projections", "pivots", "escape", "options", "hex", "function"]
USERS: Final = ("PythonUDF", "PythonUDAF")  # classes of functions that users wrote
_OPTIONS: Final = ("JsonToStructs", "StructsToJson", "CsvToStructs", "StructsToCsv")


@dataclass(frozen=True)
class FrameQuestion:
    """Something about a node that JSON does not say."""

    node: CatalystNode
    what: Asked

    @property
    def key(self) -> str:
        return question(self.node.path, self.what)


def questions(tree: CatalystNode, *, tries: bool) -> Iterator[FrameQuestion]:
    """All questions about a plan; ``tries`` says whether some expression may give NULL in place of an error."""
    marked = {node.children[0].path for node in tree.walk() if is_marked(node)}
    for node in tree.walk():
        if node.kind in ("LocalRelation", "LogicalRDD") and node.path not in marked:
            yield FrameQuestion(node, "rows")
        if tries and ("evalMode" in node.fields or "evalContext" in node.fields):
            yield FrameQuestion(node, "mode")
        if node.kind == "Expand" and node.fields["projections"] is None:
            yield FrameQuestion(node, "projections")
        if node.kind == "PivotFirst":
            yield FrameQuestion(node, "pivots")
        if node.kind in ("Like", "ILike"):
            yield FrameQuestion(node, "escape")
        if node.kind in _OPTIONS:
            yield FrameQuestion(node, "options")
        if node.kind == "Literal" and node.fields["dataType"] == "binary" and node.fields["value"] is not None:
            yield FrameQuestion(node, "hex")
        if node.kind in USERS and node.fields["udfDeterministic"]:
            yield FrameQuestion(node, "function")


def is_marked(node: CatalystNode) -> bool:
    """Whether a node is the alias of a frame that stands for a relation."""
    return node.kind == "SubqueryAlias" and str(node.fields["identifier"]["name"]).startswith(MARK)
