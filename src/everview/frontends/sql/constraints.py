"""Constraints of tables: CHECK, UNIQUE and FOREIGN KEY, and the queries for the rows that break them.

A constraint holds as long as its query has no rows. The query is kept as any view is, so what a tick costs follows what
it changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.dialect import Plain
from everview.frontends.sql.expressions import Site, condition
from everview.frontends.sql.names import Scope, Visible, fold
from everview.frontends.sql.parse import parse_expression, stored_expression
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.schemas import stored_name
from everview.frontends.sql.targets import computed
from everview.plan.catalog import Readable, Tables
from everview.scalars.expressions import Column, Exists, Expression, InQuery, Now, Scalar, columns_of, walk
from everview.types import Schema, unknown_name

if TYPE_CHECKING:
    from everview.frontends.sql.creating import NewTable


@dataclass(frozen=True)
class CheckRows:
    """``CHECK (condition)``: true or NULL for every row. `text` is the condition in Spark's dialect."""

    name: str
    text: str
    column: str = ""  # that is generated, if that is what is checked

    def query(self, table: str, schema: Schema) -> str:
        """The SQL of the rows that violate the constraint."""
        if self.column:
            type_ = schema[self.column].type.sql
            return f"SELECT * FROM {quoted(table)} WHERE NOT ({quoted(self.column)} <=> CAST(({self.text}) AS {type_}))"
        return f"SELECT * FROM {quoted(table)} WHERE NOT ({self.text})"

    def reads(self, column: str) -> bool:
        """Whether it reads a column."""
        names = {fold(node.name) for node in parse_expression(self.text).find_all(exp.Column)}
        return fold(column) in names or fold(column) == fold(self.column)


@dataclass(frozen=True)
class UniqueColumns:
    """``UNIQUE (columns)``: no two rows have equal values in all of them; NULL equals nothing."""

    name: str
    columns: tuple[str, ...]

    def query(self, table: str, schema: Schema) -> str:
        """The values that two rows have."""
        listed = ", ".join(map(quoted, self.columns))
        known = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in self.columns)
        return f"SELECT {listed} FROM {quoted(table)} WHERE {known} GROUP BY {listed} HAVING COUNT(*) > 1"

    def reads(self, column: str) -> bool:
        """Whether it reads a column."""
        return fold(column) in map(fold, self.columns)


@dataclass(frozen=True)
class ForeignKey:
    """``FOREIGN KEY (columns) REFERENCES table (others)``: each value has a row there; a row with a NULL needs none."""

    name: str
    columns: tuple[str, ...]
    table: str
    others: tuple[str, ...]

    def query(self, table: str, schema: Schema) -> str:
        """The values that refer to nothing."""
        listed = ", ".join(f"c.{quoted(column)}" for column in self.columns)
        known = " AND ".join(f"c.{quoted(column)} IS NOT NULL" for column in self.columns)
        pairs = zip(self.columns, self.others, strict=True)
        same = " AND ".join(f"c.{quoted(a)} = p.{quoted(b)}" for a, b in pairs)
        both = f"{quoted(table)} AS c LEFT ANTI JOIN {quoted(self.table)} AS p"
        return f"SELECT {listed} FROM {both} ON {same} WHERE {known}"

    def reads(self, column: str) -> bool:
        """Whether it reads a column of its own table."""
        return fold(column) in map(fold, self.columns)


TableConstraint = CheckRows | UniqueColumns | ForeignKey


def quoted(name: str) -> str:
    """A name in quotes, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def rendered(node: exp.Expr, context: QueryContext) -> str:
    """An expression as text in Spark's dialect, which is read as the same expression."""
    text = node.sql(Plain)
    if context.dialect == "spark" and parse_expression(text) != node:
        raise context.unsupported(f"{text[:60]} in a definition", node, "write it with brackets")
    return text


# -- reading them


def check_of(node: exp.CheckColumnConstraint, name: str, column: str, parts: NewTable, context: QueryContext) -> None:
    """``CHECK (condition)`` of a column or of a table."""
    context.only(node, "this")
    middle = f"_{column}" if column else ""
    parts.add(CheckRows(name or f"{parts.base}{middle}_check", rendered(node.this, context)))


def time_check(column: str, digits: int, parts: NewTable) -> None:
    """The check of a column of TIME(p): that no value has more digits of a second."""
    name = quoted(column)
    parts.add(CheckRows(f"{parts.base}_{column}_digits", f"{name} = CAST({name} AS TIME({digits}))"))


_LENGTH = re.compile(r"LENGTH\((?:\w+|`(?:[^`]|``)+`)\) <= \d+")


def length_check(column: str, letters: int, parts: NewTable) -> None:
    """The check of columns of VARCHAR(n) or CHAR(n), one for all of a table: that no text has more letters."""
    new = CheckRows(f"{parts.base}_lengths", f"LENGTH({quoted(column)}) <= {letters}")
    known = next((c for c in parts.constraints if c.name == new.name), None)
    both = None if known is None else both_lengths(known, new)
    if known is None or both is None:
        parts.add(new)
    else:
        parts.constraints[parts.constraints.index(known)] = both


def both_lengths(a: TableConstraint, b: TableConstraint) -> CheckRows | None:
    """Two checks of lengths as one; None if one of them checks anything else."""
    if _lengths(a) and _lengths(b) and isinstance(a, CheckRows):
        return replace(a, text=" AND ".join((*_lengths(a), *_lengths(b))))
    return None


def without_length(constraint: TableConstraint, column: str) -> TableConstraint | None:
    """A constraint as it goes on when a column is dropped: a check of lengths loses that column, or ends."""
    kept = [part for part in _lengths(constraint) if not CheckRows("", part).reads(column)]
    if not _lengths(constraint) or not isinstance(constraint, CheckRows):
        return constraint
    return replace(constraint, text=" AND ".join(kept)) if kept else None


def _lengths(constraint: TableConstraint) -> list[str]:
    """The parts of a check of lengths; none of any other constraint."""
    if not isinstance(constraint, CheckRows) or not re.search(r"_lengths\d*$", constraint.name):
        return []
    parts = _LENGTH.findall(constraint.text)
    return parts if " AND ".join(parts) == constraint.text else []


def unique_of(
    node: exp.UniqueColumnConstraint, name: str, columns: list[str], parts: NewTable, context: QueryContext
) -> None:
    """``UNIQUE`` of a column, or ``UNIQUE (columns)`` of a table."""
    context.only(node, "this")
    parts.add(UniqueColumns(name or f"{parts.base}_{'_'.join(columns)}_key", tuple(columns)))


def reference_of(node: exp.Reference, name: str, columns: list[str], parts: NewTable, context: QueryContext) -> None:
    """``REFERENCES table (columns)``; without columns, the primary key of that table."""
    context.only(node, "this", "options")
    for option in node.args.get("options") or []:
        said = option if isinstance(option, str) else option.sql("spark")
        if said.upper() not in ("ON DELETE NO ACTION", "ON UPDATE NO ACTION", "ON DELETE RESTRICT"):
            hint = "what refers to a row is deleted by a statement of its own, in the same transaction"
            raise context.unsupported(f"{said} of a foreign key", node, hint)
    other = node.this.this if isinstance(node.this, exp.Schema) else node.this
    others = [part.name for part in node.this.expressions] if isinstance(node.this, exp.Schema) else []
    parts.add(
        ForeignKey(
            name or f"{parts.base}_{'_'.join(columns)}_fkey", tuple(columns), stored_name(other, context), tuple(others)
        )
    )


# -- checking them


@dataclass(frozen=True, slots=True)
class ConstrainedTable:
    """A table whose constraints are checked, and the statement that has them."""

    name: str
    schema: Schema
    key: tuple[str, ...]
    uniques: tuple[tuple[str, ...], ...]
    node: exp.Expr
    context: QueryContext


def settled(constraint: TableConstraint, table: ConstrainedTable) -> TableConstraint:
    """A constraint with names as they are spelled where they are defined; raises if it cannot be checked."""
    match constraint:
        case CheckRows(_, text, column):
            schema, context, scope = table.schema, table.context, scope_of(table.schema)
            value = (
                computed(text, schema, schema.index(column), scope, context)
                if column
                else condition(stored_expression(text), Site(replace(context, dialect="spark"), scope, "CHECK"))
            )
            _check_of_one_row(value, f"CHECK ({text})", table.node, context)
            return constraint
        case UniqueColumns(_, columns):
            return replace(constraint, columns=_spelled(columns, table.schema))
        case ForeignKey():
            return _settled_key(constraint, table)


def settled_in(
    catalog: Readable, constraints: Iterable[TableConstraint], table: str, schema: Schema, key: tuple[str, ...]
) -> tuple[TableConstraint, ...]:
    """The constraints of a table that is changed, checked again with its columns as they are now."""
    every, context, nowhere = tuple(constraints), QueryContext(catalog, SqlText("")), exp.Null()
    uniques = tuple(c.columns for c in every if isinstance(c, UniqueColumns))
    check_generated(
        {c.column: c.text for c in every if isinstance(c, CheckRows) and c.column}, schema, nowhere, context
    )
    constrained = ConstrainedTable(table, schema, key, uniques, nowhere, context)
    return tuple(settled(constraint, constrained) for constraint in every)


def renamed_in(constraint: TableConstraint, old: str, new: str) -> TableConstraint:
    """A constraint of a table of which a column is renamed."""
    match constraint:
        case CheckRows(_, text, column):
            tree = parse_expression(text)
            for node in list(tree.find_all(exp.Column)):
                if fold(node.name) == fold(old):
                    node.set("this", exp.to_identifier(new, quoted=not new.isidentifier()))
            return replace(constraint, text=tree.sql(Plain), column=new if fold(column) == fold(old) else column)
        case UniqueColumns(_, columns) | ForeignKey(_, columns):
            return replace(constraint, columns=tuple(new if fold(c) == fold(old) else c for c in columns))


def scope_of(schema: Schema) -> Scope:
    """The columns of a row by their names alone."""
    columns = (Column(i, f.name, f.type, f.nullable) for i, f in enumerate(schema.fields))
    return Scope(tuple(Visible(None, column.name, column) for column in columns))


def _check_of_one_row(value: Expression, what: str, node: exp.Expr, context: QueryContext) -> None:
    if any(isinstance(e, Exists | InQuery | Scalar) for e in walk(value)):
        raise context.unsupported(f"a subquery in {what[:60]}", node, "it looks at one row; there is FOREIGN KEY")
    if any(isinstance(e, Now) for e in walk(value)):
        raise context.unsupported(f"the time in {what[:60]}", node, "what holds now would not hold later")


def check_generated(generated: Mapping[str, str], schema: Schema, node: exp.Expr, context: QueryContext) -> None:
    """Refuse columns that are computed from others that are computed, from subqueries or the time."""
    for name, text in generated.items():
        value = computed(text, schema, schema.index(name), scope_of(schema), context)
        _check_of_one_row(value, f"GENERATED ALWAYS AS ({text})", node, context)
        used = {schema.names[i] for i in columns_of(value)}
        if used & generated.keys():
            hint = "a generated column is computed from columns that are given"
            raise context.error(f'column "{name}" is generated from {min(used & generated.keys())}', node, hint)


def generated_values(generated: Mapping[str, str], schema: Schema) -> dict[str, Expression]:
    """The values of generated columns, over rows of all columns of their table."""
    context, scope = QueryContext(Tables({}), SqlText("")), scope_of(schema)
    return {name: computed(text, schema, schema.index(name), scope, context) for name, text in generated.items()}


def _spelled(columns: tuple[str, ...], schema: Schema) -> tuple[str, ...]:
    known = {fold(name): name for name in schema.names}
    for column in columns:
        if fold(column) not in known:
            raise unknown_name("column", column, schema.names)
    return tuple(known[fold(column)] for column in columns)


def _settled_key(constraint: ForeignKey, table: ConstrainedTable) -> ForeignKey:
    columns, node, context = _spelled(constraint.columns, table.schema), table.node, table.context
    if fold(constraint.table) == fold(table.name):
        other, others_schema, keys = table.name, table.schema, [table.key, *table.uniques]
    else:
        catalog = context.catalog
        known = {fold(name): name for name in catalog.names()}
        if fold(constraint.table) not in known:
            raise unknown_name("table", constraint.table, known.values())
        other = known[fold(constraint.table)]
        relation = catalog.relation(other)
        if not isinstance(relation, Schema):
            raise context.error(f'"{other}" is no table', node, "a foreign key refers to a table with a key")
        others_schema, keys = relation, [catalog.key(other), *catalog.uniques(other)]
    others = _spelled(constraint.others, others_schema) if constraint.others else keys[0]
    if not others or {*others} not in [{*k} for k in keys]:
        hint = f"its keys are: {'; '.join(', '.join(k) for k in keys if k) or 'none'}"
        raise context.error(f"a foreign key refers to a PRIMARY KEY or UNIQUE columns of {other}", node, hint)
    if len(others) != len(columns):
        raise context.error(f"{len(columns)} columns refer to {len(others)}", node, "name as many on both sides")
    # Columns that cannot be compared are refused here.
    condition(_pair_test(columns, others), Site(context, _pair_scope(table.schema, others_schema), "REFERENCES"))
    return replace(constraint, columns=columns, table=other, others=others)


def _pair_test(columns: tuple[str, ...], others: tuple[str, ...]) -> exp.Expr:
    return stored_expression(
        " AND ".join(f"c.{quoted(a)} = p.{quoted(b)}" for a, b in zip(columns, others, strict=True))
    )


def _pair_scope(child: Schema, parent: Schema) -> Scope:
    fields = [("c", f) for f in child.fields] + [("p", f) for f in parent.fields]
    return Scope(tuple(Visible(r, f.name, Column(i, f.name, f.type, f.nullable)) for i, (r, f) in enumerate(fields)))
