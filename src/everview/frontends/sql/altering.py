"""ALTER TABLE and ALTER VIEW: the actions, one after the other."""

from __future__ import annotations

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.constraints import scope_of
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.creating import NewTable, column_of_table, constraint_of_table, default_value, relation_name
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import fold
from everview.frontends.sql.targets import column_of, table_of
from everview.frontends.sql.types import type_of
from everview.plan.typing import cast
from everview.scalars.expressions import Expression
from everview.types import Schema, Type

ACTIONS = (
    "there are ADD COLUMN, DROP COLUMN, RENAME COLUMN, RENAME TO, ADD CONSTRAINT, DROP CONSTRAINT, and ALTER COLUMN "
    "with TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL, DROP NOT NULL and COMMENT"
)


def alter(node: exp.Alter, text: str, context: QueryContext) -> st.AlterTable:
    """Bind ``ALTER TABLE name action, …``."""
    context.only(node, "this", "kind", "actions", "exists")
    kind = str(node.args["kind"]).upper()
    if kind != "TABLE":
        hint = "there is ALTER VIEW v AS SELECT …; for another name, create the view under it and drop this one"
        raise context.unsupported(f"ALTER {kind}", node, hint)
    name = relation_name(node.this, context)
    known = {fold(known) for known in context.catalog.names()}
    if node.args.get("exists") and fold(name) not in known:
        return st.AlterTable(text, name, (), missing=True)
    scan = table_of(node.this, context)
    actions = list[st.TableAction]()
    for action in node.args["actions"]:
        actions += _actions(action, scan.relation, scan.schema, context)
    return st.AlterTable(text, scan.relation, tuple(actions))


def _actions(action: exp.Expr, table: str, schema: Schema, context: QueryContext) -> list[st.TableAction]:
    match action:
        case exp.ColumnDef():
            return [_added(action, table, context)]
        case exp.Schema():
            return [_added(column, table, context) for column in action.expressions]
        case exp.Drop():
            return _dropped(action, context)
        case exp.RenameColumn():
            return [st.RenameColumn(action.this.name, action.args["to"].name)]
        case exp.AlterRename():
            return [st.RenameTable(relation_name(action.this, context))]
        case exp.AlterColumn():
            return _changed(action, schema, context)
        case exp.AddConstraint():
            parts = NewTable(table, [], {})
            for part in action.expressions:
                constraint_of_table(part, parts, context)
            keys = [st.AddKey(tuple(key)) for key in parts.keys]
            return [*keys, *(st.AddConstraint(constraint) for constraint in parts.constraints)]
        case _:
            raise context.unsupported(f"ALTER TABLE … {action.sql('spark')[:40]}", action, ACTIONS)


def _added(node: exp.ColumnDef, table: str, context: QueryContext) -> st.AddColumn:
    parts, node = NewTable(table, [], {}), node.copy()
    position = node.args.get("position")
    node.set("position", None)
    column_of_table(node, parts, context)
    if parts.keys:
        hint = "add the column, fill it, and then ALTER TABLE … ADD PRIMARY KEY (…)"
        raise context.unsupported("a primary key in ADD COLUMN", node, hint)
    (field,) = parts.fields
    return st.AddColumn(
        field,
        parts.defaults.get(field.name),
        parts.generated.get(field.name),
        parts.comments.get(field.name),
        tuple(parts.constraints),
        if_not_exists=bool(node.args.get("exists")),
        first=position is not None and position.this is None,
        after=None if position is None or position.this is None else position.this.name,
    )


def _dropped(node: exp.Drop, context: QueryContext) -> list[st.TableAction]:
    kind, exists = str(node.args["kind"]).upper(), bool(node.args.get("exists"))
    parts = node.args.get("tables") or [node.this]
    names = [column.name for part in parts for column in (part.expressions if isinstance(part, exp.Schema) else [part])]
    if kind in ("COLUMN", "COLUMNS"):
        return [st.DropColumn(name, if_exists=exists) for name in names]
    if kind == "CONSTRAINT":
        return [st.DropConstraint(name, if_exists=exists) for name in names]
    raise context.unsupported(f"ALTER TABLE … DROP {kind}", node, ACTIONS)


def _changed(node: exp.AlterColumn, schema: Schema, context: QueryContext) -> list[st.TableAction]:
    context.only(node, "this", "dtype", "default", "drop", "allow_null", "comment", "rename_to", "using")
    field = schema.fields[column_of(node.this, schema, context)]
    actions = list[st.TableAction]()
    type_ = field.type
    if node.args.get("dtype") is not None:
        type_ = type_of(node.args["dtype"], context)
        actions.append(st.SetType(field.name, type_, _values(node, type_, schema, context)))
    if node.args.get("default") is not None:
        actions.append(st.SetDefault(field.name, default_value(node.args["default"], type_, context)))
    elif node.args.get("allow_null") is not None:
        actions.append(st.SetNullable(field.name, bool(node.args["allow_null"])))
    elif node.args.get("drop"):
        actions.append(st.SetDefault(field.name, None))
    if node.args.get("comment"):
        actions.append(st.SetComment(field.name, node.args["comment"].name))
    renamed = node.args.get("rename_to")
    if renamed is not None and renamed.name != field.name:
        actions.append(st.RenameColumn(field.name, renamed.name))
    return actions


def _values(node: exp.AlterColumn, type_: Type, schema: Schema, context: QueryContext) -> Expression | None:
    """What USING says that the column is to hold, over the rows as they are."""
    if not node.args.get("using"):
        return None
    return cast(expression(node.args["using"], Site(context, scope_of(schema), "USING")), type_)
