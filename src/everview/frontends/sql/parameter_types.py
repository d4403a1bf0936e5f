"""Types of parameters that a client has not named: read off the places where a statement has them.

A cast names the type. Beside a column in a comparison, in VALUES and in SET a parameter has the column's type, and in
LIMIT it is BIGINT. Everywhere else it is text, which PostgreSQL says of such parameters, too.

>>> from everview.frontends.sql.parse import parse
>>> from everview.types import Schema
>>> orders = Schema.parse("id BIGINT NOT NULL, name STRING, at TIMESTAMP")
>>> (insert,), _ = parse("INSERT INTO orders (at, id) VALUES ($1, $2)", "postgresql")
>>> parameter_types(insert.tree, {"orders": orders}.get)
{1: TIMESTAMP, 2: BIGINT}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.names import fold
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.types import type_of
from everview.plan.catalog import Tables
from everview.types import BIGINT, BOOLEAN, DAY_TIME, DOUBLE, INTEGER, STRING, Array, Decimal, Schema, Type

SchemaOf = Callable[[str], Schema | None]
_MARKS: Final = (exp.Parameter, exp.Placeholder)
_COMPARING: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.Mod,
)  # fmt: skip


def parameter_types(tree: exp.Expr, schema_of: SchemaOf) -> dict[int, Type]:
    """The types of a statement's parameters, by their numbers; ``schema_of`` gives the columns of a relation."""
    columns = _columns(tree, schema_of)
    types: dict[int, Type] = {}
    for mark in tree.find_all(*_MARKS):
        number = mark.name.removeprefix("?")
        if not number.isdigit() or len(number) > 9:
            continue
        type_ = _type(mark, columns, schema_of)
        if type_ is not None or int(number) not in types:
            known = types.get(int(number), STRING)
            types[int(number)] = known if type_ is None else type_
    return dict(sorted(types.items()))


def _columns(tree: exp.Expr, schema_of: SchemaOf) -> dict[str, Type]:
    """The types of all columns of the relations that a statement names, by their folded names."""
    types: dict[str, Type] = {}
    for table in tree.find_all(exp.Table):
        schema = schema_of(f"{table.db}.{table.name}" if table.db else table.name)
        for f in () if schema is None else schema.fields:
            types.setdefault(fold(f.name), f.type)
    return types


def _type(mark: exp.Expr, columns: dict[str, Type], schema_of: SchemaOf) -> Type | None:
    """The type that the place of a parameter asks for; None if it asks for none."""
    node, parent = mark, mark.parent
    while isinstance(parent, (exp.Paren, exp.Neg)):
        node, parent = parent, parent.parent
    match parent:
        case exp.Limit() | exp.Offset() | exp.Fetch():
            return BIGINT
        case exp.Tuple() if isinstance(parent.parent, exp.Values):
            return _inserted(parent.parent, parent.expressions.index(node), schema_of)
        case exp.Values():
            return _inserted(parent, 0, schema_of)
        case exp.Alias() if isinstance(parent.parent, exp.Select) and isinstance(parent.parent.parent, exp.Insert):
            return _inserted(parent.parent, parent.parent.expressions.index(parent), schema_of)
        case None:
            return None
        case _:
            return _type_inside(node, parent, columns)


def _type_inside(node: exp.Expr, parent: exp.Expr, columns: dict[str, Type]) -> Type | None:
    """The type that an expression asks for in a part of it."""
    match parent:
        case exp.Cast():
            return _named_type(parent.to)
        case exp.Between():
            return _type_of(parent.this, columns)
        case exp.In():
            return _type_of(parent.this, columns) if node is not parent.this else None
        case exp.Tuple() if isinstance(parent.parent, exp.In):
            return _type_of(parent.parent.this, columns)
        case exp.Where() | exp.Having() | exp.And() | exp.Or() | exp.Not():
            return BOOLEAN
        case exp.Anonymous() if parent.name.lower() == "array_contains" and node is parent.expressions[0]:
            element = _type_of(parent.expressions[1], columns)
            return None if element is None else Array(element)
        case exp.Coalesce() | exp.Nullif() | exp.Greatest() | exp.Least():
            others = list(parent.find_all(exp.Column, exp.Cast))
            return next((t for part in others if (t := _type_of(part, columns)) is not None), None)
        case _ if isinstance(parent, _COMPARING):
            return _type_of(parent.expression if node is parent.this else parent.this, columns)
        case _:
            return None


def _inserted(rows: exp.Expr, place: int, schema_of: SchemaOf) -> Type | None:
    """The type of a column that INSERT gives a value to."""
    insert = rows.parent
    if not isinstance(insert, exp.Insert):
        return None
    named = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    schema = schema_of(f"{named.db}.{named.name}" if named.db else named.name)
    if schema is None:
        return None
    listed = [fold(c.name) for c in insert.this.expressions] if isinstance(insert.this, exp.Schema) else None
    names = [fold(name) for name in schema.names] if listed is None else listed
    types = {fold(f.name): f.type for f in schema.fields}
    return types.get(names[place]) if place < len(names) else None


def _type_of(node: exp.Expr | None, columns: dict[str, Type]) -> Type | None:
    """The type of an expression as far as it is plain to see."""
    match node:
        case exp.Paren() | exp.Neg() | exp.Alias() | exp.Any():
            return _type_of(node.this, columns)
        case exp.Column():
            return columns.get(fold(node.name))
        case exp.Cast():
            return _named_type(node.to)
        case exp.Literal():
            if node.is_string:
                return STRING
            return constant_type(node.name)
        case exp.Count() | exp.Length():
            return BIGINT
        case exp.Max() | exp.Min() | exp.Sum() | exp.Abs():
            return _type_of(node.this, columns)
        case exp.Lower() | exp.Upper() | exp.Concat() | exp.DPipe():
            return STRING
        case _ if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
            return _type_of(node.this, columns) or _type_of(node.expression, columns)
        case _:
            return None


def constant_type(text: str) -> Type:
    """The type of a number as it is written.

    >>> constant_type("7"), constant_type("3000000000"), constant_type("1e5")
    (INTEGER, BIGINT, DOUBLE)
    """
    if "e" in text.lower():
        return DOUBLE
    if "." in text:
        return Decimal(38, 10)
    return INTEGER if len(text) < 10 or (len(text) == 10 and int(text) < 2**31) else BIGINT


def _named_type(node: exp.Expr) -> Type | None:
    if isinstance(node, exp.ObjectIdentifier):
        return STRING if str(node.this).lower().startswith("reg") else BIGINT
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.INTERVAL:
        return DAY_TIME  # PostgreSQL's intervals may have months, too; those of a value are read from it
    try:
        return type_of(node, QueryContext(Tables({}), SqlText(""), "postgresql"))
    except EverviewError:
        return None
