"""Functions of functions: Catalyst has the variables of a lambda function as named expressions with numbers."""

from __future__ import annotations

from everview.frontends.catalyst.reading import ExpressionReader, reads
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.catalyst.types import type_of_json
from everview.plan.typing import call, cast, implicit
from everview.scalars.expressions import Expression, LambdaCall, LambdaVariable
from everview.types import BOOLEAN, Array, MapType, Type

Body = tuple[tuple[LambdaVariable, ...], Expression]


@reads("NamedLambdaVariable")
def _variable(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return reader.lambdas[node.id()]


def _function(node: CatalystNode, reader: ExpressionReader) -> Body:
    """The variables of a lambda function, and its body over them."""
    body, *named = node.children
    first = max((v.number for v in reader.lambdas.values()), default=-1) + 1
    made = {
        one.id(): LambdaVariable(
            first + place, str(one.fields["name"]), type_of_json(one.fields["dataType"]), bool(one.fields["nullable"])
        )
        for place, one in enumerate(named)
    }
    return tuple(made.values()), reader.inside(made).read(body)


@reads("ArrayTransform", "ArrayFilter", "ArrayExists", "ArrayForAll", "ZipWith")
def _of_arrays(node: CatalystNode, reader: ExpressionReader) -> Expression:
    name = _NAMES[node.kind]
    arrays = reader.all(node.children[:-1])
    variables, body = _function(node.children[-1], reader)
    nullable = any(array.nullable for array in arrays)
    if name in ("filter", "exists", "forall"):
        body = implicit(body, BOOLEAN, f"the function of {name}")
    type_: Type = Array(body.type)
    if name == "filter":
        type_ = arrays[0].type
    elif name in ("exists", "forall"):
        type_, nullable = BOOLEAN, nullable or body.nullable
    placed = name in ("transform", "filter") and len(variables) == 2
    return LambdaCall(f"{name}_i" if placed else name, tuple(arrays), (body,), (variables,), type_, nullable)


@reads("MapFilter", "TransformKeys", "TransformValues", "MapZipWith")
def _of_maps(node: CatalystNode, reader: ExpressionReader) -> Expression:
    name, maps = _NAMES[node.kind], reader.all(node.children[:-1])
    variables, body = _function(node.children[-1], reader)
    kind = maps[0].type
    assert isinstance(kind, MapType), "Spark has checked that it is a map"
    type_: Type = kind
    if name == "transform_keys":
        type_ = MapType(body.type, kind.value)
    elif name != "map_filter":
        type_ = MapType(kind.key, body.type)
    return LambdaCall(name, tuple(maps), (body,), (variables,), type_, any(m.nullable for m in maps))


_NAMES = {
    "ArrayTransform": "transform",
    "ArrayFilter": "filter",
    "ArrayExists": "exists",
    "ArrayForAll": "forall",
    "ZipWith": "zip_with",
    "MapFilter": "map_filter",
    "TransformKeys": "transform_keys",
    "TransformValues": "transform_values",
    "MapZipWith": "map_zip_with",
}


@reads("ArrayAggregate")
def _folded(node: CatalystNode, reader: ExpressionReader) -> Expression:
    array, start = reader.all((node.at("argument"), node.at("zero")))
    variables, merged = _function(node.at("merge"), reader)
    last, finished = _function(node.at("finish"), reader)
    bodies, every, type_ = [cast(merged, start.type)], [variables], start.type
    if finished != last[0]:
        bodies.append(finished)
        every.append(last)
        type_ = finished.type
    return LambdaCall("aggregate", (array, start), tuple(bodies), tuple(every), type_, True)


@reads("ArraySort")
def _sorted(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """An array in the order of a function; Spark writes its own order as one, of hidden variables."""
    array = reader.read(node.at("argument"))
    compare = node.at("function")
    variables, body = _function(compare, reader)
    if _is_default(compare):
        return call("array_sort", array)
    return LambdaCall("array_sort", (array,), (body,), (variables,), array.type, array.nullable)


def _is_default(compare: CatalystNode) -> bool:
    """Whether a function is the order that Spark takes where none is given: NULL last, and else the less first."""
    named = [str(one.fields["name"]) for one in compare.children[1:]]
    parts = [str(part.fields.get("value") or part.kind) for part in compare.children[0].walk() if part.kind != _NAMED]
    return named == ["left", "right"] and parts == _DEFAULT


_NAMED = "NamedLambdaVariable"
_DEFAULT = [
    *("If", "And", "IsNull", "IsNull", "0", "If", "IsNull", "1", "If", "IsNull", "-1"),
    *("If", "LessThan", "-1", "If", "GreaterThan", "1", "0"),
]
