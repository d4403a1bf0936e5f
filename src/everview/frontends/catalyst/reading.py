"""The reader of expressions: a tree of Catalyst over the rows of a plan becomes an expression of ours.

Handlers for classes of Catalyst register here with `reads`; a class that only names a function is a line in
`everview.frontends.catalyst.functions`. Catalyst knows columns by numbers, `FrameRows` says where each is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from everview.errors import DataFrameError, EverviewError
from everview.frontends.catalyst.functions import CHANCE, FUNCTIONS, LACKING
from everview.frontends.catalyst.tree import CatalystNode, Path, Step
from everview.plan.catalog import Readable
from everview.plan.node import Plan
from everview.plan.nodes import Project
from everview.plan.typing import call
from everview.scalars.expressions import Expression, LambdaVariable, Order


@dataclass(frozen=True)
class FrameRows:
    """A plan, and the number that Catalyst has for each of its columns.

    A plan may have more columns than numbers: those at its end serve only ``order``, which a limit asks for.
    """

    plan: Plan
    ids: tuple[int, ...]
    order: Order = ()

    def settled(self) -> FrameRows:
        """The same rows without an order and the columns that only it needs."""
        if len(self.ids) == len(self.plan.schema):
            return FrameRows(self.plan, self.ids)
        count = len(self.ids)
        return FrameRows(Project(self.plan, self.plan.columns[:count], self.plan.schema.names[:count]), self.ids)

    def place(self, number: int) -> int | None:
        """The place of the column with a number."""
        return self.ids.index(number) if number in self.ids else None


@dataclass
class CatalystReading:
    """What reading one DataFrame takes and finds out."""

    catalog: Readable
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what JSON leaves out, by paths
    named: dict[int, FrameRows] = field(default_factory=dict[int, FrameRows])  # the relations of WITH
    shared: list[CatalystNode] = field(default_factory=list[CatalystNode])  # what `With` shares, the innermost last
    failed: CatalystNode | None = None  # the innermost node that could not be read
    arbitrary: bool = False  # whether Spark may answer with any of several rows, and we with one of them

    def answer(self, node: CatalystNode, what: str) -> Any:
        """Spark's answer to a question about a node; None if it was not asked."""
        return self.answers.get(question(node.path, what))

    def blame(self, node: CatalystNode) -> None:
        """Remember where reading failed, unless that is known already."""
        if self.failed is None:
            self.failed = node

    def refused(self, node: CatalystNode, what: str, hint: str) -> DataFrameError:
        """The error for a node that cannot be read."""
        self.blame(node)
        return DataFrameError(what, hint=hint)


def question(path: Path, what: str) -> str:
    """The key of an answer.

    >>> question((0, ("projectList", 2), 1), "mode")
    '0/projectList[2]/1:mode'
    """
    return "/".join(map(_step, path)) + f":{what}"


def _step(step: Step) -> str:
    return f"{step[0]}[{step[1]}]" if isinstance(step, tuple) else str(step)


Handler = Callable[[CatalystNode, "ExpressionReader"], Expression]
HANDLERS: Final[dict[str, Handler]] = {}


def reads(*kinds: str) -> Callable[[Handler], Handler]:
    """Register a function as the way to read some classes of Catalyst."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            assert kind not in HANDLERS, kind
            HANDLERS[kind] = handler
        return handler

    return register


class ExpressionReader:
    """Reads expressions over some rows; ``outer`` reads those over the rows of the query around a subquery."""

    def __init__(
        self,
        reading: CatalystReading,
        rows: FrameRows,
        outer: ExpressionReader | None = None,
        lambdas: Mapping[int, LambdaVariable] | None = None,
    ) -> None:
        self.reading, self.rows, self.outer = reading, rows, outer
        self.lambdas: Mapping[int, LambdaVariable] = lambdas or {}

    def over(self, rows: FrameRows) -> ExpressionReader:
        """A reader over other rows of the same query."""
        return ExpressionReader(self.reading, rows, self.outer)

    def inside(self, lambdas: Mapping[int, LambdaVariable]) -> ExpressionReader:
        """A reader of the body of a lambda function."""
        return ExpressionReader(self.reading, self.rows, self.outer, {**self.lambdas, **lambdas})

    def scopes(self) -> Iterator[ExpressionReader]:
        """The readers of the queries around this one, the nearest first."""
        around = self.outer
        while around is not None:
            yield around
            around = around.outer

    def read(self, node: CatalystNode) -> Expression:
        """The expression that a tree means."""
        try:
            return self._read(node)
        except EverviewError:
            self.reading.blame(node)
            raise

    def all(self, nodes: tuple[CatalystNode, ...]) -> list[Expression]:
        """The expressions of several trees."""
        return [self.read(node) for node in nodes]

    def _read(self, node: CatalystNode) -> Expression:
        handler = HANDLERS.get(node.kind)
        if handler is not None:
            return handler(node, self)
        name = FUNCTIONS.get(node.kind)
        if name is not None:
            return call(name, *self.all(arguments(node)))
        if "replacement" in node.fields:
            return self.read(node.at("replacement"))
        raise self.unreadable(node)

    def unreadable(self, node: CatalystNode) -> DataFrameError:
        """The error for a class that there is no way to read."""
        kind = node.kind
        if kind in CHANCE:
            hint = "a view must give the same answer when a row is taken away again; store the value in a source"
            return self.reading.refused(node, f"{kind} is different every time it is asked", hint)
        hint = LACKING.get(kind, "write it with other functions, or in Python: F.udf, F.pandas_udf or F.arrow_udf")
        return self.reading.refused(node, f"the expression {kind} cannot be read into a view", hint)


def arguments(node: CatalystNode) -> tuple[CatalystNode, ...]:
    """The arguments of a function: its children, or what Spark would replace by other expressions."""
    if "replacement" not in node.fields:
        return node.children
    given: list[CatalystNode] = []
    for name, value in node.fields.items():
        if name != "replacement" and isinstance(value, CatalystNode | list):
            given += (part for part in node.all(name) if isinstance(part, CatalystNode))  # pyright: ignore[reportUnnecessaryIsInstance]
    return tuple(given)
