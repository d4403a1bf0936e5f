"""Window functions: each partition, order and frame is written out in Catalyst."""

from __future__ import annotations

from typing import Any, Final

from everview.frontends.catalyst.aggregates import aggregate_of_node, ordered
from everview.frontends.catalyst.reading import ExpressionReader
from everview.frontends.catalyst.tree import CatalystNode
from everview.plan.aggregates import WindowOfRows
from everview.plan.typing import call, coerced, literal
from everview.scalars.expressions import Call, Expression, Frame, Literal, Order, WindowCall
from everview.scalars.kinds import INTERVALS
from everview.types import DOUBLE, INTEGER, Type

RANKS: Final[dict[str, tuple[str, Type]]] = {
    "RowNumber": ("row_number", INTEGER),
    "Rank": ("rank", INTEGER),
    "DenseRank": ("dense_rank", INTEGER),
    "PercentRank": ("percent_rank", DOUBLE),
    "CumeDist": ("cume_dist", DOUBLE),
}
PICKED: Final = {"First": "first_value", "Last": "last_value", "NthValue": "nth_value", "AnyValue": "first_value"}
SHIFTED: Final = {"Lag": "lag", "Lead": "lead"}
WINDOW_KINDS: Final = (*RANKS, *PICKED, *SHIFTED, "NTile")


def window_value(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """What a `WindowExpression` means: a call, or a formula of several over the same window."""
    spec, function = node.at("windowSpec"), node.at("windowFunction")
    partition = tuple(reader.all(spec.all("partitionSpec")))
    by = tuple(ordered(item, reader) for item in spec.all("orderSpec"))
    frame = _frame(spec.maybe("frameSpecification"), reader)
    kind = function.kind
    if kind in RANKS:
        name, type_ = RANKS[kind]
        reader.reading.arbitrary |= name == "row_number"  # Spark numbers rows that tie in any order
        return WindowCall(name, (), partition, by, None, type_, False)
    if kind == "NTile":
        reader.reading.arbitrary = True
        buckets = _whole(reader.read(function.children[0]), function, reader)
        return WindowCall("ntile", (buckets,), partition, by, None, INTEGER, False)
    if kind in SHIFTED:
        return _shifted(function, partition, by, reader)
    if function.kind == "AggregateExpression" and function.at("aggregateFunction").kind in PICKED:
        return _picked(function, partition, by, frame, reader)
    if function.kind in PICKED:
        return _picked_value(function, partition, by, frame, None, reader)
    if function.kind != "AggregateExpression":
        raise reader.unreadable(function)
    return aggregate_of_node(function, reader, WindowOfRows(partition, by, frame).over)


def _shifted(node: CatalystNode, partition: tuple[Expression, ...], by: Order, reader: ExpressionReader) -> WindowCall:
    """`lag` and `lead`; Catalyst has the offset of `lead` as it is, and of `lag` under a minus or without."""
    reader.reading.arbitrary = True
    value = reader.read(node.at("input"))
    offset = reader.read(node.at("inputOffset" if "inputOffset" in node.fields else "offset"))
    default = reader.read(node.at("default"))
    default = coerced(default, value.type) if not isinstance(default, Literal) or default.value is not None else None
    default = Literal(None, value.type) if default is None else default
    kept = call("is_not_null", value) if node.fields.get("ignoreNulls") else None
    arguments = (value, _whole(offset, node, reader), default)
    nullable = value.nullable or default.nullable
    return WindowCall(SHIFTED[node.kind], arguments, partition, by, None, value.type, nullable, kept)


def _picked(
    node: CatalystNode, partition: tuple[Expression, ...], by: Order, frame: Frame | None, reader: ExpressionReader
) -> WindowCall:
    kept = node.maybe("filter")
    filter_ = None if kept is None else reader.read(kept)
    return _picked_value(node.at("aggregateFunction"), partition, by, frame, filter_, reader)


def _picked_value(
    node: CatalystNode,
    partition: tuple[Expression, ...],
    by: Order,
    frame: Frame | None,
    kept: Expression | None,
    reader: ExpressionReader,
) -> WindowCall:
    reader.reading.arbitrary = True
    value = reader.read(node.children[0])
    rest: tuple[Literal, ...] = ()
    if node.kind == "NthValue":
        rest = (_whole(reader.read(node.children[1]), node, reader),)
    if node.fields.get("ignoreNulls"):
        there = call("is_not_null", value)
        kept = there if kept is None else call("and", kept, there)
    return WindowCall(PICKED[node.kind], (value, *rest), partition, by, frame, value.type, True, kept)


def _whole(number: Expression, node: CatalystNode, reader: ExpressionReader) -> Literal:
    if isinstance(number, Literal) and isinstance(number.value, int):
        return literal(number.value)
    raise reader.reading.refused(node, f"{node.kind} by a number that is no literal", "write the number down")


def _frame(node: CatalystNode | None, reader: ExpressionReader) -> Frame | None:
    if node is None or node.kind == "UnspecifiedFrame":
        return None
    unit: Any = "rows" if node.object_name("frameType") == "RowFrame" else "range"
    return Frame(unit, _edge(node.at("lower"), reader), _edge(node.at("upper"), reader))


def _edge(node: CatalystNode, reader: ExpressionReader) -> Any:
    """The bound of a frame: None without one, 0 for the current row, or an offset."""
    if node.kind in ("UnboundedPreceding", "UnboundedFollowing"):
        return None
    if node.kind == "CurrentRow":
        return 0
    value = reader.read(node)
    if isinstance(value, Call) and value.function == "negate" and isinstance(value.arguments[0], Literal):
        value = Literal(-value.arguments[0].value, value.type)
    if not isinstance(value, Literal):
        raise reader.reading.refused(node, "a frame reaches as far as a literal says", "write the number down")
    return value if value.type in INTERVALS else value.value
