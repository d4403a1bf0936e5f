"""Generators: functions that make several rows of one, such as explode. They stand in SELECT, in FROM, after LATERAL.

A generator that is bound knows its expressions and the columns that it gives; `generated` puts these after the columns
of the rows that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.plan.node import Plan
from everview.plan.nodes import Explode, Project, Union
from everview.plan.typing import call, cast, coerced, literal
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.kinds import VOID
from everview.types import BIGINT, INTEGER, Array, MapType, Struct, Type

_EXPLODING = ("explode", "posexplode", "inline", "variant_explode")
GENERATORS = (*_EXPLODING, *(f"{name}_outer" for name in _EXPLODING), "stack", "unnest", "json_tuple")
_KINDS: dict[type[exp.Expr], str] = {
    exp.Explode: "explode",
    exp.ExplodeOuter: "explode_outer",
    exp.Posexplode: "posexplode",
    exp.PosexplodeOuter: "posexplode_outer",
    exp.Inline: "inline",
    exp.Unnest: "explode",
}


@dataclass(frozen=True)
class Generator:
    """A generator: one row for each element of an array, or for each of ``rows`` if there is no array.

    With ``place`` the place of an element comes before it, counted from 0. With ``fields`` the fields of an element
    come in its stead. With ``outer`` a row without elements stays, beside NULLs. With ``ordinal`` the place comes after
    the element, counted from 1.
    """

    columns: tuple[str, ...]  # what its columns are called unless they are given names
    array: Expression | None = None
    rows: tuple[tuple[Expression, ...], ...] = ()
    place: bool = False
    fields: bool = False
    outer: bool = False
    ordinal: bool = False

    def moved(self, how: Callable[[Expression], Expression]) -> Generator:
        """The generator with its expressions changed, to read other rows."""
        array = None if self.array is None else how(self.array)
        return replace(self, array=array, rows=tuple(tuple(map(how, row)) for row in self.rows))


def name_of(node: exp.Expr) -> str | None:
    """The name of the generator that a node calls, if it calls one."""
    if type(node) in _KINDS:
        return _KINDS[type(node)]
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name if name in GENERATORS else None


def bound(node: exp.Expr, site: Site) -> Generator:
    """Bind the generator that a node calls."""
    name = name_of(node)
    assert name is not None, "the node calls a generator"
    arguments = _arguments(node, site)
    if name == "stack":
        return _stacked(arguments, node, site.context)
    if name.startswith("variant_explode") and len(arguments) == 1:
        entries = call("variant_entries", arguments[0])
        return Generator(("pos", "key", "value"), entries, (), False, True, name.endswith("outer"))
    if name == "json_tuple":
        return _json_tuple(arguments, node, site.context)
    if name == "explode" and isinstance(node, exp.Unnest) and len(arguments) > 1 and not node.args.get("offset"):
        return _side_by_side(arguments, node, site.context)
    if len(arguments) != 1:
        hint = "explode one array after the other"
        raise site.context.unsupported(f"{name} of {len(arguments)} arguments", node, hint)
    made = _exploding(name.replace("unnest", "explode"), arguments[0], node, site.context)
    return _with_ordinality(made, node, site.context) if node.args.get("offset") else made


def _side_by_side(arrays: Sequence[Expression], node: exp.Expr, context: QueryContext) -> Generator:
    """``UNNEST(a, b)``: the elements of several arrays beside each other; shorter ones, and NULL, end in NULLs."""
    for array in arrays:
        if not isinstance(array.type, Array):
            raise context.error(f"UNNEST of {array.type} beside others", node, "it takes arrays")
    whole = [call("coalesce", array, Literal((), array.type)) for array in arrays]
    made = _exploding("inline", call("arrays_zip", *whole), node, context)
    return replace(
        made, columns=tuple("unnest" if not place else f"unnest_{place + 1}" for place in range(len(arrays)))
    )


def _with_ordinality(made: Generator, node: exp.Expr, context: QueryContext) -> Generator:
    """``UNNEST(array) WITH ORDINALITY``."""
    if len(made.columns) != 1:
        raise context.unsupported("WITH ORDINALITY of a map", node, "write UNNEST(map_entries(m)) WITH ORDINALITY")
    rows = tuple((*row, literal(place, BIGINT)) for place, row in enumerate(made.rows, 1))
    return replace(made, columns=(*made.columns, "ordinality"), rows=rows, ordinal=True)


def names(generator: Generator, given: Sequence[str], node: exp.Expr, context: QueryContext) -> tuple[str, ...]:
    """The names of a generator's columns: its own, or the given ones, of which there must be as many."""
    if not given:
        return generator.columns
    if len(given) != len(generator.columns):
        hint = f"they are {', '.join(generator.columns)}"
        raise context.error(f"{len(given)} names for {len(generator.columns)} columns", node, hint)
    return tuple(given)


def generated(plan: Plan, generator: Generator, names: Sequence[str]) -> Plan:
    """Each row of a plan beside the rows that a generator makes of it; ``names`` are for the generator's columns."""
    every = (*plan.schema.names, *names)
    if generator.array is None:
        parts = [Project(plan, (*plan.columns, *row), every) for row in generator.rows]
        return parts[0] if len(parts) == 1 else Union(tuple(parts))
    if generator.ordinal:
        exploded = Explode(plan, generator.array, "element", generator.outer, "pos")
        *own, place, element = exploded.columns
        return Project(exploded, (*own, element, call("add", cast(place, BIGINT), literal(1, BIGINT))), every)
    if not generator.fields:
        place = names[0] if generator.place else None
        return Explode(plan, generator.array, names[-1], generator.outer, place)
    exploded = Explode(plan, generator.array, "element", generator.outer, "pos" if generator.place else None)
    own = exploded.columns[:-1]
    return Project(exploded, (*own, *_fields(exploded.columns[-1])), every)


def _arguments(node: exp.Expr, site: Site) -> list[Expression]:
    if isinstance(node, exp.Anonymous):
        site.context.only(node, "this", "expressions")
        written = node.expressions
    elif isinstance(node, exp.Unnest):
        site.context.only(node, "expressions", "alias", "offset")
        written = node.expressions
    else:
        site.context.only(node, "this")
        written = [node.this]
    return [expression(part.expression if isinstance(part, exp.Kwarg) else part, site) for part in written]


def _exploding(name: str, array: Expression, node: exp.Expr, context: QueryContext) -> Generator:
    array = untyped(array)
    if isinstance(array.type, MapType) and not name.startswith("inline"):
        return _exploding_map(name, array)
    type_ = array.type
    if not isinstance(type_, Array):
        raise context.error(f"{name} of {type_}, which has no elements", node, f"{name} takes an array or a map")
    place, fields = name.startswith("pos"), name.startswith("inline")
    if fields and not isinstance(type_.element, Struct):
        raise context.error(f"{name} of {type_}", node, "it takes an array of structs; explode takes any array")
    columns = tuple(f.name for f in type_.element.fields) if isinstance(type_.element, Struct) and fields else ("col",)
    outer = name.endswith("outer")
    generator = Generator(("pos", "col") if place else columns, array, (), place, fields, outer)
    return _written_down(generator, array)


def _exploding_map(name: str, value: Expression) -> Generator:
    """A row for each entry of a map: the key and the value."""
    place = name.startswith("pos")
    columns = ("pos", "key", "value") if place else ("key", "value")
    return Generator(columns, call("map_entries", value), (), place, True, name.endswith("outer"))


def _written_down(generator: Generator, array: Expression) -> Generator:
    """A generator of an array whose elements are written down needs no array."""
    if not (isinstance(array, Call) and array.function == "array" and array.arguments):
        return generator
    rows: list[tuple[Expression, ...]] = []
    for place, element in enumerate(array.arguments):
        row = _fields(element) if generator.fields else (element,)
        rows.append((literal(place), *row) if generator.place else row)
    return Generator(generator.columns, None, tuple(rows))


def _fields(element: Expression) -> tuple[Expression, ...]:
    assert isinstance(element.type, Struct), "only structs have fields"
    return tuple(call("get_field", element, literal(f.name)) for f in element.type.fields)


def _json_tuple(arguments: list[Expression], node: exp.Expr, context: QueryContext) -> Generator:
    """``json_tuple(text, 'a', 'b')``: one row with the members of an object as texts."""
    if len(arguments) < 2:
        raise context.error("json_tuple takes a text and names", node, "as in json_tuple(text, 'a', 'b')")
    row = tuple(call("json_member", arguments[0], name) for name in arguments[1:])
    return Generator(tuple(f"c{place}" for place in range(len(row))), None, (row,))


def _stacked(arguments: list[Expression], node: exp.Expr, context: QueryContext) -> Generator:
    """``stack(n, …)``: the values in n rows; what is missing in the last is NULL."""
    count = arguments[0] if arguments else None
    if not isinstance(count, Literal) or count.type != INTEGER or count.value < 1 or len(arguments) < 2:
        raise context.error("stack takes a number of rows, then values", node, "as in stack(2, 'a', x, 'b', y)")
    values = arguments[1:]
    width = -(-len(values) // count.value)
    values += [Literal(None, VOID)] * (width * count.value - len(values))
    kinds = [_kind([v.type for v in values[place::width]], node, context) for place in range(width)]
    typed = [coerced(v, kinds[place % width]) for place, v in enumerate(values)]
    rows = tuple(tuple(typed[place : place + width]) for place in range(0, len(typed), width))
    return Generator(tuple(f"col{place}" for place in range(width)), None, rows)


def _kind(kinds: list[Type], node: exp.Expr, context: QueryContext) -> Type:
    """The one type of a column of stack; NULLs have any."""
    different = list(dict.fromkeys(kind for kind in kinds if kind != VOID)) or [VOID]
    if len(different) > 1:
        raise context.error(f"stack has {different[0]} and {different[1]} in one column", node, "cast one of them")
    return different[0]
