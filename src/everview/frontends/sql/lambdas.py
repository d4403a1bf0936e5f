"""Calls with lambda functions: ``transform(array, x -> x + 1)``, ``aggregate(array, 0, (acc, x) -> acc + x)``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.expressions import Site, expression, handles
from everview.frontends.sql.names import fold
from everview.plan.typing import cast, common, implicit
from everview.scalars.expressions import Expression, LambdaCall, LambdaVariable
from everview.scalars.signatures.maps import map_type
from everview.types import BOOLEAN, INTEGER, Array, MapType, Type, unknown_name

# What dialects call the functions, by the names that Spark has for them.
NAMES: Final = {
    "transform": "transform", "list_transform": "transform", "array_transform": "transform", "list_apply": "transform",
    "apply": "transform", "array_apply": "transform", "filter": "filter", "list_filter": "filter",
    "array_filter": "filter", "exists": "exists", "any_match": "exists", "forall": "forall", "all_match": "forall",
    "zip_with": "zip_with", "aggregate": "aggregate", "reduce": "aggregate", "array_sort": "array_sort",
    "map_filter": "map_filter", "transform_keys": "transform_keys", "transform_values": "transform_values",
    "map_zip_with": "map_zip_with",
}  # fmt: skip
CLASSES: Final[dict[type[exp.Expr], str]] = {
    exp.Transform: "transform",
    exp.ArrayFilter: "filter",
    exp.ArrayAny: "exists",
    exp.ArrayAll: "forall",
    exp.Reduce: "aggregate",
}
USES: Final = {
    "transform": "transform(array, x -> x + 1)",
    "filter": "filter(array, x -> x > 1)",
    "exists": "exists(array, x -> x > 1)",
    "forall": "forall(array, x -> x > 1)",
    "zip_with": "zip_with(a, b, (x, y) -> x + y)",
    "aggregate": "aggregate(array, 0, (acc, x) -> acc + x)",
    "array_sort": "array_sort(array, (x, y) -> x - y)",
    "map_filter": "map_filter(map, (k, v) -> v > 1)",
    "transform_keys": "transform_keys(map, (k, v) -> k + 1)",
    "transform_values": "transform_values(map, (k, v) -> v + 1)",
    "map_zip_with": "map_zip_with(a, b, (k, x, y) -> x + y)",
}
ARITIES: Final = {
    "transform": (1, 2), "filter": (1, 2), "exists": (1, 1), "forall": (1, 1), "zip_with": (2, 2), "aggregate": (2, 2),
    "array_sort": (2, 2), "map_filter": (2, 2), "transform_keys": (2, 2), "transform_values": (2, 2),
    "map_zip_with": (3, 3),
}  # fmt: skip


@handles(exp.Identifier, args="*")
def _variable(node: exp.Identifier, site: Site) -> Expression:
    """A variable of a lambda function, which the parser has told from columns."""
    known = {fold(name): value for name, value in site.given.items()}
    if fold(node.name) not in known:
        raise unknown_name("variable", node.name, known)
    return known[fold(node.name)]


@handles(exp.Lambda, args="*")
def _stray(node: exp.Lambda, site: Site) -> Expression:
    hint = f"the functions that take one are {', '.join(USES)}"
    raise site.context.unsupported(f"a lambda in {site.clause}", node, hint)


def has_lambda(node: exp.Expr) -> bool:
    """Whether a call has a lambda function among its arguments."""
    return any(isinstance(argument, exp.Lambda) for argument in _arguments(node))


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return node.expressions
    parts = [node.args.get(key) for key in ("this", "initial", "expression", "merge", "finish")]
    return [part for part in parts if isinstance(part, exp.Expr)]


def lambda_call(node: exp.Expr, site: Site) -> Expression | None:
    """A call of a function that takes functions; None if it is another."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else CLASSES.get(type(node), "")
    name = NAMES.get(name, "")
    if not name or not has_lambda(node):
        return None
    given = _arguments(node)
    values = [expression(part, site) for part in given if not isinstance(part, exp.Lambda)]
    lambdas = [part for part in given if isinstance(part, exp.Lambda)]
    wanted = (
        (2, 1) if name.endswith("zip_with") else (2, 2 if len(lambdas) == 2 else 1) if name == "aggregate" else (1, 1)
    )
    if (len(values), len(lambdas)) != wanted:
        raise site.context.error(f"{name} of other arguments than it takes", node, f"write {USES[name]}")
    if name in _OF_MAPS:
        return _over_maps(name, values, lambdas[0], node, site)
    arrays = values[:1] if name == "aggregate" else values
    for array in arrays:
        if not isinstance(array.type, Array):
            raise site.context.error(f"{name} of {array.type}, which is no array", node, f"write {USES[name]}")
    if name == "aggregate":
        return _aggregated(values[0], values[1], lambdas, node, site)
    if name == "array_sort":
        return _sorted(values[0], lambdas[0], site)
    kinds = [array.type.element for array in arrays if isinstance(array.type, Array)]
    return _applied(name, values, kinds, lambdas[0], site)


def _applied(name: str, arrays: list[Expression], kinds: list[Type], node: exp.Lambda, site: Site) -> Expression:
    least, most = ARITIES[name]
    count = len(node.expressions)
    if not least <= count <= most:
        raise site.context.error(f"{name} takes a function of {least} to {most} values", node, f"write {USES[name]}")
    places = name in ("transform", "filter") and count == 2
    variables, body = _bound(node, [*kinds, INTEGER] if places else kinds, name, site)
    nullable = any(array.nullable for array in arrays)
    if name in ("filter", "exists", "forall"):
        body = implicit(body, BOOLEAN, f"the function of {name}")
    match name:
        case "filter":
            type_: Type = arrays[0].type
        case "exists" | "forall":
            type_, nullable = BOOLEAN, nullable or body.nullable
        case _:
            body = untyped(body)
            type_ = Array(body.type)
    return LambdaCall(f"{name}_i" if places else name, tuple(arrays), (body,), (variables,), type_, nullable)


_OF_MAPS: Final = ("map_filter", "transform_keys", "transform_values", "map_zip_with")


def _over_maps(name: str, values: list[Expression], node: exp.Lambda, call: exp.Expr, site: Site) -> Expression:
    """A function of maps and of a function of a key and its values."""
    for value in values:
        if not isinstance(value.type, MapType):
            raise site.context.error(f"{name} of {value.type}, which is no map", call, f"write {USES[name]}")
    kinds = [value.type for value in values if isinstance(value.type, MapType)]
    key = kinds[0].key
    if name == "map_zip_with" and kinds[1].key != key:
        met = common(key, kinds[1].key)
        if met is None:
            raise site.context.error(f"{name} of keys {key} and {kinds[1].key}", call, "cast one of them")
        values = [cast(value, MapType(met, kind.value)) for value, kind in zip(values, kinds, strict=True)]
        key = met
    variables, body = _bound(node, [key, *(kind.value for kind in kinds)], name, site)
    if name == "map_filter":
        body, type_ = implicit(body, BOOLEAN, f"the function of {name}"), kinds[0]
    else:
        body = untyped(body)
        type_ = map_type(name, body.type, kinds[0].value) if name == "transform_keys" else MapType(key, body.type)
    return LambdaCall(name, tuple(values), (body,), (variables,), type_, any(value.nullable for value in values))


def _sorted(array: Expression, node: exp.Lambda, site: Site) -> Expression:
    """``array_sort(array, (x, y) -> …)``: the function is negative, zero or positive, as x comes before y or not."""
    assert isinstance(array.type, Array), "it was checked"
    variables, body = _bound(node, [array.type.element] * 2, "array_sort", site)
    compared = implicit(body, INTEGER, "the function of array_sort")
    return LambdaCall("array_sort", (array,), (compared,), (variables,), array.type, array.nullable)


def _aggregated(
    array: Expression, first: Expression, lambdas: list[exp.Lambda], node: exp.Expr, site: Site
) -> Expression:
    """``aggregate(array, start, merge [, finish])``; the state has the type that start and merge have in common."""
    assert isinstance(array.type, Array), "it was checked"
    start = untyped(first)
    variables, merged = _bound(lambdas[0], [start.type, array.type.element], "aggregate", site)
    if merged.type != start.type:
        both = common(start.type, merged.type)
        if both is None:
            said = f"{start.type} at first and then {merged.type}"
            raise site.context.error(f"aggregate of a state that is {said}", node, "cast one of them")
        start = cast(start, both)
        variables, merged = _bound(lambdas[0], [both, array.type.element], "aggregate", site)
    bodies, every = [cast(merged, start.type)], [variables]
    type_ = start.type
    if len(lambdas) > 1:
        last, finished = _bound(lambdas[1], [start.type], "aggregate", site)
        finished = untyped(finished)
        type_ = finished.type
        bodies.append(finished)
        every.append(last)
    return LambdaCall("aggregate", (array, start), tuple(bodies), tuple(every), type_, True)


def _bound(node: exp.Lambda, kinds: list[Type], name: str, site: Site) -> tuple[tuple[LambdaVariable, ...], Expression]:
    """The variables of a lambda function, and its body over them."""
    names = [part.name for part in node.expressions]
    if len(names) != len(kinds):
        counts = f"{len(names)} values, and is given {len(kinds)}"
        raise site.context.error(f"a function in {name} takes {counts}", node, f"write {USES[name]}")
    if len({fold(part) for part in names}) < len(names):
        raise site.context.error("a function of two values of one name", node, "rename one")
    around = [value.number for value in site.given.values() if isinstance(value, LambdaVariable)]
    number = max(around, default=-1) + 1
    places = name in ("transform", "filter")
    variables = tuple(
        LambdaVariable(number + i, part, kind, not (places and i == 1) and not (name in _OF_MAPS and i == 0))
        for i, (part, kind) in enumerate(zip(names, kinds, strict=True))
    )
    given = {
        **{k: v for k, v in site.given.items() if fold(k) not in map(fold, names)},
        **dict(zip(names, variables, strict=True)),
    }
    inner = replace(site.inside(f"a function of {name}"), given=given)
    if node.this.find(exp.Query) is not None:
        raise site.context.unsupported("a subquery in a lambda", node, "join what it reads")
    return variables, expression(node.this, inner)
