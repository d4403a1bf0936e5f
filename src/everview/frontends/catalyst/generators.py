"""Generators: `explode` and its like make several rows of one."""

from __future__ import annotations

from everview.frontends.catalyst.reading import ExpressionReader, FrameRows
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.sql.generators import Generator, generated
from everview.plan.typing import call, coerced
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import VOID
from everview.types import Array, MapType, Struct

GENERATOR_KINDS = ("Explode", "PosExplode", "Inline", "Stack", "JsonTuple", "VariantExplode")


def generated_rows(node: CatalystNode, reader: ExpressionReader) -> FrameRows:
    """The rows of a `Generate`: each input row beside every row that the generator makes of it."""
    rows = reader.rows.settled()
    function, outer = node.at("generator"), bool(node.fields["outer"])
    if function.kind == "GeneratorOuter":
        function, outer = function.children[0], True
    made = node.all("generatorOutput")
    names = [str(attribute.fields["name"]) for attribute in made]
    plan = generated(rows.plan, _generator(function, outer, reader), names)
    return FrameRows(plan, (*rows.ids, *(attribute.id() for attribute in made)))


def _generator(node: CatalystNode, outer: bool, reader: ExpressionReader) -> Generator:
    match node.kind:
        case "Explode" | "PosExplode":
            return _exploding(reader.read(node.children[0]), node.kind == "PosExplode", outer)
        case "Inline":
            array = reader.read(node.children[0])
            assert isinstance(array.type, Array) and isinstance(array.type.element, Struct), "inline is of structs"
            return Generator(tuple(f.name for f in array.type.element.fields), array, (), False, True, outer)
        case "VariantExplode":
            entries = call("variant_entries", reader.read(node.children[0]))
            return Generator(("pos", "key", "value"), entries, (), False, True, outer)
        case "JsonTuple":
            text, *members = reader.all(node.children)
            row = tuple(call("json_member", text, member) for member in members)
            return Generator(tuple(f"c{place}" for place in range(len(row))), None, (row,))
        case "Stack":
            return _stacked(node, reader)
        case _:
            raise reader.unreadable(node)


def _exploding(value: Expression, place: bool, outer: bool) -> Generator:
    pos = ("pos",) if place else ()
    if isinstance(value.type, MapType):
        return Generator((*pos, "key", "value"), call("map_entries", value), (), place, True, outer)
    return Generator((*pos, "col"), value, (), place, False, outer)


def _stacked(node: CatalystNode, reader: ExpressionReader) -> Generator:
    count, *values = reader.all(node.children)
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        raise reader.reading.refused(node, "stack of a number of rows that is no literal", "write the number down")
    width = -(-len(values) // count.value)
    values += [Literal(None, VOID)] * (width * count.value - len(values))
    types = [next((v.type for v in values[place::width] if v.type != VOID), VOID) for place in range(width)]
    typed = [coerced(value, types[place % width]) for place, value in enumerate(values)]
    rows = tuple(tuple(typed[place : place + width]) for place in range(0, len(typed), width))
    return Generator(tuple(f"col{place}" for place in range(width)), None, rows)
