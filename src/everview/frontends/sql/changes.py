"""INSERT, UPDATE, DELETE and MERGE: the rows that come and go, as plans over what is there."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.errors import EverviewError, NullNotAllowed
from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, condition, expression
from everview.frontends.sql.names import Scope, fold
from everview.frontends.sql.queries import untyped_query, with_clause
from everview.frontends.sql.sets import trimmed
from everview.frontends.sql.sources import named, relation
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Project, Scan, Union
from everview.plan.typing import call, cast, castable
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import VOID
from everview.types import Schema, unknown_name


def change(node: exp.Expr, text: str, context: QueryContext) -> st.Statement:
    """A statement that changes a table."""
    context = with_clause(node, context)
    match node:
        case exp.Insert():
            return _insert(node, text, context)
        case exp.Update():
            return _update(node, text, context)
        case exp.Delete():
            return _delete(node, text, context)
        case exp.TruncateTable():
            context.only(node, "expressions")
            (table,) = node.expressions
            scan = _table(table, context)
            return st.DeleteRows(text, scan.relation, scan)
        case _:
            assert isinstance(node, exp.Merge)
            return _merge(node, text, context)


def _table(node: exp.Expr, context: QueryContext) -> Scan:
    """A table that can be changed."""
    if not isinstance(node, exp.Table):
        raise context.unsupported(f"a change of {node.sql('spark')[:60]}", node, "name a table")
    context.only(node, "this", "alias", "db", "catalog")
    try:
        plan = relation(node, context).plan
    except EverviewError as error:
        context.source.locate(error, node)
        raise
    if not isinstance(plan, Scan):
        raise context.error(f'"{node.name}" is no table', node, "only tables can be changed; views follow")
    return context.catalog.given(plan)


# -- INSERT


def _insert(node: exp.Insert, text: str, context: QueryContext) -> st.InsertRows:
    context.only(node, "this", "expression", "with_", "by_name")
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    scan = _table(target, context)
    listed = [c.name for c in node.this.expressions] if isinstance(node.this, exp.Schema) else None
    if node.expression is None:
        raise context.error("INSERT of what?", node, "write INSERT INTO t VALUES (…)")
    bound = _inserted(node.expression, context)
    if node.args.get("by_name"):
        listed = list(bound.names)
    places = _places(listed, bound, scan, node, context)
    columns = [
        _default(scan, i, node, context)
        if place is None
        else _assigned(bound.plan.column(place), scan.schema, i, node, context)
        for i, place in enumerate(places)
    ]
    return st.InsertRows(text, scan.relation, Project(bound.plan, tuple(columns), scan.schema.names))


def _inserted(node: exp.Expr, context: QueryContext) -> Bound:
    """The rows to insert; DEFAULT inside VALUES is refused, as leaving the column out says the same."""
    for row in node.expressions if isinstance(node, exp.Values) else []:
        for value in row.expressions if isinstance(row, exp.Tuple) else [row]:
            if isinstance(value, exp.Column | exp.Var) and value.name.upper() == "DEFAULT":
                raise context.unsupported("DEFAULT as a value", node, "leave the column out of the list of columns")
    bound = untyped_query(node, context)
    return Bound(trimmed(bound), bound.names)


def _places(
    listed: list[str] | None, bound: Bound, scan: Scan, node: exp.Expr, context: QueryContext
) -> list[int | None]:
    """For each column of the table, the position of the inserted column that fills it; None for its default."""
    names = scan.schema.names
    if listed is None:
        if len(bound.names) != len(names):
            hint = f"the columns are {', '.join(names)}; name those that are given"
            raise context.error(f"{len(bound.names)} values for {len(names)} columns", node, hint)
        return list(range(len(names)))
    if len(listed) != len(bound.names):
        raise context.error(f"{len(bound.names)} values for {len(listed)} columns", node, "give as many")
    folded = [fold(name) for name in listed]
    for name in listed:
        if fold(name) not in map(fold, names):
            raise unknown_name("column", name, names)
        if folded.count(fold(name)) > 1:
            raise context.error(f'column "{name}" is given twice', node)
    return [folded.index(fold(name)) if fold(name) in folded else None for name in names]


def _default(scan: Scan, column: int, node: exp.Expr, context: QueryContext) -> Expression:
    field = scan.schema.fields[column]
    default = context.catalog.default(scan.relation, field.name)
    if default is not None:
        return default
    if not field.nullable:
        hint = f'give "{field.name}" a value: it has no default'
        raise NullNotAllowed(f'column "{field.name}" of {scan.relation} is NOT NULL', hint=hint)
    return Literal(None, field.type)


def _assigned(value: Expression, schema: Schema, column: int, node: exp.Expr, context: QueryContext) -> Expression:
    """A value cast to the type of a column; a value that does not fit raises when the statement runs."""
    field = schema.fields[column]
    if value.type == VOID:
        return Literal(None, field.type)
    if not castable(value.type, field.type):
        hint = f"cast it to {field.type}"
        raise context.error(f'column "{field.name}" is {field.type}, and was given {value.type}', node, hint)
    return cast(value, field.type)


# -- UPDATE and DELETE


@dataclass(frozen=True)
class Target:
    """The rows of a table that a statement may change, under their names."""

    scan: Scan
    scope: Scope


def _target(node: exp.Expr, context: QueryContext) -> Target:
    scan = _table(node, context)
    rows = named(Bound(scan, scan.schema.names), node.args.get("alias"), context, node.name)
    return Target(scan, rows.scope)


def _where(node: exp.Expr, target: Target, context: QueryContext) -> Plan:
    if node.args.get("where") is None:
        return target.scan
    return Filter(target.scan, condition(node.args["where"].this, Site(context, target.scope, "WHERE")))


def _update(node: exp.Update, text: str, context: QueryContext) -> st.UpdateRows:
    context.only(node, "this", "expressions", "where", "with_")
    if not node.expressions:
        raise context.error("UPDATE of what?", node, "write UPDATE t SET n = 1 WHERE …")
    target = _target(node.this, context)
    new = _assignments(node.expressions, target.scan.schema, Site(context, target.scope, "SET"))
    old = target.scan.columns
    changed = [new.get(i, column) for i, column in enumerate(old)]
    names = (*target.scan.schema.names, *(f"new {name}" for name in target.scan.schema.names))
    return st.UpdateRows(text, target.scan.relation, Project(_where(node, target, context), (*old, *changed), names))


def _assignments(parts: list[exp.Expr], schema: Schema, site: Site) -> dict[int, Expression]:
    assigned: dict[int, Expression] = {}
    for part in parts:
        if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
            raise site.context.unsupported(f"SET {part.sql('spark')[:40]}", part, "write SET a = 1, b = 2")
        column = _column(part.this, schema, site.context)
        if column in assigned:
            raise site.context.error(f'column "{part.this.name}" is set twice', part)
        assigned[column] = _assigned(expression(part.expression, site), schema, column, part, site.context)
    return assigned


def _column(node: exp.Expr, schema: Schema, context: QueryContext) -> int:
    column = next((i for i, name in enumerate(schema.names) if fold(name) == fold(node.name)), None)
    if column is None:
        error = unknown_name("column", node.name, schema.names)
        context.source.locate(error, node)
        raise error
    return column


def _delete(node: exp.Delete, text: str, context: QueryContext) -> st.DeleteRows:
    if node.args.get("tables"):
        raise context.error("DELETE removes whole rows FROM a table", node, "write DELETE FROM t WHERE …")
    context.only(node, "this", "where", "with_")
    target = _target(node.this, context)
    return st.DeleteRows(text, target.scan.relation, _where(node, target, context))


# -- MERGE


def _merge(node: exp.Merge, text: str, context: QueryContext) -> st.Merge:
    """Bind MERGE: a matched pair, or a source row without match, takes the first WHEN whose condition holds."""
    context.only(node, "this", "using", "on", "whens", "with_")
    target = _target(node.this, context)
    source = _merged_source(node, context)
    scan, width = target.scan, len(target.scan.schema)
    pairs = Join(scan, source[0], "inner")
    both = target.scope.beside(source[1], pairs, width)
    test = condition(node.args["on"], Site(context, both, "ON"))
    matched: Plan = Join(scan, source[0], "inner", test)
    swapped = Join(source[0], scan, "anti", _swapped(test, width, len(source[0].schema)))
    removed, added, changed = list[Plan](), list[Plan](), list[Plan]()
    others: Plan = swapped
    for when in node.args["whens"].expressions:
        context.only(when, "matched", "condition", "then")
        of_pair = bool(when.args.get("matched"))
        site = Site(context, both if of_pair else source[1], "WHEN")
        rows = matched if of_pair else others
        kept = when.args.get("condition")
        if kept is not None:
            holds = condition(kept, site)
            chosen: Plan = Filter(rows, holds)
            rest: Plan = Filter(rows, call("not", call("coalesce", holds, Literal(False, holds.type))))
        else:
            chosen, rest = rows, Filter(rows, Literal(False, test.type))
        if of_pair:
            matched = rest
            old = Project(chosen, chosen.columns[:width], scan.schema.names)
            changed.append(old)
            removed.append(old)
            added += _updated(when, chosen, scan, site)
        else:
            others = rest
            added.append(_new(when, chosen, scan, site))
    return st.Merge(text, scan.relation, _all(removed, scan), _all(added, scan), _all(changed, scan))


def _merged_source(node: exp.Merge, context: QueryContext) -> tuple[Plan, Scope]:
    from everview.frontends.sql.sources import from_clause

    rows = from_clause(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node.args["using"])), context)
    return rows.plan, rows.scope


def _swapped(test: Expression, left: int, right: int) -> Expression:
    from everview.scalars.expressions import moved

    return moved(test, lambda i: i + right if i < left else i - left)


def _updated(when: exp.When, rows: Plan, scan: Scan, site: Site) -> list[Plan]:
    then = when.args["then"]
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
        return []
    if not isinstance(then, exp.Update) or not then.expressions:
        raise site.context.unsupported(f"WHEN MATCHED THEN {then.sql('spark')[:40]}", when, "UPDATE SET or DELETE")
    new = _assignments(then.expressions, scan.schema, site)
    columns = tuple(new.get(i, rows.column(i)) for i in range(len(scan.schema)))
    return [Project(rows, columns, scan.schema.names)]


def _new(when: exp.When, rows: Plan, scan: Scan, site: Site) -> Plan:
    then = when.args["then"]
    if (
        not isinstance(then, exp.Insert)
        or not isinstance(then.this, exp.Tuple)
        or not isinstance(then.expression, exp.Tuple)
    ):
        hint = "write INSERT (a, b) VALUES (x, y)"
        raise site.context.unsupported(f"WHEN NOT MATCHED THEN {then.sql('spark')[:40]}", when, hint)
    places = [_column(c, scan.schema, site.context) for c in then.this.expressions]
    if len(places) != len(then.expression.expressions):
        raise site.context.error("INSERT of more or fewer values than columns", when)
    given = {
        column: _assigned(expression(value, site), scan.schema, column, when, site.context)
        for column, value in zip(places, then.expression.expressions, strict=True)
    }
    columns = [given[i] if i in given else _default(scan, i, when, site.context) for i in range(len(scan.schema))]
    return Project(rows, tuple(columns), scan.schema.names)


def _all(parts: list[Plan], scan: Scan) -> Plan:
    if not parts:
        return Filter(scan, Literal(False, call("is_null", scan.column(0)).type))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))
