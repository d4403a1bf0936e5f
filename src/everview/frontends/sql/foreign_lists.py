"""Lists and structs of DuckDB and PostgreSQL: slices, places in texts, comprehensions, ``list_aggregate`` by a name."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import POSTGRES, Site, expression
from everview.frontends.sql.foreign_templates import by_template
from everview.plan.typing import call, literal
from everview.scalars.expressions import Expression, Literal
from everview.types import BINARY, STRING, Array, Struct


def sliced(value: Expression, first: Expression | None, last: Expression | None, site: Site) -> Expression:
    """``l[2:3]``, from a place to another, both counted from 1; in DuckDB from the end where they are negative."""
    from_the_end = site.context.dialect not in POSTGRES
    size = call("array_size" if isinstance(value.type, Array) else "length", value)
    first = literal(1) if first is None else _place(first, size) if from_the_end else first
    last = size if last is None else _place(last, size) if from_the_end else last
    begin = call("greatest", first, literal(1))
    count = call("greatest", call("add", call("subtract", call("least", last, size), begin), literal(1)), literal(0))
    return _known(call(_slicing(value), value, begin, count), (first, last))


def _known(part: Expression, ends: tuple[Expression, ...]) -> Expression:
    """A part, NULL where one of its ends is."""
    for end in ends:
        if end.nullable:
            part = call("if", call("is_null", end), Literal(None, part.type), part)
    return part


def _slicing(value: Expression) -> str:
    return "slice" if isinstance(value.type, Array) else "substring"


def _place(place: Expression, size: Expression) -> Expression:
    """A place counted from 1, where it was counted from the end, of which the last is -1."""
    if isinstance(place, Literal) and isinstance(place.value, int) and place.value >= 0:
        return place
    return call("if", call("less", place, literal(0)), call("add", call("add", size, place), literal(1)), place)


def letter_at(text: Expression, place: Expression) -> Expression:
    """The letter of a text at a place, an empty text where there is none."""
    return call("if", call("equal", place, literal(0)), literal(""), call("substring", text, place, literal(1)))


def is_text(value: Expression) -> bool:
    """Whether a value is a text or bytes, of which brackets take a part."""
    return value.type in (STRING, BINARY)


def slice_call(node: exp.Expr, site: Site) -> Expression:
    """``list_slice(l, 2, 3)``."""
    if len(node.expressions) != 3:
        raise site.context.unsupported(f"{node.name} with a step", node, f"write {node.name}(l, 2, 3)")
    value, first, last = (expression(argument, site) for argument in node.expressions)
    return sliced(value, first, last, site)


def extracted(node: exp.Expr, site: Site) -> Expression:
    """``list_extract(l, 2)``: an element, or a letter; NULL, or no letter, where there is none."""
    if len(node.expressions) != 2:
        raise site.context.error(f"{node.name} takes 2 arguments", node, f"write {node.name}(l, 1)")
    value, place = (expression(argument, site) for argument in node.expressions)
    if is_text(value):
        return letter_at(value, place)
    there = call("not_equal", place, literal(0))
    return call("try_element_at", value, call("if", there, place, Literal(None, place.type)))


def comprehended(node: exp.Comprehension, site: Site) -> Expression:
    """``[x + 1 for x in l if x > 1]``, as a filter and a function of each element."""
    site.context.only(node, "this", "expression", "iterator", "condition")
    variable, array = node.expression, node.args["iterator"].copy()
    condition = node.args.get("condition")
    if condition is not None:
        array = exp.Anonymous(this="filter", expressions=[array, _lambda(variable, condition)])
    return expression(exp.Anonymous(this="transform", expressions=[array, _lambda(variable, node.this)]), site)


def _lambda(variable: exp.Expr, body: exp.Expr) -> exp.Lambda:
    """A function of one variable, of which the body is read as columns."""
    body = body.copy()
    for column in [body, *body.find_all(exp.Column)]:
        if isinstance(column, exp.Column) and not column.table and column.name.lower() == variable.name.lower():
            inner = exp.to_identifier(column.name)
            if column is body:
                body = inner
            else:
                column.replace(inner)
    return exp.Lambda(this=body, expressions=[variable.copy()])


_NAMED: Final = {"mean": "avg", "array_agg": "list", "group_concat": "string_agg", "listagg": "string_agg"}


def aggregated(node: exp.Expr, site: Site) -> Expression:
    """``list_aggregate(l, 'sum')``: the aggregate of a list's elements."""
    if len(node.expressions) < 2 or not node.expressions[1].is_string:
        raise site.context.error(f"{node.name} by which aggregate?", node, f"write {node.name}(l, 'sum')")
    array, name, *rest = node.expressions
    named = _NAMED.get(name.name.lower(), name.name.lower())
    values = [expression(argument, site) for argument in (array, *rest)]
    made = by_template(f"list_{named}", values, "duckdb", site)
    if made is None:
        hint = "there are sum, avg, min, max, count, product, first, last, any_value, bool_and, bool_or and string_agg"
        raise site.context.unsupported(f"{node.name} by {name.name}", node, hint)
    return made


# -- structs


def row(node: exp.Expr, site: Site) -> Expression:
    """``ROW(1, 2)``: a struct whose fields are called by their places, ``col1``, in PostgreSQL ``f1``."""
    letters = "f" if site.context.dialect in POSTGRES else "col"
    parts: list[Expression] = []
    for place, value in enumerate(node.expressions, 1):
        parts += [literal(f"{letters}{place}"), expression(value, site)]
    return call("named_struct", *parts)


def inserted(node: exp.Expr, site: Site) -> Expression:
    """``struct_insert(s, b := 2)``: the struct with more fields behind its own."""
    first, *more = node.expressions or [exp.Null()]
    value = expression(first, site)
    if not isinstance(value.type, Struct) or not all(isinstance(part, exp.PropertyEQ) for part in more):
        raise site.context.error("struct_insert of what?", node, "write struct_insert(s, b := 2)")
    parts: list[Expression] = []
    for field in value.type.fields:
        parts += [literal(field.name), call("get_field", value, literal(field.name))]
    for part in more:
        parts += [literal(part.name), expression(part.expression, site)]
    return call("named_struct", *parts)
