"""Functions that users wrote in Python: calls of what the answer to a question has made known by a name."""

from __future__ import annotations

from typing import Final

from everview.frontends.catalyst.reading import ExpressionReader, reads
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.catalyst.types import type_of_json
from everview.plan.typing import call, coerced, literal
from everview.scalars.expressions import USER, AggregateCall, Expression, UserCall
from everview.scalars.kinds import CALENDAR, VOID
from everview.types import STRING, VARIANT, YEAR_MONTH, Array, MapType, Struct, Type

NOT_TAKEN: Final = (VARIANT, YEAR_MONTH, CALENDAR)


@reads("PythonUDF")
def _function(node: CatalystNode, reader: ExpressionReader) -> Expression:
    name, type_ = _known(node, reader)
    arguments = _arguments(node, reader) or [literal(1)]  # one that is not read, so that rows can be counted
    return UserCall(name, tuple(arguments), type_)


@reads("NamedArgumentExpression")
def _named(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return reader.read(node.children[0])


def user_aggregate_call(
    node: CatalystNode, reader: ExpressionReader, *, distinct: bool, filter_: Expression | None
) -> AggregateCall:
    """A call of a grouped aggregate, of which NULLs are among the values: so the arguments are one struct."""
    name, type_ = _known(node, reader)
    parts = _arguments(node, reader) or [literal(1)]
    fields = [each for place, part in enumerate(parts) for each in (literal(f"a{place}"), part)]
    return AggregateCall(f"{USER}{name}", (call("named_struct", *fields),), distinct, filter_, (), type_, True)


def _known(node: CatalystNode, reader: ExpressionReader) -> tuple[str, Type]:
    said = str(node.fields["name"])
    if not node.fields["udfDeterministic"]:
        hint = "a view must give the same answer when a row is taken away again; store the value in a source"
        raise reader.reading.refused(node, f"the function {said} is declared non-deterministic", hint)
    name = reader.reading.answer(node, "function")
    if name is None:
        hint = "write it as F.udf, F.pandas_udf or F.arrow_udf of columns"
        raise reader.reading.refused(node, f"the function {said} is of a kind that no view calls", hint)
    type_ = type_of_json(node.fields["dataType"])
    _require(type_, f"the result of {said}", node, reader)
    return str(name), type_


def _arguments(node: CatalystNode, reader: ExpressionReader) -> list[Expression]:
    values = [coerced(v, STRING) if v.type == VOID else v for v in reader.all(node.children)]
    for value in values:
        _require(value.type, f"an argument of {node.fields['name']}", node, reader)
    return values


def _require(type_: Type, what: str, node: CatalystNode, reader: ExpressionReader) -> None:
    if any(part in NOT_TAKEN for part in _parts(type_)):
        hint = "cast it first: to text, a number, or a struct of them"
        raise reader.reading.refused(node, f"{what} is {type_}, which functions of Python do not take", hint)


def _parts(type_: Type) -> list[Type]:
    match type_:
        case Array(element):
            return _parts(element)
        case MapType(key, value):
            return [*_parts(key), *_parts(value)]
        case Struct(fields):
            return [part for f in fields for part in _parts(f.type)]
        case _:
            return [type_]
