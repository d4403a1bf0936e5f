"""Functions of SQL: ``CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1``, expanded wherever they are called.

The body is bound over its arguments, which are bound where the call stands: no name of the caller is seen inside, and
no argument is read as text. A function that returns a table stands in FROM, and takes constants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope, Visible, fold
from everview.frontends.sql.parse import parse
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.schemas import stored_name
from everview.frontends.sql.types import type_of
from everview.frontends.sql.written import NAMES, RANKS
from everview.plan.catalog import StoredFunction
from everview.plan.typing import cast, implicit, is_function, is_number
from everview.scalars.evaluate import fold as folded
from everview.scalars.expressions import Expression, Literal
from everview.types import Type, unknown_name

ARGUMENT = "argument "  # before the number of an argument; no column is called so
HINT = "write CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1"


@dataclass(frozen=True)
class MacroParameter:
    """A parameter of a function: its name, its type if one is declared, and the default if it has one."""

    name: str
    kind: exp.Expr | None = None
    default: exp.Expr | None = None


@dataclass(frozen=True)
class SqlMacro:
    """A parsed ``CREATE FUNCTION``: parameters, result type, and a body in which parameters are numbers."""

    name: str
    parameters: tuple[MacroParameter, ...]
    body: exp.Expr
    returns: exp.Expr | None
    is_table: bool
    text: str
    dialect: str


@lru_cache(maxsize=256)
def macro_of(stored: StoredFunction) -> SqlMacro:
    """The function that a stored text defines."""
    (parsed,), _ = parse(stored.text, stored.dialect)
    assert isinstance(parsed.tree, exp.Create), "a function is stored by the text that made it"
    return _read(parsed.tree, stored.name, stored.text, stored.dialect)


def _read(node: exp.Create, name: str, text: str, dialect: str) -> SqlMacro:
    parameters = tuple(map(_parameter, node.this.expressions))
    body = node.expression.this if isinstance(node.expression, exp.Return) else node.expression
    body = _of_text(body, node, dialect)
    numbers = {fold(parameter.name): number for number, parameter in enumerate(parameters)}
    for column in list(body.find_all(exp.Column)):
        qualified = column.table and fold(column.table) != fold(name)
        if not qualified and fold(column.name) in numbers:
            inner = exp.column(exp.to_identifier(f"{ARGUMENT}{numbers[fold(column.name)]}", quoted=True))
            if column is body:
                body = inner
            else:
                column.replace(inner)
    for given in list(body.find_all(exp.Parameter)):
        if given.name.isdigit() and 1 <= int(given.name) <= len(parameters):
            given.replace(exp.column(exp.to_identifier(f"{ARGUMENT}{int(given.name) - 1}", quoted=True)))
    returns, is_table = None, isinstance(body, exp.Query) and not isinstance(body, exp.Subquery)
    properties = node.args.get("properties")
    for part in [] if properties is None else properties.expressions:
        if isinstance(part, exp.ReturnsProperty):
            returns = None if part.args.get("is_table") else part.this
    return SqlMacro(name, parameters, body, returns, is_table, text, dialect)


def _of_text(body: exp.Expr, node: exp.Create, dialect: str) -> exp.Expr:
    """The body of a function, which PostgreSQL writes as a text: ``AS $$ SELECT x + 1 $$``; one value is its row."""
    if not isinstance(body, exp.Heredoc | exp.RawString | exp.Literal) or not node.find(exp.LanguageProperty):
        return body.copy()
    (parsed,), _ = parse(str(body.this), dialect)
    for part in parsed.tree.walk():
        part.meta.pop("start", None)
    returned = node.find(exp.ReturnsProperty)
    if (returned is not None and returned.args.get("is_table")) or not isinstance(parsed.tree, exp.Query):
        return parsed.tree
    only = parsed.tree.selects[0] if isinstance(parsed.tree, exp.Select) and not parsed.tree.args.get("from_") else None
    return exp.Subquery(this=parsed.tree) if only is None else only.unalias()


def _parameter(node: exp.Expr) -> MacroParameter:
    if not isinstance(node, exp.ColumnDef):
        return MacroParameter(node.name)
    default = None
    for said in node.args.get("constraints") or []:
        if isinstance(said.kind, exp.DefaultColumnConstraint):
            default = said.kind.this
    return MacroParameter(node.name, node.args.get("kind"), default)


# -- CREATE and DROP

_SAID = (exp.ReturnsProperty, exp.LanguageProperty, exp.StabilityProperty, exp.SchemaCommentProperty)


def create_function(node: exp.Create, text: str, context: QueryContext) -> st.CreateFunction:
    """``CREATE [OR REPLACE] FUNCTION name(parameters) [RETURNS type] RETURN expression | query``; ``CREATE MACRO``."""
    context.only(node, "this", "kind", "replace", "exists", "expression", "properties")
    for part in node.args["properties"].expressions if node.args.get("properties") is not None else []:
        if isinstance(part, exp.LanguageProperty) and part.name.upper() != "SQL":
            hint = "a function of Python is made known by @ev.function"
            raise context.unsupported(f"LANGUAGE {part.name[:30]}", node, hint)
        if not isinstance(part, _SAID):
            raise context.unsupported(f"{part.sql('spark')[:60]} in CREATE FUNCTION", node, "leave it out")
    if not isinstance(node.this, exp.UserDefinedFunction) or node.expression is None:
        raise context.error("a function of what?", node, HINT)
    if not isinstance(node.this.this, exp.Table):
        raise context.error("a function of which name?", node, HINT)
    name = stored_name(node.this.this, replace(context, schema="")).lower()
    if is_function(name) or name in NAMES or name in RANKS:
        raise context.error(f'"{name}" is a function of SQL', node, "give it another name")
    read = _read(node, name, text, context.dialect)
    names = [fold(parameter.name) for parameter in read.parameters]
    if len(set(names)) < len(names):
        raise context.error(f"{name} has two parameters of one name", node, "rename one")
    _try(read, node, context)
    flags = bool(node.args.get("replace")), bool(node.args.get("exists"))
    return st.CreateFunction(text, name, context.dialect, *flags)


def _try(macro: SqlMacro, node: exp.Expr, context: QueryContext) -> None:
    """Refuse a body that cannot be bound; one whose parameters have no types is only seen to parse."""
    if any(parameter.kind is None for parameter in macro.parameters):
        return
    values = [Literal(None, type_of(parameter.kind, context)) for parameter in macro.parameters if parameter.kind]
    if macro.is_table:
        _query(macro, values, context)
    else:
        _value(macro, list(values), Site(context, Scope(), f"function {macro.name}", aggregates=True))


def drop_function(node: exp.Drop, text: str, context: QueryContext) -> st.DropFunction:
    """``DROP FUNCTION [IF EXISTS] name``."""
    table = (node.args.get("tables") or [node.this])[0]
    name = stored_name(table, replace(context, schema="")).lower()
    known = context.catalog.stored_function(name)
    exists = bool(node.args.get("exists"))
    if known is None and not exists:
        raise unknown_name("function of SQL", name, [row[0] for row in context.catalog.information("routines") or ()])
    return st.DropFunction(text, name, missing=known is None)


# -- calls


def expanded(name: str, arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """The value of a call of a function of SQL."""
    stored = site.context.catalog.stored_function(name)
    assert stored is not None, "a function of SQL has that name"
    macro = macro_of(stored)
    if macro.is_table:
        raise site.context.error(f"{name} gives a table", node, f"write it in FROM: SELECT * FROM {name}(…)")
    given = _arranged(macro, arguments, node, site.context)
    return _value(macro, [expression(argument, site) for argument in given], site)


def expanded_table(
    name: str, arguments: list[exp.Expr], node: exp.Expr, context: QueryContext, row: Scope | None = None
) -> Bound | None:
    """The rows of a call in FROM, if a function of SQL has that name; LATERAL, its arguments may read another row."""
    stored = context.catalog.stored_function(name)
    if stored is None:
        return None
    macro = macro_of(stored)
    if not macro.is_table:
        raise context.error(f"{name} gives a value, and no table", node, f"write SELECT {name}(…)")
    values: list[Expression] = []
    for argument in _arranged(macro, arguments, node, context):
        value = folded(expression(argument, Site(context, row or Scope(), f"the call of {name}")))
        if not isinstance(value, Literal) and row is None:
            raise context.unsupported(f"{name} of what is no constant", node, f"write LATERAL {name}(…)")
        values.append(value)
    return _query(macro, values, context)


def _arranged(macro: SqlMacro, arguments: list[exp.Expr], node: exp.Expr, context: QueryContext) -> list[exp.Expr]:
    """The arguments in the order of the parameters: by place first, then by name, then defaults."""
    names = [fold(parameter.name) for parameter in macro.parameters]
    given: dict[int, exp.Expr] = {}
    for number, argument in enumerate(arguments):
        place, value = number, argument
        if isinstance(argument, (exp.Kwarg, exp.PropertyEQ)):
            word = fold(argument.this.name)
            if word not in names:
                raise unknown_name("parameter", argument.this.name, [p.name for p in macro.parameters])
            place, value = names.index(word), argument.expression
        elif any(isinstance(before, (exp.Kwarg, exp.PropertyEQ)) for before in arguments[:number]):
            raise context.error("an argument by place follows one by name", node, "give the ones by place first")
        elif number >= len(names):
            raise context.error(f"{macro.name} was given {len(arguments)} arguments", node, f"it takes {_takes(macro)}")
        if place in given:
            raise context.error(f'argument "{macro.parameters[place].name}" is given twice', node)
        given[place] = value
    whole = list[exp.Expr]()
    for place, parameter in enumerate(macro.parameters):
        value = given.pop(place, parameter.default)
        if value is None:
            raise context.error(f'{macro.name} was not given "{parameter.name}"', node, f"it takes {_takes(macro)}")
        whole.append(value)
    return whole


def _takes(macro: SqlMacro) -> str:
    return ", ".join(parameter.name for parameter in macro.parameters) or "none"


def _inside(macro: SqlMacro, context: QueryContext, outer: Scope | None = None) -> QueryContext:
    """The context of a body: nothing of the caller's but the catalog; names without a schema are of the default one."""
    return replace(
        context, source=SqlText(macro.text), dialect=macro.dialect, ctes={}, parameters={}, outer=outer, schema=""
    ).deeper(macro.body)


def _scope(macro: SqlMacro, values: list[Expression], context: QueryContext) -> Scope:
    """The arguments as the body sees them, in the types of the parameters."""
    visible: list[Visible] = []
    for number, (parameter, given) in enumerate(zip(macro.parameters, values, strict=True)):
        type_ = None if parameter.kind is None else type_of(parameter.kind, context)
        visible.append(Visible(None, f"{ARGUMENT}{number}", _as_parameter(given, type_, parameter, macro)))
    return Scope(tuple(visible))


def _as_parameter(value: Expression, type_: Type | None, parameter: MacroParameter, macro: SqlMacro) -> Expression:
    """An argument in the type of its parameter; a number that does not fit raises when the call is evaluated."""
    if type_ is None:
        return value
    if is_number(value.type) and is_number(type_):
        return cast(value, type_)
    return implicit(value, type_, f'"{parameter.name}" of {macro.name}')


def _value(macro: SqlMacro, values: list[Expression], site: Site) -> Expression:
    context = _inside(macro, site.context)
    inner = replace(site, context=context, scope=_scope(macro, values, context), given={}, named={})
    try:
        body = expression(macro.body, inner)
    except EverviewError as error:
        context.source.locate(error, macro.body)
        if error.hint is not None:
            error.hint = re.sub(rf"{ARGUMENT}(\d+)", lambda m: macro.parameters[int(m[1])].name, error.hint)
            error.args = (f"{error.message}\n  hint: {error.hint}",)
        raise
    return body if macro.returns is None else cast(body, type_of(macro.returns, context))


def _query(macro: SqlMacro, values: list[Literal] | list[Expression], context: QueryContext) -> Bound:
    from everview.frontends.sql.queries import query

    inner = _inside(macro, context)
    return query(macro.body, replace(inner, outer=_scope(macro, list(values), inner)))
